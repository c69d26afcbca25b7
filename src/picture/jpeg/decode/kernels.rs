//! The hot loops that have a form for wide registers, and their plain form.

use super::bits::{BitPosition, UnstuffedData};
use super::blocks::{self, BlockPair, BlockTables, PairTarget};
use super::frame::QuantizationTable;
use super::{filters, transform};

/// What there is in several forms. All give the same bytes.
pub(super) trait DecodeKernels: Copy {
    /// Copies bytes up to the first 0xff, or as far as they are copied at once; how many. Behind
    /// them anything may be written.
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

    /// The inverse transform of two blocks to 8 x 8 samples. `end`: no coefficient stands at
    /// this place in zigzag order or behind it.
    fn transform8(
        self,
        from: &BlockPair,
        q: &QuantizationTable,
        end: u64,
        to: &mut [u8],
        at: PairTarget,
    );

    /// The same to 4 x 4 samples.
    fn transform4(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget);

    /// The same to 2 x 2 samples.
    fn transform2(self, from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget);

    /// Twice as many samples across, blended. `near` and `far` begin with the sample on the left
    /// of the first; 2 x `count` samples are written to `to`, whose length is a multiple of 32
    /// that holds them, and some behind. Rows hold 32 more than are used.
    fn across(self, near: &[u8], count: usize, to: &mut [u8]);

    /// The same for a picture whose chroma is halved downwards too: `far` is the other row.
    fn both(self, near: &[u8], far: &[u8], count: usize, to: &mut [u8]);

    /// A row of YCbCr to RGB. `to` may go on behind the row, and is written there.
    fn ycc_to_rgb(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]);

    /// A row of three planes to RGB as they are.
    fn interleave(self, rows: [&[u8]; 3], pixels: usize, to: &mut [u8]);
}

/// Runs code with the kernels of a form: the plain ones where the processor has not that form.
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
    /// As the wide forms have it.
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
