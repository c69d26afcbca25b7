//! The hot loops that have a form for wide registers, and their plain form.

use super::bits::{BitWriter, ByteOutput};
use super::blocks::{self, ZigzagBlock};
use super::quantizer::BlockQuantizer;
use super::samples::{self, McuPixels, McuSamples, SamplePair};
use super::transform::{self, QuantizedPair};

/// What there is in several forms. All give the same values.
pub(super) trait EncodeKernels: Copy {
    /// The samples of 16 x 16 pixels.
    fn samples(self, pixels: McuPixels<'_>, to: &mut McuSamples);

    /// The quantized coefficients of two blocks.
    fn transform(self, from: &SamplePair, q: &BlockQuantizer, to: &mut QuantizedPair);

    /// Writes the codes of a block. The bits that are left.
    fn encode(self, block: ZigzagBlock<'_>, bits: BitWriter, out: &mut ByteOutput<'_>)
    -> BitWriter;
}

/// One pixel, one block at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainEncodeKernels;

impl EncodeKernels for PlainEncodeKernels {
    fn samples(self, pixels: McuPixels<'_>, to: &mut McuSamples) {
        samples::samples(pixels, to);
    }

    fn transform(self, from: &SamplePair, q: &BlockQuantizer, to: &mut QuantizedPair) {
        transform::transform(from, q, to);
    }

    #[inline(never)]
    fn encode(
        self,
        block: ZigzagBlock<'_>,
        bits: BitWriter,
        out: &mut ByteOutput<'_>,
    ) -> BitWriter {
        blocks::encode(block, bits, out)
    }
}
