//! Which part of a picture a sample needs, what it takes, and what is handed on of it.
//!
//! - [`folded_steps`]: the first steps of a sample as one cut of the stored picture;
//! - [`canvas_memory`]: the memory of the steps behind it;
//! - [`stored_picture`]: both for one sample, by which workers check it before they allocate;
//! - [`crop_row`]: what is in a row that a device makes a row of;
//! - [`row_descriptor`]: what the table in front of rows of own sizes says of a row.
//!
//! The same in every process. Never in here: a decoded pixel, files, processes.

pub(crate) mod canvas_memory;
pub(crate) mod crop_row;
pub(crate) mod folded_steps;
pub(crate) mod row_descriptor;
pub(crate) mod stored_picture;

pub use row_descriptor::RowDescriptor;
