//! Converts rows of a batch to screen colours: reverts the final operations of the recipe. The
//! Python package's `preview()` follows the same rules.

use featherload::batch::PixelElement;
use featherload::recipe::{ColorOrder, Op};
use featherload::{Batch, DataType, MemoryLayout, Recipe, Result, bf16, f16};
use image::RgbImage;

/// The operation to revert.
pub struct ScreenLevels {
    /// Mean and deviation of each channel.
    normalized: Option<([f32; 3], [f32; 3])>,
    /// The values are not colours: each channel is scaled from its minimum to its maximum.
    stretched: bool,
    reversed: bool,
}

impl ScreenLevels {
    pub fn of(recipe: &Recipe) -> Self {
        let ops = || recipe.ops.iter();
        Self {
            normalized: ops().rev().find_map(|op| match op {
                Op::Normalize(n) => Some((n.mean.0, n.std.0)),
                _ => None,
            }),
            stretched: ops().any(|op| matches!(op, Op::ConvertColor(_) | Op::Standardize(_))),
            // Values of another colour space are shown as they are.
            reversed: ops()
                .any(|op| matches!(op, Op::Decode(decode) if decode.color == ColorOrder::Bgr))
                && !ops().any(|op| matches!(op, Op::ConvertColor(_))),
        }
    }

    /// A row in host memory, or one of its crops.
    pub fn picture(&self, batch: &Batch, row: usize, crop: Option<usize>) -> Result<RgbImage> {
        let of = (batch, row, crop);
        let values = match batch.dtype() {
            DataType::U8 => floats::<u8>(of, |level| f32::from(level) / 255.0)?,
            DataType::F16 => floats::<f16>(of, f16::to_f32)?,
            DataType::Bf16 => floats::<bf16>(of, bf16::to_f32)?,
            DataType::F32 => floats::<f32>(of, |value| value)?,
        };
        if let Some(patches) = batch.patches() {
            let size = batch.row(row)?.size();
            let pixels = patches.image(row, &values);
            return Ok(self.of_values(pixels, MemoryLayout::Nhwc, size));
        }
        let layout = batch.layout();
        let size = match crop {
            None => batch.row(row)?.size(),
            Some(crop) => match (layout, batch.crop_shape(crop)?) {
                (MemoryLayout::Nchw, [_, _, height, width])
                | (MemoryLayout::Nhwc, [_, height, width, _]) => (height, width),
            },
        };
        Ok(self.of_values(values, layout, size))
    }

    /// The picture of values that the recipe made. `height` and `width` are in pixels.
    pub fn of_values(
        &self,
        mut values: Vec<f32>,
        layout: MemoryLayout,
        (height, width): (usize, usize),
    ) -> RgbImage {
        let pixels = height * width;
        let channels = values.len().checked_div(pixels).unwrap_or(0);
        // Index of each channel of a pixel.
        let at = |pixel: usize, channel: usize| match layout {
            MemoryLayout::Nchw => channel * pixels + pixel,
            MemoryLayout::Nhwc => pixel * channels + channel,
        };
        // A fourth channel is zero: PaddleClas' channel_num.
        let shown = channels.min(3);
        for channel in 0..shown {
            let all = (0..pixels).map(|pixel| at(pixel, channel));
            if let Some((mean, std)) = self.normalized {
                for i in all.clone() {
                    values[i] = values[i] * std[channel] + mean[channel];
                }
            }
            if self.stretched {
                let (least, most) = all
                    .clone()
                    .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), i| {
                        (least.min(values[i]), most.max(values[i]))
                    });
                for i in all {
                    values[i] = (values[i] - least) / (most - least).max(1e-6);
                }
            }
        }
        let channel = |c: u32| match (shown, self.reversed) {
            (0..=1, _) => 0,
            (_, true) => 2 - c as usize,
            (_, false) => c as usize,
        };
        let level =
            |pixel, c| (values[at(pixel, channel(c))].clamp(0.0, 1.0) * 255.0).round() as u8;
        RgbImage::from_fn(width as u32, height as u32, |x, y| {
            let pixel = y as usize * width + x as usize;
            image::Rgb([0, 1, 2].map(|c| level(pixel, c)))
        })
    }
}

/// The values of a row, or of one of its crops.
fn floats<T: PixelElement>(
    (batch, row, crop): (&Batch, usize, Option<usize>),
    float: impl Fn(T) -> f32,
) -> Result<Vec<f32>> {
    let floats = |values: &[T]| values.iter().map(|v| float(*v)).collect();
    let Some(crop) = crop else {
        return Ok(floats(batch.row(row)?.as_slice::<T>()?));
    };
    let pixels = batch.crop(crop)?;
    let len: usize = pixels.shape()[1..].iter().product();
    Ok(floats(&pixels.as_slice::<T>()?[row * len..][..len]))
}
