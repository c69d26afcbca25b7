//! Draws a mask over its image: each label in a colour of its own, half transparent.

use featherload::{Batch, MaskType, Result};
use image::{Rgb, RgbImage};

/// The label without colour: mostly the background.
const BACKGROUND: i64 = 0;

/// The picture of a row with its mask, if the images have masks.
pub fn drawn(mut picture: RgbImage, batch: &Batch, row: usize) -> Result<RgbImage> {
    let Some(mask) = batch.row(row)?.mask()? else {
        return Ok(picture);
    };
    let element = batch.masks()?.dtype();
    let labels = mask
        .chunks_exact(element.size())
        .map(|bytes| label(element, bytes));
    for (pixel, label) in picture.pixels_mut().zip(labels) {
        if label != BACKGROUND {
            let colour = color_of(label);
            for (level, other) in pixel.0.iter_mut().zip(colour.0) {
                *level = level.midpoint(other);
            }
        }
    }
    Ok(picture)
}

/// The number of a label in a mask.
pub fn label(element: MaskType, bytes: &[u8]) -> i64 {
    match (element, bytes) {
        (MaskType::Uint8, [level]) => i64::from(*level),
        (MaskType::Int32, &[a, b, c, d]) => i64::from(i32::from_ne_bytes([a, b, c, d])),
        (MaskType::Int64, &[a, b, c, d, e, f, g, h]) => {
            i64::from_ne_bytes([a, b, c, d, e, f, g, h])
        }
        _ => BACKGROUND,
    }
}

/// The colour of a label: that of Pascal VOC, whose bits are spread over the channels.
pub fn color_of(label: i64) -> Rgb<u8> {
    let bits = label as u64;
    let channel = |first: u32| {
        (0..8).fold(0u8, |level, n| {
            let bit = (bits >> (3 * n + first)) & 1;
            level | ((bit as u8) << (7 - n))
        })
    };
    Rgb([channel(0), channel(1), channel(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_pascal_voc() {
        let first = [
            (0, [0, 0, 0]),
            (1, [128, 0, 0]),
            (2, [0, 128, 0]),
            (3, [128, 128, 0]),
            (15, [192, 128, 128]),
            (20, [0, 64, 128]),
            (255, [224, 224, 192]),
        ];
        for (label, colour) in first {
            assert_eq!(color_of(label), Rgb(colour), "{label}");
        }
    }
}
