//! Batches whose rows are mixed with each other, and their labels with them.
//!
//! In the consumer, on the CPU, in place, right before a batch is handed over: a
//! pure function of the batch's bytes, its labels and the random numbers of its
//! place in the epoch, so it is the same for any number of workers and through
//! every death. Never here: where batches come from, what their paths are, threads.
//!
//! - `mixer`: one batch, from draw to labels;
//! - `draw`: which operation, who is whose partner, how much of each;
//! - `rows`: what the rows are; pixels and labels of partners, in place;
//! - `mask`: masks of low frequencies;
//! - `labels`: from classes to vectors.

mod draw;
mod labels;
mod mask;
mod mixer;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use labels::one_hot;
pub(crate) use mixer::{BatchMixer, check_vectors, mixing_bytes};
pub(crate) use rows::RowShape;
