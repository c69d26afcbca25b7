//! Image store: decoded images that all workers and all ranks of a machine read. The first process
//! that needs an image decodes it, once for all.
//!
//! Created in the consumer, mapped by coordinator and workers. Treats images as numbers and bytes.
//! Not here: image decoding, reading of pixels' values, threads.
//!
//! - `layout`: byte range of each image;
//! - `content`: the bytes, in memory or in a file;
//! - `store`: which images are present, and which process decodes the others;
//! - `rendezvous`: how processes of a machine find the same store.

mod content;
mod layout;
mod rendezvous;
mod store;

pub(crate) use content::{MEMFD_NAME, StoreBacking, check_folder, default_folder};
pub(crate) use layout::StoreLayout;
pub(crate) use rendezvous::{StoreOffer, open_or_create};
pub(crate) use store::{ImageStore, WaitMode};
