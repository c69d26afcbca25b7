//! Operations on registers of one or two lanes of 128 bits.
//!
//! They are methods of a form's token, so only code that has the token can call them. They are fast
//! only when they are inlined into a function compiled for the form's features.

use std::arch::x86_64::*;

use super::super::blocks::BlockPair;
use super::forms::{Avx2, Sse41};

/// Defines [`Lanes`] and both of its forms. Each line has the name, SSE4.1's intrinsic, and AVX2's.
macro_rules! lanes {
    (
        of_two { $($two:ident: $two_128:ident, $two_256:ident;)* }
        shifted { $($shift:ident: $shift_128:ident, $shift_256:ident;)* }
        filled_with { $($fill:ident($number:ty): $fill_128:ident, $fill_256:ident;)* }
    ) => {
        /// Registers of a form. Methods are named after the intrinsics, which act on each lane.
        pub(super) trait Lanes: Copy {
            type V: Copy;

            /// Blocks in a register: one in each lane.
            const BLOCKS: usize;

            $(fn $two(self, a: Self::V, b: Self::V) -> Self::V;)*
            $(fn $shift<const BITS: i32>(self, a: Self::V) -> Self::V;)*
            $(fn $fill(self, number: $number) -> Self::V;)*

            /// The same row of the blocks from `block` on.
            fn row(self, from: &BlockPair, row: usize, block: usize) -> Self::V;
            /// The same eight words in each lane.
            fn words(self, words: &[i16; 8]) -> Self::V;
            /// A whole register of bytes; `None` if `from` is too short.
            fn bytes(self, from: &[u8]) -> Option<Self::V>;
            /// Half a register of bytes as words; `None` if `from` is too short.
            fn widened(self, from: &[u8]) -> Option<Self::V>;
            /// Writes a whole register to the start of `to`. False if it is too short.
            fn store(self, to: &mut [u8], v: Self::V) -> bool;
            /// Writes each lane to the chunk whose index is in `at`.
            fn store_lanes(self, to: &mut [[u8; 16]], at: [usize; 2], v: Self::V);
            /// A register of the row whose first words are `v`, then `next`. It begins `BYTES`
            /// bytes after the first word.
            fn slide<const BYTES: i32>(self, v: Self::V, next: Self::V) -> Self::V;
            /// Shuffles the bytes of each lane by `mask`; 0 for a mask byte with the high bit set.
            fn shuffle(self, v: Self::V, mask: &[u8; 16]) -> Self::V;
            /// The eight bytes at index `I` as a number; 0 if the register has fewer.
            fn quad<const I: usize>(self, v: Self::V) -> u64;
            /// The highest bit of each byte.
            fn signs(self, v: Self::V) -> u32;
        }

        impl Lanes for Sse41 {
            type V = __m128i;
            const BLOCKS: usize = 1;

            $(#[inline(always)]
            fn $two(self, a: __m128i, b: __m128i) -> __m128i {
                // SAFETY: `self` is the proof of SSE4.1.
                unsafe { $two_128(a, b) }
            })*
            $(#[inline(always)]
            fn $shift<const BITS: i32>(self, a: __m128i) -> __m128i {
                // SAFETY: `self` is the proof of SSE4.1.
                unsafe { $shift_128::<BITS>(a) }
            })*
            $(#[inline(always)]
            fn $fill(self, number: $number) -> __m128i {
                // SAFETY: `self` is the proof of SSE4.1.
                unsafe { $fill_128(number) }
            })*

            #[inline(always)]
            fn row(self, from: &BlockPair, row: usize, block: usize) -> __m128i {
                let (rows, _) = from.0.as_chunks::<8>();
                // SAFETY: reads the 16 bytes of a chunk; no alignment is needed.
                unsafe { _mm_loadu_si128(rows[2 * row + block].as_ptr().cast()) }
            }

            #[inline(always)]
            fn words(self, words: &[i16; 8]) -> __m128i {
                // SAFETY: reads the 16 bytes of `words`; no alignment is needed.
                unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
            }

            #[inline(always)]
            fn bytes(self, from: &[u8]) -> Option<__m128i> {
                let from = from.first_chunk::<16>()?;
                // SAFETY: reads the 16 bytes of `from`; no alignment is needed.
                Some(unsafe { _mm_loadu_si128(from.as_ptr().cast()) })
            }

            #[inline(always)]
            fn widened(self, from: &[u8]) -> Option<__m128i> {
                let from = from.first_chunk::<8>()?;
                // SAFETY: reads the 8 bytes of `from`; `self` is the proof of SSE4.1.
                Some(unsafe { _mm_cvtepu8_epi16(_mm_loadl_epi64(from.as_ptr().cast())) })
            }

            #[inline(always)]
            fn store(self, to: &mut [u8], v: __m128i) -> bool {
                let Some(to) = to.first_chunk_mut::<16>() else {
                    return false;
                };
                // SAFETY: writes the 16 bytes of `to`; no alignment is needed.
                unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), v) };
                true
            }

            #[inline(always)]
            fn store_lanes(self, to: &mut [[u8; 16]], [at, _]: [usize; 2], v: __m128i) {
                self.store(&mut to[at], v);
            }

            #[inline(always)]
            fn slide<const BYTES: i32>(self, v: __m128i, next: __m128i) -> __m128i {
                // SAFETY: `self` is the proof of SSE4.1, which includes SSSE3.
                unsafe { _mm_alignr_epi8::<BYTES>(next, v) }
            }

            #[inline(always)]
            fn shuffle(self, v: __m128i, mask: &[u8; 16]) -> __m128i {
                // SAFETY: reads the 16 bytes of `mask`; `self` is the proof of SSE4.1, which
                // includes SSSE3.
                unsafe { _mm_shuffle_epi8(v, _mm_loadu_si128(mask.as_ptr().cast())) }
            }

            #[inline(always)]
            fn quad<const I: usize>(self, v: __m128i) -> u64 {
                // SAFETY: `self` is the proof of SSE4.1.
                unsafe {
                    match I {
                        0 => _mm_cvtsi128_si64(v) as u64,
                        1 => _mm_extract_epi64::<1>(v) as u64,
                        _ => 0,
                    }
                }
            }

            #[inline(always)]
            fn signs(self, v: __m128i) -> u32 {
                // SAFETY: `self` is the proof of SSE4.1.
                unsafe { _mm_movemask_epi8(v) as u32 }
            }
        }

        impl Lanes for Avx2 {
            type V = __m256i;
            const BLOCKS: usize = 2;

            $(#[inline(always)]
            fn $two(self, a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: `self` is the proof of AVX2.
                unsafe { $two_256(a, b) }
            })*
            $(#[inline(always)]
            fn $shift<const BITS: i32>(self, a: __m256i) -> __m256i {
                // SAFETY: `self` is the proof of AVX2.
                unsafe { $shift_256::<BITS>(a) }
            })*
            $(#[inline(always)]
            fn $fill(self, number: $number) -> __m256i {
                // SAFETY: `self` is the proof of AVX2.
                unsafe { $fill_256(number) }
            })*

            #[inline(always)]
            fn row(self, from: &BlockPair, row: usize, _block: usize) -> __m256i {
                let (rows, _) = from.0.as_chunks::<16>();
                // SAFETY: reads the 32 bytes of a chunk, unaligned; `self` is the proof of AVX2.
                unsafe { _mm256_loadu_si256(rows[row].as_ptr().cast()) }
            }

            #[inline(always)]
            fn words(self, words: &[i16; 8]) -> __m256i {
                // SAFETY: reads the 16 bytes of `words`; `self` is the proof of AVX2.
                unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(words.as_ptr().cast())) }
            }

            #[inline(always)]
            fn bytes(self, from: &[u8]) -> Option<__m256i> {
                let from = from.first_chunk::<32>()?;
                // SAFETY: reads the 32 bytes of `from`, unaligned; `self` is the proof of AVX2.
                Some(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
            }

            #[inline(always)]
            fn widened(self, from: &[u8]) -> Option<__m256i> {
                let from = from.first_chunk::<16>()?;
                // SAFETY: reads the 16 bytes of `from`; `self` is the proof of AVX2.
                Some(unsafe { _mm256_cvtepu8_epi16(_mm_loadu_si128(from.as_ptr().cast())) })
            }

            #[inline(always)]
            fn store(self, to: &mut [u8], v: __m256i) -> bool {
                let Some(to) = to.first_chunk_mut::<32>() else {
                    return false;
                };
                // SAFETY: writes the 32 bytes of `to`, unaligned; `self` is the proof of AVX2.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) };
                true
            }

            #[inline(always)]
            fn store_lanes(self, to: &mut [[u8; 16]], at: [usize; 2], v: __m256i) {
                // SAFETY: each store writes the 16 bytes of a chunk; `self` is the proof of AVX2.
                unsafe {
                    _mm_storeu_si128(to[at[0]].as_mut_ptr().cast(), _mm256_castsi256_si128(v));
                    let high = _mm256_extracti128_si256::<1>(v);
                    _mm_storeu_si128(to[at[1]].as_mut_ptr().cast(), high);
                }
            }

            #[inline(always)]
            fn slide<const BYTES: i32>(self, v: __m256i, next: __m256i) -> __m256i {
                // SAFETY: `self` is the proof of AVX2.
                unsafe {
                    let between = _mm256_permute2x128_si256::<0x21>(v, next);
                    _mm256_alignr_epi8::<BYTES>(between, v)
                }
            }

            #[inline(always)]
            fn shuffle(self, v: __m256i, mask: &[u8; 16]) -> __m256i {
                // SAFETY: reads the 16 bytes of `mask`; `self` is the proof of AVX2.
                unsafe {
                    let mask = _mm_loadu_si128(mask.as_ptr().cast());
                    _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(mask))
                }
            }

            #[inline(always)]
            fn quad<const I: usize>(self, v: __m256i) -> u64 {
                // SAFETY: `self` is the proof of AVX2.
                unsafe {
                    match I {
                        0 => _mm_cvtsi128_si64(_mm256_castsi256_si128(v)) as u64,
                        1 => _mm_extract_epi64::<1>(_mm256_castsi256_si128(v)) as u64,
                        2 => _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(v)) as u64,
                        _ => _mm_extract_epi64::<1>(_mm256_extracti128_si256::<1>(v)) as u64,
                    }
                }
            }

            #[inline(always)]
            fn signs(self, v: __m256i) -> u32 {
                // SAFETY: `self` is the proof of AVX2.
                unsafe { _mm256_movemask_epi8(v) as u32 }
            }
        }
    };
}

