//! The columns of a cache: an Arrow file after the samples of each shard, read where it lies.
//!
//! In the consumer. The cache's manifest has names and types, and the place of each file. So a run
//! starts without reading a shard, and shards may come later. Memory: 56 bytes for each shard, and
//! the places of the columns' buffers of shards that were read.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::data::arrow::{ArrowBytes, ArrowColumn, ArrowFile};
use crate::data::columns::AvailableColumn;
use crate::data::columns::column_set::{ColumnReader, NamedReaders};
use crate::data::columns::values::{ColumnBuilder, ColumnKind};
use crate::data::index::Index;
use crate::data::index::column_names::{listed, quoted};
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, ColumnEntry, ColumnsPlace, Manifest,
};
use crate::error::{Error, Result};

/// Shards that stay open. Those of an object store do not: one is open while a batch reads its values,
/// and their space is needed once they are removed.
const KEPT_OPEN: usize = 32;

/// The columns that the cache in `folder` has.
///
/// # Errors
/// A manifest that cannot be read.
pub(crate) fn available(folder: &Path) -> Result<Vec<AvailableColumn>> {
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    let columns = manifest.columns.iter();
    Ok(columns
        .map(|column| AvailableColumn::new(&column.name, &column.kind))
        .collect())
}

/// The columns `names` of the cache in `folder`, which has this index.
///
/// # Errors
/// The cache has no such column; a manifest that does not fit the index.
pub(crate) fn open_columns(folder: &Path, index: &Index, names: &[String]) -> Result<NamedReaders> {
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    if manifest.columns.is_empty() {
        return Err(Error::dataset(
            folder,
            "this cache has no columns: build it again with `cache build --columns`, or give the \
             data set that it was built of",
        ));
    }
    let mut firsts = Vec::with_capacity(manifest.shards.len() + 1);
    let mut samples = 0u64;
    for shard in &manifest.shards {
        firsts.push(samples);
        samples = samples.saturating_add(shard.samples);
    }
    firsts.push(samples);
    if index.shards() != manifest.shards.len() as u64 || index.len() != samples {
        return Err(Error::dataset(
            folder,
            "the index is not of all samples of this cache, so columns have no rows for it: give \
             the folder of the cache",
        ));
    }
    let kind_of = |name: &String| -> Result<ColumnKind> {
        let found = manifest.columns.iter().find(|column| column.name == *name);
        let Some(ColumnEntry { kind, .. }) = found else {
            let known: Vec<&str> = manifest.columns.iter().map(|c| c.name.as_str()).collect();
            return Err(Error::dataset(
                folder,
                format!(
                    "this cache has no column {} (its columns: {}): name another, or build the \
                     cache again with other `--columns`",
                    quoted(name),
                    listed(&known)
                ),
            ));
        };
        ColumnKind::parse(kind).ok_or_else(|| {
            Error::dataset(
                folder,
                format!(
                    "its manifest has an unknown type of a column: {}",
                    quoted(kind)
                ),
            )
        })
    };
    let mut fields = Vec::with_capacity(names.len());
    for name in names {
        fields.push((name.clone(), kind_of(name)?));
    }
    let shards = Arc::new(CacheShards {
        places: manifest.shards.iter().map(|shard| shard.columns).collect(),
        read: (0..manifest.shards.len())
            .map(|_| OnceLock::new())
            .collect(),
        keeps_open: !index.is_remote(),
        open: Mutex::default(),
        firsts,
        fields: fields.clone(),
    });
    let readers = fields
        .into_iter()
        .enumerate()
        .map(|(number, (name, kind))| {
            let shards = shards.clone();
            let reader: Box<dyn ColumnReader> = Box::new(CacheColumn {
                number,
                kind,
                shards,
            });
            (name, reader)
        });
    Ok(readers.collect())
}

/// The columns that a run reads, in all shards.
#[derive(Debug)]
struct CacheShards {
    /// The first sample of each shard, and the number of all samples.
    firsts: Vec<u64>,
    places: Vec<Option<ColumnsPlace>>,
    /// For each shard that was read, where its values are.
    read: Vec<OnceLock<Box<[ArrowColumn]>>>,
    fields: Vec<(String, ColumnKind)>,
    keeps_open: bool,
    /// The last one used is the last.
    open: Mutex<Vec<OpenShard>>,
}

/// A shard, and its bytes.
#[derive(Debug, Clone)]
struct OpenShard {
    number: u64,
    file: Arc<File>,
    bytes: u64,
}

