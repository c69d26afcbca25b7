//! The columns of an Arrow file: their names and types.
//!
//! Runs in the consumer, on untrusted bytes.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::data::arrow::flatbuffer::FlatTable;
use crate::data::columns::values::{ColumnKind, NumberKind};

/// The name of a column whose values are numbers of entries in a list.
pub(crate) const DICTIONARY: &str = "a dictionary";

/// Deepest nesting of a column.
const MOST_DEPTH: usize = 16;
/// Most columns, with those inside of others.
const MOST_FIELDS: usize = 1 << 14;
/// Most bytes of Hugging Face's metadata.
const MOST_NOTE: usize = 4 << 20;

/// The type of a column. `Other` holds a name for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrowType {
    Number(NumberKind),
    /// Bytes; whether offsets have 8 bytes.
    Binary(bool),
    /// Text; whether offsets have 8 bytes.
    Text(bool),
    /// Bytes or text (true) whose places are in views.
    View(bool),
    /// Bytes of this length.
    FixedBinary(usize),
    /// Whether offsets have 8 bytes.
    List(bool),
    FixedList(usize),
    Struct,
    Null,
    /// A name, and the number of buffers of an array.
    Other(&'static str, usize),
}

/// A column, and those inside of it.
#[derive(Debug, Clone)]
pub(crate) struct ArrowField {
    pub(crate) name: String,
    pub(crate) kind: ArrowType,
    pub(crate) children: Vec<ArrowField>,
    /// Of a column of numbers that stand for values: what they stand for.
    pub(super) dictionary: Option<Box<DictionaryField>>,
}

/// The values that numbers of a column stand for.
#[derive(Debug, Clone)]
pub(super) struct DictionaryField {
    pub(super) id: i64,
    /// The type of the numbers.
    pub(super) numbers: NumberKind,
    pub(super) values: ArrowField,
}

impl ArrowType {
    /// The number of buffers of an array. Views have further ones.
    pub(super) fn buffers(self) -> usize {
        match self {
            Self::Number(_) | Self::List(_) | Self::FixedBinary(_) | Self::View(_) => 2,
            Self::Binary(_) | Self::Text(_) => 3,
            Self::FixedList(_) | Self::Struct => 1,
            Self::Null => 0,
            Self::Other(_, buffers) => buffers,
        }
    }
}

impl ArrowField {
    /// The field of this name inside of a struct.
    pub(crate) fn child(&self, name: &str) -> Option<(usize, &Self)> {
        let mut children = self.children.iter().enumerate();
        children.find(|(_, field)| field.name == name)
    }

    /// The kind of its values in a batch. `None` if a batch cannot have them.
    pub(crate) fn column_kind(&self) -> Option<ColumnKind> {
        if let Some(dictionary) = &self.dictionary {
            return dictionary.values.column_kind();
        }
        let inner = self.children.first();
        Some(match (self.kind, inner.map(|inner| inner.kind)) {
            (ArrowType::Number(kind), _) => ColumnKind::Numbers(kind, None),
            (ArrowType::FixedList(width), Some(ArrowType::Number(kind))) => {
                ColumnKind::Numbers(kind, Some(width))
            }
            (ArrowType::Text(_) | ArrowType::View(true), _) => ColumnKind::Text,
            (ArrowType::Binary(_) | ArrowType::View(false) | ArrowType::FixedBinary(_), _) => {
                ColumnKind::Bytes
            }
            (ArrowType::List(_), Some(ArrowType::Number(kind))) => ColumnKind::Ragged(kind, None),
            (ArrowType::List(_), Some(ArrowType::FixedList(width))) => {
                match inner?.children.first()?.kind {
                    ArrowType::Number(kind) => ColumnKind::Ragged(kind, Some(width)),
                    _ => return None,
                }
            }
            (
                ArrowType::List(_) | ArrowType::FixedList(_),
                Some(ArrowType::Text(_) | ArrowType::View(true)),
            ) => ColumnKind::TextLists,
            _ => return None,
        })
    }

