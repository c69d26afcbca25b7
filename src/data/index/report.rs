//! The report of a scan: its samples, and what it skipped, by reason.
//!
//! The consumer fills and reads it. It holds a few example paths per reason, and not the path of
//! every skipped entry. Its JSON has one form, whichever command prints it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::data::columns::AvailableColumn;
use crate::data::index::json::{LossyPath, lossy};
use crate::data::index::names::shown;
use crate::error::printable;

/// The counts of one scan.
///
/// In JSON, `skipped` is the number of all skipped entries. `left_out` has their number by
/// [`SkipReason::name`], and `examples` has some of their paths. `empty_classes`, `damaged` and
/// `other_fields` are the fields below. `columns` is left out if it is `None`. The number of
/// samples is not included: read it from the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanReport {
    /// Number of samples.
    pub samples: u64,
    /// Entries that are not samples, by reason.
    pub skipped: BTreeMap<SkipReason, SkipCount>,
    /// Class folders without images. They count as classes.
    pub empty_classes: Vec<OsString>,
    /// Shards with lost data, in the order of the shards.
    pub damaged: Vec<DamagedShard>,
    /// Fields of samples in shards that are neither image nor label, by extension, with the number
    /// of samples that have them. A loader does not read them, and a cache does not copy them. At
    /// most [`ScanReport::MOST_FIELDS`] extensions are counted separately. Fields with other
    /// extensions, or with one that is long or not printable text, are counted under
    /// [`ScanReport::MORE_FIELDS`].
    pub other_fields: BTreeMap<String, u64>,
    /// The columns that were read of a table or of Parquet files. `None` for other sources.
    pub columns: Option<TableColumns>,
}

/// The columns of a table, or of Parquet files, that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TableColumns {
    /// The column of paths. Empty if a column holds the images themselves.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The column of images in Parquet files. `None` for tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The columns of labels. Empty if there are no labels.
    pub labels: Vec<String>,
    /// All columns of the data set. A run reads those that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<AvailableColumn>,
}

impl fmt::Display for TableColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// If there are more, only their number is printed.
        const NAMED: usize = 5;
        match &self.image {
            Some(image) => write!(f, "images {}, labels ", shown(image.as_bytes()))?,
            None => write!(f, "paths {}, labels ", shown(self.path.as_bytes()))?,
        }
        match self.labels.as_slice() {
            [] => f.write_str("none"),
            labels if labels.len() > NAMED => write!(f, "of {} columns", labels.len()),
            labels => {
                let labels: Vec<_> = labels.iter().map(|l| shown(l.as_bytes())).collect();
                f.write_str(&labels.join(", "))
            }
        }
    }
}

/// A damaged shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DamagedShard {
    /// In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Offset of the first damage, in bytes from the start of the shard.
    pub at: u64,
    /// Description of the first damage.
    pub what: String,
    /// Number of damaged places in the shard.
    pub places: u64,
    /// Bytes that were skipped, over all places.
    pub bytes_lost: u64,
    /// Samples that are skipped because one of their members is lost.
    pub samples_incomplete: u64,
    /// Samples that are lost completely, according to the index beside the shard. `None` if there
    /// is no such index.
    pub samples_missing: Option<u64>,
}

impl fmt::Display for DamagedShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable(self.path.as_os_str().as_encoded_bytes());
        write!(f, "{path}: {}", printable(&self.what))?;
        if self.places > 1 {
            write!(
                f,
                "; damaged in {} places, {} bytes lost in all",
                self.places, self.bytes_lost
            )?;
        }
        let incomplete = self.samples_incomplete;
        match self.samples_missing {
            Some(missing) => write!(f, "; {} samples lost (by its index)", missing + incomplete),
            None => write!(
                f,
                "; at least {incomplete} samples lost (an index beside it, made by `write_idx`, \
                 would count the rest)"
            ),
        }
    }
}

/// The number of entries that were skipped for one reason, and a few examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkipCount {
    /// Number of entries.
    pub count: u64,
    /// Paths below the root: the first ones, sorted by bytes.
    pub examples: Vec<PathBuf>,
}

