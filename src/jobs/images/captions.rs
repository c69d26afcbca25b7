//! The captions of a batch: the texts of its rows, and the rule that makes captions of them.
//!
//! In the consumer. Reads a column when captions are read. Never in here: the steps of the
//! rule.

use std::sync::Arc;

use crate::data::columns::column_set::ValueFile;
use crate::data::columns::{BatchColumns, ColumnKind, ColumnValues};
use crate::data::index::shown;
use crate::error::{Error, Result};
use crate::jobs::caption_rule::{CaptionRule, MissingCaption};
use crate::order::{EpochMark, EpochPlan, PositionRandom, RowPlan};

/// The captions of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunCaptions {
    pub(crate) rule: Arc<CaptionRule>,
    /// The number of their column among those that the run has open. None: the program gives the
    /// values.
    pub(crate) column: Option<usize>,
}

/// A row that has a sample.
#[derive(Debug, Clone)]
struct CaptionRow {
    id: u64,
    random: PositionRandom,
}

/// Makes the captions of a batch when they are read. It outlives the batch, and keeps no pixels.
#[derive(Debug, Clone)]
pub struct BatchCaptions {
    of_run: RunCaptions,
    /// None for masked rows.
    rows: Vec<Option<CaptionRow>>,
    columns: BatchColumns,
}

impl BatchCaptions {
    pub(super) fn new(
        of_run: RunCaptions,
        plan: &EpochPlan,
        at: EpochMark,
        (rows, columns): (&[RowPlan], BatchColumns),
    ) -> Self {
        let row = |row: &RowPlan| {
            (!row.status.is_masked()).then(|| CaptionRow {
                id: row.id,
                random: plan.caption_random(at.epoch, row.position),
            })
        };
        Self {
            of_run,
            rows: rows.iter().map(row).collect(),
            columns,
        }
    }

    /// One caption for each row, empty for masked rows. Reads the column that the rule names.
    ///
    /// # Errors
    /// As [`Batch::captions`](crate::Batch::captions).
    pub fn read(&self) -> Result<Vec<String>> {
        let Some(number) = self.of_run.column else {
            return Err(Error::option(
                "captions",
                "captions: `column` is missing: name a column of texts",
            ));
        };
        let ids = self.rows.iter().map(|row| row.as_ref().map(|row| row.id));
        let ids: Vec<Option<u64>> = ids.collect();
        let values = self.columns.read_for_captions(number, &ids)?;
        self.make(&values, |id| self.columns.file_of_value(number, id))
    }

    /// The same of values that the program has: texts, or lists of texts, one for each row.
    ///
    /// # Errors
    /// Values of another type, or for another number of rows; a row without a caption.
    pub fn of_values(&self, values: &ColumnValues) -> Result<Vec<String>> {
        self.make(values, |_| None)
    }

    /// `file`: the file that has the value of a sample.
    fn make(
        &self,
        values: &ColumnValues,
        file: impl Fn(u64) -> Option<ValueFile>,
    ) -> Result<Vec<String>> {
        let rule = &self.of_run.rule;
        let texts: Vec<Vec<&str>> = match values {
            ColumnValues::Text(texts) => texts
                .iter()
                .map(|text| text.as_deref().into_iter().collect())
                .collect(),
            ColumnValues::TextLists(lists) => lists
                .iter()
                .map(|list| list.iter().flatten().map(String::as_str).collect())
                .collect(),
            _ => return Err(not_texts(rule, "other values")),
        };
        if texts.len() != self.rows.len() {
            return Err(Error::config(format!(
                "captions: {} values for {} rows: give one for each row",
                texts.len(),
                self.rows.len()
            )));
        }
        let caption = |(row, texts): (&Option<CaptionRow>, Vec<&str>)| {
            let Some(CaptionRow { id, random }) = row else {
                return Ok(String::new());
            };
            match texts.is_empty() && rule.missing == MissingCaption::Error {
                true => Err(no_caption(rule, *id, file(*id))),
                false => Ok(rule.caption(&texts, random.clone())),
            }
        };
        self.rows.iter().zip(texts).map(caption).collect()
    }
}

/// Checks that a column has texts.
///
/// # Errors
/// It has numbers or bytes.
pub(crate) fn check_kind(rule: &CaptionRule, kind: ColumnKind) -> Result<()> {
    match kind {
        ColumnKind::Text | ColumnKind::TextLists => Ok(()),
        kind => Err(not_texts(rule, &kind.to_string())),
    }
}

fn named(rule: &CaptionRule) -> String {
    let name = rule.column.as_deref().unwrap_or_default();
    format!("column '{}'", shown(name.as_bytes()))
}

fn not_texts(rule: &CaptionRule, kind: &str) -> Error {
    Error::option(
        "captions",
        format!(
            "captions: {} has {kind}, and captions are made of texts: name a column of texts or of \
             lists of texts, and read this one with `columns`",
            named(rule)
        ),
    )
}

/// The error for a sample without a caption.
fn no_caption(rule: &CaptionRule, id: u64, file: Option<ValueFile>) -> Error {
    const FIX: &str = "or set `missing` of captions to empty";
    match file {
        Some(ValueFile::Own(path)) => Error::dataset(
            path,
            format!("does not exist, so sample {id} has no caption: write this file, {FIX}"),
        ),
        Some(ValueFile::Image(path)) => Error::dataset(
            path,
            format!(
                "sample {id} has no text in {}: give it one, {FIX}",
                named(rule)
            ),
        ),
        None => Error::option(
            "captions",
            format!("captions: sample {id} has no text: give it one, {FIX}"),
        ),
    }
}
