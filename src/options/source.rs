//! The data set, and the options of how it is read.
//!
//! This struct defines each option, as in `loader`.
//!
//! In the consumer. Never in here: reading the data set.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::configs::paddle::TrainingConfig;
use crate::data::index::{
    ClassList, FolderLabels, FolderOptions, Index, JSON_EXTENSION, KeepIndex, ListDelimiter,
    ListLabels, ListOptions, ParquetLabels, ParquetOptions, ShardLabels, ShardOptions, TableLabels,
    TableOptions,
};
use crate::error::{Error, Result};
use crate::loader::Source;
#[cfg(feature = "cli")]
use crate::options::cli::{self, one_of};
#[cfg(feature = "cli")]
use crate::options::units;
use crate::remote::fetch::FetchOptions;

/// A data set and how it is read. Options that are not set are detected or have a default.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct SourceOptions {
    /// The data set. [`Source::detect`] recognises its kind.
    #[cfg_attr(feature = "cli", arg(value_name = "SRC", help = cli::source_help(), long_help = cli::source_long_help(), help_heading = cli::SOURCE))]
    pub path: Option<PathBuf>,

    /// A list file or a table whose paths are relative to SRC, or to --root. Or one of addresses
    /// (https://HOST/a.jpg, s3://BUCKET/a.jpg), which are downloaded.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", help_heading = cli::SOURCE))]
    pub list: Option<PathBuf>,

    /// Where labels come from (auto), or none. `none` takes every image under SRC, recursively. For
    /// tar shards `auto` is the field `cls`, or the only field that ends in it (label.cls).
    #[cfg_attr(feature = "cli", arg(long, default_value = "auto", value_parser = one_of::<LabelSource>(&["auto", "none"]), help_heading = cli::SOURCE))]
    pub labels: LabelSource,

    /// File of class names, one per line: the line's number, from 0, is the label. For a validation
    /// folder, tar shards or a table that lack a class and whose labels are names.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE", help_heading = cli::SOURCE))]
    pub classes: Option<PathBuf>,

    /// Folder to which paths of a list file or a table are relative (default: the file's folder).
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = cli::SOURCE))]
    pub root: Option<PathBuf>,

    /// Separator of path and label in a list file (default: blanks). With this option a .csv is a
    /// list without a header line.
    #[cfg_attr(feature = "cli", arg(long, value_name = "CHAR", help_heading = cli::SOURCE))]
    pub delimiter: Option<String>,

    /// Accept paths of a list file or a table that leave the root.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::SOURCE))]
    pub allow_outside: bool,

    /// Folder of box files, one per image of a list file (a/1.txt for a/1.jpg). The last line, `x0
    /// y0 x1 y1`, is the part that counts as the image.
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = cli::SOURCE))]
    pub boxes: Option<PathBuf>,

    /// Column of a table, of Parquet or of Arrow files with the paths or addresses (default:
    /// `file_name`, or another usual name). For JSON lines a key, or a JSON pointer (/a/b).
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", help_heading = cli::SOURCE))]
    pub path_column: Option<String>,

    /// Column of Parquet or Arrow files with the images (default: the only such column, or `image`).
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME", help_heading = cli::SOURCE))]
    pub image_column: Option<String>,

    /// Column of a table, of Parquet or of Arrow files with the labels, class numbers or names
    /// (default: `label`, `class`, `category`, `target`, or the only one with a similar name;
    /// otherwise no labels). Several columns of a table are a vector of their numbers.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME,..", conflicts_with = "labels", help_heading = cli::SOURCE))]
    pub label_column: Option<String>,

    /// Text to append to each path of a table, such as .jpg if a column has ids.
    #[cfg_attr(feature = "cli", arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = cli::SOURCE))]
    pub path_suffix: Option<String>,

    /// Field of tar shards with the images, such as image.jpg of 0.image.jpg (default: jpg or
    /// another image extension, or else the only field that ends in one). Several fields, with `;`
    /// in between: the first that a sample has.
    #[cfg_attr(feature = "cli", arg(long, value_name = "EXT", help_heading = cli::SOURCE))]
    pub image_field: Option<String>,

    /// Field of tar shards with the labels (a class number, numbers or a class name).
    #[cfg_attr(feature = "cli", arg(long, value_name = "EXT", conflicts_with = "labels", help_heading = cli::SOURCE))]
    pub label_field: Option<String>,

    /// Labels of tar shards: the value at this JSON pointer (/a/b) in the field `json`, or in EXT:
    /// a class number, a class name or an array of numbers.
    #[cfg_attr(feature = "cli", arg(long, value_name = "[EXT:]POINTER", conflicts_with_all = ["labels", "label_field"], help_heading = cli::SOURCE))]
    pub label_json: Option<String>,

    /// Folder for the index of tar shards, so that their headers are read once (default:
    /// $XDG_CACHE_HOME/featherload, or ~/.cache/featherload). `none` keeps no index.
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR|none", help_heading = cli::SOURCE))]
    pub index_dir: Option<PathBuf>,

    /// Folder for what is downloaded from an object store, or from a list of addresses. All ranks of
    /// a machine share it (default: $XDG_CACHE_HOME/featherload/fetched, or ~/.cache/...).
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", help_heading = cli::SOURCE))]
    pub fetch_dir: Option<PathBuf>,

    /// Most bytes of downloaded shards and packs in the fetch folder, such as 200G (default: the
    /// whole data set, if that is at most half of the free space).
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::SOURCE))]
    pub fetch_limit: Option<u64>,

    /// Follow redirects of an object store to other hosts, such as those of public download sites.
    /// Addresses of this machine and of private networks stay blocked.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::SOURCE))]
    pub allow_redirects: bool,
}