lanes! {
    of_two {
        add_epi8: _mm_add_epi8, _mm256_add_epi8;
        add_epi16: _mm_add_epi16, _mm256_add_epi16;
        add_epi32: _mm_add_epi32, _mm256_add_epi32;
        sub_epi16: _mm_sub_epi16, _mm256_sub_epi16;
        sub_epi32: _mm_sub_epi32, _mm256_sub_epi32;
        hadd_epi32: _mm_hadd_epi32, _mm256_hadd_epi32;
        mullo_epi16: _mm_mullo_epi16, _mm256_mullo_epi16;
        mulhi_epi16: _mm_mulhi_epi16, _mm256_mulhi_epi16;
        madd_epi16: _mm_madd_epi16, _mm256_madd_epi16;
        or: _mm_or_si128, _mm256_or_si256;
        cmpeq_epi8: _mm_cmpeq_epi8, _mm256_cmpeq_epi8;
        cmpgt_epi16: _mm_cmpgt_epi16, _mm256_cmpgt_epi16;
        packs_epi16: _mm_packs_epi16, _mm256_packs_epi16;
        packs_epi32: _mm_packs_epi32, _mm256_packs_epi32;
        packus_epi16: _mm_packus_epi16, _mm256_packus_epi16;
        unpacklo_epi8: _mm_unpacklo_epi8, _mm256_unpacklo_epi8;
        unpackhi_epi8: _mm_unpackhi_epi8, _mm256_unpackhi_epi8;
        unpacklo_epi16: _mm_unpacklo_epi16, _mm256_unpacklo_epi16;
        unpackhi_epi16: _mm_unpackhi_epi16, _mm256_unpackhi_epi16;
        unpacklo_epi32: _mm_unpacklo_epi32, _mm256_unpacklo_epi32;
        unpackhi_epi32: _mm_unpackhi_epi32, _mm256_unpackhi_epi32;
        unpacklo_epi64: _mm_unpacklo_epi64, _mm256_unpacklo_epi64;
        unpackhi_epi64: _mm_unpackhi_epi64, _mm256_unpackhi_epi64;
    }
    shifted {
        slli_epi16: _mm_slli_epi16, _mm256_slli_epi16;
        srli_epi16: _mm_srli_epi16, _mm256_srli_epi16;
        srai_epi16: _mm_srai_epi16, _mm256_srai_epi16;
        slli_epi32: _mm_slli_epi32, _mm256_slli_epi32;
        srai_epi32: _mm_srai_epi32, _mm256_srai_epi32;
    }
    filled_with {
        set1_epi8(i8): _mm_set1_epi8, _mm256_set1_epi8;
        set1_epi16(i16): _mm_set1_epi16, _mm256_set1_epi16;
        set1_epi32(i32): _mm_set1_epi32, _mm256_set1_epi32;
    }
}