    /// A name of its type for people.
    pub(crate) fn type_name(&self) -> String {
        let inner = || {
            let names: Vec<_> = self.children.iter().map(Self::type_name).collect();
            names.join(", ")
        };
        match self.kind {
            ArrowType::Number(kind) => kind.name().to_owned(),
            ArrowType::Binary(_) | ArrowType::View(false) | ArrowType::FixedBinary(_) => {
                "bytes".to_owned()
            }
            ArrowType::Text(_) | ArrowType::View(true) => "text".to_owned(),
            ArrowType::List(_) => format!("list of {}", inner()),
            ArrowType::FixedList(length) => format!("{length} x {}", inner()),
            ArrowType::Struct => {
                let fields: Vec<_> = self.children.iter().map(|f| f.name.as_str()).collect();
                format!("struct of {}", fields.join(", "))
            }
            ArrowType::Null => "null".to_owned(),
            ArrowType::Other(DICTIONARY, _) if self.dictionary.is_some() => {
                let values = self.dictionary.as_ref().map(|d| d.values.type_name());
                format!("{DICTIONARY} of {}", values.unwrap_or_default())
            }
            ArrowType::Other(name, _) => name.to_owned(),
        }
    }
}

/// The schema of a file.
#[derive(Debug, Clone)]
pub(super) struct ArrowSchema {
    pub(super) fields: Vec<ArrowField>,
    /// The text that Hugging Face's `datasets` adds. Empty if there is none.
    pub(super) note: Vec<u8>,
}

impl ArrowSchema {
    /// Reads the table of a schema message.
    ///
    /// # Errors
    /// `None` if it is malformed, else the reason as text.
    pub(super) fn read(table: FlatTable<'_>) -> Result<Self, Option<String>> {
        if table.short(0).ok_or(None)? != 0 {
            return Err(Some(
                "has numbers in big-endian order: write it on a little-endian machine".into(),
            ));
        }
        let given = table.vector(1, 4).ok_or(None)?;
        let mut left = MOST_FIELDS;
        let mut fields = Vec::new();
        for number in 0..given.len() {
            let field = given.table(number).ok_or(None)?;
            fields.push(field_of(field, MOST_DEPTH, &mut left)?);
        }
        let notes = table.vector(2, 4).ok_or(None)?;
        let mut note = Vec::new();
        for number in 0..notes.len() {
            let pair = notes.table(number).ok_or(None)?;
            if pair.text(0).ok_or(None)? == b"huggingface" {
                let text = pair.text(1).ok_or(None)?;
                if text.len() > MOST_NOTE {
                    return Err(Some(
                        "has Hugging Face metadata of more than 4 MiB: write the file without it"
                            .into(),
                    ));
                }
                note = text.to_vec();
            }
        }
        Ok(Self { fields, note })
    }

    /// The features in Hugging Face's metadata, by column name. Empty if there is no metadata.
    pub(super) fn features(&self) -> serde_json::Map<String, Json> {
        // Metadata of another form has no features.
        let note: Json = serde_json::from_slice(&self.note).unwrap_or(Json::Null);
        match note.pointer("/info/features") {
            Some(Json::Object(features)) => features.clone(),
            _ => serde_json::Map::new(),
        }
    }
}

