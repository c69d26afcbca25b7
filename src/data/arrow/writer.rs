//! Writes columns as an Arrow file.
//!
//! Runs in the consumer. Only names, types and values decide the bytes. A record batch is written
//! whenever values of some megabytes have come, so memory does not grow with the rows.

use std::io::{self, Write};

use crate::data::arrow::flat_writer::{FlatField, FlatWriter};
use crate::data::arrow::ipc_file::{CONTINUATION, MAGIC, RECORD_BATCH, SCHEMA};
use crate::data::columns::values::{
    ColumnBuilder, ColumnKind, ColumnValues, NumberKind, NumberValues,
};

/// Version 5 of the format.
const VERSION: FlatField = FlatField::Short(4);
/// Bytes of values after which a record batch is written.
const BATCH_BYTES: usize = 4 << 20;
/// Rows after which a record batch is written.
const BATCH_ROWS: usize = 1 << 16;
/// Most bytes of one row of a column: readers refuse longer values.
const MOST_VALUE: usize = 1 << 30;

/// One row: a builder for each column, with one value.
pub(crate) type ArrowRow = Vec<ColumnBuilder>;

/// Writes an Arrow file.
#[derive(Debug)]
pub(crate) struct ArrowWriter<W> {
    out: W,
    /// Bytes written so far.
    at: u64,
    fields: Vec<(String, ColumnKind)>,
    /// The rows of the next record batch.
    pending: Vec<ColumnBuilder>,
    rows: usize,
    /// For each record batch: its offset, the length of its metadata, the length of its values.
    batches: Vec<[u64; 3]>,
    /// Bytes after the last record batch, if there were none.
    footer_bytes: u64,
}

