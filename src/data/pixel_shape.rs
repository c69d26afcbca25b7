//! The shape of images that are stored as raw pixels, side by side in one array.
//!
//! Runs in every process. Each image is a sample. It is read as a file of NumPy: its pixels after a
//! header that is made here. Not in this file: where the pixels are.

use crate::error::{FaultKind, SampleFault};
use crate::picture::npy;

/// Height, width and channels of each image of an array of `u8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PixelShape {
    height: u32,
    width: u32,
    /// 1 or 3.
    channels: u32,
}

impl PixelShape {
    /// The shape of these sides. None if no image has it.
    pub(crate) fn new([height, width, channels]: [u64; 3]) -> Option<Self> {
        let side = |n: u64| {
            u32::try_from(n)
                .ok()
                .filter(|_| (1..=npy::LONGEST).contains(&n))
        };
        Some(Self {
            height: side(height)?,
            width: side(width)?,
            channels: side(channels).filter(|n| matches!(n, 1 | 3))?,
        })
    }

    /// The number of images in an array of these sides, and their shape.
    ///
    /// # Errors
    /// Sides other than N x H x W or N x H x W x C. The text is the rest of a sentence about the
    /// array.
    pub(crate) fn of_array(sides: &[u64]) -> Result<(u64, Self), String> {
        let text: Vec<String> = sides.iter().map(u64::to_string).collect();
        let has = format!("has shape ({})", text.join(", "));
        let (count, shape) = match *sides {
            [_, 1 | 3, _, last] if !matches!(last, 1 | 3) => {
                return Err(format!(
                    "{has}, which looks like N x C x H x W: give N x H x W x C, such as \
                     array.transpose(0, 2, 3, 1)"
                ));
            }
            [_, _, 1 | 3] => {
                return Err(format!(
                    "{has}, which looks like one image of H x W x C: give N x H x W x C, such as \
                     array[None], or array[..., None] for narrow grey images"
                ));
            }
            [count, height, width] => (count, Self::new([height, width, 1])),
            [count, height, width, channels] => (count, Self::new([height, width, channels])),
            _ => (0, None),
        };
        let shape = shape.ok_or_else(|| {
            format!("{has}: give N x H x W, or N x H x W x C with 1 or 3 channels")
        })?;
        Ok((count, shape))
    }

    /// Height, width and channels.
    pub(crate) fn sides(self) -> [u32; 3] {
        [self.height, self.width, self.channels]
    }

    /// Bytes of the pixels of one image.
    pub(crate) fn bytes(self) -> u64 {
        self.sides()
            .iter()
            .map(|n| u64::from(*n))
            .fold(1, u64::saturating_mul)
    }

    /// Bytes of an image as a file of NumPy.
    pub(crate) fn file_bytes(self) -> u64 {
        self.bytes().saturating_add(npy::HEADER_BYTES as u64)
    }

    /// The header of an image as a file of NumPy.
    pub(crate) fn header(self) -> [u8; npy::HEADER_BYTES] {
        npy::header((self.height, self.width), self.channels)
    }

    /// Writes the image of these pixels to `out` as a file of NumPy.
    ///
    /// # Errors
    /// Another number of bytes than the shape has; no memory.
    pub(crate) fn write_file(self, pixels: &[u8], out: &mut Vec<u8>) -> Result<(), SampleFault> {
        if pixels.len() as u64 != self.bytes() {
            return Err(FaultKind::Corrupt.fault(format!(
                "has {} bytes of pixels, and its shape needs {}: make the index again",
                pixels.len(),
                self.bytes()
            )));
        }
        out.clear();
        out.try_reserve_exact(npy::HEADER_BYTES + pixels.len())
            .map_err(|_| FaultKind::Unreadable.fault("no memory for its pixels"))?;
        out.extend_from_slice(&self.header());
        out.extend_from_slice(pixels);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_arrays_are_images_or_errors() {
        let of = PixelShape::of_array;
        assert_eq!(of(&[9, 4, 5]).unwrap().1.sides(), [4, 5, 1]);
        assert_eq!(of(&[9, 4, 5, 3]).unwrap().1.sides(), [4, 5, 3]);
        // Three by three pixels are no order of channels.
        assert_eq!(
            of(&[9, 3, 3, 3]).unwrap(),
            (9, PixelShape::new([3, 3, 3]).unwrap())
        );
        assert_eq!(of(&[0, 4, 5]).unwrap().0, 0);
        for (sides, text) in [
            (
                &[9, 3, 32, 32][..],
                "(9, 3, 32, 32), which looks like N x C x H x W",
            ),
            (&[9, 1, 28, 28], "looks like N x C x H x W"),
            (&[32, 32, 3], "looks like one image"),
            (&[9, 32, 32, 4], "with 1 or 3 channels"),
            (&[9, 32], "(9, 32): give N x H x W"),
            (&[9, 0, 32, 3], "give N x H x W"),
            (&[9, 1 << 33, 32, 3], "give N x H x W"),
            (&[], "(): give"),
        ] {
            let e = of(sides).unwrap_err();
            assert!(e.contains(text), "{e}");
        }
    }

    #[test]
    fn an_image_is_a_file_of_numpy() {
        let shape = PixelShape::new([2, 1, 3]).unwrap();
        let mut file = vec![9; 3];
        shape.write_file(&[1, 2, 3, 4, 5, 6], &mut file).unwrap();
        assert_eq!(npy::pixels(&file).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(file.len() as u64, shape.file_bytes());
        let fault = shape.write_file(&[1, 2], &mut file).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
    }
}
