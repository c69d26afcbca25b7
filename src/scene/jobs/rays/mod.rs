//! Job: makes rays of a scene. One row holds the rays of one step.
//!
//! - `spec`: what a worker must know, and how the job is started;
//! - `fields`: the arrays of rays, and their layout in a row.
//!
//! The worker side, in workers and in the consumer with zero workers:
//! - `worker`: makes the rays of a step; `ray_tracer`: computes rays from pixels.
//!
//! The consumer side:
//! - `ray_tickets`: tickets and batches from workers; `batch`: one batch;
//! - `device_rays`: batches from a device; `kernel_scene`: a scene as the kernel reads it.
//!
//! Not here: how a scene is read, how processes live.

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
