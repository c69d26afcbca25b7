//! OpenCV 5's 8-bit HSV and back, with the three values mapped by tables in between: the colours of
//! ultralytics' trainers.
//!
//! Hue is 0 to 179, saturation and value 0 to 255. The way back truncates, as OpenCV's vectors do.
//!
//! - `scalar`: the plain form; `avx2`: eight pixels at a time, equal bit by bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

#[cfg(target_arch = "x86_64")]
use self::avx2::{GROUP, HsvFactors};
use self::scalar::{HsvTables, change_row};
use crate::pixels::pixel_view::PixelViewMut;
use crate::sys::cpu::CpuLevel;

/// Adds `gains[0]` of a circle to the hue, and multiplies saturation and value by 1 plus their
/// gains. `cpu`: the instruction set, which changes no pixel.
pub(crate) fn change(mut pixels: PixelViewMut<'_, u8>, gains: [f64; 3], cpu: CpuLevel) {
    let tables = HsvTables::new(gains);
    #[cfg(target_arch = "x86_64")]
    if cpu == CpuLevel::Avx2
        && std::arch::is_x86_feature_detected!("fma")
        && let Some(factors) = HsvFactors::of(&tables)
    {
        for row in pixels.rows_mut() {
            let (groups, rest) = row.split_at_mut(row.len() / GROUP * GROUP);
            let words = groups.as_flattened_mut().as_chunks_mut().0;
            // SAFETY: `cpu` is that of an `ImageResampler`, whose constructor has checked that this
            // CPU has AVX2. FMA was detected here.
            unsafe { avx2::change(factors, words.as_chunks_mut().0) };
            change_row(&tables, rest);
        }
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = cpu;
    for row in pixels.rows_mut() {
        change_row(&tables, row);
    }
}

#[cfg(test)]
mod tests;
