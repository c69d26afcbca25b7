//! The values of a column for the rows of a batch.
//!
//! In the consumer. Reads no file.

use std::fmt;

use crate::error::{Error, Result};

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberKind {
    /// True or false, one byte each.
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl NumberKind {
    const ALL: [Self; 12] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of a number in memory.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Its name in NumPy.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Whether it has a value that stands for none.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// The type of a column: what [`ColumnValues`] hold for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnKind {
    /// One number a row, or this many.
    Numbers(NumberKind, Option<usize>),
    /// A text a row.
    Text,
    /// Bytes of any length a row.
    Bytes,
    /// Any count of numbers a row, or of groups of this many numbers.
    Ragged(NumberKind, Option<usize>),
    /// Any count of texts a row.
    TextLists,
}

impl ColumnKind {
    /// Whether it has numbers that may be fractions.
    pub(crate) fn is_of_fractions(self) -> bool {
        match self {
            Self::Numbers(kind, _) | Self::Ragged(kind, _) => kind.is_float(),
            Self::Text | Self::Bytes | Self::TextLists => false,
        }
    }

    /// The kind that is printed as `text`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = |text: &str| {
            let (width, name) = match text.split_once(" x ") {
                // Arrow has widths of 32 bits with a sign.
                Some((width, name)) => {
                    let width: i32 = width.parse().ok()?;
                    (Some(usize::try_from(width).ok()?), name)
                }
                None => (None, text),
            };
            let kind = NumberKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)?;
            Some((kind, width))
        };
        Some(match text {
            "text" => Self::Text,
            "bytes" => Self::Bytes,
            "lists of text" => Self::TextLists,
            text => match text.strip_prefix("lists of ") {
                Some(text) => numbers(text).map(|(kind, width)| Self::Ragged(kind, width))?,
                None => numbers(text).map(|(kind, width)| Self::Numbers(kind, width))?,
            },
        })
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers(kind, None) => f.write_str(kind.name()),
            Self::Numbers(kind, Some(width)) => write!(f, "{width} x {}", kind.name()),
            Self::Text => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
            Self::Ragged(kind, None) => write!(f, "lists of {}", kind.name()),
            Self::Ragged(kind, Some(width)) => write!(f, "lists of {width} x {}", kind.name()),
            Self::TextLists => f.write_str("lists of text"),
        }
    }
}

/// Numbers of one type, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberValues {
    kind: NumberKind,
    bytes: Vec<u8>,
}

impl NumberValues {
    /// Their type.
    #[must_use]
    pub fn kind(&self) -> NumberKind {
        self.kind
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.kind.bytes()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Their bytes, in the machine's byte order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All numbers as `f64`, for which large whole numbers are rounded.
    pub fn to_f64(&self) -> impl Iterator<Item = f64> {
        let size = self.kind.bytes();
        let kind = self.kind;
        self.bytes.chunks_exact(size).map(move |b| match kind {
            NumberKind::F16 => f64::from(half::f16::from_bits(word(b) as u16)),
            NumberKind::F32 => f64::from(f32::from_bits(word(b) as u32)),
            NumberKind::F64 => f64::from_bits(word(b)),
            NumberKind::U64 => word(b) as f64,
            _ => whole(kind, b) as f64,
        })
    }

    /// All numbers as `i64`.
    ///
    /// # Errors
    /// Fractions, which have type `f16`, `f32` or `f64`; a number of type `u64` that is too large.
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        if self.kind.is_float() {
            return Err(Error::config(format!(
                "the numbers are {}: read them as fractions",
                self.kind.name()
            )));
        }
        let numbers = self.bytes.chunks_exact(self.kind.bytes());
        numbers
            .map(|b| match self.kind {
                NumberKind::U64 => i64::try_from(word(b)).map_err(|_| {
                    Error::config(format!("{} is more than 63 bits: read the bytes", word(b)))
                }),
                kind => Ok(whole(kind, b)),
            })
            .collect()
    }
}

/// A little-endian number of at most 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// A whole number of a type with fewer than 64 bits, or with a sign.
fn whole(kind: NumberKind, bytes: &[u8]) -> i64 {
    let word = word(bytes);
    match kind {
        NumberKind::I8 => i64::from(word as i8),
        NumberKind::I16 => i64::from(word as i16),
        NumberKind::I32 => i64::from(word as i32),
        _ => word as i64,
    }
}

/// The values of a column, one for each row of a batch.
///
/// A row of a failed sample has the values of that sample. A row that only fills up the batch has
/// 0, an empty text, empty bytes or an empty list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnValues {
    /// A number a row, or `width` numbers a row, row after row. A missing fraction is NaN.
    Numbers {
        values: NumberValues,
        width: Option<usize>,
    },
    /// None for a row without a value.
    Text(Vec<Option<String>>),
    /// None for a row without a value.
    Bytes(Vec<Option<Vec<u8>>>),
    /// The values of all rows, one after the other. Row `i` has those from `offsets[i]` up to
    /// `offsets[i + 1]`; with a `width` they count groups of `width` numbers. Empty for a row
    /// without a value.
    Ragged {
        values: NumberValues,
        width: Option<usize>,
        offsets: Vec<i64>,
    },
    /// The texts of each row. Empty for a row without a value.
    TextLists(Vec<Vec<Option<String>>>),
}

/// Collects the values of rows, one by one.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    kind: ColumnKind,
    numbers: Vec<u8>,
    offsets: Vec<i64>,
    texts: Vec<Option<String>>,
    bytes: Vec<Option<Vec<u8>>>,
    lists: Vec<Vec<Option<String>>>,
    /// Bytes of texts, bytes and lists so far.
    text_bytes: usize,
}

