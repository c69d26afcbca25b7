//! The hot loops in AVX2, two blocks or 32 bytes at a time, and the whole scan compiled for
//! processors with BMI.
//!
//! The only `unsafe` of this decoder: calls of functions for features that were found, here,
//! and loads and stores of whole arrays, in `lanes`.
//!
//! - `lanes`: loads and stores; `words`: arithmetic of rows of words.
//! - `transform`, `reduced`: inverse transforms; `filters`: upsampling and colour.

mod filters;
mod lanes;
mod reduced;
mod transform;
mod words;

use super::bits::{Bits, Data};
use super::blocks::{self, Codes, Pair, Target};
use super::frame::Quantization;
use super::job::Refusal;
use super::kernels::Kernels;
use super::rows::Rows;
use super::scan::Scan;
use super::stream::Stream;

/// Proof that the processor has what this folder is compiled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let has = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("movbe");
        has.then_some(Self(()))
    }

    /// `Scan::run`, compiled for these features.
    pub(super) fn run(
        self,
        scan: Scan<'_>,
        stream: &mut Stream<'_>,
        bits: Bits,
        rows: &mut Rows<'_>,
        out: &mut [u8],
    ) -> Result<(), Refusal> {
        // SAFETY: `self` is made by `detect` alone, which found each of these features.
        unsafe { run(self, scan, stream, bits, rows, out) }
    }

    /// Calls `task`, compiled for these features as far as it is inlined.
    pub(super) fn call<R>(self, task: impl FnOnce() -> R) -> R {
        // SAFETY: `self` is made by `detect` alone, which found each of these features.
        unsafe { call(task) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
fn call<R>(task: impl FnOnce() -> R) -> R {
    task()
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
fn run(
    kernels: Avx2,
    scan: Scan<'_>,
    stream: &mut Stream<'_>,
    bits: Bits,
    rows: &mut Rows<'_>,
    out: &mut [u8],
) -> Result<(), Refusal> {
    scan.run(kernels, stream, bits, rows, out)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
fn decode(
    bits: &mut Bits,
    data: &Data,
    codes: Codes<'_>,
    places: &[u8; 512],
    to: &mut [i16; 256],
) -> (i32, u64) {
    blocks::decode(bits, data, codes, places, to)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe")]
fn decode_dc(bits: &mut Bits, data: &Data, blocks: &[Codes<'_>], dc: &mut [i32; 4]) -> bool {
    blocks::decode_dc(bits, data, blocks, dc)
}

impl Kernels for Avx2 {
    #[inline(always)]
    fn decode(
        self,
        bits: &mut Bits,
        data: &Data,
        codes: Codes<'_>,
        places: &[u8; 512],
        to: &mut [i16; 256],
    ) -> (i32, u64) {
        // SAFETY: `self` is made by `detect` alone, which found each of these features.
        unsafe { decode(bits, data, codes, places, to) }
    }

    // Not merged with what calls it, so that its few values stay in registers.
    #[inline(never)]
    fn decode_dc(
        self,
        bits: &mut Bits,
        data: &Data,
        blocks: &[Codes<'_>],
        dc: &mut [i32; 4],
    ) -> bool {
        // SAFETY: `self` is made by `detect` alone, which found each of these features.
        unsafe { decode_dc(bits, data, blocks, dc) }
    }

    #[inline(always)]
    fn copy_clean(self, from: &[u8], to: &mut [u8]) -> usize {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { filters::copy_clean(from, to) }
    }

    #[inline(always)]
    fn transform8(self, from: &Pair, q: &Quantization, end: u64, to: &mut [u8], at: Target) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { transform::to8(from, q, end, to, at) }
    }

    #[inline(always)]
    fn transform4(self, from: &Pair, q: &Quantization, to: &mut [u8], at: Target) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { reduced::to4(from, q, to, at) }
    }

    #[inline(always)]
    fn transform2(self, from: &Pair, q: &Quantization, to: &mut [u8], at: Target) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { reduced::to2(from, q, to, at) }
    }

    #[inline(always)]
    fn across(self, near: &[u8], count: usize, to: &mut [u8]) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { filters::across(near, count, to) }
    }

    #[inline(always)]
    fn both(self, near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { filters::both(near, far, count, to) }
    }

    #[inline(always)]
    fn ycc_to_rgb(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { filters::ycc_to_rgb(rows, pixels, to) }
    }

    #[inline(always)]
    fn interleave(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        // SAFETY: `self` is made by `detect` alone, which found AVX2.
        unsafe { filters::interleave(rows, pixels, to) }
    }
}
