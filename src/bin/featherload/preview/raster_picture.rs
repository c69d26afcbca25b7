//! Shows the rasters of a row as pictures: depths by a colour ramp, flows by a colour wheel, labels by
//! their colours, images as the images.

use featherload::{
    Batch, DataType, Error, MemoryLayout, RasterRule, RasterType, Result, bf16, f16,
};
use image::{Rgb, RgbImage};

use super::levels::ScreenLevels;
use super::mask_overlay::{color_of, label};

/// A value that is not known.
const UNKNOWN: Rgb<u8> = Rgb([48, 48, 48]);

/// Colours from the least to the most value: five of viridis, which order by brightness too.
const RAMP: [[u8; 3]; 5] = [
    [68, 1, 84],
    [59, 82, 139],
    [33, 145, 140],
    [94, 201, 98],
    [253, 231, 37],
];

/// The picture of a raster of a row. `levels`: those of the images.
pub fn drawn(batch: &Batch, row: usize, name: &str, levels: &ScreenLevels) -> Result<RgbImage> {
    let raster = batch.raster(name)?;
    let bytes = raster.row(row).unwrap_or_default();
    let shape = &raster.shape()[1..];
    let dtype = match raster.dtype() {
        RasterType::Labels(dtype) => {
            let labels = bytes.chunks_exact(dtype.size());
            let colors = labels.map(|bytes| color_of(label(dtype, bytes)));
            return Ok(picture((shape[0], shape[1]), colors));
        }
        RasterType::Numbers(dtype) => dtype,
        _ => return Err(unknown_kind(name)),
    };
    let values = floats(dtype, bytes);
    match batch.raster_rule(name) {
        Some(RasterRule::Image(_)) => {
            let layout = batch.layout();
            let size = match layout {
                MemoryLayout::Nchw => (shape[1], shape[2]),
                MemoryLayout::Nhwc => (shape[0], shape[1]),
            };
            Ok(levels.of_values(values, layout, size))
        }
        Some(RasterRule::Numbers(rule)) => {
            let colors = ramp_colors(&values, rule.fill.0);
            Ok(picture((shape[1], shape[2]), colors))
        }
        Some(RasterRule::Flow(_)) => {
            let colors = wheel_colors(&values, shape[1] * shape[2]);
            Ok(picture((shape[1], shape[2]), colors))
        }
        _ => Err(unknown_kind(name)),
    }
}

fn unknown_kind(name: &str) -> Error {
    Error::option(
        "rasters",
        format!("raster '{name}' is of a kind that is not drawn"),
    )
}

fn picture((height, width): (usize, usize), colors: impl Iterator<Item = Rgb<u8>>) -> RgbImage {
    let mut picture = RgbImage::new(width as u32, height as u32);
    for (pixel, color) in picture.pixels_mut().zip(colors) {
        *pixel = color;
    }
    picture
}

fn floats(dtype: DataType, bytes: &[u8]) -> Vec<f32> {
    let pairs = || bytes.as_chunks::<2>().0.iter().copied();
    match dtype {
        DataType::U8 => bytes
            .iter()
            .map(|level| f32::from(*level) / 255.0)
            .collect(),
        DataType::F16 => pairs().map(|n| f16::from_ne_bytes(n).to_f32()).collect(),
        DataType::Bf16 => pairs().map(|n| bf16::from_ne_bytes(n).to_f32()).collect(),
        DataType::F32 => {
            let numbers = bytes.as_chunks::<4>().0.iter().copied();
            numbers.map(f32::from_ne_bytes).collect()
        }
    }
}

/// The colours of values, from the least to the most of those that are known.
fn ramp_colors(values: &[f32], fill: f32) -> impl Iterator<Item = Rgb<u8>> {
    let is_known = move |value: f32| !value.is_nan() && value != fill;
    let known = values.iter().copied().filter(|value| is_known(*value));
    let (least, most) = known.fold(
        (f32::INFINITY, f32::NEG_INFINITY),
        |(least, most), value| (least.min(value), most.max(value)),
    );
    values.iter().map(move |value| match is_known(*value) {
        true => ramp_color((value - least) / (most - least).max(f32::MIN_POSITIVE)),
        false => UNKNOWN,
    })
}

/// The colour of a share of the ramp.
fn ramp_color(share: f32) -> Rgb<u8> {
    let last = RAMP.len() - 1;
    let at = share.clamp(0.0, 1.0) * last as f32;
    let low = (at as usize).min(last - 1);
    let part = at - low as f32;
    Rgb(std::array::from_fn(|channel| {
        let [from, to] = [low, low + 1].map(|i| f32::from(RAMP[i][channel]));
        (from + (to - from) * part).round() as u8
    }))
}

/// The colours of a flow of this many pixels: the hue is its direction, and the saturation its length
/// as a share of the longest.
fn wheel_colors(values: &[f32], pixels: usize) -> impl Iterator<Item = Rgb<u8>> {
    let vectors = || values.iter().zip(values.iter().skip(pixels)).take(pixels);
    let lengths = vectors().map(|(u, v)| u.hypot(*v));
    let longest = lengths.fold(f32::MIN_POSITIVE, f32::max);
    vectors().map(move |(u, v)| match u.is_nan() || v.is_nan() {
        true => UNKNOWN,
        false => wheel_color(v.atan2(*u), u.hypot(*v) / longest),
    })
}

/// The colour of a direction: red is to the right, and the wheel turns with y down.
fn wheel_color(angle: f32, saturation: f32) -> Rgb<u8> {
    let sixths = angle.rem_euclid(std::f32::consts::TAU) / std::f32::consts::FRAC_PI_3;
    Rgb([0.0f32, 4.0, 2.0].map(|shift| {
        let hue = ((sixths + shift).rem_euclid(6.0) - 3.0).abs() - 1.0;
        let level = 1.0 - saturation + saturation * hue.clamp(0.0, 1.0);
        (level * 255.0).round() as u8
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_go_from_the_least_to_the_most_known_value() {
        let colors: Vec<_> = ramp_colors(&[0.0, 2.0, 6.0, f32::NAN, 4.0], 0.0).collect();
        assert_eq!(
            colors,
            [UNKNOWN, Rgb(RAMP[0]), Rgb(RAMP[4]), UNKNOWN, Rgb(RAMP[2])]
        );
        // One value, and none.
        let colors: Vec<_> = ramp_colors(&[5.0, 5.0], 0.0).collect();
        assert_eq!(colors, [Rgb(RAMP[0]); 2]);
        let colors: Vec<_> = ramp_colors(&[0.0], 0.0).collect();
        assert_eq!(colors, [UNKNOWN]);
    }

    #[test]
    fn wheels_have_a_hue_for_each_direction() {
        // To the right, down by 60 degrees, to the left with half of the length, none, unknown.
        let (u, v) = (
            [2.0, 1.0, -1.0, 0.0, f32::NAN],
            [0.0, 3f32.sqrt(), 0.0, 0.0, 1.0],
        );
        let colors: Vec<_> = wheel_colors(&[u, v].concat(), 5).collect();
        let [right, down, left, none] = [[255, 0, 0], [255, 255, 0], [128, 255, 255], [255; 3]];
        assert_eq!(
            colors,
            [Rgb(right), Rgb(down), Rgb(left), Rgb(none), UNKNOWN]
        );
    }
}
