//! The messages of an Arrow file or stream.
//!
//! Runs in the consumer, on untrusted bytes. Reads the metadata of each message, and skips its
//! values. A file is read by its footer, a stream from its beginning. Memory: the schema, and 48 bytes for each record batch.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::data::arrow::arrays::{ArrayPlace, BatchArrays};
use crate::data::arrow::flatbuffer::FlatTable;
use crate::data::arrow::schema::{ArrowField, ArrowSchema, DictionaryField};
use crate::error::{Error, Result};
use crate::sys::regular_file;

/// What a file begins and ends with. A stream has neither.
pub(super) const MAGIC: &[u8; 6] = b"ARROW1";
/// The word before the length of a message's metadata.
pub(super) const CONTINUATION: u32 = u32::MAX;
/// The kinds of messages that are read.
pub(super) const SCHEMA: u8 = 1;
const DICTIONARY_BATCH: u8 = 2;
pub(super) const RECORD_BATCH: u8 = 3;
/// Bytes of the place of a message in a footer: offset, length of the metadata, length of the data.
const BLOCK: usize = 24;
/// Most bytes of a message's metadata, and of a footer.
const MOST_METADATA: u64 = 64 << 20;

/// An open Arrow file.
#[derive(Debug)]
pub(crate) struct ArrowFile {
    pub(crate) file: Arc<File>,
    pub(crate) len: u64,
    schema: ArrowSchema,
    pub(super) batches: Vec<BatchPlace>,
    /// Where the messages with values of dictionaries begin.
    dictionaries: Vec<u64>,
    /// Rows of all record batches.
    pub(crate) rows: u64,
    /// Whether a record batch is compressed.
    pub(crate) is_packed: bool,
}

/// A record batch, by its place in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchPlace {
    /// The first of its rows.
    pub(super) first: u64,
    rows: u64,
    metadata_at: u64,
    metadata_bytes: u64,
    body_at: u64,
    body_bytes: u64,
}

/// The place of one message.
struct MessagePlace {
    metadata_at: u64,
    metadata_bytes: u64,
    body_bytes: u64,
}

impl ArrowFile {
    /// Reads the schema, and where all record batches are.
    ///
    /// # Errors
    /// A file that cannot be read, is not of Arrow, is damaged, or has numbers in big-endian order.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let (file, len) = regular_file::open(path).map_err(|e| Error::io_at("open", path, e))?;
        Self::read_part(Arc::new(file), 0..len).map_err(|what| Error::dataset(path, what))
    }

    /// Like [`ArrowFile::read`], for an Arrow file that is a part of another file, such as a tar.
    /// All places are those in the other file.
    pub(crate) fn read_part(file: Arc<File>, part: Range<u64>) -> Result<Self, String> {
        let (start, len) = (part.start, part.end);
        if part.is_empty() {
            return Err("is an empty file: remove it, or write it again".into());
        }
        let (schema, messages, dictionaries) = match footer(&file, part)? {
            Some(footer) => of_footer(&footer, start)?,
            None => of_stream(&file, start, len)?,
        };
        let mut batches = Vec::new();
        let mut rows: u64 = 0;
        let mut is_packed = false;
        for at in messages {
            let (message, metadata) =
                read_message(&file, at, len)?.ok_or_else(|| damaged_at(at))?;
            let damaged = || damaged_at(at);
            let table = FlatTable::root(&metadata).ok_or_else(damaged)?;
            let header = table.table(2).flatten().ok_or_else(damaged)?;
            let count = header.long(0).and_then(|rows| u64::try_from(rows).ok());
            let count = count.filter(|_| table.byte(1) == Some(RECORD_BATCH));
            let count = count.ok_or_else(damaged)?;
            is_packed |= header.has(3).ok_or_else(damaged)?;
            batches.push(BatchPlace {
                first: rows,
                rows: count,
                metadata_at: message.metadata_at,
                metadata_bytes: message.metadata_bytes,
                body_at: message.metadata_at + message.metadata_bytes,
                body_bytes: message.body_bytes,
            });
            rows = rows.checked_add(count).ok_or_else(damaged)?;
        }
        Ok(Self {
            schema,
            file,
            len,
            batches,
            dictionaries,
            rows,
            is_packed,
        })
    }

    pub(crate) fn fields(&self) -> &[ArrowField] {
        &self.schema.fields
    }

    /// The features in Hugging Face's metadata, by column name. Empty if there is no metadata.
    pub(crate) fn features(&self) -> serde_json::Map<String, Json> {
        self.schema.features()
    }

    /// Where the values of a column are: for each record batch the array that `path` leads to, with
    /// those that it is inside of before it.
    ///
    /// # Errors
    /// A damaged record batch, or buffers that are compressed by an unknown method.
    pub(super) fn arrays_of(&self, path: &[usize]) -> Result<Vec<Vec<ArrayPlace>>, String> {
        let arrays = self.batches.iter().map(|batch| {
            let metadata = read_bytes(&self.file, batch.metadata_at, batch.metadata_bytes)?;
            let damaged = || damaged_at(batch.metadata_at);
            let message = FlatTable::root(&metadata).ok_or_else(damaged)?;
            let header = message.table(2).flatten().ok_or_else(damaged)?;
            let body = (batch.body_at, batch.body_bytes);
            let found = BatchArrays::find(&self.file, header, body, &self.schema.fields, path);
            let found = found.map_err(|what| what.unwrap_or_else(damaged))?;
            match found.first() {
                Some(top) if top.rows == batch.rows => Ok(found),
                _ => Err(damaged_at(batch.metadata_at)),
            }
        });
        arrays.collect()
    }
}

