//! libjpeg-turbo, for tests only: encodes files, and judges the results of our decoders.

use std::ffi::CStr;

use turbojpeg_sys as tj;

use crate::picture::jpeg::decode::MOST_SCANS;
use crate::picture::jpeg::header::JpegHeader;
use crate::picture::jpeg::region::{DecodeScale, scaled_size};

/// Options of an encode; the values are TurboJPEG's.
pub(crate) struct Options {
    pub(crate) format: i32,
    pub(crate) colorspace: Option<i32>,
    pub(crate) subsampling: i32,
    pub(crate) quality: i32,
    pub(crate) progressive: bool,
    pub(crate) arithmetic: bool,
    pub(crate) restart_blocks: i32,
}

pub(crate) fn compress(pixels: &[u8], w: u32, h: u32, o: &Options) -> Vec<u8> {
    let pixel = match o.format {
        tj::TJPF_TJPF_GRAY => 1,
        tj::TJPF_TJPF_RGB => 3,
        tj::TJPF_TJPF_CMYK => 4,
        other => panic!("format {other}"),
    };
    assert_eq!(pixels.len(), w as usize * h as usize * pixel);
    let mut parameters = vec![
        (tj::TJPARAM_TJPARAM_SUBSAMP, o.subsampling),
        (tj::TJPARAM_TJPARAM_QUALITY, o.quality),
        (tj::TJPARAM_TJPARAM_PROGRESSIVE, i32::from(o.progressive)),
        (tj::TJPARAM_TJPARAM_ARITHMETIC, i32::from(o.arithmetic)),
        (tj::TJPARAM_TJPARAM_RESTARTBLOCKS, o.restart_blocks),
    ];
    parameters.extend(o.colorspace.map(|c| (tj::TJPARAM_TJPARAM_COLORSPACE, c)));
    let mut data = std::ptr::null_mut();
    let mut len = 0;
    // SAFETY: the handle is checked and destroyed here; `pixels` has w * h pixels
    // (asserted above); `data` is allocated by the library, copied and freed here.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as i32);
        assert!(!handle.is_null());
        for (parameter, value) in parameters {
            assert_eq!(tj::tj3Set(handle, parameter as i32, value), 0);
        }
        let (w, h) = (w as i32, h as i32);
        let rc = tj::tj3Compress8(
            handle,
            pixels.as_ptr(),
            w,
            0,
            h,
            o.format,
            &mut data,
            &mut len,
        );
        let text = CStr::from_ptr(tj::tj3GetErrorStr(handle)).to_owned();
        assert_eq!(rc, 0, "{text:?}");
        let jpeg = std::slice::from_raw_parts(data, len as usize).to_vec();
        tj::tj3Free(data.cast());
        tj::tj3Destroy(handle);
        jpeg
    }
}

