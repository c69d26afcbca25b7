//! Devices: a list of them, and the path from slots of the ring to batches on a device.
//!
//! In the consumer only: workers and coordinator do not use CUDA.
//!
//! - `choice`: the user's choices; `device_info`: information about devices; `usage`: memory and
//!   times of a run on a device;
//! - `crop_launch`, `crop_set_launch`, `ray_launch`, `view_launch`: arguments of launches, as the
//!   kernels read them; `scene_launch`: arguments that the scene kernels share;
//! - `coded_rows`: rows of coded JPEGs, and their results;
//! - `jpeg_part`: images that are decoded together, and the memory for it;
//! - `stage_shapes`: sizes of the stages, and their memory;
//! - `cuda/`: the driver, the pinned ring, kernels, buffers, stages. Always compiled: the driver's
//!   library is opened at run time, and only if a device is used.
//!
//! Never in here: workers, files, paths.

mod choice;
pub(crate) mod coded_rows;
pub(crate) mod crop_launch;
pub(crate) mod crop_set_launch;
pub(crate) mod cuda;
mod device_info;
pub(crate) mod jpeg_part;
pub(crate) mod ray_launch;
pub(crate) mod scene_launch;
pub(crate) mod stage_shapes;
#[cfg(test)]
pub(crate) mod tests;
mod usage;
pub(crate) mod view_launch;

pub use choice::{DecodeOn, Device, UploadMode};
pub use cuda::{DeviceRows, RawStream, probe};
pub use device_info::{DeviceInfo, DeviceReport};
pub use usage::{DeviceMemory, DeviceTimes, JpegTimes};
