//! Arguments that say where samples come from, shared by the sub-commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use featherload::index::{Classes, Delimiter, FolderLabels, FolderOptions, ListOptions};
use featherload::{Error, Result, Source};

#[derive(Args)]
pub struct SourceArgs {
    /// A folder (class sub-folders or flat), a list file (`path label` lines)
    /// or an index kept by `featherload index --save`.
    #[arg(value_name = "SRC")]
    path: PathBuf,

    /// Where labels come from. `none` takes every image under SRC, recursively.
    #[arg(long, value_enum, default_value_t = LabelSource::Auto)]
    labels: LabelSource,

    /// Class names, one a line: the line's number is the label. For a
    /// validation folder that lacks a class.
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,

    /// Folder that a list file's paths are relative to (default: the file's own).
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Separator of path and label in a list file (default: blanks).
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<String>,

    /// Let a list file's paths leave the root.
    #[arg(long)]
    allow_outside: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LabelSource {
    Auto,
    None,
}

impl SourceArgs {
    pub fn source(&self) -> Result<Source> {
        let source = match Source::detect(&self.path)? {
            Source::Folder(path, _) => Source::Folder(path, self.folder_options()?),
            Source::List(path, _) => Source::List(path, self.list_options()?),
            other => other,
        };
        Ok(source)
    }

    fn folder_options(&self) -> Result<FolderOptions> {
        let mut options = FolderOptions::default();
        if self.labels == LabelSource::None {
            options.labels = FolderLabels::None;
        }
        options.classes = self.classes.as_deref().map(Classes::read).transpose()?;
        Ok(options)
    }

    fn list_options(&self) -> Result<ListOptions> {
        let mut options = ListOptions::default();
        if self.labels == LabelSource::None {
            options.labels = featherload::index::ListLabels::None;
        }
        if let Some(text) = &self.delimiter {
            options.delimiter = match text.as_bytes() {
                b"\\t" => Delimiter::Byte(b'\t'),
                [byte] => Delimiter::Byte(*byte),
                _ => {
                    return Err(Error::config(format!(
                        "delimiter '{text}' is not one byte (\\t is a tab)"
                    )));
                }
            };
        }
        options.root = self.root.clone();
        options.allow_outside = self.allow_outside;
        Ok(options)
    }
}