/// The whole picture from the library: the reference for regions.
pub(crate) fn reference(jpeg: &[u8], scale: DecodeScale, pixels: Pixel) -> (u32, u32, Vec<u8>) {
    // SAFETY: the handle is checked and destroyed here; the output has the scaled
    // size that the library itself has just read from the same bytes.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32);
        assert!(!handle.is_null());
        tj::tj3DecompressHeader(handle, jpeg.as_ptr(), jpeg.len() as tj::size_t);
        let d = scale.denominator();
        let factor = tj::tjscalingfactor {
            num: 1,
            denom: d as i32,
        };
        assert_eq!(tj::tj3SetScalingFactor(handle, factor), 0);
        let side = |p| (tj::tj3Get(handle, p) as u32).div_ceil(d);
        let w = side(tj::TJPARAM_TJPARAM_JPEGWIDTH as i32);
        let h = side(tj::TJPARAM_TJPARAM_JPEGHEIGHT as i32);
        let (format, bytes) = match pixels {
            Pixel::Rgb => (tj::TJPF_TJPF_RGB, 3),
            Pixel::Cmyk => (tj::TJPF_TJPF_CMYK, 4),
        };
        let mut out = vec![0; w as usize * h as usize * bytes];
        let rc = tj::tj3Decompress8(
            handle,
            jpeg.as_ptr(),
            jpeg.len() as tj::size_t,
            out.as_mut_ptr(),
            0,
            format,
        );
        let warned = tj::tj3GetErrorCode(handle) == tj::TJERR_TJERR_WARNING as i32;
        tj::tj3Destroy(handle);
        assert!(rc == 0 || warned, "the reference decode failed");
        (w, h, out)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Pixel {
    Rgb,
    Cmyk,
}

/// libjpeg-turbo's result for a file. `Ok` holds the pixels of the whole, RGB or inks, and whether
/// it warned of an early end before any other damage. `Err` holds its error message.
pub(crate) type Judgement = Result<(Vec<u8>, bool), String>;

/// Judges a file with this header by its pixels. Data after the pixels of its only scan are
/// ignored. `None` if libjpeg-turbo's result does not separate the two.
pub(crate) fn judge(jpeg: &[u8], header: &JpegHeader, scale: DecodeScale) -> Option<Judgement> {
    let (_, h) = scaled_size(header, scale);
    let (words, pixels) = match decompress(jpeg, header, scale, h) {
        Ok(judgement) => return Some(Ok(judgement)),
        Err(failure) => failure,
    };
    if header.multi_scan {
        return Some(Err(words));
    }
    if h == 1 || !header.has_named_sampling() {
        return None;
    }
    // A part that ends above the last row is read only up to its end.
    Some(match decompress(jpeg, header, scale, h - 1) {
        Ok((_, early)) => Ok((pixels, early)),
        Err((words, _)) => Err(words),
    })
}

/// Decompresses the first rows. A failure returns the message, and the rows written so far.
fn decompress(
    jpeg: &[u8],
    header: &JpegHeader,
    scale: DecodeScale,
    rows: u32,
) -> Result<(Vec<u8>, bool), (String, Vec<u8>)> {
    let (w, h) = scaled_size(header, scale);
    let (format, bytes) = match header.components {
        4 => (tj::TJPF_TJPF_CMYK, 4),
        _ => (tj::TJPF_TJPF_RGB, 3),
    };
    let mut pixels = vec![0; w as usize * rows as usize * bytes];
    let parameters = [
        (tj::TJPARAM_TJPARAM_SAVEMARKERS, 0),
        (tj::TJPARAM_TJPARAM_SCANLIMIT, MOST_SCANS as i32),
    ];
    let factor = tj::tjscalingfactor {
        num: 1,
        denom: scale.denominator() as i32,
    };
    let region = tj::tjregion {
        x: 0,
        y: 0,
        w: w as i32,
        h: rows as i32,
    };
    // SAFETY: the handle is checked and destroyed here, and no other code has it; its texts are
    // copied at once. The library reads `jpeg` only during the calls. The size that it reads is
    // that of `header`, or nothing is decoded, so that it writes `rows` rows of `w` pixels.
    let result = unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32);
        assert!(!handle.is_null());
        let judge = |code: i32| {
            if code == 0 {
                return Ok(false);
            }
            let is_warning = tj::tj3GetErrorCode(handle) == tj::TJERR_TJERR_WARNING as i32;
            let words = CStr::from_ptr(tj::tj3GetErrorStr(handle)).to_string_lossy();
            match is_warning && WARNINGS.iter().any(|warning| words.starts_with(warning)) {
                true => Ok(words.starts_with(END_OF_FILE)),
                false => Err(words.into_owned()),
            }
        };
        let decompress = |pixels: &mut [u8]| {
            for (parameter, value) in parameters {
                assert_eq!(tj::tj3Set(handle, parameter as i32, value), 0);
            }
            judge(tj::tj3SetScalingFactor(handle, factor))?;
            let len = jpeg.len() as tj::size_t;
            judge(tj::tj3DecompressHeader(handle, jpeg.as_ptr(), len))?;
            let get = |parameter: u32| tj::tj3Get(handle, parameter as i32);
            let found = [
                get(tj::TJPARAM_TJPARAM_JPEGWIDTH),
                get(tj::TJPARAM_TJPARAM_JPEGHEIGHT),
            ];
            assert_eq!(found, [header.width as i32, header.height as i32]);
            if rows < h {
                judge(tj::tj3SetCroppingRegion(handle, region))?;
            }
            judge(tj::tj3Decompress8(
                handle,
                jpeg.as_ptr(),
                len,
                pixels.as_mut_ptr(),
                0,
                format,
            ))
        };
        let result = decompress(&mut pixels);
        tj::tj3Destroy(handle);
        result
    };
    match result {
        Ok(early) => Ok((pixels, early)),
        Err(words) => Err((words, pixels)),
    }
}

const END_OF_FILE: &str = "Premature end of JPEG file";

/// Prefixes of all messages of jerror.h after which libjpeg-turbo continues, except "too many
/// scanlines", which would be our mistake.
const WARNINGS: [&str; 6] = [
    "Corrupt JPEG data: ",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Unknown Adobe color transform code",
    "Warning: unknown JFIF revision number",
    END_OF_FILE,
];
