//! The CUDA stages, which call the driver's library directly.
//!
//! - `driver`: version, devices and errors of the driver;
//! - `context`: the primary context, streams, events;
//! - `memory`: buffers of device and host, copies;
//! - `pinned_ring`: the ring, pinned for the device;
//! - `loaded_kernel`: kernels from PTX; `crop_kernel`: the crops kernel and its launch;
//! - `output_pool`, `device_rows`: memory of batches on the device, and its return;
//! - `stage_queue`, `crop_stage`, `crop_set_stage`: from a slot to a batch; `bounds`: the checks that the kernel
//!   relies on;
//! - `gpu_jpeg_decoder`: decodes JPEGs with our kernels; `jpeg_lane`: from coded rows to rows of a
//!   batch; `jpeg_redecode`: rows that the CPU decodes again; `jpeg_feeder`: sends rows to lanes;
//!   `jpeg_thread`: the thread that does so;
//! - `scene_stage`: images of a scene on the device; `ray_stage`: batches of its rays;
//!   `view_stage`: whole images; `upload_stream`: copies of images to the device; `mapped_memory`:
//!   images that are read in place; `image_decoder`: JPEGs that the device decodes to their places.
//!
//! The binding's safe layer is not used. It forgets that a copy from registered memory continues
//! after the borrow. It also leaves its context current in the caller's thread, and returns errors
//! of drops to a later caller.

mod bounds;
mod context;
mod crop_kernel;
mod crop_set_stage;
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
pub(crate) use crop_set_stage::CropSetStage;
pub(crate) use crop_stage::{BatchTarget, CropStage};
pub use device_rows::DeviceRows;
pub use driver::probe;
pub(crate) use jpeg_thread::JpegThread;
pub(crate) use ray_stage::RayStage;
pub(crate) use scene_stage::{SceneStage, SceneStageSize};
pub(crate) use stage_queue::RowsStage;
pub(crate) use view_stage::ViewStage;
