//! Decoded pictures that all workers and all ranks of a machine read: each is decoded
//! once, by whoever needs it first.
//!
//! Made in the consumer, mapped by coordinator and workers. Knows pictures as numbers and
//! bytes. Never in here: how a picture is decoded, what is read out of it, threads.
//!
//! - `places`: where each picture lies;
//! - `content`: the bytes, in memory or in a file;
//! - `pictures`: which pictures are there, and who makes the others;
//! - `meeting`: how processes of a machine find the same store.

mod content;
mod meeting;
mod pictures;
mod places;

pub(crate) use content::{Holding, MEMFD_NAME, check_folder, default_folder};
pub(crate) use meeting::{Presence, meet};
pub(crate) use pictures::{Patience, Pictures};
pub(crate) use places::Places;
