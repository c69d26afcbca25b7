//! The index of tar shards in an object store. It is built while the shards arrive in a local
//! folder, one after the other, and kept in a file there.
//!
//! Used in the consumer. The fetcher reads the shards' checksums in the file's note.
//!
//! - Errors name shards by their addresses, because their local files are temporary.
//! - The file has the form of `index_cache`.
//! - The index of damaged shards is kept too, together with the damage. Later runs report the
//!   damage from the file, because they do not read the shards' headers again.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::index::binary_form;
use crate::data::index::binary_form::IndexContent;
use crate::data::index::index_cache;
use crate::data::index::index_cache::ScanSummary;
use crate::data::index::open_cache::file_hash;
use crate::data::index::report::{DamagedShard, ScanReport};
use crate::data::index::shards::{self, ShardOptions, ShardScan};
use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result};
use crate::sys::atomic_file::replace_by;
use crate::sys::memory;
use crate::sys::regular_file;
use crate::sys::regular_file::FileStamp;
use crate::sys::sealed_bytes::SealedBytes;

const NAME_BEGIN: &str = "index-";
const NAME_END: &str = ".fli";

/// Builds the index of shards of an object store, which it reads in their order.
#[derive(Debug)]
pub(crate) struct RemoteIndexBuilder<'a> {
    /// The folder that the shards are downloaded to.
    folder: &'a Path,
    options: &'a ShardOptions,
    /// The address of the whole data set, for texts.
    address: &'a str,
    paths: Vec<PathBuf>,
    addresses: Vec<String>,
    found: Vec<ShardScan>,
    hashes: Vec<HexHash128>,
}

/// The note before the index in its file.
#[derive(Serialize, Deserialize)]
struct RemoteIndexNote {
    /// A description of the index, for people.
    of: String,
    /// The name of the shards' folder, which changes with the shards.
    set: String,
    /// XXH3-128 of each shard, in the order of the shards.
    hashes: Vec<HexHash128>,
    damaged: Vec<DamagedShard>,
    #[serde(flatten)]
    scan: ScanSummary,
}

