//! From TOML to the tree, and from values to TOML.

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistake;
use super::node::{Key, MAX_DEPTH, MAX_NODES, Node, Value};
use super::position::Position;

/// A value as text, which [`read`] makes its tree of. TOML is the one of the three that
/// serde writes with the shortest digits of each `f32`, and with words for what is not
/// finite.
pub(crate) fn written(value: &impl Serialize) -> Result<String, toml::ser::Error> {
    toml::to_string(value)
}

pub(crate) fn read(text: &str) -> Result<Node, Mistake> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|e| {
        // Without a place: the text ended too early.
        let at = lines.position(e.span().map_or(text.len(), |span| span.start));
        at.mistake(format!("not TOML: {} (column {})", e.message(), at.column))
    })?;
    let mut nodes = 0;
    let at = Position::START;
    Ok(Node {
        at,
        value: map(table.into_inner(), &lines, 1, &mut nodes)?,
    })
}

/// Offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect())
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        Position {
            line,
            column: offset - self.0.get(line - 1).copied().unwrap_or(0) + 1,
        }
    }
}

fn map(
    table: DeTable<'_>,
    lines: &Lines,
    depth: usize,
    nodes: &mut usize,
) -> Result<Value, Mistake> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let at = lines.position(key.span().start);
        let name = key.into_inner().into_owned();
        entries.push((Key { at, name }, node(value, lines, depth, nodes)?));
    }
    // The table is sorted by name.
    entries.sort_by_key(|(key, _)| (key.at.line, key.at.column));
    Ok(Value::Map(entries))
}

fn node(
    value: Spanned<DeValue<'_>>,
    lines: &Lines,
    depth: usize,
    nodes: &mut usize,
) -> Result<Node, Mistake> {
    let at = lines.position(value.span().start);
    *nodes += 1;
    if *nodes > MAX_NODES {
        return Err(at.mistake(format!("more than {MAX_NODES} values")));
    }
    if depth > MAX_DEPTH {
        return Err(at.mistake(format!("nested deeper than {MAX_DEPTH} levels: use fewer")));
    }
    let value = match value.into_inner() {
        DeValue::String(v) => Value::Str(v.into_owned()),
        DeValue::Boolean(v) => Value::Bool(v),
        DeValue::Integer(v) => match i128::from_str_radix(v.as_str(), v.radix()) {
            Ok(v) => Value::Int(v),
            Err(_) => return Err(at.mistake(format!("the number {v} is too large"))),
        },
        DeValue::Float(v) => match v.as_str().parse() {
            Ok(v) => Value::Float(v),
            Err(_) => return Err(at.mistake(format!("{v} is not a number"))),
        },
        // No recipe has dates.
        DeValue::Datetime(v) => Value::Str(v.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| node(item, lines, depth + 1, nodes))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => map(table, lines, depth + 1, nodes)?,
    };
    Ok(Node { at, value })
}
