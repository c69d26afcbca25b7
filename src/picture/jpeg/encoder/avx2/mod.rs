//! The hot loops in AVX2, 16 pixels or two blocks at a time. The whole scan is compiled for
//! processors with BMI, too.
//!
//! This is the only `unsafe` of the encoder: calls of functions for detected CPU features, here,
//! and loads and stores of whole arrays, in `lanes`.
//!
//! - `lanes`: loads and stores; `words`: factors for pairs of words.
//! - `samples`: colour and downsampling; `transform`: the forward transform and quantization;
//!   `zigzag`: the order of coefficients.

mod lanes;
mod samples;
mod transform;
mod words;
mod zigzag;

use super::bits::{BitWriter, ByteOutput};
use super::blocks::{self, ZigzagBlock};
use super::kernels::EncodeKernels;
use super::quantizer::BlockQuantizer;
use super::samples::{McuPixels, McuSamples, SamplePair};
use super::scan::ScanEncoder;
use super::transform::QuantizedPair;

/// Proof that the processor has the features that this folder is compiled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2Token(());

impl Avx2Token {
    pub(super) fn detect() -> Option<Self> {
        let has = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("movbe");
        has.then_some(Self(()))
    }

    /// `ScanEncoder::run`, compiled for these features.
    pub(super) fn run(self, scan: ScanEncoder<'_>, out: &mut ByteOutput<'_>) {
        // SAFETY: only `detect` makes `self`, after it found each of these features.
        unsafe { run(self, scan, out) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
fn run(kernels: Avx2Token, scan: ScanEncoder<'_>, out: &mut ByteOutput<'_>) {
    scan.run(kernels, out);
}

// Not inlined into the scan, so that its few values stay in registers.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
#[inline(never)]
fn encode(block: ZigzagBlock<'_>, bits: BitWriter, out: &mut ByteOutput<'_>) -> BitWriter {
    blocks::encode(block, bits, out)
}

impl EncodeKernels for Avx2Token {
    #[inline(always)]
    fn samples(self, pixels: McuPixels<'_>, to: &mut McuSamples) {
        // SAFETY: only `detect` makes `self`, after it found AVX2.
        unsafe { samples::samples(pixels, to) }
    }

    #[inline(always)]
    fn transform(self, from: &SamplePair, q: &BlockQuantizer, to: &mut QuantizedPair) {
        // SAFETY: only `detect` makes `self`, after it found AVX2.
        unsafe { transform::transform(from, q, to) }
    }

    #[inline(always)]
    fn encode(
        self,
        block: ZigzagBlock<'_>,
        bits: BitWriter,
        out: &mut ByteOutput<'_>,
    ) -> BitWriter {
        // SAFETY: only `detect` makes `self`, after it found each of these features.
        unsafe { encode(block, bits, out) }
    }
}
