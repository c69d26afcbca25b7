//! Memory plan of a run over the images of a scene.
//!
//! Runs in the consumer. Decodes no pixels and allocates none of the planned memory.
//!
//! - `memory`: the plan, with which `build` decides and which `plan` prints;
//! - `decode_bytes`: decoder memory, from the headers of images, depths and masks.

mod decode_bytes;
mod memory;

pub(crate) use decode_bytes::{ImageDecodeBytes, MaskDecodeBytes};
pub use memory::{
    ImageStorePlan, SceneDeviceMemory, SceneMemory, SceneMemoryPlan, SceneWorkerMemory,
};
pub(crate) use memory::{MaskMemoryInputs, SceneLimit, SceneMemoryInputs};
