//! Chooses the fields of image and label: those that an option names, or those that all samples
//! have.
//!
//! Runs in the consumer, one thread per shard. Reads nothing.
//!
//! The name of a sample ends at its first dot, as in webdataset, so `0.image.jpg` is the field
//! `image.jpg` of sample `0`. Fields without a dot come first, because WebDataset's own tools write
//! images and labels like that. If no sample has such a field, the only field with a dot is used.
//! Several such fields are an error that lists them.

use std::collections::BTreeMap;

use crate::data::index::names::{has_image_extension, is_hidden, is_system_folder, rank, shown};
use crate::data::index::report::{ScanReport, SkipReason};
use crate::data::index::shards::options::{JSON_EXTENSION, ShardLabels, ShardOptions};

/// The field of labels, if no option names one.
const CLASS: &str = "cls";
/// Maximum number of fields in an error.
const NAMED: usize = 8;
/// Maximum number of names in `image_field`.
pub(crate) const MOST_ALTERNATIVES: usize = 16;

/// Why a member is not part of a sample, by its name: it is hidden, or it is in a hidden folder or
/// in a folder of an operating system. `.` and `..` are not hidden names.
pub(crate) fn skip_reason(name: &[u8]) -> Option<SkipReason> {
    let mut parts = name.rsplit(|&b| b == b'/');
    let file = parts.next().unwrap_or_default();
    if is_hidden(file) || parts.clone().any(is_hidden) {
        return Some(SkipReason::Hidden);
    }
    parts
        .any(is_system_folder)
        .then_some(SkipReason::SystemFolder)
}

/// Whether a field holds a JSON document: `json`, `meta.json`.
pub(crate) fn is_json(field: &str) -> bool {
    let end = field.rsplit('.').next();
    end.is_some_and(|end| end.eq_ignore_ascii_case(JSON_EXTENSION))
}

/// The fields that are read for each sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldChoice {
    /// Fields of the image, in lower case. The first one that a sample has is used. If empty,
    /// fields whose name is an image extension are used, by their rank.
    pub(crate) pictures: Vec<String>,
    /// The field of the label, if it is not [`CLASS`] and no option names it.
    pub(crate) label: Option<String>,
}

impl FieldChoice {
    pub(crate) fn of(options: &ShardOptions) -> Self {
        let named = options.image_field.iter().flat_map(|text| names(text));
        Self {
            pictures: named.collect(),
            label: None,
        }
    }

    /// The rank of a field among those that may be the image, the best first. `None` for other
    /// fields.
    pub(crate) fn rank(&self, field: &[u8]) -> Option<usize> {
        match self.pictures.is_empty() {
            true => rank(field),
            false => self.pictures.iter().position(|p| p.as_bytes() == field),
        }
    }

    /// The field of labels. `None` if no labels are read.
    pub(crate) fn label<'a>(&'a self, labels: &'a ShardLabels) -> Option<&'a str> {
        match labels {
            ShardLabels::None => None,
            ShardLabels::Auto => Some(self.label.as_deref().unwrap_or(CLASS)),
            ShardLabels::Field(field) | ShardLabels::Json { field, .. } => Some(field),
        }
    }

    /// A better choice for a shard in which this choice found `samples` samples and the fields
    /// `seen`. `None` if this choice is the best.
    pub(crate) fn improve(
        &self,
        samples: usize,
        seen: &FieldUsage,
        options: &ShardOptions,
    ) -> Option<Self> {
        let mut better = self.clone();
        if samples == 0
            && self.pictures.is_empty()
            && let Some(only) = seen.pictures.only()
        {
            better.pictures.push(only.to_owned());
        }
        if options.labels == ShardLabels::Auto
            && !seen.has_class
            && let Some(only) = seen.labels.only()
        {
            better.label = Some(only.to_owned());
        }
        (better != *self).then_some(better)
    }
}

/// The names in `image_field`, in lower case.
pub(crate) fn names(image_field: &str) -> impl Iterator<Item = String> {
    let names = image_field.split(';');
    names.map(|name| name.trim().to_ascii_lowercase())
}

