//! A worker: it claims a row, calls its job to fill it, and commits it.
//!
//! - [`process`]: the loop of a worker process;
//! - [`attempts`]: tries the samples of one row in order, also without workers;
//! - [`meter`]: measures time by stage, also without workers;
//! - [`sigbus`]: turns a broken input map into one failed row.
//!
//! Never in here: a thread, CUDA, a channel.

pub(crate) mod attempts;
pub(crate) mod meter;
pub(crate) mod process;
pub(crate) mod sigbus;
