//! Which files workers open: those of an index.
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
