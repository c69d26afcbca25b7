//! Which samples, in which order, with which random parameters.
//!
//! Pure: no I/O, no clock, no processes. Every question is answered from the
//! numbers of the question alone, in O(1) time and memory, so no plan travels
//! between processes and a resume goes straight to its place.

mod epoch;
mod permutation;
mod random;
mod state;

pub use epoch::{Plan, PlanOptions, RowPlan, RowStatus, Tail};
pub(crate) use random::PositionRandom;
pub(crate) use state::STATE_VERSION;
pub use state::State;
