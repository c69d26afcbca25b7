//! Depth images: one number for each pixel, as stored in the file.
//!
//! Pure. Reads the files that nerfstudio reads with NumPy and OpenCV's `IMREAD_ANYDEPTH`: arrays of
//! NumPy, PNG of 8 and 16 bits, TIFF of integers and floats, OpenEXR. Colour images are rejected.
//! OpenCV converts them to grey, which is not depth. This module does not interpret the numbers.
//!
//! - `depth_header`: size and memory of a file, from its header.
//! - `png`, `npy`, `tiff`, `openexr`: read the numbers.

mod depth_header;
#[cfg(feature = "codecs")]
pub(super) mod npy;
#[cfg(feature = "codecs")]
mod openexr;
#[cfg(feature = "codecs")]
mod png;
#[cfg(all(test, feature = "codecs"))]
mod tests;
#[cfg(feature = "codecs")]
mod tiff;

pub(crate) use depth_header::{needed_bytes, size_and_bytes};

#[cfg(feature = "codecs")]
pub(crate) use reading::{is_deep_grey, read};

#[cfg(feature = "codecs")]
mod reading {
    use std::io::Cursor;

    use crate::error::SampleFault;
    use crate::picture::depth::depth_header::{self, DepthFormat, DepthHeader};
    use crate::picture::depth::{npy, openexr, png, tiff};
    use crate::picture::limits::PictureLimits;

    /// Checks the file's height and width before a pixel is decoded.
    pub(crate) type Admit<'a> = &'a dyn Fn((u32, u32)) -> Result<(), SampleFault>;

    /// Reads a depth image to `levels`, row by row, and returns its height and width. `admit` runs
    /// before a pixel is decoded.
    ///
    /// # Errors
    /// A file that is broken or not a depth image, an error of `admit`, or too many pixels or
    /// bytes.
    pub(crate) fn read(
        bytes: &[u8],
        limits: &PictureLimits,
        admit: Admit<'_>,
        levels: &mut Vec<f32>,
    ) -> Result<(u32, u32), SampleFault> {
        let facts = DepthHeader::read(&mut Cursor::new(bytes), limits)?;
        let (width, height) = facts.size;
        limits.check_pixels("depth", (width, height))?;
        admit((height, width))?;
        limits.check_scratch("depth", facts.bytes)?;
        let pixels = width as usize * height as usize;
        levels.clear();
        levels.try_reserve_exact(pixels).map_err(|_| {
            let what = format!("no memory for {pixels} depths");
            SampleFault::new(crate::error::FaultKind::NoMemory, what)
        })?;
        match facts.kind {
            DepthFormat::Npy => npy::read(bytes, levels)?,
            DepthFormat::Png => png::read(bytes, limits, levels)?,
            DepthFormat::Tiff => tiff::read(bytes, limits, levels)?,
            DepthFormat::OpenExr => openexr::read(bytes, facts.size, levels)?,
        }
        match levels.len() == pixels {
            true => Ok((height, width)),
            false => Err(depth_header::corrupt(
                "has a number of pixels that differs from its header",
            )),
        }
    }

    /// Whether this is a grey PNG of 16 bits. Its 8-bit pixels would lose the low bits.
    pub(crate) fn is_deep_grey(bytes: &[u8]) -> bool {
        bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(24..26) == Some(&[16, 0])
    }
}
