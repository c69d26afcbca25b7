//! The format of a table, by its file extension.
//!
//! Used in the consumer. Opens no file.

use std::ffi::OsStr;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFormat {
    /// Separated by commas. Or by semicolons or tabs, if the header line has no comma.
    Csv,
    /// Separated by tabs.
    Tsv,
    /// One JSON object per line.
    JsonLines,
}

impl TableFormat {
    pub(super) const EXTENSIONS: [&str; 4] = [".csv", ".tsv", ".jsonl", ".ndjson"];

    /// `None` if the name does not have the extension of a table.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_ends() {
        for extension in TableFormat::EXTENSIONS {
            let name = format!("a{extension}");
            assert!(TableFormat::of(Path::new(&name)).is_some(), "{name}");
            assert!(TableFormat::of(Path::new(&name.to_uppercase())).is_some());
        }
        for name in ["csv", ".csv", "a.csv.gz", "a.txt", "a.json", "csv/a"] {
            assert_eq!(TableFormat::of(Path::new(name)), None, "{name}");
        }
    }
}
