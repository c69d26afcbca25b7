//! Levels to planes: one for each channel. Exact, and without tables.

use crate::pixels::pixel_view::{PixelView, RgbPixel};

const CHANNELS: usize = size_of::<RgbPixel<u8>>();

/// Pixels that are divided together.
const GROUP: usize = 16;

/// The levels of one channel of a group.
type GroupLevels = [u8; GROUP];

/// Writes each channel to its plane. `flip_x`, `flip_y`: whether the image is mirrored across, and
/// down.
pub(super) fn write_planes(
    pixels: PixelView<'_, u8>,
    (flip_x, flip_y): (bool, bool),
    planes: [&mut [u8]; CHANNELS],
) {
    let PixelView { width, height, .. } = pixels;
    let [first, second, third] = planes.map(|plane| plane.chunks_exact_mut(width));
    for (y, ((first, second), third)) in first.zip(second).zip(third).enumerate() {
        let row = pixels.row(if flip_y { height - 1 - y } else { y });
        match flip_x {
            false => write_row(row, [first, second, third]),
            true => write_mirrored(row, [first, second, third]),
        }
    }
}

fn write_row(row: &[RgbPixel<u8>], [first, second, third]: [&mut [u8]; CHANNELS]) {
    let (groups, rest) = row.as_chunks::<GROUP>();
    let (first, last_first) = first.as_chunks_mut::<GROUP>();
    let (second, last_second) = second.as_chunks_mut::<GROUP>();
    let (third, last_third) = third.as_chunks_mut::<GROUP>();
    let to = first.iter_mut().zip(second).zip(third);
    for (group, ((first, second), third)) in groups.iter().zip(to) {
        [*first, *second, *third] = divide(group);
    }
    let to = last_first.iter_mut().zip(last_second).zip(last_third);
    for (pixel, ((first, second), third)) in rest.iter().zip(to) {
        [*first, *second, *third] = *pixel;
    }
}

fn write_mirrored(row: &[RgbPixel<u8>], [first, second, third]: [&mut [u8]; CHANNELS]) {
    let (groups, rest) = row.as_chunks::<GROUP>();
    let (last_first, first) = first.as_rchunks_mut::<GROUP>();
    let (last_second, second) = second.as_rchunks_mut::<GROUP>();
    let (last_third, third) = third.as_rchunks_mut::<GROUP>();
    let to = first.iter_mut().zip(second).zip(third).rev();
    for (group, ((first, second), third)) in groups.iter().zip(to) {
        let [r, g, b] = divide(group);
        (*first, *second, *third) = (reversed(r), reversed(g), reversed(b));
    }
    let to = last_first.iter_mut().zip(last_second).zip(last_third).rev();
    for (pixel, ((first, second), third)) in rest.iter().zip(to) {
        [*first, *second, *third] = *pixel;
    }
}

/// The same levels from the last to the first.
#[inline(always)]
fn reversed(levels: GroupLevels) -> GroupLevels {
    u128::from_le_bytes(levels).to_be_bytes()
}

/// The channels of a group. Inlined, which a function with a target feature of its own is not.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn divide(group: &[RgbPixel<u8>; GROUP]) -> [GroupLevels; CHANNELS] {
    use std::arch::x86_64::*;
    /// Each takes byte `i` of 48 to place `2 * i`, modulo 47. So byte `3 * p + c` comes to place
    /// `p + 16 * c`.
    const ROUNDS: usize = 4;
    let words = group.as_flattened().as_chunks().0;
    // SAFETY: this code is compiled only for targets that have SSE2, as every x86-64 has.
    unsafe {
        let load = |at: usize| {
            let (low, high) = (words[at], words[at + 1]);
            _mm_set_epi64x(i64::from_le_bytes(high), i64::from_le_bytes(low))
        };
        let (mut a, mut b, mut c) = (load(0), load(2), load(4));
        for _ in 0..ROUNDS {
            let (upper_a, upper_b, upper_c) = (
                _mm_unpackhi_epi64(a, a),
                _mm_unpackhi_epi64(b, b),
                _mm_unpackhi_epi64(c, c),
            );
            (a, b, c) = (
                _mm_unpacklo_epi8(a, upper_b),
                _mm_unpacklo_epi8(upper_a, c),
                _mm_unpacklo_epi8(b, upper_c),
            );
        }
        let levels = |v| {
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v));
            let low = _mm_cvtsi128_si64(v);
            (u128::from(high as u64) << 64 | u128::from(low as u64)).to_le_bytes()
        };
        [levels(a), levels(b), levels(c)]
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
fn divide(group: &[RgbPixel<u8>; GROUP]) -> [GroupLevels; CHANNELS] {
    std::array::from_fn(|c| group.map(|pixel| pixel[c]))
}
