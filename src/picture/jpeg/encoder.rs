//! RGB to JPEG: baseline, chroma at half size both ways (4:2:0), by libjpeg-turbo.
//!
//! Runs in workers that build a cache, and in the consumer when there are none.
//! The same pixels and quality give the same bytes, whatever instructions the CPU
//! has: the accurate integer DCT is the same in all of them. A handle for each
//! picture, as in `decoder`, and nothing of one picture reaches the next.

use std::ffi::CStr;
use std::ptr::NonNull;

use turbojpeg_sys as tj;

use crate::error::{FaultKind, SampleFault};
use crate::picture::jpeg::decoder::says_no_memory;

/// The longest side that libjpeg-turbo writes (`JPEG_MAX_DIMENSION`).
const LONGEST: u32 = 65_500;

/// A compression handle: alive, owned, used by one thread.
struct Handle(NonNull<std::ffi::c_void>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and this is the last use of it.
        unsafe { tj::tj3Destroy(self.0.as_ptr()) };
    }
}

/// Writes the picture of `height` x `width` tight RGB pixels to the beginning of
/// `out`; how many bytes it took.
///
/// # Errors
/// A side over 65,500 pixels, pixels that are not that many, an `out` that is too
/// small (what `Encoding::most_bytes` says is enough), no memory.
pub(crate) fn encode(
    pixels: &[u8],
    (height, width): (u32, u32),
    quality: u8,
    out: &mut [u8],
) -> Result<usize, SampleFault> {
    if height > LONGEST || width > LONGEST {
        return Err(SampleFault::new(
            FaultKind::TooLarge,
            format!(
                "{width} x {height} pixels, and a side of a JPEG has at most {LONGEST}: use a \
                 resize, or encode raw or copy"
            ),
        ));
    }
    let wanted = 3 * u64::from(height) * u64::from(width);
    if wanted == 0 || pixels.len() as u64 != wanted {
        return Err(failed(&format!(
            "{} bytes of pixels for {height} x {width}",
            pixels.len()
        )));
    }
    // Some versions of the library take it for granted that there is so much room.
    // SAFETY: takes three numbers.
    let room = unsafe { tj::tj3JPEGBufSize(width as i32, height as i32, tj::TJSAMP_TJSAMP_420) };
    if room == 0 || (out.len() as tj::size_t) < room {
        return Err(failed(&format!(
            "{} bytes of room where {room} may be needed",
            out.len()
        )));
    }
    // SAFETY: takes no pointer; the null of a failure is caught on the next line.
    let raw = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as i32) };
    let handle = NonNull::new(raw)
        .map(Handle)
        .ok_or_else(|| SampleFault::new(FaultKind::NoMemory, "no memory for a JPEG encoder"))?;
    for (parameter, value) in [
        (tj::TJPARAM_TJPARAM_QUALITY, i32::from(quality)),
        (tj::TJPARAM_TJPARAM_SUBSAMP, tj::TJSAMP_TJSAMP_420),
        // The bytes go where we say, or nowhere.
        (tj::TJPARAM_TJPARAM_NOREALLOC, 1),
    ] {
        // SAFETY: `handle` is live (made above, dropped by us alone); no other pointer.
        if unsafe { tj::tj3Set(handle.0.as_ptr(), parameter as i32, value) } != 0 {
            return Err(failed(&text_of(&handle)));
        }
    }
    let mut to = out.as_mut_ptr();
    let mut bytes = out.len() as tj::size_t;
    // SAFETY: `handle` is live. `pixels` has height * width * 3 bytes, as was compared
    // above, and is only read: pitch 0 is width * 3. `to` and `bytes` are those of the
    // live slice `out`, exclusively ours; under NOREALLOC the library writes no more
    // than `tj3JPEGBufSize` there, which was found to fit above, and gives an error
    // where that is too little.
    let rc = unsafe {
        tj::tj3Compress8(
            handle.0.as_ptr(),
            pixels.as_ptr(),
            width as i32,
            0,
            height as i32,
            tj::TJPF_TJPF_RGB,
            &mut to,
            &mut bytes,
        )
    };
    if rc != 0 {
        return Err(failed(&text_of(&handle)));
    }
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= out.len() && std::ptr::eq(to, out.as_ptr()) => Ok(bytes),
        _ => Err(failed("the library wrote elsewhere")),
    }
}

fn text_of(handle: &Handle) -> String {
    // SAFETY: the handle is live, so the answer is a NUL-terminated text in it or in
    // thread-local storage, which is not written before the next call on this handle;
    // `text` ends with this function.
    let text = unsafe { CStr::from_ptr(tj::tj3GetErrorStr(handle.0.as_ptr())) };
    text.to_string_lossy().into_owned()
}

