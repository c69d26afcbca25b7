//! Tar shards in an object store that are no cache: the list of them, which takes the place of a
//! manifest; and what to say where their index is missing.
//!
//! In consumer and fetcher. The list has what each object was like when it was listed. The
//! folder is named by it, so a shard that changed makes another folder.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::index::{Index, ScanReport, open_stored};
use crate::data::shard::manifest::shard_name;
use crate::error::{self, Error, Result};
use crate::remote::address::StoreAddress;
use crate::remote::fetch::shard_space::total;
use crate::sys::whole_file;

/// The list's name in the folder.
pub(super) const LIST: &str = "list.json";

/// How the folders of such sets begin.
pub(super) const FOLDER_BEGIN: &str = "tars-";

/// What the object is called, beside the shards, that other machines take the index out of: by
/// the names of the set's folder and of the index there. So it is of these shards, as they are.
pub(super) fn shared_index(folder: &Path, index: &str) -> String {
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("featherload-{folder}-{index}")
}

/// The longest name of a file here: `.part` comes behind it.
const LONGEST_NAME: usize = 240;

/// The longest list: a million shards of long names have less.
const MOST_BYTES: u64 = 2 << 30;

const FORMAT: &str = "featherload-tars";
const VERSION: u32 = 1;

/// Tar shards of an object store, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarList {
    format: String,
    version: u32,
    /// The address that all of them lie under.
    base: StoreAddress,
    pub(super) shards: Vec<TarShard>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TarShard {
    /// Its name under the address.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// Another one where the object has other bytes: its ETag, or else when it was written.
    pub(super) state: String,
}

impl TarList {
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn new(base: StoreAddress, shards: Vec<TarShard>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            base,
            shards,
        }
    }

    /// The list of a folder.
    ///
    /// # Errors
    /// One that cannot be read.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(LIST);
        let bytes = whole_file::read(&path, MOST_BYTES)?;
        let list: Self = serde_json::from_slice(&bytes).map_err(|e| {
            Error::dataset(
                &path,
                format!("is no list of shards: {}", Error::words_of_json(&e)),
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

    /// The names of their files here: those of the objects, as in a folder of the same tars; by
    /// their numbers where objects lie in several folders, or no file can be called so.
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

    /// Names and lengths of their files here.
    pub(super) fn files(&self) -> Vec<(String, u64)> {
        let bytes = self.shards.iter().map(|tar| tar.bytes);
        self.names().into_iter().zip(bytes).collect()
    }

    /// Where a shard lies.
    pub(super) fn address(&self, number: usize) -> String {
        let object = self.shards.get(number).map_or("", |tar| &tar.object);
        self.base.of(object)
    }

    /// The address that all of them lie under.
    pub(super) fn base(&self) -> &StoreAddress {
        &self.base
    }

    pub(super) fn bytes(&self) -> u64 {
        total(self.shards.iter().map(|tar| tar.bytes))
    }

    /// The index that is kept in this folder, under this name; none where it is not whole.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn open_index(
        &self,
        folder: &Path,
        name: &str,
    ) -> Result<Option<(Index, ScanReport)>> {
        open_stored(&folder.join(name), folder, &self.files())
    }

    /// What to say where the shards at `address` have no index of this name in their folder.
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
            None => format!("has {count}, and no index of them is kept for these options"),
        };
        // A shell would take braces apart.
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

    /// How many shards are others than those that were indexed under the same address: of the
    /// set that is most like this one. None where none was.
    fn changed_since(&self, folder: &Path, name: &str) -> Option<usize> {
        let beside = fs::read_dir(folder.parent()?).ok()?.flatten();
        let sets = beside.filter(|entry| {
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
            // With nothing in common it is another set.
            (kept > 0).then(|| most - kept)
        });
        changed.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(objects: &[&str]) -> TarList {
        let tar = |object: &&str| TarShard {
            object: (*object).to_owned(),
            bytes: 1024,
            state: format!("of {object}"),
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
        let said = |list: &TarList| list.is_not_indexed(&address, &new, "i.fli").to_string();
        assert!(
            said(&now).contains("has 3 tar shards, and no index"),
            "{}",
            said(&now)
        );
        fs::write(old.join("i.fli"), "").unwrap();
        assert!(
            said(&now).contains("1 of its 3 shards changed"),
            "{}",
            said(&now)
        );
        assert!(said(&now).contains("run `featherload index s3://bucket/sets`"));
        assert!(said(&list(&["d.tar"])).contains("has 1 tar shard,"));
        assert_eq!(TarList::read(&old).unwrap(), before);
    }
}
