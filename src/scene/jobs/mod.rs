//! Jobs of the pool on the images of a scene, one folder each.
//!
//! - [`rays`]: a row holds the rays of one step; [`views`]: a row holds one image of a scene;
//! - [`masks`]: a row holds the bits of one mask;
//! - [`device_images`]: a row holds one image for a device, or marks it as ready in the image
//!   store;
//! - [`shared`]: code that several jobs use;
//! - `kinds`: the list of all kinds.
//!
//! Each job has a spec, a row format, a worker side and a consumer side, like the jobs on images
//! (`jobs`). Not here: processes, and which process claims which row.

pub(crate) mod device_images;
pub(crate) mod kinds;
pub(crate) mod masks;
pub(crate) mod rays;
pub(crate) mod shared;
pub(crate) mod views;
