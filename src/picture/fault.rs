//! Faults of files that cannot be read to their end.

use std::io::ErrorKind;

use crate::error::{FaultKind, SampleFault};

pub(super) fn unreadable(e: std::io::Error) -> SampleFault {
    let kind = match e.kind() {
        ErrorKind::UnexpectedEof => FaultKind::Truncated,
        _ => FaultKind::Unreadable,
    };
    SampleFault::new(kind, format!("cannot be read: {e}"))
}
