//! The footer of a Parquet file: its schema, its row groups, and Hugging Face's metadata.
//!
//! Runs in the consumer, on untrusted bytes.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde_json::Value as Json;

use crate::data::index::lenient_json;
use crate::data::index::parquet::thrift::{LIST, STRUCT, ThriftReader};
use crate::error::{Error, Result};
use crate::sys::regular_file;

/// Most bytes of a footer.
const MOST_FOOTER: u64 = 32 << 20;
/// Most bytes of Hugging Face's metadata.
const MOST_NOTE: usize = 4 << 20;
/// Deepest nesting of a schema's groups.
const MOST_DEPTH: usize = 32;
/// Most columns and groups of a schema.
const MOST_COLUMNS: u64 = 1 << 16;
/// Bytes of the shortest row group.
const LEAST_GROUP: u64 = 16;

/// An open Parquet file, its length and its footer.
pub(super) struct ParquetFooter {
    pub(super) file: Arc<File>,
    pub(super) len: u64,
    pub(super) data: ParquetMetaData,
}

impl ParquetFooter {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let (file, len) = regular_file::open(path).map_err(|e| Error::io_at("open", path, e))?;
        let data = parse(&file, len).map_err(|what| Error::dataset(path, what))?;
        Ok(Self {
            file: Arc::new(file),
            len,
            data,
        })
    }

    /// The features in Hugging Face's metadata, by column name. Empty if there is no metadata.
    pub(super) fn features(&self) -> Result<serde_json::Map<String, Json>, String> {
        let notes = self.data.file_metadata().key_value_metadata();
        let note = notes.into_iter().flatten().find(|n| n.key == "huggingface");
        let Some(note) = note.and_then(|note| note.value.as_deref()) else {
            return Ok(serde_json::Map::new());
        };
        if note.len() > MOST_NOTE {
            return Err(
                "has Hugging Face metadata of more than 4 MiB: write the file without it".into(),
            );
        }
        let mut features = serde_json::Map::new();
        // Metadata of another form has no features.
        if let Ok(Some(found)) = lenient_json::find(note.as_bytes(), "/info/features") {
            let each = |name: Cow<'_, str>, feature: &[u8]| {
                if let Ok(feature) = serde_json::from_slice(feature) {
                    features.insert(name.into_owned(), feature);
                }
            };
            drop(lenient_json::members(found, each));
        }
        Ok(features)
    }
}

fn parse(file: &File, len: u64) -> Result<ParquetMetaData, String> {
    if len == 0 {
        return Err("is an empty file: remove it, or write it again".into());
    }
    let not = || {
        "is not a Parquet file, or its end is missing: check the file, or write it again".to_owned()
    };
    let read = |at: u64, bytes: &mut [u8]| {
        file.read_exact_at(bytes, at)
            .map_err(|e| format!("cannot be read: {e}"))
    };
    let end = len.checked_sub(8).filter(|end| *end >= 4).ok_or_else(not)?;
    let mut tail = [0; 8];
    read(end, &mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err("is an encrypted Parquet file: write it without encryption".into()),
        _ => return Err(not()),
    }
    let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    if bytes > MOST_FOOTER {
        return Err(format!(
            "has a footer of {bytes} bytes, more than 32 MiB: write it with larger row groups"
        ));
    }
    let at = end.checked_sub(bytes).filter(|at| *at >= 4);
    let at = at.ok_or_else(|| "is damaged: its footer is longer than the file".to_owned())?;
    let mut footer = vec![0; bytes as usize];
    read(at, &mut footer)?;
    check_counts(&footer)?;
    ParquetMetaDataReader::decode_metadata(&footer)
        .map_err(|e| format!("is damaged: its footer cannot be read ({e})"))
}

/// Checks the counts of a footer before the `parquet` crate decodes it.
///
/// The crate allocates by these counts and follows nested groups without a limit. So every list
/// must have as many elements as it states, and every group as many members.
///
/// # Errors
/// A malformed footer, more than [`MOST_COLUMNS`] columns, or more row groups than its bytes can
/// hold.
fn check_counts(footer: &[u8]) -> Result<(), String> {
    let no_schema = || "is damaged: its footer has no schema".to_owned();
    let (mut is_plain, mut columns, mut groups) = (false, 0, 0);
    let read = ThriftReader::new(footer).fields(|reader, number, kind| match (number, kind) {
        (2, LIST) => {
            columns = reader.clone().list()?.0;
            is_plain = columns <= MOST_COLUMNS && has_plain_schema(reader)?;
            is_plain.then_some(())
        }
        (4, LIST) => {
            groups = reader.clone().list()?.0;
            reader.skip(kind)
        }
        _ => reader.skip(kind),
    });
    if columns > MOST_COLUMNS {
        return Err(format!(
            "has {columns} columns, more than {MOST_COLUMNS}: write fewer"
        ));
    }
    if groups > footer.len() as u64 / LEAST_GROUP {
        return Err(format!(
            "is damaged: its footer is too short for {groups} row groups"
        ));
    }
    read.filter(|()| is_plain).ok_or_else(no_schema)
}

/// Whether every group of a schema has as many members as it states. `None` if the schema is
/// malformed or nested deeper than [`MOST_DEPTH`].
fn has_plain_schema(reader: &mut ThriftReader<'_>) -> Option<bool> {
    let (count, STRUCT) = reader.list()? else {
        return None;
    };
    // Members that each open group still lacks. The first entry counts the root itself.
    let mut open = vec![1];
    for _ in 0..count {
        let mut members = 0;
        reader.fields(|reader, number, kind| {
            match number {
                5 => members = reader.number(kind)?,
                _ => reader.skip(kind)?,
            }
            Some(())
        })?;
        while open.last() == Some(&0) {
            open.pop();
        }
        *open.last_mut()? -= 1;
        if members != 0 {
            open.push(u64::try_from(members).ok().filter(|n| *n <= count)?);
        }
        if open.len() > MOST_DEPTH {
            return None;
        }
    }
    Some(open.iter().all(|lacks| *lacks == 0))
}
