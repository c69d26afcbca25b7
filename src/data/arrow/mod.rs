//! Arrow IPC files and streams: where the values of each column lie in the file. Also writes files.
//!
//! Runs in the consumer, on untrusted bytes. Values stay in the file: only schema, sizes and
//! offsets are read. So an image is a range of the file, and a column is read row by row.
//!
//! - A stream is a row of messages. A file is a stream between two magic words, with a footer.
//! - A buffer that is compressed is a packed page, of which values are parts. It is unpacked for its
//!   first value, and kept.
//! - Each count is compared with the bytes of the file before memory is taken for it.
//!
//! - `flatbuffer`: the tables of messages; `schema`: names and types of columns;
//! - `ipc_file`: the messages of a file; `arrays`: the buffers of the arrays of a batch;
//! - `bytes`: bytes of the file and of unpacked buffers; `column`: the values of one column;
//!   `row_values`: a value with all that is inside of it;
//! - `writer`: writes columns as a file; `flat_writer`: the tables of its messages.

mod arrays;
mod bytes;
mod column;
mod flat_writer;
mod flatbuffer;
mod ipc_file;
mod row_values;
mod schema;
mod writer;

pub(crate) use bytes::{ArrowBuffers, ArrowBytes};
pub(crate) use column::ArrowColumn;
pub(crate) use ipc_file::ArrowFile;
pub(crate) use schema::{ArrowField, ArrowType, DICTIONARY};
pub(crate) use writer::{ArrowRow, ArrowWriter};
