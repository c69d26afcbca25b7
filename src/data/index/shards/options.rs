//! Options for reading shards.

use std::path::PathBuf;

use crate::data::index::classes::ClassList;

/// How [`Index::from_shards`](crate::data::index::Index::from_shards) reads shards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardOptions {
    /// Where labels come from.
    pub labels: ShardLabels,
    /// The field of the image, such as `image.jpg`. Several names are separated by semicolons. The
    /// first one that a sample has is used. By default the fields named like image extensions
    /// (`jpg`) are used. If no sample has one, the only field that ends in one (`image.jpg`) is
    /// used.
    pub image_field: Option<String>,
    /// The numbers of class names. By default the names of the shards are sorted and numbered,
    /// which is wrong if validation shards lack a class. It is an error if the table lacks a name,
    /// or if labels are not names.
    pub classes: Option<ClassList>,
    /// Where the index is kept for later runs.
    pub keep: KeepIndex,
}

/// The source of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ShardLabels {
    /// The field `cls`, if a sample has it. Otherwise the only field that ends in it, such as
    /// `label.cls`. Otherwise there are no labels.
    #[default]
    Auto,
    /// No labels are read.
    None,
    /// The field of this extension. It holds a whole number, several numbers, or the name of a
    /// class. In the field `json` the document itself is the label.
    Field(String),
    /// The value at `pointer` (RFC 6901, such as `/label`) in the JSON document of the field of
    /// this extension.
    Json { field: String, pointer: String },
}

/// Where the index of shards is kept, so that later runs need not read their headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeepIndex {
    /// In `$XDG_CACHE_HOME/featherload`, or `~/.cache/featherload`. Nowhere if neither can be
    /// written.
    #[default]
    UserCache,
    /// In this folder, which is created if it is missing.
    In(PathBuf),
    /// The index is not kept.
    Nowhere,
}

/// The default field of JSON labels.
pub const JSON_EXTENSION: &str = "json";
