//! Reads a list file: `path label` lines, as PaddleClas and Caffe write them.
//!
//! Runs in the consumer. Streams the file; asks the file system about the list
//! and the root only, never about a sample. The order is the file's. Paths are
//! bytes. Unlike there, a bad line is an error that names it, not a crash or a
//! wrong label.
//!
//! - The path is everything before the last delimiter (before the first of the
//!   trailing numbers for a vector), so blanks in it are fine; a path that ends
//!   in numbers behind blanks, or begins with `#`, is put in double quotes, where
//!   `""` and `\"` are a quote and `\\` is a backslash.
//! - Labels: one whole number, or a vector, `0,1,0` or `0 1 0`; or none. All
//!   lines alike.
//! - Blank lines, and lines that begin with `#`, are passed over.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::index::lines::Lines;
use crate::index::report::ScanReport;
use crate::index::sealed::{Content, Labels};
use crate::index::{has_image_extension, shown};

/// How [`Index::list`](crate::index::Index::list) reads a list file.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub delimiter: Delimiter,
    /// Where relative paths start; by default the list file's folder.
    pub root: Option<PathBuf>,
    /// Accept paths that lead out of the root.
    pub allow_outside: bool,
    pub labels: ListLabels,
    /// Numbers whole-number labels anew, from 0 without gaps, in their ascending
    /// order: PaddleClas' `relabel`.
    pub relabel: bool,
}

/// What stands between a path and its label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delimiter {
    /// A run of blanks and tabs.
    #[default]
    Blanks,
    /// This byte, once. Blanks around path and label are no part of them.
    Byte(u8),
}

/// What stands behind the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListLabels {
    /// What the first line shows: a whole number, several numbers, or nothing
    /// behind a path with a known image extension.
    #[default]
    Auto,
    /// Nothing: the whole line is the path.
    None,
    /// One whole number.
    Scalar,
    /// One number or more.
    Vector,
    /// One whole number behind the first delimiter; what stands behind it, such as
    /// VeriWild's camera, means nothing. Blanks in a path need quotes.
    Second,
}

pub(super) fn read(file: &Path, options: &ListOptions) -> Result<(PathBuf, Content, ScanReport)> {
    if let Delimiter::Byte(byte @ (b'\n' | b'\r' | b'"' | 0)) = options.delimiter {
        return Err(Error::config(format!(
            "{:?} cannot be the delimiter of a list file",
            char::from(byte)
        )));
    }
    let mut lines = Lines::open(file)?;
    let roots = Roots::new(file, options)?;
    let mut content = Content::default();
    let mut labels = Gathered::default();
    let mut path = Vec::new();
    let mut values = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let label = parse(line, options, &mut path, &mut values)
            .map_err(|bad| Error::dataset_line(file, number, bad.text()))?;
        let relative = roots
            .relative(&path)
            .map_err(|bad| Error::dataset_line(file, number, bad.text()))?;
        labels
            .add(number, label, &values)
            .map_err(|bad| Error::dataset_line(file, number, bad.text()))?;
        content.push_path(relative);
    }
    if content.samples() == 0 {
        return Err(Error::dataset(
            file,
            "no samples in this list; write one `path label` a line",
        ));
    }
    content.labels = labels.labels;
    if options.relabel {
        relabel(&mut content.labels, file)?;
    }
    let report = ScanReport {
        samples: content.samples() as u64,
        ..ScanReport::default()
    };
    Ok((roots.root, content, report))
}

