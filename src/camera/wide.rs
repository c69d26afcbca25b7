//! The loops of `unprojector`, compiled for CPUs with AVX2: twice as many points an
//! instruction.
//!
//! The same operations in the same order: products and sums are never fused, so the bits
//! are those of every other CPU. In every process. Never in here: a formula.

use super::unprojector::{Bundle, Directions, Unprojector};
use crate::sys::cpu::CpuLevel;

/// Whether this CPU has it, and `FEATHERLOAD_CPU` does not say otherwise.
pub fn is_there() -> bool {
    cfg!(target_arch = "x86_64") && CpuLevel::detect().is_ok_and(|level| level == CpuLevel::Avx2)
}

/// [`Unprojector::bundle`], where [`is_there`].
pub fn bundle(lens: &Unprojector, x: &[f64], y: &[f64], out: Bundle<'_>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2: it was asked in the line above.
        return unsafe { bundle_avx2(lens, x, y, out) };
    }
    lens.bundle_here(x, y, out);
}

/// [`Unprojector::directions`], where [`is_there`].
pub fn directions(lens: &Unprojector, x: &[f64], y: &[f64], out: Directions<'_>) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2: it was asked in the line above.
        return unsafe { directions_avx2(lens, x, y, out) };
    }
    lens.directions_here(x, y, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn bundle_avx2(lens: &Unprojector, x: &[f64], y: &[f64], out: Bundle<'_>) {
    lens.bundle_here(x, y, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn directions_avx2(lens: &Unprojector, x: &[f64], y: &[f64], out: Directions<'_>) {
    lens.directions_here(x, y, out);
}
