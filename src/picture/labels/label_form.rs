//! How files store labels, and how labels are returned.

use serde::{Deserialize, Serialize};

/// Bytes of a label.
pub(crate) const LABEL: usize = 3;

/// The label of pixels outside of an image. No file has it.
pub(crate) const OUTSIDE: [u8; LABEL] = [0xff; LABEL];

/// How a file stores labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelForm {
    /// One number for each pixel: an index of a palette, or a level of grey.
    #[default]
    Numbers,
    /// A colour for each pixel: `red + 256 * green + 65536 * blue`, as in COCO's panoptic images.
    Colors,
}
