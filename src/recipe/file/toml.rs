//! From TOML to the tree, and from values to TOML.

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::TextMistake;
use super::node::{MAX_DEPTH, MAX_NODES, MapKey, NodeValue, TreeNode};
use super::position::TextPosition;

/// Writes a value as TOML, which [`read`] parses to its tree. Of the three languages, only TOML has
/// words for numbers that are not finite, and its serializer writes the shortest digits of each
/// `f32`.
pub(crate) fn to_toml(value: &impl Serialize) -> Result<String, toml::ser::Error> {
    toml::to_string(value)
}

pub(crate) fn read(text: &str) -> Result<TreeNode, TextMistake> {
    let lines = LineStarts::of(text);
    let table = DeTable::parse(text).map_err(|e| {
        // Without a span, the text ended too early.
        let at = lines.position(e.span().map_or(text.len(), |span| span.start));
        at.mistake(format!("not TOML: {} (column {})", e.message(), at.column))
    })?;
    let mut nodes = 0;
    let at = TextPosition::START;
    Ok(TreeNode {
        at,
        value: map(table.into_inner(), &lines, 1, &mut nodes)?,
    })
}

/// The offsets at which lines begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self(std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect())
    }

    fn position(&self, offset: usize) -> TextPosition {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        TextPosition {
            line,
            column: offset - self.0.get(line - 1).copied().unwrap_or(0) + 1,
        }
    }
}

fn map(
    table: DeTable<'_>,
    lines: &LineStarts,
    depth: usize,
    nodes: &mut usize,
) -> Result<NodeValue, TextMistake> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let at = lines.position(key.span().start);
        let name = key.into_inner().into_owned();
        entries.push((MapKey { at, name }, node(value, lines, depth, nodes)?));
    }
    // The parser's table is sorted by name: restore the order of the text.
    entries.sort_by_key(|(key, _)| (key.at.line, key.at.column));
    Ok(NodeValue::Map(entries))
}

fn node(
    value: Spanned<DeValue<'_>>,
    lines: &LineStarts,
    depth: usize,
    nodes: &mut usize,
) -> Result<TreeNode, TextMistake> {
    let at = lines.position(value.span().start);
    *nodes += 1;
    if *nodes > MAX_NODES {
        return Err(at.mistake(format!("more than {MAX_NODES} values")));
    }
    if depth > MAX_DEPTH {
        return Err(at.mistake(format!("nested deeper than {MAX_DEPTH} levels: use fewer")));
    }
    let value = match value.into_inner() {
        DeValue::String(v) => NodeValue::Str(v.into_owned()),
        DeValue::Boolean(v) => NodeValue::Bool(v),
        DeValue::Integer(v) => match i128::from_str_radix(v.as_str(), v.radix()) {
            Ok(v) => NodeValue::Int(v),
            Err(_) => return Err(at.mistake(format!("the number {v} is too large"))),
        },
        DeValue::Float(v) => match v.as_str().parse() {
            Ok(v) => NodeValue::Float(v),
            Err(_) => return Err(at.mistake(format!("{v} is not a number"))),
        },
        // Recipes have no dates.
        DeValue::Datetime(v) => NodeValue::Str(v.to_string()),
        DeValue::Array(items) => NodeValue::List(
            items
                .into_iter()
                .map(|item| node(item, lines, depth + 1, nodes))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => map(table, lines, depth + 1, nodes)?,
    };
    Ok(TreeNode { at, value })
}
