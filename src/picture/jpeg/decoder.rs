//! A region of a JPEG, at one of four scales, as RGB: by `baseline` what that
//! takes, and all else by libjpeg-turbo, which is behind one safe type here.
//! Both give the same bytes, and libjpeg-turbo alone refuses files.
//!
//! Runs in workers, and in the consumer when there are none; one decoder each,
//! never shared. Never opens files,
//! never keeps the bytes it was given, and never lets anything of one sample
//! reach the next: each decode has a handle of its own. A handle keeps the
//! quantization and Huffman tables of the file before, and decodes a file that
//! lacks its own by them. A new one takes less than a microsecond.
//!
//! No Rust heap allocation once [`Scratch`] has grown to what the data need;
//! libjpeg-turbo, where it decodes, allocates and frees its working memory in each decode.
//!
//! **Warnings.** libjpeg-turbo goes on after these (jerror.h, `JWRN_*`), and so
//! does Pillow, without a word:
//!
//! | message | here |
//! |---|---|
//! | "Corrupt JPEG data: ..." (extraneous bytes before a marker, premature end of a data segment, bad Huffman code, bad arithmetic code, wrong restart marker, bad ICC marker) | accepted |
//! | "Inconsistent progression sequence ..." | accepted |
//! | "Invalid SOS parameters for sequential JPEG" | accepted |
//! | "Unknown Adobe color transform code ..." | accepted |
//! | "Warning: unknown JFIF revision number ..." | accepted |
//! | "Premature end of JPEG file" | truncated, when the file has several scans and is not kept |
//!
//! The last one needs a word. Files without an end marker are refused before
//! they are decoded, because a crop does not read as far as the damage. With an
//! end marker, coded data cannot run over the end; what still can is a marker
//! segment with a wrong length: between scans, where it costs coefficients, or
//! behind the only scan, where it costs nothing.

use std::ffi::CStr;
use std::ptr::NonNull;

use turbojpeg_sys as tj;

use crate::error::{self, FaultKind, SampleFault};
use crate::sys::cpu::CpuLevel;

use super::super::buffer::grow;
use super::super::damage::Truncated;
use super::super::limits::Limits;
use super::baseline::{self, Ending, Failure, Form, MOST_SCANS, Refusal, Window};
use super::header::{JpegHeader, has_end, has_more_scans, is_unfinished};
use super::region::{Decoded, Region, Scale, cover, scaled_size};

/// Buffers that a worker keeps between samples. They grow;
/// what lies behind the rows that [`Decoded`] tells of is of earlier samples.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) rgb: Vec<u8>,
    /// Only grows when there are CMYK files.
    pub(crate) cmyk: Vec<u8>,
    /// Small, and the same for all pictures but for two rows of MCUs. Of files of several scans
    /// all coefficients.
    pub(super) baseline: baseline::Decoder,
}

impl Scratch {
    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.rgb.capacity() + self.cmyk.capacity() + self.baseline.bytes()
    }
}

impl Default for Scratch {
    /// Of the form that `FEATHERLOAD_CPU` names, or the processor's best.
    fn default() -> Self {
        // A name that is not known ends a run elsewhere.
        Self::of(CpuLevel::detect().unwrap_or(CpuLevel::Scalar))
    }
}

impl Scratch {
    pub(crate) fn of(level: CpuLevel) -> Self {
        let form = Form::best(match level {
            CpuLevel::Scalar => 64,
            CpuLevel::Sse41 => 128,
            CpuLevel::Avx2 => 256,
        });
        Self {
            rgb: Vec::new(),
            cmyk: Vec::new(),
            baseline: baseline::Decoder::new(form),
        }
    }
}

/// The decoder of one worker.
#[derive(Debug)]
pub(crate) struct JpegDecoder {
    limits: Limits,
    truncated: Truncated,
}

