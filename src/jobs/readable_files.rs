//! The files of an index that workers open.
//!
//! In the consumer, when a run begins.

use std::path::PathBuf;

use crate::data::index::Index;
use crate::pool::job::ReadableFiles;

impl ReadableFiles for Index {
    fn readable_paths(&self) -> Vec<PathBuf> {
        self.sandbox_roots()
    }
}
