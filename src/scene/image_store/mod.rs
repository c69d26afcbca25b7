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
mod layout;
mod rendezvous;
mod store;

pub(crate) use content::{MEMFD_NAME, StoreBacking, check_folder, default_folder};
pub(crate) use layout::StoreLayout;
pub(crate) use rendezvous::{StoreOffer, open_or_create};
pub(crate) use store::{ImageStore, WaitMode};