impl JpegDecoder {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self::that_may_keep(limits, Truncated::Refuse)
    }

    /// One that decodes files which end too early, too: what they lack is grey.
    pub(crate) fn that_may_keep(limits: &Limits, truncated: Truncated) -> Self {
        Self {
            limits: *limits,
            truncated,
        }
    }

    /// Decodes the part of a picture that covers `want`, both in stored
    /// orientation at that scale. Every pixel inside `want` is that of a decode
    /// of the whole picture at that scale (`tj3Decompress8` to RGB, default
    /// flags); pixels outside may differ.
    ///
    /// Whether a file is refused does not depend on `scale` or `want`, but for
    /// the size of the buffers.
    pub(crate) fn decode_region(
        &self,
        bytes: &[u8],
        header: &JpegHeader,
        scale: Scale,
        want: Region,
        out: &mut Scratch,
    ) -> Result<Decoded, SampleFault> {
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
        let keeps = self.truncated == Truncated::Keep;
        let region = if header.progressive
            && want != Region::whole(size)
            && (keeps || is_unfinished(bytes, header))
        {
            Region::whole(size)
        } else {
            cover(header, scale, want)
        };
        self.check_limits(header, region, 0)?;
        if !keeps && !has_end(bytes, header.scan_start) {
            return Err(cut_off(bytes));
        }
        let job = Job {
            bytes,
            header,
            scale,
            size,
            truncated: self.truncated,
        };
        if !header.arithmetic {
            return decode_in_rust(&job, want, out);
        }
        match self.decode_once(&job, region, out) {
            // A file with one scan is read to its end only by a region that
            // touches the bottom, and can fail only before the first row or
            // behind the last one. Behind it is no fault of the pixels, and
            // would make the verdict depend on the crop.
            Err(fault) if !header.multi_scan && region.y + region.h == size.1 && size.1 > 1 => {
                self.decode_without_tail(&job, region, out).ok_or(fault)
            }
            result => result,
        }
    }

    /// The region again, which fills all rows and fails, and then without its
    /// last row, which succeeds when the damage lies behind the pixels.
    #[cold]
    fn decode_without_tail(
        &self,
        job: &Job<'_>,
        mut region: Region,
        out: &mut Scratch,
    ) -> Option<Decoded> {
        if region.h == 1 {
            region.y -= 1;
            region.h = 2;
        }
        self.check_limits(job.header, region, 0).ok()?;
        let whole = self.decode_once(job, region, out);
        region.h -= 1;
        let mut decoded = self.decode_once(job, region, out).ok()?;
        if whole.is_err() {
            decoded.h += 1;
        }
        Some(decoded)
    }

    /// `copied`: bytes of the file that are copied before.
    fn check_limits(
        &self,
        header: &JpegHeader,
        region: Region,
        copied: usize,
    ) -> Result<(), SampleFault> {
        let max_scratch = self.limits.max_scratch;
        self.limits
            .check_pixels("JPEG", (header.width, header.height))?;
        let coefficients = header.coefficient_bytes();
        let bytes_per_pixel = if header.components == 4 { 7 } else { 3 };
        let buffers = u64::from(region.w) * u64::from(region.h) * bytes_per_pixel;
        let all = coefficients + buffers + copied as u64;
        if all > max_scratch {
            return Err(too_large(format!(
                "JPEG needs {} ({} pixels, {} coefficients), over max_scratch = {}",
                error::needed(all),
                error::size(buffers),
                error::size(coefficients),
                error::room(max_scratch)
            )));
        }
        Ok(())
    }

    fn decode_once(
        &self,
        job: &Job<'_>,
        region: Region,
        out: &mut Scratch,
    ) -> Result<Decoded, SampleFault> {
        let header = job.header;
        let mut handle = Handle::new(&self.limits)?;
        let mut found = handle.read_header(job)?;
        // Without a cropping region nothing but the header bounds what the
        // library writes, and the bytes may be a map of a file that somebody
        // rewrites between the two calls: such rare files are copied first.
        let mut copy = Vec::new();
        let mut job = job;
        let copied;
        if !handle.can_crop() {
            self.check_limits(header, Region::whole(job.size), job.bytes.len())?;
            copy.try_reserve_exact(job.bytes.len()).map_err(|_| {
                no_memory(format!(
                    "no memory for a copy of {}",
                    error::size(job.bytes.len() as u64)
                ))
            })?;
            copy.extend_from_slice(job.bytes);
            copied = Job {
                bytes: &copy,
                ..*job
            };
            job = &copied;
            found = handle.read_header(job)?;
        }
        if found != (header.width, header.height) {
            return Err(corrupt(format!(
                "JPEG header has {} x {} pixels, and the decoder {} x {}",
                header.width, header.height, found.0, found.1
            )));
        }
        let region = if handle.can_crop() {
            region
        } else {
            // Sampling factors that TurboJPEG has no name for.
            Region::whole(job.size)
        };
        self.check_limits(header, region, copy.len())?;
        let (w, h) = (region.w as usize, region.h as usize);
        let stride = w * 3;
        grow(&mut out.rgb, stride * h)?;
        if header.components == 4 {
            grow(&mut out.cmyk, w * h * 4)?;
            let result = handle.decode(job, region, Pixels::Cmyk, &mut out.cmyk);
            // After a failure too: the last row may be all that is wanted of it.
            cmyk_to_rgb(&out.cmyk[..w * h * 4], &mut out.rgb[..w * h * 3]);
            result?;
        } else {
            handle.decode(job, region, Pixels::Rgb, &mut out.rgb)?;
        }
        Ok(Decoded {
            x: region.x,
            y: region.y,
            w: region.w,
            h: region.h,
            stride,
        })
    }
}

