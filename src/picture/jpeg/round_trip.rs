//! Encodes pixels as JPEG and decodes them again, without coded data in between: codes lose
//! nothing. The pixels equal those of `encode` and a decode of its file.

use super::decode::filters::{both, repeat, ycc_to_rgb};
use super::decode::frame::QuantizationTable;
use super::decode::transform::to8;
use super::encoder::quantizer::BlockQuantizer;
use super::encoder::samples::{McuPixels, McuSamples, SIDE, repeat_chroma, repeat_edges, samples};
use super::encoder::tables::divisors;
use super::encoder::transform::{QuantizedPair, transform};
use super::standard_tables::ZIGZAG;

/// Samples of chroma at each side of a row, beside those of the image.
const BESIDE: usize = 1;

/// Where the planes lie in the spare bytes.
struct PlaneLayout {
    /// Samples from row to row.
    luma_pitch: usize,
    chroma_pitch: usize,
    /// Bytes of each plane.
    luma: usize,
    chroma: usize,
}

impl PlaneLayout {
    fn new((width, height): (usize, usize)) -> Self {
        let (wide, high) = (width.next_multiple_of(SIDE), height.next_multiple_of(SIDE));
        let chroma_pitch = wide / 2 + 2 * BESIDE;
        Self {
            luma_pitch: wide,
            chroma_pitch,
            luma: wide * high,
            chroma: chroma_pitch * high / 2,
        }
    }

    /// Planes, and two rows of doubled chroma.
    fn bytes(&self) -> usize {
        self.luma + 2 * self.chroma + 2 * self.luma_pitch
    }
}

/// Bytes that `round_trip` needs beside an image of this width and height.
pub(crate) fn round_trip_bytes((width, height): (u32, u32)) -> u64 {
    PlaneLayout::new((width as usize, height as usize)).bytes() as u64
}

/// Replaces upright, tight pixels of this width and height. `quality` is 1 to 100. `spare` has
/// [`round_trip_bytes`].
pub(crate) fn round_trip(
    pixels: &mut [[u8; 3]],
    (width, height): (usize, usize),
    quality: u8,
    spare: &mut [u8],
) {
    if width == 0 || height == 0 {
        return;
    }
    let layout = PlaneLayout::new((width, height));
    let (luma, rest) = spare.split_at_mut(layout.luma);
    let (cb, rest) = rest.split_at_mut(layout.chroma);
    let (cr, doubled) = rest.split_at_mut(layout.chroma);
    code(
        pixels.as_flattened(),
        (width, height),
        quality,
        &layout,
        [&mut *luma, &mut *cb, &mut *cr],
    );

    // Chroma of the image, in samples. The last ones are repeated beyond it.
    let (across, down) = (width.div_ceil(2), height.div_ceil(2));
    for plane in [&mut *cb, &mut *cr] {
        for row in plane.chunks_exact_mut(layout.chroma_pitch) {
            row[0] = row[BESIDE];
            row[BESIDE + across] = row[BESIDE + across - 1];
        }
    }
    let row_of = |y: usize| y * layout.chroma_pitch..(y + 1) * layout.chroma_pitch;
    let (wide_cb, wide_cr) = doubled.split_at_mut(layout.luma_pitch);
    for (y, to) in pixels.chunks_exact_mut(width).enumerate() {
        let near = y / 2;
        let far = match y % 2 {
            0 => near.saturating_sub(1),
            _ => (near + 1).min(down - 1),
        };
        for (plane, wide) in [(&*cb, &mut *wide_cb), (&*cr, &mut *wide_cr)] {
            // libjpeg blends only rows of at least three samples.
            match across > 2 {
                true => both(&plane[row_of(near)], &plane[row_of(far)], across, wide),
                false => repeat(&plane[row_of(near)][BESIDE..][..across], 2, wide),
            }
        }
        let luma = &luma[y * layout.luma_pitch..][..layout.luma_pitch];
        ycc_to_rgb([luma, wide_cb, wide_cr], width, to.as_flattened_mut());
    }
}

