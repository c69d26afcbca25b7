//! Batches on a device, with the stand-in for the NVIDIA driver
//! (`tests/standin_cuda/cuda.c`) in front.

#[path = "../common/mod.rs"]
mod common;

mod buckets;
mod crop_recipes;
mod crops;
mod decoded_targets;
mod doctor;
mod failures;
mod gpu_crops;
mod gpu_jpegs;
mod jpegs;
mod loader;
mod patches;
mod preview;
mod run;
mod upload;
