//! A mistake in a text, reported in one line: position, what is wrong, and the fix.
//!
//! Also the error type of the deserializer. serde's derived code knows the field, variant or type,
//! but not the position. The deserializer adds the position when it returns.

use std::fmt;

use serde::de::{Expected, Unexpected};

use super::foreign_names;
use super::position::TextPosition;
use crate::error::printable_within;
use crate::recipe::suggestion::suggest_fix;

/// The maximum length of a message in bytes, since names in a text may be long.
const LONGEST: usize = 600;

#[derive(Debug)]
pub(crate) struct TextMistake {
    at: Option<TextPosition>,
    what: MistakeKind,
    /// The innermost enclosing parameter or operation.
    label: Option<String>,
}

#[derive(Debug)]
enum MistakeKind {
    UnknownField {
        name: String,
        known: &'static [&'static str],
    },
    UnknownVariant {
        /// The name of the enum, such as `op`. The deserializer of the enum adds it.
        kind: String,
        /// True for an element of a list, where no parameter's name describes it.
        item: bool,
        name: String,
        known: &'static [&'static str],
    },
    Missing(&'static str),
    Duplicate(&'static str),
    Text(String),
}

impl TextPosition {
    /// A mistake at this place.
    pub(crate) fn mistake(self, text: impl Into<String>) -> TextMistake {
        TextMistake {
            at: Some(self),
            ..TextMistake::of(MistakeKind::Text(text.into()))
        }
    }
}

impl TextMistake {
    fn of(what: MistakeKind) -> Self {
        Self {
            at: None,
            what,
            label: None,
        }
    }

    pub(crate) fn expected(at: TextPosition, expected: &str, found: &str) -> Self {
        at.mistake(format!("expected {expected}, found {found}"))
    }

    /// The same mistake at this place, unless it has one already.
    pub(super) fn or_at(mut self, at: TextPosition) -> Self {
        self.at.get_or_insert(at);
        self
    }

    /// The same mistake at a value. A missing field gets no position here, but at the name of the
    /// value.
    pub(super) fn or_in(self, value: TextPosition) -> Self {
        if matches!(self.what, MistakeKind::Missing(_)) {
            self
        } else {
            self.or_at(value)
        }
    }

    /// Adds the name of the enclosing value, unless there is an inner one.
    pub(super) fn or_label(mut self, label: &str) -> Self {
        self.label.get_or_insert_with(|| label.to_owned());
        self
    }

    /// Adds the name of the enum.
    pub(super) fn in_enum(mut self, rust_name: &str) -> Self {
        if let MistakeKind::UnknownVariant { kind, .. } = &mut self.what
            && kind.is_empty()
        {
            *kind = rust_name.to_lowercase();
        }
        self
    }

    /// Marks the mistake as one in an element of a list.
    pub(super) fn in_list(mut self) -> Self {
        if let MistakeKind::UnknownVariant { item, .. } = &mut self.what {
            *item = self.label.is_none();
        }
        self
    }

    /// Line of the mistake, from 1.
    pub(crate) fn line(&self) -> usize {
        self.at.unwrap_or(TextPosition::START).line
    }
}

impl fmt::Display for TextMistake {
    /// One line, whatever characters the text contains.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label.as_deref();
        let text = match &self.what {
            MistakeKind::UnknownField { name, known } => {
                let of = label.unwrap_or("a recipe file");
                no_parameter(of, name, known)
            }
            MistakeKind::UnknownVariant {
                kind,
                item,
                name,
                known,
            } => {
                let what = match (kind == "op").then(|| foreign_names::operation_advice(name)) {
                    Some(Some(what)) => what.to_owned(),
                    Some(None) => format!("is unknown: {}", advice_on_op(name, known)),
                    None => format!("is unknown: {}", advice(name, known)),
                };
                match label {
                    Some(label) if !item => format!("{label}: '{name}' {what}"),
                    _ => format!("{kind} '{name}' {what}"),
                }
            }
            MistakeKind::Missing(name) => {
                let text = format!("'{name}' is missing, and it has no default: write it");
                label.map_or(text.clone(), |label| format!("{label}: {text}"))
            }
            MistakeKind::Duplicate(name) => format!("'{name}' is written twice: remove one"),
            MistakeKind::Text(text) => match label {
                Some(label) => format!("{label}: {text}"),
                None => text.clone(),
            },
        };
        f.write_str(&printable_within(&text, LONGEST))
    }
}

