//! What a loader hands over, batch by batch: the same for any number of workers,
//! through deaths, from any point on.

#[path = "../common/mod.rs"]
mod common;

mod boxes;
mod buckets;
mod captions;
mod copy_paste;
mod crops;
mod detection;
mod elastic;
mod errors;
mod full;
mod joints;
mod kept_pictures;
mod labels;
mod masks;
mod mixing;
mod no_images;
mod objects;
mod patch_budget;
mod patches;
mod rasters;
mod sampler;
mod standardize;
mod stream;
mod substitute;
mod tiles;
