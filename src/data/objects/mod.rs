//! The objects of all samples, as annotations state them: boxes, keypoints, outlines.
//!
//! The consumer makes one table in sealed memory. Workers and other processes map it, so any number
//! of them takes the memory once.
//!
//! - `object_form`: what all objects of a data set have in common; `stated`: the objects of one
//!   sample before they are in a table;
//! - `list`: objects that a program lists;
//! - `table_writer`: makes the table; `table`: reads it; `shape_bytes`: outlines and run lengths as
//!   bytes.

mod list;
mod object_form;
mod shape_bytes;
mod stated;
mod table;
mod table_writer;

pub use list::{ItemObjects, ObjectList, ObjectListOptions};
pub use object_form::{BoxForm, ObjectCategory, ObjectForm, RotatedForm};
pub(crate) use shape_bytes::ObjectShape;
pub(crate) use stated::{StatedObject, StatedObjects};
pub(crate) use table::{ObjectTable, ObjectsOfSample};
pub(crate) use table_writer::ObjectTableWriter;
