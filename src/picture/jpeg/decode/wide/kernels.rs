//! The kernels, compiled for the features of each form.

use super::super::bits::{BitPosition, UnstuffedData};
use super::super::blocks::{self, BlockPair, BlockTables, PairTarget};
use super::super::frame::QuantizationTable;
use super::super::kernels::DecodeKernels;
use super::forms::{Avx2, Sse41, forms};
use super::{filters, reduced, transform};

/// The methods of `DecodeKernels` for a form. Each calls a function of the same arguments, compiled
/// for these features.
macro_rules! kernels {
    ($form:ident, $features:literal, $($(#[$inline:meta])* $name:ident(
        $($arg:ident: $type:ty),*
    ) $(-> $result:ty)? = $function:expr;)*) => {
        impl DecodeKernels for $form {
            $($(#[$inline])*
            fn $name(self, $($arg: $type),*) $(-> $result)? {
                #[target_feature(enable = $features)]
                fn wide(form: $form, $($arg: $type),*) $(-> $result)? {
                    $function(form, $($arg),*)
                }
                // SAFETY: only `detect` makes `self`, after it found each of these features.
                unsafe { wide(self, $($arg),*) }
            })*
        }
    };
}

macro_rules! kernels_of {
    ($(#[$doc:meta])* $form:ident, $features:literal, [$($feature:tt),*]) => {
        kernels! { $form, $features,
            #[inline(always)]
            decode(
                bits: &mut BitPosition, data: &UnstuffedData, codes: BlockTables<'_>, places: &[u8; 512],
                to: &mut [i16; 256]
            ) -> (i32, u64) = |_, bits, data, codes, places, to| {
                blocks::decode(bits, data, codes, places, to)
            };
            // Not inlined into its caller, so that its few values stay in registers.
            #[inline(never)]
            decode_dc(
                bits: &mut BitPosition, data: &UnstuffedData, blocks: &[BlockTables<'_>], dc: &mut [i32; 4]
            ) -> bool = |_, bits, data, blocks, dc| blocks::decode_dc(bits, data, blocks, dc);
            #[inline(always)]
            copy_clean(from: &[u8], to: &mut [u8]) -> usize = filters::copy_clean;
            #[inline(always)]
            transform8(
                from: &BlockPair, q: &QuantizationTable, end: u64, to: &mut [u8], at: PairTarget
            ) = transform::to8;
            #[inline(always)]
            transform4(from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) = reduced::to4;
            #[inline(always)]
            transform2(from: &BlockPair, q: &QuantizationTable, to: &mut [u8], at: PairTarget) = reduced::to2;
            #[inline(always)]
            across(near: &[u8], count: usize, to: &mut [u8]) = filters::across;
            #[inline(always)]
            both(near: &[u8], far: &[u8], count: usize, to: &mut [u8]) = filters::both;
            #[inline(always)]
            ycc_to_rgb(rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) = filters::ycc_to_rgb;
            #[inline(always)]
            interleave(rows: [&[u8]; 3], pixels: usize, to: &mut [u8]) = filters::interleave;
        }
    };
}

forms! { kernels_of }
