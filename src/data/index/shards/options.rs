//! How shards are read.

use std::path::PathBuf;

use crate::data::index::classes::ClassList;

/// How [`Index::from_shards`](crate::data::index::Index::from_shards) reads shards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardOptions {
    pub labels: ShardLabels,
    /// The field of the picture, such as `image.jpg`; or several, with a semicolon between two,
    /// of which the first that a sample has is taken. Without it, the extensions of pictures
    /// (`jpg`); where no sample has one, the only field that ends in one (`image.jpg`).
    pub image_field: Option<String>,
    /// Numbers class names by this table instead of by the names that the shards
    /// have: validation shards may lack a class. A name that the table lacks, and
    /// labels that are no names, are errors.
    pub classes: Option<ClassList>,
    pub keep: KeepIndex,
}

/// Where labels come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ShardLabels {
    /// The field `cls` when samples have it; else the only field that ends in it, such as
    /// `label.cls`; and no labels otherwise.
    #[default]
    Auto,
    None,
    /// The field of this extension: a whole number, numbers, or the name of a
    /// class. Of `json` the document itself.
    Field(String),
    /// What stands at `pointer` (RFC 6901, such as `/label`) of the JSON document
    /// in the field of this extension.
    Json {
        field: String,
        pointer: String,
    },
}

/// Where the index of shards is kept, so that later runs need not read their
/// headers again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeepIndex {
    /// In `$XDG_CACHE_HOME/featherload`, or `~/.cache/featherload`; nowhere when
    /// neither can be written.
    #[default]
    UserCache,
    /// In this folder, which is made when it is not there.
    In(PathBuf),
    Nowhere,
}

/// The field that JSON labels are in, when none is named.
pub const JSON_EXTENSION: &str = "json";
