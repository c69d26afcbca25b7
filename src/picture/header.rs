//! The header of any picture: format, size and orientation, without decoding a
//! pixel.
//!
//! Used where a data set is surveyed, and by nobody on the data path.

use std::io::{BufRead, Seek};

use super::format::Format;
use super::orientation::Orientation;
use crate::error::SampleFault;

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureHeader {
    pub(crate) format: Format,
    /// Width and height as stored, pixels.
    pub(crate) stored: (u32, u32),
    pub(crate) orientation: Orientation,
}

impl PictureHeader {
    /// Width and height as the picture is to be looked at.
    pub(crate) fn upright(&self) -> (u32, u32) {
        self.orientation.apply_to_size(self.stored)
    }
}

/// Reads the header of a file, and no more of it than that takes.
pub(crate) fn read_header(
    _file: &mut (impl BufRead + Seek),
) -> Result<PictureHeader, SampleFault> {
    todo!()
}
