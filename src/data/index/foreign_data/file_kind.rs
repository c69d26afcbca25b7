//! The kind of a foreign file, and how to make a data set from it: texts for errors.

/// A kind of file or folder that featherload does not read as a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForeignKind {
    /// A noun phrase, such as `a zip archive`.
    pub(super) what: String,
    /// What the user can do, such as `unpack it, and give the folder`.
    pub(super) fix: String,
}

impl ForeignKind {
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            fix: fix.into(),
        }
    }
}

pub(super) const EXPORT: &str = "write its images to a folder or to tar shards, and give these";
pub(super) const UNPACK: &str = "unpack it, and give the folder";
pub(super) const LIST: &str =
    "write a list with one `path label` per line, or give the folder of the images";
pub(super) const SCENE: &str = "`featherload rays` and `featherload views` read it";

/// Whether the bytes have no control characters other than white space.
pub(super) fn is_text(head: &[u8]) -> bool {
    !head
        .iter()
        .any(|b| b.is_ascii_control() && !b.is_ascii_whitespace())
}
