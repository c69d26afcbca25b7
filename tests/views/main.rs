//! Whole images of a scene, through the public API: which they are, whoever shows them,
//! and what happens when something dies.
//!
//! - `depths`: depths of pixels, and transparency, in views and rays;
//! - `depth_files`: which depths are read; `masks`: what they leave out;
//! - `shown`: what views hold; `same`: by any number of workers, through deaths;
//! - `straight`: straightened images; `device`: made by a device; `jpegs`: decoded by one.

#[path = "../common/mod.rs"]
mod common;
mod depth_files;
mod depths;
mod device;
mod jpegs;
mod masks;
mod same;
mod shown;
mod straight;

use featherload::views::{View, ViewField, Views, ViewsBuilder};
use twox_hash::XxHash3_128;

use crate::common::FEATHERLOAD;
use crate::common::scene::Written;

/// Views of all images of a scene.
fn views(scene: &Written, workers: usize) -> ViewsBuilder {
    let views = Views::builder(scene.path());
    views.helper(FEATHERLOAD).num_workers(workers)
}

/// A hash of all that a view says.
fn digest(view: &View) -> u128 {
    let mut hash = XxHash3_128::new();
    hash.write(&view.step().to_le_bytes());
    hash.write(&view.index().to_le_bytes());
    for field in ViewField::ALL {
        hash.write(view.bytes(field).unwrap());
    }
    hash.finish_128()
}

/// Those of the next steps.
fn digests(views: &mut Views, steps: usize) -> Vec<u128> {
    (0..steps)
        .map(|_| digest(&views.next_view().unwrap()))
        .collect()
}
