//! The tree that a text is parsed to: values and their positions. The same for YAML, JSON and TOML.

use std::collections::HashSet;

use super::mistake::TextMistake;
use super::position::TextPosition;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TreeNode {
    pub(crate) at: TextPosition,
    pub(crate) value: NodeValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    /// Larger numbers are floats.
    Int(i128),
    /// Includes NaN and infinities. The reader of the value checks them.
    Float(f64),
    Str(String),
    List(Vec<TreeNode>),
    /// In the order of the text. No name occurs twice.
    Map(Vec<(MapKey, TreeNode)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MapKey {
    pub(crate) at: TextPosition,
    pub(crate) name: String,
}

/// The maximum nesting depth. It also limits the recursion of code that walks a tree.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum number of values in a tree, including those that aliases repeat.
pub(super) const MAX_NODES: usize = 100_000;

impl TreeNode {
    /// The value of a key. None if there is no such key, or the node is not a map.
    pub(crate) fn get(&self, name: &str) -> Option<&TreeNode> {
        match &self.value {
            NodeValue::Map(entries) => entries.iter().find(|(k, _)| k.name == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The elements of a list. Empty if the node is not a list.
    pub(crate) fn items(&self) -> &[TreeNode] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => &[],
        }
    }

    /// The value as messages name it after "found".
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Null => "nothing".into(),
            NodeValue::Bool(v) => v.to_string(),
            NodeValue::Int(v) => format!("the number {v}"),
            NodeValue::Float(v) => format!("the number {v:?}"),
            NodeValue::Str(v) => format!("the text '{v}'"),
            NodeValue::List(_) => "a list".into(),
            NodeValue::Map(entries) => match entries.first() {
                Some((key, _)) => format!("parameters ('{}' ...)", key.name),
                None => "parameters".into(),
            },
        }
    }
}

/// Rejects a key that occurs twice, at its second position.
pub(super) fn refuse_duplicates(entries: &[(MapKey, TreeNode)]) -> Result<(), TextMistake> {
    let mut seen = HashSet::with_capacity(entries.len());
    for (key, _) in entries {
        if !seen.insert(key.name.as_str()) {
            let first = entries.iter().find(|(k, _)| k.name == key.name);
            let line = first.map_or(key.at.line, |(k, _)| k.at.line);
            return Err(key.at.mistake(format!(
                "'{}' is written twice, first in line {line}: remove one",
                key.name
            )));
        }
    }
    Ok(())
}
