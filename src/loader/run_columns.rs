//! The columns that a run opens: those that it names, and that of captions.
//!
//! In the consumer.

use std::sync::Arc;

use crate::data::columns::column_set::NamedReaders;
use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::caption_rule::CaptionRule;
use crate::jobs::images::captions::{RunCaptions, check_kind};
use crate::loader::column_source::ColumnSource;
use crate::loader::source::Source;

/// Names of columns, and the rule of captions.
#[derive(Debug)]
pub(super) struct RunColumns {
    /// The columns of batches, then that of captions if it is not among them.
    names: Vec<String>,
    /// The number of columns of batches.
    named: usize,
    captions: Option<RunCaptions>,
}

/// The columns of a run, opened.
#[derive(Debug)]
pub(super) struct OpenedColumns {
    pub(super) readers: NamedReaders,
    /// The first readers of this number are columns of batches.
    pub(super) named: usize,
    pub(super) captions: Option<RunCaptions>,
}

impl RunColumns {
    /// `columns`: those of batches.
    ///
    /// # Errors
    /// Fields of the rule that have no meaning.
    pub(super) fn new(columns: &[String], captions: Option<&CaptionRule>) -> Result<Self> {
        let mut names = columns.to_vec();
        let captions = captions.map(|rule| -> Result<RunCaptions> {
            rule.check()?;
            let number = rule.column.as_ref().map(|column| {
                let known = names.iter().position(|name| name == column);
                known.unwrap_or_else(|| {
                    names.push(column.clone());
                    names.len() - 1
                })
            });
            Ok(RunCaptions {
                rule: Arc::new(rule.clone()),
                column: number,
            })
        });
        Ok(Self {
            captions: captions.transpose()?,
            named: columns.len(),
            names,
        })
    }

    /// Where the columns of `source` are, which has not been read yet.
    ///
    /// # Errors
    /// As [`ColumnSource::of`].
    pub(super) fn source(&self, source: &Source) -> Result<ColumnSource> {
        ColumnSource::of(source, &self.names).map_err(|e| self.explain(e))
    }

    /// Names the option `captions` in an error if no other option names a column.
    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Config {
                option: Some("columns"),
                what,
            } if self.named == 0 => Error::option("captions", format!("captions: {what}")),
            error => error,
        }
    }

    /// Opens the columns.
    ///
    /// # Errors
    /// As [`ColumnSource::open`]; a column of captions that has no texts.
    pub(super) fn open(&self, source: ColumnSource, index: &Index) -> Result<OpenedColumns> {
        let readers = source.open(&self.names, index);
        let readers = readers.map_err(|e| self.explain(e))?;
        if let Some(captions) = &self.captions
            && let Some((_, reader)) = captions.column.and_then(|number| readers.get(number))
        {
            check_kind(&captions.rule, reader.kind())?;
        }
        Ok(OpenedColumns {
            readers,
            named: self.named,
            captions: self.captions.clone(),
        })
    }
}
