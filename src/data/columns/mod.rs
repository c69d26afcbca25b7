//! Further values of samples, such as captions and scores, read where they lie.
//!
//! In the consumer. A source opens the columns that a run names. A batch reads the values of its
//! rows when it is asked for them. So a column takes no memory for each sample, or less than a
//! byte. Never in here: the files of a source, an order of samples.
//!
//! - `values`: the values of a column for the rows of a batch; `row_value`: a value with lists and
//!   fields inside of it; `column_set`: the columns of a run;
//!   `stamped_file`: whether a file with values has changed; `kept_buffers`: unpacked buffers that
//!   were used last.

pub(crate) mod column_set;
pub(crate) mod kept_buffers;
pub(crate) mod row_value;
pub(crate) mod stamped_file;
pub(crate) mod values;

pub use column_set::{AvailableColumn, BatchColumns};
pub use values::{ColumnKind, ColumnValues, NumberKind, NumberValues};
