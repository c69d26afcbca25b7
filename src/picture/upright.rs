//! Which way up pictures are read.

use serde::{Deserialize, Serialize};

/// Which way up a picture is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Upright {
    /// As its EXIF orientation says.
    #[default]
    Exif,
    /// As it is stored, which is how Pillow opens it: of all formats Pillow turns TIFF alone,
    /// and so does this.
    Stored,
}
