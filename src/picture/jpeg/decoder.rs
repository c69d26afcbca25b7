//! Decodes a region of a JPEG, at one of four scales, to RGB. Checks the limits of a run, then
//! calls the decoder of `decode`, which has the bytes of libjpeg-turbo 3.1. It rejects the files
//! that libjpeg-turbo rejects, with the same messages.
//!
//! Runs in workers. It also runs in the consumer, with zero workers or for rows that a device
//! flags. Each has its own decoder. It opens no files, keeps none of its input, and passes no data
//! from one sample to the next.
//!
//! It allocates no memory once [`JpegScratch`] has grown to the size that the data need.
//!
//! **Warnings.** libjpeg-turbo continues after these (jerror.h, `JWRN_*`), and so does Pillow,
//! without a message:
//!
//! | message | here |
//! |---|---|
//! | "Corrupt JPEG data: ..." (extraneous bytes before a marker, premature end of a data segment, bad Huffman code, bad arithmetic code, wrong restart marker, bad ICC marker) | accepted |
//! | "Inconsistent progression sequence ..." | accepted |
//! | "Invalid SOS parameters for sequential JPEG" | accepted |
//! | "Unknown Adobe color transform code ..." | accepted |
//! | "Warning: unknown JFIF revision number ..." | accepted |
//! | "Premature end of JPEG file" | truncated, if the file has several scans and truncated files are not kept |
//!
//! Files without an end marker are rejected before they are decoded, because a crop may not read as
//! far as the damage. With an end marker, coded data cannot run past the end. A marker segment with
//! a wrong length still can. Between scans it costs coefficients. After the only scan it costs
//! nothing.

use crate::error::{self, FaultKind, SampleFault};
use crate::sys::cpu::CpuLevel;

use super::super::buffer::grow;
use super::super::limits::PictureLimits;
use super::super::truncation::TruncationPolicy;
use super::decode::gpu_rows::{MAX_CODED, write_row};
use super::decode::{
    self, DecodeEnding, DecodeFailure, DecodeRefusal, DecodeRequest, JpegWindow, MOST_SCANS,
    SimdForm,
};
use super::header::{JpegHeader, has_end, has_more_scans};
use super::region::{DecodeScale, DecodedRegion, PixelRegion, scaled_size};

/// Buffers that a worker keeps between samples. They grow. The bytes after the rows of a
/// [`DecodedRegion`] belong to earlier samples.
#[derive(Debug)]
pub(crate) struct JpegScratch {
    pub(crate) rgb: Vec<u8>,
    /// Grows only for CMYK files.
    pub(crate) cmyk: Vec<u8>,
    /// Small, and the same for all pictures, except for two rows of MCUs. For files of several
    /// scans it holds all coefficients.
    pub(super) baseline: decode::WindowDecoder,
}

impl JpegScratch {
    /// Bytes of allocated memory.
    pub(crate) fn bytes(&self) -> usize {
        self.rgb.capacity() + self.cmyk.capacity() + self.baseline.bytes()
    }
}

impl Default for JpegScratch {
    /// Uses the form that `FEATHERLOAD_CPU` names, or the processor's best.
    fn default() -> Self {
        // An unknown CPU level is an error elsewhere.
        Self::of(CpuLevel::detect().unwrap_or(CpuLevel::Scalar))
    }
}

impl JpegScratch {
    /// One for each form that this processor supports, with the form's name.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn of_each_form() -> Vec<(&'static str, Self)> {
        let levels = CpuLevel::ALL.into_iter().filter(|l| l.is_supported());
        levels
            .map(|level| (level.name(), Self::of(level)))
            .collect()
    }

    fn of(level: CpuLevel) -> Self {
        let form = SimdForm::best(match level {
            CpuLevel::Scalar => 64,
            CpuLevel::Sse41 => 128,
            CpuLevel::Avx2 => 256,
        });
        Self {
            rgb: Vec::new(),
            cmyk: Vec::new(),
            baseline: decode::WindowDecoder::new(form),
        }
    }
}

/// The decoder of one worker.
#[derive(Debug)]
pub(crate) struct JpegDecoder {
    limits: PictureLimits,
    truncated: TruncationPolicy,
}

impl JpegDecoder {
    pub(crate) fn new(limits: &PictureLimits) -> Self {
        Self::with_truncation(limits, TruncationPolicy::Refuse)
    }

