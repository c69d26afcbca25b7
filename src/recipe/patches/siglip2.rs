//! `get_image_size_for_max_num_patches` of SigLIP2.

use super::patch_grid::PatchGrid;

const PRECISION: f64 = 1e-5;
const MOST_SCALE: f64 = 100.0;

/// The grid of the largest scale that has at most `max_patches`, by the search of the processor. A
/// scale is at most 100, so a small image may have fewer patches. An image may have more than
/// `max_patches` only if the least scale has.
pub(super) fn search_grid(
    (height, width): (u32, u32),
    patch_size: u32,
    max_patches: u32,
) -> PatchGrid {
    let patches = |side: u32, scale: f64| {
        let patches = f64::from(side) * scale / f64::from(patch_size);
        patches.ceil().max(1.0)
    };
    let (mut low, mut high) = (PRECISION / 10.0, MOST_SCALE);
    while high - low >= PRECISION {
        let scale = (low + high) / 2.0;
        match patches(height, scale) * patches(width, scale) <= f64::from(max_patches) {
            true => low = scale,
            false => high = scale,
        }
    }
    PatchGrid {
        rows: patches(height, low) as u32,
        columns: patches(width, low) as u32,
    }
}
