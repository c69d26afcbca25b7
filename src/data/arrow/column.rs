//! The values of one column of an Arrow file, read where they lie.
//!
//! Runs in the consumer, on untrusted bytes. Memory: the places of the column's buffers in each
//! record batch.

use crate::data::arrow::arrays::{ArrayPlace, BufferPlace};
use crate::data::arrow::bytes::{ArrowBytes, ValuePlace, can_unpack, damaged};
use crate::data::arrow::ipc_file::ArrowFile;
use crate::data::arrow::schema::{ArrowField, ArrowType, DictionaryField};
use crate::data::columns::kept_buffers::UnpackingMemory;
use crate::data::columns::values::{ColumnBuilder, NumberKind, not_a_number};

/// Most entries of one list.
const MOST_ENTRIES: u64 = 1 << 30;

/// One column of a file: where its values are. It keeps no file open.
#[derive(Debug)]
pub(crate) struct ArrowColumn {
    pub(crate) field: ArrowField,
    /// For each record batch the arrays on the way to the column's own, which is the last.
    batches: Vec<Vec<ArrayPlace>>,
    /// The first row of each record batch.
    firsts: Vec<u64>,
    /// What its numbers stand for, if they stand for values.
    dictionary: Vec<ArrayPlace>,
}

impl ArrowColumn {
    /// The column that `path` leads to: the number of a column, and then of fields inside structs.
    ///
    /// # Errors
    /// A damaged record batch, or an unknown compression.
    pub(crate) fn find(file: &ArrowFile, path: &[usize]) -> Result<Self, String> {
        let mut fields = file.fields();
        let mut found = None;
        for number in path {
            let field = fields.get(*number).ok_or("has no such column")?;
            fields = &field.children;
            found = Some(field.clone());
        }
        let field = found.ok_or("has no such column")?;
        Ok(Self {
            dictionary: match &field.dictionary {
                Some(dictionary) => file.dictionary_of(dictionary)?,
                None => Vec::new(),
            },
            field,
            batches: file.arrays_of(path)?,
            firsts: file.batches.iter().map(|batch| batch.first).collect(),
        })
    }

    /// The memory for its compressed buffers. Larger ones than the limit are errors when they are
    /// read.
    pub(crate) fn unpacking(&self) -> UnpackingMemory {
        let mut memory = UnpackingMemory::default();
        let arrays = self.batches.iter().flatten().chain(&self.dictionary);
        for array in arrays {
            array.each_page(&mut |page| {
                if can_unpack(page) {
                    // The packed bytes are read, and the new buffer is not yet kept.
                    memory.add(page.unpacked, page.packed + page.most_bytes());
                }
            });
        }
        memory
    }

    /// The array of a row, the arrays around it, and the row's number there.
    pub(super) fn locate(&self, row: u64) -> Result<(&[ArrayPlace], &ArrayPlace, u64), String> {
        // Record batches may be empty.
        let batch = self.firsts.partition_point(|first| *first <= row);
        let none = || format!("has no row {row}");
        let batch = batch.checked_sub(1).ok_or_else(none)?;
        let (array, around) = self.batches[batch].split_last().ok_or_else(none)?;
        let row = row - self.firsts[batch];
        (row < array.rows)
            .then_some((around, array, row))
            .ok_or_else(none)
    }