    /// A decoder that also accepts files which end too early, if `truncated` allows it. Missing
    /// parts are grey.
    pub(crate) fn with_truncation(limits: &PictureLimits, truncated: TruncationPolicy) -> Self {
        Self {
            limits: *limits,
            truncated,
        }
    }

    /// Decodes the region `want` of a picture, in stored orientation at `scale`. The pixels equal
    /// those of a decode of the whole picture at that scale (`tj3Decompress8` to RGB, default
    /// flags).
    ///
    /// Whether a file is rejected does not depend on `scale` or `want`, except for the size of the
    /// buffers.
    pub(crate) fn decode_region(
        &self,
        bytes: &[u8],
        header: &JpegHeader,
        scale: DecodeScale,
        want: PixelRegion,
        out: &mut JpegScratch,
    ) -> Result<DecodedRegion, SampleFault> {
        self.check(bytes, header, scale, want)?;
        let (w, h) = (want.w as usize, want.h as usize);
        grow(&mut out.rgb, w * h * 3)?;
        let has_inks = header.components == 4;
        if has_inks {
            grow(&mut out.cmyk, w * h * 4)?;
        }
        let job = job(bytes, header, scale, want);
        let pixels = if has_inks {
            &mut out.cmyk
        } else {
            &mut out.rgb
        };
        self.decode(&job, header, &mut out.baseline, pixels)?;
        if has_inks {
            cmyk_to_rgb(&out.cmyk[..w * h * 4], &mut out.rgb[..w * h * 3]);
        }
        Ok(DecodedRegion {
            x: want.x,
            y: want.y,
            w: want.w,
            h: want.h,
            stride: w * 3,
        })
    }

    /// Writes the row of a region for the kernels of a device. Returns its bytes. `None` if the
    /// kernels do not take the file, if `out` is too small, or if a decode would reject the file
    /// before it reads coded data. Then the caller uses [`JpegDecoder::decode_region`].
    pub(crate) fn write_coded(
        &self,
        (bytes, header): (&[u8], &JpegHeader),
        scale: DecodeScale,
        want: PixelRegion,
        scratch: &JpegScratch,
        out: &mut [u8],
    ) -> Option<usize> {
        if !self.may_write_coded(bytes.len(), header, out.len()) {
            return None;
        }
        self.check(bytes, header, scale, want).ok()?;
        let job = job(bytes, header, scale, want);
        write_row(&job, scratch.baseline.form(), out).ok()
    }

    /// Whether [`JpegDecoder::write_coded`] may take a file of `bytes` bytes with this header, with
    /// `room` bytes of output. False is certain.
    pub(crate) fn may_write_coded(&self, bytes: usize, header: &JpegHeader, room: usize) -> bool {
        let is_taken = !header.multi_scan && !header.arithmetic && header.components != 4;
        // At most every other byte is a stuffed one: the data of a larger file do not fit.
        let least = bytes.saturating_sub(header.scan_start) / 2;
        is_taken && self.truncated == TruncationPolicy::Refuse && least <= room.min(MAX_CODED)
    }

    /// The checks before coded data are read.
    fn check(
        &self,
        bytes: &[u8],
        header: &JpegHeader,
        scale: DecodeScale,
        want: PixelRegion,
    ) -> Result<(), SampleFault> {
        let size = scaled_size(header, scale);
        if !want.fits_in(size) {
            return Err(corrupt(format!(
                "a region of {} x {} pixels at {}, {} is not inside the decoded {} x {} pixels",
                want.h, want.w, want.y, want.x, size.1, size.0
            )));
        }
        if has_more_scans(bytes, header, MOST_SCANS) {
            return Err(too_large(format!(
                "JPEG of more than {MOST_SCANS} scans, each a pass over the whole picture: write \
                 it again with fewer"
            )));
        }
        self.check_limits(header, want)?;
        if self.truncated == TruncationPolicy::Refuse && !has_end(bytes, header.scan_start) {
            return Err(cut_off(bytes));
        }
        Ok(())
    }