/// One file at one scale.
#[derive(Clone, Copy)]
struct Job<'a> {
    bytes: &'a [u8],
    header: &'a JpegHeader,
    scale: Scale,
    /// Of the picture at that scale.
    size: (u32, u32),
    truncated: Truncated,
}

/// Decodes a file without arithmetic coding.
fn decode_in_rust(job: &Job<'_>, want: Region, out: &mut Scratch) -> Result<Decoded, SampleFault> {
    let header = job.header;
    let (w, h) = (want.w as usize, want.h as usize);
    let has_inks = header.components == 4;
    grow(&mut out.rgb, w * h * 3)?;
    if has_inks {
        grow(&mut out.cmyk, w * h * 4)?;
    }
    let part = baseline::Job {
        bytes: job.bytes,
        size: (header.width as usize, header.height as usize),
        components: usize::from(header.components),
        block: 8 / job.scale.denominator() as usize,
        window: Window {
            x: want.x as usize,
            y: want.y as usize,
            w,
            h,
        },
    };
    let pixels = if has_inks {
        &mut out.cmyk
    } else {
        &mut out.rgb
    };
    let decoded = match header.multi_scan {
        false => out.baseline.decode(&part, pixels),
        true => Err(Refusal::Unsupported),
    };
    match decoded {
        Ok(()) => {}
        Err(Refusal::NoMemory) => return Err(no_memory("no memory for a JPEG decoder")),
        Err(Refusal::Unsupported | Refusal::Damaged) => {
            decode_general(job, &part, &mut out.baseline, pixels)?;
        }
    }
    if has_inks {
        cmyk_to_rgb(&out.cmyk[..w * h * 4], &mut out.rgb[..w * h * 3]);
    }
    Ok(Decoded {
        x: want.x,
        y: want.y,
        w: want.w,
        h: want.h,
        stride: w * 3,
    })
}

