//! The ways to an index: a folder, a list, a table, tar shards, Parquet files, CIFAR's batches, a
//! cache, a saved one; and how it is saved.
//!
//! In the consumer. Never in here: how any of them is read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::data::index::cifar::{self, CifarOptions};
use crate::data::index::folder::{self, FolderOptions};
use crate::data::index::list::{self, ListOptions};
use crate::data::index::parquet::{self, ParquetOptions};
use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::data::index::shards::{self, ShardOptions};
use crate::data::index::table::{self, TableOptions};
use crate::data::index::{index_cache, index_file, open_cache};
use crate::data::shard::manifest::CacheManifest;
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};
use crate::sys::regular_file::FileStamp;

impl Index {
    /// Every image under a folder: class sub-folders, or a flat folder.
    ///
    /// Samples are sorted by the bytes of their relative path, as
    /// `find | LC_ALL=C sort` would; classes by the bytes of their name.
    pub fn folder(root: &Path, options: &FolderOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = folder::scan(root, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of a list file of `path label` lines, in the file's order.
    pub fn list(file: &Path, options: &ListOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = list::read(file, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of a table, in the file's order: CSV with a header line (`.csv`,
    /// `.tsv`) or a JSON object a line (`.jsonl`, `.ndjson`).
    pub fn table(file: &Path, options: &TableOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = table::read(file, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// Whether `path` is a table's, by its end.
    pub fn names_table(path: &Path) -> bool {
        table::has_table_extension(path)
    }

    /// The samples of Parquet files, as Hugging Face writes them, in the order of `files` and of
    /// their rows. Of pages that are not compressed only lengths are read; compressed ones are
    /// unpacked, once here and again where samples of them are used.
    ///
    /// # Errors
    /// A file that cannot be read, or is none; no column of pictures, or several; labels that
    /// are of several kinds, or that a row lacks; no rows at all. All of them, without the
    /// feature `parquet`.
    pub fn parquet(files: &[PathBuf], options: &ParquetOptions) -> Result<(Self, ScanReport)> {
        parquet::open(files, options)
    }

    /// The samples of a folder of CIFAR's batches, as its archive for Python holds them. The
    /// pickles are read and never run.
    ///
    /// # Errors
    /// A folder without such batches, an archive that was not unpacked, and a file that says
    /// more than batches do.
    pub fn cifar(folder: &Path, options: &CifarOptions) -> Result<(Self, ScanReport)> {
        cifar::open(folder, options)
    }

    /// Whether `path` names CIFAR's batches: a folder that has some, or the archive of them,
    /// which reading refuses with what to do.
    pub fn names_cifar(path: &Path) -> bool {
        cifar::is_named(path)
    }

    /// Whether `path` names Parquet files: by its end, which a pattern (`train-*.parquet`) may
    /// have too, or as a folder that has such files and neither pictures nor folders.
    pub fn names_parquet(path: &Path) -> bool {
        parquet::is_named(path)
    }

    /// The Parquet files that `path` names: itself, those of a pattern, or those of a folder by
    /// the bytes of their names.
    ///
    /// # Errors
    /// A pattern that finds nothing, and a folder with files of several splits.
    pub fn expand_parquet(path: &Path) -> Result<Vec<PathBuf>> {
        parquet::expand(path)
    }

    /// The samples of uncompressed tar shards, as WebDataset writes them, in the
    /// order of `shards` and of their members. Reads headers and labels, never a
    /// picture; DALI's index beside a shard, when it is newer, takes the place of
    /// its headers.
    ///
    /// # Errors
    /// A shard that cannot be read or is no tar; labels that are of several kinds,
    /// or that some samples have and some have not; no samples at all. Damage
    /// costs what is damaged, and stands in the report.
    pub fn from_shards(shards: &[PathBuf], options: &ShardOptions) -> Result<(Self, ScanReport)> {
        Self::stamped(shards, |shards| shards::open(shards, options))
    }

    /// As [`Index::from_shards`], and then writes DALI's index, `SHARD.idx`, beside
    /// each shard, each whole or not at all, as its `wds2idx` does. With it comes, in
    /// the order of the shards, where each is; or the error that says why there is
    /// none: the shard is damaged, or lacks the blocks of zeros that end a tar, so
    /// that it may be cut; or a member's name cannot stand in an index; or it cannot
    /// be written.
    ///
    /// # Errors
    /// As [`Index::from_shards`]; nothing is written then.
    pub fn from_shards_writing_idx(
        shards: &[PathBuf],
        options: &ShardOptions,
    ) -> Result<(Self, ScanReport, Vec<Result<PathBuf>>)> {
        let mut written = Vec::new();
        let (index, report) = Self::stamped(shards, |shards| {
            let (index, report, of_shards) = shards::open_and_write_idx(shards, options)?;
            written = of_shards;
            Ok((index, report))
        })?;
        Ok((index, report, written))
    }

    /// The index that `open` makes of shards, which says what they were like.
    fn stamped(
        shards: &[PathBuf],
        open: impl FnOnce(&[PathBuf]) -> Result<(Self, ScanReport)>,
    ) -> Result<(Self, ScanReport)> {
        // In front of reading, so that a change meanwhile is noticed.
        let stamps: Vec<_> = shards.iter().map(|path| FileStamp::of(path)).collect();
        let (index, report) = open(shards)?;
        let stamps = stamps
            .into_iter()
            .zip(shards)
            .map(|(stamp, path)| stamp.map_err(|e| Error::io_at("look at", path, e)));
        let stamps = stamps.collect::<Result<Vec<_>>>()?;
        Ok((index.rebased(index.root(), &stamps)?, report))
    }

    /// The paths that `patterns` name, in their order: paths, braces such as
    /// `train-{000..123}.tar`, globs such as `train-*.tar`. Globs are sorted by
    /// bytes.
    ///
    /// # Errors
    /// A glob that finds nothing, a path that is named twice, and an address
    /// (`s3://`, `pipe:`): shards are mapped, so they must be files.
    pub fn expand_shards(patterns: &[impl AsRef<OsStr>]) -> Result<Vec<PathBuf>> {
        shard_patterns::expand_all(patterns)
    }

    /// Whether `text` names tar shards: by its end `.tar`, or that of a compressed
    /// one (`.tar.gz`, `.tgz`), which reading refuses with what to do; or, where
    /// nothing of this name is there, by the signs of a pattern or of an address
    /// (`s3://`, `pipe:`), which reading refuses as well.
    pub fn names_shards(text: impl AsRef<OsStr>) -> bool {
        let text = text.as_ref();
        let path = Path::new(text);
        !path.is_dir()
            && (shards::has_tar_extension(path)
                || (shard_patterns::is_pattern(text) && !path.exists())
                || shard_patterns::is_elsewhere(text))
    }

    /// Whether a text, wherever it leads, ends as the name of tar shards does, or is a pattern.
    pub(crate) fn names_tars(text: impl AsRef<OsStr>) -> bool {
        let text = text.as_ref();
        shards::has_tar_extension(Path::new(text)) || shard_patterns::is_pattern(text)
    }

    /// Writes DALI's index, `SHARD.idx`, beside each shard, each whole or not at
    /// all, as its `wds2idx` does; where they are. Reads no labels.
    ///
    /// # Errors
    /// The first shard that is no tar, is damaged or lacks the blocks of zeros that
    /// end one, or has a member whose name cannot stand in an index. Those in front
    /// of it have theirs by then.
    pub fn write_dali_indexes(shards: &[PathBuf]) -> Result<Vec<PathBuf>> {
        shards
            .iter()
            .map(|path| shards::write_dali_index(path))
            .collect()
    }

    /// An index that [`Index::save`] wrote.
    pub fn load(file: &Path) -> Result<Self> {
        index_file::load(file)
    }

    /// The samples of a cache that `featherload cache build` made in `folder`.
    /// Reads its manifest, its index and the lengths of its shards.
    ///
    /// # Errors
    /// A cache that is not complete, or whose files are not those of its manifest.
    pub fn cache(folder: &Path) -> Result<Self> {
        open_cache::open(folder)
    }

    /// The sealed index of the cache in `folder`, its root `/`; where `manifest` is
    /// given, the one that is meant there.
    ///
    /// # Errors
    /// One that is missing, damaged, of another version or of another cache.
    pub(crate) fn of_cache(folder: &Path, manifest: Option<&CacheManifest>) -> Result<Self> {
        open_cache::load(folder, manifest)
    }

    /// True when `folder` has a cache's manifest, complete or not.
    pub fn is_cache(folder: &Path) -> bool {
        open_cache::is_cache(folder)
    }

    /// True when the file at `path` begins as the manifest of a cache's shard.
    pub(crate) fn is_shard_manifest(path: &Path) -> bool {
        open_cache::is_shard_manifest(path)
    }

    /// True when the file at `path` begins as one that [`Index::save`] wrote; or as
    /// one that [`Index::from_shards`] kept for itself, which [`Index::load`] refuses
    /// with what it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_saved(path: &Path) -> Result<bool> {
        index_file::is_saved(path)
    }

    /// As [`Index::cache`], of a cache whose shards need not be there: opening one is an error
    /// of its sample. `folder` is given as all processes know it.
    pub(crate) fn remote_cache(folder: &Path) -> Result<Self> {
        open_cache::open_remote(folder)
    }

    /// The user's folder for what can be had again; none where no variable names one.
    pub(crate) fn user_cache() -> Option<PathBuf> {
        index_cache::user_cache()
    }

    /// Writes the index to a file: whole, or not at all.
    ///
    /// # Errors
    /// A file that is there and is no saved index, such as the list that this one was made of;
    /// what the system says.
    pub fn save(&self, file: &Path) -> Result<()> {
        index_file::refuse_other_file(file)?;
        self.write(file)
    }

    /// As [`Index::save`], in the place of whatever is there.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        index_file::save(self.sealed.bytes(), file)
    }
}
