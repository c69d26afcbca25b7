//! What becomes of pictures that end too early.

use serde::{Deserialize, Serialize};

/// What becomes of a JPEG or PNG whose file ends before its pixels do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncationPolicy {
    /// It is a failed sample.
    #[default]
    Refuse,
    /// The pixels that are there are kept, as with Pillow's `LOAD_TRUNCATED_IMAGES`: the rest of
    /// a JPEG is grey, that of a PNG black or transparent. Such samples are counted.
    Keep,
}