/// Decodes a file of any other kind, damaged or not.
fn decode_general(
    job: &Job<'_>,
    part: &baseline::Job<'_>,
    decoder: &mut baseline::Decoder,
    pixels: &mut [u8],
) -> Result<(), SampleFault> {
    let header = job.header;
    match decoder.decode_general(part, pixels) {
        Ok(Ending::Early) if header.multi_scan && job.truncated == Truncated::Refuse => {
            Err(cut_off(job.bytes))
        }
        Ok(_) => Ok(()),
        Err(Failure::NoMemory) => Err(no_memory("no memory for a JPEG decoder")),
        Err(Failure::Fatal(words)) => Err(fatal(words.0.as_bytes())),
        Err(Failure::OtherSize(width, height)) => Err(corrupt(format!(
            "JPEG header has {} x {} pixels, and the decoder {width} x {height}",
            header.width, header.height
        ))),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pixels {
    Rgb,
    Cmyk,
}

impl Pixels {
    fn format(self) -> i32 {
        match self {
            Self::Rgb => tj::TJPF_TJPF_RGB,
            Self::Cmyk => tj::TJPF_TJPF_CMYK,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Cmyk => 4,
        }
    }
}

/// A TurboJPEG decompression handle: alive, owned, used by one thread.
#[derive(Debug)]
struct Handle(NonNull<std::ffi::c_void>);

impl Handle {
    fn new(limits: &Limits) -> Result<Self, SampleFault> {
        // SAFETY: takes no pointer; the null of a failure is caught on the next line.
        let raw = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32) };
        let handle = NonNull::new(raw)
            .map(Self)
            .ok_or_else(|| no_memory("no memory for a JPEG decoder"))?;
        let mib = limits.max_scratch.div_ceil(1 << 20).max(1);
        let clamp = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
        for (name, parameter, value) in [
            (
                "maximum pixels",
                tj::TJPARAM_TJPARAM_MAXPIXELS,
                clamp(limits.max_pixels.max(1)),
            ),
            ("maximum memory", tj::TJPARAM_TJPARAM_MAXMEMORY, clamp(mib)),
            (
                "scan limit",
                tj::TJPARAM_TJPARAM_SCANLIMIT,
                MOST_SCANS as i32,
            ),
            // Colour profiles would be copied for nothing.
            ("saved markers", tj::TJPARAM_TJPARAM_SAVEMARKERS, 0),
        ] {
            // SAFETY: `handle` is live (made above, dropped by us alone); no other pointer.
            let rc = unsafe { tj::tj3Set(handle.raw(), parameter as i32, value) };
            if rc != 0 {
                return Err(corrupt(format!("the JPEG decoder refuses its {name}")));
            }
        }
        Ok(handle)
    }

    fn raw(&self) -> tj::tjhandle {
        self.0.as_ptr()
    }

    fn get(&self, parameter: u32) -> i32 {
        // SAFETY: `self.raw()` is live while `self` is; no other pointer.
        unsafe { tj::tj3Get(self.raw(), parameter as i32) }
    }

    /// Sets the scale, and lets the library read the header. The size that it
    /// found.
    fn read_header(&mut self, job: &Job<'_>) -> Result<(u32, u32), SampleFault> {
        let factor = tj::tjscalingfactor {
            num: 1,
            denom: job.scale.denominator() as i32,
        };
        // SAFETY: `self.raw()` is live while `self` is; the factor goes by value.
        let rc = unsafe { tj::tj3SetScalingFactor(self.raw(), factor) };
        self.check(rc, job)?;
        // SAFETY: pointer and length are those of the live slice `job.bytes`, which
        // the library only reads, and only during this call: `decode` sets it again.
        let rc = unsafe {
            tj::tj3DecompressHeader(
                self.raw(),
                job.bytes.as_ptr(),
                job.bytes.len() as tj::size_t,
            )
        };
        self.check(rc, job)?;
        let side = |parameter| u32::try_from(self.get(parameter)).unwrap_or(0);
        Ok((
            side(tj::TJPARAM_TJPARAM_JPEGWIDTH),
            side(tj::TJPARAM_TJPARAM_JPEGHEIGHT),
        ))
    }

    fn can_crop(&self) -> bool {
        self.get(tj::TJPARAM_TJPARAM_SUBSAMP) != tj::TJSAMP_TJSAMP_UNKNOWN
    }

    /// Decodes `region` of the picture whose header was just read into tightly
    /// packed rows at the start of `out`.
    fn decode(
        &mut self,
        job: &Job<'_>,
        region: Region,
        pixels: Pixels,
        out: &mut [u8],
    ) -> Result<(), SampleFault> {
        let stride = region.w as usize * pixels.bytes();
        if !region.fits_in(job.size) || out.len() < stride * region.h as usize {
            return Err(corrupt("the decode buffer is too small for its region"));
        }
        if self.can_crop() {
            // Also for the whole picture: the library then writes this many
            // rows and columns or fails.
            let crop = tj::tjregion {
                x: region.x as i32,
                y: region.y as i32,
                w: region.w as i32,
                h: region.h as i32,
            };
            // SAFETY: `self.raw()` is live while `self` is; the region goes by value.
            let rc = unsafe { tj::tj3SetCroppingRegion(self.raw(), crop) };
            self.check(rc, job)?;
        } else if region != Region::whole(job.size) {
            return Err(corrupt(
                "a JPEG that cannot be cropped was asked for a part",
            ));
        }
        // SAFETY: pointer and length are those of the live slice `job.bytes`, which is
        // only read. `out` is exclusively ours; the call writes `region.h` rows of
        // `region.w` pixels, `stride` bytes apart, which the check at the top of this
        // function found to fit: the cropping region set above bounds both, and
        // without one the region is the whole picture, whose size `decode_once`
        // compared with what the library read from the same bytes, a private copy.
        let rc = unsafe {
            tj::tj3Decompress8(
                self.raw(),
                job.bytes.as_ptr(),
                job.bytes.len() as tj::size_t,
                out.as_mut_ptr(),
                stride as i32,
                pixels.format(),
            )
        };
        self.check(rc, job)
    }

    /// What a return code means, by the policy at the top of this file.
    fn check(&mut self, rc: i32, job: &Job<'_>) -> Result<(), SampleFault> {
        if rc == 0 {
            return Ok(());
        }
        // SAFETY: `self.raw()` is live while `self` is; no other pointer.
        let code = unsafe { tj::tj3GetErrorCode(self.raw()) };
        // SAFETY: `self.raw()` is live while `self` is, so the answer is a
        // NUL-terminated text in the handle or in thread-local storage. It is not
        // written before the next call on this handle, which `&mut self` holds off
        // until `text` is gone.
        let text = unsafe { CStr::from_ptr(tj::tj3GetErrorStr(self.raw())) };
        let text = text.to_bytes();
        // An error that follows a warning is reported as a warning too: only the
        // text tells them apart, for the library keeps that of the first warning
        // unless an error replaces it.
        if code == tj::TJERR_TJERR_WARNING as i32 && is_warning(text) {
            if text.starts_with(END_OF_FILE)
                && job.header.multi_scan
                && job.truncated == Truncated::Refuse
            {
                return Err(cut_off(job.bytes));
            }
            return Ok(());
        }
        Err(fatal(text))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and this is the last use of it.
        unsafe { tj::tj3Destroy(self.raw()) };
    }
}

