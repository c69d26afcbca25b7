//! A small YAML text as lists and maps of texts.
//!
//! The reader of recipes is in another room, and has rules of its own. Here, aliases are refused:
//! a few lines of them could become more values than fit in memory.

use granit_parser::{Event, Parser};

/// Values of a text, at most.
const MOST_VALUES: usize = 200_000;
const MOST_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum YamlValue {
    Text(String),
    List(Vec<YamlValue>),
    Map(Vec<(String, YamlValue)>),
}

impl YamlValue {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, of)| of),
            _ => None,
        }
    }
}

/// What is wrong with a text, and on which line.
#[derive(Debug, PartialEq)]
pub(super) struct YamlFault {
    pub(super) line: usize,
    pub(super) what: String,
}

/// A list or map that is still open, and the key whose value is next.
struct OpenValue {
    value: YamlValue,
    key: Option<String>,
}

/// Reads the first document. An empty text is an empty map.
pub(super) fn read(text: &str) -> Result<YamlValue, YamlFault> {
    let options = granit_parser::options! { emit_comments: false };
    let mut open: Vec<OpenValue> = Vec::new();
    let mut values = 0;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|e| YamlFault {
            line: e.marker().line().max(1),
            what: format!("not YAML: {}", e.info()),
        })?;
        let fault = |what: &str| {
            Err(YamlFault {
                line: span.start.line().max(1),
                what: what.to_owned(),
            })
        };
        values += 1;
        if values > MOST_VALUES || open.len() > MOST_DEPTH {
            return fault("has too many values, or too deep ones");
        }
        let done = match event {
            Event::Scalar(text, ..) => {
                if let Some(of) = open.last_mut()
                    && matches!(of.value, YamlValue::Map(_))
                    && of.key.is_none()
                {
                    of.key = Some(text.into_owned());
                    continue;
                }
                YamlValue::Text(text.into_owned())
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_key =
                    |of: &OpenValue| matches!(of.value, YamlValue::Map(_)) && of.key.is_none();
                if open.last().is_some_and(is_key) {
                    return fault("has a list or a map as a key");
                }
                let value = match event {
                    Event::SequenceStart(..) => YamlValue::List(Vec::new()),
                    _ => YamlValue::Map(Vec::new()),
                };
                open.push(OpenValue { value, key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(of) => of.value,
                None => return fault("not YAML"),
            },
            Event::Alias(..) | Event::UnresolvedAlias(..) => {
                return fault("has an alias ('*name'): write its value out");
            }
            _ => continue,
        };
        let Some(of) = open.last_mut() else {
            return Ok(done);
        };
        match &mut of.value {
            YamlValue::List(list) => list.push(done),
            YamlValue::Map(entries) => {
                let key = of.key.take().unwrap_or_default();
                // Keys of `data.yaml` are few. Names have numbers, which are checked later.
                // Keys of `data.yaml` are few. Names have numbers, which are checked later.
                if entries.len() < 64 && entries.iter().any(|(name, _)| *name == key) {
                    return fault(&format!("has the key '{key}' twice"));
                }
                entries.push((key, done));
            }
            YamlValue::Text(_) => return fault("not YAML"),
        }
    }
    Ok(YamlValue::Map(Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_lists_and_texts() {
        let text =
            "# a\npath: ../x\nnames:\n  0: cat\n  1: 'no'\nshape: [17, 3]\nempty:\nd: |\n  a\n";
        let read = read(text).unwrap();
        let is = |text: &str| YamlValue::Text(text.into());
        assert_eq!(read.get("path"), Some(&is("../x")));
        let names = vec![("0".into(), is("cat")), ("1".into(), is("no"))];
        assert_eq!(read.get("names"), Some(&YamlValue::Map(names)));
        assert_eq!(
            read.get("shape"),
            Some(&YamlValue::List(vec![is("17"), is("3")]))
        );
        assert_eq!(read.get("d"), Some(&is("a\n")));
        assert_eq!(read.get("x"), None);
        assert_eq!(super::read("").unwrap(), YamlValue::Map(vec![]));
    }

    #[test]
    fn bombs_and_wrong_texts_are_refused() {
        let deep = "[".repeat(100_000);
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
        let many = format!("a: [{}]", "x, ".repeat(300_000));
        for text in [&*deep, bomb, &many, "a: [", "a: 1\na: 2", "? [a]\n: b"] {
            let e = read(text).unwrap_err();
            assert!(e.line >= 1 && !e.what.is_empty(), "{text:.20}: {e:?}");
        }
    }
}
