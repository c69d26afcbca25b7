//! From the tree to values: a serde deserializer whose mistakes have a position and a suggested
//! fix.

use serde::Deserialize;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::mistake::TextMistake;
use super::node::{MapKey, NodeValue, TreeNode};
use super::position::TextPosition;

/// Reads a value from a tree.
pub(crate) fn read<'de, T: Deserialize<'de>>(node: &'de TreeNode) -> Result<T, TextMistake> {
    T::deserialize(node)
}

type MapEntry = (MapKey, TreeNode);

impl<'de> Deserializer<'de> for &'de TreeNode {
    type Error = TextMistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextMistake> {
        let visited = match &self.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(v) => visitor.visit_bool(*v),
            NodeValue::Int(v) => match (i64::try_from(*v), u64::try_from(*v)) {
                (Ok(v), _) => visitor.visit_i64(v),
                (_, Ok(v)) => visitor.visit_u64(v),
                _ => visitor.visit_f64(*v as f64),
            },
            NodeValue::Float(v) => visitor.visit_f64(*v),
            NodeValue::Str(v) => visitor.visit_borrowed_str(v),
            NodeValue::List(items) => visitor.visit_seq(ListItems(items.iter())),
            NodeValue::Map(entries) => visitor.visit_map(MapEntries::of(entries)),
        };
        visited.map_err(|e| e.or_in(self.at))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextMistake> {
        match self.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextMistake> {
        visitor.visit_newtype_struct(self)
    }

    /// A name without a value has no parameters: all defaults.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextMistake> {
        let visited = match &self.value {
            NodeValue::Map(entries) => visitor.visit_map(MapEntries::of(entries)),
            NodeValue::Null => visitor.visit_map(MapEntries::of(&[])),
            value => {
                let expected = "parameters (name: value)";
                let mut found = self.describe();
                if let (NodeValue::Int(v), Some(first)) = (value, names.first()) {
                    found.push_str(&format!(": write {{{first}: {v}}}"));
                }
                return Err(TextMistake::expected(self.at, expected, &found));
            }
        };
        visited.map_err(|e| e.or_in(self.at))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        rust_name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextMistake> {
        let choice = match &self.value {
            NodeValue::Str(name) => EnumChoice {
                name,
                at: self.at,
                parameters: None,
            },
            NodeValue::Map(entries) => match &entries[..] {
                [(key, parameters)] => EnumChoice {
                    name: &key.name,
                    at: key.at,
                    parameters: Some(parameters),
                },
                [(first, value), (second, _), ..] => {
                    let (first, beside) = (&first.name, &second.name);
                    let fix = match (first.as_str(), &value.value) {
                        ("name" | "type" | "op" | "transform", NodeValue::Str(name)) => format!(
                            "write the operation's name as the key, `- {name}: {{{beside}: ...}}`"
                        ),
                        _ => format!(
                            "an item of the list holds one operation. Indent '{beside}' deeper if \
                             it is a parameter of {first}, or begin a new item with '-'"
                        ),
                    };
                    let text = format!("'{beside}' is next to '{first}': {fix}");
                    return Err(second.at.mistake(text));
                }
                [] => {
                    let text = "the name of an operation is missing: write one, such as `- decode`";
                    return Err(self.at.mistake(text));
                }
            },
            _ => {
                let expected = match known {
                    [] => "a name".to_owned(),
                    // A long list is not helpful.
                    [first, .., last] if known.len() > 8 => {
                        format!("an operation's name ({first} ... {last})")
                    }
                    names => format!("one of {}", names.join(", ")),
                };
                return Err(TextMistake::expected(self.at, &expected, &self.describe()));
            }
        };
        let at = choice.at;
        visitor
            .visit_enum(choice)
            .map_err(|e| e.or_at(at).in_enum(rust_name))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextMistake> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

struct ListItems<'de>(std::slice::Iter<'de, TreeNode>);

impl<'de> SeqAccess<'de> for ListItems<'de> {
    type Error = TextMistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TextMistake> {
        let Some(item) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(item)
            .map(Some)
            .map_err(|e| e.or_at(item.at).in_list())
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct MapEntries<'de> {
    rest: std::slice::Iter<'de, MapEntry>,
    /// The entry whose name was read and whose value was not read yet.
    current: Option<&'de MapEntry>,
}

impl<'de> MapEntries<'de> {
    fn of(entries: &'de [MapEntry]) -> Self {
        Self {
            rest: entries.iter(),
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for MapEntries<'de> {
    type Error = TextMistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TextMistake> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, TextMistake> = key.name.as_str().into_deserializer();
        seed.deserialize(name)
            .map(Some)
            .map_err(|e| e.or_at(key.at))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, TextMistake> {
        let Some((key, value)) = self.current else {
            return Err(TextMistake::custom("a value was read before its name"));
        };
        seed.deserialize(value)
            .map_err(|e| e.or_at(key.at).or_label(&key.name))
    }
}

/// A variant of an enum: its name, alone or with parameters.
struct EnumChoice<'de> {
    name: &'de str,
    at: TextPosition,
    parameters: Option<&'de TreeNode>,
}

impl<'de> EnumAccess<'de> for EnumChoice<'de> {
    type Error = TextMistake;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), TextMistake> {
        let name: StrDeserializer<'_, TextMistake> = self.name.into_deserializer();
        let variant = seed.deserialize(name).map_err(|e| e.or_at(self.at))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for EnumChoice<'de> {
    type Error = TextMistake;

    fn unit_variant(self) -> Result<(), TextMistake> {
        match self.parameters {
            None => Ok(()),
            Some(TreeNode {
                value: NodeValue::Null,
                ..
            }) => Ok(()),
            Some(node) => Err(node.at.mistake(format!(
                "'{}' takes no parameters: write its name alone",
                self.name
            ))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, TextMistake> {
        match self.parameters {
            Some(node) => seed.deserialize(node),
            None => {
                let none = std::iter::empty::<(&str, &str)>();
                seed.deserialize(MapDeserializer::<_, TextMistake>::new(none))
            }
        }
        .map_err(|e| e.or_at(self.at).or_label(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, TextMistake> {
        Err(TextMistake::custom("no variant has a tuple"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextMistake> {
        match self.parameters {
            Some(node) => node.deserialize_struct("", fields, visitor),
            None => visitor.visit_map(MapEntries::of(&[])),
        }
        .map_err(|e| e.or_at(self.at).or_label(self.name))
    }
}
