//! What a file or a folder is that was given as a data set and is none, by its content: for the
//! message that refuses it, and names the way to one that is read.
//!
//! In the consumer. Reads at most 64 KiB of a file, at its beginning, and
//! opens nothing that is not a regular file. A name decides only where bytes cannot: which of two
//! names an archive goes by, and what a file without a mark of its own is. Never in here: reading
//! what was given.
//!
//! - `content`: a file by its bytes; `file_kind`: what it is, in words;
//! - `binary`: files that are no text; `text`: JSON, XML and the like;
//! - `folder`: folders that other tools wrote; `layout`: folders whose sub-folders are no classes.

mod binary;
mod content;
mod file_kind;
mod folder;
mod layout;
mod text;

pub(crate) use content::{of_file, of_file_of_json_lines};
pub(crate) use folder::of_folder;
pub(crate) use layout::{check_class_folders, check_unread_labels};

#[cfg(test)]
mod tests;