fn field_of(
    table: FlatTable<'_>,
    depth: usize,
    left: &mut usize,
) -> Result<ArrowField, Option<String>> {
    let name = String::from_utf8_lossy(table.text(0).ok_or(None)?);
    *left = left
        .checked_sub(1)
        .ok_or_else(|| Some(format!("has more than {MOST_FIELDS} columns: write fewer")))?;
    let depth = depth.checked_sub(1).ok_or_else(|| {
        Some(format!(
            "has a column '{name}' that is nested deeper than {MOST_DEPTH}: write it flat"
        ))
    })?;
    let given = table.vector(5, 4).ok_or(None)?;
    let mut children = Vec::new();
    for number in 0..given.len() {
        children.push(field_of(given.table(number).ok_or(None)?, depth, left)?);
    }
    let kind = kind_of(table).ok_or(None)?;
    let encoding = table.table(4).ok_or(None)?;
    let wanted = match kind {
        ArrowType::List(_) | ArrowType::FixedList(_) => Some(1),
        _ => None,
    };
    if wanted.is_some_and(|wanted| wanted != children.len()) {
        return Err(None);
    }
    let field = ArrowField {
        name: match name {
            Cow::Borrowed(name) => name.to_owned(),
            Cow::Owned(name) => name,
        },
        kind,
        children,
        dictionary: None,
    };
    let Some(encoding) = encoding else {
        return Ok(field);
    };
    // Without a type the numbers have 32 bits.
    let numbers = encoding.table(1).ok_or(None)?;
    let numbers = numbers.map_or(Some(NumberKind::I32), whole_number);
    Ok(ArrowField {
        name: field.name.clone(),
        // An array has numbers, and none of the arrays of its values.
        kind: ArrowType::Other(DICTIONARY, 2),
        children: Vec::new(),
        dictionary: Some(Box::new(DictionaryField {
            id: encoding.long(0).ok_or(None)?,
            numbers: numbers.ok_or(None)?,
            values: field,
        })),
    })
}

/// The type of whole numbers.
fn whole_number(of: FlatTable<'_>) -> Option<NumberKind> {
    use NumberKind::{I8, I16, I32, I64, U8, U16, U32, U64};
    Some(match (of.int(0)?, of.byte(1)? != 0) {
        (8, true) => I8,
        (16, true) => I16,
        (32, true) => I32,
        (64, true) => I64,
        (8, false) => U8,
        (16, false) => U16,
        (32, false) => U32,
        (64, false) => U64,
        _ => return None,
    })
}

fn kind_of(table: FlatTable<'_>) -> Option<ArrowType> {
    use NumberKind::{F16, F32, F64, I32, I64};
    let of = table.table(3)?;
    let int = |field| of.map_or(Some(0), |of| of.int(field));
    let short = |field| of.map_or(Some(0), |of| of.short(field));
    Some(match table.byte(2)? {
        1 => ArrowType::Null,
        2 => ArrowType::Number(whole_number(of?)?),
        3 => ArrowType::Number(match short(0)? {
            0 => F16,
            1 => F32,
            2 => F64,
            _ => return None,
        }),
        4 => ArrowType::Binary(false),
        5 => ArrowType::Text(false),
        6 => ArrowType::Number(NumberKind::Bool),
        7 => ArrowType::Other("decimals", 2),
        // Dates are days if they say so, else milliseconds.
        8 => {
            let has_unit = of.map_or(Some(false), |of| of.has(0))?;
            ArrowType::Number(if has_unit && short(0)? == 0 { I32 } else { I64 })
        }
        9 => ArrowType::Number(if int(1)? == 64 { I64 } else { I32 }),
        10 | 18 => ArrowType::Number(I64),
        11 => ArrowType::Other("intervals", 2),
        12 => ArrowType::List(false),
        13 => ArrowType::Struct,
        14 => {
            let is_dense = short(0)? == 1;
            ArrowType::Other("a union", if is_dense { 2 } else { 1 })
        }
        15 => ArrowType::FixedBinary(usize::try_from(int(0)?).ok()?),
        16 => ArrowType::FixedList(usize::try_from(int(0)?).ok()?),
        17 => ArrowType::Other("a map", 2),
        19 => ArrowType::Binary(true),
        20 => ArrowType::Text(true),
        21 => ArrowType::List(true),
        22 => ArrowType::Other("runs", 0),
        23 => ArrowType::View(false),
        24 => ArrowType::View(true),
        25 | 26 => ArrowType::Other("a list view", 3),
        _ => return None,
    })
}
