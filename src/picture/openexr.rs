//! How much an OpenEXR file makes its decoder hold.
//!
//! Pure. The size of the picture is that of its display window; what is decoded
//! is the data window, in blocks as large as their header says, before it is
//! clear whether the file has the pixels. So both are held to the limits.

use exr::meta::MetaData;

use super::limits::Limits;
use super::reader::Reader;
use crate::error::{FaultKind, SampleFault};

/// # Errors
/// A header that cannot be read, or a layer over the limits.
pub(super) fn check_layers(file: &mut Reader<'_>, limits: &Limits) -> Result<(), SampleFault> {
    let meta = MetaData::read_from_buffered(file, false).map_err(|e| {
        let kind = match &e {
            exr::error::Error::Io(_) => FaultKind::Truncated,
            exr::error::Error::NotSupported(_) => FaultKind::Unsupported,
            _ => FaultKind::Corrupt,
        };
        SampleFault::new(kind, format!("OpenEXR: {e}"))
    })?;
    for header in &meta.headers {
        let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let size = &header.layer_size;
        let size = (side(size.width()), side(size.height()));
        limits.check_pixels("OpenEXR data window", size)?;
        let pixels = u64::from(size.0) * u64::from(size.1);
        let layer = pixels.saturating_mul(header.channels.bytes_per_pixel as u64);
        limits.check_scratch("OpenEXR layer", layer)?;
    }
    Ok(())
}
