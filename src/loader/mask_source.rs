//! Where the masks of a data set are.
//!
//! In the consumer.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::index::{
    CachedRasters, Index, ParquetLabels, ParquetOptions, PathPattern, TableLabels, TableOptions,
    open_cache_masks, open_member_parts,
};
use crate::error::{Error, Result};
use crate::jobs::mask_rule::MaskRule;
use crate::loader::files_option::{FilesOption, merged_rule, parse_option};
use crate::loader::source::Source;

/// The masks of a data set: where their files are, and how their labels become numbers.
///
/// ```
/// use featherload::{MaskOptions, MaskRule};
///
/// let masks = MaskOptions::new("../masks/{stem}.png").rule(MaskRule {
///     ignore: Some(255),
///     reduce_zero_label: true,
///     ..MaskRule::default()
/// });
/// # let _ = masks;
/// ```
#[derive(Debug, Clone)]
pub struct MaskOptions {
    /// A list has a mask for each image.
    files: FilesOption<Arc<Index>>,
    /// The extension of masks beside images in tars.
    member: Option<String>,
    pub(super) rule: MaskRule,
    /// The fields of the rule that were given. They replace those of a cache.
    given: Map<String, Value>,
}

impl MaskOptions {
    /// Masks in files that `files` names: a pattern of paths
    /// ([`PathPattern`]), or a column of a table, of Parquet or of Arrow
    /// files. `cache`: the masks of a cache, with the rule that it was built with.
    pub fn new(files: impl Into<String>) -> Self {
        Self {
            files: FilesOption::Named(files.into()),
            member: None,
            rule: MaskRule::default(),
            given: Map::new(),
        }
    }

    /// Masks in tar shards, beside their images: members with this extension, such as `seg.png`.
    pub fn member(extension: impl Into<String>) -> Self {
        Self {
            files: FilesOption::Unset,
            member: Some(extension.into()),
            rule: MaskRule::default(),
            given: Map::new(),
        }
    }

    /// The same rule, with the masks that a program lists: one for each image, in their order.
    #[must_use]
    pub fn listed(self, masks: Index) -> Self {
        Self {
            files: FilesOption::Listed(Arc::new(masks)),
            ..self
        }
    }

    /// How labels become numbers. Default: they stay as they are.
    #[must_use]
    pub fn rule(self, rule: MaskRule) -> Self {
        let given = match serde_json::to_value(&rule) {
            Ok(Value::Object(fields)) => fields,
            // A rule is a struct of numbers and texts.
            _ => Map::new(),
        };
        Self {
            rule,
            given,
            ..self
        }
    }

    /// The extension of masks beside images in tars.
    #[must_use]
    pub fn member_extension(&self) -> Option<&str> {
        self.member.as_deref()
    }
}

impl FromStr for MaskOptions {
    type Err = Error;

    /// A pattern, a column, or a JSON object of `files` and the fields of a [`MaskRule`].
    fn from_str(text: &str) -> Result<Self> {
        parse_option(text, "masks", |files| Self::new(files))
    }
}

/// A pattern or a column alone, or an object with the fields of a rule and `files`.
impl<'de> Deserialize<'de> for MaskOptions {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let (files, mut fields) = FilesOption::deserialize(from, "masks")?;
        let member = match fields.remove("member") {
            None | Some(Value::Null) => None,
            Some(Value::String(extension)) => Some(extension),
            Some(_) => return Err(D::Error::custom("`member` of masks is no text")),
        };
        let given = fields.clone();
        let rule = serde_json::from_value(Value::Object(fields));
        let rule = rule.map_err(D::Error::custom)?;
        Ok(Self {
            files,
            member,
            rule,
            given,
        })
    }
}

/// The files of masks of a source that has not been read yet.
#[derive(Debug)]
pub(crate) enum MaskSource {
    Pattern(PathPattern),
    /// The same source, with the masks as its images.
    Column(Box<Source>, String),
    Listed(Arc<Index>),
    /// Members of tars with this extension.
    Members(String),
    /// A cache has them. The fields replace those of its rule.
    Cached(Map<String, Value>),
}

impl MaskSource {
    /// # Errors
    /// A pattern that is none; a column of a source without columns; labels that do not fit.
    pub(crate) fn of(options: &MaskOptions, source: &Source) -> Result<Self> {
        options.rule.check()?;
        if options.files.is_of_cache() && options.member.is_none() {
            return Ok(Self::Cached(options.given.clone()));
        }
        Self::of_files(&options.files, options.member.as_deref(), "masks", source)
    }

