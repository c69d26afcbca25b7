//! Which fields of samples are the picture and the label: as an option says, or by what all
//! samples have.
//!
//! Runs in the consumer, a shard a thread, and then over all shards. Reads nothing.
//!
//! A sample's name ends at its first dot, as in webdataset, so `0.image.jpg` is the field
//! `image.jpg` of sample `0`. Fields without a dot come first, for they are how WebDataset's
//! own tools write pictures and labels. Where no sample has one, the only field with a dot is
//! taken; several are an error, which lists them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::data::index::names::{has_image_extension, is_hidden, is_system_folder, rank, shown};
use crate::data::index::report::{ScanReport, SkipReason};
use crate::data::index::shards::found::Found;
use crate::data::index::shards::options::{JSON_EXTENSION, ShardLabels, ShardOptions};
use crate::error::{Error, Result};

/// The field of labels, where none is named.
const CLASS: &str = "cls";
/// Fields that an error names.
const NAMED: usize = 8;
/// Names that `image_field` may hold.
pub(crate) const MOST_ALTERNATIVES: usize = 16;

/// Why a member is no part of a sample, by its name: it is hidden, or lies in a folder that is,
/// or in one of an operating system. `.` and `..` are steps of a path.
pub(crate) fn left_out(name: &[u8]) -> Option<SkipReason> {
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

/// The fields that are read of each sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Of the picture, in lower case: the first that a sample has. Without any, fields that are
    /// the extension of a picture, by their rank.
    pub(crate) pictures: Vec<String>,
    /// Of the label, when it is not [`CLASS`] and none is named.
    pub(crate) label: Option<String>,
}

impl Choice {
    pub(crate) fn of(options: &ShardOptions) -> Self {
        let named = options.image_field.iter().flat_map(|text| names(text));
        Self {
            pictures: named.collect(),
            label: None,
        }
    }

    /// The place of a field among those that may be the picture, the best first; none for
    /// other fields.
    pub(crate) fn rank(&self, field: &[u8]) -> Option<usize> {
        match self.pictures.is_empty() {
            true => rank(field),
            false => self.pictures.iter().position(|p| p.as_bytes() == field),
        }
    }

    /// The field of labels.
    pub(crate) fn label<'a>(&'a self, labels: &'a ShardLabels) -> Option<&'a str> {
        match labels {
            ShardLabels::None => None,
            ShardLabels::Auto => Some(self.label.as_deref().unwrap_or(CLASS)),
            ShardLabels::Field(field) | ShardLabels::Json { field, .. } => Some(field),
        }
    }

    /// A better choice for a shard in which this one found `found`; none where it is the best.
    pub(crate) fn better(&self, found: &Found, options: &ShardOptions) -> Option<Self> {
        let mut better = self.clone();
        let seen = &found.seen;
        if found.samples() == 0
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

/// The names of `image_field`, in lower case, as those of fields are.
pub(crate) fn names(image_field: &str) -> impl Iterator<Item = String> {
    let names = image_field.split(';');
    names.map(|name| name.trim().to_ascii_lowercase())
}

/// How many samples have which fields, as far as these are of use for a choice.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Fields such as `image.jpg` of samples that have no picture by the choice.
    pub(crate) pictures: Counts,
    /// A member in one of them, of the first sample.
    pub(crate) member: Option<Vec<u8>>,
    /// All fields of samples that have no picture.
    pub(crate) fields: Counts,
    /// Fields such as `label.cls`.
    pub(crate) labels: Counts,
    /// Whether a sample has the field [`CLASS`].
    pub(crate) has_class: bool,
}

impl Seen {
    /// Takes note of the fields of a sample, each with its member's name; `has_picture`: by the
    /// choice.
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

/// Fields, each with the number of samples that have it; very many are counted together.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    of: BTreeMap<String, u64>,
    more: u64,
}

impl Counts {
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

    /// The field, where there is one alone.
    pub(crate) fn only(&self) -> Option<&str> {
        let (name, _) = self.of.first_key_value()?;
        (self.of.len() == 1 && self.more == 0).then_some(name)
    }

