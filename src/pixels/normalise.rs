//! `(v / unit - mean) / std`, each step rounded to `f32`. The same as
//! [`RowEmitter`](super::emit::RowEmitter) does at the end, for a step within a recipe.

use super::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::recipe::ChannelScaling;

impl ChannelScaling {
    /// True if no value changes.
    pub(super) fn is_identity(&self) -> bool {
        // A mean of -0 would turn -0 into 0.
        let means = self.mean.map(f32::to_bits);
        self.unit == 1.0 && means == [0; 3] && self.std == [1.0; 3]
    }

    #[inline(always)]
    fn pixel(&self, [a, b, c]: RgbPixel<f32>) -> RgbPixel<f32> {
        [self.of(0, a), self.of(1, b), self.of(2, c)]
    }
}

/// Fills `out`, rows without gaps.
pub(crate) fn normalise(
    pixels: PixelView<'_, u8>,
    scaling: ChannelScaling,
    out: &mut [RgbPixel<f32>],
) {
    let mut table = [[0.0; 256]; 3];
    for (channel, values) in table.iter_mut().enumerate() {
        for (level, value) in (0..=255u8).zip(values) {
            *value = scaling.of(channel, f32::from(level));
        }
    }
    let rows = out.chunks_exact_mut(pixels.width).zip(pixels.rows());
    for (out, row) in rows {
        for (to, &[a, b, c]) in out.iter_mut().zip(row) {
            let [first, second, third] = &table;
            *to = [
                first[usize::from(a)],
                second[usize::from(b)],
                third[usize::from(c)],
            ];
        }
    }
}

pub(crate) fn normalise_in_place(mut pixels: PixelViewMut<'_, f32>, scaling: ChannelScaling) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = scaling.pixel(*pixel);
        }
    }
}
