//! What a header says of a picture, whatever its format.
//!
//! Pure.

use super::file_format::FileFormat;
use super::orientation::{ExifOrientation, OrientationMode};
use super::pixel_box::PixelBox;
use crate::error::SampleFault;

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureHeader {
    pub(crate) format: FileFormat,
    /// Width and height as stored, pixels.
    pub(crate) stored_size: (u32, u32),
    pub(crate) orientation: ExifOrientation,
    pub(crate) cost: DecodeCost,
    /// What counts as the picture, in the picture as it is to be looked at; none = all.
    pub(crate) pixel_box: Option<PixelBox>,
}

/// What decoding a picture takes, beside the pixels that are wanted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeCost {
    /// Any part of it, at any scale.
    Jpeg {
        /// Bytes of coefficients, where a file has several scans.
        coefficients: u64,
        /// Decoded to four channels first.
        cmyk: bool,
    },
    /// Row by row, from the top.
    Rows {
        /// The most that its decoder takes, bytes.
        scratch: u64,
    },
    /// Not at all: its pixels lie in the file as RGB8.
    Raw,
}

impl PictureHeader {
    /// The same header as a recipe takes it that reads pictures this way up.
    pub(crate) fn in_mode(self, upright: OrientationMode) -> Self {
        Self {
            orientation: self.orientation.in_mode(upright, self.format),
            ..self
        }
    }

    /// The same header of a sample that has this box. Its orientation is settled by now.
    ///
    /// # Errors
    /// A box that lies outside of the picture.
    pub(crate) fn with_box(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let (width, height) = self.orientation.apply_to_size(self.stored_size);
        let part = part.map(|part| part.within((height, width))).transpose()?;
        Ok(Self {
            pixel_box: part,
            ..self
        })
    }

    /// Width and height as the picture is to be looked at, or of its box.
    pub(crate) fn upright_size(&self) -> (u32, u32) {
        match self.pixel_box.map(PixelBox::size) {
            Some((height, width)) => (width, height),
            None => self.orientation.apply_to_size(self.stored_size),
        }
    }
}
