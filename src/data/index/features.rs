//! Hugging Face's features of a table: which columns are images and classes.
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
