//! What a run over the images of a scene takes, before it.
//!
//! In the consumer. Nothing here decodes a pixel, or allocates what it speaks of.
//!
//! - `memory`: what `build` decides by, and what a plan prints;
//! - `files`: what the headers of images, depths and masks say.

mod decode_bytes;
mod memory;

pub(crate) use decode_bytes::{ImageDecodeBytes, MaskDecodeBytes};
pub use memory::{
    ImageStorePlan, SceneDeviceMemory, SceneMemory, SceneMemoryPlan, SceneWorkerMemory,
};
pub(crate) use memory::{MaskMemoryInputs, SceneLimit, SceneMemoryInputs};
