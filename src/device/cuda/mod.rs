//! The CUDA stages, driven through the driver's own library.
//!
//! - `driver`: is there one, which devices, what its refusals mean;
//! - `context`: the primary context, streams, events;
//! - `memory`: buffers of device and host, copies;
//! - `pinned`: the ring, for the device to read;
//! - `module`: a kernel, loaded; `kernel`: that of crops and its launch;
//! - `outputs`, `rows`: batches on the device, and their way back;
//! - `stage`, `crop_stage`: from a slot to a batch; `bounds` what the kernel relies on;
//! - `jpeg_stage`: JPEGs decoded by our own kernels; `jpeg_lane`: from coded rows to rows of a
//!   batch; `jpeg_again`: those that the CPU decodes again; `jpeg_feeder`: which batches' rows,
//!   and when; `jpeg_thread`: who waits for them;
//! - `scene_stage`: images of a scene on the device; `ray_stage`: batches of its rays;
//!   `view_stage`: whole images; `uploads`: pictures on their way there; `mapped`: those that
//!   are read where they are; `image_decoder`: JPEGs that the device decodes to their places.
//!
//! The safe layer of the binding is not used: it forgets that a copy out of
//! registered memory goes on behind the borrow, leaves its context current in the
//! caller's thread, and keeps errors of drops for whoever calls next.

mod bounds;
mod context;
mod crop_kernel;
mod crop_stage;
mod device_rows;
mod driver;
mod gpu_jpeg_decoder;
mod image_decoder;
mod jpeg_feeder;
mod jpeg_lane;
mod jpeg_redecode;
mod jpeg_thread;
mod loaded_kernel;
mod mapped_memory;
mod memory;
mod output_pool;
mod pinned_ring;
mod ray_stage;
mod scene_stage;
mod stage_queue;
mod upload_stream;
mod view_stage;

#[cfg(test)]
mod gpu_crop_tests;
#[cfg(test)]
mod gpu_failure_tests;
#[cfg(test)]
mod gpu_jpeg_tests;
#[cfg(test)]
mod gpu_tests;
#[cfg(test)]
mod jpeg_thread_tests;
#[cfg(test)]
mod standin_tests;
#[cfg(test)]
mod tests;

pub(crate) use context::CudaContext;
pub use context::RawStream;
pub(crate) use crop_stage::{BatchTarget, CropStage};
pub use device_rows::DeviceRows;
pub use driver::probe;
pub(crate) use jpeg_thread::JpegThread;
pub(crate) use ray_stage::RayStage;
pub(crate) use scene_stage::{SceneStage, SceneStageSize};
pub(crate) use stage_queue::RowsStage;
pub(crate) use view_stage::ViewStage;
