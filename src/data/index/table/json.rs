//! Reads JSON lines as rows. Each line is an object, and its keys are the columns.
//!
//! Runs in the consumer. Only the requested values of an object are parsed. Of the others, only
//! their ends are found. The first record decides which keys are read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use serde_json::Value as Json;

use crate::data::columns::AvailableColumn;
use crate::data::index::column_names::{is_of_labels, quoted};
use crate::data::index::label_value::{self, LabelValue};
use crate::data::index::lenient_json;
use crate::data::index::lines::TextLines;
use crate::data::index::record_keys;
use crate::data::index::report::TableColumns;
use crate::data::index::table::columns;
use crate::data::index::table::options::{TableLabels, TableOptions};
use crate::data::index::table::row::{TableReader, TableRow, part, without_label};
use crate::error::Error;

pub(super) struct JsonRows<'a> {
    file: &'a Path,
    lines: TextLines<'a>,
    options: &'a TableOptions,
    /// `None` before the first record.
    chosen: Option<JsonColumns>,
}

/// A key, and a place inside its value.
struct KeyPath {
    name: String,
    /// The position in [`JsonColumns::keys`].
    key: usize,
    /// A JSON pointer into the value.
    inside: String,
}

/// The values that are read from each record.
struct JsonColumns {
    /// The keys whose values are read.
    keys: Vec<String>,
    path: KeyPath,
    labels: Vec<KeyPath>,
    /// The keys of the first record.
    names: Vec<String>,
    /// Whether a label key in a later record is an error, because the first record has none.
    refuses_labels: bool,
}

impl<'a> JsonRows<'a> {
    pub(super) fn open(file: &'a Path, options: &'a TableOptions) -> Result<Self, Error> {
        Ok(Self {
            file,
            lines: TextLines::open(file)?,
            options,
            chosen: None,
        })
    }
}

impl TableReader for JsonRows<'_> {
    fn next(&mut self, row: &mut TableRow) -> Result<bool, Error> {
        let (number, line) = loop {
            match self.lines.next_line()? {
                None => return Ok(false),
                Some((_, line)) if line.trim_ascii().is_empty() => {}
                Some(found) => break found,
            }
        };
        row.line = number;
        let failed = |what| Error::dataset_line(self.file, number, what);
        let chosen = match &self.chosen {
            Some(chosen) => chosen,
            None => {
                let chosen = JsonColumns::by_first(line, self.options).map_err(failed)?;
                self.chosen.insert(chosen)
            }
        };
        chosen.fill(line, row).map_err(failed)?;
        Ok(true)
    }

    fn columns(&self) -> TableColumns {
        let chosen = self.chosen.iter();
        let labels = chosen.clone().flat_map(|chosen| &chosen.labels);
        TableColumns {
            path: chosen
                .clone()
                .map(|chosen| chosen.path.name.clone())
                .collect(),
            labels: labels.map(|place| place.name.clone()).collect(),
            available: chosen
                .flat_map(|chosen| &chosen.names)
                .map(|name| AvailableColumn::new(name, ""))
                .collect(),
            ..TableColumns::default()
        }
    }
}

impl JsonColumns {
    fn by_first(line: &[u8], options: &TableOptions) -> Result<Self, String> {
        let mut names = Vec::new();
        let mut known = HashSet::new();
        // A key may appear twice. If it is read, `values` checks that both values are equal.
        members(line, |key, _| {
            if known.insert(key.clone()) {
                names.push(key.into_owned());
            }
        })?;
        let path = columns::path(&names, options.path_column.as_deref())?
            .ok_or_else(|| columns::no_path(&names))?;
        let labels = columns::labels(&names, &options.labels, &path)?;
        let mut keys = Vec::new();
        let mut place = |name: &str| {
            let (key, inside) = taken_apart(name);
            let known = keys.iter().position(|known| *known == key);
            KeyPath {
                name: name.to_owned(),
                key: known.unwrap_or_else(|| {
                    keys.push(key);
                    keys.len() - 1
                }),
                inside: inside.to_owned(),
            }
        };
        let path = place(&path);
        let labels: Vec<KeyPath> = labels.iter().map(|name| place(name)).collect();
        Ok(Self {
            refuses_labels: options.labels == TableLabels::Auto && labels.is_empty(),
            path,
            labels,
            keys,
            names,
        })
    }

