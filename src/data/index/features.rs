//! Hugging Face's features of a table: which columns are images and classes, also inside of others.
//!
//! Runs in the consumer. Reads names and metadata only.

use serde_json::Value as Json;

use crate::data::index::column_names;

/// The label column: one with a plain label name, else the one that Hugging Face's metadata marks
/// as classes, else one with another usual name.
pub(super) fn chosen_label(
    names: &[&str],
    has_classes: impl Fn(&str) -> bool,
) -> Result<Option<String>, String> {
    if names.iter().any(|name| column_names::is_plain_label(name)) {
        return labelled(column_names::label(names));
    }
    let noted: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| has_classes(name))
        .collect();
    match noted.as_slice() {
        [] => labelled(column_names::label(names)),
        [only] => Ok(Some((*only).to_owned())),
        several => match column_names::label(several) {
            Ok(Some(name)) => Ok(Some(name)),
            _ => labelled(Err(column_names::several_labels(&column_names::listed(
                several,
            )))),
        },
    }
}

/// Turns an error about several label columns into a text that follows a file's name.
fn labelled<T>(found: Result<T, String>) -> Result<T, String> {
    found.map_err(|what| format!("has no clear label column: {what}"))
}

fn kind(feature: &Json) -> &str {
    let kind = feature.get("_type").and_then(Json::as_str);
    kind.unwrap_or_default()
}

/// Whether a feature is an image per row.
pub(super) fn is_image(feature: &Json) -> bool {
    kind(feature) == "Image"
}

/// Whether a feature is a class number per row.
pub(super) fn is_class_label(feature: &Json) -> bool {
    kind(feature) == "ClassLabel"
}

/// The names of a `ClassLabel`, in the order of their numbers.
pub(super) fn class_names(feature: &Json) -> Option<Vec<String>> {
    let names = feature.get("names").filter(|_| is_class_label(feature));
    let names = names?.as_array()?.iter();
    names.map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A column with others inside of it, and what is read of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedFields<'a> {
    pub(crate) column: &'a str,
    /// Fields of structs inside of the column.
    pub(crate) fields: &'static [&'static str],
    /// Columns beside it, if the file has them.
    pub(crate) beside: &'static [&'static str],
    /// Fields that may be classes with names.
    pub(crate) classes: &'static [&'static str],
}

/// The error for a column that a file does not have.
pub(super) fn no_column(wanted: &WantedFields<'_>, names: Vec<&str>) -> String {
    format!(
        "has no column {} with {} (its columns: {}): name another",
        column_names::quoted(wanted.column),
        wanted.fields.first().copied().unwrap_or_default(),
        column_names::listed(&names)
    )
}

/// The names of the first of `fields` that is a `ClassLabel`, inside of a feature: a struct of
/// lists, or a list of structs.
pub(super) fn class_names_inside(feature: &Json, fields: &[&str]) -> Option<Vec<String>> {
    let inside = without_list(feature);
    let mut found = fields.iter().filter_map(|name| inside.get(*name));
    found.find_map(|feature| class_names(without_list(feature)))
}

/// What the lists around a feature hold.
fn without_list(feature: &Json) -> &Json {
    let mut inside = feature;
    loop {
        inside = match inside {
            // Old versions of `datasets` write a list of one feature.
            Json::Array(all) if all.len() == 1 => &all[0],
            Json::Object(fields) if matches!(kind(inside), "Sequence" | "List" | "LargeList") => {
                match fields.get("feature") {
                    Some(feature) => feature,
                    None => return inside,
                }
            }
            _ => return inside,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_inside_of_lists_and_structs() {
        let class = r#"{"names": ["cat", "dog"], "_type": "ClassLabel"}"#;
        let numbers = r#"{"dtype": "int64", "_type": "Value"}"#;
        for text in [
            format!(
                r#"{{"feature": {{"id": {numbers}, "category": {class}}}, "_type": "Sequence"}}"#
            ),
            format!(r#"{{"id": {numbers}, "category": {{"feature": {class}, "_type": "List"}}}}"#),
            format!(r#"{{"feature": {{"label": {class}}}, "_type": "List"}}"#),
            format!(r#"[{{"category": {class}}}]"#),
        ] {
            let feature = serde_json::from_str(&text).unwrap();
            let found = class_names_inside(&feature, &["category", "label"]);
            assert_eq!(found.unwrap(), ["cat", "dog"], "{text}");
            assert_eq!(class_names_inside(&feature, &["id"]), None);
        }
        for text in ["null", "[]", "{}", r#"{"_type": "List"}"#, "[[[]]]"] {
            let feature = serde_json::from_str(text).unwrap();
            assert_eq!(class_names_inside(&feature, &["category"]), None);
        }
    }
}
