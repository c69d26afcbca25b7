//! A value of a row with all that is inside of it: lists, and fields of structs.
//!
//! In the consumer, before a run. Holds one row.

use std::path::PathBuf;

use super::values::NumberKind;
use crate::data::index::Index;
use crate::error::Result;

/// Most values in one row, with those inside of others.
pub(crate) const MOST_VALUES: usize = 1 << 22;

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum RowValue {
    #[default]
    Null,
    Whole(i64),
    Fraction(f64),
    Text(String),
    List(Vec<Self>),
    Fields(Vec<(String, Self)>),
}

impl RowValue {
    /// The value of a number's little-endian bytes.
    pub(crate) fn of_bytes(kind: NumberKind, bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        let size = kind.bytes().min(bytes.len());
        word[..size].copy_from_slice(&bytes[..size]);
        let bits = u64::from_le_bytes(word);
        match kind {
            NumberKind::F16 => Self::Fraction(f64::from(half::f16::from_bits(bits as u16))),
            NumberKind::F32 => Self::Fraction(f64::from(f32::from_bits(bits as u32))),
            NumberKind::F64 => Self::Fraction(f64::from_bits(bits)),
            NumberKind::Bool | NumberKind::U8 | NumberKind::U16 | NumberKind::U32 => {
                Self::Whole(bits as i64)
            }
            NumberKind::U64 => i64::try_from(bits).map_or(Self::Fraction(bits as f64), Self::Whole),
            NumberKind::I8 => Self::Whole(i64::from(bits as i8)),
            NumberKind::I16 => Self::Whole(i64::from(bits as i16)),
            NumberKind::I32 => Self::Whole(i64::from(bits as i32)),
            NumberKind::I64 => Self::Whole(bits as i64),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(n) => Some(*n as f64),
            Self::Fraction(n) => Some(*n),
            _ => None,
        }
    }

    /// A whole number, also as a fraction such as `7.0`.
    pub(crate) fn whole(&self) -> Option<i64> {
        // Above, a float does not have every whole number.
        const MOST: f64 = (1u64 << 53) as f64;
        match self {
            Self::Whole(n) => Some(*n),
            Self::Fraction(n) if n.fract() == 0.0 && n.abs() <= MOST => Some(*n as i64),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }

    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => {
                // Of equal keys in JSON the last one counts.
                let mut found = fields.iter().rev().filter(|(known, _)| known == name);
                found.next().map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// What a row has.
#[derive(Debug)]
pub(crate) enum RecordContent {
    /// Fields by their names.
    Fields(RowValue),
    /// A JSON text that is not parsed yet.
    Json(Vec<u8>),
    /// Nothing: a sample without such a member.
    Missing,
}

/// Reads the rows of a data set one after the other.
pub(crate) trait RowReader {
    /// The content of the next row, which is that of sample `id`. Called with each id, from 0 on.
    ///
    /// # Errors
    /// A file that changed, is damaged or cannot be read. The error names the file and the row.
    fn next(&mut self, index: &Index, id: u64) -> Result<RecordContent>;

    /// The file of sample `id`, and its place there, for reports.
    fn place(&self, index: &Index, id: u64) -> (PathBuf, String);

    /// Names of classes in the file's metadata. None if it has none.
    fn classes(&self) -> Option<&[String]>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_kinds() {
        for (kind, bytes, want) in [
            (NumberKind::Bool, &[1][..], RowValue::Whole(1)),
            (NumberKind::I8, &[0xff], RowValue::Whole(-1)),
            (NumberKind::U8, &[0xff], RowValue::Whole(255)),
            (NumberKind::I16, &[0xfe, 0xff], RowValue::Whole(-2)),
            (NumberKind::U32, &[0xff; 4], RowValue::Whole(0xffff_ffff)),
            (NumberKind::I64, &[0xff; 8], RowValue::Whole(-1)),
            (
                NumberKind::F32,
                &1.5f32.to_le_bytes(),
                RowValue::Fraction(1.5),
            ),
            (NumberKind::F16, &[0x00, 0x3c], RowValue::Fraction(1.0)),
        ] {
            assert_eq!(RowValue::of_bytes(kind, bytes), want, "{kind:?}");
        }
        let large = RowValue::of_bytes(NumberKind::U64, &[0xff; 8]);
        assert_eq!(
            (large.whole(), large.number()),
            (None, Some(u64::MAX as f64))
        );
        assert_eq!(RowValue::Fraction(7.0).whole(), Some(7));
        assert_eq!(RowValue::Fraction(7.5).whole(), None);
        assert_eq!(RowValue::Fraction(f64::NAN).whole(), None);
    }

    #[test]
    fn the_last_of_equal_fields_counts() {
        let one = |n| ("a".to_owned(), RowValue::Whole(n));
        let fields = RowValue::Fields(vec![one(1), one(2)]);
        assert_eq!(fields.field("a"), Some(&RowValue::Whole(2)));
        assert_eq!(fields.field("b"), None);
        assert_eq!(RowValue::Null.field("a"), None);
    }
}
