//! Which samples come in which order, with which random parameters.
//!
//! Pure: no I/O, no clock, no processes. Every result follows from its arguments in O(1) time and
//! memory; samplers that use labels, weights or sizes need slightly more (see `sampler`). So no
//! order is sent between processes, and a resumed run starts at once. Such a sampler has a table of
//! the data in sealed shared memory, which is sent. An order that the caller gives is the exception:
//! it is written into shared memory for each epoch.
//!
//! Used in every process; workers and consumer get the same results. Never in here: clocks, files,
//! private memory that grows with the data.
//!
//! - `options`, `length`, `tail`: options of an order;
//! - `plan`: batches and rows; `row_status`: status of a row;
//! - `sampler`: orders; `table`: their tables; `given_orders`: orders of the caller;
//! - `permutation`, `random`, `key`: random numbers by position;
//! - `state`: the saved state of a run; `position`: ranks, positions, and marks between two
//!   batches.

mod given_orders;
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

pub(crate) use given_orders::{NO_SAMPLE, hash as order_hash};
pub use length::EpochLength;
pub use options::OrderOptions;
pub(crate) use permutation::KeyedPermutation;
pub(crate) use plan::PlacedSample;
pub use plan::{EpochPlan, RowPlan};
pub use position::{EpochMark, Position, Rank};
pub(crate) use random::PositionRandom;
pub use row_status::RowStatus;
pub(crate) use sampler::{
    BucketBatches, PatchTableFault, bucket_table, identity_table, inverse_class_frequency,
    patch_table, size_table, weight_table,
};
pub use sampler::{
    IdentityProb, IdentityRatio, MultiScale, ObjectFrequency, SampleWeights, Sampler,
};
pub use state::State;
pub(crate) use table::SamplerTable;
pub use tail::EpochTail;
