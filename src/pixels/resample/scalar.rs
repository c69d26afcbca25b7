//! The passes in plain Rust. The other paths must equal them bit for bit. They run on CPUs without
//! a SIMD path.

use super::axes::PIXEL;
use crate::recipe::fixed_weights::FixedTable;

/// The coefficients of one output row, one for each input row.
#[derive(Debug, Clone, Copy)]
pub(super) struct DownWeights<'a> {
    pub(super) coeffs: &'a [i32],
    /// Fraction bits.
    pub(super) precision: u32,
    /// Whether a coefficient may need more than 16 bits.
    pub(super) is_wide: bool,
}

/// One row across: every output pixel is the weighted sum of its input pixels.
pub(super) fn across(table: &FixedTable, src: &[u8], dst: &mut [u8]) {
    let precision = table.precision();
    let half = half(precision);
    for (o, out) in dst.as_chunks_mut::<PIXEL>().0.iter_mut().enumerate() {
        let (start, size, coeffs) = table.row(o);
        let pixels = src[start * PIXEL..(start + size) * PIXEL]
            .as_chunks::<PIXEL>()
            .0;
        let mut sums = [half; PIXEL];
        for (pixel, &k) in pixels.iter().zip(coeffs) {
            for (sum, &v) in sums.iter_mut().zip(pixel) {
                *sum += i32::from(v) * k;
            }
        }
        *out = sums.map(|sum| clip(sum >> precision));
    }
}

/// One row down: every output byte is the weighted sum of the bytes at its column in the rows at
/// `offsets`.
pub(super) fn down(weights: DownWeights<'_>, src: &[u8], offsets: &[usize], dst: &mut [u8]) {
    let DownWeights {
        coeffs, precision, ..
    } = weights;
    assert_eq!(coeffs.len(), offsets.len());
    const BLOCK: usize = 64;
    let half = half(precision);
    for (b, out) in dst.chunks_mut(BLOCK).enumerate() {
        let mut sums = [half; BLOCK];
        for (&offset, &k) in offsets.iter().zip(coeffs) {
            let at = offset + b * BLOCK;
            for (sum, &v) in sums.iter_mut().zip(&src[at..at + out.len()]) {
                *sum += i32::from(v) * k;
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clip(sum >> precision);
        }
    }
}

fn half(precision: u32) -> i32 {
    (1 << precision) >> 1
}

fn clip(v: i32) -> u8 {
    v.clamp(0, 255) as u8
}
