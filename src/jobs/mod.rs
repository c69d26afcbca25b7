//! The kinds of jobs on images: each has a folder and one line in `kinds`.
//!
//! - [`images`]: one row = one sample of a batch;
//! - [`encode`]: one row = one sample's payload in a cache;
//! - [`kinds`]: the list of all kinds, for building a job by its name.
//!
//! A kind has its spec, its rows, a worker side and a consumer side. They share:
//! - `sample`: from a file's bytes to a row; `sample_input`: the bytes of one sample;
//!   `open_shards`: the shards that a worker has open; `stages`: the stages that are counted;
//!   `readable_files`: the files that workers open; `mask_rule`: the numbers of masks;
//!   `raster_rule`: what rasters are, masks among them; `raster_section`: their bytes in a batch;
//!   `object_rule`: which objects a batch has; `object_mover`: how they move with their image;
//!   `object_record`: objects as bytes of a row; `stage_needs`: the labels of joined samples;
//!   `rule_fields`: fields of rules, for options and caches; `caption_rule`: which caption a row
//!   gets; `caption_steps`: its steps;
//!   `picture_window`: the memory that keeps the pictures of joined samples;
//! - `item_feed`: samples whose bytes the caller gives while the run goes on; `handed_items`: the
//!   memory in which workers read them.
//!
//! `decode_ceiling` is not a job: it measures the decoder alone.
//!
//! The worker side runs in workers, and in the consumer with zero workers or for images that a
//! device flags. It starts no thread and does not use CUDA. The consumer side makes batches and
//! payloads from slots. Never in here: the life of processes, which process claims a row.

pub(crate) mod caption_rule;
mod caption_steps;
#[cfg(feature = "codecs")]
pub(crate) mod decode_ceiling;
pub(crate) mod encode;
pub(crate) mod handed_items;
pub mod images;
pub(crate) mod item_feed;
pub(crate) mod kinds;
pub(crate) mod mask_rule;
pub(crate) mod object_mover;
pub(crate) mod object_record;
pub(crate) mod object_rule;
pub(crate) mod open_shards;
pub(crate) mod picture_window;
pub(crate) mod raster_rule;
pub(crate) mod raster_section;
mod readable_files;
pub(crate) mod rule_fields;
#[cfg(feature = "codecs")]
pub(crate) mod sample;
#[cfg(feature = "codecs")]
pub(crate) mod sample_input;
pub(crate) mod stage_needs;
pub(crate) mod stages;
