//! Depth images: one number of 16 bits a pixel, as the file has it.
//!
//! Pure. PNG of one channel, 16 bits. Never in here: what a level
//! means.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};

use super::limits::Limits;
use super::png::fault;
use crate::error::{self, FaultKind, SampleFault};

/// Whether the file's height and width are those wanted.
pub(crate) type Admit<'a> = &'a dyn Fn((u32, u32)) -> Result<(), SampleFault>;

/// Reads a depth image to `levels`, row by row, and gives its height and width. `admit` is
/// asked before a pixel is decoded.
///
/// # Errors
/// A file that is no PNG of one channel, or broken; what `admit` says; too many pixels.
pub(crate) fn read(
    bytes: &[u8],
    limits: &Limits,
    admit: Admit<'_>,
    levels: &mut Vec<u16>,
) -> Result<(u32, u32), SampleFault> {
    let scratch = png::Limits {
        bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), scratch);
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(named)?;
    let (width, height) = (reader.info().width, reader.info().height);
    limits.check_pixels("depth", (width, height))?;
    admit((height, width))?;
    let pixels = width as usize * height as usize;
    let bytes = 2 * pixels as u64;
    if bytes > limits.max_scratch {
        return Err(SampleFault::new(
            FaultKind::TooLarge,
            format!(
                "its {width} x {height} depths take {}, over max_scratch of {}: raise max_scratch, \
                 or make the file smaller",
                error::needed(bytes),
                error::room(limits.max_scratch)
            ),
        ));
    }
    let form = reader.output_color_type();
    levels.clear();
    levels.try_reserve_exact(pixels).map_err(|_| {
        SampleFault::new(
            FaultKind::NoMemory,
            format!("no memory for {pixels} depths"),
        )
    })?;
    levels.resize(pixels, 0);
    match form {
        (ColorType::Grayscale, BitDepth::Sixteen) => {
            let frame: &mut [u8] = bytemuck::cast_slice_mut(levels);
            reader.next_frame(frame).map_err(named)?;
            for level in levels.iter_mut() {
                *level = u16::from_be(*level);
            }
        }
        (color, depth) => {
            return Err(SampleFault::new(
                FaultKind::Unsupported,
                format!(
                    "a depth of {color:?} with {} bits: write it as a PNG of one channel with 16 \
                     bits",
                    depth as u8
                ),
            ));
        }
    }
    reader.finish().map_err(named)?;
    Ok((height, width))
}

fn named(e: png::DecodingError) -> SampleFault {
    let fault = fault(e);
    let reason = format!("the depth is not a readable PNG: {}", fault.reason);
    SampleFault::new(fault.kind, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageBuffer, ImageFormat, Luma, Rgb};

    fn encoded<P, C>(image: &ImageBuffer<P, C>) -> Vec<u8>
    where
        P: image::Pixel + image::PixelWithColorType,
        [P::Subpixel]: image::EncodableLayout,
        C: std::ops::Deref<Target = [P::Subpixel]>,
    {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    fn levels(bytes: &[u8]) -> Result<Vec<u16>, SampleFault> {
        let mut levels = vec![9; 3];
        let size = read(bytes, &Limits::default(), &|_| Ok(()), &mut levels)?;
        assert_eq!(size, (5, 7));
        Ok(levels)
    }

    #[test]
    fn levels_are_as_the_file_has_them() {
        let deep = ImageBuffer::from_fn(7, 5, |x, y| Luma([(y * 9000 + x * 301) as u16]));
        assert_eq!(levels(&encoded(&deep)).unwrap(), *deep.as_raw());
    }

    #[test]
    fn what_is_no_depth_says_so() {
        let color = encoded(&ImageBuffer::from_pixel(7, 5, Rgb([1u8, 2, 3])));
        let flat = encoded(&ImageBuffer::from_pixel(7, 5, Luma([3u8])));
        for other in [color, flat] {
            let fault = levels(&other).unwrap_err();
            assert!(fault.reason.contains("one channel with 16 bits"), "{fault}");
        }
        let deep = encoded(&ImageBuffer::from_pixel(7, 5, Luma([700u16])));
        for cut in [0, 20, deep.len() - 20] {
            let fault = levels(&deep[..cut]).unwrap_err();
            assert!(fault.reason.contains("not a readable PNG"), "{fault}");
        }
        let limits = Limits {
            max_pixels: 34,
            ..Limits::default()
        };
        let fault = read(&deep, &limits, &|_| Ok(()), &mut Vec::new()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge);
        let limits = Limits {
            max_scratch: 2 * 35 - 1,
            ..Limits::default()
        };
        let fault = read(&deep, &limits, &|_| Ok(()), &mut Vec::new()).unwrap_err();
        assert!(fault.reason.contains("max_scratch"), "{fault}");
    }
}