impl ColumnBuilder {
    pub(crate) fn new(kind: ColumnKind) -> Self {
        Self {
            kind,
            numbers: Vec::new(),
            offsets: vec![0],
            texts: Vec::new(),
            bytes: Vec::new(),
            lists: Vec::new(),
            text_bytes: 0,
        }
    }

    pub(crate) fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// Adds a row of numbers, in little-endian bytes.
    ///
    /// # Errors
    /// The kind of column has another count of numbers.
    pub(crate) fn push_numbers(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (group, is_ragged) = match self.kind {
            ColumnKind::Numbers(kind, width) => (kind.bytes() * width.unwrap_or(1), false),
            ColumnKind::Ragged(kind, width) => (kind.bytes() * width.unwrap_or(1), true),
            _ => return Err("has numbers, unlike other rows".into()),
        };
        let fits = match is_ragged {
            true => group > 0 && bytes.len().is_multiple_of(group),
            false => bytes.len() == group,
        };
        if !fits {
            return Err("has another count of numbers than other rows".into());
        }
        self.numbers.extend_from_slice(bytes);
        if is_ragged {
            self.offsets.push((self.numbers.len() / group) as i64);
        }
        Ok(())
    }

    pub(crate) fn push_text(&mut self, text: String) {
        self.text_bytes += text.len();
        self.texts.push(Some(text));
    }

    pub(crate) fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.text_bytes += bytes.len();
        self.bytes.push(Some(bytes));
    }

    pub(crate) fn push_list(&mut self, texts: Vec<Option<String>>) {
        let texts_of = texts
            .iter()
            .map(|text| text.as_ref().map_or(0, String::len) + 5);
        self.text_bytes += texts_of.sum::<usize>();
        self.lists.push(texts);
    }

    /// Adds a row without a value.
    ///
    /// # Errors
    /// The column has whole numbers, which have no value for it.
    pub(crate) fn push_null(&mut self) -> Result<(), String> {
        match self.kind {
            ColumnKind::Numbers(kind, width) => {
                let none = not_a_number(kind).ok_or_else(|| {
                    format!(
                        "has no value, which {} cannot express: fill the column, or store it as \
                         fractions",
                        kind.name()
                    )
                })?;
                for _ in 0..width.unwrap_or(1) {
                    self.numbers.extend_from_slice(&none);
                }
            }
            ColumnKind::Text => self.texts.push(None),
            ColumnKind::Bytes => self.bytes.push(None),
            ColumnKind::Ragged(..) | ColumnKind::TextLists => self.push_blank(),
        }
        Ok(())
    }

    /// Adds a row of padding.
    pub(crate) fn push_blank(&mut self) {
        match self.kind {
            ColumnKind::Numbers(kind, width) => {
                let bytes = self.numbers.len() + kind.bytes() * width.unwrap_or(1);
                self.numbers.resize(bytes, 0);
            }
            ColumnKind::Text => self.texts.push(Some(String::new())),
            ColumnKind::Bytes => self.bytes.push(Some(Vec::new())),
            ColumnKind::Ragged(..) => self.offsets.extend(self.offsets.last().copied()),
            ColumnKind::TextLists => self.lists.push(Vec::new()),
        }
    }

    /// Adds all rows of a builder of the same kind.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.offsets.last().copied().unwrap_or(0);
        self.offsets
            .extend(other.offsets.iter().skip(1).map(|at| before + at));
        self.numbers.extend(other.numbers);
        self.texts.extend(other.texts);
        self.bytes.extend(other.bytes);
        self.lists.extend(other.lists);
        self.text_bytes += other.text_bytes;
    }

    /// Bytes of all values. A text in a list counts 5 more.
    pub(crate) fn bytes(&self) -> usize {
        self.numbers.len() + self.text_bytes
    }

    pub(crate) fn finish(self) -> ColumnValues {
        let bytes = self.numbers;
        match self.kind {
            ColumnKind::Numbers(kind, width) => ColumnValues::Numbers {
                values: NumberValues { kind, bytes },
                width,
            },
            ColumnKind::Text => ColumnValues::Text(self.texts),
            ColumnKind::Bytes => ColumnValues::Bytes(self.bytes),
            ColumnKind::Ragged(kind, width) => ColumnValues::Ragged {
                values: NumberValues { kind, bytes },
                width,
                offsets: self.offsets,
            },
            ColumnKind::TextLists => ColumnValues::TextLists(self.lists),
        }
    }
}

/// The bytes of NaN. `None` for whole numbers.
pub(crate) fn not_a_number(kind: NumberKind) -> Option<Vec<u8>> {
    match kind {
        NumberKind::F16 => Some(half::f16::NAN.to_le_bytes().to_vec()),
        NumberKind::F32 => Some(f32::NAN.to_le_bytes().to_vec()),
        NumberKind::F64 => Some(f64::NAN.to_le_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_parsed_as_they_are_printed() {
        let mut kinds = vec![ColumnKind::Text, ColumnKind::Bytes, ColumnKind::TextLists];
        for kind in NumberKind::ALL {
            for width in [None, Some(0), Some(17)] {
                kinds.push(ColumnKind::Numbers(kind, width));
                kinds.push(ColumnKind::Ragged(kind, width));
            }
        }
        for kind in kinds {
            assert_eq!(ColumnKind::parse(&kind.to_string()), Some(kind), "{kind}");
        }
        for other in [
            "",
            "texts",
            "lists of bytes",
            "x int8",
            "lists of -1 x int8",
            "2147483648 x int8",
        ] {
            assert_eq!(ColumnKind::parse(other), None, "{other}");
        }
    }
}
