//! The slot ring: shared memory in which rows of batches are claimed, filled, committed and read.
//!
//! One memfd, mapped by consumer, coordinator and workers:
//!
//! - [`layout`]: position of every word and byte,
//! - [`ticket`]: the order to fill a slot, as numbers,
//! - [`row_word`]: 64 bits with state, owner and ticket of a row,
//! - [`attempt`]: the current attempt at a row,
//! - [`receipt`]: confirms how a final row ended,
//! - [`words`]: loads, stores, sleeps and wakes as a trait, so that the model test can act between
//!   any two of them,
//! - [`consumer_side`], [`worker_side`], [`coordinator_side`]: the protocol, one file per kind of
//!   process, generic over the words,
//! - [`region`]: the mapped memory, rows as bytes,
//! - [`slots`]: the states of a slot in the consumer, as types.
//!
//! The package `featherload-model` (`model/`) runs the protocol in every order.
//!
//! Invariants: a row has at most one live owner, which its word names. Only that owner writes the
//! row's bytes. Only the consumer posts and frees slots. Never in here: images, recipes,
//! descriptors other than the ring's own, and messages.

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
