//! The fault of a raster that does not fit its image.

use crate::error::{FaultKind, SampleFault};

/// The fault of a raster whose size is not `wanted`. Both are heights and widths.
pub(super) fn size_fault(found: (u32, u32), image: (u32, u32), scale: u32) -> SampleFault {
    let must = match scale {
        1 => "both must have one size".to_owned(),
        _ => format!("the raster must be {scale} times larger"),
    };
    let advice = match (found.1, found.0) == image && found != image {
        true => {
            ". Rasters of numbers are used as stored: if this one was made for the image as \
             stored, use orientation 'stored', and if for the upright image, 'exif'"
        }
        false => "",
    };
    FaultKind::Unsupported.fault(format!(
        "the raster has {} x {} pixels, and its image {} x {}: {must}{advice}",
        found.1, found.0, image.1, image.0
    ))
}
