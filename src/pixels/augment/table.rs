//! Maps each level by a table, independently of other pixels.

use crate::pixels::pixel_view::PixelViewMut;

/// The new level for each level.
pub(crate) type LevelTable = [u8; 256];

/// Builds a table from a function.
pub(crate) fn of(rule: impl Fn(u8) -> u8) -> LevelTable {
    let mut table = [0; 256];
    for (level, to) in (0..=255).zip(&mut table) {
        *to = rule(level);
    }
    table
}

/// Maps all channels with the same table.
pub(crate) fn map(mut pixels: PixelViewMut<'_, u8>, table: &LevelTable) {
    for row in pixels.rows_mut() {
        for v in row.as_flattened_mut() {
            *v = table[usize::from(*v)];
        }
    }
}

/// Maps each channel with its own table.
pub(crate) fn map_channels(mut pixels: PixelViewMut<'_, u8>, tables: &[LevelTable; 3]) {
    for row in pixels.rows_mut() {
        for pixel in row {
            for (v, table) in pixel.iter_mut().zip(tables) {
                *v = table[usize::from(*v)];
            }
        }
    }
}

/// `ImageOps.invert`.
pub(crate) fn invert(level: u8) -> u8 {
    255 - level
}

/// `ImageOps.posterize`: keeps the upper `bits`. 0 makes black; 8 and more change nothing.
pub(crate) fn posterize(bits: u8) -> impl Fn(u8) -> u8 {
    let mask = 255u8.checked_shr(u32::from(bits)).map_or(255, |low| !low);
    move |level| level & mask
}

/// `ImageOps.solarize`: inverts levels from `threshold` on.
pub(crate) fn solarize(threshold: f32) -> impl Fn(u8) -> u8 {
    move |level| match f32::from(level) < threshold {
        true => level,
        false => 255 - level,
    }
}

/// Adds `add` to levels below `threshold`, at most 255.
pub(crate) fn solarize_add(add: u8, threshold: u8) -> impl Fn(u8) -> u8 {
    move |level| match level < threshold {
        true => level.saturating_add(add),
        false => level,
    }
}
