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
    /// Those in the folders beside `own` that are objects of its list, too.
    pub(super) async fn beside(own: &Path) -> Self {
        let wanted = TarList::read(own).map(|list| {
            let objects = list.shards.iter().flat_map(|shard| &shard.packed);
            let mut names: Vec<u128> = objects.map(name_of).collect();
            names.sort_unstable();
            names
        });
        let wanted = wanted.unwrap_or_default();
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
            found.add(folder, &wanted);
            // The consumer checks that its fetcher responds.
            tokio::task::yield_now().await;
        }
        found.places.sort_unstable();
        found
    }

    /// Adds those of a folder that are among `wanted`, which is sorted.
    fn add(&mut self, folder: &Path, wanted: &[u128]) {
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
            let there = there.map(|(object, place)| (name_of(object), pack, place.at));
            let is_wanted = |place: &(u128, u32, u64)| wanted.binary_search(&place.0).is_ok();
            self.places.extend(there.filter(is_wanted));
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
            if is_same
                && has_header(&file, object, *at)
                && let Ok(Some(bytes)) = object_at(&file, *at, object.bytes)
            {
                return Some(bytes);
            }
        }
        None
    }
}

/// Whether the blocks before this place name the object. Its checksum alone may be that of another one.
fn has_header(file: &File, object: &PackedObject, at: u64) -> bool {
    let header = object.header();
    let begin = at.checked_sub(header.len() as u64);
    let found = begin.and_then(|begin| bytes_at(file, begin, header.len() as u64).ok());
    found.is_some_and(|found| found == header)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::remote::address::StoreAddress;
    use crate::remote::fetch::object_pack::pack_bytes;

    fn object(name: &str) -> PackedObject {
        PackedObject {
            object: format!("https://h/{name}"),
            bytes: 5,
            state: "x".to_owned(),
            dead: None,
            silent: false,
        }
    }

    /// A folder with the list of these objects, in one pack of `files`.
    fn folder(dir: &Path, name: &str, objects: &[PackedObject], files: &[PackedObject]) {
        let folder = dir.join(name);
        fs::create_dir(&folder).unwrap();
        let base = StoreAddress::parse("file:///list.csv").unwrap();
        let list = TarList::of_addresses(base, objects.to_vec());
        fs::write(folder.join(LIST), list.text().unwrap()).unwrap();
        let mut pack = Vec::new();
        for file in files {
            pack.extend(file.header());
            pack.extend(b"bytes");
            pack.resize(pack.len() + file.padding() as usize, 0);
        }
        pack.resize(pack_bytes(objects) as usize, 0);
        fs::write(folder.join(&list.names()[0]), &pack).unwrap();
        let mut checksums = ShardChecksums::read(&folder, 1);
        checksums.write(0, HexHash128::of(&pack)).unwrap();
    }

    #[test]
    fn an_object_has_its_name_in_the_pack_and_only_wanted_ones_are_held() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<PackedObject> = ["a", "b", "c", "d"].map(object).to_vec();
        // The list says b and c, and the pack has them the other way round.
        let order = [0, 2, 1, 3].map(|number: usize| all[number].clone());
        folder(dir.path(), "tars-1", &all, &order);
        folder(dir.path(), "tars-2", &all[..3], &all[..3]);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let own = dir.path().join("tars-2");
        let former = runtime.block_on(FormerObjects::beside(&own));
        assert_eq!(former.places.len(), 3);
        let read = |number: usize| runtime.block_on(former.read(&all[number]));
        assert_eq!(read(0).as_deref(), Some(&b"bytes"[..]));
        assert_eq!([read(1), read(2), read(3)], [None, None, None]);
    }
}
