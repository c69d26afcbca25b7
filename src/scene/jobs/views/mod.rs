//! Job: makes whole images of a scene. One row holds one image of the image store.
//!
//! - `spec`: what a worker must know, and how the job is started;
//! - `output_camera`: the camera of a returned image; `fields`: its arrays and their layout in a
//!   row.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: makes the image of a step; `straightener`: source coordinates of a straightened
//!   image.
//!
//! The consumer side:
//! - `view_tickets`: tickets and views from workers; `view`: one view;
//! - `device_views`: views from a device; `image_queue`: order of the images to upload.
//!
//! Not here: how a scene is read, how processes live.

pub(crate) mod device_views;
pub(crate) mod fields;
pub(crate) mod image_queue;
pub(crate) mod output_camera;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
mod straightener;
pub(crate) mod view;
pub(crate) mod view_tickets;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
