//! What reading one shard has found: its samples, with labels as they stand there.
//!
//! Made in the consumer, a shard a thread, and joined behind them.

use crate::data::index::report::{DamagedShard, ScanReport};
use crate::data::index::shards::fields::{FieldChoice, FieldUsage};

/// What one shard has.
#[derive(Debug, Default)]
pub(crate) struct ShardScan {
    pub(crate) names: Vec<u8>,
    pub(crate) ends: Vec<usize>,
    /// Offset and size of each picture.
    pub(crate) parts: Vec<(u64, u64)>,
    pub(crate) labels: Vec<RawLabel>,
    /// The class names of this shard, in the order of their numbers in `labels`.
    pub(crate) class_names: Vec<Vec<u8>>,
    /// The vectors of this shard, one behind the other.
    pub(crate) vectors: Vec<f32>,
    /// Samples beside a damaged place, or at an end that may be a cut, in which no
    /// member is the label; with their other fields, which are not in the report.
    pub(crate) suspects: Vec<(usize, Vec<String>)>,
    pub(crate) report: ScanReport,
    /// What the first JSON document has that lacks the label's place.
    pub(crate) without_place: Option<String>,
    /// The first member that is an archive itself.
    pub(crate) archive: Option<Vec<u8>>,
    /// Keys of groups of members that have a label and no picture: the first of them.
    pub(crate) lone_labels: Vec<Vec<u8>>,
    /// What stands in the report when the last sample proves to lack its label,
    /// and otherwise not: the shard ends as one does that was cut.
    pub(crate) tail: Option<DamagedShard>,
    /// The fields that pictures and labels are in here.
    pub(crate) choice: FieldChoice,
    pub(crate) seen: FieldUsage,
    /// What there is by the extensions of pictures alone, where another choice was better for
    /// this shard.
    pub(crate) plain: Option<Box<ShardScan>>,
}

/// The label of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RawLabel {
    Absent,
    Number(i64),
    /// A number of `class_names`.
    Name(u32),
    /// So many of `vectors`.
    Vector(u32),
}

impl ShardScan {
    pub(crate) fn samples(&self) -> usize {
        self.ends.len()
    }

    /// The name of a sample's picture.
    pub(crate) fn name(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start..self.ends[i]]
    }

    /// Whether a sample has a label.
    pub(crate) fn has_label(&self, i: usize) -> bool {
        self.labels[i] != RawLabel::Absent
    }

    pub(crate) fn part(&self, i: usize) -> (u64, u64) {
        self.parts[i]
    }

    /// Labels of a field that no option names become fields that are not read.
    pub(crate) fn drop_chosen_labels(&mut self) {
        if let Some(field) = self.choice.label.take() {
            self.report.add_field(&field, self.seen.labels.get(&field));
            self.labels.fill(RawLabel::Absent);
            self.class_names.clear();
            self.vectors.clear();
        }
    }

    /// Whether a sample may have had a label that is lost.
    pub(crate) fn is_suspect(&self, i: usize) -> bool {
        self.suspect(i).is_some()
    }

    /// The fields of a suspect sample that are neither picture nor label.
    pub(crate) fn fields_of_suspect(&self, i: usize) -> &[String] {
        self.suspect(i).map_or(&[], |(_, fields)| fields)
    }

    fn suspect(&self, i: usize) -> Option<&(usize, Vec<String>)> {
        let at = self.suspects.binary_search_by_key(&i, |(i, _)| *i).ok()?;
        self.suspects.get(at)
    }
}
