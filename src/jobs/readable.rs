//! Which files workers open: those of an index.
//!
//! In the consumer, when a run begins.

use std::path::PathBuf;

use crate::data::index::Index;
use crate::pool::job::Readable;

impl Readable for Index {
    fn readable(&self) -> Vec<PathBuf> {
        self.reach()
    }
}
