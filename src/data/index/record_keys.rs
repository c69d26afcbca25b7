//! Lists the keys of a JSON record for the error about a missing key.
//!
//! Runs in the consumer. Reads the record once more.

use serde_json::Value as Json;

use crate::data::index::column_names::quoted;
use crate::data::index::lenient_json;

/// Maximum number of names in a message.
const NAMED: usize = 8;

/// The keys near the missing key `name`, such as `; at /info it has /info/label, /info/path`. Empty
/// if the record is not an object.
pub(crate) fn list_keys(line: &[u8], name: &str) -> String {
    let value_at = |pointer: &str| {
        let value = lenient_json::find(line, pointer).ok().flatten();
        value.and_then(|value| lenient_json::parse(value, String::new).ok())
    };
    if !name.starts_with('/') {
        return match value_at("").map(|record| keys(&record, "")) {
            Some(keys) if !keys.is_empty() => format!("; it has {}", listed(&keys)),
            _ => String::new(),
        };
    }
    // The longest prefix of the pointer that has a value.
    let mut at = name;
    let found = loop {
        at = at.rsplit_once('/').map_or("", |(front, _)| front);
        match value_at(at) {
            Some(found) => break found,
            None if at.is_empty() => return String::new(),
            None => {}
        }
    };
    let begin = format!("{at}/");
    let keys = keys(&found, &begin);
    match (keys.is_empty(), at) {
        (true, "") => String::new(),
        (true, at) => format!("; {} has nothing inside", quoted(at)),
        (false, "") => format!("; it has {}", listed(&keys)),
        (false, at) => format!("; {} has {}", quoted(at), listed(&keys)),
    }
}

/// The advice to name a key inside an object, if it has keys.
pub(crate) fn list_inner_keys(object: &Json, name: &str) -> Option<String> {
    let name = match name {
        // The record itself.
        "" => String::new(),
        name if name.starts_with('/') => name.to_owned(),
        name => format!("/{}", escaped(name)),
    };
    let keys = keys(object, &format!("{name}/"));
    let is_object = object.is_object() && !keys.is_empty();
    is_object.then(|| format!("name a place in it, one of {}", listed(&keys)))
}

/// The keys of an object, or the positions in an array, with `begin` before each.
fn keys(json: &Json, begin: &str) -> Vec<String> {
    match json {
        Json::Object(object) => object
            .keys()
            .map(|key| match begin.is_empty() {
                true => key.clone(),
                false => format!("{begin}{}", escaped(key)),
            })
            .collect(),
        Json::Array(all) => (0..all.len().min(NAMED))
            .map(|i| format!("{begin}{i}"))
            .collect(),
        _ => Vec::new(),
    }
}

/// A key, escaped for a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| quoted(name)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_place_is_answered_by_what_is_there() {
        let line = br#"{"path": "a.jpg", "info": {"label": 1, "a/b": 2}, "tags": [3, 4], "n": 5}"#;
        for (name, says) in [
            ("foo", "; it has 'info', 'n', 'path', 'tags'"),
            ("/foo/bar", "; it has '/info', '/n', '/path', '/tags'"),
            ("/info/bar", "; '/info' has '/info/a~1b', '/info/label'"),
            ("/info/label/x/y", "; '/info/label' has nothing inside"),
            ("/tags/7", "; '/tags' has '/tags/0', '/tags/1'"),
            ("/n/x", "; '/n' has nothing inside"),
        ] {
            assert_eq!(list_keys(line, name), says, "{name}");
        }
        assert_eq!(list_keys(b"[1", "/a"), "");
        let record: Json = serde_json::from_slice(line).unwrap();
        let says = "name a place in it, one of '/info/a~1b', '/info/label'";
        assert_eq!(list_inner_keys(&record["info"], "info").unwrap(), says);
        assert_eq!(list_inner_keys(&record["info"], "/info").unwrap(), says);
        assert_eq!(list_inner_keys(&record["tags"], "tags"), None);
    }
}