const END_OF_FILE: &[u8] = b"Premature end of JPEG file";

/// Beginnings of all messages of jerror.h after which libjpeg-turbo goes on,
/// but "too many scanlines", which would be a mistake of ours.
fn is_warning(text: &[u8]) -> bool {
    const WARNINGS: [&[u8]; 6] = [
        b"Corrupt JPEG data: ",
        b"Inconsistent progression sequence",
        b"Invalid SOS parameters for sequential JPEG",
        b"Unknown Adobe color transform code",
        b"Warning: unknown JFIF revision number",
        END_OF_FILE,
    ];
    WARNINGS.iter().any(|w| text.starts_with(w))
}

/// The fault behind a message after which libjpeg-turbo gave up.
#[cold]
fn fatal(text: &[u8]) -> SampleFault {
    let says = |part: &str| text.windows(part.len()).any(|w| w == part.as_bytes());
    let kind = if says_no_memory(text) {
        FaultKind::NoMemory
    } else if says("Memory limit exceeded") || says("Image is too large") {
        FaultKind::TooLarge
    } else if says("Premature end") {
        FaultKind::Truncated
    } else if says("Unsupported") || says("not implemented") || says("not supported") {
        FaultKind::Unsupported
    } else {
        FaultKind::Corrupt
    };
    let text = String::from_utf8_lossy(text);
    let option = match kind {
        FaultKind::TooLarge => " (see max_pixels and max_scratch)",
        _ => "",
    };
    SampleFault::new(kind, format!("JPEG: {text}{option}"))
}