    fn fill(&self, line: &[u8], row: &mut TableRow) -> Result<(), String> {
        let values = self.values(line)?;
        let at = |place: &KeyPath| {
            let value = values.get(place.key).copied().flatten();
            let value = value.map(|value| lenient_json::find(value, &place.inside));
            let value = value.transpose().map_err(|e| e.to_string())?.flatten();
            let value = value.map(|value| lenient_json::parse(value, || quoted(&place.name)));
            Ok::<_, String>(value.transpose()?.filter(|value| !value.is_null()))
        };
        row.path.clear();
        match at(&self.path)? {
            Some(Json::String(path)) => row.path.extend_from_slice(path.as_bytes()),
            // A number as a path is an id.
            Some(Json::Number(n)) if n.is_u64() => row.path.extend(n.to_string().bytes()),
            found => {
                let name = &self.path.name;
                return Err(match found {
                    None => without_path(name, false) + &record_keys::list_keys(line, name),
                    Some(value) => match record_keys::list_inner_keys(&value, name) {
                        Some(inside) => format!("{} is an object: {inside}", quoted(name)),
                        None => without_path(name, true),
                    },
                });
            }
        }
        let missing = |place: &KeyPath| {
            without_label(&place.name) + &record_keys::list_keys(line, &place.name)
        };
        row.label = match self.labels.as_slice() {
            [] => None,
            [place] => {
                let value = at(place)?.unwrap_or(Json::Null);
                let value = label_value::of_json_value(&value, || quoted(&place.name))?;
                Some(value.ok_or_else(|| missing(place))?)
            }
            several => {
                let parts = several.iter().map(|place| match at(place)? {
                    None => Err(missing(place)),
                    Some(value) => part(value.as_f64(), value.to_string().as_bytes(), &place.name),
                });
                Some(LabelValue::Vector(parts.collect::<Result<_, _>>()?))
            }
        };
        Ok(())
    }

    /// The texts of the values that are read, in the order of `keys`.
    fn values<'l>(&self, line: &'l [u8]) -> Result<Vec<Option<&'l [u8]>>, String> {
        let mut values = vec![None; self.keys.len()];
        let mut twice = None;
        let mut unexpected = None;
        members(line, |key, value| {
            match self.keys.iter().position(|known| *known == key) {
                Some(at) => {
                    let first = values[at].replace(value);
                    twice = twice.or(first.filter(|first| *first != value).map(|_| at));
                }
                None if self.refuses_labels && is_of_labels(&key) && value != b"null" => {
                    unexpected.get_or_insert(key);
                }
                None => {}
            }
        })?;
        if let Some(at) = twice {
            let what = lenient_json::duplicate_key_text(&self.keys[at]);
            return Err(format!("not a JSON object: {what}"));
        }
        match unexpected {
            None => Ok(values),
            Some(key) => Err(format!(
                "a label {} here, but none in the first record: add it there, or use `labels: \
                 none`",
                quoted(&key)
            )),
        }
    }
}

/// Calls `each` with the keys of the object in a line, and the texts of their values.
fn members<'l>(line: &'l [u8], each: impl FnMut(Cow<'l, str>, &'l [u8])) -> Result<(), String> {
    lenient_json::members(line, each)
        .map_err(|fault| format!("not a JSON object: {fault} of the line"))
}

fn without_path(name: &str, is_there: bool) -> String {
    let name = quoted(name);
    match is_there {
        true => format!(
            "{name} is not text: name the place of the path with `path_column`, such as \
             /image/path"
        ),
        false => format!("no path: this record has nothing at {name}"),
    }
}

/// Splits the name of a column into a key and a JSON pointer into its value.
fn taken_apart(name: &str) -> (String, &str) {
    let Some(pointer) = name.strip_prefix('/') else {
        return (name.to_owned(), "");
    };
    let end = pointer.find('/').unwrap_or(pointer.len());
    let key = pointer[..end].replace("~1", "/").replace("~0", "~");
    (key, &pointer[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_is_a_pointer() {
        for (name, key, inside) in [
            ("label", "label", ""),
            ("a/b", "a/b", ""),
            ("/a", "a", ""),
            ("/a/b/0", "a", "/b/0"),
            ("/a~1b~0/c~1", "a/b~", "/c~1"),
            ("/", "", ""),
        ] {
            assert_eq!(taken_apart(name), (key.to_owned(), inside), "{name}");
        }
    }
}