#[cold]
fn failed(what: &str) -> SampleFault {
    let kind = match says_no_memory(what.as_bytes()) {
        true => FaultKind::NoMemory,
        false => FaultKind::TooLarge,
    };
    SampleFault::new(kind, format!("encoding as JPEG: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Limits;
    use crate::picture::jpeg::{JpegDecoder, Region, Scale, Scratch, read_header};

    /// The library's own bound for 4:2:0, which `Encoding::most_bytes` must equal.
    fn bound((height, width): (u32, u32)) -> usize {
        // SAFETY: takes three numbers.
        let bytes =
            unsafe { tj::tj3JPEGBufSize(width as i32, height as i32, tj::TJSAMP_TJSAMP_420) };
        bytes as usize
    }

    /// Slopes, with as much noise as wanted on them.
    fn picture((height, width): (u32, u32), noise: u32) -> Vec<u8> {
        let mut pixels = Vec::new();
        let mut random = 1u32;
        for y in 0..height {
            for x in 0..width {
                for c in 0..3 {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let slope = (x * 200 / width + y * 50 / height) / (c + 1);
                    pixels.push((slope + (random >> 24) * noise / 256).min(255) as u8);
                }
            }
        }
        pixels
    }

    #[test]
    fn what_is_encoded_decodes_to_nearly_the_same_and_is_420() {
        let size = (67, 129);
        let pixels = picture(size, 4);
        let mut out = vec![0; bound(size)];
        let n = encode(&pixels, size, 95, &mut out).unwrap();
        let header = read_header(&out[..n]).unwrap();
        assert_eq!((header.height, header.width), size);
        assert!(!header.multi_scan && header.components == 3);
        let mut scratch = Scratch::default();
        let whole = Region::whole((header.width, header.height));
        JpegDecoder::new(&Limits::default())
            .decode_region(&out[..n], &header, Scale::Full, whole, &mut scratch)
            .unwrap();
        let far = pixels.iter().zip(&scratch.rgb).map(|(a, b)| a.abs_diff(*b));
        let mean = far.clone().map(f64::from).sum::<f64>() / pixels.len() as f64;
        assert!(mean < 2.0 && far.max().unwrap() < 40, "mean {mean}");
        // Sampling factors of luma in the frame header: 2 x 2.
        let frame = out.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
        assert_eq!(out[frame + 11], 0x22);

        let mut again = vec![7; bound(size) + 9];
        let m = encode(&pixels, size, 95, &mut again).unwrap();
        assert_eq!(out[..n], again[..m]);
        let lower = encode(&pixels, size, 50, &mut again).unwrap();
        assert!(lower < n / 2, "{lower} {n}");
    }

    #[test]
    fn the_room_is_the_librarys_bound_and_noise_fits_it() {
        use crate::jobs::encode::encoding::Encoding;
        let jpeg = Encoding::Jpeg { quality: 100 };
        for size in [(1, 1), (15, 17), (16, 16), (33, 480), (2000, 3001)] {
            assert_eq!(jpeg.most_bytes(size, 0), bound(size) as u64, "{size:?}");
        }
        for size in [(1, 1), (9, 8), (64, 64), (99, 130)] {
            let mut out = vec![0; bound(size)];
            encode(&picture(size, 256), size, 100, &mut out).unwrap();
        }
    }

    #[test]
    fn a_system_without_memory_is_no_fault_of_the_picture() {
        let fault = failed("Insufficient memory (case 4)");
        assert_eq!(fault.kind, FaultKind::NoMemory);
        assert_eq!(failed("anything else").kind, FaultKind::TooLarge);
    }

    #[test]
    fn what_does_not_fit_is_refused_before_a_byte_is_written() {
        let size = (64, 64);
        let pixels = picture(size, 256);
        let mut out = vec![0xaa; 1000];
        let fault = encode(&pixels, size, 100, &mut out[..500]).unwrap_err();
        assert!(fault.reason.contains("500 bytes of room"), "{fault}");
        assert!(out.iter().all(|&b| b == 0xaa));
        assert!(encode(&pixels[1..], size, 90, &mut out).is_err());
        assert!(encode(&[], (0, 0), 90, &mut out).is_err());
        let fault = encode(&[0; 3], (1, 65_501), 90, &mut out).unwrap_err();
        assert!(fault.reason.contains("65500"), "{fault}");
    }
}