    fn is_several(&self) -> bool {
        self.of.len() > 1 || (self.more > 0 && !self.of.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Those that most samples have, in words.
    pub(crate) fn shown(&self) -> String {
        let mut of: Vec<_> = self.of.iter().collect();
        of.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let named = of.iter().take(NAMED).enumerate();
        let named = named.map(|(i, (name, samples))| {
            // The unit once.
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

/// Fields that samples have beside their pictures, for an error.
pub(crate) fn beside(report: &ScanReport) -> String {
    let mut counts = Counts::default();
    for (name, samples) in &report.other_fields {
        counts.add_some(Some(name), *samples);
    }
    match counts.is_empty() {
        true => String::new(),
        false => format!(" (there are {})", counts.shown()),
    }
}

/// What all shards have together: the choice of each becomes that of all.
///
/// # Errors
/// Pictures in several fields, of which none is named.
pub(crate) fn settle(at: &Path, found: &mut [Found], options: &ShardOptions) -> Result<()> {
    if options.image_field.is_none() {
        settle_pictures(at, found)?;
    }
    if options.labels == ShardLabels::Auto {
        settle_labels(at, found);
    }
    Ok(())
}

fn settle_pictures(at: &Path, found: &mut [Found]) -> Result<()> {
    let has_plain = found
        .iter()
        .any(|f| f.choice.pictures.is_empty() && f.samples() > 0);
    let mut pictures = Counts::default();
    found.iter().for_each(|f| pictures.merge(&f.seen.pictures));
    if has_plain {
        if !pictures.is_empty() {
            tracing::warn!(
                "{}: samples that are left out for want of a picture have other fields: {}: if \
                 one of them is the picture, name it with `image_field`",
                at.display(),
                pictures.shown()
            );
        }
        for of_shard in found {
            // Its samples have no picture where others have `jpg`.
            if let Some(plain) = of_shard.plain.take() {
                *of_shard = *plain;
            }
        }
        return Ok(());
    }
    match pictures.is_several() {
        true => Err(Error::dataset(at, several(&pictures, found))),
        false => Ok(()),
    }
}

/// What to say of pictures in several fields.
fn several(pictures: &Counts, found: &[Found]) -> String {
    let shown = pictures.shown();
    let first = pictures.of.keys().next().map_or("", String::as_str);
    let choose = format!("choose one with `image_field: {first}`");
    let is_number = |name: &String| name.starts_with(|c: char| c.is_ascii_digit());
    let of_names = pictures.of.keys().all(is_number) || pictures.of.values().all(|&n| n == 1);
    let member = found.iter().find_map(|f| f.seen.member.as_deref());
    let Some(member) = member.filter(|_| of_names) else {
        return format!("pictures stand in several fields: {shown}: {choose}");
    };
    let file = member.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let dot = file.iter().position(|&b| b == b'.').unwrap_or(file.len());
    let (key, field) = (&file[..dot], &file[file.len().min(dot + 1)..]);
    let text = |bytes: &[u8]| self::shown(bytes);
    let end = field.rsplit(|&b| b == b'.').next().unwrap_or_default();
    let stem = &file[..file.len() - end.len() - usize::from(end.len() < file.len())];
    let better = text(stem).replace('.', "_");
    format!(
        "pictures stand in several fields: {shown}. A sample's name ends at its first dot, as in \
         webdataset: {} is the field {} of sample {}. Rename members whose names have dots, such \
         as {better}.{}, or {choose}",
        text(file),
        text(field),
        text(key),
        text(end)
    )
}

fn settle_labels(at: &Path, found: &mut [Found]) {
    let mut labels = Counts::default();
    found.iter().for_each(|f| labels.merge(&f.seen.labels));
    let has_class = found.iter().any(|f| f.seen.has_class);
    if !has_class && labels.is_several() {
        tracing::warn!(
            "{}: no labels are read, for several fields may hold them: {}: name one with \
             `label_field`",
            at.display(),
            labels.shown()
        );
    }
    if has_class || labels.is_several() {
        found.iter_mut().for_each(Found::drop_chosen_labels);
    }
}
