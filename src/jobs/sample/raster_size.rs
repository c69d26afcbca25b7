//! The size of a raster in its file, and the fault of one that does not fit its image.

use std::io::Cursor;

use crate::error::{FaultKind, SampleFault};
use crate::jobs::raster_rule::RasterRule;
use crate::picture::labels::LabelImageReader;
use crate::picture::read_header::read_header_within;
use crate::picture::{PictureLimits, depth, flow};

/// Height and width of the raster in a file with these bytes. An image is upright.
///
/// # Errors
/// A header that is broken, or of another kind.
pub(crate) fn stored_size(
    rule: &RasterRule,
    bytes: &[u8],
    limits: &PictureLimits,
) -> Result<(u32, u32), SampleFault> {
    let mut file = Cursor::new(bytes);
    let (width, height) = match rule {
        RasterRule::Mask(rule) => LabelImageReader::open(bytes, rule.form, limits)?.size(),
        RasterRule::Numbers(_) => {
            let read = depth::size_and_bytes(&mut file, limits);
            read.map_err(of_raster)?.0
        }
        RasterRule::Flow(_) => flow::size_and_bytes(bytes, limits)?.0,
        RasterRule::Image(_) => read_header_within(&mut file, limits)?.upright_size(),
    };
    Ok((height, width))
}

/// A fault of a depth image, for any raster of numbers.
pub(super) fn of_raster(fault: SampleFault) -> SampleFault {
    let reason = fault.reason.replace("the depth", "the raster");
    SampleFault::new(
        fault.kind,
        reason.replace("a depth image", "a raster of numbers"),
    )
}

/// The fault of a raster whose size is not `wanted`. Both are heights and widths.
pub(crate) fn size_fault(found: (u32, u32), image: (u32, u32), scale: u32) -> SampleFault {
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
