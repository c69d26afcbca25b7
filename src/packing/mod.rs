//! Where the rows of a batch lie in their slot.
//!
//! Used in the consumer and in workers, and the same in each: places follow from plan, recipe and picture sizes alone, so nobody allocates
//! room for a row, no message tells of one, and a row that is redone lies where
//! it lay. Never in here: pixels, the ring's words, threads.
//!
//! ```text
//! equal rows       row 0 | row 1 | row 2 | ...
//!
//! own sizes        descriptors | row 0 .. | row 1 ....... | row 2 . | ...
//!                  32 bytes each            each row from a multiple of 64
//! ```
//!
//! Equal rows are equal within a batch: where sizes take turns, each batch has its
//! own, and a slot holds the largest batch.
//!
//! - `crop`: what is in a row that a device makes a row of;
//! - `descriptor`: what the table says of a row;
//! - `encoding`: how pictures are encoded and resized for a cache; `payload`,
//!   `rooms`: its rows while it is built: what is in them, where they lie;
//! - `sizes`: the upright size of every sample, in shared memory;
//! - `rows`: from batch and row to bytes of the slot, and the bound over all
//!   batches.

pub(crate) mod crop;
mod descriptor;
pub(crate) mod encoding;
pub(crate) mod payload;
pub(crate) mod rooms;
mod rows;
mod sizes;

pub use descriptor::RowDescriptor;
pub(crate) use rows::{PackedBatch, Packing};
pub(crate) use sizes::Sizes;
