//! Tar shards in an object store that are no cache: their list, which replaces a manifest, and the
//! error for a missing index.
//!
//! Used in consumer and fetcher. The list has the fingerprint of each object. The folder is named
//! by the list, so a changed shard leads to another folder.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::index::{Index, ListedNames, ScanReport, ShardOptions, open_stored};
use crate::data::shard::manifest::shard_name;
use crate::error::{self, Error, Result};
use crate::remote::address::StoreAddress;
use crate::remote::fetch::object_pack::{self, PackedObject, places};
use crate::remote::fetch::shard_space::total;
use crate::sys::whole_file;

/// Name of the list in the folder.
pub(super) const LIST: &str = "list.json";

/// Prefix of the folders of such data sets.
pub(super) const FOLDER_BEGIN: &str = "tars-";

/// Name of a shared index in the store, next to the shards. It consists of the names of the folder
/// and of the index there, so it identifies the shards exactly.
pub(super) fn shared_index(folder: &Path, index: &str) -> String {
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("featherload-{folder}-{index}")
}

/// Longest name of a file here, before `.part` is added.
const LONGEST_NAME: usize = 240;

/// Longest list: a million shards with long names take less.
const MOST_BYTES: u64 = 2 << 30;

const FORMAT: &str = "featherload-tars";
const VERSION: u32 = 1;

/// Tar shards of an object store, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarList {
    format: String,
    version: u32,
    /// Common address of all shards.
    base: StoreAddress,
    pub(super) shards: Vec<TarShard>,
    /// What the listing of single objects found. None for tars of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names_of_objects: Option<ListedNames>,
    /// Whether the names of the objects are the addresses of a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    of_addresses: bool,
}

/// What names the folder of a list, in the form of the list itself.
#[derive(Serialize)]
struct TarListIdentity<'a> {
    format: &'a str,
    version: u32,
    /// None for a list of addresses, whose file may be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'a StoreAddress>,
    shards: &'a [TarShard],
    #[serde(skip_serializing_if = "Option::is_none")]
    names_of_objects: Option<ListedNames>,
}

/// A tar shard of the store, or a pack that is made here of single objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarShard {
    /// Its name below the address.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// Fingerprint that changes with the bytes: its ETag, or else its modification time. Empty for
    /// a pack, whose objects have their own.
    pub(super) state: String,
    /// The objects of a pack, in their order. Empty for a tar of the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) packed: Vec<PackedObject>,
}

