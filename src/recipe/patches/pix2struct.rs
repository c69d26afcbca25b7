//! `extract_flattened_patches` of Pix2Struct.

use super::patch_grid::PatchGrid;

/// The grid of the image at the largest scale that has at most `max_patches`. Each operation is one
/// of Python's, in the same order. A side has at least one patch, and its image may be stretched.
pub(super) fn largest_grid(
    (height, width): (u32, u32),
    patch_size: u32,
    max_patches: u32,
) -> PatchGrid {
    let (height, width) = (f64::from(height), f64::from(width));
    let (side, most) = (f64::from(patch_size), f64::from(max_patches));
    // Python's `** 0.5` may differ in the last bit. No image with sides to 1,399 has another grid.
    let scale = (most * (side / height) * (side / width)).sqrt();
    let patches = |length: f64| (scale * length / side).floor().min(most).max(1.0) as u32;
    PatchGrid {
        rows: patches(height),
        columns: patches(width),
    }
}
