//! Devices: which there are, and from slots of the ring to batches on one.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `choice`: where batches end, and how a device gets at pixels; `found`: which devices
//!   there are; `figures`: what a run has of one;
//! - `launch`, `ray_launch`, `view_launch`: what a launch is told, as the kernel reads it;
//!   `scene_launch`: what those of scenes are told alike;
//! - `coded_rows`: rows of coded JPEGs, and what becomes of them;
//! - `jpeg_part`: which coded pictures are decoded together, and the memory that takes;
//! - `shape`: what a stage is made for, and takes;
//! - `cuda/`: the driver, the pinned ring, the kernel, buffers, stages. It is always compiled:
//!   the driver's library is opened at run time, and only if a device is used.
//!
//! Never in here: workers, files, paths.

mod choice;
pub(crate) mod coded_rows;
pub(crate) mod crop_launch;
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