impl std::error::Error for TextMistake {}

impl serde::de::Error for TextMistake {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::of(MistakeKind::Text(text.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(unmeant: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = in_words(&expected.to_string());
        let (found, plain) = match unmeant {
            Unexpected::Bool(v) => (v.to_string(), true),
            Unexpected::Signed(v) => (format!("the number {v}"), true),
            Unexpected::Unsigned(v) => (format!("the number {v}"), true),
            Unexpected::Float(v) => (format!("the number {v:?}"), true),
            Unexpected::Char(v) => (format!("the text '{v}'"), false),
            Unexpected::Str(v) => (format!("the text '{v}'"), false),
            Unexpected::Unit | Unexpected::Option => ("nothing".into(), false),
            Unexpected::Seq => ("a list".into(), false),
            Unexpected::Map => ("parameters".into(), false),
            other => (other.to_string(), false),
        };
        let fix = match unmeant {
            Unexpected::Str(text) => suggest_fix(&expected, text),
            _ if plain && expected == "text" => ": put it in quotes".to_owned(),
            Unexpected::Map if expected == "a list" => {
                ": make each one an item (in YAML begin it with '-')".to_owned()
            }
            Unexpected::Unit if expected == "a list" => {
                ": write its items (in YAML begin each with '-')".to_owned()
            }
            _ => String::new(),
        };
        Self::custom(format_args!("expected {expected}, found {found}{fix}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::of(MistakeKind::UnknownVariant {
            kind: String::new(),
            item: false,
            name: name.to_owned(),
            known,
        })
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::of(MistakeKind::UnknownField {
            name: name.to_owned(),
            known,
        })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::of(MistakeKind::Missing(name))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::of(MistakeKind::Duplicate(name))
    }
}

/// Serde's names of types, in plain words.
fn in_words(expected: &str) -> String {
    match expected {
        "u8" => "a whole number from 0 to 255".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, 0 or more".into(),
        "i32" | "i64" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "text".into(),
        "a sequence" => "a list".into(),
        "a map" => "parameters".into(),
        other => other.into(),
    }
}

/// The message that `of` has no such parameter.
pub(crate) fn no_parameter(of: &str, name: &str, known: &[&str]) -> String {
    match known {
        [] => format!("{of} has no parameter '{name}': it takes none"),
        known => format!("{of} has no parameter '{name}': {}", advice(name, known)),
    }
}

/// A suggestion for an operation: the nearest name, or where all are listed.
fn advice_on_op(name: &str, known: &[&str]) -> String {
    let bare = name.replace('_', "").to_lowercase();
    let holds_it = |known: &&&str| bare.len() > 3 && known.replace('_', "").contains(&bare);
    let longer = || {
        known
            .iter()
            .filter(holds_it)
            .min_by_key(|known| known.len())
    };
    match nearest(name, known).or_else(|| longer().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("`featherload ops` lists all {}", known.len()),
    }
}

/// A suggestion: the nearest name, or all names.
pub(crate) fn advice(name: &str, known: &[&str]) -> String {
    match foreign_names::value_advice(name, known).or_else(|| nearest(name, known)) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("choose from {}", known.join(", ")),
    }
}

/// The most similar name, if at most a third of the letters differ. Ignores case and underscores,
/// so torchvision's `CenterCrop` matches `center_crop`.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let bare = |s: &str| s.replace(['_', '-', ' '], "").to_lowercase();
    let name = bare(name);
    // The distance needs time and memory in proportion to the product of both lengths.
    if name.len() > 64 {
        return None;
    }
    known
        .iter()
        .filter_map(|k| {
            let bare = bare(k);
            let longest = name.chars().count().max(bare.chars().count());
            let distance = strsim::damerau_levenshtein(&name, &bare);
            (3 * distance <= longest).then_some((distance, *k))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}
