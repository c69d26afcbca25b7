//! What is wrong with a file, in words.

use crate::error::{FaultKind, SampleFault};

pub(super) fn corrupt(reason: impl std::fmt::Display) -> SampleFault {
    FaultKind::Corrupt.fault(format!("TIFF: {reason}"))
}

pub(super) fn truncated(reason: impl std::fmt::Display) -> SampleFault {
    FaultKind::Truncated.fault(format!("TIFF: {reason}"))
}

/// With the fix: programs write every picture in a form that is read.
pub(super) fn unsupported(what: impl std::fmt::Display) -> SampleFault {
    FaultKind::Unsupported.fault(format!(
        "TIFF with {what} is not decoded: write it with 8 bits a sample and LZW or Deflate"
    ))
}
