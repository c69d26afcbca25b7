//! The meaning of YAML's scalars and tags in the core schema of YAML 1.2: `yes`, `no`, `on` and
//! `off` are text, `1e-3` is a number, quoted scalars are text.

use granit_parser::{ScalarStyle, Tag};

use super::mistake::TextMistake;
use super::node::NodeValue;
use super::position::TextPosition;

/// Rejects a tag that does not match a list (`seq`) or a map.
pub(super) fn check_tag(tag: Option<&Tag>, own: &str, at: TextPosition) -> Result<(), TextMistake> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(own) && tag.original() != "!" => {
            Err(refused(tag, at))
        }
        _ => Ok(()),
    }
}

fn refused(tag: &Tag, at: TextPosition) -> TextMistake {
    at.mistake(format!(
        "the tag '{}' does not fit here: remove it",
        tag.original()
    ))
}

/// The value of a scalar.
pub(super) fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    at: TextPosition,
) -> Result<NodeValue, TextMistake> {
    let quoted = || NodeValue::Str(text.to_owned());
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            _ => quoted(),
        });
    };
    match (tag.core_suffix(), plain(text)) {
        (Some("str"), _) => Ok(quoted()),
        (Some("null"), v @ NodeValue::Null)
        | (Some("bool"), v @ NodeValue::Bool(_))
        | (Some("int"), v @ NodeValue::Int(_))
        | (Some("float"), v @ NodeValue::Float(_)) => Ok(v),
        (Some("float"), NodeValue::Int(v)) => Ok(NodeValue::Float(v as f64)),
        _ if tag.original() == "!" => Ok(quoted()),
        _ => Err(refused(tag, at)),
    }
}

/// The value of text without quotes.
fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return NodeValue::Float(f64::NAN),
        _ => {}
    }
    number(text).unwrap_or_else(|| NodeValue::Str(text.to_owned()))
}

fn number(text: &str) -> Option<NodeValue> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.starts_with(['+', '-'])
        {
            return i128::from_str_radix(digits, radix).ok().map(NodeValue::Int);
        }
    }
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(bare, ".inf" | ".Inf" | ".INF") {
        let infinite = f64::INFINITY;
        return Some(NodeValue::Float(if text.starts_with('-') {
            -infinite
        } else {
            infinite
        }));
    }
    // Rust's parser also accepts words such as `inf` and `infinity`.
    let digit = |c: char| c.is_ascii_digit();
    let starts = bare.starts_with(digit)
        || bare
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(digit));
    if !starts {
        return None;
    }
    if bare.chars().all(digit)
        && let Ok(v) = text.parse()
    {
        return Some(NodeValue::Int(v));
    }
    text.parse().ok().map(NodeValue::Float)
}