/// From 0 and without gaps, in ascending order.
fn relabel(labels: &mut Labels, file: &Path) -> Result<()> {
    let Labels::Class(all) = labels else {
        return Err(Error::dataset(
            file,
            "relabel numbers whole-number labels anew, and this list has others or none",
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

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq)]
enum Bad {
    OpenQuote,
    BehindQuote,
    NoPath,
    Nul,
    NoLabel,
    NotWhole(String),
    NotNumber(String),
    NotFinite(String),
    Outside(String),
    Unlike { this: Kind, first: Kind, line: u64 },
}

impl Bad {
    fn text(&self) -> String {
        match self {
            Self::OpenQuote => "a quoted path without its closing quote".into(),
            Self::BehindQuote => "no delimiter between the closing quote and the label".into(),
            Self::NoPath => "no path".into(),
            Self::Nul => "a NUL byte in the path; is this a text file?".into(),
            Self::NoLabel => {
                "no label, or no delimiter before it; check `--delimiter`, or pass `--labels none`"
                    .into()
            }
            Self::NotWhole(label) => format!(
                "label '{label}' is no whole number; check `--delimiter`, or put a path with \
                 blanks in double quotes"
            ),
            Self::NotNumber(label) => format!("'{label}' in a vector label is no number"),
            Self::NotFinite(label) => format!("label '{label}' is not a finite number"),
            Self::Outside(path) => format!(
                "path '{path}' leads out of the root; set `--root`, or pass `--allow-outside`"
            ),
            Self::Unlike { this, first, line } => format!(
                "{} here, but {} in line {line}; put a path with blanks in double quotes",
                this.text(),
                first.text()
            ),
        }
    }
}

/// What a line's label is like; the numbers themselves lie beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    None,
    Scalar,
    Vector { width: usize },
}

impl Kind {
    fn text(self) -> String {
        match self {
            Self::None => "no label".into(),
            Self::Scalar => "one whole number as label".into(),
            Self::Vector { width } => format!("a label of {width} numbers"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Parsed {
    None,
    Scalar(i64),
    /// The numbers are in the buffer that was passed.
    Vector,
}

/// The labels so far, all of the first one's kind.
#[derive(Default)]
struct Gathered {
    first: Option<(u64, Kind)>,
    labels: Labels,
}

impl Gathered {
    fn add(&mut self, number: u64, label: Parsed, vector: &[f32]) -> Result<(), Bad> {
        let this = match label {
            Parsed::None => Kind::None,
            Parsed::Scalar(_) => Kind::Scalar,
            Parsed::Vector => Kind::Vector {
                width: vector.len(),
            },
        };
        match self.first {
            Some((line, first)) if first != this => {
                return Err(Bad::Unlike { this, first, line });
            }
            Some(_) => {}
            None => {
                self.first = Some((number, this));
                self.labels = match this {
                    Kind::None => Labels::None,
                    Kind::Scalar => Labels::Class(Vec::new()),
                    Kind::Vector { width } => Labels::Vector {
                        width,
                        values: Vec::new(),
                    },
                };
            }
        }
        match (&mut self.labels, label) {
            (Labels::Class(all), Parsed::Scalar(value)) => all.push(value),
            (Labels::Vector { values, .. }, Parsed::Vector) => values.extend_from_slice(vector),
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
) -> Result<Parsed, Bad> {
    path.clear();
    values.clear();
    let delimiter = options.delimiter;
    let label = if line.starts_with(b"\"") {
        let rest = unquote(line, path)?;
        let label = match delimiter {
            _ if rest.is_empty() => rest,
            Delimiter::Blanks if is_blank(rest[0]) => rest.trim_ascii(),
            Delimiter::Byte(byte) => match rest.trim_ascii_start().strip_prefix(&[byte]) {
                Some(label) => label.trim_ascii(),
                // The delimiter may be a blank itself.
                None => match rest.strip_prefix(&[byte]) {
                    Some(label) => label.trim_ascii(),
                    None => return Err(Bad::BehindQuote),
                },
            },
            Delimiter::Blanks => return Err(Bad::BehindQuote),
        };
        parse_label(label, options, values)?
    } else {
        let (plain, label) = split(line, options, values)?;
        path.extend_from_slice(plain);
        label
    };
    if path.is_empty() {
        return Err(Bad::NoPath);
    }
    if path.contains(&0) {
        return Err(Bad::Nul);
    }
    Ok(label)
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Reads a quoted path into `path`; gives what stands behind it.
fn unquote<'a>(line: &'a [u8], path: &mut Vec<u8>) -> Result<&'a [u8], Bad> {
    let mut at = 1;
    loop {
        match (line.get(at), line.get(at + 1)) {
            (None, _) => return Err(Bad::OpenQuote),
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
fn last_field(line: &[u8], delimiter: Delimiter) -> Option<(&[u8], &[u8])> {
    let at = match delimiter {
        Delimiter::Blanks => line.iter().rposition(|&b| is_blank(b)),
        Delimiter::Byte(byte) => line.iter().rposition(|&b| b == byte),
    }?;
    Some((line[..at].trim_ascii(), line[at + 1..].trim_ascii()))
}

/// The first field of a line and what stands behind its delimiter.
fn first_field(line: &[u8], delimiter: Delimiter) -> (&[u8], &[u8]) {
    let at = match delimiter {
        Delimiter::Blanks => line.iter().position(|&b| is_blank(b)),
        Delimiter::Byte(byte) => line.iter().position(|&b| b == byte),
    };
    match at {
        Some(at) => (line[..at].trim_ascii(), line[at + 1..].trim_ascii()),
        None => (line, &[]),
    }
}

/// The last field and every number before it; gives what is left of the line.
fn trailing_numbers<'a>(
    line: &'a [u8],
    delimiter: Delimiter,
    values: &mut Vec<f32>,
) -> Result<&'a [u8], Bad> {
    let mut rest = line;
    while let Some((before, field)) = last_field(rest, delimiter) {
        if before.is_empty() || number(field).is_none() {
            break;
        }
        rest = before;
    }
    // Forwards again, now that it is known where the label begins.
    let mut label = line[rest.len()..].trim_ascii();
    if let Delimiter::Byte(byte) = delimiter {
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
) -> Result<(&'a [u8], Parsed), Bad> {
    if options.labels == ListLabels::None {
        return Ok((line, Parsed::None));
    }
    if options.labels == ListLabels::Second {
        let (path, behind) = first_field(line, options.delimiter);
        return match first_field(behind, options.delimiter).0 {
            [] => Err(Bad::NoLabel),
            label => Ok((path, Parsed::Scalar(whole(label)?))),
        };
    }
    let Some((before, last)) = last_field(line, options.delimiter) else {
        return match options.labels {
            ListLabels::Auto if has_image_extension(line) => Ok((line, Parsed::None)),
            _ => Err(Bad::NoLabel),
        };
    };
    if options.labels == ListLabels::Scalar {
        return Ok((before, Parsed::Scalar(whole(last)?)));
    }
    if last.contains(&b',')
        && number(last.split(|&b| b == b',').next_back().unwrap_or(last)).is_some()
    {
        push_numbers(last, Delimiter::Byte(b','), values)?;
        return Ok((before, Parsed::Vector));
    }
    let rest = trailing_numbers(line, options.delimiter, values)?;
    match (options.labels, values.len()) {
        (ListLabels::Auto, 0) if has_image_extension(line) => Ok((line, Parsed::None)),
        (ListLabels::Auto, 0 | 1) => Ok((before, Parsed::Scalar(whole(last)?))),
        (_, 0) => Err(Bad::NotNumber(shown(last))),
        _ => Ok((rest, Parsed::Vector)),
    }
}

/// The label behind a quoted path: what it is cannot be mistaken.
fn parse_label(label: &[u8], options: &ListOptions, values: &mut Vec<f32>) -> Result<Parsed, Bad> {
    match options.labels {
        ListLabels::None | ListLabels::Auto if label.is_empty() => Ok(Parsed::None),
        _ if label.is_empty() => Err(Bad::NoLabel),
        // A column that the caller does not want.
        ListLabels::None => Ok(Parsed::None),
        ListLabels::Scalar => Ok(Parsed::Scalar(whole(label)?)),
        ListLabels::Second => {
            let label = first_field(label, options.delimiter).0;
            Ok(Parsed::Scalar(whole(label)?))
        }
        kind => {
            let delimiter = if label.contains(&b',') {
                Delimiter::Byte(b',')
            } else {
                options.delimiter
            };
            if kind == ListLabels::Auto && last_field(label, delimiter).is_none() {
                return Ok(Parsed::Scalar(whole(label)?));
            }
            push_numbers(label, delimiter, values)?;
            Ok(Parsed::Vector)
        }
    }
}

/// Reads the numbers of a vector.
fn push_numbers(label: &[u8], delimiter: Delimiter, values: &mut Vec<f32>) -> Result<(), Bad> {
    let separates = |&b: &u8| match delimiter {
        Delimiter::Blanks => is_blank(b),
        Delimiter::Byte(byte) => b == byte,
    };
    for field in label.split(separates) {
        let field = field.trim_ascii();
        // Blanks come in runs, other delimiters do not.
        if field.is_empty() && delimiter == Delimiter::Blanks {
            continue;
        }
        let value = number(field).ok_or_else(|| Bad::NotNumber(shown(field)))?;
        if !value.is_finite() {
            return Err(Bad::NotFinite(shown(field)));
        }
        values.push(value);
    }
    Ok(())
}

fn number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn whole(label: &[u8]) -> Result<i64, Bad> {
    std::str::from_utf8(label)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Bad::NotWhole(shown(label)))
}

/// The root, and what it is called when links are resolved.
struct Roots {
    root: PathBuf,
    resolved: PathBuf,
    allow_outside: bool,
}

impl Roots {
    fn new(file: &Path, options: &ListOptions) -> Result<Self> {
        let root = match &options.root {
            Some(root) => root.clone(),
            None => match file.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
        };
        let root = std::path::absolute(&root)
            .map_err(|_| Error::config("the root of the list's paths has an empty name"))?;
        let kind = fs::metadata(&root).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::dataset(&root, "no such folder for the list's paths; check `--root`")
            }
            _ => Error::io_at("read the type of", &root, e),
        })?;
        if !kind.is_dir() {
            return Err(Error::dataset(
                &root,
                "not a folder for the list's paths; check `--root`",
            ));
        }
        Ok(Self {
            resolved: fs::canonicalize(&root).unwrap_or_else(|_| root.clone()),
            root,
            allow_outside: options.allow_outside,
        })
    }

    /// The path as it is stored: relative to the root where that can be.
    fn relative<'a>(&self, path: &'a [u8]) -> Result<&'a [u8], Bad> {
        let inside = if path.starts_with(b"/") {
            let path = Path::new(OsStr::from_bytes(path));
            path.strip_prefix(&self.root)
                .or_else(|_| path.strip_prefix(&self.resolved))
                .ok()
                .map(|inside| inside.as_os_str().as_bytes())
        } else {
            Some(path)
        };
        match inside {
            Some(inside) if !leaves(inside) => {
                if inside.is_empty() {
                    Err(Bad::NoPath)
                } else {
                    Ok(inside)
                }
            }
            _ if self.allow_outside => Ok(path),
            _ => Err(Bad::Outside(shown(path))),
        }
    }
}

/// True when a relative path leads out of where it starts, links aside.
fn leaves(path: &[u8]) -> bool {
    let mut depth = 0u64;
    for part in path.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::index::{Index, Label};

    fn list(text: &[u8], options: &ListOptions) -> Result<Index> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list.txt");
        fs::write(&file, text).unwrap();
        let (index, report) = Index::list(&file, options)?;
        assert_eq!(report.samples, index.len());
        if options.root.is_none() {
            assert_eq!(index.root(), dir.path());
        }
        Ok(index)
    }

    fn kind(labels: ListLabels) -> ListOptions {
        ListOptions {
            labels,
            ..ListOptions::default()
        }
    }

    fn by(byte: u8) -> ListOptions {
        ListOptions {
            delimiter: Delimiter::Byte(byte),
            ..ListOptions::default()
        }
    }

    /// Path and label of a line, the label as it would be printed.
    fn line(text: &str, options: &ListOptions) -> (String, String) {
        let index = list(text.as_bytes(), options).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        assert_eq!(index.len(), 1);
        let label = match index.label(0) {
            Label::None => "none".to_owned(),
            Label::Class(class) => class.to_string(),
            Label::Vector(v) => format!("{v:?}"),
        };
        (shown(index.relative_path(0).as_os_str().as_bytes()), label)
    }

    fn error(text: &[u8], options: &ListOptions) -> String {
        let e = list(text, options).unwrap_err();
        assert!(e.is_usage(), "{e}");
        e.to_string()
    }

    #[test]
    fn good_lines() {
        use ListLabels::{Auto, None, Scalar, Second, Vector};
        for (text, labels, path, label) in [
            ("a.jpg 12 3", Second, "a.jpg", "12"),
            ("a.jpg  12", Second, "a.jpg", "12"),
            ("a.jpg\t12 \t3 x", Second, "a.jpg", "12"),
            ("\"a b.jpg\" 12 3", Second, "a b.jpg", "12"),
            ("a/b.jpg 3", Auto, "a/b.jpg", "3"),
            ("a.jpg\t\t -1 ", Auto, "a.jpg", "-1"),
            ("  ./a.jpg +7", Auto, "./a.jpg", "7"),
            ("a b c.jpg 3", Auto, "a b c.jpg", "3"),
            ("a b 2.jpg   3", Scalar, "a b 2.jpg", "3"),
            ("shot 12 3", Scalar, "shot 12", "3"),
            ("shot 12 3", Auto, "shot", "[12.0, 3.0]"),
            ("a.jpg", Auto, "a.jpg", "none"),
            ("a b.jpg", Auto, "a b.jpg", "none"),
            ("noextension", None, "noextension", "none"),
            ("a.jpg 3", None, "a.jpg 3", "none"),
            ("\"a.jpg\" 3", None, "a.jpg", "none"),
            ("a.jpg 0,1,0.5", Auto, "a.jpg", "[0.0, 1.0, 0.5]"),
            ("a b.jpg 0,1e2,-1", Auto, "a b.jpg", "[0.0, 100.0, -1.0]"),
            ("a.jpg 0  1\t1", Auto, "a.jpg", "[0.0, 1.0, 1.0]"),
            ("a 1.jpg 0 1", Vector, "a 1.jpg", "[0.0, 1.0]"),
            ("a.jpg 0.25", Vector, "a.jpg", "[0.25]"),
            ("7 8", Auto, "7", "8"),
            ("1,2.jpg 4", Auto, "1,2.jpg", "4"),
            ("\"a b.jpg\" 3", Auto, "a b.jpg", "3"),
            ("\"a b.jpg\"", Auto, "a b.jpg", "none"),
            ("\"shot 12\" 3", Auto, "shot 12", "3"),
            ("\"a\"\"b.jpg\"\t3", Auto, "a\"b.jpg", "3"),
            (r#""a\"b\\c\d.jpg" 3"#, Auto, r#"a"b\c\d.jpg"#, "3"),
            ("\"#1.jpg\" 3", Auto, "#1.jpg", "3"),
            ("\"a.jpg\" 0,1", Auto, "a.jpg", "[0.0, 1.0]"),
            ("\"a.jpg\" 0 1", Vector, "a.jpg", "[0.0, 1.0]"),
            ("\"a.jpg\" 2", Vector, "a.jpg", "[2.0]"),
            ("x/../a.jpg 1", Auto, "x/../a.jpg", "1"),
            ("..a/...jpg 1", Auto, "..a/...jpg", "1"),
        ] {
            assert_eq!(
                line(text, &kind(labels)),
                (path.into(), label.into()),
                "{text:?}"
            );
        }
        for (text, byte, path, label) in [
            ("a b 1\t3", b'\t', "a b 1", "3"),
            ("a,b.jpg,3", b',', "a,b.jpg", "3"),
            ("a.jpg , 3", b',', "a.jpg", "3"),
            ("a.jpg,0,1", b',', "a.jpg", "[0.0, 1.0]"),
            ("a.jpg;0,1", b';', "a.jpg", "[0.0, 1.0]"),
            ("\"a,b.jpg\",3", b',', "a,b.jpg", "3"),
            ("\"a b.jpg\" 3", b' ', "a b.jpg", "3"),
            ("\"a b.jpg\"\t3", b'\t', "a b.jpg", "3"),
            ("a b.jpg 3", b' ', "a b.jpg", "3"),
        ] {
            assert_eq!(
                line(text, &by(byte)),
                (path.into(), label.into()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn bad_lines_are_named() {
        use ListLabels::{Auto, Scalar, Vector};
        for (text, labels, want) in [
            (
                "a.jpg 1\nb.jpg cat",
                Auto,
                ":2: label 'cat' is no whole number",
            ),
            ("a.jpg 0.5", Auto, ":1: label '0.5' is no whole number"),
            ("a.jpg 99999999999999999999", Auto, "is no whole number"),
            ("a.jpg nan", Auto, ":1: label 'nan' is not a finite number"),
            (
                "a.jpg nan",
                Vector,
                ":1: label 'nan' is not a finite number",
            ),
            (
                "a.jpg 0,NaN",
                Auto,
                ":1: label 'NaN' is not a finite number",
            ),
            (
                "a.jpg 1 1e50",
                Auto,
                ":1: label '1e50' is not a finite number",
            ),
            (
                "a.jpg 0,x,1",
                Auto,
                ":1: 'x' in a vector label is no number",
            ),
            (
                "a.jpg 0,,1",
                Vector,
                ":1: '' in a vector label is no number",
            ),
            (
                "a.jpg cat",
                Vector,
                ":1: 'cat' in a vector label is no number",
            ),
            ("a.jpg", Scalar, ":1: no label"),
            ("a.jpg,3", Auto, ":1: no label, or no delimiter before it"),
            ("a.jpg", Vector, ":1: no label"),
            ("\"a.jpg\"", Scalar, ":1: no label"),
            (
                "# x\n\na.jpg 1\nb.jpg\n",
                Auto,
                ":4: no label here, but one whole",
            ),
            (
                "a.jpg\nb.jpg 1\n",
                Auto,
                ":2: one whole number as label here, but no label",
            ),
            (
                "a.jpg 0,1\nb.jpg 0,1,1\n",
                Auto,
                ":2: a label of 3 numbers here, but a label of 2",
            ),
            (
                "a.jpg 1\nb 2 3\n",
                Auto,
                ":2: a label of 2 numbers here, but one whole",
            ),
            ("\"a.jpg 1", Auto, ":1: a quoted path without"),
            ("\"a.jpg\\\" 1", Auto, ":1: a quoted path without"),
            ("\"a.jpg\"1", Auto, ":1: no delimiter between"),
            ("\"\" 1", Auto, ":1: no path"),
            ("a\0.jpg 1", Auto, ":1: a NUL byte in the path"),
            (
                "../a.jpg 1",
                Auto,
                ":1: path '../a.jpg' leads out of the root",
            ),
            ("x/../../a.jpg 1", Auto, "`--allow-outside`"),
            ("/etc/a.jpg 1", Auto, ":1: path '/etc/a.jpg' leads out"),
            ("", Auto, "no samples in this list"),
            ("# nothing\n\n \t\n", Auto, "no samples in this list"),
        ] {
            let e = error(text.as_bytes(), &kind(labels));
            assert!(e.contains(want), "{text:?}: {e}");
        }
        let e = error(b"a.jpg 3", &by(b';'));
        assert!(e.contains("check `--delimiter`"), "{e}");
    }

    #[test]
    fn what_is_no_text_is_escaped_and_shortened() {
        let labels = kind(ListLabels::Auto);
        let e = error(b"a.jpg \x1b[31m\xff\xc3\xa9\x07\n", &labels);
        let want = "label '\\u{1b}[31m\\xff\u{e9}\\u{7}' is no";
        assert!(e.contains(want), "{e}");
        let long = "x".repeat(61);
        let e = error(format!("a.jpg {long}").as_bytes(), &labels);
        assert!(e.contains(&format!("'{}...'", &long[1..])), "{e}");
        let e = error(format!("a.jpg {}", &long[1..]).as_bytes(), &labels);
        assert!(e.contains(&format!("'{}'", &long[1..])), "{e}");
    }

    #[test]
    fn order_comments_ends_and_marks() {
        let text = b"\xef\xbb\xbf# list\r\nz.jpg 1\r\n\r\n  # more\n a\xff.jpg 0\nz.jpg 2";
        let index = list(text, &ListOptions::default()).unwrap();
        assert_eq!(index.len(), 3);
        assert_eq!(index.relative_path(0), Path::new("z.jpg"));
        let odd = Path::new(OsStr::from_bytes(b"a\xff.jpg"));
        assert_eq!(index.relative_path(1), odd);
        assert_eq!(index.label(2), Label::Class(2));
        assert_eq!(index.label_width(), 1);
        assert!(index.classes().is_empty());
    }

    #[test]
    fn labels_are_numbered_anew_in_ascending_order() {
        let relabel = ListOptions {
            relabel: true,
            ..ListOptions::default()
        };
        let index = list(
            b"a.jpg 90\nb.jpg -7\nc.jpg 5000000000\nd.jpg 90\n",
            &relabel,
        )
        .unwrap();
        let labels: Vec<Label<'_>> = (0..4).map(|id| index.label(id)).collect();
        assert_eq!(labels, [1, 0, 2, 1].map(Label::Class));
        for text in [&b"a.jpg 1,0\n"[..], b"a.jpg\n"] {
            let e = error(text, &relabel);
            assert!(e.contains("relabel numbers whole-number labels"), "{e}");
        }
    }

    #[test]
    fn paths_outside_are_taken_when_that_is_allowed() {
        let options = ListOptions {
            allow_outside: true,
            ..ListOptions::default()
        };
        let index = list(b"/etc/a.jpg 1\n../b.jpg 2\n", &options).unwrap();
        assert_eq!(index.path(0), Path::new("/etc/a.jpg"));
        assert_eq!(index.path(1), index.root().join("../b.jpg"));
    }

    #[test]
    fn absolute_paths_inside_the_root_are_stored_relative() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        symlink(&real, &link).unwrap();
        let options = ListOptions {
            root: Some(link.clone()),
            ..ListOptions::default()
        };
        let text = format!(
            "{}/a.jpg 1\n{}//b/c.jpg 2\n",
            link.display(),
            real.display()
        );
        let index = list(text.as_bytes(), &options).unwrap();
        assert_eq!(index.root(), link);
        assert_eq!(index.relative_path(0), Path::new("a.jpg"));
        assert_eq!(index.relative_path(1), Path::new("b/c.jpg"));
        let sly = format!("{}/../x.jpg 1\n", link.display());
        assert!(error(sly.as_bytes(), &options).contains("leads out"));
        let itself = format!("{} 1\n", link.display());
        assert!(error(itself.as_bytes(), &options).contains("no path"));
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        for byte in [b'\n', b'"', 0] {
            let e = error(b"a.jpg 1\n", &by(byte));
            assert!(e.contains("cannot be the delimiter"), "{e}");
        }
        for root in ["/no/such/folder", "/proc/self/stat", ""] {
            let options = ListOptions {
                root: Some(root.into()),
                ..ListOptions::default()
            };
            let e = error(b"a.jpg 1\n", &options);
            assert!(e.contains("root"), "{e}");
        }
    }

    proptest! {
        /// A quoted path comes back whatever its bytes.
        #[test]
        fn quoted_paths_come_back(
            path in vec((1u8..=255).prop_filter("a line's end", |b| *b != b'\n'), 1..30),
            label: i64,
        ) {
            let mut line = vec![b'"'];
            for &byte in &path {
                if byte == b'"' || byte == b'\\' {
                    line.push(b'\\');
                }
                line.push(byte);
            }
            line.extend(format!("\" {label}").bytes());
            let (mut found, mut values) = (Vec::new(), Vec::new());
            let parsed = parse(&line, &ListOptions::default(), &mut found, &mut values);
            prop_assert_eq!(parsed, Ok(Parsed::Scalar(label)));
            prop_assert_eq!(found, path);
        }

        /// No line makes the parser panic, and what it accepts is no empty path.
        #[test]
        fn any_line_is_read_or_refused(
            line in vec(proptest::sample::select(b"a1.,\"\\ \t#-en\0\xff".to_vec()), 0..16),
            labels in proptest::sample::select(vec![
                ListLabels::Auto, ListLabels::None, ListLabels::Scalar, ListLabels::Vector, ListLabels::Second,
            ]),
            delimiter in proptest::sample::select(vec![
                Delimiter::Blanks, Delimiter::Byte(b','), Delimiter::Byte(b' '), Delimiter::Byte(b'1'),
            ]),
        ) {
            let options = ListOptions { labels, delimiter, ..ListOptions::default() };
            let (mut path, mut values) = (Vec::new(), Vec::new());
            let line = line.trim_ascii();
            if line.is_empty() {
                return Ok(());
            }
            if let Ok(label) = parse(line, &options, &mut path, &mut values) {
                prop_assert!(!path.is_empty());
                prop_assert!(label != Parsed::Vector || !values.is_empty());
                prop_assert!(values.iter().all(|v| v.is_finite()));
            }
        }
    }
}
