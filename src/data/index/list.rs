//! Reads a list file: `path label` lines, as PaddleClas and Caffe write them.
//!
//! Runs in the consumer. Streams the file; asks the file system about the list
//! and the root only, never about a sample, but for its box file where samples have
//! boxes (`boxes`). The order is the file's. Paths are
//! bytes. Unlike there, a bad line is an error that names it, not a crash or a
//! wrong label.
//!
//! - The path is everything before the last delimiter (before the first of the
//!   trailing numbers for a vector), so blanks in it are fine; a path that ends
//!   in numbers behind blanks is put in double quotes, where `""` and `\"` are a
//!   quote and `\\` is a backslash.
//! - Labels: one whole number, or a vector, `0,1,0` or `0 1 0`; or none. All
//!   lines alike. `0,5`, which may be a fraction, is refused where nobody asks for a
//!   vector.
//! - Every line is a sample, but for blank ones: there are no comments.
//!
//! - `options`: how a list is read; `line_fault`: why a line is refused, and what to change.

mod line_fault;
mod options;

use std::path::{Path, PathBuf};

use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::boxes;
use crate::data::index::foreign_data;
use crate::data::index::lines::TextLines;
use crate::data::index::list_root::ListRoot;
use crate::data::index::names::{has_image_extension, shown};
use crate::data::index::numbers;
use crate::data::index::report::ScanReport;
use crate::error::{Error, Result};

use line_fault::{LineFault, ListLabelKind};
pub use options::{ListDelimiter, ListLabels, ListOptions};

pub(crate) fn read(
    file: &Path,
    options: &ListOptions,
) -> Result<(PathBuf, IndexContent, ScanReport)> {
    if let ListDelimiter::Byte(byte @ (b'\n' | b'\r' | b'"' | 0)) = options.delimiter {
        return Err(Error::config(format!(
            "`delimiter` {:?} cannot separate path and label: use another byte",
            char::from(byte)
        )));
    }
    let mut lines = TextLines::open(file)?;
    if let Some(what) = foreign_data::of_file(file) {
        return Err(Error::dataset(file, what));
    }
    let roots = ListRoot::new(file, options.root.as_deref(), options.allow_outside)?;
    let mut content = IndexContent::default();
    let mut labels = ListLabelCollector::default();
    let mut path = Vec::new();
    let mut values = Vec::new();
    // Where each sample stands: for errors of its box.
    let mut numbers = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let label = parse(line, options, &mut path, &mut values).map_err(|bad| {
            Error::dataset_line(file, number, line_fault::text(&bad, line, number, options))
        })?;
        let relative = roots
            .relative(&path)
            .map_err(|bad| Error::dataset_line(file, number, bad.text()))?;
        labels
            .add(number, label, &values)
            .map_err(|bad| Error::dataset_line(file, number, bad.text()))?;
        content.push_path(relative);
        if options.boxes.is_some() {
            numbers.push(number);
        }
    }
    if content.samples() == 0 {
        return Err(Error::dataset(
            file,
            "no samples in this list: write one `path label` a line",
        ));
    }
    content.labels = labels.labels;
    if options.relabel {
        relabel(&mut content.labels, file)?;
    }
    if let Some(folder) = &options.boxes {
        content.boxes = boxes::read(folder, file, &numbers, &content)?;
    }
    let report = ScanReport {
        samples: content.samples() as u64,
        ..ScanReport::default()
    };
    Ok((roots.into_root(), content, report))
}

