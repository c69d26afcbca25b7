//! Pictures of a scene: one row = one image is in the store.
//!
//! For who reads the store elsewhere than in workers: on a device.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `worker`: sees to it that an image is in the store.
//!
//! Never in here: rays, devices.

pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