    /// The place of the bytes or the text of a row, and their length. `None` if the row has no value.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(crate) fn place(
        &self,
        bytes: &mut ArrowBytes,
        row: u64,
    ) -> Result<Option<(ValuePlace, u64)>, String> {
        let (around, array, row) = self.locate(row)?;
        for array in around {
            if is_null(bytes, array, row)? {
                return Ok(None);
            }
        }
        place_of(bytes, self.field.kind, array, row)
    }

    /// The text of a row. `None` if the row has no value.
    pub(crate) fn text(&self, bytes: &mut ArrowBytes, row: u64) -> Result<Option<Vec<u8>>, String> {
        let Some((at, len)) = self.place(bytes, row)? else {
            return Ok(None);
        };
        bytes.read(at, len).map(|text| Some(text.to_vec()))
    }

    /// Whether a row has a value.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(crate) fn has_value(&self, bytes: &mut ArrowBytes, row: u64) -> Result<bool, String> {
        let (around, array, row) = self.locate(row)?;
        for array in around.iter().chain([array]) {
            if is_null(bytes, array, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the value of a row, read where it lies.
    ///
    /// # Errors
    /// The file is damaged or cannot be read; a missing value that the column cannot express.
    pub(crate) fn read_from(
        &self,
        bytes: &mut ArrowBytes,
        row: u64,
        into: &mut ColumnBuilder,
    ) -> Result<(), String> {
        let (around, array, row) = self.locate(row)?;
        for array in around.iter().chain([array]) {
            if is_null(bytes, array, row)? {
                return into.push_null();
            }
        }
        match &self.field.dictionary {
            None => read_value(bytes, &self.field, array, row, into),
            Some(dictionary) => self.read_entry(bytes, dictionary, array, row, into),
        }
    }

    /// Adds the value that a number in an array stands for.
    fn read_entry(
        &self,
        bytes: &mut ArrowBytes,
        dictionary: &DictionaryField,
        array: &ArrayPlace,
        row: u64,
        into: &mut ColumnBuilder,
    ) -> Result<(), String> {
        let number = numbers(bytes, dictionary.numbers, array, row, 1)?;
        let is_negative = dictionary.numbers.name().starts_with('i')
            && number.last().is_some_and(|byte| *byte > 127);
        let outside = || {
            let at = array.buffers.get(1).map_or(0, |buffer| buffer.at);
            format!("is damaged: a number at byte {at} or later is not of its dictionary")
        };
        let mut word = [0; 8];
        word[..number.len()].copy_from_slice(&number);
        let mut entry = u64::from_le_bytes(word);
        for part in self.dictionary.iter().filter(|_| !is_negative) {
            if entry < part.rows {
                return match is_null(bytes, part, entry)? {
                    true => into.push_null(),
                    false => read_value(bytes, &dictionary.values, part, entry, into),
                };
            }
            entry -= part.rows;
        }
        Err(outside())
    }
}

/// Adds the value of a row of an array, which has one.
fn read_value(
    bytes: &mut ArrowBytes,
    field: &ArrowField,
    array: &ArrayPlace,
    row: u64,
    into: &mut ColumnBuilder,
) -> Result<(), String> {
    let inner = || field.children.first().zip(array.children.first());
    let none = || "has a type that no batch has".to_owned();
    match field.kind {
        ArrowType::Number(kind) => {
            let numbers = numbers(bytes, kind, array, row, 1)?;
            into.push_numbers(&numbers)
        }
        ArrowType::Binary(_) | ArrowType::View(false) | ArrowType::FixedBinary(_) => {
            let (at, len) = place_of(bytes, field.kind, array, row)?.ok_or_else(none)?;
            let value = bytes.read(at, len)?.to_vec();
            into.push_bytes(value);
            Ok(())
        }
        ArrowType::Text(_) | ArrowType::View(true) => {
            let text = text_of(bytes, field.kind, array, row)?;
            into.push_text(text.ok_or_else(none)?);
            Ok(())
        }
        ArrowType::List(_) | ArrowType::FixedList(_) => {
            let (first, count) = range_of(bytes, field.kind, array, row)?;
            let (field, child) = inner().ok_or_else(none)?;
            if count > MOST_ENTRIES || first + count > child.rows {
                return Err(damaged(array.buffers.first().map_or(0, |b| b.at)));
            }
            match field.kind {
                ArrowType::Number(kind) => {
                    let numbers = numbers(bytes, kind, child, first, count)?;
                    into.push_numbers(&numbers)
                }
                ArrowType::FixedList(width) => {
                    let innermost = field.children.first().zip(child.children.first());
                    let (field, child) = innermost.ok_or_else(none)?;
                    let ArrowType::Number(kind) = field.kind else {
                        return Err(none());
                    };
                    let width = width as u64;
                    let first = first.checked_mul(width).ok_or_else(none)?;
                    let count = count.checked_mul(width).ok_or_else(none)?;
                    let numbers = numbers(bytes, kind, child, first, count)?;
                    into.push_numbers(&numbers)
                }
                ArrowType::Text(_) | ArrowType::View(true) => {
                    let texts = (first..first + count)
                        .map(|row| text_of(bytes, field.kind, child, row))
                        .collect::<Result<_, _>>()?;
                    into.push_list(texts);
                    Ok(())
                }
                _ => Err(none()),
            }
        }
        _ => Err(none()),
    }
}

/// Whether an array has no value in a row.
pub(super) fn is_null(
    bytes: &mut ArrowBytes,
    array: &ArrayPlace,
    row: u64,
) -> Result<bool, String> {
    let Some(bits) = array.buffers.first().filter(|_| array.has_nulls) else {
        return Ok(false);
    };
    // Without this buffer every value is there.
    if bits.bytes == 0 {
        return Ok(false);
    }
    let [byte] = bytes.word(within(bits, row / 8, 1)?)?;
    Ok(byte >> (row % 8) & 1 == 0)
}

/// The place of the bytes from `at` of a buffer.
fn within(buffer: &BufferPlace, at: u64, bytes: u64) -> Result<ValuePlace, String> {
    let end = at.checked_add(bytes).filter(|end| *end <= buffer.bytes);
    end.ok_or_else(|| damaged(buffer.at))?;
    Ok(match buffer.page {
        None => ValuePlace {
            page: None,
            at: buffer.at + at,
        },
        page => ValuePlace { page, at },
    })
}

fn buffer(array: &ArrayPlace, number: usize) -> Result<&BufferPlace, String> {
    array.buffers.get(number).ok_or_else(|| damaged(0))
}

/// The offsets at which a value begins and ends, in elements of what is inside of it.
fn offsets(
    bytes: &mut ArrowBytes,
    array: &ArrayPlace,
    row: u64,
    is_wide: bool,
) -> Result<(u64, u64), String> {
    let places = buffer(array, 1)?;
    let size = if is_wide { 8 } else { 4 };
    let at = row.checked_mul(size).ok_or_else(|| damaged(places.at))?;
    let at = within(places, at, 2 * size)?;
    let (first, end) = match is_wide {
        true => {
            let pair: [u8; 16] = bytes.word(at)?;
            let [a, b] = *pair.as_chunks::<8>().0 else {
                return Err(at.damaged());
            };
            (i64::from_le_bytes(a), i64::from_le_bytes(b))
        }
        false => {
            let pair: [u8; 8] = bytes.word(at)?;
            let [a, b] = *pair.as_chunks::<4>().0 else {
                return Err(at.damaged());
            };
            (
                i64::from(i32::from_le_bytes(a)),
                i64::from(i32::from_le_bytes(b)),
            )
        }
    };
    match (u64::try_from(first), u64::try_from(end)) {
        (Ok(first), Ok(end)) if first <= end => Ok((first, end)),
        _ => Err(at.damaged()),
    }
}

/// The first element of a list, and their count.
pub(super) fn range_of(
    bytes: &mut ArrowBytes,
    kind: ArrowType,
    array: &ArrayPlace,
    row: u64,
) -> Result<(u64, u64), String> {
    match kind {
        ArrowType::List(is_wide) => {
            let (first, end) = offsets(bytes, array, row, is_wide)?;
            Ok((first, end - first))
        }
        ArrowType::FixedList(width) => {
            let first = row.checked_mul(width as u64).ok_or_else(|| damaged(0))?;
            Ok((first, width as u64))
        }
        _ => Err(damaged(0)),
    }
}

/// The place of a value of bytes or text. `None` if there is no value.
fn place_of(
    bytes: &mut ArrowBytes,
    kind: ArrowType,
    array: &ArrayPlace,
    row: u64,
) -> Result<Option<(ValuePlace, u64)>, String> {
    if is_null(bytes, array, row)? {
        return Ok(None);
    }
    let (at, len) = match kind {
        ArrowType::Binary(is_wide) | ArrowType::Text(is_wide) => {
            let (first, end) = offsets(bytes, array, row, is_wide)?;
            (within(buffer(array, 2)?, first, end - first)?, end - first)
        }
        ArrowType::FixedBinary(width) => {
            let width = width as u64;
            let first = row.checked_mul(width).ok_or_else(|| damaged(0))?;
            (within(buffer(array, 1)?, first, width)?, width)
        }
        ArrowType::View(_) => {
            let views = buffer(array, 1)?;
            let at = row.checked_mul(16).ok_or_else(|| damaged(views.at))?;
            let at = within(views, at, 16)?;
            let view: [u8; 16] = bytes.word(at)?;
            let [len, _, number, offset] = *view.as_chunks::<4>().0 else {
                return Err(at.damaged());
            };
            let part = |word| u64::try_from(i32::from_le_bytes(word)).map_err(|_| at.damaged());
            match part(len)? {
                // Short values are in the view itself.
                len @ ..=12 => (at.after(4), len),
                len => {
                    let number = usize::try_from(part(number)?).map_err(|_| at.damaged())?;
                    let data = buffer(array, number.saturating_add(2))?;
                    (within(data, part(offset)?, len)?, len)
                }
            }
        }
        _ => return Err(damaged(0)),
    };
    Ok(Some((at, len)))
}

/// A text. `None` if there is no value.
pub(super) fn text_of(
    bytes: &mut ArrowBytes,
    kind: ArrowType,
    array: &ArrayPlace,
    row: u64,
) -> Result<Option<String>, String> {
    let Some((at, len)) = place_of(bytes, kind, array, row)? else {
        return Ok(None);
    };
    let text = bytes.read(at, len)?.to_vec();
    let text = String::from_utf8(text).map_err(|_| {
        format!(
            "has text that is not UTF-8 at byte {}: store it as bytes (large_binary)",
            at.byte()
        )
    })?;
    Ok(Some(text))
}

/// `count` numbers from `first` on, in little-endian bytes. A missing fraction is NaN.
pub(super) fn numbers(
    bytes: &mut ArrowBytes,
    kind: NumberKind,
    array: &ArrayPlace,
    first: u64,
    count: u64,
) -> Result<Vec<u8>, String> {
    let end = first.checked_add(count).filter(|end| *end <= array.rows);
    let end = end.ok_or_else(|| damaged(array.buffers.first().map_or(0, |b| b.at)))?;
    let values = buffer(array, 1)?;
    let size = kind.bytes() as u64;
    let mut numbers = match kind {
        NumberKind::Bool => {
            let mut numbers = Vec::new();
            for row in first..end {
                let [byte] = bytes.word(within(values, row / 8, 1)?)?;
                numbers.push(byte >> (row % 8) & 1);
            }
            numbers
        }
        _ => {
            let at = first.checked_mul(size).ok_or_else(|| damaged(values.at))?;
            let len = count.checked_mul(size).ok_or_else(|| damaged(values.at))?;
            bytes.read(within(values, at, len)?, len)?.to_vec()
        }
    };
    if array.has_nulls {
        for (number, row) in (first..end).enumerate() {
            if is_null(bytes, array, row)? {
                let none = not_a_number(kind).ok_or_else(|| {
                    format!(
                        "has a list with a missing value, which {} cannot express: fill it, or \
                         store fractions",
                        kind.name()
                    )
                })?;
                let at = number * none.len();
                numbers[at..at + none.len()].copy_from_slice(&none);
            }
        }
    }
    Ok(numbers)
}
