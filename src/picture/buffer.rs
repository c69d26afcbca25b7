//! Buffers that are kept from picture to picture, and grow.

use crate::error::{self, FaultKind, SampleFault};

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
        FaultKind::NoMemory.fault(format!(
            "no memory for {} of pixels",
            error::size(len as u64)
        ))
    })?;
    buffer.resize(len, 0);
    Ok(())
}