impl TarList {
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn new(base: StoreAddress, shards: Vec<TarShard>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            base,
            shards,
            names_of_objects: None,
            of_addresses: false,
        }
    }

    /// A list of packs of single objects.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn of_packs(
        base: StoreAddress,
        objects: Vec<PackedObject>,
        names: ListedNames,
    ) -> Self {
        Self {
            names_of_objects: Some(names),
            ..Self::new(base, shards_of_packs(object_pack::sorted(objects)))
        }
    }

    /// A list of packs of the objects at addresses, in this order. `base` is the list of them.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn of_addresses(base: StoreAddress, objects: Vec<PackedObject>) -> Self {
        Self {
            of_addresses: true,
            ..Self::new(base, shards_of_packs(objects))
        }
    }

    /// The text that names the folder: all that decides samples and shards. Without the objects
    /// that are no images, whose coming and going changes no sample.
    ///
    /// # Errors
    /// The list has no JSON form.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn identity(&self) -> serde_json::Result<Vec<u8>> {
        if !self.has_packs() {
            return serde_json::to_vec_pretty(self);
        }
        let names = self.names_of_objects.as_ref();
        serde_json::to_vec(&TarListIdentity {
            format: &self.format,
            version: self.version,
            base: (!self.of_addresses).then_some(&self.base),
            shards: &self.shards,
            names_of_objects: names.map(ListedNames::folders_alone),
        })
    }

    /// The text of the list's file.
    ///
    /// # Errors
    /// The list has no JSON form.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn text(&self) -> serde_json::Result<Vec<u8>> {
        match self.has_packs() {
            false => serde_json::to_vec_pretty(self),
            true => serde_json::to_vec(self),
        }
    }

    /// Reads the list of a folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(LIST);
        let bytes = whole_file::read(&path, MOST_BYTES)?;
        let list: Self = serde_json::from_slice(&bytes).map_err(|e| {
            Error::dataset(
                &path,
                format!("is not a list of shards: {}", Error::words_of_json(&e)),
            )
        })?;
        match list.format == FORMAT && list.version == VERSION {
            true => Ok(list),
            false => Err(Error::dataset(
                &path,
                "is of another version: remove its folder",
            )),
        }
    }

    /// Names of local files: those of the objects, as in a folder of the same tars. Numbers
    /// instead, if objects are in several folders or a name is not possible.
    pub(super) fn names(&self) -> Vec<String> {
        let is_plain = |tar: &TarShard| {
            let name = &tar.object;
            !name.contains(['/', '\0']) && !name.starts_with('.') && name.len() <= LONGEST_NAME
        };
        let numbered = |number: usize| format!("{}.tar", shard_name(number as u64));
        match self.shards.iter().all(is_plain) {
            true => self.shards.iter().map(|tar| tar.object.clone()).collect(),
            false => (0..self.shards.len()).map(numbered).collect(),
        }
    }

    /// Names and sizes of local files.
    pub(super) fn files(&self) -> Vec<(String, u64)> {
        let bytes = self.shards.iter().map(|tar| tar.bytes);
        self.names().into_iter().zip(bytes).collect()
    }

    /// Address of a shard.
    pub(super) fn address(&self, number: usize) -> String {
        let object = self.shards.get(number).map_or("", |tar| &tar.object);
        self.base.of(object)
    }

    /// Common address of all shards.
    pub(super) fn base(&self) -> &StoreAddress {
        &self.base
    }

    pub(super) fn bytes(&self) -> u64 {
        total(self.shards.iter().map(|tar| tar.bytes))
    }

    /// Opens the index of this name in the folder; `None` if it is not complete.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open_index(
        &self,
        folder: &Path,
        name: &str,
    ) -> Result<Option<(Index, ScanReport)>> {
        open_stored(&folder.join(name), folder, &self.files())
    }

    /// Whether the shards are packs of single objects.
    pub(super) fn has_packs(&self) -> bool {
        self.names_of_objects.is_some() || self.of_addresses
    }

    /// Whether the objects of the packs are the addresses of a list.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn is_of_addresses(&self) -> bool {
        self.of_addresses
    }

    /// The index of packs in `folder`, with the labels of a folder of the same files. Reads no
    /// pack.
    ///
    /// # Errors
    /// Options that read fields of tars; images beside class folders; a class folder that the
    /// class table lacks.
    pub(super) fn index_of_packs(
        &self,
        folder: &Path,
        options: &ShardOptions,
    ) -> Result<(Index, ScanReport)> {
        let packs = self
            .shards
            .iter()
            .map(|pack| (&*pack.object, places(&pack.packed)));
        let names = self.names_of_objects.as_ref();
        let names = names.ok_or_else(|| Error::dataset(folder, "its list has no names"))?;
        Index::packed_objects(folder, self.base.as_str(), packs, names, options)
    }

    /// The index of packs in `folder` of the objects at the addresses of `listed`. Reads no pack.
    ///
    /// # Errors
    /// Packs of another list.
    pub(super) fn index_of_addresses(
        &self,
        folder: &Path,
        listed: &Index,
    ) -> Result<(Index, ScanReport)> {
        let packs = || self.shards.iter().map(|pack| (&*pack.object, &pack.packed));
        let all = packs().flat_map(|(_, objects)| objects);
        let dead = (0u32..)
            .zip(all)
            .filter(|(_, object)| object.dead.is_some());
        let dead: Vec<u32> = dead.map(|(number, _)| number).collect();
        let places = packs().map(|(name, objects)| (name, places(objects)));
        Index::packed_addresses(folder, listed, places, &dead)
    }

    /// Error for shards at `address` without an index of this name.
    pub(super) fn is_not_indexed(
        &self,
        address: &StoreAddress,
        folder: &Path,
        name: &str,
    ) -> Error {
        let count = match self.shards.len() {
            1 => "1 tar shard".to_owned(),
            n => format!("{n} tar shards"),
        };
        let why = match self.changed_since(folder, name) {
            Some(changed) => format!(
                "{changed} of its {} shards changed, are new or are gone since it was indexed",
                self.shards.len()
            ),
            None => format!("has {count}, but no index for these options"),
        };
        // A shell would expand braces.
        let quoted = match address.as_str().contains('{') {
            true => format!("'{address}'"),
            false => address.to_string(),
        };
        Error::dataset(
            address.as_str(),
            format!(
                "{why}: run `featherload index {quoted}` with the same options, which fetches \
                 all {} ({}) once",
                count,
                error::size(self.bytes())
            ),
        )
    }

    /// Number of shards that changed since the same address was indexed, compared with the most
    /// similar set. `None` if none was indexed.
    fn changed_since(&self, folder: &Path, name: &str) -> Option<usize> {
        let siblings = fs::read_dir(folder.parent()?).ok()?.flatten();
        let sets = siblings.filter(|entry| {
            let is_set = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(FOLDER_BEGIN));
            is_set && entry.path() != folder && entry.path().join(name).exists()
        });
        let lists = sets.filter_map(|entry| Self::read(&entry.path()).ok());
        let same = lists.filter(|list| list.base == self.base);
        let changed = same.filter_map(|list| {
            let known: std::collections::HashSet<_> = list
                .shards
                .iter()
                .map(|tar| (&tar.object, tar.bytes, &tar.state))
                .collect();
            let kept = self
                .shards
                .iter()
                .filter(|tar| known.contains(&(&tar.object, tar.bytes, &tar.state)))
                .count();
            let most = self.shards.len().max(list.shards.len());
            // Without common shards it is another data set.
            (kept > 0).then(|| most - kept)
        });
        changed.min()
    }
}

