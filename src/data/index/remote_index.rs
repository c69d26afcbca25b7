//! The index of tar shards that lie in an object store: made of them as they come to a folder,
//! one after the other, and kept in a file there.
//!
//! Used in the consumer; the fetcher reads the checksums that stand in front of a kept index.
//! Shards are named by their addresses, never by their files, which come and go. The form of the
//! file is that of other kept indexes (`kept`). The index of damaged shards is kept as well, with
//! what is lost: nobody reads their headers again.

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

/// Shards of an object store, read in their order while they come.
#[derive(Debug)]
pub(crate) struct RemoteIndexBuilder<'a> {
    /// The folder that they come to.
    folder: &'a Path,
    options: &'a ShardOptions,
    /// Of all of them together, for people.
    address: &'a str,
    paths: Vec<PathBuf>,
    addresses: Vec<String>,
    found: Vec<ShardScan>,
    hashes: Vec<HexHash128>,
}

/// What stands in front of the index.
#[derive(Serialize, Deserialize)]
struct RemoteIndexNote {
    /// What is kept here, for people.
    of: String,
    /// The name of the folder of these shards, as they are.
    set: String,
    /// XXH3-128 of each shard, in their order.
    hashes: Vec<HexHash128>,
    damaged: Vec<DamagedShard>,
    #[serde(flatten)]
    scan: ScanSummary,
}

impl<'a> RemoteIndexBuilder<'a> {
    /// None so far.
    ///
    /// # Errors
    /// Options that cannot be.
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

    /// The name of the file that the index of such options is kept in.
    pub(crate) fn file_name(options: &ShardOptions) -> String {
        format!(
            "{NAME_BEGIN}{}{NAME_END}",
            index_cache::name_of_options(options)
        )
    }

    /// Whether a name is one of those.
    #[cfg(feature = "stores")]
    pub(crate) fn is_file_name(name: &str) -> bool {
        name.starts_with(NAME_BEGIN) && name.ends_with(NAME_END)
    }

    /// The shard that comes next is there, as `name`: its members and its checksum.
    ///
    /// # Errors
    /// A shard that cannot be read or is no tar; labels that cannot be.
    pub(crate) fn read(&mut self, name: &str, address: String) -> Result<()> {
        let path = self.folder.join(name);
        let named = |e| of_store(e, &path, &address);
        let mut found = shards::read_one(&path, self.folder, self.options).map_err(named)?;
        let damaged = found.report.damaged.iter_mut().chain(&mut found.tail);
        damaged.for_each(|damaged| damaged.path = PathBuf::from(&address));
        let hash = file_hash(&path)
            .ok_or_else(|| Error::dataset(&path, "cannot be read: look at this folder's disk"))?;
        self.paths.push(path);
        self.addresses.push(address);
        self.found.push(found);
        self.hashes.push(hash);
        Ok(())
    }

    /// Keeps the index of all that were read in the folder, which may take `most` bytes for it
    /// where it has a limit.
    ///
    /// # Errors
    /// Labels of several kinds, no samples at all; a file that cannot be written.
    pub(crate) fn save(self, most: Option<u64>) -> Result<()> {
        let named = |e| {
            let shards = self.paths.iter().zip(&self.addresses);
            let e = shards.fold(e, |e, (path, address)| of_store(e, path, address));
            of_store(e, self.folder, self.address)
        };
        let joined = shards::join(self.folder, &self.paths, self.found, self.options);
        let (content, report) = joined.map_err(named)?;
        // Whoever opens it says where the shards are: no path of this machine is in it.
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
                    "leaves {} for the index of {}, which takes {}: give more than four times that, \
                     or none",
                    crate::error::size_rounded_down(most),
                    self.address,
                    crate::error::size_rounded_up(bytes.len() as u64)
                ),
            ));
        }
        // All ranks that make it write the same.
        replace_by(&path, &bytes)
    }
}

/// The checksums of the shards whose index is kept in `file`; none where no whole one is there.
#[cfg(feature = "stores")]
pub(crate) fn stored_hashes(file: &Path) -> Option<Vec<HexHash128>> {
    let note = index_cache::note_of(file)?;
    Some(
        serde_json::from_slice::<RemoteIndexNote>(&note)
            .ok()?
            .hashes,
    )
}

/// Whether these are the bytes of a file that the index of shards of these names and lengths in
/// `folder` is kept in.
#[cfg(feature = "stores")]
pub(crate) fn is_index_file(bytes: &[u8], folder: &Path, shards: &[(String, u64)]) -> bool {
    matches!(read_kept(bytes, folder, shards), Ok(Some(_)))
}

/// The index that is kept in `file`, of shards of these names and lengths in `folder`; none where
/// it is damaged, or of another version.
///
/// # Errors
/// A file that cannot be read.
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

/// What such a file has; none where it is damaged, of another version or of other shards.
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
    // Their files come and go.
    let index = index.rebased(folder, &vec![FileStamp::default(); shards.len()])?;
    let is_named =
        |(number, (name, _)): (u64, &(String, u64))| index.shard_path(number) == folder.join(name);
    Ok((0..).zip(shards).all(is_named).then_some((note, index)))
}

/// The folder of a set is called by what its shards are like.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// An index of shards of these names in `folder` of which nothing is known: one sample for each,
/// in their order.
///
/// # Errors
/// When the system gives no memory.
pub(crate) fn placeholder_index(folder: &Path, names: &[String]) -> Result<Index> {
    placeholder_subset(folder, names, &|_| true)
}

/// The same, with samples of those shards alone that are wanted.
///
/// # Errors
/// When the system gives no memory.
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

/// The error of a file at `path`, as one of what lies at `address`.
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
            // A shard of one name is never inside of another.
            let path = path.display().to_string();
            Error::dataset(about, what.replace(&path, address))
        }
        other => other,
    }
}
