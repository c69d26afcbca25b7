//! Objects that are in packs of other lists on this machine, so that a list that has grown downloads
//! only what is new.
//!
//! Runs in the fetcher. A pack is read only after its checksum was compared with the one of its
//! download. An object is the same if its address, its length and its fingerprint are.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::OnceCell;
use twox_hash::xxhash3_128::Hasher;

use crate::data::shard::manifest::HexHash128;
use crate::error::lost_picture;
use crate::remote::fetch::checksums::ShardChecksums;
use crate::remote::fetch::lease::PART_END;
use crate::remote::fetch::object_pack::{PackedObject, places};
use crate::remote::fetch::tar_list::{FOLDER_BEGIN, LIST, TarList};

/// Other lists that are read, the newest first.
const MOST_LISTS: usize = 4;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// A pack of another list.
#[derive(Debug)]
struct FormerPack {
    path: PathBuf,
    bytes: u64,
    hash: HexHash128,
    /// The file that has this checksum. None for another one.
    checked: OnceCell<Option<FileMark>>,
}

/// What tells that a file is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileMark {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileMark {
    fn of(meta: &Metadata) -> Self {
        Self {
            inode: meta.ino(),
            bytes: meta.len(),
            changed: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}

/// The objects in the packs of other lists.
#[derive(Debug, Default)]
pub(super) struct FormerObjects {
    packs: Vec<FormerPack>,
    /// Name, pack and place of each, sorted.
    places: Vec<(u128, u32, u64)>,
}

impl FormerObjects {
    /// Those in the folders beside `own`.
    pub(super) async fn beside(own: &Path) -> Self {
        let entries = own.parent().and_then(|dir| fs::read_dir(dir).ok());
        let others = entries.into_iter().flatten().flatten().filter(|entry| {
            let name = entry.file_name();
            let is_set = name
                .to_str()
                .is_some_and(|name| name.starts_with(FOLDER_BEGIN));
            is_set && entry.path() != own
        });
        let mut lists: Vec<(SystemTime, PathBuf)> = others
            .filter_map(|entry| {
                let list = entry.path().join(LIST).metadata().ok()?;
                Some((list.modified().ok()?, entry.path()))
            })
            .collect();
        lists.sort();
        let mut found = Self::default();
        for (_, folder) in lists.iter().rev().take(MOST_LISTS) {
            found.add(folder);
            // The consumer checks that its fetcher responds.
            tokio::task::yield_now().await;
        }
        found.places.sort_unstable();
        found
    }

    fn add(&mut self, folder: &Path) {
        let Ok(list) = TarList::read(folder) else {
            return;
        };
        if !list.is_of_addresses() {
            return;
        }
        let checksums = ShardChecksums::read(folder, list.shards.len());
        for (number, (shard, name)) in list.shards.iter().zip(list.names()).enumerate() {
            let Some(hash) = checksums.get(number) else {
                continue;
            };
            let paths = [folder.join(&name), folder.join(format!("{name}{PART_END}"))];
            let is_whole = |path: &&PathBuf| {
                let meta = fs::symlink_metadata(path);
                meta.is_ok_and(|meta| meta.is_file() && meta.len() == shard.bytes)
            };
            let Some(path) = paths.iter().find(is_whole) else {
                continue;
            };
            let pack = self.packs.len() as u32;
            self.packs.push(FormerPack {
                path: path.clone(),
                bytes: shard.bytes,
                hash,
                checked: OnceCell::new(),
            });
            let objects = shard.packed.iter().zip(places(&shard.packed));
            let there = objects.filter(|(object, _)| object.dead.is_none());
            self.places
                .extend(there.map(|(object, place)| (name_of(object), pack, place.at)));
        }
    }

    /// The bytes of an object. `None` if no other list has them.
    pub(super) async fn read(&self, object: &PackedObject) -> Option<Vec<u8>> {
        let name = name_of(object);
        let first = self.places.partition_point(|place| place.0 < name);
        for (_, pack, at) in self.places[first..]
            .iter()
            .take_while(|place| place.0 == name)
        {
            let pack = self.packs.get(*pack as usize)?;
            let checked = pack.checked.get_or_init(|| check(pack)).await;
            let Some(mark) = checked else {
                continue;
            };
            // It may be removed, or written again.
            let Ok(file) = File::open(&pack.path) else {
                continue;
            };
            let is_same = file
                .metadata()
                .is_ok_and(|meta| FileMark::of(&meta) == *mark);
            if let (true, Ok(Some(bytes))) = (is_same, object_at(&file, *at, object.bytes)) {
                return Some(bytes);
            }
        }
        None
    }
}

/// Reads bytes of a pack.
pub(super) fn bytes_at(file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut found = vec![0; bytes as usize];
    file.read_exact_at(&mut found, at)?;
    Ok(found)
}

/// Reads an object of a pack. `None` if a reason is in its place.
pub(super) fn object_at(file: &File, at: u64, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let object = bytes_at(file, at, bytes)?;
    Ok((!lost_picture::is_in_place(&object)).then_some(object))
}

/// What names the bytes of an object.
fn name_of(object: &PackedObject) -> u128 {
    let mut hasher = Hasher::new();
    hasher.write(&object.bytes.to_le_bytes());
    hasher.write(&(object.object.len() as u64).to_le_bytes());
    hasher.write(object.object.as_bytes());
    hasher.write(object.state.as_bytes());
    hasher.finish_128()
}

async fn check(pack: &FormerPack) -> Option<FileMark> {
    let file = File::open(&pack.path).ok()?;
    let mark = FileMark::of(&file.metadata().ok()?);
    let hash = hash_of(&file).await.ok()?;
    (hash == pack.hash && mark.bytes == pack.bytes).then_some(mark)
}

/// The checksum of a file.
///
/// # Errors
/// It cannot be read.
pub(super) async fn hash_of(file: &File) -> io::Result<HexHash128> {
    let (mut hasher, mut at) = (Hasher::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read_at(&mut piece, at)? {
            0 => return Ok(HexHash128(hasher.finish_128())),
            n => {
                hasher.write(&piece[..n]);
                at += n as u64;
                // The consumer checks that its fetcher responds.
                tokio::task::yield_now().await;
            }
        }
    }
}
