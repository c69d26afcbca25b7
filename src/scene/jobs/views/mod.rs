//! Whole images of a scene: one row = one image of the store.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `shown`: with which camera an image is shown; `fields`: where its arrays lie in a row.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: from a step's number to its image; `straighten`: from where the pixels of a
//!   straight image come.
//!
//! The consumer side:
//! - `run`: tickets and views of workers; `view`: one view;
//! - `on_device`: views of a device; `queue`: which images come next.
//!
//! Never in here: how a scene is read, how processes live.

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
