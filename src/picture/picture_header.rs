//! The contents of an image's header, for every format.
//!
//! Pure.

use super::file_format::FileFormat;
use super::orientation::{ExifOrientation, OrientationMode};
use super::pixel_box::PixelBox;
use crate::error::SampleFault;

/// The facts in a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureHeader {
    pub(crate) format: FileFormat,
    /// Width and height as stored, in pixels.
    pub(crate) stored_size: (u32, u32),
    pub(crate) orientation: ExifOrientation,
    pub(crate) cost: DecodeCost,
    /// The part that is used as the whole image, in oriented coordinates; `None` = all.
    pub(crate) pixel_box: Option<PixelBox>,
}

/// Cost of decoding an image, besides the decoded pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeCost {
    /// Any region, at any scale.
    Jpeg {
        /// Bytes of coefficients, for a file of several scans.
        coefficients: u64,
        /// Decoded to four channels first.
        cmyk: bool,
    },
    /// Row by row, from the top.
    Rows {
        /// Maximum bytes that its decoder uses.
        scratch: u64,
    },
    /// No decoding: the file holds its pixels as RGB8.
    Raw,
}

impl PictureHeader {
    /// The same header, with the orientation to apply in this mode.
    pub(crate) fn in_mode(self, upright: OrientationMode) -> Self {
        Self {
            orientation: self.orientation.in_mode(upright, self.format),
            ..self
        }
    }

    /// The same header for a sample that has this box. The orientation must be final.
    ///
    /// # Errors
    /// A box outside the image.
    pub(crate) fn with_box(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let (width, height) = self.orientation.apply_to_size(self.stored_size);
        let part = part.map(|part| part.within((height, width))).transpose()?;
        Ok(Self {
            pixel_box: part,
            ..self
        })
    }

    /// Width and height of the oriented image, or of its box.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        match self.pixel_box.map(PixelBox::size) {
            Some((height, width)) => (width, height),
            None => self.orientation.apply_to_size(self.stored_size),
        }
    }
}
