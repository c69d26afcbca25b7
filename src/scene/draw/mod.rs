//! Samples the pixels of rays, and the images of views.
//!
//! The pixel of a ray is an image, a row and a column. It is a pure function of (seed, step, rank,
//! ray) and of the scene's sampling table.
//!
//! Used in every process. The consumer builds the table and seals it. Workers map it and draw from
//! it. Draws are exact: none is rejected, and no image or pixel is left out. A step is an endless
//! sequence of rays, so the batch size may change from step to step.
//!
//! - `sampler`: how rays are distributed; `region`: which pixels of an image may be sampled;
//! - `mask_bits`: masks; `erosion`: positions in a mask where a patch fits;
//! - `table_builder`: builds a table; `table_format`: its bytes and checks; `table`: its queries;
//! - `random`: random numbers of a ray; `pixel`: the pixel that they select;
//! - `step_numbers`: a table and a step as plain numbers, for the device's kernel;
//! - `view_order`: the image of each step of views.
//!
//! Not here: pixels' colours, files, cameras.

mod mask_bits;
mod table_builder;

mod erosion;
mod pixel;
mod random;
mod region;
mod sampler;
mod step_numbers;
mod table;
mod table_format;
#[cfg(test)]
mod tests;
mod view_order;

pub(crate) use erosion::erode;
pub(crate) use mask_bits::{MaskBits, MaskView, mask_words};
pub use pixel::ScenePixel;
#[cfg(test)]
pub(crate) use pixel::WrongMask;
pub(crate) use region::{CropDisc, RegionShape, SamplingRegion};
pub use sampler::RaySampler;
pub(crate) use step_numbers::StepNumbers;
#[cfg(test)]
pub(crate) use table::RayStep;
pub(crate) use table::RayTable;
pub(crate) use table_builder::RayTableBuilder;
pub(crate) use view_order::ViewOrder;
