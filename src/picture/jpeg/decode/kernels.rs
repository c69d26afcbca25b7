//! The hot loops that have forms for wide registers, and their plain form.

use super::bits::{BitPosition, UnstuffedData};
use super::blocks::{self, BlockPair, BlockTables, PairTarget};
use super::frame::QuantizationTable;
use super::{filters, transform};

/// Loops in several forms. All forms return the same bytes.
pub(super) trait DecodeKernels: Copy {
    /// Copies bytes up to the first 0xff, or fewer. Returns their number. It may write any bytes
    /// after them.
    fn copy_clean(self, from: &[u8], to: &mut [u8]) -> usize;

    /// `blocks::decode`.
    fn decode(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        codes: BlockTables<'_>,
        places: &[u8; 512],
        to: &mut [i16; 256],
    ) -> (i32, u64);

    /// `blocks::decode_dc`.
    fn decode_dc(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        blocks: &[BlockTables<'_>],
        dc: &mut [i32; 4],
    ) -> bool;

    /// The inverse transform of two blocks to 8 x 8 samples. No coefficient is at place `end` in
    /// zigzag order, or after it.
    fn transform8(
        self,
        from: &BlockPair,
        q: &QuantizationTable,
        end: u64,
        to: &mut [u8],
        at: PairTarget,
    );

    /// The inverse transform of two blocks to 4 x 4 samples.
    fn transform4(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget);

    /// The inverse transform of two blocks to 2 x 2 samples.
    fn transform2(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget);

    /// Doubles the samples across, blended. `near` begins with the sample left of the first. Writes
    /// 2 x `count` samples to `to`, and some after them. The length of `to` is a multiple of 32.
    /// Rows hold 32 samples more than are used.
    fn across(self, near: &[u8], count: usize, to: &mut [u8]);

    /// The same for chroma that is halved downwards, too: `far` is the other row.
    fn both(self, near: &[u8], far: &[u8], count: usize, to: &mut [u8]);

    /// Converts a row of YCbCr to RGB. `to` may extend past the row, and is overwritten there.
    fn ycc_to_rgb(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]);

    /// Interleaves a row of three planes as RGB, without conversion.
    fn interleave(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]);
}

/// Runs code with the kernels of a form, or with the plain kernels if the processor lacks it.
macro_rules! with_kernels {
    ($form:expr, $kernels:ident => $code:expr) => {
        'code: {
            #[cfg(target_arch = "x86_64")]
            match $form {
                SimdForm::Plain => {}
                SimdForm::Sse41 => {
                    if let Some($kernels) = wide::Sse41::detect() {
                        break 'code ($code);
                    }
                }
                SimdForm::Avx2 => {
                    if let Some($kernels) = wide::Avx2::detect() {
                        break 'code ($code);
                    }
                }
            }
            let $kernels = PlainDecodeKernels;
            $code
        }
    };
}
pub(super) use with_kernels;

/// One sample, one block, one byte at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainDecodeKernels;

impl PlainDecodeKernels {
    /// Calls `task`. The wide forms have the same method.
    pub(super) fn call<R>(self, task: impl FnOnce() -> R) -> R {
        task()
    }
}

impl DecodeKernels for PlainDecodeKernels {
    fn copy_clean(self, from: &[u8], to: &mut [u8]) -> usize {
        let bytes = from.iter().zip(to).take_while(|(from, _)| **from != 0xFF);
        bytes.map(|(from, to)| *to = *from).count()
    }

    #[inline(never)]
    fn decode(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        codes: BlockTables<'_>,
        places: &[u8; 512],
        to: &mut [i16; 256],
    ) -> (i32, u64) {
        blocks::decode(bits, data, codes, places, to)
    }

    #[inline(never)]
    fn decode_dc(
        self,
        bits: &mut BitPosition,
        data: &UnstuffedData,
        blocks: &[BlockTables<'_>],
        dc: &mut [i32; 4],
    ) -> bool {
        blocks::decode_dc(bits, data, blocks, dc)
    }

    fn transform8(
        self,
        from: &BlockPair,
        q: &QuantizationTable,
        end: u64,
        to: &mut [u8],
        at: PairTarget,
    ) {
        match end {
            0..=1 => transform::flat(from, q, to, at),
            _ => transform::pair::<8>(from, q, to, at, transform::to8),
        }
    }

    fn transform4(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) {
        transform::pair::<4>(from, q, to, at, transform::to4);
    }

    fn transform2(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) {
        transform::pair::<2>(from, q, to, at, transform::to2);
    }

    fn across(self, near: &[u8], count: usize, to: &mut [u8]) {
        filters::across(near, count, to);
    }

    fn both(self, near: &[u8], far: &[u8], count: usize, to: &mut [u8]) {
        filters::both(near, far, count, to);
    }

    fn ycc_to_rgb(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        filters::ycc_to_rgb(rows, pixels, to);
    }

    fn interleave(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) {
        filters::interleave(rows, pixels, to);
    }
}
