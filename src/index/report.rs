//! What a scan found and what it left out, by reason: nothing is left out in
//! silence.
//!
//! Filled and read in the consumer. Holds a few example paths per reason, never
//! a path per skipped entry.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The counts of one scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanReport {
    pub samples: u64,
    /// Entries that are no samples.
    pub skipped: BTreeMap<SkipReason, Skipped>,
    /// Class folders without one image. They count as classes all the same.
    pub empty_classes: Vec<OsString>,
}

/// How many entries were left out for one reason, and the first few of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    pub count: u64,
    /// Paths under the root: those that come first by their bytes.
    pub examples: Vec<PathBuf>,
}

/// Why an entry is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A name without a known image extension.
    NotAnImageName,
    /// A name without a known image extension that begins with a dot.
    Hidden,
    /// A folder whose name begins with a dot: it is not entered.
    HiddenFolder,
    /// A link without an image's name whose target is missing.
    DanglingLink,
    /// A link back to a folder above it: it is not entered.
    LinkLoop,
}

impl SkipReason {
    /// A short name, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAnImageName => "no image extension",
            Self::Hidden => "hidden file",
            Self::HiddenFolder => "hidden folder",
            Self::DanglingLink => "dangling link",
            Self::LinkLoop => "link loop",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ScanReport {
    /// Example paths kept per reason.
    pub const EXAMPLES: usize = 3;

    /// Entries left out, over all reasons.
    pub fn skipped_total(&self) -> u64 {
        self.skipped.values().map(|s| s.count).sum()
    }

    pub(super) fn skip(&mut self, reason: SkipReason, path: PathBuf) {
        let skipped = self.skipped.entry(reason).or_default();
        skipped.count += 1;
        skipped.keep(path);
    }

    /// Adds another scan's counts; the order of the merges does not matter.
    pub(super) fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.empty_classes.extend(other.empty_classes);
        for (reason, theirs) in other.skipped {
            let ours = self.skipped.entry(reason).or_default();
            ours.count += theirs.count;
            for path in theirs.examples {
                ours.keep(path);
            }
        }
    }
}

impl Skipped {
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
    use super::*;

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
