//! Why objects of a sample cannot be used.

use std::fmt;

/// A value that objects cannot have. The caller adds the file and the key of the annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFault {
    /// `boxes`, `keypoints`, `polygons`, `counts`...
    pub field: String,
    /// What is wrong with the value, and what is allowed.
    pub reason: String,
}

impl TargetFault {
    pub(super) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for TargetFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl std::error::Error for TargetFault {}
