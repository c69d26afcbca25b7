//! The values of one label page, one by one, in any encoding that writers use for labels.
//!
//! Runs in the consumer, on untrusted bytes. A count in a file never decides an allocation. Memory
//! beside the page: the ranges of a dictionary's texts, and one text.

use std::ops::Range;

use parquet::basic::Type as Physical;

use crate::data::index::parquet::delta::DeltaDecoder;
use crate::data::index::parquet::pages::{encoding, encoding_of};
use crate::data::index::parquet::rle::RleDecoder;

/// How the values of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// Booleans, one bit each.
    Truth,
    /// Numbers of this many bytes: 4 or 8.
    Number(usize),
    Text,
}

/// One value. `Bits` holds the bits of a number or a boolean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColumnValue<'a> {
    Bits(u64),
    Text(&'a [u8]),
}

/// The values of a dictionary page, which data pages refer to by index.
pub(super) struct ValueDictionary {
    bytes: Vec<u8>,
    form: ValueForm,
    /// The range of each text in `bytes`. Empty for numbers.
    texts: Vec<Range<u32>>,
}

/// Reads the values of a page.
pub(super) enum PageValues<'a> {
    Plain(ValueForm, &'a [u8]),
    /// Booleans as single bits, and the index of the next.
    Truths(&'a [u8], usize),
    /// Booleans as runs.
    Runs(RleDecoder<'a>),
    /// Indices into a dictionary.
    Named(RleDecoder<'a>, &'a ValueDictionary),
    Numbers(DeltaDecoder<'a>),
    /// The lengths of all texts, and the texts.
    Texts(DeltaDecoder<'a>, &'a [u8]),
    /// Texts that share a prefix with the previous text: prefix lengths, suffix lengths, the
    /// suffixes, the previous text.
    Shared(DeltaDecoder<'a>, DeltaDecoder<'a>, &'a [u8], Vec<u8>),
    /// The first bytes of all numbers, then the second bytes, and so on. Then the bytes per number
    /// and the index of the next.
    Split(&'a [u8], usize, usize),
}

impl ValueForm {
    /// `None` for types that cannot be labels.
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
    /// Reads a dictionary page of `values` values. `None` if it is damaged.
    pub(super) fn new(mut bytes: Vec<u8>, form: ValueForm, values: u32) -> Option<Self> {
        let mut texts = Vec::new();
        match form {
            ValueForm::Truth => return None,
            ValueForm::Number(width) => {
                let end = (values as usize).checked_mul(width)?;
                (end <= bytes.len()).then(|| bytes.truncate(end))?;
            }
            ValueForm::Text => {
                // Each text has at least the 4 bytes of its length.
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
    /// The values of a page. Delta encodings may hold at most `most` numbers.
    ///
    /// # Errors
    /// `None` for a damaged page. `Some` with the name of an encoding that does not fit `form`.
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

    /// The next value. `None` after the last one, or if the page is malformed.
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

/// Removes a text and its length of 4 bytes from the front of `bytes`. Returns the text.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

/// A little-endian number of at most 8 bytes.
fn bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
