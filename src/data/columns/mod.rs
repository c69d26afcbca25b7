//! Further values of samples, such as captions and scores, read where they lie.
//!
//! In the consumer. Never in here: an index, an order of samples.
//!
//! - `values`: the values of a column for the rows of a batch.

pub(crate) mod values;

pub use values::{ColumnKind, ColumnValues, NumberKind, NumberValues};