/// Why an entry is not a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SkipReason {
    /// A name without a known image extension.
    NotAnImageName,
    /// A file whose name begins with a dot, such as `.DS_Store` or `._1.jpg`. In a shard also a
    /// file in a hidden folder.
    Hidden,
    /// A folder whose name begins with a dot. It is not entered.
    HiddenFolder,
    /// A folder that an operating system created, such as `__MACOSX`, `@eaDir` or `lost+found`. It
    /// is not entered. In a shard, each file in such a folder.
    SystemFolder,
    /// A link without an image extension whose target is missing.
    DanglingLink,
    /// A link back to a parent folder. It is not entered.
    LinkLoop,
    /// A sample of a shard without an image.
    NoPicture,
    /// A member of a shard whose name has no extension, or nothing before it.
    NoSampleName,
    /// A sparse file or a link in a shard. Its bytes are not stored there as one range.
    NotPlain,
    /// A valid shard without members.
    EmptyShard,
    /// An address of a list without an object that can be downloaded. It stays a sample, which
    /// fails.
    DeadAddress,
}

impl SkipReason {
    /// A short name, for reports. The JSON form uses it as a key.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAnImageName => "no image extension",
            Self::Hidden => "hidden file",
            Self::HiddenFolder => "hidden folder",
            Self::SystemFolder => "system folder",
            Self::DanglingLink => "dangling link",
            Self::LinkLoop => "link loop",
            Self::NoPicture => "sample without a picture",
            Self::NoSampleName => "member of no sample",
            Self::NotPlain => "sparse file or link",
            Self::EmptyShard => "empty shard",
            Self::DeadAddress => "dead address",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ScanReport {
    /// Maximum number of example paths per reason.
    pub const EXAMPLES: usize = 3;
    /// Maximum number of extensions in `other_fields` that are counted separately.
    pub const MOST_FIELDS: usize = 64;
    /// The key for all other extensions. No extension contains a slash.
    pub const MORE_FIELDS: &str = "/more";
    /// Maximum length of an extension that is counted separately, in bytes.
    const LONGEST_FIELD: usize = 64;

    /// Number of skipped entries, over all reasons.
    pub fn skipped_total(&self) -> u64 {
        self.skipped.values().map(|s| s.count).sum()
    }

    pub(crate) fn skip(&mut self, reason: SkipReason, path: PathBuf) {
        let skipped = self.skipped.entry(reason).or_default();
        skipped.count += 1;
        skipped.keep(path);
    }

    /// Counts `count` samples that have a field which is neither image nor label.
    pub(crate) fn add_field(&mut self, extension: &str, count: u64) {
        let fields = &mut self.other_fields;
        let is_short = extension.len() <= Self::LONGEST_FIELD;
        let has_room = || {
            let apart = fields.len() - usize::from(fields.contains_key(Self::MORE_FIELDS));
            apart < Self::MOST_FIELDS && is_short && !extension.contains(char::is_control)
        };
        // Most samples have the same fields as earlier samples, so `has_room` runs rarely.
        let name = match fields.contains_key(extension) || has_room() {
            true => extension,
            false => Self::MORE_FIELDS,
        };
        match fields.get_mut(name) {
            Some(known) => *known += count,
            None => {
                fields.insert(name.to_owned(), count);
            }
        }
    }

    /// Adds the counts of another scan. The order of merges affects only the order of lists and,
    /// with very many extensions, which of them are counted separately.
    pub(crate) fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.empty_classes.extend(other.empty_classes);
        self.damaged.extend(other.damaged);
        for (extension, count) in other.other_fields {
            self.add_field(&extension, count);
        }
        for (reason, theirs) in other.skipped {
            let ours = self.skipped.entry(reason).or_default();
            ours.count += theirs.count;
            for path in theirs.examples {
                ours.keep(path);
            }
        }
    }
}

