//! From the tree to text, formatted for people: one operation per line.

use std::fmt::Write as _;

use super::format::RecipeFormat;
use super::node::{MapKey, NodeValue, TreeNode};
use crate::error::{Error, Result};

type OutputEntry = (MapKey, TreeNode);

/// Writes a map. Lists of maps get one line per element, other values follow their name.
pub(super) fn write(entries: &[OutputEntry], format: RecipeFormat) -> Result<String> {
    let mut text = String::new();
    let json = format == RecipeFormat::Json;
    if json {
        text.push_str("{\n");
    }
    for (i, (key, value)) in entries.iter().enumerate() {
        let (name, between) = match format {
            RecipeFormat::Yaml => (word(&key.name, format), ":"),
            RecipeFormat::Toml => (word(&key.name, format), " ="),
            RecipeFormat::Json => (format!("  {}", quoted(&key.name)), ":"),
        };
        text.push_str(&name);
        text.push_str(between);
        let items = value.items();
        if items.is_empty() {
            text.push(' ');
            write_inline(value, format, &mut text)?;
        } else {
            text.push_str(if format == RecipeFormat::Yaml {
                "\n"
            } else {
                " [\n"
            });
            for (i, item) in items.iter().enumerate() {
                text.push_str(match format {
                    RecipeFormat::Yaml => "  - ",
                    RecipeFormat::Toml => "  ",
                    RecipeFormat::Json => "    ",
                });
                element(item, format, &mut text)?;
                let comma = match format {
                    RecipeFormat::Yaml => "",
                    RecipeFormat::Toml => ",",
                    RecipeFormat::Json if i + 1 < items.len() => ",",
                    RecipeFormat::Json => "",
                };
                text.push_str(comma);
                text.push('\n');
            }
            text.push_str(match format {
                RecipeFormat::Yaml => "",
                RecipeFormat::Toml => "]",
                RecipeFormat::Json => "  ]",
            });
        }
        if json && i + 1 < entries.len() {
            text.push(',');
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if json {
        text.push_str("}\n");
    }
    Ok(text)
}

/// Writes an operation: only its name if it has no parameters.
fn element(node: &TreeNode, format: RecipeFormat, text: &mut String) -> Result<()> {
    if let NodeValue::Map(entries) = &node.value
        && let [(key, parameters)] = &entries[..]
    {
        if matches!(&parameters.value, NodeValue::Map(p) if p.is_empty()) {
            text.push_str(&string(&key.name, format));
            return Ok(());
        }
        if format == RecipeFormat::Yaml {
            let _ = write!(text, "{}: ", word(&key.name, format));
            return write_inline(parameters, format, text);
        }
    }
    write_inline(node, format, text)
}

/// Writes a value on one line.
pub(crate) fn write_inline(node: &TreeNode, format: RecipeFormat, text: &mut String) -> Result<()> {
    match &node.value {
        NodeValue::Null => text.push_str("null"),
        NodeValue::Bool(v) => {
            let _ = write!(text, "{v}");
        }
        NodeValue::Int(v) => {
            let _ = write!(text, "{v}");
        }
        NodeValue::Float(v) => float(*v, format, text)?,
        NodeValue::Str(v) => text.push_str(&string(v, format)),
        NodeValue::List(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { ", " });
                write_inline(item, format, text)?;
            }
            text.push(']');
        }
        NodeValue::Map(entries) => {
            let between = if format == RecipeFormat::Toml {
                " = "
            } else {
                ": "
            };
            text.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { ", " });
                text.push_str(&word(&key.name, format));
                text.push_str(between);
                write_inline(value, format, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

/// Writes the fewest digits that parse to the same number.
fn float(v: f64, format: RecipeFormat, text: &mut String) -> Result<()> {
    if v.is_finite() {
        let _ = write!(text, "{v:?}");
        return Ok(());
    }
    let dot = match format {
        RecipeFormat::Yaml => ".",
        RecipeFormat::Toml => "",
        RecipeFormat::Json => {
            return Err(Error::config(format!(
                "JSON cannot hold {v}: write the recipe as YAML or TOML"
            )));
        }
    };
    let sign = if v < 0.0 { "-" } else { "" };
    let word = if v.is_nan() { "nan" } else { "inf" };
    let _ = write!(text, "{sign}{dot}{word}");
    Ok(())
}

/// A name before a value.
fn word(name: &str, format: RecipeFormat) -> String {
    if format != RecipeFormat::Json && is_plain(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A text value.
fn string(text: &str, format: RecipeFormat) -> String {
    if format == RecipeFormat::Yaml && is_plain(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Whether a text needs no quotes, in YAML and as a name in TOML.
fn is_plain(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| letter(c) || c == '-')
        && !["null", "true", "false"].contains(&text.to_lowercase().as_str())
}

/// A text in double quotes, with escapes that all three languages support.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Not printable in YAML, or read as a line break.
            c if c.is_control()
                || matches!(
                    c,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ) =>
            {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
