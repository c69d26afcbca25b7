//! Why a line is refused. What a line without a usable label most likely is: for its error, which
//! names what to change.

use crate::data::index::list::options::{ListDelimiter, ListOptions};
use crate::data::index::names::{has_image_extension, shown};

/// Bytes that may separate a path and its label in place of blanks.
const SEPARATORS: [u8; 4] = *b",;|\t";

/// Names that a header line has in the place of the label.
const HEADERS: [&str; 7] = [
    "label", "labels", "class", "class_id", "category", "target", "id",
];

const TABLE: &str = "a CSV file that begins with the line `path,label`";

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LineFault {
    OpenQuote,
    BehindQuote,
    NoPath,
    Nul,
    NoLabel,
    NotWhole(String),
    NotNumber(String),
    NotFinite(String),
    /// What follows "the label".
    Ambiguous(String),
    Unlike {
        this: ListLabelKind,
        first: ListLabelKind,
        line: u64,
    },
}

impl LineFault {
    pub(super) fn text(&self) -> String {
        match self {
            Self::OpenQuote => "the quoted path has no closing quote".into(),
            Self::BehindQuote => "no delimiter between the closing quote and the label".into(),
            Self::NoPath => "no path".into(),
            Self::Nul => "a NUL byte in the path: is this a text file?".into(),
            Self::NoLabel => {
                "no label, or no delimiter before it: check `delimiter`, or use `labels: none`"
                    .into()
            }
            Self::NotWhole(label) => format!(
                "label '{label}' is not a whole number: check `delimiter`, or put a path with \
                 blanks in double quotes"
            ),
            Self::NotNumber(label) => format!("'{label}' in a vector label is not a number"),
            Self::NotFinite(label) => format!("label '{label}' is not a finite number"),
            Self::Ambiguous(what) => format!("the label {what}"),
            Self::Unlike { this, first, line } => format!(
                "{} here, but {} in line {line}: put a path with blanks in double quotes",
                this.text(),
                first.text()
            ),
        }
    }
}

/// What a line's label is like; the numbers themselves lie beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ListLabelKind {
    None,
    Scalar,
    Vector { width: usize },
}

impl ListLabelKind {
    pub(super) fn text(self) -> String {
        match self {
            Self::None => "no label".into(),
            Self::Scalar => "one whole number as label".into(),
            Self::Vector { width } => format!("a label of {width} numbers"),
        }
    }
}

/// Why line `number` is refused.
pub(super) fn text(bad: &LineFault, line: &[u8], number: u64, options: &ListOptions) -> String {
    let hint = match bad {
        LineFault::NoLabel => without_label(line, options),
        LineFault::NotWhole(label) => not_whole(label, line, number, options),
        _ => None,
    };
    let text = match (hint, bad) {
        (None, _) => bad.text(),
        (Some(hint), LineFault::NotWhole(label)) => {
            format!("label '{label}' is not a whole number: {hint}")
        }
        (Some(hint), _) => format!("no label, or no delimiter before it: {hint}"),
    };
    match line.starts_with(b"#") {
        true => text + "; a list has no comments: remove the line if it is one",
        false => text,
    }
}

fn without_label(line: &[u8], options: &ListOptions) -> Option<String> {
    if line.ends_with(b".tar") {
        let line = shown(line);
        return Some(format!(
            "'{line}' names tar shards, and a list names pictures: give the shards themselves, as \
             '{line}'"
        ));
    }
    other_separator(line, options)
}

fn not_whole(label: &str, line: &[u8], number: u64, options: &ListOptions) -> Option<String> {
    if let Some(hint) = other_separator(line, options) {
        return Some(hint);
    }
    let is_header = HEADERS.iter().any(|name| label.eq_ignore_ascii_case(name));
    if number == 1 && is_header {
        return Some(format!(
            "this looks like a header line: remove it, or write {TABLE}"
        ));
    }
    if label.contains('/') || has_image_extension(label.as_bytes()) {
        return Some(
            "it looks like a path: write the label after the path, or put a path with blanks in \
             double quotes"
                .to_owned(),
        );
    }
    if label.parse::<f64>().is_ok_and(f64::is_finite) && label.contains(['.', 'e', 'E']) {
        return Some(format!(
            "write a whole number, or {TABLE}, which takes other numbers"
        ));
    }
    let is_name = label.chars().any(char::is_alphabetic) && !label.contains(['\\', ',']);
    is_name.then(|| {
        format!(
            "a list has class numbers. For class names write {TABLE}; or check `delimiter`, or put \
             a path with blanks in double quotes"
        )
    })
}

/// A line such as `a.jpg,3`, where something else separates.
fn other_separator(line: &[u8], options: &ListOptions) -> Option<String> {
    SEPARATORS.into_iter().find_map(|separator| {
        if options.delimiter == ListDelimiter::Byte(separator) {
            return None;
        }
        let at = line.iter().position(|&b| b == separator)?;
        let (path, label) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
        let is_path = has_image_extension(path.strip_suffix(b"\"").unwrap_or(path));
        if !is_path || label.is_empty() {
            return None;
        }
        let separator = match separator {
            b'\t' => "a tab".to_owned(),
            other => format!("'{}'", char::from(other)),
        };
        let is_number =
            |part: &[u8]| str::from_utf8(part).is_ok_and(|p| p.trim().parse::<f64>().is_ok());
        Some(
            match label.split(|b| SEPARATORS.contains(b)).all(is_number) {
                true => format!("{separator} separates here: use `delimiter` {separator}"),
                false => format!("{separator} separates here: write {TABLE}, and give this"),
            },
        )
    })
}