impl<W: Write> ArrowWriter<W> {
    /// Begins a file of columns with these names and types.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn new(out: W, fields: Vec<(String, ColumnKind)>) -> io::Result<Self> {
        let mut writer = Self {
            out,
            at: 0,
            pending: builders(&fields),
            fields,
            rows: 0,
            batches: Vec::new(),
            footer_bytes: 0,
        };
        writer.footer_bytes = writer.footer().len() as u64 + 12 + MAGIC.len() as u64;
        writer.write(MAGIC)?;
        writer.write(&[0; 2])?;
        let mut message = FlatWriter::new();
        let header = begin_message(&mut message, SCHEMA, 0);
        write_schema(&mut message, header, &writer.fields);
        writer.write_metadata(&message.finish())?;
        Ok(writer)
    }

    /// The most bytes of the file if it ended after one more row.
    pub(crate) fn most_bytes_with(&self, row: &[ColumnBuilder]) -> u64 {
        let counts = |builders: &[ColumnBuilder]| {
            let bytes = builders.iter().map(|builder| builder.bytes() as u64);
            bytes.sum::<u64>()
        };
        // Each row may have an offset of 4 bytes, and a bit for a missing value. A column has up to
        // five buffers, which are filled up to 8 bytes, and up to three arrays.
        let columns = self.fields.len() as u64;
        let rows = self.rows as u64 + 2;
        let of_row = self.fields.iter().map(|(_, kind)| match kind {
            ColumnKind::Numbers(..) => 0,
            _ => 5,
        });
        let values = counts(&self.pending) + counts(row) + rows * of_row.sum::<u64>();
        let lists = columns * (5 * 8 + 5 * 16 + 3 * 16);
        // The record batches that are in the footer, one more, and one being filled.
        let batches = 24 * (self.batches.len() as u64 + 2);
        self.at + values + lists + 256 + self.footer_bytes + batches
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When `out` fails; a value of more than 1 GiB.
    pub(crate) fn push(&mut self, row: ArrowRow) -> io::Result<()> {
        for (column, value) in self.pending.iter_mut().zip(row) {
            if value.bytes() > MOST_VALUE {
                return Err(io::Error::other(
                    "a value has more than 1 GiB: leave this column out",
                ));
            }
            column.append(value);
        }
        self.rows += 1;
        let bytes: usize = self.pending.iter().map(ColumnBuilder::bytes).sum();
        match bytes >= BATCH_BYTES || self.rows >= BATCH_ROWS {
            true => self.end_batch(),
            false => Ok(()),
        }
    }

    /// Ends the file. Returns where it was written to, and its length.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn finish(mut self) -> io::Result<(W, u64)> {
        self.end_batch()?;
        // The end of the messages, for readers of streams.
        self.write(&CONTINUATION.to_le_bytes())?;
        self.write(&[0; 4])?;
        let footer = self.footer();
        self.write(&footer)?;
        self.write(&(footer.len() as u32).to_le_bytes())?;
        self.write(MAGIC)?;
        Ok((self.out, self.at))
    }

    fn end_batch(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let pending = std::mem::replace(&mut self.pending, builders(&self.fields));
        let mut batch = BatchBody::default();
        for column in pending {
            batch.add(&column.finish(), self.rows);
        }
        let mut message = FlatWriter::new();
        let header = begin_message(&mut message, RECORD_BATCH, batch.body.len());
        let [_, nodes, buffers] = message.table(
            header,
            [
                FlatField::Long(self.rows as i64),
                FlatField::Reference,
                FlatField::Reference,
            ],
        );
        message.words(nodes, &batch.nodes);
        message.words(buffers, &batch.buffers);
        let at = self.at;
        let metadata = self.write_metadata(&message.finish())?;
        self.write(&batch.body)?;
        self.batches.push([at, metadata, batch.body.len() as u64]);
        self.rows = 0;
        Ok(())
    }

    /// Returns the bytes that were written.
    fn write_metadata(&mut self, metadata: &[u8]) -> io::Result<u64> {
        self.write(&CONTINUATION.to_le_bytes())?;
        self.write(&(metadata.len() as u32).to_le_bytes())?;
        self.write(metadata)?;
        Ok(metadata.len() as u64 + 8)
    }

    fn footer(&self) -> Vec<u8> {
        let mut footer = FlatWriter::new();
        let [_, schema, dictionaries, batches] = footer.table(
            FlatWriter::ROOT,
            [
                VERSION,
                FlatField::Reference,
                FlatField::Reference,
                FlatField::Reference,
            ],
        );
        write_schema(&mut footer, schema, &self.fields);
        footer.words::<3>(dictionaries, &[]);
        footer.words(batches, &self.batches);
        footer.finish()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

fn builders(fields: &[(String, ColumnKind)]) -> Vec<ColumnBuilder> {
    let kinds = fields.iter().map(|(_, kind)| *kind);
    kinds.map(ColumnBuilder::new).collect()
}

/// Begins a message. Returns the reference to its header.
fn begin_message(message: &mut FlatWriter, kind: u8, body: usize) -> usize {
    let [_, _, header, _] = message.table(
        FlatWriter::ROOT,
        [
            VERSION,
            FlatField::Byte(kind),
            FlatField::Reference,
            FlatField::Long(body as i64),
        ],
    );
    header
}

fn write_schema(message: &mut FlatWriter, from: usize, fields: &[(String, ColumnKind)]) {
    // Numbers are little-endian.
    let [_, list] = message.table(from, [FlatField::Short(0), FlatField::Reference]);
    let first = message.references(list, fields.len());
    for (number, (name, kind)) in fields.iter().enumerate() {
        write_field(message, first + 4 * number, name, &types_of(*kind));
    }
}

/// The type of an array.
#[derive(Debug, Clone, Copy)]
enum WrittenType {
    Number(NumberKind),
    Text,
    Bytes,
    List,
    FixedList(usize),
}

/// The type of a column, and those inside of it.
fn types_of(kind: ColumnKind) -> Vec<WrittenType> {
    use WrittenType::{Bytes, FixedList, List, Number, Text};
    match kind {
        ColumnKind::Numbers(kind, None) => vec![Number(kind)],
        ColumnKind::Numbers(kind, Some(width)) => vec![FixedList(width), Number(kind)],
        ColumnKind::Text => vec![Text],
        ColumnKind::Bytes => vec![Bytes],
        ColumnKind::Ragged(kind, None) => vec![List, Number(kind)],
        ColumnKind::Ragged(kind, Some(width)) => vec![List, FixedList(width), Number(kind)],
        ColumnKind::TextLists => vec![List, Text],
    }
}

fn write_field(message: &mut FlatWriter, from: usize, name: &str, types: &[WrittenType]) {
    let Some((first, inner)) = types.split_first() else {
        return;
    };
    let code = match first {
        WrittenType::Number(NumberKind::F16 | NumberKind::F32 | NumberKind::F64) => 3,
        WrittenType::Number(NumberKind::Bool) => 6,
        WrittenType::Number(_) => 2,
        WrittenType::Bytes => 4,
        WrittenType::Text => 5,
        WrittenType::List => 12,
        WrittenType::FixedList(_) => 16,
    };
    let [text, _, _, of, _, children] = message.table(
        from,
        [
            FlatField::Reference,
            // Values may be missing.
            FlatField::Byte(1),
            FlatField::Byte(code),
            FlatField::Reference,
            FlatField::Absent,
            FlatField::Reference,
        ],
    );
    message.text(text, name);
    match first {
        WrittenType::Number(kind) if kind.is_float() => {
            let precision = match kind {
                NumberKind::F16 => 0,
                NumberKind::F32 => 1,
                _ => 2,
            };
            message.table(of, [FlatField::Short(precision)]);
        }
        WrittenType::Number(kind) if *kind != NumberKind::Bool => {
            let is_signed = kind.name().starts_with('i');
            let bits = FlatField::Int(8 * kind.bytes() as i32);
            message.table(of, [bits, FlatField::Byte(u8::from(is_signed))]);
        }
        WrittenType::FixedList(width) => {
            message.table(of, [FlatField::Int(*width as i32)]);
        }
        _ => {
            message.table(of, []);
        }
    }
    let child = message.references(children, usize::from(!inner.is_empty()));
    write_field(message, child, "item", inner);
}

/// The arrays of a record batch.
#[derive(Debug, Default)]
struct BatchBody {
    body: Vec<u8>,
    /// Of each array: values, and missing ones.
    nodes: Vec<[u64; 2]>,
    /// Of each buffer: offset and length.
    buffers: Vec<[u64; 2]>,
}

impl BatchBody {
    fn add(&mut self, values: &ColumnValues, rows: usize) {
        match values {
            ColumnValues::Numbers { values, width } => {
                if width.is_some() {
                    self.node(rows, 0);
                    self.buffer(&[]);
                }
                self.numbers(values);
            }
            ColumnValues::Text(texts) => {
                self.values(texts.iter().map(|text| text.as_ref().map(String::as_bytes)));
            }
            ColumnValues::Bytes(all) => {
                self.values(all.iter().map(|bytes| bytes.as_deref()));
            }
            ColumnValues::Ragged {
                values,
                width,
                offsets,
            } => {
                self.list(rows, offsets.iter().map(|offset| *offset as usize));
                if width.is_some() {
                    self.node(offsets.last().map_or(0, |last| *last as usize), 0);
                    self.buffer(&[]);
                }
                self.numbers(values);
            }
            ColumnValues::TextLists(lists) => {
                let mut end = 0;
                let ends = lists.iter().map(|list| {
                    end += list.len();
                    end
                });
                self.list(rows, std::iter::once(0).chain(ends));
                let texts = lists.iter().flatten();
                self.values(texts.map(|text| text.as_ref().map(String::as_bytes)));
            }
        }
    }

    fn node(&mut self, values: usize, missing: usize) {
        self.nodes.push([values as u64, missing as u64]);
    }

    fn buffer(&mut self, bytes: &[u8]) {
        let at = self.body.len();
        self.buffers.push([at as u64, bytes.len() as u64]);
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(8), 0);
    }

    fn numbers(&mut self, values: &NumberValues) {
        self.node(values.len(), 0);
        self.buffer(&[]);
        match values.kind() {
            NumberKind::Bool => self.buffer(&bits(values.bytes().iter().map(|byte| *byte != 0))),
            _ => self.buffer(values.bytes()),
        }
    }

    /// The beginning of an array of lists: the offsets of their values.
    fn list(&mut self, rows: usize, offsets: impl Iterator<Item = usize>) {
        self.node(rows, 0);
        self.buffer(&[]);
        let offsets: Vec<u8> = offsets.flat_map(|at| (at as i32).to_le_bytes()).collect();
        self.buffer(&offsets);
    }

    /// An array of texts or bytes.
    fn values<'a>(&mut self, values: impl Iterator<Item = Option<&'a [u8]>> + Clone) {
        let missing = values.clone().filter(Option::is_none).count();
        let count = values.clone().count();
        self.node(count, missing);
        match missing {
            0 => self.buffer(&[]),
            _ => self.buffer(&bits(values.clone().map(|value| value.is_some()))),
        }
        let mut offsets = 0i32.to_le_bytes().to_vec();
        let mut data = Vec::new();
        for value in values {
            data.extend_from_slice(value.unwrap_or_default());
            offsets.extend((data.len() as i32).to_le_bytes());
        }
        self.buffer(&offsets);
        self.buffer(&data);
    }
}