/// Writes the decoded planes of an image.
fn code(
    rgb: &[u8],
    (width, height): (usize, usize),
    quality: u8,
    layout: &PlaneLayout,
    [luma, cb, cr]: [&mut [u8]; 3],
) {
    let divisors = divisors(quality);
    let quantizers = divisors.each_ref().map(BlockQuantizer::new);
    let factors: [QuantizationTable; 2] = divisors.map(|table| table.map(i16::from));
    let pitch = 3 * width;
    let mut blocks: McuSamples = [[[0; SIDE]; 8]; 3];
    let mut pair = QuantizedPair::ZERO;
    let mut edge = [0; 3 * SIDE * SIDE];
    for y in (0..height).step_by(SIDE) {
        let rows = (height - y).min(SIDE);
        for x in (0..width).step_by(SIDE) {
            let columns = (width - x).min(SIDE);
            let mut pixels = McuPixels {
                rgb,
                start: y * pitch + 3 * x,
                pitch,
            };
            let is_whole = rows == SIDE && columns == SIDE;
            if !is_whole {
                repeat_edges(pixels, (rows, columns), &mut edge);
                pixels = McuPixels {
                    rgb: &edge,
                    start: 0,
                    pitch: 3 * SIDE,
                };
            }
            samples(pixels, &mut blocks);
            if !is_whole {
                repeat_chroma(&mut blocks, rows);
            }
            for (i, of) in blocks.iter().enumerate() {
                let table = usize::from(i == 2);
                transform(of, &quantizers[table], &mut pair);
                for (which, values) in pair.values.iter().enumerate() {
                    let mut block = [[0; 8]; 8];
                    for (&value, place) in values.iter().zip(ZIGZAG) {
                        block.as_flattened_mut()[usize::from(place)] = value;
                    }
                    let decoded = to8(&block, &factors[table]);
                    let (plane, start, pitch) = match (i, which) {
                        (2, 0) => (&mut *cb, chroma_start(layout, x, y), layout.chroma_pitch),
                        (2, _) => (&mut *cr, chroma_start(layout, x, y), layout.chroma_pitch),
                        _ => {
                            let start = (y + 8 * i) * layout.luma_pitch + x + 8 * which;
                            (&mut *luma, start, layout.luma_pitch)
                        }
                    };
                    for (row, values) in decoded.iter().enumerate() {
                        plane[start + row * pitch..][..8].copy_from_slice(values);
                    }
                }
            }
        }
    }
}

/// The first sample of chroma of the MCU at pixel `(y, x)`.
fn chroma_start(layout: &PlaneLayout, x: usize, y: usize) -> usize {
    y / 2 * layout.chroma_pitch + BESIDE + x / 2
}

#[cfg(all(test, feature = "codecs"))]
mod tests {
    use super::*;
    use crate::picture::jpeg::oracle::{Pixel, reference};
    use crate::picture::jpeg::{DecodeScale, encode};

    /// The file of the encoder, decoded by libjpeg-turbo.
    #[test]
    fn pixels_are_those_of_a_file() {
        let sizes = [
            (1, 1),
            (2, 3),
            (4, 4),
            (5, 6),
            (6, 5),
            (16, 16),
            (17, 33),
            (48, 31),
            (64, 80),
        ];
        for (width, height) in sizes {
            let pixels: Vec<[u8; 3]> = (0..width * height)
                .map(|i| {
                    let (x, y) = (i % width, i / width);
                    let wave = |k: usize| ((x * k + y * 3 + i * i * 7) % 256) as u8;
                    [wave(5), (x * 4) as u8, wave(11) / 2]
                })
                .collect();
            for quality in [1, 20, 50, 75, 95, 100] {
                let size = (height as u32, width as u32);
                let mut file = vec![0; 8192 + 4 * (width + 16) * (height + 16)];
                let bytes = encode(pixels.as_flattened(), size, quality, &mut file).unwrap();
                let (_, _, want) = reference(&file[..bytes], DecodeScale::Full, Pixel::Rgb);
                let mut got = pixels.clone();
                let mut spare = vec![7; round_trip_bytes((width as u32, height as u32)) as usize];
                round_trip(&mut got, (width, height), quality, &mut spare);
                assert_eq!(got.as_flattened(), want, "{width} x {height} at {quality}");
            }
        }
    }
}
