//! One row across and one row down, with the CPU's instruction set.

use super::lane_weights::LaneWeights;
use super::scalar::{self, DownWeights};
#[cfg(target_arch = "x86_64")]
use super::{avx2, sse41};
use crate::recipe::fixed_weights::FixedTable;
use crate::sys::cpu::CpuLevel;

/// Computes one row across: `dst` from the pixels of `src`, which begins with pixel 0.
pub(super) fn across(
    cpu: CpuLevel,
    table: &FixedTable,
    lanes: &LaneWeights,
    src: &[u8],
    dst: &mut [u8],
) {
    match cpu {
        CpuLevel::Scalar => scalar::across(table, src, dst),
        // SAFETY: `ImageResampler::new` has checked that this CPU has SSE4.1.
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Sse41 => unsafe { sse41::across(lanes, src, dst) },
        // SAFETY: `ImageResampler::new` has checked that this CPU has AVX2.
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => unsafe { avx2::across(lanes, src, dst) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => scalar::across(table, src, dst),
    }
}

/// Computes one row down: `dst` from the rows of `src` at `offsets`.
pub(super) fn down(
    cpu: CpuLevel,
    table: &FixedTable,
    o: usize,
    src: &[u8],
    offsets: &[usize],
    dst: &mut [u8],
) {
    let weights = DownWeights {
        coeffs: &table.row(o).2[..offsets.len()],
        precision: table.precision(),
        is_wide: table.is_wide(),
    };
    match cpu {
        CpuLevel::Scalar => scalar::down(weights, src, offsets, dst),
        // SAFETY: `ImageResampler::new` has checked that this CPU has SSE4.1.
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Sse41 => unsafe { sse41::down(weights, src, offsets, dst) },
        // SAFETY: `ImageResampler::new` has checked that this CPU has AVX2.
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => unsafe { avx2::down(weights, src, offsets, dst) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => scalar::down(weights, src, offsets, dst),
    }
}
