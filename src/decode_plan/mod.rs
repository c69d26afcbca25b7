//! The decode plan of a sample: the part of the image that it needs, the memory that this takes,
//! and the data that is passed on.
//!
//! - [`folded_steps`]: combines the first steps of a sample into one crop of the stored image;
//! - [`canvas_memory`]: the memory of the steps after it;
//! - [`stored_picture`]: both for one sample; workers check it before they allocate;
//! - [`crop_row`]: the contents of a row that a device turns into a row of a batch;
//! - [`hull_row`]: the same if a sample has several crops;
//! - [`crop_geometry`]: where each of several crops lies in its image;
//! - [`row_descriptor`]: the table before rows of different sizes, and what it states of a row.
//!
//! The same in every process. Never in here: a decoded pixel, files, processes.

pub(crate) mod canvas_memory;
pub(crate) mod crop_geometry;
pub(crate) mod crop_row;
pub(crate) mod folded_steps;
pub(crate) mod hull_row;
pub(crate) mod row_descriptor;
pub(crate) mod stored_picture;

pub use crop_geometry::CropGeometry;
pub use row_descriptor::RowDescriptor;