impl ArrowFile {
    /// Where the values of a dictionary are: one array, and those that later messages add to it.
    ///
    /// # Errors
    /// A dictionary that a later message replaces; an unknown compression; a damaged message.
    pub(super) fn dictionary_of(&self, field: &DictionaryField) -> Result<Vec<ArrayPlace>, String> {
        let mut parts = Vec::new();
        for &at in &self.dictionaries {
            let (message, metadata) =
                read_message(&self.file, at, self.len)?.ok_or_else(|| damaged_at(at))?;
            let damaged = || damaged_at(at);
            let table = FlatTable::root(&metadata).ok_or_else(damaged)?;
            let header = table.table(2).flatten().ok_or_else(damaged)?;
            if table.byte(1) != Some(DICTIONARY_BATCH) {
                return Err(damaged());
            }
            if header.long(0).ok_or_else(damaged)? != field.id {
                continue;
            }
            let adds = header.byte(2).ok_or_else(damaged)? != 0;
            if !adds && !parts.is_empty() {
                return Err(
                    "has a dictionary that changes from batch to batch: write it as an Arrow file \
                     with one dictionary (pyarrow: table.unify_dictionaries())"
                        .into(),
                );
            }
            let values = header.table(1).flatten().ok_or_else(damaged)?;
            let body_at = message.metadata_at + message.metadata_bytes;
            let body = (body_at, message.body_bytes);
            let fields = std::slice::from_ref(&field.values);
            let found = BatchArrays::find(&self.file, values, body, fields, &[0]);
            parts.extend(found.map_err(|what| what.unwrap_or_else(damaged))?);
        }
        Ok(parts)
    }
}

fn damaged_at(at: u64) -> String {
    format!("is damaged: it has no valid message at byte {at}: write it again")
}

/// The schema, and where each record batch and each message of a dictionary begins.
type FileMessages = (ArrowSchema, Vec<u64>, Vec<u64>);

/// The schema, and where each record batch begins, by the footer of a file that begins at `start`.
fn of_footer(footer: &[u8], start: u64) -> Result<FileMessages, String> {
    let damaged = || "is damaged: its footer cannot be read: write it again".to_owned();
    let table = FlatTable::root(footer).ok_or_else(damaged)?;
    let schema = table.table(1).flatten().ok_or_else(damaged)?;
    let schema = ArrowSchema::read(schema).map_err(|what| what.unwrap_or_else(damaged))?;
    let offsets = |field| {
        let blocks = table.vector(field, BLOCK).ok_or_else(damaged)?;
        let offset = |number| {
            let offset = blocks.long(number, BLOCK);
            offset
                .and_then(|at| u64::try_from(at).ok()?.checked_add(start))
                .ok_or_else(damaged)
        };
        (0..blocks.len()).map(offset).collect::<Result<Vec<_>, _>>()
    };
    Ok((schema, offsets(3)?, offsets(2)?))
}

