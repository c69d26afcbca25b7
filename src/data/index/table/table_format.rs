//! Which kind of table a file is, by its name.
//!
//! In the consumer. Opens nothing.

use std::ffi::OsStr;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFormat {
    /// With commas; or with semicolons or tabs, where the header line has no comma.
    Csv,
    /// With tabs.
    Tsv,
    /// A JSON object a line.
    JsonLines,
}

impl TableFormat {
    pub(super) const EXTENSIONS: [&str; 4] = [".csv", ".tsv", ".jsonl", ".ndjson"];

    /// None for a name that is no table's.
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
