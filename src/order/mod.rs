//! Which samples, in which order, with which random parameters.
//!
//! Pure: no I/O, no clock, no processes. Every question is answered from the
//! numbers of the question alone, in O(1) time and memory (samplers that draw by
//! labels, weights or sizes: nearly, see `sampler`), so no plan travels between
//! processes and a resume goes straight to its place. What such a sampler knows of
//! the data is a table in sealed shared memory, which does travel.
//!
//! In every process; a worker asks as the consumer does. Never in here: clocks, files,
//! private memory that grows with the data.
//!
//! - `options`, `length`, `tail`: what a plan follows from;
//! - `epoch`: batches and rows; `status`: what a row is;
//! - `sampler`: orders; `table`: what they know of the data;
//! - `permutation`, `random`, `key`: randomness by position;
//! - `state`: where a run stands; `place`: places that a caller names, and those between two
//!   batches.

pub(crate) mod key;
mod length;
mod options;
mod permutation;
mod plan;
mod position;
pub(crate) mod random;
mod row_status;
mod sampler;
mod state;
mod table;
mod tail;

pub use length::EpochLength;
pub use options::OrderOptions;
pub(crate) use permutation::KeyedPermutation;
pub use plan::{EpochPlan, RowPlan};
pub use position::{EpochMark, Position, Rank};
pub(crate) use random::PositionRandom;
pub use row_status::RowStatus;
pub use sampler::{IdentityProb, IdentityRatio, MultiScale, SampleWeights, Sampler};
pub(crate) use sampler::{identity_table, inverse_class_frequency, size_table, weight_table};
pub use state::State;
pub(crate) use table::SamplerTable;
pub use tail::EpochTail;
