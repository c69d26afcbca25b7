//! Which pixel a ray looks through, and which image a view shows.
//!
//! The pixel of a ray is image, row and column: a pure function of (seed, step, rank, ray) and of
//! a table of the scene.
//!
//! In every process. The consumer makes the table and seals it; workers map it and ask.
//! Exact by counting: no draw is thrown away, no image or pixel is left out. A step has
//! rays without end, so the size of a batch may change from step to step.
//!
//! - `sampler`: how rays are spread; `region`: what of an image may be sampled;
//! - `bits`: masks; `erode`: where in them a patch has room;
//! - `build`: making a table; `form`: its bytes, and their check; `table`: what it knows;
//! - `random`: the numbers of a ray; `pixel`: the pixel that they lead to;
//! - `numbers`: a table and a step as plain numbers, for the kernel of a device;
//! - `view_order`: the image of each step of views.
//!
//! Never in here: pixels' colours, files, cameras.

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
pub(crate) use region::{CropDisc, PixelRegion, RegionShape};
pub use sampler::RaySampler;
pub(crate) use step_numbers::StepNumbers;
#[cfg(test)]
pub(crate) use table::RayStep;
pub(crate) use table::RayTable;
pub(crate) use table_builder::RayTableBuilder;
pub(crate) use view_order::ViewOrder;
