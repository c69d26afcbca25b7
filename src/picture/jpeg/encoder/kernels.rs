//! The hot loops that have a form for wide registers, and their plain form.

use super::bits::{Bits, Output};
use super::blocks::{self, Block};
use super::quantizer::Quantizer;
use super::samples::{self, Pair, Pixels, Samples};
use super::transform::{self, Coefficients};

/// What there is in several forms. All give the same values.
pub(super) trait Kernels: Copy {
    /// The samples of 16 x 16 pixels.
    fn samples(self, pixels: Pixels<'_>, to: &mut Samples);

    /// The quantized coefficients of two blocks.
    fn transform(self, from: &Pair, q: &Quantizer, to: &mut Coefficients);

    /// Writes the codes of a block. The bits that are left.
    fn encode(self, block: Block<'_>, bits: Bits, out: &mut Output<'_>) -> Bits;
}

/// One pixel, one block at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Kernels for Plain {
    fn samples(self, pixels: Pixels<'_>, to: &mut Samples) {
        samples::samples(pixels, to);
    }

    fn transform(self, from: &Pair, q: &Quantizer, to: &mut Coefficients) {
        transform::transform(from, q, to);
    }

    #[inline(never)]
    fn encode(self, block: Block<'_>, bits: Bits, out: &mut Output<'_>) -> Bits {
        blocks::encode(block, bits, out)
    }
}
