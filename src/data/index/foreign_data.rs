//! Recognizes files and folders that are not data sets which featherload reads.
//!
//! The result is the text of an error: the kind of the file, and how to make a data set from it.
//!
//! Runs in the consumer. Opens regular files only, and reads at most the first 64 KiB of each. The
//! name of a file decides only where its content cannot: for zip archives, YAML files, pickles, and
//! formats without a signature.
//!
//! - `content`: the kind of a file by its bytes; `file_kind`: a kind and its fix, as text;
//! - `binary`: binary files; `text`: JSON, XML, YAML and similar files;
//! - `folder`: folders that other tools wrote; `layout`: folders whose sub-folders are not classes.

mod binary;
mod content;
mod file_kind;
mod folder;
mod layout;
mod text;

pub(crate) use content::{of_file, of_file_of_json_lines};
pub(crate) use folder::{of_folder, tar_in};
pub(crate) use layout::{check_class_folders, check_unread_labels, is_split, values_of};

#[cfg(test)]
mod tests;
