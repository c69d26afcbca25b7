//! Instance masks: polygons and run lengths, bit by bit as pycocotools 2.0.11.
//!
//! A mask is stored column by column, as COCO does. Sizes and counts come from annotations, so
//! nothing is allocated before they are checked.
//!
//! - `run_lengths`: masks as lengths of runs; `run_text`: their compressed text;
//! - `polygon`: the pixels of polygons; `column_mask`: the bits of a mask;
//! - `bit_mask`: the bits of a mask within a rectangle, row by row.

mod bit_mask;
mod column_mask;
mod polygon;
mod run_lengths;
mod run_text;

pub(crate) use bit_mask::BitMask;
pub use polygon::{MaskScale, PolygonLimits, mask_of_polygons};
pub use run_lengths::{MAX_MASK_PIXELS, RunLengths};
