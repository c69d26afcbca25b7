//! The samples of a data set: their paths, labels and sizes.
//!
//! - [`index`]: paths, labels and class names, in sealed memory for all processes;
//! - [`columns`]: further values of samples, read where they lie; [`arrow`]: Arrow files;
//! - [`shard`]: tar shards as bytes;
//! - [`survey`]: the headers of all samples;
//! - [`packed_page`]: compressed pages of Parquet files, and images of CIFAR batches;
//! - `frame_header`: the memory that decoders of compressed frames keep;
//! - `pixel_shape`: the shape of images that are stored as raw pixels;
//! - [`objects`]: boxes, keypoints and outlines of all samples;
//! - [`annotations`]: files of annotations, read to such objects;
//! - [`sample_sizes`]: the upright size of every sample, in shared memory;
//! - `linked_folders`: folders that a scan reaches again through links.
//!
//! The consumer makes this data. The coordinator and the workers map the sealed memory. Not in this
//! folder: pixels, recipes, an order of samples, a thread that outlives a call.

pub mod annotations;
pub(crate) mod arrow;
pub mod columns;
pub(crate) mod frame_header;
pub mod index;
mod linked_folders;
pub mod objects;
pub(crate) mod packed_page;
pub(crate) mod pixel_shape;
pub(crate) mod sample_sizes;
pub(crate) mod shard;
pub mod survey;