/// Whether libjpeg-turbo gave up because the system gave it no memory; its own
/// limit has other words.
pub(super) fn says_no_memory(text: &[u8]) -> bool {
    ["Insufficient memory", "Memory allocation failure"]
        .iter()
        .any(|part| text.windows(part.len()).any(|w| w == part.as_bytes()))
}

#[cold]
fn corrupt(reason: impl Into<String>) -> SampleFault {
    SampleFault::new(FaultKind::Corrupt, reason)
}

#[cold]
fn no_memory(reason: impl Into<String>) -> SampleFault {
    SampleFault::new(FaultKind::NoMemory, reason)
}

#[cold]
fn too_large(reason: impl Into<String>) -> SampleFault {
    SampleFault::new(FaultKind::TooLarge, reason)
}

#[cold]
fn cut_off(bytes: &[u8]) -> SampleFault {
    let len = bytes.len();
    SampleFault::new(
        FaultKind::Truncated,
        format!("JPEG cut off: {len} bytes without an end-of-image marker"),
    )
}

/// Adobe's inverted CMYK to RGB, as Pillow converts it. Pillow takes all CMYK
/// JPEGs for inverted, with or without an Adobe marker.
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
    use super::super::fixtures::{Sampling, jpeg};
    use super::super::header::read_header;
    use super::*;

    /// The header of `jpeg` with other sampling factors.
    fn with_factors(jpeg: &[u8], factors: &[u8]) -> Vec<u8> {
        let mut bytes = jpeg.to_vec();
        let frame = bytes.windows(2).position(|m| m == [0xFF, 0xC0]).unwrap();
        assert_eq!(usize::from(bytes[frame + 9]), factors.len());
        for (at, factor) in factors.iter().enumerate() {
            bytes[frame + 11 + 3 * at] = *factor;
        }
        bytes
    }

    /// The forecast must know it before a decoder sees the file.
    #[test]
    fn the_header_says_which_pictures_are_decoded_as_a_whole() {
        let limits = Limits::default();
        let sides: Vec<u8> = (1..=4)
            .flat_map(|h| (1..=4).map(move |v| h << 4 | v))
            .collect();
        let mut wholes = 0;
        for (sampling, components) in [
            (Sampling::Grey, 1),
            (Sampling::S444, 3),
            (Sampling::AdobeRgb, 3),
            (Sampling::Cmyk, 4),
            (Sampling::Ycck420, 4),
        ] {
            let jpeg = jpeg(16, 16, sampling);
            for number in 0..sides.len().pow(components) {
                let at = |place| sides[number / sides.len().pow(place) % sides.len()];
                let factors: Vec<u8> = (0..components).map(at).collect();
                let bytes = with_factors(&jpeg, &factors);
                let header = read_header(&bytes).unwrap();
                let job = Job {
                    bytes: &bytes,
                    header: &header,
                    scale: Scale::Full,
                    size: (16, 16),
                    truncated: Truncated::Refuse,
                };
                let mut handle = Handle::new(&limits).unwrap();
                if handle.read_header(&job).is_err() {
                    continue;
                }
                let named = header.has_named_sampling();
                assert_eq!(named, handle.can_crop(), "{factors:x?}");
                wholes += u32::from(!named);
            }
        }
        assert!(wholes > 10_000, "{wholes}");
    }

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