/// Where labels come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelSource {
    /// From class folders, list lines, or the field `cls` (else the only `*.cls`) of shards.
    #[default]
    Auto,
    /// No labels: every image below a folder counts, recursively.
    None,
}

impl SourceOptions {
    /// Whether the options name a data set.
    pub fn is_given(&self) -> bool {
        self.path.is_some() || self.list.is_some()
    }

    /// Whether any option of a data set is set.
    pub fn has_options(&self) -> bool {
        self.labels != LabelSource::Auto
            || self.classes.is_some()
            || self.root.is_some()
            || self.delimiter.is_some()
            || self.allow_outside
            || self.boxes.is_some()
            || self.has_table_options()
            || self.image_column.is_some()
            || self.image_field.is_some()
            || self.label_field.is_some()
            || self.label_json.is_some()
            || self.index_dir.is_some()
            || self.fetch_dir.is_some()
            || self.fetch_limit.is_some()
            || self.allow_redirects
    }

    fn has_table_options(&self) -> bool {
        let table = [&self.path_column, &self.label_column, &self.path_suffix];
        table.iter().any(|given| given.is_some())
    }

    /// Name of the data set for people: the last part of its path. Without a path, that of the
    /// config's list.
    pub fn name(&self, of_config: Option<&Path>) -> String {
        let given = self.list.as_deref().or(self.path.as_deref()).or(of_config);
        let Some(path) = given else {
            return String::new();
        };
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let parts: Vec<_> = whole.components().collect();
        let end: PathBuf = parts[parts.len().saturating_sub(2)..].iter().collect();
        end.display().to_string()
    }

    /// The data set of the options, or else the config's. Lists are read as the config says, unless
    /// an option sets another value.
    ///
    /// # Errors
    /// No data set is named or it does not exist; an option that has no effect on this kind of data
    /// set.
    pub fn source(&self, config: Option<&TrainingConfig>) -> Result<Source> {
        if let Some(list) = &self.list {
            self.refuse_image_column(list)?;
        }
        match (&self.list, &self.path, config) {
            (Some(list), root, _) if self.means_table(list, config) => {
                self.refuse_two_roots(root.as_deref())?;
                let mut options = self.table_options(list, config)?;
                let of_config = config.and_then(|config| config.list_options.root.clone());
                options.root = root.clone().or(options.root).or(of_config);
                Ok(self.with_fetch_options(Source::Table(list.clone(), options)))
            }
            (Some(list), root, _) => self.listed(list, root.as_deref(), config),
            (None, Some(path), _) => self.detected(path, config),
            (None, None, Some(config)) => match &config.list {
                Some(list) => self.listed(list, None, Some(config)),
                None => config.source(),
            },
            (None, None, None) => Err(Error::config(format!(
                "SRC is missing: give {}",
                Source::KINDS
            ))),
        }
    }