#[cfg_attr(not(feature = "stores"), allow(dead_code))]
fn shards_of_packs(objects: Vec<PackedObject>) -> Vec<TarShard> {
    let packs = object_pack::packs(objects).into_iter().enumerate();
    let shards = packs.map(|(number, packed)| TarShard {
        object: format!("{}.tar", shard_name(number as u64)),
        bytes: object_pack::pack_bytes(&packed),
        state: String::new(),
        packed,
    });
    shards.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(objects: &[&str]) -> TarList {
        let tar = |object: &&str| TarShard {
            object: (*object).to_owned(),
            bytes: 1024,
            state: format!("of {object}"),
            packed: Vec::new(),
        };
        TarList::new(
            StoreAddress::parse("s3://bucket/sets").unwrap(),
            objects.iter().map(tar).collect(),
        )
    }

    #[test]
    fn files_are_called_as_objects_are_where_they_can_be() {
        assert_eq!(list(&["b.tar", "a.tar"]).names(), ["b.tar", "a.tar"]);
        let numbered = ["shard-000000.tar", "shard-000001.tar"];
        for second in ["x/a.tar", ".tar", &("a".repeat(250) + ".tar")] {
            assert_eq!(list(&["a.tar", second]).names(), numbered);
        }
        assert_eq!(list(&["x/a.tar"]).address(0), "s3://bucket/sets/x/a.tar");
    }

    #[test]
    fn a_set_that_changed_is_told_from_one_that_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, list: &TarList| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(LIST), serde_json::to_vec(list).unwrap()).unwrap();
            folder
        };
        let address = StoreAddress::parse("s3://bucket/sets").unwrap();
        let before = list(&["a.tar", "b.tar", "c.tar"]);
        let mut now = before.clone();
        now.shards[1].state = "another".to_owned();
        let (old, new) = (folder("tars-1", &before), folder("tars-2", &now));
        let text = |list: &TarList| list.is_not_indexed(&address, &new, "i.fli").to_string();
        assert!(
            text(&now).contains("has 3 tar shards, but no index"),
            "{}",
            text(&now)
        );
        fs::write(old.join("i.fli"), "").unwrap();
        assert!(
            text(&now).contains("1 of its 3 shards changed"),
            "{}",
            text(&now)
        );
        assert!(text(&now).contains("run `featherload index s3://bucket/sets`"));
        assert!(text(&list(&["d.tar"])).contains("has 1 tar shard,"));
        assert_eq!(TarList::read(&old).unwrap(), before);
    }
}
