//! The slot ring: where rows of a batch are claimed, filled, committed and read.
//!
//! One memfd, mapped by consumer, coordinator and workers. Each file is one
//! part of the contract:
//!
//! - [`layout`]: which word and which byte lies where,
//! - [`ticket`]: the order to fill a slot, as numbers,
//! - [`row_word`]: the 64 bits that say what a row is and whose,
//! - [`attempt`]: which of the samples that may stand in a row is under way,
//! - [`receipt`]: what a final row says of how it ended,
//! - [`words`]: loads, stores, sleeps and wakes, as a trait, so that the model
//!   test can stand between any two of them,
//! - [`consumer_side`], [`worker_side`], [`coordinator_side`]: the protocol,
//!   one file for each kind of process, generic over the words,
//! - [`region`]: the mapped memory itself, rows as bytes,
//! - [`slots`]: the life of a slot in the consumer, as types.
//!
//! The package `featherload-model` (`model/`) runs the protocol in every order.
//!
//! Invariants: a row has at most one live owner, named in its word; only that
//! owner writes the row's bytes; only the consumer posts and frees slots. What
//! must never be here: images, recipes, descriptors other than the ring's own,
//! and messages - the data path has none.

pub(crate) mod attempt;
pub(crate) mod consumer_side;
pub(crate) mod coordinator_side;
pub(crate) mod layout;
pub(crate) mod receipt;
pub(crate) mod region;
pub(crate) mod row_word;
pub(crate) mod slots;
pub(crate) mod ticket;
pub(crate) mod words;
pub(crate) mod worker_side;

pub(crate) use layout::{RingLayout, RingShape};
pub(crate) use region::Ring;
