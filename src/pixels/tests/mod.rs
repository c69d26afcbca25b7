//! Tests of several operations: pixels compared with other libraries.

mod colour_goldens;
pub(crate) mod rounding;
mod shape_goldens;
mod torchvision_goldens;
