//! The columns that a cache keeps: read from the source, written after the samples of each shard.
//!
//! Runs in the consumer. The columns of a shard are one Arrow file, the last member of its tar. Its
//! rows are the samples of the shard, in their order. Never in here: how a source stores columns.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::SpooledTempFile;
use twox_hash::xxhash3_128::Hasher;

use crate::data::arrow::{ArrowRow, ArrowWriter};
use crate::data::columns::column_set::NamedReaders;
use crate::data::columns::values::{ColumnBuilder, ColumnKind};
use crate::data::index::Index;
use crate::data::shard::manifest::{COLUMNS_MEMBER, ColumnEntry, HexHash128};
use crate::data::shard::shard_writer::member_bytes;
use crate::error::{Error, Result};
use crate::sys::regular_file;

/// Bytes of a shard's columns that are kept in memory until the shard ends. More are kept in a file
/// without a name.
pub(super) const IN_MEMORY: usize = 8 << 20;

/// Bytes that are hashed at both ends of a file that is no table.
const HASHED: u64 = 1 << 20;

/// The columns of a source that a cache keeps.
#[derive(Debug)]
pub(super) struct CacheColumns {
    readers: NamedReaders,
    /// Files that have values and may have no image.
    files: Vec<PathBuf>,
    /// Their stamps before the source was read.
    stamps: Vec<u8>,
}

/// Length, time and a hash of each file, as bytes: of a table all is hashed, of other files the first
/// and the last [`HASHED`] bytes. Copies on several machines have equal stamps.
///
/// # Errors
/// When a file cannot be examined or read.
pub(super) fn file_stamps(files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut stamps = Vec::new();
    for path in files {
        let found = path.metadata();
        let found = found.map_err(|e| Error::io_at("look at", path, e))?;
        stamps.extend(found.len().to_le_bytes());
        stamps.extend(found.mtime().to_le_bytes());
        stamps.extend(found.mtime_nsec().to_le_bytes());
        let hash = content_hash(path, found.len());
        let hash = hash.map_err(|e| Error::io_at("read", path, e))?;
        stamps.extend(hash.to_le_bytes());
    }
    Ok(stamps)
}

/// The hash of a table, or of both ends of another file.
fn content_hash(path: &Path, len: u64) -> io::Result<u128> {
    let (mut file, _) = regular_file::open(path)?;
    let mut hasher = Hasher::new();
    let mut piece = vec![0; HASHED as usize];
    let is_whole = Index::names_table(path) || len <= 2 * HASHED;
    let mut left = if is_whole { u64::MAX } else { 2 * HASHED };
    while left > 0 {
        let most = left.min(HASHED) as usize;
        let read = file.read(&mut piece[..most])?;
        if read == 0 {
            break;
        }
        hasher.write(&piece[..read]);
        let was_first = !is_whole && left > HASHED;
        left -= read as u64;
        if was_first && left <= HASHED {
            file.seek(SeekFrom::Start(len.saturating_sub(left)))?;
        }
    }
    Ok(hasher.finish_128())
}

/// Without further files, the fingerprint is that of the images.
pub(super) fn joined_hash(images: HexHash128, stamps: &[u8]) -> HexHash128 {
    if stamps.is_empty() {
        return images;
    }
    let mut hasher = Hasher::new();
    hasher.write(&images.0.to_le_bytes());
    hasher.write(stamps);
    HexHash128(hasher.finish_128())
}

impl CacheColumns {
    /// `None` without columns. `stamps`: those of `files` before `readers` were opened.
    pub(super) fn new(readers: NamedReaders, files: Vec<PathBuf>, stamps: Vec<u8>) -> Option<Self> {
        (!readers.is_empty()).then_some(Self {
            readers,
            files,
            stamps,
        })
    }

    /// Names and types, for the cache's manifest.
    pub(super) fn entries(&self) -> Vec<ColumnEntry> {
        let fields = self.fields().into_iter();
        fields
            .map(|(name, kind)| ColumnEntry {
                name,
                kind: kind.to_string(),
            })
            .collect()
    }

