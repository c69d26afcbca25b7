//! Images: one row of a batch = one sample.
//!
//! - `spec`: what a worker needs, and how the job is ordered;
//! - `packing`: which bytes of a slot belong to which row; `crop_sections`: the same for samples
//!   with several crops; `object_section`: for objects.
//!
//! The worker side, in workers, and in the consumer with zero workers or for images that a device
//! flags:
//! - `worker`: fills the row of a position in the epoch.
//!
//! The consumer side:
//! - `device_pool`, `device_batches`: batches on a device; `jpeg_batches`, `coded_batch`: with
//!   JPEGs that the device decodes; `replay`: measures the device stage alone;
//! - `run`: from filled rows to a batch; `mix`, `batch_mixing`: mixes the rows of batches;
//! - `size_condition`: how images were cropped to their buckets; `patch_rows`: the patches of rows;
//! - `on_error`: what happens to a row whose sample fails; [`batch`], `pixel_views`,
//!   `crop_views`, `raster_views`: batches and views of their pixels; `crop_extents`: the crops of a
//!   batch;
//!   `raster_extent`: its masks and other rasters; [`objects`], `instance_mask_views`: its objects
//!   and their masks; `captions`: its captions.
//!
//! Never in here: the life of processes, how a file's bytes become a row (`jobs::sample`).

pub mod batch;
pub(crate) mod batch_mixing;
pub(crate) mod captions;
pub(crate) mod coded_batch;
pub(crate) mod crop_extents;
pub(crate) mod crop_sections;
pub(crate) mod crop_views;
pub(crate) mod device_batches;
pub(crate) mod device_pool;
pub(crate) mod instance_mask_views;
pub(crate) mod jpeg_batches;
pub(crate) mod mix;
pub(crate) mod object_section;
pub mod objects;
pub(crate) mod on_error;
pub(crate) mod packing;
pub(crate) mod patch_rows;
pub(crate) mod pixel_views;
pub(crate) mod raster_extent;
pub(crate) mod raster_views;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod size_condition;
pub(crate) mod spec;
#[cfg(feature = "codecs")]
pub(crate) mod worker;
