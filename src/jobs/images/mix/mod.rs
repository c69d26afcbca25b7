//! Mixes rows of a batch with each other, and their labels.
//!
//! In the consumer, on the CPU, in place, right before a batch is returned. A pure function of the
//! batch's bytes, its labels and its position in the epoch. So it is the same for any number of
//! workers, and if workers die. Never here: where batches come from, paths, threads.
//!
//! - `mixer`: one batch, from draw to labels;
//! - `draw`: the operation, the partners and the weights;
//! - `rows`: mixes pixels and labels of partners in place;
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
