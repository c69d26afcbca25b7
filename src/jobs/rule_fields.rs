//! The fields of a rule as JSON, as options and caches name them.
//!
//! Pure.

use serde::Serialize;
use serde_json::{Map, Value};

/// All fields of a rule.
pub(crate) fn fields_of(rule: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(rule) {
        Ok(Value::Object(fields)) => fields,
        // Rules are structs of numbers and texts.
        _ => Map::new(),
    }
}

/// The fields that differ from those of the usual rule.
pub(crate) fn changed_fields(
    mut fields: Map<String, Value>,
    usual: &Map<String, Value>,
) -> Map<String, Value> {
    fields.retain(|name, value| usual.get(name) != Some(value));
    fields
}
