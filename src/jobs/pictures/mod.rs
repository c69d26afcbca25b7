//! Pictures of a scene: one row = one image is in the store.
//!
//! For who reads the store elsewhere than in workers: on a device.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `worker`: sees to it that an image is in the store;
//! - `on_device`: images on their way to a device; `kernel_numbers`: cameras and places of
//!   images, as the kernels there read them; `device_bytes`: what all of it takes.
//!
//! Never in here: rays, views.

pub(crate) mod device_bytes;
pub(crate) mod kernel_numbers;
pub(crate) mod on_device;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
