//! Kinds of work on the images of a scene, each a folder.
//!
//! - [`rays`]: one row = the rays of one step; [`views`]: one row = one image of a scene;
//! - [`masks`]: one row = the bits of one mask; [`pictures`]: one row = one image is in its store;
//! - [`shared`]: what they have in common;
//! - `kinds`: the list of all.
//!
//! A kind has its spec, its rows, a worker side and a consumer side, as those of images have
//! (`jobs`). Never in here: how processes live, which process may claim a row.

pub(crate) mod device_images;
pub(crate) mod kinds;
pub(crate) mod masks;
pub(crate) mod rays;
pub(crate) mod shared;
pub(crate) mod views;
