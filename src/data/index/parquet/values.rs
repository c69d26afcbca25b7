//! The values of one page of labels, one by one, in any encoding that writers use for them.
//!
//! In the consumer, on bytes that may be anything. No number of a file makes room for values:
//! beside the page there are the places of a dictionary's texts, and one text.

use std::ops::Range;

use parquet::basic::Type as Physical;

use crate::data::index::parquet::delta::DeltaDecoder;
use crate::data::index::parquet::pages::{encoding, encoding_of};
use crate::data::index::parquet::rle::RleDecoder;

/// How the values of a column lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// A bit each.
    Truth,
    /// Numbers of so many bytes, 4 or 8.
    Number(usize),
    Text,
}

/// One value. A number is its bits, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColumnValue<'a> {
    Bits(u64),
    Text(&'a [u8]),
}

/// The values of a dictionary page, which others name by number.
pub(super) struct ValueDictionary {
    bytes: Vec<u8>,
    form: ValueForm,
    /// Where each text lies.
    texts: Vec<Range<u32>>,
}

/// The values of a page. `None` where they end or are malformed.
pub(super) enum PageValues<'a> {
    Plain(ValueForm, &'a [u8]),
    /// Bits, and the number of the next.
    Truths(&'a [u8], usize),
    Runs(RleDecoder<'a>),
    Named(RleDecoder<'a>, &'a ValueDictionary),
    Numbers(DeltaDecoder<'a>),
    /// Lengths, and the texts one behind the other.
    Texts(DeltaDecoder<'a>, &'a [u8]),
    /// Bytes that a text has from the last one, lengths of what follows, and that; the last text.
    Shared(DeltaDecoder<'a>, DeltaDecoder<'a>, &'a [u8], Vec<u8>),
    /// First bytes of all numbers, then second ones: bytes of a number, and its place.
    Split(&'a [u8], usize, usize),
}

impl ValueForm {
    /// None of types that are no labels.
    pub(super) fn of(physical: Physical) -> Option<Self> {
        Some(match physical {
            Physical::BOOLEAN => Self::Truth,
            Physical::INT32 | Physical::FLOAT => Self::Number(4),
            Physical::INT64 | Physical::DOUBLE => Self::Number(8),
            Physical::BYTE_ARRAY => Self::Text,
            Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => return None,
        })
    }
}

impl ValueDictionary {
    /// A page of so many values.
    pub(super) fn new(mut bytes: Vec<u8>, form: ValueForm, values: u32) -> Option<Self> {
        let mut texts = Vec::new();
        match form {
            ValueForm::Truth => return None,
            ValueForm::Number(width) => {
                let end = (values as usize).checked_mul(width)?;
                (end <= bytes.len()).then(|| bytes.truncate(end))?;
            }
            ValueForm::Text => {
                // Each has 4 bytes at least.
                (values as usize <= bytes.len() / 4).then_some(())?;
                let mut rest = bytes.as_slice();
                for _ in 0..values {
                    let text = text(&mut rest)?;
                    let end = u32::try_from(bytes.len() - rest.len()).ok()?;
                    texts.push(end - text.len() as u32..end);
                }
            }
        }
        Some(Self { bytes, form, texts })
    }

    fn get(&self, number: u32) -> Option<ColumnValue<'_>> {
        Some(match self.form {
            ValueForm::Truth => return None,
            ValueForm::Number(width) => {
                let at = (number as usize).checked_mul(width)?;
                ColumnValue::Bits(bits(self.bytes.get(at..at + width)?))
            }
            ValueForm::Text => {
                let place = self.texts.get(number as usize)?;
                ColumnValue::Text(&self.bytes[place.start as usize..place.end as usize])
            }
        })
    }
}

impl<'a> PageValues<'a> {
    /// The values of a page, at most `most`.
    ///
    /// # Errors
    /// `None` for a damaged page, and the name of an encoding that is not one of this form.
    pub(super) fn new(
        (form, encoding): (ValueForm, i64),
        bytes: &'a [u8],
        most: u64,
        dictionary: Option<&'a ValueDictionary>,
    ) -> Result<Self, Option<String>> {
        let numbers = |bytes| DeltaDecoder::new(bytes, most).ok_or(None);
        Ok(match (encoding, form) {
            (encoding::PLAIN, ValueForm::Truth) => Self::Truths(bytes, 0),
            (encoding::PLAIN, form) => Self::Plain(form, bytes),
            (encoding::PLAIN_DICTIONARY | encoding::RLE_DICTIONARY, _) => {
                let (width, bytes) = bytes.split_first().ok_or(None)?;
                let numbers = RleDecoder::new(bytes, u32::from(*width)).ok_or(None)?;
                Self::Named(numbers, dictionary.ok_or(None)?)
            }
            (encoding::RLE, ValueForm::Truth) => {
                let mut rest = bytes;
                let runs = text(&mut rest).ok_or(None)?;
                Self::Runs(RleDecoder::new(runs, 1).ok_or(None)?)
            }
            (encoding::DELTA_BINARY_PACKED, ValueForm::Number(_)) => Self::Numbers(numbers(bytes)?),
            (encoding::DELTA_LENGTH_BYTE_ARRAY, ValueForm::Text) => {
                let lengths = numbers(bytes)?;
                Self::Texts(lengths.clone(), lengths.remaining_bytes().ok_or(None)?)
            }
            (encoding::DELTA_BYTE_ARRAY, ValueForm::Text) => {
                let shared = numbers(bytes)?;
                let lengths = numbers(shared.clone().remaining_bytes().ok_or(None)?)?;
                let rest = lengths.clone().remaining_bytes().ok_or(None)?;
                Self::Shared(shared, lengths, rest, Vec::new())
            }
            (encoding::BYTE_STREAM_SPLIT, ValueForm::Number(width)) => Self::Split(bytes, width, 0),
            (other, _) => {
                let name = encoding_of(other).map_or("?".into(), |known| known.to_string());
                return Err(Some(name));
            }
        })
    }

    /// The next value.
    pub(super) fn next_value(&mut self) -> Option<ColumnValue<'_>> {
        Some(match self {
            Self::Plain(ValueForm::Number(width), bytes) => {
                ColumnValue::Bits(bits(bytes.split_off(..*width)?))
            }
            Self::Plain(_, bytes) => ColumnValue::Text(text(bytes)?),
            Self::Truths(bytes, at) => {
                let byte = bytes.get(*at / 8)?;
                *at += 1;
                ColumnValue::Bits(u64::from(byte >> ((*at - 1) % 8) & 1))
            }
            Self::Runs(runs) => ColumnValue::Bits(u64::from(runs.next()?)),
            Self::Named(numbers, dictionary) => dictionary.get(numbers.next()?)?,
            Self::Numbers(numbers) => ColumnValue::Bits(numbers.next()? as u64),
            Self::Texts(lengths, bytes) => {
                let length = usize::try_from(lengths.next()?).ok()?;
                ColumnValue::Text(bytes.split_off(..length)?)
            }
            Self::Shared(shared, lengths, bytes, last) => {
                let shared = usize::try_from(shared.next()?).ok()?;
                let length = usize::try_from(lengths.next()?).ok()?;
                (shared <= last.len()).then(|| last.truncate(shared))?;
                last.extend_from_slice(bytes.split_off(..length)?);
                ColumnValue::Text(last)
            }
            Self::Split(bytes, width, at) => {
                let numbers = bytes.len() / *width;
                (*at < numbers).then(|| *at += 1)?;
                let mut word = [0; 8];
                for (byte, to) in word.iter_mut().take(*width).enumerate() {
                    *to = bytes[byte * numbers + *at - 1];
                }
                ColumnValue::Bits(u64::from_le_bytes(word))
            }
        })
    }
}

/// A text behind its length of 4 bytes, which are taken off.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

/// A number of up to 8 bytes, the lowest first.
fn bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
