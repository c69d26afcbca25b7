//! What a worker does with one sample: map the file, decode what is needed of
//! it, run the CPU operations, write the row.
//!
//! Runs in workers, and in the consumer when there are none.

#[cfg(feature = "codecs")]
pub(crate) mod jpeg;