impl<'a> RemoteIndexBuilder<'a> {
    /// A builder without shards.
    ///
    /// # Errors
    /// Invalid options.
    pub(crate) fn new(
        folder: &'a Path,
        address: &'a str,
        options: &'a ShardOptions,
    ) -> Result<Self> {
        shards::check(options)?;
        Ok(Self {
            folder,
            options,
            address,
            paths: Vec::new(),
            addresses: Vec::new(),
            found: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// The name of the file that keeps an index with these options.
    pub(crate) fn file_name(options: &ShardOptions) -> String {
        format!(
            "{NAME_BEGIN}{}{NAME_END}",
            index_cache::name_of_options(options)
        )
    }

    /// Whether `name` is one that [`Self::file_name`] returns.
    #[cfg(feature = "stores")]
    pub(crate) fn is_file_name(name: &str) -> bool {
        name.starts_with(NAME_BEGIN) && name.ends_with(NAME_END)
    }

    /// Reads the members of the next shard, which is the file `name`, and computes its checksum.
    ///
    /// # Errors
    /// A shard that cannot be read or is not a tar, or that has invalid labels.
    pub(crate) fn read(&mut self, name: &str, address: String) -> Result<()> {
        let path = self.folder.join(name);
        let named = |e| of_store(e, &path, &address);
        let mut found = shards::read_one(&path, self.folder, self.options).map_err(named)?;
        let damaged = found.report.damaged.iter_mut().chain(&mut found.tail);
        damaged.for_each(|damaged| damaged.path = PathBuf::from(&address));
        let hash = file_hash(&path)
            .ok_or_else(|| Error::dataset(&path, "cannot be read: check the disk of its folder"))?;
        self.paths.push(path);
        self.addresses.push(address);
        self.found.push(found);
        self.hashes.push(hash);
        Ok(())
    }

    /// Writes the index of all shards that were read to a file in the folder. The file may have at
    /// most `most` bytes.
    ///
    /// # Errors
    /// Labels of several kinds, no samples, an index of more than `most` bytes, or a file that
    /// cannot be written.
    pub(crate) fn save(self, most: Option<u64>) -> Result<()> {
        let named = |e| {
            let shards = self.paths.iter().zip(&self.addresses);
            let e = shards.fold(e, |e, (path, address)| of_store(e, path, address));
            of_store(e, self.folder, self.address)
        };
        let joined = shards::join(self.folder, &self.paths, self.found, self.options);
        let (content, report) = joined.map_err(named)?;
        // The file holds no local path. `read_kept` sets the folder of the shards.
        let index = Index::seal(Path::new("/"), content)?;
        let note = RemoteIndexNote {
            set: name_of(self.folder),
            of: format!("the index of {} shards, {}", self.paths.len(), self.address),
            hashes: self.hashes,
            damaged: report.damaged.clone(),
            scan: ScanSummary::of(&report),
        };
        let path = self.folder.join(Self::file_name(self.options));
        let note = serde_json::to_vec(&note)
            .map_err(|e| Error::io_at("write", &path, std::io::Error::other(e)))?;
        let bytes = [
            &index_cache::head(&note),
            note.as_slice(),
            index.sealed.bytes(),
        ]
        .concat();
        if let Some(most) = most.filter(|most| bytes.len() as u64 > *most) {
            return Err(Error::option(
                "fetch_limit",
                format!(
                    "leaves {} for the index of {}, which takes {}: set it to more than four times \
                     that, or remove it",
                    crate::error::size_rounded_down(most),
                    self.address,
                    crate::error::size_rounded_up(bytes.len() as u64)
                ),
            ));
        }
        // Several ranks may write the file at once. All write the same bytes.
        replace_by(&path, &bytes)
    }
}

/// The checksums of the shards whose index is kept in `file`. `None` if the file is missing or its
/// note is damaged.
#[cfg(feature = "stores")]
pub(crate) fn stored_hashes(file: &Path) -> Option<Vec<HexHash128>> {
    let note = index_cache::note_of(file)?;
    Some(
        serde_json::from_slice::<RemoteIndexNote>(&note)
            .ok()?
            .hashes,
    )
}

/// Whether `bytes` are a valid kept index of these shards in `folder`. `shards` has their names
/// and lengths.
#[cfg(feature = "stores")]
pub(crate) fn is_index_file(bytes: &[u8], folder: &Path, shards: &[(String, u64)]) -> bool {
    matches!(read_kept(bytes, folder, shards), Ok(Some(_)))
}

/// The index that is kept in `file`, of these shards in `folder`. `shards` has their names and
/// lengths. `None` if it is damaged, of another version, or of other shards.
///
/// # Errors
/// A file that cannot be read, or an index that is too large for the available memory.
pub(crate) fn open_stored(
    file: &Path,
    folder: &Path,
    shards: &[(String, u64)],
) -> Result<Option<(Index, ScanReport)>> {
    let failed = |e| Error::io_at("read", file, e);
    let (mut opened, len) = regular_file::open(file).map_err(failed)?;
    binary_form::check_room(len, memory::available_bytes())
        .map_err(|too_large| Error::dataset(file, too_large.to_string()))?;
    let mut bytes = Vec::new();
    opened.read_to_end(&mut bytes).map_err(failed)?;
    let Some((note, index)) = read_kept(&bytes, folder, shards)? else {
        return Ok(None);
    };
    let mut report = note.scan.into_report(index.len());
    report.damaged = note.damaged;
    Ok(Some((index, report)))
}

/// The note and the index in the bytes of a kept index. `None` if they are damaged, of another
/// version, or of other shards.
fn read_kept(
    bytes: &[u8],
    folder: &Path,
    shards: &[(String, u64)],
) -> Result<Option<(RemoteIndexNote, Index)>> {
    let Some((note, index)) = index_cache::parts(bytes) else {
        return Ok(None);
    };
    let (Ok(note), Ok(index)) = (
        serde_json::from_slice::<RemoteIndexNote>(note),
        Index::open(SealedBytes::new(binary_form::NAME, &[index])?),
    ) else {
        return Ok(None);
    };
    let is_of_set = note.set == name_of(folder)
        && note.hashes.len() == shards.len()
        && index.shards() == shards.len() as u64
        && index
            .check_ends(shards.iter().map(|(_, bytes)| *bytes))
            .is_ok();
    if !is_of_set {
        return Ok(None);
    }
    // The local files are temporary, so their stamps are not checked.
    let index = index.rebased(folder, &vec![FileStamp::default(); shards.len()])?;
    let is_named =
        |(number, (name, _)): (u64, &(String, u64))| index.shard_path(number) == folder.join(name);
    Ok((0..).zip(shards).all(is_named).then_some((note, index)))
}

/// The name of the shards' folder. It is derived from the shards, so it identifies them.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// An index of unread shards with these names in `folder`: one sample per shard, in their order.
///
/// # Errors
/// The system has no memory for the index.
pub(crate) fn placeholder_index(folder: &Path, names: &[String]) -> Result<Index> {
    placeholder_subset(folder, names, &|_| true)
}

/// Like [`placeholder_index`], with samples only for shards whose number `is_wanted` accepts.
///
/// # Errors
/// The system has no memory for the index.
pub(crate) fn placeholder_subset(
    folder: &Path,
    names: &[String],
    is_wanted: &dyn Fn(u64) -> bool,
) -> Result<Index> {
    let mut content = IndexContent::default();
    for (number, name) in (0..).zip(names) {
        content.begin_shard(name.as_bytes());
        if is_wanted(number) {
            content.push_part(name.as_bytes(), 0, 1);
        }
    }
    Index::seal(folder, content)
}

/// Replaces the local `path` in an error by the `address` of the shard or data set.
fn of_store(error: Error, path: &Path, address: &str) -> Error {
    match error {
        Error::Dataset {
            path: about,
            line: None,
            what,
        } if about.starts_with(path) => {
            let below = about.strip_prefix(path).unwrap_or(Path::new(""));
            let about = match below.as_os_str().is_empty() {
                true => PathBuf::from(address),
                false => Path::new(address).join(below),
            };
            // The text may contain the path too.
            let path = path.display().to_string();
            Error::dataset(about, what.replace(&path, address))
        }
        other => other,
    }
}
