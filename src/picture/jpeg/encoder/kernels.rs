//! The hot loops that have several forms, and their plain form.

use super::bits::{BitWriter, ByteOutput};
use super::blocks::{self, ZigzagBlock};
use super::quantizer::BlockQuantizer;
use super::samples::{self, McuPixels, McuSamples, SamplePair};
use super::transform::{self, QuantizedPair};

/// Loops in several forms. All forms return the same values.
pub(super) trait EncodeKernels: Copy {
    /// Converts 16 x 16 pixels to samples.
    fn samples(self, pixels: McuPixels<'_>, to: &mut McuSamples);

    /// Transforms and quantizes two blocks.
    fn transform(self, from: &SamplePair, q: &BlockQuantizer, to: &mut QuantizedPair);

    /// Writes the codes of a block. Returns the bits that do not fill a word.
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
