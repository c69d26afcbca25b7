//! Where the masks of a data set are.
//!
//! In the consumer.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use crate::data::index::{
    Index, ParquetLabels, ParquetOptions, PathPattern, TableLabels, TableOptions,
};
use crate::error::{Error, Result};
use crate::jobs::mask_rule::MaskRule;
use crate::loader::files_option::{FilesOption, parse_option};
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
    pub(super) rule: MaskRule,
}

impl MaskOptions {
    /// Masks in files that `files` names: a pattern of paths
    /// ([`PathPattern`]), or a column of a table, of Parquet or of Arrow
    /// files.
    pub fn new(files: impl Into<String>) -> Self {
        Self {
            files: FilesOption::Named(files.into()),
            rule: MaskRule::default(),
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
        Self { rule, ..self }
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
        let (files, fields) = FilesOption::deserialize(from, "masks")?;
        let rule = serde_json::from_value(serde_json::Value::Object(fields));
        let rule = rule.map_err(D::Error::custom)?;
        Ok(Self { files, rule })
    }
}

/// The files of masks of a source that has not been read yet.
#[derive(Debug)]
pub(super) enum MaskSource {
    Pattern(PathPattern),
    /// The same source, with the masks as its images.
    Column(Box<Source>, String),
    Listed(Arc<Index>),
}

impl MaskSource {
    /// # Errors
    /// A pattern that is none; a column of a source without columns; labels that do not fit.
    pub(super) fn of(options: &MaskOptions, source: &Source) -> Result<Self> {
        options.rule.check()?;
        Self::of_files(&options.files, "masks", source)
    }

    /// The same for the files of the option `what`.
    ///
    /// # Errors
    /// A pattern that is none; a column of a source without columns.
    pub(super) fn of_files(
        files: &FilesOption<Arc<Index>>,
        what: &'static str,
        source: &Source,
    ) -> Result<Self> {
        let files = match files {
            FilesOption::Named(files) => files,
            FilesOption::Listed(masks) => return Ok(Self::Listed(masks.clone())),
            FilesOption::Unset => {
                return Err(Error::option(
                    what,
                    format!(
                        "{what} need `files`: a pattern such as ../{what}/{{stem}}.png, or a column"
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

    /// The files of the masks of `images`, in their order. `what`: the option that names them.
    ///
    /// # Errors
    /// Files that cannot be found or read; another number of masks than images.
    pub(super) fn open(self, images: &Index, what: &'static str) -> Result<Index> {
        let (masks, place) = match self {
            Self::Pattern(pattern) => return images.files_beside(&pattern, what),
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
