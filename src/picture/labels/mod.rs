//! Label images: one number for each pixel, such as the class masks of a segmentation data set.
//!
//! Pure. The numbers are those of the file: the indices of a palette, or levels of grey. They are
//! never colours, and none is computed from another. A label has at most 24 bits. It is returned as
//! three bytes, lowest first, so code that moves pixels of RGB moves labels.
//!
//! - `label_form`: how files store labels, and how labels are returned;
//! - `label_check`: a check of labels;
//! - `reader`: a file of any format; `png`: PNG row by row, with all bit depths and palettes.

#[cfg(feature = "codecs")]
mod label_check;
mod label_form;
#[cfg(feature = "codecs")]
mod png;
#[cfg(feature = "codecs")]
mod reader;
#[cfg(all(test, feature = "codecs"))]
mod tests;

#[cfg(feature = "codecs")]
pub(crate) use label_check::LabelCheck;
pub use label_form::LabelForm;
pub(crate) use label_form::{LABEL, OUTSIDE};
#[cfg(feature = "codecs")]
pub(crate) use reader::LabelImageReader;