    /// A list file in another folder than its images.
    fn listed(
        &self,
        list: &Path,
        root: Option<&Path>,
        config: Option<&TrainingConfig>,
    ) -> Result<Source> {
        if self.classes.is_some() {
            return Err(Error::config(
                "`classes` has no effect on a list file, which holds its labels: remove it",
            ));
        }
        self.refuse_two_roots(root)?;
        self.refuse_table_options(list, "a list file")?;
        self.refuse_shard_options(list, "a list file")?;
        let mut options = self.list_options(config)?;
        let of_config = config.and_then(|config| config.list_options.root.clone());
        options.root = root.map(Path::to_owned).or(options.root).or(of_config);
        Ok(self.with_fetch_options(Source::List(list.to_owned(), options)))
    }

    /// A list with the options of downloads, if any is set. Without addresses it refuses them when
    /// it is opened.
    pub(crate) fn with_fetch_options(&self, list: Source) -> Source {
        match self.fetch_dir.is_some() || self.fetch_limit.is_some() || self.allow_redirects {
            true => Source::Addresses(Box::new(list), self.fetch_options()),
            false => list,
        }
    }

    fn fetch_options(&self) -> FetchOptions {
        let mut options = FetchOptions::default();
        options.dir.clone_from(&self.fetch_dir);
        options.limit = self.fetch_limit;
        options.allow_redirects = self.allow_redirects;
        options
    }

    fn refuse_two_roots(&self, root: Option<&Path>) -> Result<()> {
        if root.is_some() && self.root.is_some() {
            return Err(Error::config(
                "a source and `root` both set where the paths of `list` start: give one of them",
            ));
        }
        Ok(())
    }

    /// Whether a file is a table. A file with a table's name may be a list of `path label` lines:
    /// if a separator is set, by option or config, and no option of tables.
    fn means_table(&self, file: &Path, config: Option<&TrainingConfig>) -> bool {
        let of_config = config.map(|config| config.list_options.delimiter);
        let is_separated =
            self.delimiter.is_some() || matches!(of_config, Some(ListDelimiter::Byte(_)));
        Index::names_table(file) && (!is_separated || self.has_table_options())
    }