/// The schema, and where each record batch begins, by the messages of a stream.
fn of_stream(file: &File, start: u64, len: u64) -> Result<FileMessages, String> {
    let mut at = start;
    let mut schema = None;
    let (mut messages, mut dictionaries) = (Vec::new(), Vec::new());
    while let Some((message, metadata)) = read_message(file, at, len)? {
        let damaged = || damaged_at(at);
        let table = FlatTable::root(&metadata).ok_or_else(damaged)?;
        match (table.byte(1).ok_or_else(damaged)?, &schema) {
            (SCHEMA, None) => {
                let header = table.table(2).flatten().ok_or_else(damaged)?;
                let read = ArrowSchema::read(header);
                schema = Some(read.map_err(|what| what.unwrap_or_else(damaged))?);
            }
            (SCHEMA, Some(_)) => {
                return Err("has several schemas: write it as one table".into());
            }
            (RECORD_BATCH, Some(_)) => messages.push(at),
            (RECORD_BATCH, None) => return Err(damaged()),
            (DICTIONARY_BATCH, _) => dictionaries.push(at),
            _ => {}
        }
        at = message.metadata_at + message.metadata_bytes + message.body_bytes;
    }
    let schema = schema.ok_or("has no schema: write it again as an Arrow file or stream")?;
    Ok((schema, messages, dictionaries))
}

/// The footer of a file. `None` for a stream.
fn footer(file: &File, part: Range<u64>) -> Result<Option<Vec<u8>>, String> {
    let (start, len) = (part.start, part.end - part.start);
    let mut head = [0; 8];
    let not =
        || "is not an Arrow file or stream, or its beginning is missing: check the file".to_owned();
    if len < 8 {
        return Err(not());
    }
    let read = file.read_exact_at(&mut head, start);
    read.map_err(|e| format!("cannot be read: {e}"))?;
    if head.starts_with(b"FEA1") {
        return Err("is a Feather file of version 1: write it again (Python: \
             pyarrow.feather.write_feather(table, path, version=2))"
            .into());
    }
    if !head.starts_with(MAGIC) {
        // A stream of old writers begins with a length.
        let first = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let is_stream = first == CONTINUATION || u64::from(first) < MOST_METADATA.min(len);
        return is_stream.then_some(None).ok_or_else(not);
    }
    let cut = || "is cut off: the end of the Arrow file is missing: copy it again".to_owned();
    let end = len
        .checked_sub(10)
        .filter(|end| *end >= 8)
        .ok_or_else(cut)?;
    let mut tail = [0; 10];
    let read = file.read_exact_at(&mut tail, start + end);
    read.map_err(|e| format!("cannot be read: {e}"))?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *MAGIC {
        return Err(cut());
    }
    let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let at = end.checked_sub(bytes).filter(|at| *at >= 8);
    let at = at.filter(|_| bytes <= MOST_METADATA).ok_or_else(cut)?;
    read_bytes(file, start + at, bytes).map(Some)
}

/// The message at `at`, whose data end within the file, and its metadata. `None` at the end of all
/// messages.
fn read_message(file: &File, at: u64, end: u64) -> Result<Option<(MessagePlace, Vec<u8>)>, String> {
    let word = |at: u64| -> Result<Option<u32>, String> {
        if end - at.min(end) < 4 {
            return Ok(None);
        }
        let bytes = read_bytes(file, at, 4)?;
        Ok(bytes.try_into().ok().map(u32::from_le_bytes))
    };
    let Some(first) = word(at)? else {
        return Ok(None);
    };
    // `at` is within the file, so these sums do not overflow.
    let (bytes, metadata_at) = match first {
        CONTINUATION => (word(at + 4)?, at + 8),
        // Writers before version 0.15 of Arrow.
        bytes => (Some(bytes), at + 4),
    };
    let Some(bytes) = bytes.map(u64::from).filter(|bytes| *bytes > 0) else {
        return Ok(None);
    };
    if bytes > MOST_METADATA || bytes > end - metadata_at.min(end) {
        return Err(damaged_at(at));
    }
    let metadata = read_bytes(file, metadata_at, bytes)?;
    let body_bytes = FlatTable::root(&metadata).and_then(|table| table.long(3));
    let body_bytes = body_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let body_bytes = body_bytes.ok_or_else(|| damaged_at(at))?;
    if body_bytes > end - (metadata_at + bytes) {
        return Err(format!(
            "is cut off: the data of the message at byte {at} end after the file: copy it again"
        ));
    }
    let place = MessagePlace {
        metadata_at,
        metadata_bytes: bytes,
        body_bytes,
    };
    Ok(Some((place, metadata)))
}

/// Reads bytes that the caller has found to lie within the file.
fn read_bytes(file: &File, at: u64, bytes: u64) -> Result<Vec<u8>, String> {
    let mut buffer = vec![0; usize::try_from(bytes).map_err(|_| damaged_at(at))?];
    let read = file.read_exact_at(&mut buffer, at);
    read.map_err(|e| format!("cannot be read at byte {at}: {e}"))?;
    Ok(buffer)
}
