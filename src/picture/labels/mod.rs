//! Label images: one number for each pixel, such as the class masks of a segmentation data set.
//!
//! Pure. The numbers are those of the file: the indices of a palette, or levels of grey. They are
//! never colours, and none is computed from another. A label has at most 24 bits. It is returned as
//! three bytes, lowest first, so code that moves pixels of RGB moves labels.
//!
//! - `reader`: a file of any format; `png`: PNG row by row, with all bit depths and palettes.

#[cfg(feature = "codecs")]
mod png;
#[cfg(feature = "codecs")]
mod reader;
#[cfg(all(test, feature = "codecs"))]
mod tests;

use serde::{Deserialize, Serialize};

#[cfg(feature = "codecs")]
pub(crate) use reader::LabelReader;

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