    fn detected(&self, path: &Path, config: Option<&TrainingConfig>) -> Result<Source> {
        let cifar = config.and_then(|config| config.cifar.clone());
        if let Some(options) = cifar.filter(|_| Index::names_cifar(path)) {
            let kind = "of CIFAR's batches";
            self.refuse_list_options(path, kind)?;
            self.refuse_table_options(path, kind)?;
            self.refuse_shard_options(path, kind)?;
            self.refuse_image_column(path)?;
            self.refuse_fetch_options(path, kind)?;
            return Ok(Source::Cifar(path.to_owned(), options));
        }
        let detected = Source::detect(path)?;
        let may_have_addresses = matches!(
            detected,
            Source::Store(..)
                | Source::List(..)
                | Source::Table(..)
                | Source::Parquet(..)
                | Source::Arrow(..)
        );
        if !may_have_addresses {
            self.refuse_fetch_options(path, "on this machine")?;
        }
        if !matches!(detected, Source::Parquet(..) | Source::Arrow(..)) {
            self.refuse_image_column(path)?;
        }
        let found = match detected {
            Source::Table(path, _) if !self.means_table(&path, config) => {
                Source::List(path, ListOptions::default())
            }
            other => other,
        };
        Ok(match found {
            Source::Folder(path, _) => {
                self.refuse_list_options(&path, "a folder")?;
                self.refuse_table_options(&path, "a folder")?;
                self.refuse_shard_options(&path, "a folder")?;
                refuse_boxes(config, &path, "a folder")?;
                Source::Folder(path, self.folder_options()?)
            }
            Source::List(path, _) => {
                self.refuse(
                    self.classes.is_some(),
                    "classes",
                    (&path, "a list file"),
                    "it holds its labels: remove the option",
                )?;
                self.refuse_table_options(&path, "a list file")?;
                self.refuse_shard_options(&path, "a list file")?;
                let options = self.list_options(config)?;
                self.with_fetch_options(Source::List(path, options))
            }
            Source::Table(path, _) => {
                let options = self.table_options(&path, config)?;
                self.with_fetch_options(Source::Table(path, options))
            }
            Source::Shards(shards, _) => {
                self.refuse_list_options(path, "of tar shards")?;
                self.refuse_table_options(path, "of tar shards")?;
                Source::Shards(shards, self.shard_options()?)
            }
            Source::Parquet(files, _) => {
                let options = self.columnar_options(path, "of Parquet files", config)?;
                self.with_fetch_options(Source::Parquet(files, options))
            }
            Source::Arrow(files, _) => {
                self.refuse_path_options(path, "of Arrow files")?;
                let options = self.columnar_options(path, "of Arrow files", config)?;
                self.with_fetch_options(Source::Arrow(files, options))
            }
            array @ Source::Array(_) => {
                let kind = "an array of images";
                let fix = "remove the option: such a file has no labels";
                self.refuse(self.classes.is_some(), "classes", (path, kind), fix)?;
                self.refuse_list_options(path, kind)?;
                self.refuse_table_options(path, kind)?;
                self.refuse_shard_options(path, kind)?;
                refuse_boxes(config, path, kind)?;
                array
            }
            saved @ (Source::Cache(_) | Source::Saved(_)) => {
                let kind = match saved {
                    Source::Cache(_) => "a cache",
                    _ => "a saved index",
                };
                let fixed = (path, kind);
                self.refuse(
                    self.classes.is_some(),
                    "classes",
                    fixed,
                    "its classes are fixed: remove the option, or make the index again with it",
                )?;
                self.refuse(
                    self.labels == LabelSource::None,
                    "labels: none",
                    fixed,
                    "its labels are fixed: make the index again with this option",
                )?;
                self.refuse_list_options(path, kind)?;
                self.refuse_table_options(path, kind)?;
                self.refuse_shard_options(path, kind)?;
                saved
            }
            Source::Store(address, _) => {
                let kind = "in an object store";
                self.refuse_list_options(path, kind)?;
                self.refuse_table_options(path, kind)?;
                refuse_boxes(config, path, kind)?;
                let what_to_do = "remove the option: an index of tar shards is kept in `fetch_dir`";
                self.refuse(
                    self.index_dir.is_some(),
                    "index_dir",
                    (path, kind),
                    what_to_do,
                )?;
                let mut options = self.fetch_options();
                options.shards = self.shard_options()?;
                Source::Store(address, options)
            }
            _ => {
                return Err(Error::config(format!(
                    "{}: no options are known for such a source",
                    path.display()
                )));
            }
        })
    }

    fn refuse_list_options(&self, path: &Path, kind: &str) -> Result<()> {
        self.refuse_path_options(path, kind)?;
        self.refuse_text_options(path, kind)
    }