/// Counts of samples by their fields, for the choice of fields.
#[derive(Debug, Default)]
pub(crate) struct FieldUsage {
    /// Fields such as `image.jpg`, of samples without an image by the current choice.
    pub(crate) pictures: FieldCounts,
    /// A member in one of these fields, of the first such sample.
    pub(crate) member: Option<Vec<u8>>,
    /// All fields of samples without an image.
    pub(crate) fields: FieldCounts,
    /// Fields such as `label.cls`.
    pub(crate) labels: FieldCounts,
    /// Whether a sample has the field [`CLASS`].
    pub(crate) has_class: bool,
}

impl FieldUsage {
    /// Counts the fields of a sample. Each comes with the name of its member. `has_picture`:
    /// whether the sample has an image by the current choice.
    pub(crate) fn add<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        has_picture: bool,
    ) {
        let is_dotted = |field: &[u8]| field.contains(&b'.') && has_image_extension(field);
        let mut dotted = fields.clone().filter(|(field, _)| is_dotted(field));
        if !has_picture {
            fields.clone().for_each(|(field, _)| self.fields.add(field));
            for (field, member) in dotted.clone() {
                self.pictures.add(field);
                self.member.get_or_insert_with(|| member.to_vec());
            }
        }
        if has_picture || dotted.next().is_some() {
            for (field, _) in fields {
                self.has_class |= field == CLASS.as_bytes();
                if field.ends_with(b".cls") && field.len() > b".cls".len() {
                    self.labels.add(field);
                }
            }
        }
    }
}

/// Numbers of samples by field. Fields past a limit are counted together.
#[derive(Debug, Default, Clone)]
pub(crate) struct FieldCounts {
    pub(crate) of: BTreeMap<String, u64>,
    more: u64,
}

impl FieldCounts {
    fn add(&mut self, field: &[u8]) {
        let name = str::from_utf8(field).ok();
        self.add_some(name, 1);
    }

    fn add_some(&mut self, name: Option<&str>, samples: u64) {
        let is_full = self.of.len() >= ScanReport::MOST_FIELDS;
        match name {
            Some(name) if self.of.contains_key(name) || !is_full => {
                match self.of.get_mut(name) {
                    Some(known) => *known += samples,
                    None => drop(self.of.insert(name.to_owned(), samples)),
                };
            }
            _ => self.more += samples,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, samples) in &other.of {
            self.add_some(Some(name), *samples);
        }
        self.more += other.more;
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.of.get(name).copied().unwrap_or(0)
    }

    /// The field, if there is exactly one.
    pub(crate) fn only(&self) -> Option<&str> {
        let (name, _) = self.of.first_key_value()?;
        (self.of.len() == 1 && self.more == 0).then_some(name)
    }

    pub(crate) fn is_several(&self) -> bool {
        self.of.len() > 1 || (self.more > 0 && !self.of.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The fields with the most samples, for a message.
    pub(crate) fn shown(&self) -> String {
        let mut of: Vec<_> = self.of.iter().collect();
        of.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let named = of.iter().take(NAMED).enumerate();
        let named = named.map(|(i, (name, samples))| {
            // Only the first field has the unit.
            let unit = match (i, samples) {
                (0, 1) => " sample",
                (0, _) => " samples",
                _ => "",
            };
            format!("{} ({samples}{unit})", shown(name.as_bytes()))
        });
        let mut words: Vec<_> = named.collect();
        if of.len() > NAMED || self.more > 0 {
            let at_least = if self.more > 0 { "at least " } else { "" };
            let more = of.len().saturating_sub(NAMED).max(1);
            words.push(format!("and {at_least}{more} more"));
        }
        words.join(", ")
    }
}

/// The fields of samples that are neither image nor label, for an error.
pub(crate) fn describe_other_fields(report: &ScanReport) -> String {
    let mut counts = FieldCounts::default();
    for (name, samples) in &report.other_fields {
        counts.add_some(Some(name), *samples);
    }
    match counts.is_empty() {
        true => String::new(),
        false => format!(" (there are {})", counts.shown()),
    }
}
