//! A worker's life: it claims a row, has its job fill it, and commits it.
//!
//! - [`process`] is that life, in worker processes alone;
//! - [`attempts`] tries one row's samples in order, also in the consumer with zero
//!   workers;
//! - [`meter`] counts where time goes, also in the consumer with zero workers;
//! - [`sigbus`] makes a broken input map one failed row.
//!
//! Never in here: a thread, CUDA, a channel.

pub(crate) mod attempts;
pub(crate) mod meter;
pub(crate) mod process;
pub(crate) mod sigbus;
