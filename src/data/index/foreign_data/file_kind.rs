//! What a file is, and what to do with it: for messages.

/// What something is, and what to do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForeignKind {
    pub(super) what: String,
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

pub(super) const EXPORT: &str = "write its pictures to a folder or to tar shards, and give these";
pub(super) const UNPACK: &str = "unpack it, and give the folder";
pub(super) const LIST: &str =
    "write a list with one `path label` a line, or give the folder of the pictures";
pub(super) const SCENE: &str = "`featherload rays` and `featherload views` read it";

/// Whether no byte is one that text does not have.
pub(super) fn is_text(head: &[u8]) -> bool {
    !head
        .iter()
        .any(|b| b.is_ascii_control() && !b.is_ascii_whitespace())
}
