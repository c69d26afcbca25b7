//! Which samples, in which order, with which random parameters.
//!
//! Pure: no I/O, no clock, no processes. Every question is answered from the
//! numbers of the question alone, in O(1) time and memory (samplers that draw by
//! labels, weights or sizes: nearly, see `sampler`), so no plan travels between
//! processes and a resume goes straight to its place. What such a sampler knows of
//! the data is a table in sealed shared memory, which does travel.
//!
//! - `options`: what a plan follows from;
//! - `epoch`: batches and rows;
//! - `sampler`: orders; `table`: what they know of the data;
//! - `permutation`, `random`, `key`: randomness by position;
//! - `state`: where a run stands.

mod epoch;
mod key;
mod options;
mod permutation;
mod random;
mod sampler;
mod state;
mod table;

pub use epoch::{Plan, RowPlan, RowStatus};
pub use options::{PlanOptions, Tail};
pub(crate) use permutation::Permutation;
pub(crate) use random::PositionRandom;
pub use sampler::{IdentityProb, MultiScale, Sampler, Weights};
pub(crate) use sampler::{by_identity, by_size, by_weight, inverse_class_frequency};
pub use state::State;
pub(crate) use table::SamplerTable;
