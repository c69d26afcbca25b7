//! Error texts for faults of a file.

use crate::error::{FaultKind, SampleFault};

pub(super) fn corrupt(reason: impl std::fmt::Display) -> SampleFault {
    FaultKind::Corrupt.fault(format!("TIFF: {reason}"))
}

pub(super) fn truncated(reason: impl std::fmt::Display) -> SampleFault {
    FaultKind::Truncated.fault(format!("TIFF: {reason}"))
}

/// The text includes the fix: all programs can write a supported form.
pub(super) fn unsupported(what: impl std::fmt::Display) -> SampleFault {
    FaultKind::Unsupported.fault(format!(
        "TIFF with {what} is not decoded: write it with 8 bits a sample and LZW or Deflate"
    ))
}
