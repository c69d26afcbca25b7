//! Rays of a scene: one row = the rays of one step.
//!
//! - `spec`: what a worker must know, and how the job is ordered;
//! - `fields`: what is known of a ray, and where it lies in a row.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: from a step's number to its rays; `trace`: from pixels to rays.
//!
//! The consumer side:
//! - `run`: tickets and batches of workers; `batch`: one batch;
//! - `on_device`: batches of a device; `kernel_scene`: a scene in its kernel's numbers.
//!
//! Never in here: how a scene is read, how processes live.

pub(crate) mod batch;
pub(crate) mod device_rays;
pub(crate) mod fields;
pub(crate) mod kernel_scene;
pub(crate) mod ray_tickets;
#[cfg(feature = "codecs")]
mod ray_tracer;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
