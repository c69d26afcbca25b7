//! One picture file: what format its bytes are in, what its header says, and
//! its pixels as 8-bit RGB.
//!
//! Used in workers, in the consumer with zero workers, and (headers only) where
//! a data set is surveyed. Knows files as bytes alone: no paths, no maps, no
//! slots, no recipes, no threads, and nothing of what is done to the pixels
//! afterwards. A file that is broken is a [`SampleFault`](crate::SampleFault),
//! never a panic.
//!
//! - `format`: sniffed from the content, never from a name;
//! - `orientation`: the eight EXIF orientations;
//! - `limits`: `max_pixels` and `max_scratch`;
//! - `jpeg`: headers, and decoding exactly the part that a crop needs;
//! - `raster`: every other format, as rows; `png` row by row;
//!   `webp`, `openexr`: what their decoders do not tell safely;
//! - `npy`: raw pixels, whose headers are read and written;
//! - `rgb8`: from the forms that pixels have in files to 8-bit RGB;
//! - `header`: the header of any format, for surveys.

pub(crate) mod format;
pub(crate) mod header;
pub(crate) mod jpeg;
mod limits;
pub(crate) mod npy;
mod openexr;
mod orientation;
mod png;
pub(crate) mod raster;
mod rgb8;
mod webp;

/// Which way up pictures are read: a recipe says it.
pub(crate) use crate::recipe::Upright;
pub use format::Format;
pub(crate) use limits::Limits;
pub(crate) use orientation::Orientation;

use crate::error::{FaultKind, SampleFault};
use crate::recipe::Background;

/// Buffers grow in steps of this many bytes, so that a run settles soon.
const GROWTH: usize = 256 << 10;

/// Makes `buffer` at least `len` bytes long, or says that there is no memory.
pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) -> Result<(), SampleFault> {
    if buffer.len() >= len {
        return Ok(());
    }
    let len = len.checked_next_multiple_of(GROWTH).unwrap_or(len);
    // Nothing of the content is needed: do not copy it.
    buffer.clear();
    buffer.try_reserve_exact(len).map_err(|_| {
        SampleFault::new(
            FaultKind::NoMemory,
            format!("no memory for {len} bytes of pixels"),
        )
    })?;
    buffer.resize(len, 0);
    Ok(())
}