    /// Decodes a file with the fast decoder if it takes the file, otherwise with the general one.
    fn decode(
        &self,
        job: &DecodeRequest<'_>,
        header: &JpegHeader,
        decoder: &mut decode::WindowDecoder,
        pixels: &mut [u8],
    ) -> Result<(), SampleFault> {
        if !header.multi_scan && !header.arithmetic {
            match decoder.decode(job, pixels) {
                Ok(()) => return Ok(()),
                Err(DecodeRefusal::NoMemory) => return Err(no_memory()),
                Err(DecodeRefusal::Unsupported | DecodeRefusal::Damaged) => {}
            }
        }
        match decoder.decode_general(job, pixels) {
            Ok(DecodeEnding::Early)
                if header.multi_scan && self.truncated == TruncationPolicy::Refuse =>
            {
                Err(cut_off(job.bytes))
            }
            Ok(_) => Ok(()),
            Err(DecodeFailure::NoMemory) => Err(no_memory()),
            Err(DecodeFailure::Fatal(words)) => Err(fatal(&words.0)),
            Err(DecodeFailure::OtherSize(width, height)) => Err(corrupt(format!(
                "JPEG header states {} x {} pixels, but the decoder found {width} x {height}",
                header.width, header.height
            ))),
        }
    }

    fn check_limits(&self, header: &JpegHeader, region: PixelRegion) -> Result<(), SampleFault> {
        let max_scratch = self.limits.max_scratch;
        self.limits
            .check_pixels("JPEG", (header.width, header.height))?;
        let coefficients = header.coefficient_bytes();
        let bytes_per_pixel = if header.components == 4 { 7 } else { 3 };
        let buffers = u64::from(region.w) * u64::from(region.h) * bytes_per_pixel;
        let all = coefficients + buffers;
        if all > max_scratch {
            return Err(too_large(format!(
                "JPEG needs {} ({} pixels, {} coefficients), over max_scratch = {}",
                error::size_rounded_up(all),
                error::size(buffers),
                error::size(coefficients),
                error::size_rounded_down(max_scratch)
            )));
        }
        Ok(())
    }
}

fn job<'a>(
    bytes: &'a [u8],
    header: &JpegHeader,
    scale: DecodeScale,
    want: PixelRegion,
) -> DecodeRequest<'a> {
    let number = |n: u32| n as usize;
    DecodeRequest {
        bytes,
        size: (number(header.width), number(header.height)),
        components: usize::from(header.components),
        block: 8 / number(scale.denominator()),
        window: JpegWindow {
            x: number(want.x),
            y: number(want.y),
            w: number(want.w),
            h: number(want.h),
        },
    }
}

/// The fault for a message with which libjpeg-turbo gives up.
#[cold]
fn fatal(words: &str) -> SampleFault {
    let signs = ["Unsupported", "not implemented", "not supported"];
    let kind = match signs.iter().any(|sign| words.contains(sign)) {
        true => FaultKind::Unsupported,
        false => FaultKind::Corrupt,
    };
    SampleFault::new(kind, format!("JPEG: {words}"))
}

#[cold]
fn corrupt(reason: impl Into<String>) -> SampleFault {
    FaultKind::Corrupt.fault(reason)
}

#[cold]
fn no_memory() -> SampleFault {
    FaultKind::NoMemory.fault("no memory for a JPEG decoder")
}

#[cold]
fn too_large(reason: impl Into<String>) -> SampleFault {
    FaultKind::TooLarge.fault(reason)
}

#[cold]
fn cut_off(bytes: &[u8]) -> SampleFault {
    let len = bytes.len();
    FaultKind::Truncated.fault(format!(
        "JPEG cut off: {len} bytes without an end-of-image marker"
    ))
}

/// Converts Adobe's inverted CMYK to RGB, as Pillow does. Pillow treats all CMYK JPEGs as inverted,
/// with or without an Adobe marker.
fn cmyk_to_rgb(cmyk: &[u8], rgb: &mut [u8]) {
    for (from, to) in cmyk.chunks_exact(4).zip(rgb.chunks_exact_mut(3)) {
        let k = from[3];
        for (channel, &ink) in to.iter_mut().zip(&from[..3]) {
            *channel = k - mul_div_255(255 - ink, k);
        }
    }
}

/// a * b / 255, rounded (Pillow's `MULDIV255`); at most `b`.
fn mul_div_255(a: u8, b: u8) -> u8 {
    let t = u32::from(a) * u32::from(b) + 128;
    (((t >> 8) + t) >> 8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmyk_rounding_is_that_of_exact_division() {
        for ink in 0..=255u8 {
            for k in 0..=255u8 {
                let mut rgb = [0; 3];
                cmyk_to_rgb(&[ink, ink, ink, k], &mut rgb);
                let exact = f64::from(ink) * f64::from(k) / 255.0;
                assert_eq!(f64::from(rgb[0]), exact.round());
            }
        }
    }
}
