//! The result of reading one shard: its samples, with their labels as they are stored.
//!
//! Made in the consumer, one thread per shard. Joined after these threads end.

use crate::data::index::report::{DamagedShard, ScanReport};
use crate::data::index::shards::fields::{FieldChoice, FieldUsage};

/// The contents of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardScan {
    pub(crate) names: Vec<u8>,
    pub(crate) ends: Vec<usize>,
    /// Offset and size of each image.
    pub(crate) parts: Vec<(u64, u64)>,
    pub(crate) labels: Vec<RawLabel>,
    /// The class names of this shard. [`RawLabel::Name`] is a position in it.
    pub(crate) class_names: Vec<Vec<u8>>,
    /// The vectors of this shard, one after the other.
    pub(crate) vectors: Vec<f32>,
    /// Samples without a label beside a damaged place, or at an end that may be a cut. Each has its
    /// other fields, which are not in the report.
    pub(crate) suspects: Vec<(usize, Vec<String>)>,
    pub(crate) report: ScanReport,
    /// The keys of the first JSON document that lacks the place of the label.
    pub(crate) without_place: Option<String>,
    /// The first member that is an archive.
    pub(crate) archive: Option<Vec<u8>>,
    /// Keys of the first groups of members that have a label and no image.
    pub(crate) lone_labels: Vec<Vec<u8>>,
    /// Damage that is reported only if the last sample lacks its label: the shard has no end
    /// blocks, so it may have been cut.
    pub(crate) tail: Option<DamagedShard>,
    /// The fields of images and labels in this shard.
    pub(crate) choice: FieldChoice,
    pub(crate) seen: FieldUsage,
    /// The contents by image extensions alone, if another choice was better for this shard.
    pub(crate) plain: Option<Box<ShardScan>>,
}

/// The label of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RawLabel {
    Absent,
    Number(i64),
    /// A position in `class_names`.
    Name(u32),
    /// This number of values of `vectors`.
    Vector(u32),
}

impl ShardScan {
    pub(crate) fn samples(&self) -> usize {
        self.ends.len()
    }

    /// The member name of the image of a sample.
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

    /// Drops labels from a field that no option names. The field is counted as one that is not
    /// read.
    pub(crate) fn drop_chosen_labels(&mut self) {
        if let Some(field) = self.choice.label.take() {
            self.report.add_field(&field, self.seen.labels.get(&field));
            self.labels.fill(RawLabel::Absent);
            self.class_names.clear();
            self.vectors.clear();
        }
    }

    /// Whether a sample may have lost its label.
    pub(crate) fn is_suspect(&self, i: usize) -> bool {
        self.suspect(i).is_some()
    }

    /// The fields of a suspect sample that are neither image nor label.
    pub(crate) fn fields_of_suspect(&self, i: usize) -> &[String] {
        self.suspect(i).map_or(&[], |(_, fields)| fields)
    }

    fn suspect(&self, i: usize) -> Option<&(usize, Vec<String>)> {
        let at = self.suspects.binary_search_by_key(&i, |(i, _)| *i).ok()?;
        self.suspects.get(at)
    }
}
