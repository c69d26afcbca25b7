//! `warpAffine` of OpenCV 5 between pixels: bilinear, and pixels outside have the fill.
//!
//! OpenCV computes in `f32`. Here places have 15 binary places, and levels 7 more than a byte. So a
//! level differs from OpenCV's by 1 at most, where both are close to a half. Pixels are mixed down,
//! then the results across. So rows of an image that does not turn are mixed once for all columns.
//!
//! - `scalar`: the plain form; `avx2`: eight pixels at a time, equal bit by bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use self::scalar::{WarpPlaces, WarpWindow, row};
use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::recipe::PixelRect;
use crate::sys::cpu::CpuLevel;

/// How an image is transformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WarpSettings {
    /// From the centre of an output pixel to its source, as in `augment::affine`.
    pub(crate) matrix: [f64; 6],
    /// The colour of pixels outside the image.
    pub(crate) fill: RgbPixel<u8>,
    /// The pixels that are used later. Others are not computed.
    pub(crate) shown: PixelRect,
    /// The instruction set. It changes no pixel.
    pub(crate) cpu: CpuLevel,
}

/// Fills `out`, which is tight and of the image's size.
pub(crate) fn affine(src: PixelView<'_, u8>, settings: WarpSettings, out: &mut [RgbPixel<u8>]) {
    let WarpSettings {
        matrix,
        fill,
        shown,
        cpu,
    } = settings;
    let left = (shown.left as usize).min(src.width);
    let right = (left + shown.width as usize).min(src.width);
    let top = (shown.top as usize).min(src.height);
    let window = WarpWindow {
        matrix,
        columns: left..right,
        rows: top..(top + shown.height as usize).min(src.height),
    };
    #[cfg(target_arch = "x86_64")]
    if cpu == CpuLevel::Avx2 && avx2::has_room(src) {
        let turns = matrix[1] != 0.0 || matrix[3] != 0.0;
        // SAFETY: `cpu` is that of an `ImageResampler`, whose constructor has checked that this CPU
        // has AVX2.
        return unsafe {
            match turns {
                true => avx2::turned(&window, (src, fill), out),
                false => avx2::straight(&window, (src, fill), out),
            }
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = cpu;
    for y in window.rows.clone() {
        let out = &mut out[y * src.width..][window.columns.clone()];
        row(&WarpPlaces::new(matrix, y), left, (src, fill), out);
    }
}

#[cfg(test)]
mod tests;
