//! Tests of more than one operation: pixels beside those of other libraries.

mod colour_goldens;
pub(crate) mod rounding;
mod shape_goldens;
mod torchvision_goldens;
