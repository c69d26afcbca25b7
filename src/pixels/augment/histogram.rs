//! Tables computed from the histogram of each channel.

use super::table::{self, LevelTable};
use crate::pixels::pixel_view::{PixelView, PixelViewMut};
use crate::pixels::tensor;

/// Number of pixels with each level.
type LevelCounts = [u64; 256];

/// `ImageOps.autocontrast`: the lowest level becomes 0, the highest 255. A channel with a single
/// level stays unchanged.
pub(crate) fn autocontrast(pixels: PixelViewMut<'_, u8>) {
    stretch(pixels, |least, most| {
        stretched(f64::from(least), f64::from(most))
    });
}

/// As [`autocontrast`], with torchvision's arithmetic of tensors.
pub(crate) fn tensor_autocontrast(pixels: PixelViewMut<'_, u8>) {
    stretch(pixels, |least, most| {
        table::of(|level| tensor::stretched(level, least, most))
    });
}

/// `table` receives the lowest and the highest level of a channel.
fn stretch(pixels: PixelViewMut<'_, u8>, table: impl Fn(u8, u8) -> LevelTable) {
    let tables = counts(pixels.as_view()).map(|counts| {
        let least = counts.iter().position(|&n| n > 0);
        let most = counts.iter().rposition(|&n| n > 0);
        match (least, most) {
            (Some(least), Some(most)) if least < most => table(least as u8, most as u8),
            _ => table::of(|level| level),
        }
    });
    table::map_channels(pixels, &tables);
}

fn stretched(least: f64, most: f64) -> LevelTable {
    let scale = 255.0 / (most - least);
    let offset = -least * scale;
    // The cast truncates and clamps.
    table::of(|level| (f64::from(level) * scale + offset) as u8)
}

/// `ImageOps.equalize`: makes all levels about equally frequent. A channel with a single level
/// stays unchanged, and so does one with fewer than 255 pixels outside its highest level.
pub(crate) fn equalize(pixels: PixelViewMut<'_, u8>) {
    let tables = counts(pixels.as_view()).map(|counts| {
        let last = counts.iter().rev().find(|n| **n > 0).unwrap_or(&0);
        // With a single level, all pixels are in the last one.
        let step = (counts.iter().sum::<u64>() - last) / 255;
        if step == 0 {
            return table::of(|level| level);
        }
        let mut below = step / 2;
        let mut table = [0; 256];
        for (to, count) in table.iter_mut().zip(counts) {
            *to = (below / step).min(255) as u8;
            below += count;
        }
        table
    });
    table::map_channels(pixels, &tables);
}

fn counts(pixels: PixelView<'_, u8>) -> [LevelCounts; 3] {
    let mut counts = [[0; 256]; 3];
    for row in pixels.rows() {
        for pixel in row {
            for (counts, v) in counts.iter_mut().zip(pixel) {
                counts[usize::from(*v)] += 1;
            }
        }
    }
    counts
}
