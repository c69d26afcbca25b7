//! The files of an option such as `masks` or `objects`: named by a text, or listed by a program.
//!
//! In the consumer.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The text in place of `files` for a cache that has them itself.
pub(super) const OF_CACHE: &str = "cache";

/// The rule of a cache, with the fields that a run gives in place of its own.
///
/// # Errors
/// Fields that are unknown or do not fit.
pub(super) fn merged_rule<T: DeserializeOwned>(
    stored: Value,
    given: &Map<String, Value>,
    name: &'static str,
) -> Result<T> {
    let mut fields = match stored {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.extend(given.clone());
    serde_json::from_value(Value::Object(fields)).map_err(|e| {
        let what = format!("{name}: the rule of this cache is unknown here: {e}: build it again");
        Error::option(name, what)
    })
}

/// The field `files` of an option.
#[derive(Debug, Clone, Default)]
pub(super) enum FilesOption<L> {
    /// They are listed later.
    #[default]
    Unset,
    Named(String),
    Listed(L),
}

impl<L> FilesOption<L> {
    /// Whether a cache has them itself.
    pub(super) fn is_of_cache(&self) -> bool {
        matches!(self, Self::Named(files) if files == OF_CACHE)
    }

    /// `files` and the other fields of the option `name`: a text alone is `files`.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
        name: &str,
    ) -> std::result::Result<(Self, Map<String, Value>), D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Files(String),
            Fields(Map<String, Value>),
        }
        match Form::deserialize(from)? {
            Form::Files(files) => Ok((Self::Named(files), Map::new())),
            Form::Fields(mut fields) => match fields.remove("files") {
                None => Ok((Self::Unset, fields)),
                Some(Value::String(files)) => Ok((Self::Named(files), fields)),
                Some(_) => {
                    let what = format!("`files` of {name} is no text");
                    Err(D::Error::custom(what))
                }
            },
        }
    }
}

/// The option `name` of a text: files alone, from which `of_files` makes it, or a JSON object.
///
/// # Errors
/// A JSON object that is damaged, or has unknown fields.
pub(super) fn parse_option<T: DeserializeOwned>(
    text: &str,
    name: &'static str,
    of_files: impl FnOnce(&str) -> T,
) -> Result<T> {
    let after = text.trim_start().strip_prefix('{').map(str::trim_start);
    // A pattern may begin with a brace, too.
    match after.is_some_and(|after| after.starts_with('"')) {
        true => serde_json::from_str(text)
            .map_err(|e| Error::option(name, format!("{name} are no JSON object: {e}"))),
        false => Ok(of_files(text)),
    }
}
