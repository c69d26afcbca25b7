//! What a worker does with one sample: from mapped bytes to an output row.
//!
//! Runs in the worker, and in the consumer when there are no workers.

pub(crate) mod emit;
pub(crate) mod resample;