/// From 0 and without gaps, in ascending order.
pub(super) fn relabel(labels: &mut IndexLabels, file: &Path) -> Result<()> {
    let IndexLabels::Class(all) = labels else {
        return Err(Error::dataset(
            file,
            "relabel needs whole-number labels, and here are others or none",
        ));
    };
    let mut old = all.clone();
    old.sort_unstable();
    old.dedup();
    for label in all {
        *label = old.partition_point(|other| other < label) as i64;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ListLabel {
    None,
    Scalar(i64),
    /// The numbers are in the buffer that was passed.
    Vector,
}

/// The labels so far, all of the first one's kind.
#[derive(Default)]
struct ListLabelCollector {
    first: Option<(u64, ListLabelKind)>,
    labels: IndexLabels,
}

impl ListLabelCollector {
    fn add(&mut self, number: u64, label: ListLabel, vector: &[f32]) -> Result<(), LineFault> {
        let this = match label {
            ListLabel::None => ListLabelKind::None,
            ListLabel::Scalar(_) => ListLabelKind::Scalar,
            ListLabel::Vector => ListLabelKind::Vector {
                width: vector.len(),
            },
        };
        match self.first {
            Some((line, first)) if first != this => {
                return Err(LineFault::Unlike { this, first, line });
            }
            Some(_) => {}
            None => {
                self.first = Some((number, this));
                self.labels = match this {
                    ListLabelKind::None => IndexLabels::None,
                    ListLabelKind::Scalar => IndexLabels::Class(Vec::new()),
                    ListLabelKind::Vector { width } => IndexLabels::Vector {
                        width,
                        values: Vec::new(),
                    },
                };
            }
        }
        match (&mut self.labels, label) {
            (IndexLabels::Class(all), ListLabel::Scalar(value)) => all.push(value),
            (IndexLabels::Vector { values, .. }, ListLabel::Vector) => {
                values.extend_from_slice(vector)
            }
            _ => {}
        }
        Ok(())
    }
}

/// Takes a line apart: the path goes to `path`, a vector's numbers to `values`,
/// which holds nothing of meaning for the other kinds of label.
fn parse(
    line: &[u8],
    options: &ListOptions,
    path: &mut Vec<u8>,
    values: &mut Vec<f32>,
) -> Result<ListLabel, LineFault> {
    path.clear();
    values.clear();
    let delimiter = options.delimiter;
    let label = if line.starts_with(b"\"") {
        let rest = unquote(line, path)?;
        let label = match delimiter {
            _ if rest.is_empty() => rest,
            ListDelimiter::Blanks if is_blank(rest[0]) => rest.trim_ascii(),
            ListDelimiter::Byte(byte) => match rest.trim_ascii_start().strip_prefix(&[byte]) {
                Some(label) => label.trim_ascii(),
                // The delimiter may be a blank itself.
                None => match rest.strip_prefix(&[byte]) {
                    Some(label) => label.trim_ascii(),
                    None => return Err(LineFault::BehindQuote),
                },
            },
            ListDelimiter::Blanks => return Err(LineFault::BehindQuote),
        };
        parse_label(label, options, values)?
    } else {
        let (plain, label) = split(line, options, values)?;
        path.extend_from_slice(plain);
        label
    };
    if path.is_empty() {
        return Err(LineFault::NoPath);
    }
    if path.contains(&0) {
        return Err(LineFault::Nul);
    }
    Ok(label)
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Reads a quoted path into `path`; gives what stands behind it.
fn unquote<'a>(line: &'a [u8], path: &mut Vec<u8>) -> Result<&'a [u8], LineFault> {
    let mut at = 1;
    loop {
        match (line.get(at), line.get(at + 1)) {
            (None, _) => return Err(LineFault::OpenQuote),
            (Some(b'"'), Some(b'"')) | (Some(b'\\'), Some(b'"')) => {
                path.push(b'"');
                at += 2;
            }
            (Some(b'\\'), Some(b'\\')) => {
                path.push(b'\\');
                at += 2;
            }
            (Some(b'"'), _) => return Ok(&line[at + 1..]),
            (Some(&byte), _) => {
                path.push(byte);
                at += 1;
            }
        }
    }
}

/// The last field of a line and what stands before its delimiter.
fn last_field(line: &[u8], delimiter: ListDelimiter) -> Option<(&[u8], &[u8])> {
    let at = match delimiter {
        ListDelimiter::Blanks => line.iter().rposition(|&b| is_blank(b)),
        ListDelimiter::Byte(byte) => line.iter().rposition(|&b| b == byte),
    }?;
    Some((line[..at].trim_ascii(), line[at + 1..].trim_ascii()))
}

/// The first field of a line and what stands behind its delimiter.
fn first_field(line: &[u8], delimiter: ListDelimiter) -> (&[u8], &[u8]) {
    let at = match delimiter {
        ListDelimiter::Blanks => line.iter().position(|&b| is_blank(b)),
        ListDelimiter::Byte(byte) => line.iter().position(|&b| b == byte),
    };
    match at {
        Some(at) => (line[..at].trim_ascii(), line[at + 1..].trim_ascii()),
        None => (line, &[]),
    }
}

/// The last field and every number before it; gives what is left of the line.
fn trailing_numbers<'a>(
    line: &'a [u8],
    delimiter: ListDelimiter,
    values: &mut Vec<f32>,
) -> Result<&'a [u8], LineFault> {
    let mut rest = line;
    while let Some((before, field)) = last_field(rest, delimiter) {
        if before.is_empty() || number(field).is_none() {
            break;
        }
        rest = before;
    }
    // Forwards again, now that it is known where the label begins.
    let mut label = line[rest.len()..].trim_ascii();
    if let ListDelimiter::Byte(byte) = delimiter {
        label = label.strip_prefix(&[byte]).unwrap_or(label);
    }
    if !label.is_empty() {
        push_numbers(label, delimiter, values)?;
    }
    Ok(rest)
}

