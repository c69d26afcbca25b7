//! What reading one shard has found: its samples, with labels as they stand there.
//!
//! Made in the consumer, a shard a thread, and joined behind them.

use crate::index::report::{DamagedShard, ScanReport};

/// What one shard has.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) names: Vec<u8>,
    pub(super) ends: Vec<usize>,
    /// Offset and size of each picture.
    pub(super) parts: Vec<(u64, u64)>,
    pub(super) labels: Vec<Raw>,
    /// The class names of this shard, in the order of their numbers in `labels`.
    pub(super) class_names: Vec<Vec<u8>>,
    /// The vectors of this shard, one behind the other.
    pub(super) vectors: Vec<f32>,
    /// Samples beside a damaged place, or at an end that may be a cut, in which no
    /// member is the label; with their other fields, which are not in the report.
    pub(super) suspects: Vec<(usize, Vec<String>)>,
    pub(super) report: ScanReport,
    /// What stands in the report when the last sample proves to lack its label,
    /// and otherwise not: the shard ends as one does that was cut.
    pub(super) tail: Option<DamagedShard>,
}

/// The label of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Raw {
    Absent,
    Number(i64),
    /// A number of `class_names`.
    Name(u32),
    /// So many of `vectors`.
    Vector(u32),
}

impl Found {
    pub(super) fn samples(&self) -> usize {
        self.ends.len()
    }

    /// The name of a sample's picture.
    pub(super) fn name(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start..self.ends[i]]
    }

    pub(super) fn part(&self, i: usize) -> (u64, u64) {
        self.parts[i]
    }

    /// Whether a sample may have had a label that is lost.
    pub(super) fn is_suspect(&self, i: usize) -> bool {
        self.suspect(i).is_some()
    }

    /// The fields of a suspect sample that are neither picture nor label.
    pub(super) fn fields_of_suspect(&self, i: usize) -> &[String] {
        self.suspect(i).map_or(&[], |(_, fields)| fields)
    }

    fn suspect(&self, i: usize) -> Option<&(usize, Vec<String>)> {
        let at = self.suspects.binary_search_by_key(&i, |(i, _)| *i).ok()?;
        self.suspects.get(at)
    }
}