/// One column of a cache.
#[derive(Debug)]
struct CacheColumn {
    /// Its place among the columns that the run reads.
    number: usize,
    kind: ColumnKind,
    shards: Arc<CacheShards>,
}

impl ColumnReader for CacheColumn {
    fn kind(&self) -> ColumnKind {
        self.kind
    }

    fn read(&self, index: &Index, id: u64, into: &mut ColumnBuilder) -> Result<()> {
        let none = || Error::config(format!("there is no sample {id}"));
        let shard = index.part(id).ok_or_else(none)?.shard;
        let shard = self.shards.shard(index, id, shard)?;
        let read = self.shards.read(&shard, id, self.number, into);
        read.map_err(|what| {
            let name = quoted(&self.shards.fields[self.number].0);
            Error::dataset(
                index.file(id),
                format!("sample {id}, column {name}: {what}: run `featherload cache verify`"),
            )
        })
    }

    fn file(&self, index: &Index, id: u64) -> Option<u64> {
        index.part(id).map(|part| part.shard)
    }

    fn end_of_rows(&self) {
        self.shards.close_temporary();
    }
}

impl CacheShards {
    /// Closes shards that do not stay.
    fn close_temporary(&self) {
        if !self.keeps_open {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.clear();
        }
    }

    /// The shard of a sample, open.
    fn shard(&self, index: &Index, id: u64, shard: u64) -> Result<OpenShard> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|known| known.number == shard) {
            open[at..].rotate_left(1);
            return Ok(open[open.len() - 1].clone());
        }
        let fault = |fault| Error::Sample {
            id,
            path: index.path(id),
            fault,
        };
        let mut path = Vec::new();
        let (name, _) = index.locate(id, &mut path).map_err(fault)?;
        let (file, bytes) = index.open_shard(shard, name).map_err(fault)?;
        let opened = OpenShard {
            number: shard,
            file: Arc::new(file),
            bytes: bytes as u64,
        };
        let most = if self.keeps_open { KEPT_OPEN } else { 1 };
        if open.len() >= most {
            open.remove(0);
        }
        open.push(opened.clone());
        Ok(opened)
    }

    /// Adds a value of a sample, which is in `shard`.
    fn read(
        &self,
        shard: &OpenShard,
        id: u64,
        number: usize,
        into: &mut ColumnBuilder,
    ) -> Result<(), String> {
        let outside = || "is not in the columns of its shard".to_owned();
        let at = shard.number as usize;
        let place = self.places.get(at).copied().flatten();
        let place = place.ok_or_else(outside)?;
        let end = place.at.checked_add(place.bytes);
        let end = end.filter(|end| *end <= shard.bytes).ok_or_else(|| {
            let (at, bytes) = (place.at, place.bytes);
            format!(
                "the cache's manifest has its columns in {bytes} bytes from byte {at}, and the \
                 shard has {} bytes",
                shard.bytes
            )
        })?;
        let (first, samples) = match self.firsts.get(at..at + 2) {
            Some([first, next]) => (*first, next - first),
            _ => return Err(outside()),
        };
        let columns = match self.read[at].get() {
            Some(columns) => columns,
            None => {
                let found = self.find(&shard.file, place.at..end, samples)?;
                self.read[at].get_or_init(|| found)
            }
        };
        let row = id.checked_sub(first).filter(|row| *row < samples);
        let row = row.ok_or_else(outside)?;
        let mut bytes = ArrowBytes::at_random(&shard.file, end);
        columns[number].read_from(&mut bytes, row, into)
    }

    /// Where the values of a shard are, for all columns that the run reads.
    fn find(
        &self,
        file: &Arc<File>,
        part: std::ops::Range<u64>,
        samples: u64,
    ) -> Result<Box<[ArrowColumn]>, String> {
        let arrow = ArrowFile::read_part(file.clone(), part)?;
        if arrow.rows != samples {
            return Err(format!(
                "its shard has {samples} samples, and {} rows of columns",
                arrow.rows
            ));
        }
        let find = |(name, kind): &(String, ColumnKind)| {
            let mut fields = arrow.fields().iter();
            let number = fields.position(|field| field.name == *name);
            let column = match number {
                Some(number) => ArrowColumn::find(&arrow, &[number])?,
                None => return Err("its shard lacks it".to_owned()),
            };
            match column.field.column_kind() == Some(*kind) {
                true => Ok(column),
                false => Err("it has another type in its shard".to_owned()),
            }
        };
        self.fields.iter().map(find).collect()
    }
}
