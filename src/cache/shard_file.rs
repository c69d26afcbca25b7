//! Writes the files of one shard: the tar is a temporary file until it is complete.
//!
//! Runs in the consumer. The tar gets its final name first. Then its `.idx` is written, and last
//! its manifest, which makes the shard complete.

use std::io::BufWriter;

use tempfile::{NamedTempFile, SpooledTempFile};

use crate::cache::cache_folder::{CacheFolder, entry};
use crate::cache::columns::{CacheColumns, ShardColumns};
use crate::cache::layout::ShardFile;
use crate::cache::shard_ledger::{LedgerEntry, ShardLedger, SourceSample, idx_text};
use crate::data::arrow::ArrowRow;
use crate::data::shard::manifest::{
    COLUMNS_MEMBER, Manifest, ShardEntry, ShardManifest, SkippedEntry, TargetMembers,
};
use crate::data::shard::shard_writer::{ShardOutput, ShardWriter};
use crate::error::{Error, Result};
use crate::sys::atomic_file::{create_temporary, publish, replace_by};

/// Bytes per write. With this many, the page cache uses large folios, which cost a third as much to
/// map.
const BUFFER: usize = 4 << 20;

/// A shard that is being written.
pub(super) struct ShardFileWriter {
    number: u64,
    ledger: ShardLedger,
    writer: ShardWriter<BufWriter<NamedTempFile>>,
    columns: Option<ShardColumns<SpooledTempFile>>,
}

/// The name of a member, and its data.
pub(super) type MemberData<'a> = (&'a str, &'a [u8]);

fn entry_of<'a>((name, data): &MemberData<'a>, hash: u64) -> LedgerEntry<'a> {
    let size = data.len() as u64;
    LedgerEntry { name, size, hash }
}

impl ShardFileWriter {
    /// An empty shard of `folder`. Its first sample will have id `first_id`, and each of them these
    /// columns and targets.
    pub(super) fn begin(
        folder: &CacheFolder,
        number: u64,
        first_id: u64,
        (columns, targets): (Option<&CacheColumns>, TargetMembers),
    ) -> Result<Self> {
        let temporary = create_temporary(&ShardFile::Tar.path(folder.path(), number))?;
        Ok(Self {
            number,
            ledger: ShardLedger::new(first_id, targets),
            writer: ShardWriter::new(BufWriter::with_capacity(BUFFER, temporary)),
            columns: columns
                .map(|columns| columns.spooled(folder.path()))
                .transpose()?,
        })
    }

    /// Whether a sample with these members and columns fits into a shard of at most `most` bytes.
    pub(super) fn takes(
        &self,
        members: &[MemberData<'_>],
        row: Option<&ArrowRow>,
        most: u64,
    ) -> bool {
        let columns = self.columns.as_ref().zip(row);
        let behind = columns.map_or(0, |(columns, row)| columns.most_bytes_with(row));
        let members = members.iter().map(|m| entry_of(m, 0));
        self.ledger.takes(members, most.saturating_sub(behind))
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn samples(&self) -> u64 {
        self.ledger.samples()
    }

    /// Bytes of the tar so far.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Appends a sample. `row`: its columns, if the cache has any.
    pub(super) fn push(
        &mut self,
        folder: &CacheFolder,
        source: SourceSample,
        members: &[MemberData<'_>],
        row: Option<ArrowRow>,
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(members.len());
        for member in members {
            let placed = self.writer.append(member.0, member.1);
            let placed = placed.map_err(|e| self.failed(folder, e))?;
            entries.push(entry_of(member, placed.hash));
        }
        self.ledger.add(source, entries.into_iter());
        if let Some((columns, row)) = self.columns.as_mut().zip(row) {
            let pushed = columns.push(row);
            pushed.map_err(|e| self.failed(folder, e))?;
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, skipped: SkippedEntry) {
        self.ledger.skip(skipped);
    }

    /// Completes the three files of the shard.
    pub(super) fn finish(mut self, folder: &CacheFolder) -> Result<(ShardEntry, ShardManifest)> {
        let has_samples = self.ledger.samples() > 0;
        if let Some(columns) = self.columns.take().filter(|_| has_samples) {
            let ended = columns.finish_and_rewind().and_then(|(mut file, bytes)| {
                self.writer.append_from(COLUMNS_MEMBER, bytes, &mut file)
            });
            let placed = ended.map_err(|e| self.failed(folder, e))?;
            self.ledger.add_columns(placed.size, placed.hash);
        }
        let path = |file: ShardFile| file.path(folder.path(), self.number);
        let tar = path(ShardFile::Tar);
        let failed = |e| Error::io_at("write", &tar, e);
        let ShardOutput { out, bytes, hash } = self.writer.finish().map_err(failed)?;
        if bytes != self.ledger.bytes() {
            return Err(Error::protocol(format!(
                "{} has {bytes} bytes, but should have {}",
                tar.display(),
                self.ledger.bytes()
            )));
        }
        let temporary = out.into_inner().map_err(|e| failed(e.into_error()))?;
        publish(temporary, &tar)?;
        let manifest = self.ledger.manifest(hash);
        let text = idx_text(&manifest)?;
        replace_by(&path(ShardFile::Idx), &text)?;
        let hash = manifest.write(&path(ShardFile::Manifest))?;
        Ok((entry(self.number, &manifest, hash, &text), manifest))
    }

    fn failed(&self, folder: &CacheFolder, e: std::io::Error) -> Error {
        Error::io_at("write", ShardFile::Tar.path(folder.path(), self.number), e)
    }
}
