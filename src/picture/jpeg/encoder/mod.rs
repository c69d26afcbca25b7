//! Encodes RGB as JPEG in Rust: baseline, chroma at half size both ways (4:2:0), the standard's
//! Huffman tables. The bytes equal those of libjpeg-turbo 3.1 ("islow" transform).
//!
//! Runs in workers that build a cache, and in the consumer if there are no workers. The same pixels
//! and quality give the same bytes on every CPU. It does no I/O and allocates nothing: one MCU at a
//! time becomes coded data.
//!
//! - `tables`: divisors and codes; `markers`: the segments before the coded data.
//! - `samples`: converts an MCU's pixels to blocks of samples, and extends the picture's edges.
//! - `transform`: the forward transform; `quantizer`: division by its divisors.
//! - `blocks`: coefficients to codes; `bits`: codes to bytes; `scan`: the loop over MCUs.
//! - `kernels`: loops with forms for wide registers; `avx2`: those forms, and the only `unsafe`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod bits;
mod blocks;
mod kernels;
mod markers;
pub(super) mod quantizer;
pub(super) mod samples;
mod scan;
pub(super) mod tables;
pub(super) mod transform;

#[cfg(test)]
mod tests;

use crate::error::{FaultKind, SampleFault};
use crate::sys::cpu::CpuLevel;
use bits::ByteOutput;
use kernels::PlainEncodeKernels;
use quantizer::BlockQuantizer;
use scan::ScanEncoder;

/// The longest side that libjpeg-turbo writes (`JPEG_MAX_DIMENSION`).
const LONGEST: u32 = 65_500;

/// Encodes `height` x `width` tight RGB pixels to the start of `out`. Returns the length of the
/// file in bytes. `size` is (height, width); `quality` is 1 to 100.
///
/// # Errors
/// A side is longer than 65,500 pixels, the length of `pixels` is not `3 * height * width`, `out`
/// is smaller than `CacheEncoding::most_bytes`, or `quality` is out of range.
pub(crate) fn encode(
    pixels: &[u8],
    size: (u32, u32),
    quality: u8,
    out: &mut [u8],
) -> Result<usize, SampleFault> {
    // An unknown CPU level is an error elsewhere.
    let level = CpuLevel::detect().unwrap_or(CpuLevel::Scalar);
    encode_as(level, pixels, size, quality, out)
}

fn encode_as(
    level: CpuLevel,
    pixels: &[u8],
    (height, width): (u32, u32),
    quality: u8,
    out: &mut [u8],
) -> Result<usize, SampleFault> {
    if height > LONGEST || width > LONGEST {
        return Err(FaultKind::TooLarge.fault(format!(
            "the image has {width} x {height} pixels, and a side of a JPEG at most {LONGEST}: \
                 resize it, or encode raw or copy"
        )));
    }
    let wanted = 3 * u64::from(height) * u64::from(width);
    if wanted == 0 || pixels.len() as u64 != wanted {
        return Err(failed(&format!(
            "got {} bytes of pixels for {width} x {height} pixels: pass {wanted}",
            pixels.len()
        )));
    }
    let room = most_bytes((height, width));
    if (out.len() as u64) < room {
        return Err(failed(&format!(
            "{} bytes of room are too few: {room} may be needed",
            out.len()
        )));
    }
    if !(1..=100).contains(&quality) {
        return Err(failed(&format!("quality {quality}: use 1 to 100")));
    }
    let divisors = tables::divisors(quality);
    let quantizers = divisors.each_ref().map(BlockQuantizer::new);
    let scan = ScanEncoder {
        rgb: pixels,
        height: height as usize,
        width: width as usize,
        quantizers: &quantizers,
    };
    let mut to = ByteOutput::new(out);
    markers::begin((height as u16, width as u16), &divisors, &mut to);
    match level {
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => match avx2::Avx2Token::detect() {
            Some(wide) => wide.run(scan, &mut to),
            None => scan.run(PlainEncodeKernels, &mut to),
        },
        _ => scan.run(PlainEncodeKernels, &mut to),
    }
    markers::end(&mut to);
    to.finish().ok_or_else(|| {
        failed(&format!(
            "the file needs more than the {} bytes of room",
            out.len()
        ))
    })
}

/// The bytes that `out` must have: 3 for each pixel of whole MCUs, and 2048 for the markers.
fn most_bytes((height, width): (u32, u32)) -> u64 {
    let whole = |side: u32| u64::from(side.next_multiple_of(16));
    3 * whole(height) * whole(width) + 2048
}

#[cold]
fn failed(what: &str) -> SampleFault {
    FaultKind::TooLarge.fault(format!("encoding as JPEG: {what}"))
}
