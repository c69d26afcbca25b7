//! What is wrong with a file, in words.

use crate::error::{FaultKind, SampleFault};

pub(super) fn corrupt(reason: impl std::fmt::Display) -> SampleFault {
    SampleFault::new(FaultKind::Corrupt, format!("TIFF: {reason}"))
}

pub(super) fn truncated(reason: impl std::fmt::Display) -> SampleFault {
    SampleFault::new(FaultKind::Truncated, format!("TIFF: {reason}"))
}

/// With the fix: programs write every picture in a form that is read.
pub(super) fn unsupported(what: impl std::fmt::Display) -> SampleFault {
    SampleFault::new(
        FaultKind::Unsupported,
        format!(
            "TIFF with {what} is not decoded: write it with 8 bits a sample and LZW or Deflate"
        ),
    )
}
