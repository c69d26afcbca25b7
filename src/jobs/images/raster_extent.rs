//! Where the rasters of a batch lie in its memory.

use crate::jobs::raster_section::RasterSection;

/// Where one raster of a batch lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchRaster {
    pub(crate) section: RasterSection,
    /// Offset of the first row's raster in the bytes of the batch.
    pub(crate) start: usize,
}

impl From<(RasterSection, usize)> for BatchRaster {
    fn from((section, start): (RasterSection, usize)) -> Self {
        Self { section, start }
    }
}
