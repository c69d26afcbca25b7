//! Tables that follow from how often each level is there, a channel at a time.

use super::table::{self, LevelTable};
use crate::pixels::pixel_view::{PixelView, PixelViewMut};

/// How often each level is there.
type LevelCounts = [u64; 256];

/// `ImageOps.autocontrast`: the least level becomes 0, the largest 255. A channel
/// of one level stays.
pub(crate) fn autocontrast(pixels: PixelViewMut<'_, u8>) {
    let tables = counts(pixels.as_view()).map(|counts| {
        let least = counts.iter().position(|&n| n > 0);
        let most = counts.iter().rposition(|&n| n > 0);
        match (least, most) {
            (Some(least), Some(most)) if least < most => stretched(least as f64, most as f64),
            _ => table::of(|level| level),
        }
    });
    table::map_channels(pixels, &tables);
}

fn stretched(least: f64, most: f64) -> LevelTable {
    let scale = 255.0 / (most - least);
    let offset = -least * scale;
    // A cast cuts, and holds to the range.
    table::of(|level| (f64::from(level) * scale + offset) as u8)
}

/// `ImageOps.equalize`: every level about as often. A channel of one level, or of
/// so few pixels that there is no whole step, stays.
pub(crate) fn equalize(pixels: PixelViewMut<'_, u8>) {
    let tables = counts(pixels.as_view()).map(|counts| {
        let last = counts.iter().rev().find(|n| **n > 0).unwrap_or(&0);
        // One level: none but the last.
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
