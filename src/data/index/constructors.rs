//! The public constructors of [`Index`], one per kind of source, and the functions that save one.
//!
//! Run in the consumer. Other modules read the sources.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::data::columns::AvailableColumn;
use crate::data::index::arrow::{self, ArrowFiles};
use crate::data::index::cifar::{self, CifarOptions};
use crate::data::index::folder::{self, FolderOptions};
use crate::data::index::list::{self, ListOptions};
use crate::data::index::parquet::{self, ParquetOptions};
use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::data::index::shards::{self, ShardOptions};
use crate::data::index::table::{self, TableOptions};
use crate::data::index::{cache_columns, index_cache, index_file, open_cache};
use crate::data::shard::manifest::CacheManifest;
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};
use crate::sys::regular_file::FileStamp;

impl Index {
    /// Every image under a folder: class sub-folders, or a flat folder.
    ///
    /// Samples are sorted by the bytes of their relative path, like the output of
    /// `find | LC_ALL=C sort`. Classes are sorted by the bytes of their name.
    ///
    /// # Errors
    /// A folder that cannot be read or has no images; sub-folders that are splits or parts of a
    /// detection data set; labels in a metadata file that would be ignored.
    pub fn folder(root: &Path, options: &FolderOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = folder::scan(root, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of a list file of `path label` lines, in the file's order.
    ///
    /// # Errors
    /// A file that cannot be read or is not a list; an invalid line, which the error names; no
    /// samples; options that do not fit the file.
    pub fn list(file: &Path, options: &ListOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = list::read(file, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of a table, in the file's order: CSV with a header line (`.csv`, `.tsv`), or
    /// one JSON object per line (`.jsonl`, `.ndjson`).
    ///
    /// # Errors
    /// A file that cannot be read or is not a table; missing or ambiguous columns; an invalid
    /// record, which the error names; no samples; options that do not fit the file.
    pub fn table(file: &Path, options: &TableOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = table::read(file, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// Whether `path` names a table, by its extension.
    pub fn names_table(path: &Path) -> bool {
        table::has_table_extension(path)
    }

    /// The samples of Parquet files, as Hugging Face writes them, in the order of `files` and of
    /// their rows.
    ///
    /// Of uncompressed image pages only lengths are read. Compressed pages are decompressed once
    /// here, and again when their samples are used.
    ///
    /// # Errors
    /// A file that cannot be read or is not Parquet; no image column, or several; labels of
    /// several kinds; a row without a label; no rows. Without the feature `parquet`, every call.
    pub fn parquet(files: &[PathBuf], options: &ParquetOptions) -> Result<(Self, ScanReport)> {
        parquet::open(files, options)
    }

    /// The samples of Arrow files and streams, as Hugging Face's `datasets` and pyarrow write them.
    /// An image is bytes, a path, or a struct of both.
    ///
    /// Reads schema, offsets, labels and paths, and no image. The options are those of Parquet
    /// files.
    ///
    /// # Errors
    /// A file that cannot be read or is not of Arrow; compressed buffers; no image column, or
    /// several; labels of several kinds; a row without a label; no rows.
    pub fn arrow(files: &ArrowFiles, options: &ParquetOptions) -> Result<(Self, ScanReport)> {
        arrow::open(files, options)
    }

    /// Whether `path` names Arrow files: a path or pattern that ends in `.arrow` or `.feather`, a
    /// folder of Hugging Face's `save_to_disk`, or a folder of such files without images and
    /// sub-folders.
    pub fn names_arrow(path: &Path) -> bool {
        arrow::is_named(path)
    }

    /// The Arrow files that `path` names: the path itself, the matches of a pattern, the files that
    /// the `state.json` of `save_to_disk` names, or those of a folder, sorted by the bytes of their
    /// names.
    ///
    /// # Errors
    /// A pattern without matches; a folder with several splits or data sets; an invalid
    /// `state.json`.
    pub fn expand_arrow(path: &Path) -> Result<ArrowFiles> {
        arrow::expand(path)
    }

    /// The samples of a folder of CIFAR's batches, from its archive for Python. The pickles are
    /// parsed and never executed.
    ///
    /// # Errors
    /// A folder without such batches, an archive that was not unpacked, or a file with anything
    /// other than a batch.
    pub fn cifar(folder: &Path, options: &CifarOptions) -> Result<(Self, ScanReport)> {
        cifar::open(folder, options)
    }

    /// Whether `path` names CIFAR's batches: a folder that has some, or their archive.
    /// [`Index::cifar`] rejects the archive with the advice to unpack it.
    pub fn names_cifar(path: &Path) -> bool {
        cifar::is_named(path)
    }

    /// Whether `path` names Parquet files: a path or pattern (`train-*.parquet`) with this
    /// extension, or a folder of such files without images and sub-folders.
    pub fn names_parquet(path: &Path) -> bool {
        parquet::is_named(path)
    }

    /// The Parquet files that `path` names: the path itself, the matches of a pattern, or the
    /// files of a folder, sorted by the bytes of their names.
    ///
    /// # Errors
    /// A pattern without matches, or a folder with files of several splits.
    pub fn expand_parquet(path: &Path) -> Result<Vec<PathBuf>> {
        parquet::expand(path)
    }

    /// The samples of uncompressed tar shards, as WebDataset writes them, in the order of `shards`
    /// and of their members.
    ///
    /// Reads headers and labels, and no image. If DALI's index beside a shard is newer than the
    /// shard, it is read instead of the headers. Damage in a shard loses only the samples that it
    /// overlaps, and the report lists it.
    ///
    /// # Errors
    /// A shard that cannot be read or is not a tar; labels of several kinds; samples with and
    /// samples without labels; no samples.
    pub fn from_shards(shards: &[PathBuf], options: &ShardOptions) -> Result<(Self, ScanReport)> {
        Self::stamped(shards, |shards| shards::open(shards, options))
    }

    /// Like [`Index::from_shards`], and then writes DALI's index `SHARD.idx` beside each shard, as
    /// DALI's `wds2idx` does. Each file is written completely or not at all.
    ///
    /// The third value has one entry per shard, in their order: the path of its index, or the
    /// reason why it was not written. Reasons are: the shard is damaged; it lacks the blocks of
    /// zeros that end a tar, so it may be cut off; the name of a member does not fit an index; the
    /// file cannot be written.
    ///
    /// # Errors
    /// The errors of [`Index::from_shards`]. No index is written then.
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

    /// The index that `open` returns, with the stamps that the shards had before it read them.
    fn stamped(
        shards: &[PathBuf],
        open: impl FnOnce(&[PathBuf]) -> Result<(Self, ScanReport)>,
    ) -> Result<(Self, ScanReport)> {
        // Before the shards are read, so that a change during the read is noticed.
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
    /// `train-{000..123}.tar`, globs such as `train-*.tar`. The matches of a glob are sorted by
    /// bytes.
    ///
    /// # Errors
    /// A glob without matches, a path that is named twice, or an address (`s3://`, `pipe:`).
    /// Shards are memory-mapped, so they must be files.
    pub fn expand_shards(patterns: &[impl AsRef<OsStr>]) -> Result<Vec<PathBuf>> {
        shard_patterns::expand_all(patterns)
    }

    /// Whether `text` names tar shards.
    ///
    /// True for the extensions `.tar`, `.tar.gz` and `.tgz`, for a pattern if no file has its
    /// name, and for an address (`s3://`, `pipe:`). False for a folder. [`Index::from_shards`]
    /// rejects compressed shards and addresses, with advice.
    pub fn names_shards(text: impl AsRef<OsStr>) -> bool {
        let text = text.as_ref();
        let path = Path::new(text);
        !path.is_dir()
            && (shards::has_tar_extension(path)
                || (shard_patterns::is_pattern(text) && !path.exists())
                || shard_patterns::is_elsewhere(text))
    }

    /// Whether `text` has the extension of tar shards or is a pattern. Does not look at any file.
    pub(crate) fn names_tars(text: impl AsRef<OsStr>) -> bool {
        let text = text.as_ref();
        shards::has_tar_extension(Path::new(text)) || shard_patterns::is_pattern(text)
    }

    /// Writes DALI's index `SHARD.idx` beside each shard, as DALI's `wds2idx` does, and returns
    /// the paths of the indexes. Each file is written completely or not at all. Reads no labels.
    ///
    /// # Errors
    /// The first shard that is not a tar, is damaged, lacks the blocks of zeros that end a tar, or
    /// has a member whose name does not fit an index. The shards before it have their indexes.
    pub fn write_dali_indexes(shards: &[PathBuf]) -> Result<Vec<PathBuf>> {
        shards
            .iter()
            .map(|path| shards::write_dali_index(path))
            .collect()
    }

    /// Reads an index that [`Index::save`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, is not a saved index, is damaged, or is of another version.
    pub fn load(file: &Path) -> Result<Self> {
        index_file::load(file)
    }

    /// The samples of a cache that `featherload cache build` wrote to `folder`. Reads its
    /// manifest, its index and the lengths of its shards.
    ///
    /// # Errors
    /// A cache that is not complete, or whose files do not match its manifest.
    pub fn cache(folder: &Path) -> Result<Self> {
        open_cache::open(folder)
    }

    /// The sealed index of the cache in `folder`, with the root `/`. If `manifest` is given, the
    /// index must match it.
    ///
    /// # Errors
    /// An index that is missing, damaged, of another version or of another cache.
    pub(crate) fn of_cache(folder: &Path, manifest: Option<&CacheManifest>) -> Result<Self> {
        open_cache::load(folder, manifest)
    }

    /// Whether `folder` has the manifest of a cache, which may be incomplete.
    pub fn is_cache(folder: &Path) -> bool {
        open_cache::is_cache(folder)
    }

    /// The columns that the cache in `folder` has: those that it was built with.
    ///
    /// # Errors
    /// A folder that is not a cache; a manifest that is damaged.
    pub fn columns_of_cache(folder: &Path) -> Result<Vec<AvailableColumn>> {
        cache_columns::available(folder)
    }

    /// Whether bytes begin like the manifest of a cache.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(crate) fn is_manifest(bytes: &[u8]) -> bool {
        open_cache::is_manifest(bytes)
    }

    /// Whether the file at `path` begins like the manifest of a cache's shard.
    pub(crate) fn is_shard_manifest(path: &Path) -> bool {
        open_cache::is_shard_manifest(path)
    }

    /// Whether the file at `path` begins like an index that [`Index::save`] wrote, or like one that
    /// [`Index::from_shards`] kept. [`Index::load`] rejects the latter with an explanation.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn is_saved(path: &Path) -> Result<bool> {
        index_file::is_saved(path)
    }

    /// Like [`Index::cache`], for a cache whose shards may be absent. A sample fails if its shard
    /// is absent when it is opened. `folder` must be the path that all processes use.
    pub(crate) fn remote_cache(folder: &Path) -> Result<Self> {
        open_cache::open_remote(folder)
    }

    /// The user's cache folder for featherload. `None` if no environment variable defines one.
    pub(crate) fn user_cache() -> Option<PathBuf> {
        index_cache::user_cache()
    }

    /// Writes the index to a file, completely or not at all.
    ///
    /// # Errors
    /// An existing file that is not a saved index, such as the list that this index was made from;
    /// a file that cannot be written.
    pub fn save(&self, file: &Path) -> Result<()> {
        self.check_in_files("a saved index")?;
        index_file::refuse_other_file(file)?;
        self.write(file)
    }

    /// Like [`Index::save`], but replaces any existing file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        index_file::save(self.sealed.bytes(), file)
    }
}