    /// Options of files that are lists of paths.
    fn refuse_path_options(&self, path: &Path, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.root.is_some(), "root"),
            (self.allow_outside, "allow_outside"),
        ] {
            let what_to_do = "remove the option, or give a list file";
            self.refuse(given, option, (path, kind), what_to_do)?;
        }
        Ok(())
    }

    /// Options of list files alone.
    fn refuse_text_options(&self, path: &Path, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.delimiter.is_some(), "delimiter"),
            (self.boxes.is_some(), "boxes"),
        ] {
            let what_to_do = "remove the option, or give a list file";
            self.refuse(given, option, (path, kind), what_to_do)?;
        }
        Ok(())
    }

    fn refuse_table_options(&self, path: &Path, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.path_column.is_some(), "path_column"),
            (self.label_column.is_some(), "label_column"),
            (self.path_suffix.is_some(), "path_suffix"),
        ] {
            let what_to_do = "remove the option, or give a table (.csv, .tsv, .jsonl)";
            self.refuse(given, option, (path, kind), what_to_do)?;
        }
        Ok(())
    }

    fn refuse_shard_options(&self, path: &Path, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.image_field.is_some(), "image_field"),
            (self.label_field.is_some(), "label_field"),
            (self.label_json.is_some(), "label_json"),
            (self.index_dir.is_some(), "index_dir"),
        ] {
            let what_to_do = "remove the option, or give tar shards";
            self.refuse(given, option, (path, kind), what_to_do)?;
        }
        Ok(())
    }

    fn refuse_fetch_options(&self, path: &Path, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.fetch_dir.is_some(), "fetch_dir"),
            (self.fetch_limit.is_some(), "fetch_limit"),
            (self.allow_redirects, "allow_redirects"),
        ] {
            let what_to_do = "remove the option, or give an address in an object store (s3://BUCKET/PREFIX), or a \
                 list of addresses";
            self.refuse(given, option, (path, kind), what_to_do)?;
        }
        Ok(())
    }

    /// Rejects an option that has no effect on this kind of SRC.
    fn refuse(
        &self,
        given: bool,
        option: &str,
        (path, kind): (&Path, &str),
        what_to_do: &str,
    ) -> Result<()> {
        if !given {
            return Ok(());
        }
        Err(Error::config(format!(
            "`{option}` has no effect on {}, which is {kind}: {what_to_do}",
            path.display()
        )))
    }

    fn folder_options(&self) -> Result<FolderOptions> {
        let mut options = FolderOptions::default();
        if self.labels == LabelSource::None {
            options.labels = FolderLabels::None;
        }
        options.classes = self.classes.as_deref().map(ClassList::read).transpose()?;
        Ok(options)
    }

    fn shard_options(&self) -> Result<ShardOptions> {
        let mut options = ShardOptions::default();
        options.image_field.clone_from(&self.image_field);
        if self.labels == LabelSource::None {
            options.labels = ShardLabels::None;
        }
        if let Some(field) = &self.label_field {
            options.labels = ShardLabels::Field(field.clone());
        }
        if let Some(text) = &self.label_json {
            // A pointer begins with a slash. An empty one is the whole document.
            let (field, pointer) = match text.split_once(':') {
                Some((field, pointer)) if !text.starts_with('/') => (field, pointer),
                _ => (JSON_EXTENSION, text.as_str()),
            };
            options.labels = ShardLabels::Json {
                field: field.to_owned(),
                pointer: pointer.to_owned(),
            };
        }
        match &self.index_dir {
            Some(folder) if folder == Path::new("none") => options.keep = KeepIndex::Nowhere,
            Some(folder) => options.keep = KeepIndex::In(folder.clone()),
            None => {}
        }
        options.classes = self.classes.as_deref().map(ClassList::read).transpose()?;
        Ok(options)
    }

    /// The options of Parquet and of Arrow files, which are equal.
    fn columnar_options(
        &self,
        path: &Path,
        kind: &str,
        config: Option<&TrainingConfig>,
    ) -> Result<ParquetOptions> {
        let fix = "remove the option, or give a table (.csv, .tsv, .jsonl)";
        let given = self.path_suffix.is_some();
        self.refuse(given, "path_suffix", (path, kind), fix)?;
        let both = self.path_column.is_some() && self.image_column.is_some();
        let of_two = "name one column: give `image_column` or `path_column`";
        self.refuse(both, "path_column", (path, kind), of_two)?;
        self.refuse_text_options(path, kind)?;
        self.refuse_shard_options(path, kind)?;
        refuse_boxes(config, path, kind)?;
        self.parquet_options()
    }

    fn parquet_options(&self) -> Result<ParquetOptions> {
        let labels = match (&self.label_column, self.labels) {
            (Some(_), LabelSource::None) => return Err(two_of_labels()),
            (Some(name), LabelSource::Auto) => ParquetLabels::Column(name.clone()),
            (None, LabelSource::Auto) => ParquetLabels::Auto,
            (None, LabelSource::None) => ParquetLabels::None,
        };
        Ok(ParquetOptions {
            image_column: self.image_column.clone().or(self.path_column.clone()),
            labels,
            classes: self.classes.as_deref().map(ClassList::read).transpose()?,
            root: self.root.clone(),
            allow_outside: self.allow_outside,
        })
    }

    fn refuse_image_column(&self, path: &Path) -> Result<()> {
        let what_to_do = "remove the option, or give Parquet or Arrow files";
        let kind = (path, "no Parquet or Arrow file");
        self.refuse(
            self.image_column.is_some(),
            "image_column",
            kind,
            what_to_do,
        )
    }

    fn table_options(&self, file: &Path, config: Option<&TrainingConfig>) -> Result<TableOptions> {
        let table = (file, "a table");
        let without = "remove it, or the options of tables";
        self.refuse(self.delimiter.is_some(), "delimiter", table, without)?;
        let without = "remove the option, or give a list file";
        self.refuse(self.boxes.is_some(), "boxes", table, without)?;
        self.refuse_shard_options(file, "a table")?;
        refuse_boxes(config, file, "a table")?;
        let of_config = config.map(|config| &config.list_options);
        let has_none = of_config.is_some_and(|list| list.labels == ListLabels::None);
        let labels = match (&self.label_column, self.labels) {
            (Some(_), LabelSource::None) => return Err(two_of_labels()),
            (Some(names), LabelSource::Auto) => {
                let names = names.split(',').map(|name| name.trim().to_owned());
                TableLabels::Columns(names.collect())
            }
            (None, LabelSource::Auto) if !has_none => TableLabels::Auto,
            (None, _) => TableLabels::None,
        };
        Ok(TableOptions {
            path_column: self.path_column.clone(),
            path_suffix: self.path_suffix.clone().unwrap_or_default(),
            labels,
            classes: self.classes.as_deref().map(ClassList::read).transpose()?,
            relabel: of_config.is_some_and(|list| list.relabel),
            root: self.root.clone(),
            allow_outside: self.allow_outside,
        })
    }

    /// The config's values, unless a flag sets another. The root is not the config's.
    fn list_options(&self, config: Option<&TrainingConfig>) -> Result<ListOptions> {
        let mut options = config.map_or_else(ListOptions::default, |c| c.list_options.clone());
        if self.labels == LabelSource::None {
            options.labels = ListLabels::None;
        }
        if let Some(text) = &self.delimiter {
            options.delimiter = match text.as_bytes() {
                b"\\t" => ListDelimiter::Byte(b'\t'),
                [byte] => ListDelimiter::Byte(*byte),
                _ => {
                    return Err(Error::config(format!(
                        "`delimiter` is '{text}': use one byte (\\t is a tab)"
                    )));
                }
            };
        }
        if let Some(boxes) = &self.boxes {
            options.boxes = Some(boxes.clone());
        }
        options.root = self.root.clone();
        options.allow_outside = self.allow_outside;
        Ok(options)
    }
}

fn two_of_labels() -> Error {
    Error::config("`label_column` and `labels: none` exclude each other: give one")
}

/// Rejects boxes of the config, which need a list file.
fn refuse_boxes(config: Option<&TrainingConfig>, path: &Path, kind: &str) -> Result<()> {
    if config.is_some_and(|config| config.list_options.boxes.is_some()) {
        return Err(Error::config(format!(
            "the config cuts boxes out of the pictures of a list (bbox_crop), and {} is {kind}: \
             give a list with `list`, or set bbox_crop: False",
            path.display()
        )));
    }
    Ok(())
}