    /// The most bytes of their names and types in the cache's manifest.
    pub(super) fn names_bytes(&self) -> u64 {
        // In JSON a byte has up to six characters.
        let fields = self.fields().into_iter();
        fields
            .map(|(name, kind)| 6 * name.len() as u64 + kind.to_string().len() as u64 + 64)
            .sum()
    }

    fn fields(&self) -> Vec<(String, ColumnKind)> {
        let readers = self.readers.iter();
        readers
            .map(|(name, reader)| (name.clone(), reader.kind()))
            .collect()
    }

    /// Whether this member of tar shards is kept as a column.
    pub(super) fn keeps_field(&self, extension: &str) -> bool {
        let mut readers = self.readers.iter();
        readers.any(|(name, _)| name.eq_ignore_ascii_case(extension))
    }

    /// The values of sample `id` of the source.
    ///
    /// # Errors
    /// A value that cannot be read, or that its column cannot express.
    pub(super) fn row(&self, index: &Index, id: u64) -> Result<ArrowRow> {
        let mut row = Vec::with_capacity(self.readers.len());
        for (_, reader) in &self.readers {
            let mut value = ColumnBuilder::new(reader.kind());
            reader.read(index, id, &mut value)?;
            row.push(value);
        }
        Ok(row)
    }

    /// Whether samples have files with values of their own.
    pub(super) fn has_own_files(&self, index: &Index) -> bool {
        self.own_files(index, 0).next().is_some()
    }

    /// The files that have values of sample `id` alone, of all columns.
    pub(super) fn own_files(&self, index: &Index, id: u64) -> impl Iterator<Item = PathBuf> {
        (self.readers.iter()).filter_map(move |(_, reader)| reader.own_file(index, id))
    }

    /// The fingerprint of a source whose images have the fingerprint `images`, with the files that
    /// have values as they are now.
    ///
    /// # Errors
    /// When a file cannot be examined.
    pub(super) fn with_files(&self, images: HexHash128) -> Result<HexHash128> {
        Ok(joined_hash(images, &file_stamps(&self.files)?))
    }

    /// Like [`CacheColumns::with_files`], with the files as they were before their columns were
    /// opened. So a later change differs from it.
    pub(super) fn with_opened_files(&self, images: HexHash128) -> HexHash128 {
        joined_hash(images, &self.stamps)
    }

    /// Begins the columns of a shard, to count their bytes.
    ///
    /// # Errors
    /// None: nothing is written.
    pub(super) fn counted(&self) -> Result<ShardColumns<io::Sink>> {
        ShardColumns::begin(io::sink(), self.fields()).map_err(|e| Error::io("count columns", e))
    }

    /// Begins the columns of a shard in `folder`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn spooled(&self, folder: &Path) -> Result<ShardColumns<SpooledTempFile>> {
        let spool = tempfile::spooled_tempfile_in(IN_MEMORY, folder);
        ShardColumns::begin(spool, self.fields())
            .map_err(|e| Error::io_at("write columns in", folder, e))
    }
}

/// The columns of one shard, while its samples are written.
#[derive(Debug)]
pub(super) struct ShardColumns<W> {
    writer: ArrowWriter<W>,
}

impl<W: Write> ShardColumns<W> {
    fn begin(out: W, fields: Vec<(String, ColumnKind)>) -> io::Result<Self> {
        let writer = ArrowWriter::new(out, fields)?;
        Ok(Self { writer })
    }

    /// The most bytes that the columns take in the tar if they end after one more row.
    pub(super) fn most_bytes_with(&self, row: &ArrowRow) -> u64 {
        member_bytes(COLUMNS_MEMBER, self.writer.most_bytes_with(row))
    }

    /// Adds the row of the next sample.
    pub(super) fn push(&mut self, row: ArrowRow) -> io::Result<()> {
        self.writer.push(row)
    }

    /// The file, and its bytes.
    pub(super) fn finish(self) -> io::Result<(W, u64)> {
        self.writer.finish()
    }
}

impl ShardColumns<SpooledTempFile> {
    /// The file from its beginning, and its bytes.
    pub(super) fn finish_and_rewind(self) -> io::Result<(impl Read, u64)> {
        let (mut spool, bytes) = self.finish()?;
        spool.rewind()?;
        Ok((spool, bytes))
    }
}
