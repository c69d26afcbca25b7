//! What a header says of a picture, whatever its format.
//!
//! Pure.

use super::format::Format;
use super::orientation::{Orientation, Upright};
use super::pixel_box::PixelBox;
use crate::error::SampleFault;

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureHeader {
    pub(crate) format: Format,
    /// Width and height as stored, pixels.
    pub(crate) stored: (u32, u32),
    pub(crate) orientation: Orientation,
    pub(crate) decoding: Decoding,
    /// What counts as the picture, in the picture as it is to be looked at; none = all.
    pub(crate) part: Option<PixelBox>,
}

/// What decoding a picture takes, beside the pixels that are wanted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoding {
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
    pub(crate) fn read_as(self, upright: Upright) -> Self {
        Self {
            orientation: self.orientation.read_as(upright, self.format),
            ..self
        }
    }

    /// The same header of a sample that has this box. Its orientation is settled by now.
    ///
    /// # Errors
    /// A box that lies outside of the picture.
    pub(crate) fn boxed(self, part: Option<PixelBox>) -> Result<Self, SampleFault> {
        let (width, height) = self.orientation.apply_to_size(self.stored);
        let part = part.map(|part| part.within((height, width))).transpose()?;
        Ok(Self { part, ..self })
    }

    /// Width and height as the picture is to be looked at, or of its box.
    pub(crate) fn upright(&self) -> (u32, u32) {
        match self.part.map(PixelBox::size) {
            Some((height, width)) => (width, height),
            None => self.orientation.apply_to_size(self.stored),
        }
    }
}
