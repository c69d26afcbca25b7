//! Lines of JSON as rows: an object a line, its keys are the columns.
//!
//! In the consumer. Of an object the values that are asked for are kept, for one record.
//! Which keys are meant follows from the first record.

use std::fmt;
use std::path::Path;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::data::index::lines::Lines;
use crate::data::index::names::shown;
use crate::data::index::record_keys;
use crate::data::index::report::TableColumns;
use crate::data::index::table::columns;
use crate::data::index::table::options::{TableLabels, TableOptions};
use crate::data::index::table::row::{Row, Rows, part, ticked, without_label};
use crate::data::index::value::{self, Value};
use crate::error::Error;

pub(super) struct JsonRows<'a> {
    file: &'a Path,
    lines: Lines<'a>,
    options: &'a TableOptions,
    /// None in front of the first record.
    chosen: Option<Chosen>,
}

/// A key, and where in its value.
struct Place {
    name: String,
    /// Which of the keys that are kept.
    key: usize,
    /// A JSON pointer.
    inside: String,
}

/// What is asked of each record.
struct Chosen {
    /// Kept of an object.
    keys: Vec<String>,
    path: Place,
    labels: Vec<Place>,
    /// Whether a key of labels in a later record is a mistake: the first has none.
    refuses_labels: bool,
}

impl<'a> JsonRows<'a> {
    pub(super) fn open(file: &'a Path, options: &'a TableOptions) -> Result<Self, Error> {
        Ok(Self {
            file,
            lines: Lines::open(file)?,
            options,
            chosen: None,
        })
    }
}

impl Rows for JsonRows<'_> {
    fn next(&mut self, row: &mut Row) -> Result<bool, Error> {
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
                let chosen = Chosen::by_first(line, self.options).map_err(failed)?;
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
            path: chosen.map(|chosen| chosen.path.name.clone()).collect(),
            labels: labels.map(|place| place.name.clone()).collect(),
            ..TableColumns::default()
        }
    }
}

impl Chosen {
    fn by_first(line: &[u8], options: &TableOptions) -> Result<Self, String> {
        let names = object(line, &[], &|_| true)?.told;
        let path = columns::path(&names, options.path_column.as_deref())?
            .ok_or_else(|| columns::no_path(&names))?;
        let labels = columns::labels(&names, &options.labels)?;
        let mut keys = Vec::new();
        let mut place = |name: &str| {
            let (key, inside) = taken_apart(name);
            let known = keys.iter().position(|known| *known == key);
            Place {
                name: name.to_owned(),
                key: known.unwrap_or_else(|| {
                    keys.push(key);
                    keys.len() - 1
                }),
                inside: inside.to_owned(),
            }
        };
        let path = place(&path);
        let labels: Vec<Place> = labels.iter().map(|name| place(name)).collect();
        Ok(Self {
            refuses_labels: options.labels == TableLabels::Auto && labels.is_empty(),
            path,
            labels,
            keys,
        })
    }

    fn fill(&self, line: &[u8], row: &mut Row) -> Result<(), String> {
        let tells = |name: &str| self.refuses_labels && columns::is_of_labels(name);
        let Object { values, told } = object(line, &self.keys, &tells)?;
        if let Some(name) = told.first() {
            return Err(format!(
                "a label {} here, and none in the first record: add it there, or use `labels: \
                 none`",
                ticked(name)
            ));
        }
        let at = |place: &Place| {
            let value = values.get(place.key).and_then(Option::as_ref);
            let value = value.and_then(|value| value.pointer(&place.inside));
            value.filter(|value| !value.is_null())
        };
        row.path.clear();
        match at(&self.path) {
            Some(Json::String(path)) => row.path.extend_from_slice(path.as_bytes()),
            // An id.
            Some(Json::Number(n)) if n.is_u64() => row.path.extend(n.to_string().bytes()),
            found => {
                let name = &self.path.name;
                return Err(match found {
                    None => without_path(name, false) + &record_keys::beside(line, name),
                    Some(value) => match record_keys::inside(value, name) {
                        Some(inside) => format!("{} is an object: {inside}", ticked(name)),
                        None => without_path(name, true),
                    },
                });
            }
        }
        let missing =
            |place: &Place| without_label(&place.name) + &record_keys::beside(line, &place.name);
        row.label = match self.labels.as_slice() {
            [] => None,
            [place] => {
                let value = at(place).unwrap_or(&Json::Null);
                let value = value::of_json_value(value, || ticked(&place.name))?;
                Some(value.ok_or_else(|| missing(place))?)
            }
            several => {
                let parts = several.iter().map(|place| match at(place) {
                    None => Err(missing(place)),
                    Some(value) => part(value.as_f64(), value.to_string().as_bytes(), &place.name),
                });
                Some(Value::Vector(parts.collect::<Result<_, _>>()?))
            }
        };
        Ok(())
    }
}

fn without_path(name: &str, is_there: bool) -> String {
    let name = ticked(name);
    match is_there {
        true => format!(
            "{name} is not text: name the place of the path with `path_column`, such as \
             /image/path"
        ),
        false => format!("no path: this record has nothing at {name}"),
    }
}

/// The key of a column's name, and a JSON pointer into its value.
fn taken_apart(name: &str) -> (String, &str) {
    let Some(pointer) = name.strip_prefix('/') else {
        return (name.to_owned(), "");
    };
    let end = pointer.find('/').unwrap_or(pointer.len());
    let key = pointer[..end].replace("~1", "/").replace("~0", "~");
    (key, &pointer[end..])
}

/// What is kept of an object.
struct Object {
    /// Of the keys that are asked for, by their position.
    values: Vec<Option<Json>>,
    /// Other keys that were to be told.
    told: Vec<String>,
}

/// Reads the object in a line: the values of `keys`, and which others `tells` names.
fn object(line: &[u8], keys: &[String], tells: &dyn Fn(&str) -> bool) -> Result<Object, String> {
    let text = std::str::from_utf8(line)
        .map_err(|_| "this line is not UTF-8: save the file as UTF-8".to_owned())?;
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Keys { keys, tells }.deserialize(&mut json);
    let read = read.and_then(|object| json.end().map(|()| object));
    read.map_err(|e| {
        // The line is that of the file.
        let what = e.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        let what = shown(what.as_bytes());
        format!(
            "not a JSON object: {what}, at byte {} of the line",
            e.column()
        )
    })
}

struct Keys<'a> {
    keys: &'a [String],
    tells: &'a dyn Fn(&str) -> bool,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut found = Object {
            values: vec![None; self.keys.len()],
            told: Vec::new(),
        };
        loop {
            let key = Key {
                keys: self.keys,
                tells: self.tells,
                told: &mut found.told,
            };
            match map.next_key_seed(key)? {
                None => return Ok(found),
                Some(None) => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(Some(at)) => {
                    let value = map.next_value()?;
                    if found.values[at].replace(value).is_some() {
                        let name = ticked(&self.keys[at]);
                        return Err(A::Error::custom(format!("{name} stands in it twice")));
                    }
                }
            }
        }
    }
}

/// Which of the keys that are asked for a key is. Others take no memory.
struct Key<'a> {
    keys: &'a [String],
    tells: &'a dyn Fn(&str) -> bool,
    told: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Option<usize>, E> {
        let at = self.keys.iter().position(|known| known == key);
        if at.is_none() && (self.tells)(key) {
            self.told.push(key.to_owned());
        }
        Ok(at)
    }
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
