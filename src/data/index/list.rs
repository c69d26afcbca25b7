//! Reads a list file: `path label` lines, as PaddleClas and Caffe write them.
//!
//! Runs in the consumer. Streams the file, and keeps its order. Paths are bytes. It does not open
//! the samples' files. It reads a box file per sample if samples have boxes (`boxes`).
//!
//! - The path is everything before the last delimiter, or before the trailing numbers of a vector.
//!   So a path may contain blanks. A path that ends in a blank and a number needs double quotes.
//! - In double quotes, `""` and `\"` are a quote, and `\\` is a backslash.
//! - A label is one whole number, or a vector as `0,1,0` or `0 1 0`, or absent. All lines must have
//!   the same kind. `0,5` may be a fraction, so it is rejected unless vectors are requested.
//! - Every line is a sample, except blank lines. There are no comments.
//! - An invalid line is an error that names it. PaddleClas and Caffe crash or use a wrong label.
//!
//! - `options`: reading options; `line_fault`: why a line is rejected, and what to change.

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
    // The line of each sample, for errors about its box.
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
            "no samples in this list: write one `path label` per line",
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

/// Renumbers whole-number labels from 0 without gaps, in ascending order.
///
/// # Errors
/// Labels of another kind, or none.
pub(super) fn relabel(labels: &mut IndexLabels, file: &Path) -> Result<()> {
    let IndexLabels::Class(all) = labels else {
        return Err(Error::dataset(
            file,
            "relabel needs whole-number labels, but this file has others or none: remove `relabel`",
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
    /// The numbers are in the buffer that [`parse`] filled.
    Vector,
}

/// The labels of the lines so far, which all have the kind of the first.
#[derive(Default)]
struct ListLabelCollector {
    first: Option<(u64, ListLabelKind)>,
    labels: IndexLabels,
}

impl ListLabelCollector {
    /// Adds the label of line `number`. `vector` has the numbers of a vector label.
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

/// Parses a line. Writes its path to `path`, and the numbers of a vector label to `values`. For
/// other kinds of labels the content of `values` has no meaning.
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

/// Appends a quoted path, without its quotes, to `path`. Returns the rest of the line.
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

/// The line before its last delimiter, and the field after it. `None` if there is no delimiter.
fn last_field(line: &[u8], delimiter: ListDelimiter) -> Option<(&[u8], &[u8])> {
    let at = match delimiter {
        ListDelimiter::Blanks => line.iter().rposition(|&b| is_blank(b)),
        ListDelimiter::Byte(byte) => line.iter().rposition(|&b| b == byte),
    }?;
    Some((line[..at].trim_ascii(), line[at + 1..].trim_ascii()))
}

/// The first field of a line, and the rest after its delimiter.
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

/// Appends the numbers at the end of a line to `values`, in their order. Returns the line before
/// them.
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
    // The start of the label is known now, so read its numbers in their order.
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

/// Parses the label after a quoted path, which has no ambiguous start.
fn parse_label(
    label: &[u8],
    options: &ListOptions,
    values: &mut Vec<f32>,
) -> Result<ListLabel, LineFault> {
    match options.labels {
        ListLabels::None | ListLabels::Auto if label.is_empty() => Ok(ListLabel::None),
        _ if label.is_empty() => Err(LineFault::NoLabel),
        // The options ignore labels.
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

/// Rejects a label that may be one number with a comma, unless vectors are requested.
fn check_commas(label: &[u8], options: &ListOptions) -> Result<(), LineFault> {
    let is_list = options.delimiter == ListDelimiter::Byte(b',');
    match std::str::from_utf8(label) {
        // Spreadsheets separate fields by semicolons in languages with a decimal comma.
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

/// Appends the numbers of a vector label to `values`.
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
        // Several blanks are one delimiter. Other delimiters count one by one.
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
