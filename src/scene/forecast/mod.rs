//! What a run over the images of a scene takes, before it.
//!
//! In the consumer. Nothing here decodes a pixel, or allocates what it speaks of.
//!
//! - `memory`: what `build` decides by, and what a plan prints;
//! - `files`: what the headers of images, depths and masks say.

mod files;
mod memory;

pub(crate) use files::{ImageFiles, MaskFiles};
pub(crate) use memory::{MaskIngredients, SceneIngredients, SceneLimit};
pub use memory::{SceneDeviceMemory, SceneForecast, SceneMemory, SceneWorkerMemory, StoreForecast};
