//! Devices: which there are, and from slots of the ring to batches on one.
//!
//! In the consumer only: a worker has no CUDA, and the coordinator neither.
//!
//! - `choice`: where batches end, and how a device gets at pixels; `probe`: which
//!   devices there are; `found`: what is known of them; `figures`: what a run has of one;
//! - `launch`, `ray_launch`, `view_launch`: what a launch is told, as the kernel reads it;
//!   `scene_launch`: what those of scenes are told alike;
//! - `coded_rows`: rows of coded JPEGs, and what becomes of them;
//! - `jpeg_part`: which coded pictures are decoded together, and the memory that takes;
//! - `shape`: what a stage is made for, and takes;
//! - `reference`: the kernel's meaning, on the CPU;
//! - `cuda/`: the driver, the pinned ring, the kernel, buffers, stages. Without the
//!   feature `cuda` `without_cuda` stands in its place, and refuses.
//!
//! Never in here: workers, files, paths.

mod choice;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod coded_rows;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod figures;
mod found;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod jpeg_part;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod launch;
mod probe;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod ray_launch;
#[cfg(all(test, feature = "codecs"))]
pub(crate) mod reference;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod scene_launch;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod shape;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "most of it is for a device alone")
)]
pub(crate) mod view_launch;
#[cfg(not(feature = "cuda"))]
pub(crate) mod without_cuda;
#[cfg(not(feature = "cuda"))]
pub(crate) use without_cuda as cuda;

pub use choice::{DecodeOn, Device, Upload};
pub use cuda::{DeviceRows, RawStream};
pub use figures::{DeviceMemory, DeviceTimes, JpegTimes};
pub use found::{DeviceInfo, DeviceReport};
pub use probe::probe;