/// One bit for each value, the first in the lowest bit.
fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, value) in values.enumerate() {
        if number % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(value) << (number % 8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::sync::Arc;

    use super::*;
    use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};

    /// Rows of all kinds, with values that are missing, empty and extreme.
    fn rows(kinds: &[ColumnKind], count: usize) -> Vec<ArrowRow> {
        let value = |kind: ColumnKind, row: usize| {
            let mut builder = ColumnBuilder::new(kind);
            let number = |kind: NumberKind, row: usize| {
                let all = [0, 1, -1, i64::MIN, i64::MAX, row as i64];
                let mut bytes = all[row % 6].to_le_bytes()[..kind.bytes()].to_vec();
                if kind == NumberKind::Bool {
                    bytes[0] &= 1;
                }
                if kind == NumberKind::F64 && row.is_multiple_of(3) {
                    bytes = [f64::NAN, f64::INFINITY, -0.0][row / 3 % 3]
                        .to_le_bytes()
                        .into();
                }
                bytes
            };
            let numbers = |kind, width: usize| -> Vec<u8> {
                (0..width).flat_map(|n| number(kind, row + n)).collect()
            };
            match kind {
                ColumnKind::Numbers(kind, width) => {
                    builder
                        .push_numbers(&numbers(kind, width.unwrap_or(1)))
                        .unwrap();
                }
                ColumnKind::Ragged(kind, width) => {
                    let count = row % 4 * width.unwrap_or(1);
                    builder.push_numbers(&numbers(kind, count)).unwrap();
                }
                ColumnKind::Text | ColumnKind::Bytes if row % 5 == 2 => {
                    builder.push_null().unwrap()
                }
                ColumnKind::Text => {
                    builder.push_text(["", "é", "日本", "a\0b"][row % 4].repeat(row % 7))
                }
                ColumnKind::Bytes => builder.push_bytes(vec![row as u8; row % 300]),
                ColumnKind::TextLists => builder.push_list(
                    (0..row % 4)
                        .map(|n| (n != 1).then(|| format!("{row}-{n}")))
                        .collect(),
                ),
            }
            builder
        };
        (0..count)
            .map(|row| kinds.iter().map(|kind| value(*kind, row)).collect())
            .collect()
    }

    fn kinds() -> Vec<ColumnKind> {
        use NumberKind::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        let numbers = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64];
        let mut kinds = vec![ColumnKind::Text, ColumnKind::Bytes, ColumnKind::TextLists];
        for kind in numbers {
            for width in [None, Some(3)] {
                kinds.push(ColumnKind::Numbers(kind, width));
                kinds.push(ColumnKind::Ragged(kind, width));
            }
        }
        kinds
    }

    #[test]
    fn all_kinds_are_read_as_they_were_written_behind_other_bytes() {
        for count in [0, 1, 7, 300] {
            let kinds = kinds();
            let fields: Vec<_> = kinds
                .iter()
                .enumerate()
                .map(|(number, kind)| (format!("/a b/{number}"), *kind))
                .collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&[1; 512]).unwrap();
            let mut writer = ArrowWriter::new(&file, fields.clone()).unwrap();
            for (number, row) in rows(&kinds, count).into_iter().enumerate() {
                let most = writer.most_bytes_with(&row);
                writer.push(row).unwrap();
                if number % 100 == 50 {
                    let mut ended = ArrowWriter::new(io::sink(), fields.clone()).unwrap();
                    for row in rows(&kinds, number + 1) {
                        ended.push(row).unwrap();
                    }
                    let bytes = ended.finish().unwrap().1;
                    assert!(bytes <= most && most < bytes + 20_000, "{bytes} {most}");
                }
                if number == 100 {
                    writer.end_batch().unwrap();
                }
            }
            let (_, bytes) = writer.finish().unwrap();
            file.write_all(&[1; 512]).unwrap();
            file.rewind().unwrap();
            let file = Arc::new(file);
            let read = ArrowFile::read_part(file.clone(), 512..512 + bytes).unwrap();
            assert_eq!(read.rows, count as u64);
            for (number, (name, kind)) in fields.iter().enumerate() {
                let column = ArrowColumn::find(&read, &[number]).unwrap();
                assert_eq!(column.field.name, *name);
                assert_eq!(column.field.column_kind(), Some(*kind));
                let (mut got, mut want) = (ColumnBuilder::new(*kind), ColumnBuilder::new(*kind));
                let mut at = ArrowBytes::at_random(&file, 512 + bytes);
                for (row, mut due) in rows(&kinds, count).into_iter().enumerate() {
                    column.read_from(&mut at, row as u64, &mut got).unwrap();
                    want.append(due.swap_remove(number));
                }
                assert_eq!(format!("{got:?}"), format!("{want:?}"), "{name} {kind}");
            }
        }
    }

    #[test]
    fn many_values_are_several_record_batches() {
        let fields = vec![("text".to_owned(), ColumnKind::Text)];
        let mut writer = ArrowWriter::new(io::sink(), fields).unwrap();
        for _ in 0..10 {
            let mut text = ColumnBuilder::new(ColumnKind::Text);
            text.push_text("x".repeat(1 << 20));
            writer.push(vec![text]).unwrap();
        }
        assert_eq!(writer.batches.len(), 2);
        assert!(writer.finish().unwrap().1 > 10 << 20);
    }
}
