//! Job: brings the images of a scene to a device. A row holds a coded JPEG that the device decodes,
//! or states that the image is in the image store.
//!
//! - `spec`: what a worker must know, and how the job is started;
//! - `worker`: fills a row;
//! - `image_uploads`: uploads images; `pending_images`: images that are not ready yet;
//! - `kernel_numbers`: cameras and places of images, as the kernels read them;
//! - `device_bytes`: device memory of a run; `jpeg_decoding`: sizes of the JPEG decoder.
//!
//! Not here: rays, views.

pub(crate) mod device_bytes;
pub(crate) mod image_uploads;
pub(crate) mod jpeg_decoding;
pub(crate) mod kernel_numbers;
mod pending_images;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
