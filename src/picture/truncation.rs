//! How truncated images are handled.

use serde::{Deserialize, Serialize};

/// How a JPEG or PNG is handled whose file ends before its pixels do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncationPolicy {
    /// It is a failed sample.
    #[default]
    Refuse,
    /// Keeps the existing pixels, as with Pillow's `LOAD_TRUNCATED_IMAGES`. The rest of a JPEG is
    /// grey. The rest of a PNG is black or transparent. Such samples are counted.
    Keep,
}