/// Splits a line whose path is not quoted.
fn split<'a>(
    line: &'a [u8],
    options: &ListOptions,
    values: &mut Vec<f32>,
) -> Result<(&'a [u8], ListLabel), LineFault> {
    if options.labels == ListLabels::None {
        return Ok((line, ListLabel::None));
    }
    if options.labels == ListLabels::Second {
        let (path, behind) = first_field(line, options.delimiter);
        return match first_field(behind, options.delimiter).0 {
            [] => Err(LineFault::NoLabel),
            label => Ok((path, ListLabel::Scalar(whole(label)?))),
        };
    }
    let Some((before, last)) = last_field(line, options.delimiter) else {
        return match options.labels {
            ListLabels::Auto if has_image_extension(line) => Ok((line, ListLabel::None)),
            _ => Err(LineFault::NoLabel),
        };
    };
    if options.labels == ListLabels::Scalar {
        return Ok((before, ListLabel::Scalar(whole(last)?)));
    }
    if last.contains(&b',')
        && number(last.split(|&b| b == b',').next_back().unwrap_or(last)).is_some()
    {
        check_commas(last, options)?;
        push_numbers(last, ListDelimiter::Byte(b','), values)?;
        return Ok((before, ListLabel::Vector));
    }
    let rest = trailing_numbers(line, options.delimiter, values)?;
    match (options.labels, values.len()) {
        (ListLabels::Auto, 0) if has_image_extension(line) => Ok((line, ListLabel::None)),
        (ListLabels::Auto, 0 | 1) => Ok((before, ListLabel::Scalar(whole(last)?))),
        (_, 0) => Err(LineFault::NotNumber(shown(last))),
        _ => Ok((rest, ListLabel::Vector)),
    }
}

/// The label behind a quoted path: what it is cannot be mistaken.
fn parse_label(
    label: &[u8],
    options: &ListOptions,
    values: &mut Vec<f32>,
) -> Result<ListLabel, LineFault> {
    match options.labels {
        ListLabels::None | ListLabels::Auto if label.is_empty() => Ok(ListLabel::None),
        _ if label.is_empty() => Err(LineFault::NoLabel),
        // A column that the caller does not want.
        ListLabels::None => Ok(ListLabel::None),
        ListLabels::Scalar => Ok(ListLabel::Scalar(whole(label)?)),
        ListLabels::Second => {
            let label = first_field(label, options.delimiter).0;
            Ok(ListLabel::Scalar(whole(label)?))
        }
        kind => {
            let delimiter = if label.contains(&b',') {
                check_commas(label, options)?;
                ListDelimiter::Byte(b',')
            } else {
                options.delimiter
            };
            if kind == ListLabels::Auto && last_field(label, delimiter).is_none() {
                return Ok(ListLabel::Scalar(whole(label)?));
            }
            push_numbers(label, delimiter, values)?;
            Ok(ListLabel::Vector)
        }
    }
}

/// Refuses what may be one number, unless vectors are asked for.
fn check_commas(label: &[u8], options: &ListOptions) -> Result<(), LineFault> {
    let is_list = options.delimiter == ListDelimiter::Byte(b',');
    match std::str::from_utf8(label) {
        // Spreadsheets write semicolons where the comma is a decimal one, as in tables.
        Ok(label)
            if options.labels == ListLabels::Auto
                && options.delimiter == ListDelimiter::Byte(b';')
                && numbers::is_comma_pair(label) =>
        {
            Err(LineFault::Ambiguous(numbers::ambiguity_text(label)))
        }
        Ok(label) if options.labels == ListLabels::Auto && !is_list => {
            let checked = numbers::vector(label).map(|_| ());
            checked.map_err(LineFault::Ambiguous)
        }
        _ => Ok(()),
    }
}

/// Reads the numbers of a vector.
fn push_numbers(
    label: &[u8],
    delimiter: ListDelimiter,
    values: &mut Vec<f32>,
) -> Result<(), LineFault> {
    let separates = |&b: &u8| match delimiter {
        ListDelimiter::Blanks => is_blank(b),
        ListDelimiter::Byte(byte) => b == byte,
    };
    for field in label.split(separates) {
        let field = field.trim_ascii();
        // Blanks come in runs, other delimiters do not.
        if field.is_empty() && delimiter == ListDelimiter::Blanks {
            continue;
        }
        let value = number(field).ok_or_else(|| LineFault::NotNumber(shown(field)))?;
        if !value.is_finite() {
            return Err(LineFault::NotFinite(shown(field)));
        }
        values.push(value);
    }
    Ok(())
}

fn number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn whole(label: &[u8]) -> Result<i64, LineFault> {
    std::str::from_utf8(label)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| LineFault::NotWhole(shown(label)))
}

#[cfg(test)]
mod tests;
