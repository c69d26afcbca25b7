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

/// The scaling by the mean and deviation of all values of an image. `grey`: all channels are equal,
/// and one counts. The sums are exact.
pub(crate) fn scaling_of_levels(pixels: PixelView<'_, u8>, grey: bool) -> ChannelScaling {
    let channels = counted(grey);
    let (mut sum, mut squares) = (0_u64, 0_u128);
    for row in pixels.rows() {
        let values = row.iter().flat_map(|pixel| &pixel[..channels]);
        let (mut of_row, mut squares_of_row) = (0_u64, 0_u64);
        for &v in values {
            of_row += u64::from(v);
            squares_of_row += u64::from(v).pow(2);
        }
        sum += of_row;
        squares += u128::from(squares_of_row);
    }
    let count = pixels.width as u128 * pixels.height as u128 * channels as u128;
    // Times the count, so that no digit is lost.
    let spread = (squares * count - u128::from(sum).pow(2)) as f64 / count as f64;
    standardised(sum as f64 / count as f64, spread, count as f64)
}

/// The same of floats: first the mean, then the distances from it.
pub(crate) fn scaling_of_floats(pixels: &PixelView<'_, f32>, grey: bool) -> ChannelScaling {
    let channels = counted(grey);
    let sum_of = |of: &dyn Fn(f64) -> f64| -> f64 {
        let rows = pixels.rows();
        rows.flatten()
            .flat_map(|pixel| &pixel[..channels])
            .map(|&v| of(f64::from(v)))
            .sum()
    };
    let count = (pixels.width * pixels.height * channels) as f64;
    let mean = sum_of(&|v| v) / count;
    standardised(mean, sum_of(&|v| (v - mean).powi(2)), count)
}

fn counted(grey: bool) -> usize {
    if grey { 1 } else { 3 }
}

/// `spread`: the sum of the squared distances from the mean.
fn standardised(mean: f64, spread: f64, count: f64) -> ChannelScaling {
    let deviation = (spread / (count - 1.0).max(1.0)).sqrt();
    ChannelScaling {
        unit: 1.0,
        mean: [mean as f32; 3],
        std: [deviation.max(1.0 / count.sqrt()) as f32; 3],
    }
}

pub(crate) fn normalise_in_place(mut pixels: PixelViewMut<'_, f32>, scaling: ChannelScaling) {
    for row in pixels.rows_mut() {
        for pixel in row {
            *pixel = scaling.pixel(*pixel);
        }
    }
}