impl Serialize for ScanReport {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let counts = self.skipped.iter().map(|(why, s)| (why.name(), s.count));
        let examples = self.skipped.iter().map(|(why, s)| {
            let paths: Vec<_> = s
                .examples
                .iter()
                .map(|p| LossyPath(p.as_os_str()))
                .collect();
            (why.name(), paths)
        });
        let empty: Vec<_> = self.empty_classes.iter().map(|n| LossyPath(n)).collect();
        let is_table = usize::from(self.columns.is_some());
        let mut fields = s.serialize_struct("ScanReport", 6 + is_table)?;
        fields.serialize_field("skipped", &self.skipped_total())?;
        fields.serialize_field("left_out", &counts.collect::<BTreeMap<_, _>>())?;
        fields.serialize_field("examples", &examples.collect::<BTreeMap<_, _>>())?;
        fields.serialize_field("empty_classes", &empty)?;
        fields.serialize_field("damaged", &self.damaged)?;
        fields.serialize_field("other_fields", &self.other_fields)?;
        if let Some(columns) = &self.columns {
            fields.serialize_field("columns", columns)?;
        }
        fields.end()
    }
}

impl SkipCount {
    fn keep(&mut self, path: PathBuf) {
        let key = path.as_os_str().as_bytes();
        let at = self
            .examples
            .partition_point(|known| known.as_os_str().as_bytes() <= key);
        if at < ScanReport::EXAMPLES {
            self.examples.insert(at, path);
            self.examples.truncate(ScanReport::EXAMPLES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn json_has_one_form_with_text_for_all_bytes() {
        let mut report = ScanReport::default();
        report.skip(SkipReason::Hidden, PathBuf::from(".a"));
        report.skip(SkipReason::Hidden, PathBuf::from(".b"));
        report.skip(
            SkipReason::EmptyShard,
            PathBuf::from(OsStr::from_bytes(b"\xff.tar")),
        );
        report.empty_classes.push("none".into());
        report.other_fields.insert("txt".into(), 3);
        report.damaged.push(DamagedShard {
            path: PathBuf::from(OsStr::from_bytes(b"d/\xfe.tar")),
            at: 512,
            what: "cut off".into(),
            places: 1,
            bytes_lost: 9,
            samples_incomplete: 1,
            samples_missing: None,
        });
        let want = serde_json::json!({
            "skipped": 3,
            "left_out": {"hidden file": 2, "empty shard": 1},
            "examples": {"hidden file": [".a", ".b"], "empty shard": ["\u{fffd}.tar"]},
            "empty_classes": ["none"],
            "damaged": [{
                "path": "d/\u{fffd}.tar", "at": 512, "what": "cut off", "places": 1,
                "bytes_lost": 9, "samples_incomplete": 1, "samples_missing": null,
            }],
            "other_fields": {"txt": 3},
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), want);
    }

    #[test]
    fn other_fields_are_bounded_and_none_is_forgotten() {
        let mut report = ScanReport::default();
        for i in 0..1000 {
            report.add_field(&format!("{i:03}"), 2);
        }
        report.add_field("000", 1);
        for odd in ["a\u{1b}[31m".to_owned(), "x".repeat(65)] {
            report.add_field(&odd, 1);
        }
        assert_eq!(report.other_fields.len(), ScanReport::MOST_FIELDS + 1);
        assert_eq!(report.other_fields["000"], 3);
        assert_eq!(report.other_fields[ScanReport::MORE_FIELDS], 936 * 2 + 2);
        let mut merged = report.clone();
        merged.merge(report.clone());
        let twice = |(name, count): (&String, &u64)| (name.clone(), count * 2);
        assert_eq!(
            merged.other_fields,
            report.other_fields.iter().map(twice).collect()
        );
    }

    #[test]
    fn examples_do_not_depend_on_the_order_of_arrival() {
        let names = ["e", "a", "d", "c", "b"];
        let scan = |names: &[&str]| {
            let mut report = ScanReport::default();
            for name in names {
                report.skip(SkipReason::Hidden, PathBuf::from(name));
            }
            report
        };
        let whole = scan(&names);
        assert_eq!(whole.skipped_total(), 5);
        let first: Vec<_> = ["a", "b", "c"].map(PathBuf::from).into();
        assert_eq!(whole.skipped[&SkipReason::Hidden].examples, first);
        for cut in 0..names.len() {
            let (left, right) = names.split_at(cut);
            let mut merged = scan(right);
            merged.merge(scan(left));
            assert_eq!(merged, whole);
        }
    }
}
