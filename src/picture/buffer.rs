//! Buffers that grow, and are used again for each picture.

use crate::error::{self, FaultKind, SampleFault};

/// Buffers grow in steps of this many bytes, so that their sizes soon stop changing.
const GROWTH: usize = 256 << 10;

/// Makes `buffer` at least `len` bytes long. The content may be lost.
///
/// # Errors
/// `NoMemory` if the allocation fails.
pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) -> Result<(), SampleFault> {
    if buffer.len() >= len {
        return Ok(());
    }
    let len = len.checked_next_multiple_of(GROWTH).unwrap_or(len);
    // The content is not needed: avoids a copy.
    buffer.clear();
    buffer.try_reserve_exact(len).map_err(|_| {
        FaultKind::NoMemory.fault(format!(
            "no memory for {} of pixels",
            error::size(len as u64)
        ))
    })?;
    buffer.resize(len, 0);
    Ok(())
}
