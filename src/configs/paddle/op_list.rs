//! A list of operations: each element is one name with its parameters.
//!
//! Runs in the consumer or the CLI. Never in here: the meaning of a name.

use crate::configs::paddle::params::ConfigResult;
use crate::recipe::file::{MapKey, NodeValue, TextMistake, TreeNode};

/// The elements of a list of operations.
pub(crate) fn operations_of<'a>(node: &'a TreeNode, name: &str) -> ConfigResult<&'a [TreeNode]> {
    match &node.value {
        NodeValue::List(items) => Ok(items),
        _ => {
            let expected = format!("{name} to be a list of operations");
            Err(TextMistake::expected(node.at, &expected, &node.describe()))
        }
    }
}

/// An element of a list: one name and its parameters.
pub(crate) fn name_and_params(item: &TreeNode) -> ConfigResult<(&MapKey, &TreeNode)> {
    match &item.value {
        NodeValue::Map(entries) => match entries.as_slice() {
            [(key, node)] => Ok((key, node)),
            [_, (second, _), ..] => Err(second.at.mistake(format!(
                "'{}' is next to another name: indent it deeper if it is a parameter",
                second.name
            ))),
            [] => Err(item.at.mistake("the name of an operation is missing")),
        },
        _ => {
            let expected = "an operation and its parameters (Name: ...)";
            Err(TextMistake::expected(item.at, expected, &item.describe()))
        }
    }
}
