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

mod epoch;
pub(crate) mod key;
mod length;
mod options;
mod permutation;
mod place;
pub(crate) mod random;
mod sampler;
mod state;
mod status;
mod table;
mod tail;

pub use epoch::{Plan, RowPlan};
pub use length::EpochLength;
pub use options::PlanOptions;
pub(crate) use permutation::Permutation;
pub use place::{EpochMark, Position, Rank};
pub(crate) use random::PositionRandom;
pub use sampler::{IdentityProb, IdentityRatio, MultiScale, Sampler, Weights};
pub(crate) use sampler::{by_identity, by_size, by_weight, inverse_class_frequency};
pub use state::State;
pub use status::RowStatus;
pub(crate) use table::SamplerTable;
pub use tail::Tail;
