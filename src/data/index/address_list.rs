//! Lists and tables whose paths are addresses of objects (`s3://`, `https://`): their index before
//! the objects are here, and their index in packs.
//!
//! Used in consumer and fetcher. Every row is a sample of both indexes, so ids, labels and columns
//! are those of the list. An object that cannot be had is a sample that fails, and its pack has the
//! reason in its place.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::address_text::{ROOT, without_query};
use crate::data::index::binary_form::IndexContent;
use crate::data::index::packed_objects::MemberPlace;
use crate::data::index::report::{ScanReport, SkipReason};
use crate::data::index::samples::Index;
use crate::error::{Error, Result};

/// The different addresses of a list, in the order of their first samples.
#[derive(Debug, Default)]
pub(crate) struct DistinctAddresses {
    /// The first sample of each address.
    pub(crate) firsts: Vec<u64>,
    /// The number of the address of each sample.
    pub(crate) of_samples: Vec<u32>,
}

#[cfg(feature = "stores")]
impl DistinctAddresses {
    /// The address of this number in the list that this was made of. Empty for bytes that are not
    /// UTF-8.
    pub(crate) fn address<'a>(&self, listed: &'a Index, number: usize) -> &'a str {
        let first = self.firsts.get(number).copied().unwrap_or(u64::MAX);
        listed.relative_path(first).to_str().unwrap_or_default()
    }
}

impl Index {
    /// Whether the samples are addresses of objects, which must be downloaded first.
    pub(crate) fn is_of_addresses(&self) -> bool {
        self.shards() == 0 && self.root() == Path::new(ROOT)
    }

    /// The different addresses of a list.
    ///
    /// # Errors
    /// More than 2^32 addresses.
    pub(crate) fn distinct_addresses(&self) -> Result<DistinctAddresses> {
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let mut all = DistinctAddresses::default();
        for id in 0..self.len() {
            let next = u32::try_from(all.firsts.len())
                .map_err(|_| Error::config("a list has more than 2^32 addresses: divide it"))?;
            let path = self.relative_path(id).as_os_str().as_bytes();
            let number = *known.entry(path).or_insert(next);
            if number == next {
                all.firsts.push(id);
            }
            all.of_samples.push(number);
        }
        Ok(all)
    }

    /// The index of a list of addresses whose objects are in packs below `folder`: for each pack
    /// its file, and the place of each object. The objects are in the order of
    /// [`Index::distinct_addresses`]. `dead` has the numbers of those that cannot be had.
    ///
    /// # Errors
    /// Packs of other objects.
    pub(crate) fn packed_addresses<'a, Places: Iterator<Item = MemberPlace<'a>>>(
        folder: &Path,
        listed: &Self,
        packs: impl Iterator<Item = (&'a str, Places)>,
        dead: &[u32],
    ) -> Result<(Self, ScanReport)> {
        let all = listed.distinct_addresses()?;
        let (mut names, mut places) = (Vec::new(), Vec::with_capacity(all.firsts.len()));
        for (number, (pack, members)) in packs.enumerate() {
            names.push(pack.as_bytes());
            places.extend(members.map(|place| (number as u32, place.at, place.bytes)));
        }
        if places.len() != all.firsts.len() {
            return Err(Error::dataset(
                folder,
                "its packs are those of another list: remove this folder",
            ));
        }
        // Shards with consecutive samples take less memory.
        let has_duplicates = all.firsts.len() as u64 != listed.len();
        let mut content = IndexContent::default();
        if has_duplicates {
            names.iter().for_each(|name| content.begin_shard(name));
        }
        let mut pack = None;
        let mut report = ScanReport {
            samples: listed.len(),
            ..ScanReport::default()
        };
        for (id, number) in all.of_samples.iter().enumerate() {
            let address = listed.relative_path(id as u64).to_str().unwrap_or_default();
            let name = without_query(address);
            let (shard, at, bytes) = places[*number as usize];
            if has_duplicates {
                content.push_scattered(shard, name.as_bytes(), at, bytes);
            } else {
                if pack.replace(shard) != Some(shard) {
                    content.begin_shard(names[shard as usize]);
                }
                content.push_part(name.as_bytes(), at, bytes);
            }
            if dead.binary_search(number).is_ok() {
                report.skip(SkipReason::DeadAddress, PathBuf::from(name));
            }
        }
        let ids: Vec<u64> = (0..listed.len()).collect();
        content
            .boxes
            .extend(ids.iter().filter_map(|id| listed.pixel_box(*id)));
        content.labels = listed.labels_of(&ids);
        content.classes = listed.classes().clone();
        let index = Self::seal(folder, content)?.of_list(listed.hash());
        Ok((index, report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{ItemLabel, ItemList};

    #[test]
    fn the_hash_is_that_of_the_list_and_the_division_into_packs_is_known() {
        let listed = |addresses: &[&str]| {
            let mut items = ItemList::new();
            for address in addresses {
                items.push(address, ItemLabel::Class(1)).unwrap();
            }
            Index::items(items).unwrap()
        };
        let all = ["https://h/a.jpg", "https://h/b.jpg", "https://h/c.jpg"];
        let list = listed(&all);
        // The first pack has this many objects, and the first object this many bytes.
        let packed = |first: usize, bytes: u64, dead: &[u32]| {
            let place = |number: usize| MemberPlace {
                name: all[number],
                at: 512 + 1024 * number as u64,
                bytes: if number == 0 { bytes } else { 9 },
            };
            let packs = [("a.tar", 0..first), ("b.tar", first..3)];
            let packs = packs.map(|(name, numbers)| (name, numbers.map(place)));
            Index::packed_addresses(Path::new("/f"), &list, packs.into_iter(), dead)
                .unwrap()
                .0
        };
        let (one, dead, divided) = (packed(2, 9, &[]), packed(2, 70, &[0]), packed(1, 9, &[]));
        for index in [&one, &dead, &divided] {
            assert_eq!(index.hash(), list.hash());
        }
        assert_eq!(one.hash_of_division(), dead.hash_of_division());
        assert_ne!(one.hash_of_division(), divided.hash_of_division());
        assert_ne!(list.hash(), listed(&all[..2]).hash());
    }
}
