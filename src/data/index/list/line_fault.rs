//! Why a line is rejected. The error of a line without a usable label guesses its mistake and
//! names what to change.

use crate::data::index::list::options::{ListDelimiter, ListOptions};
use crate::data::index::names::{has_image_extension, shown};

/// Bytes that may separate a path and its label instead of blanks.
const SEPARATORS: [u8; 4] = *b",;|\t";

/// Names in the label column of a header line.
const HEADERS: [&str; 7] = [
    "label", "labels", "class", "class_id", "category", "target", "id",
];

const TABLE: &str = "a CSV file that begins with the line `path,label`";

/// Why a line is rejected.
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
    /// A text that follows "the label".
    Ambiguous(String),
    /// The label is of another kind than that of the first sample, which is in line `line`.
    Unlike {
        this: ListLabelKind,
        first: ListLabelKind,
        line: u64,
    },
}

impl LineFault {
    pub(super) fn text(&self) -> String {
        match self {
            Self::OpenQuote => "the quoted path has no closing quote: add it".into(),
            Self::BehindQuote => {
                "no delimiter between the closing quote and the label: add it, or check \
                 `delimiter`"
                    .into()
            }
            Self::NoPath => "no path: write it before the label".into(),
            Self::Nul => "a NUL byte in the path: is this a text file?".into(),
            Self::NoLabel => {
                "no label, or no delimiter before it: check `delimiter`, or use `labels: none`"
                    .into()
            }
            Self::NotWhole(label) => format!(
                "label '{label}' is not a whole number: check `delimiter`, or put a path with \
                 blanks in double quotes"
            ),
            Self::NotNumber(label) => {
                format!("'{label}' in a vector label is not a number: correct it")
            }
            Self::NotFinite(label) => {
                format!("label '{label}' is not a finite number: correct it")
            }
            Self::Ambiguous(what) => format!("the label {what}"),
            Self::Unlike { this, first, line } => format!(
                "{} here, but {} in line {line}: put a path with blanks in double quotes",
                this.text(),
                first.text()
            ),
        }
    }
}

/// The kind of a line's label.
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

/// The error text for line `number`, which has the content `line`.
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

/// A hint for a line without a label.
fn without_label(line: &[u8], options: &ListOptions) -> Option<String> {
    if line.ends_with(b".tar") {
        let line = shown(line);
        return Some(format!(
            "'{line}' names tar shards, but a list names images: give the shards themselves, as \
             '{line}'"
        ));
    }
    other_separator(line, options)
}

/// A hint for a label that is not a whole number.
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
            "write a whole number, or {TABLE}, which accepts other numbers"
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

/// A hint for a line such as `a.jpg,3`, which uses another delimiter than the options state.
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
