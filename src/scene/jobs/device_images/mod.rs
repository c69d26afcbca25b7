//! Pictures of a scene on their way to a device: one row = one image is in the store, or its coded
//! JPEG is in the row, for the device to decode.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `worker`: fills a row;
//! - `on_device`: images on their way to a device; `under_way`: those that are not ready;
//! - `kernel_numbers`: cameras and places of images, as the kernels there read them;
//! - `device_bytes`: the memory that all of it takes; `jpeg_decoding`: that of the decoder.
//!
//! Never in here: rays, views.

pub(crate) mod device_bytes;
pub(crate) mod image_uploads;
pub(crate) mod jpeg_decoding;
pub(crate) mod kernel_numbers;
mod pending_images;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
