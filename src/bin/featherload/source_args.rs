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
    /// What people call the data set: the end of its path.
    pub fn name(&self) -> String {
        let whole = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let parts: Vec<_> = whole.components().collect();
        let end: PathBuf = parts[parts.len().saturating_sub(2)..].iter().collect();
        end.display().to_string()
    }

    pub fn source(&self) -> Result<Source> {
        Ok(match Source::detect(&self.path)? {
            Source::Folder(path, _) => {
                self.refuse_list_options("a folder")?;
                Source::Folder(path, self.folder_options()?)
            }
            Source::List(path, _) => {
                self.refuse(
                    self.classes.is_some(),
                    "--classes",
                    "a list file",
                    "labels stand in the list itself: leave the option out",
                )?;
                Source::List(path, self.list_options()?)
            }
            other => {
                let saved = "a saved index";
                self.refuse(
                    self.classes.is_some(),
                    "--classes",
                    saved,
                    "its classes are fixed: leave the option out, or make the index again with it",
                )?;
                self.refuse(
                    self.labels == LabelSource::None,
                    "--labels none",
                    saved,
                    "its labels are fixed: make the index again with this option",
                )?;
                self.refuse_list_options(saved)?;
                other
            }
        })
    }

    fn refuse_list_options(&self, kind: &str) -> Result<()> {
        for (given, option) in [
            (self.root.is_some(), "--root"),
            (self.delimiter.is_some(), "--delimiter"),
            (self.allow_outside, "--allow-outside"),
        ] {
            let what_to_do = "leave the option out, or give a list file";
            self.refuse(given, option, kind, what_to_do)?;
        }
        Ok(())
    }

    /// An option that SRC, being what it is, would silently ignore.
    fn refuse(&self, given: bool, option: &str, kind: &str, what_to_do: &str) -> Result<()> {
        if !given {
            return Ok(());
        }
        Err(Error::config(format!(
            "{option} means nothing for {}, which is {kind}; {what_to_do}",
            self.path.display()
        )))
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