    /// The same for the files of the option `what`, or the members with an extension.
    ///
    /// # Errors
    /// A pattern that is none; a column of a source without columns; files and members at once.
    pub(super) fn of_files(
        files: &FilesOption<Arc<Index>>,
        member: Option<&str>,
        what: &'static str,
        source: &Source,
    ) -> Result<Self> {
        if let Some(extension) = member {
            return match files {
                FilesOption::Unset => Ok(Self::Members(extension.to_owned())),
                _ => Err(Error::option(
                    what,
                    format!("{what}: `files` and `member` are two places: remove one of them"),
                )),
            };
        }
        let files = match files {
            FilesOption::Named(files) => files,
            FilesOption::Listed(masks) => return Ok(Self::Listed(masks.clone())),
            FilesOption::Unset => {
                return Err(Error::option(
                    what,
                    format!(
                        "{what} need `files`: a pattern such as ../{what}/{{stem}}.png, or a \
                         column; or `member`, an extension in tar shards"
                    ),
                ));
            }
        };
        if PathPattern::is_pattern(files) {
            return PathPattern::parse(files).map(Self::Pattern);
        }
        let of_masks = match source {
            Source::Table(path, options) => Source::Table(
                path.clone(),
                TableOptions {
                    path_column: Some(files.clone()),
                    path_suffix: String::new(),
                    labels: TableLabels::None,
                    classes: None,
                    relabel: false,
                    ..options.clone()
                },
            ),
            Source::Parquet(parquet, options) => {
                let column = ParquetOptions {
                    root: options.root.clone(),
                    allow_outside: options.allow_outside,
                    ..of_column(files)
                };
                Source::Parquet(parquet.clone(), column)
            }
            Source::Arrow(arrow, _) => Source::Arrow(arrow.clone(), of_column(files)),
            _ => {
                return Err(Error::option(
                    what,
                    format!(
                        "{what}: '{files}' names a column, and this source has none: give a \
                         pattern such as ../{what}/{{stem}}.png"
                    ),
                ));
            }
        };
        Ok(Self::Column(Box::new(of_masks), files.clone()))
    }

    /// Whether the masks are members beside images in tars.
    pub(crate) fn are_members(&self) -> bool {
        matches!(self, Self::Members(_))
    }

    /// The masks of `images`, in their order, and the rule of their labels. `rule`: that of the
    /// options. `is_remote`: images come from an object store.
    ///
    /// # Errors
    /// Masks that cannot be found or read; another number of masks than images.
    pub(crate) fn open(
        self,
        images: &Index,
        rule: &MaskRule,
        is_remote: bool,
    ) -> Result<(Index, MaskRule)> {
        if let Self::Cached(given) = self {
            let CachedRasters { index, rule } = open_cache_masks(images)?;
            let rule: MaskRule = merged_rule(rule, &given, "masks")?;
            rule.check()?;
            return Ok((index, rule));
        }
        let files = self.open_files(images, "masks", is_remote)?;
        Ok((files, rule.clone()))
    }

    /// The files of `images`, in their order. `what`: the option that names them.
    ///
    /// # Errors
    /// Files that cannot be found or read; another number of files than images.
    pub(super) fn open_files(
        self,
        images: &Index,
        what: &'static str,
        is_remote: bool,
    ) -> Result<Index> {
        if is_remote && !self.are_members() {
            let caches = match what {
                "masks" => ", or from a cache that has them: build one with `cache build --masks`",
                _ => ", or from a cache that has them: build one with `cache build --raster`",
            };
            return Err(Error::option(
                what,
                format!(
                    "{what}: the images are in an object store, and {what} are read from files on \
                     this machine, from members of tars{caches}, or use a copy on this machine"
                ),
            ));
        }
        let (masks, place) = match self {
            Self::Pattern(pattern) => return images.files_beside(&pattern, what),
            Self::Members(extension) => return open_member_parts(images, &extension, what),
            Self::Cached(_) => {
                let what = format!("{what} of a cache were opened as files");
                return Err(Error::protocol(what));
            }
            Self::Column(source, column) => (source.open()?.0, format!("column '{column}'")),
            Self::Listed(masks) => (masks.try_clone()?, "the list".to_owned()),
        };
        match masks.len() == images.len() {
            true => Ok(masks),
            false => Err(Error::option(
                what,
                format!(
                    "{what}: {place} has {} {what}, and there are {} images: give one for each \
                     image",
                    masks.len(),
                    images.len()
                ),
            )),
        }
    }
}

fn of_column(column: &str) -> ParquetOptions {
    ParquetOptions {
        image_column: Some(column.to_owned()),
        labels: ParquetLabels::None,
        ..ParquetOptions::default()
    }
}
