//! The description of an operation for users, built from its struct, its documentation and its
//! example. So no second list exists.
//!
//! Names, forms and defaults of parameters come from the same derived code that reads recipe files.
//! Used by the CLI, never by a worker.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Visitor,
};
use serde::{Serialize, forward_to_deserialize_any};

use super::file::write::write_inline;
use super::file::{MapKey, NodeValue, RecipeFormat, TextPosition, TreeNode};
use super::file::{de as tree, toml, yaml};
use super::operation_docs::OperationDocs;

/// An operation and its parameters, as `featherload ops` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OperationInfo {
    pub name: &'static str,
    /// The first sentence of `about`.
    pub summary: String,
    pub about: String,
    pub parameters: Vec<ParameterInfo>,
    /// As an item of a list in a recipe file, without the dash.
    pub example: &'static str,
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ParameterInfo {
    pub name: &'static str,
    /// The values that a file may have here.
    pub form: String,
    /// True if a file must set it.
    pub required: bool,
    /// The value when a file does not set it. None: no value.
    pub default: Option<String>,
    pub meaning: String,
}

/// The description of operation `T`, which is a variant of `O`.
pub(crate) fn info<T, O>(name: &'static str) -> OperationInfo
where
    T: OperationDocs + DeserializeOwned,
    O: DeserializeOwned + Serialize + PartialEq,
{
    let about = text(T::ABOUT);
    let (fields, _) = probe::<T>(None);
    let example = example::<O>(T::EXAMPLE);
    let parameters = fields.iter().map(|field| {
        let (_, form) = probe::<T>(Some(field));
        let (required, default) = match &example {
            Some(example) => default((name, example), field, &form),
            None => (true, None),
        };
        let meaning = T::PARAMETERS.iter().find(|(name, _)| name == field);
        ParameterInfo {
            name: field,
            form,
            required,
            default,
            meaning: meaning.map_or(String::new(), |(_, lines)| text(lines)),
        }
    });
    OperationInfo {
        name,
        summary: first_sentence(&about),
        parameters: parameters.collect(),
        about,
        example: T::EXAMPLE,
    }
}

/// Joins lines of documentation into one line.
fn text(lines: &[&str]) -> String {
    let words = lines.iter().map(|line| line.trim());
    words.collect::<Vec<_>>().join(" ")
}

fn first_sentence(about: &str) -> String {
    match about.find(". ") {
        Some(end) => about[..=end].to_owned(),
        None => about.to_owned(),
    }
}

/// Parses the example of an operation. A test checks that every operation has one.
fn example<O: DeserializeOwned>(text: &str) -> Option<O> {
    tree::read(&yaml::read(text).ok()?).ok()
}

/// A parameter and its value in a file.
type ParameterEntry = (MapKey, TreeNode);

/// Whether a parameter is required, and its default otherwise. It reads the example again without
/// this parameter.
fn default<O>((name, example): (&str, &O), field: &str, form: &str) -> (bool, Option<String>)
where
    O: DeserializeOwned + Serialize + PartialEq,
{
    let Some(mut all) = parameters(name, example) else {
        return (true, None);
    };
    all.retain(|(key, _)| key.name != field);
    let Some(without) = read::<O>(name, all.clone()) else {
        return (true, None);
    };
    let written = || {
        let all = parameters(name, &without)?;
        all.into_iter().find(|(key, _)| key.name == field)
    };
    // A file omits some parameters that have their default. The default is then the value that
    // gives an equal operation.
    let silent = || {
        let words = form.split(", ").map(|word| NodeValue::Str(word.to_owned()));
        let plain = [false, true].map(NodeValue::Bool).into_iter();
        let plain = plain.chain([0, 1].map(NodeValue::Int));
        plain
            .chain(words)
            .map(|value| entry(field, value))
            .find(|entry| {
                let all = all.iter().chain([entry]).cloned().collect();
                read::<O>(name, all).is_some_and(|with| with == without)
            })
    };
    let shown = |(_, node): ParameterEntry| match node.value {
        NodeValue::Str(word) => Some(word),
        NodeValue::Null => None,
        _ => {
            let mut text = String::new();
            write_inline(&node, RecipeFormat::Json, &mut text).ok()?;
            Some(text)
        }
    };
    (false, written().or_else(silent).and_then(shown))
}

/// The parameters of an operation as a file would write them.
fn parameters<O: Serialize>(name: &str, op: &O) -> Option<Vec<ParameterEntry>> {
    let written = toml::to_toml(&BTreeMap::from([("op", op)])).ok()?;
    match toml::read(&written)
        .ok()?
        .get("op")?
        .get(name)?
        .value
        .clone()
    {
        NodeValue::Map(all) => Some(all),
        _ => None,
    }
}

fn read<O: DeserializeOwned>(name: &str, all: Vec<ParameterEntry>) -> Option<O> {
    let (key, node) = entry(name, NodeValue::Map(all));
    let at = node.at;
    tree::read(&TreeNode {
        at,
        value: NodeValue::Map(vec![(key, node)]),
    })
    .ok()
}

fn entry(name: &str, value: NodeValue) -> ParameterEntry {
    let at = TextPosition::START;
    let name = name.to_owned();
    (MapKey { at, name }, TreeNode { at, value })
}

/// The names of all parameters, and the form of one of them.
fn probe<T: DeserializeOwned>(field: Option<&str>) -> (&'static [&'static str], String) {
    let record = ProbeRecord::default();
    // Deserialization fails on purpose as soon as the answer is recorded.
    let _ = T::deserialize(FieldProbe {
        record: &record,
        field,
    });
    (record.fields.get(), record.form.into_inner())
}

