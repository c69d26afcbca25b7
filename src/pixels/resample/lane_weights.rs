//! The coefficients across, in the order in which the SIMD paths load them, and the bounds that
//! keep their loads inside the row.
//!
//! Output pixels form groups of eight. A pair of coefficients (two `i16`) is repeated four times:
//! for R, G, B and an unused lane. A wide coefficient is two of 16 bits, `256 * high + low`. Pixel
//! `q` of a group is stored beside pixel `q + 4`, so that the bytes are in output order after
//! packing:
//!
//! ```text
//! group g, q = 0..4, pair j:   | k0 k1 of pixel q, x 4 | k0 k1 of pixel q+4, x 4 |   32 bytes
//! wide: all pairs of high parts of q, then all pairs of low parts
//! ```

use super::axes::PIXEL;
use crate::recipe::fixed_weights::FixedTable;
use crate::recipe::weights::clear_with_capacity;

/// Output pixels in a group.
pub(super) const GROUP: usize = 8;
/// `i16` in one step, which is a pair of coefficients for two pixels: two registers of 128 bits.
pub(super) const STEP: usize = 16;

/// Bits of the low part of a wide coefficient.
pub(super) const LOW_BITS: i32 = 8;

/// The part of a wide coefficient that counts 256 times. It fits, since coefficients have at most
/// 24 bits.
pub(super) fn high_part(k: i32) -> i16 {
    (k >> LOW_BITS) as i16
}

/// The rest, from 0 to 255.
pub(super) fn low_part(k: i32) -> i16 {
    (k & 0xFF) as i16
}

#[derive(Debug, Default)]
pub(super) struct LaneWeights {
    precision: u32,
    /// 16-bit parts of a coefficient: 1, or 2 if it is wide.
    parts: usize,
    out: usize,
    pairs: usize,
    reach: usize,
    /// First byte that each output pixel reads, `GROUP` for each group.
    starts: Vec<u32>,
    coeffs: Vec<i16>,
}

impl LaneWeights {
    pub(super) fn fill(&mut self, table: &FixedTable) {
        let out = table.starts().len();
        let padded = out.next_multiple_of(GROUP);
        self.precision = table.precision();
        self.parts = if table.is_wide() { 2 } else { 1 };
        self.out = out;
        self.pairs = table.taps() / 2;
        clear_with_capacity(&mut self.starts, padded);
        self.starts
            .extend(table.starts().iter().map(|&s| s * PIXEL as u32));
        self.starts.resize(padded, 0);
        // Each load of 16 bytes begins at most 2 pixels before the last tap.
        let last = self.starts.iter().copied().max().unwrap_or(0) as usize;
        self.reach = last + (self.pairs * 2 - 2) * PIXEL + 16;

        let per_q = self.parts * self.pairs * STEP;
        clear_with_capacity(&mut self.coeffs, padded / 2 * per_q);
        self.coeffs.resize(padded / 2 * per_q, 0);
        for (o, row) in table.coeffs().chunks_exact(table.taps()).enumerate() {
            let (group, q) = (o / GROUP, o % GROUP);
            let at = (group * (GROUP / 2) + q % 4) * per_q + q / 4 * (STEP / 2);
            for part in 0..self.parts {
                let steps = self.coeffs[at + part * self.pairs * STEP..].chunks_mut(STEP);
                for (pair, step) in row.as_chunks::<2>().0.iter().zip(steps) {
                    let pair = match (self.parts, part) {
                        (1, _) => pair.map(|k| k as i16),
                        (_, 0) => pair.map(high_part),
                        _ => pair.map(low_part),
                    };
                    step[..STEP / 2].as_chunks_mut::<2>().0.fill(pair);
                }
            }
        }
    }

    /// Bytes of this table.
    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>() + self.coeffs.capacity() * size_of::<i16>()
    }

    pub(super) fn precision(&self) -> u32 {
        self.precision
    }

    /// Number of output pixels.
    pub(super) fn out(&self) -> usize {
        self.out
    }

    /// Whether coefficients have two parts.
    pub(super) fn is_wide(&self) -> bool {
        self.parts == 2
    }

    /// Pairs of coefficients per output pixel.
    pub(super) fn pairs(&self) -> usize {
        self.pairs
    }

    /// No load of 16 bytes at `start + 6 * pair` ends after this byte.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() / GROUP
    }

    /// Group `g`: eight first bytes, and 4 x parts x `pairs` x `STEP` coefficients.
    #[inline]
    pub(super) fn group(&self, g: usize) -> (&[u32; GROUP], &[i16]) {
        let room = GROUP / 2 * self.parts * self.pairs * STEP;
        (
            &self.starts.as_chunks::<GROUP>().0[g],
            &self.coeffs[g * room..][..room],
        )
    }
}
