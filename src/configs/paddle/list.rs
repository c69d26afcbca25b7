//! A list of operations: one name and its parameters an element.
//!
//! In the consumer or the CLI. Never in here: what a name means.

use crate::configs::paddle::params::Read;
use crate::recipe::file::{Key, Mistake, Node, Value};

/// The elements of a list of operations.
pub(crate) fn items<'a>(node: &'a Node, name: &str) -> Read<&'a [Node]> {
    match &node.value {
        Value::List(items) => Ok(items),
        _ => {
            let expected = format!("{name} to be a list of operations");
            Err(Mistake::expected(node.at, &expected, &node.described()))
        }
    }
}

/// An element of a list: one name and its parameters.
pub(crate) fn one_name(item: &Node) -> Read<(&Key, &Node)> {
    match &item.value {
        Value::Map(entries) => match entries.as_slice() {
            [(key, node)] => Ok((key, node)),
            [_, (second, _), ..] => Err(second.at.mistake(format!(
                "'{}' is beside another name: indent it deeper if it is a parameter",
                second.name
            ))),
            [] => Err(item.at.mistake("the name of an operation is missing")),
        },
        _ => {
            let expected = "an operation and its parameters (Name: ...)";
            Err(Mistake::expected(item.at, expected, &item.described()))
        }
    }
}