/// What the derived code asked the deserializer for.
#[derive(Default)]
struct ProbeRecord {
    fields: Cell<&'static [&'static str]>,
    form: RefCell<String>,
}

/// The error that ends a probe.
#[derive(Debug)]
struct ProbeStop;

impl fmt::Display for ProbeStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the probe has its answer")
    }
}

impl std::error::Error for ProbeStop {}

impl de::Error for ProbeStop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// A deserializer that records the fields of a struct and returns one of them.
struct FieldProbe<'a> {
    record: &'a ProbeRecord,
    field: Option<&'a str>,
}

impl<'de> Deserializer<'de> for FieldProbe<'_> {
    type Error = ProbeStop;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        Err(ProbeStop)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeStop> {
        self.record.fields.set(fields);
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

impl<'de> MapAccess<'de> for FieldProbe<'_> {
    type Error = ProbeStop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ProbeStop> {
        let field = self.field.take().ok_or(ProbeStop)?;
        seed.deserialize(StrDeserializer::new(field)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ProbeStop> {
        seed.deserialize(FormProbe(self.record))
    }
}

/// A deserializer that records the form of a value.
struct FormProbe<'a>(&'a ProbeRecord);

impl FormProbe<'_> {
    fn is<T>(self, what: impl fmt::Display) -> Result<T, ProbeStop> {
        self.0.form.borrow_mut().push_str(&what.to_string());
        Err(ProbeStop)
    }
}

macro_rules! forms {
    ($($method:ident => $what:literal),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
            self.is($what)
        })*
    };
}

impl<'de> Deserializer<'de> for FormProbe<'_> {
    type Error = ProbeStop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        let expected: &dyn Expected = &visitor;
        self.is(expected)
    }

    forms! {
        deserialize_bool => "true or false",
        deserialize_i8 => "a whole number",
        deserialize_i16 => "a whole number",
        deserialize_i32 => "a whole number",
        deserialize_i64 => "a whole number",
        deserialize_u8 => "a whole number, 0 or more",
        deserialize_u16 => "a whole number, 0 or more",
        deserialize_u32 => "a whole number, 0 or more",
        deserialize_u64 => "a whole number, 0 or more",
        deserialize_f32 => "a number",
        deserialize_f64 => "a number",
        deserialize_str => "text",
        deserialize_string => "text",
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ProbeStop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.0.form.borrow_mut().push_str("a list, each ");
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        n: usize,
        visitor: V,
    ) -> Result<V::Value, ProbeStop> {
        let start = format!("a list of {n}, each ");
        self.0.form.borrow_mut().push_str(&start);
        visitor.visit_seq(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ProbeStop> {
        self.is(variants.join(", "))
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple_struct map struct identifier
        ignored_any
    }
}

impl<'de> SeqAccess<'de> for FormProbe<'_> {
    type Error = ProbeStop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ProbeStop> {
        seed.deserialize(FormProbe(self.0)).map(Some)
    }
}
