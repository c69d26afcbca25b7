//! Rays of a scene, through the public API: which they are, whoever makes them, and what
//! happens when something dies.
//!
//! - `draws`: what batches hold; `same`: by any number of workers, through deaths;
//! - `shared`: by several runs that share a store;
//! - `faults`: images and masks that are not as they should be;
//! - `poses`: poses that are no rotations;
//! - `device`: rays that a device makes beside those of the CPU;
//! - `lenses`: colours beside the formula of a scene, through every camera model.

#[path = "../common/mod.rs"]
mod common;
mod device;
mod draws;
mod faults;
mod lenses;
mod poses;
mod same;
mod shared;
