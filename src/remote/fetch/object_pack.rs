//! Packs: tars that are made on this machine of single objects of a store.
//!
//! Used in consumer and fetcher. A pack holds neighbours of the listing, so the layout of every pack
//! follows from the listing alone, and the index needs no download. Never in here: requests.

use serde::{Deserialize, Serialize};

use crate::data::index::MemberPlace;
use crate::data::shard::shard_writer::{END, encode_header, padding};
use crate::error::lost_picture;

/// Most objects and most bytes of a pack. A larger object is a pack of its own.
const MOST_OBJECTS: usize = 1024;
const MOST_BYTES: u64 = 64 << 20;

/// A single object of a store, which is an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedObject {
    /// Its name below the address, or its address in a list of those.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// Fingerprint that changes with the bytes: its ETag, or else its modification time.
    pub(super) state: String,
    /// Why it cannot be had. The reason is then in its place, and `bytes` counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dead: Option<String>,
    /// The reason may pass, so the next run asks again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) silent: bool,
}

impl PackedObject {
    /// An object that cannot be had.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(super) fn dead(object: String, why: String, silent: bool) -> Self {
        Self {
            object,
            bytes: lost_picture::bytes_for(&why, silent, usize::MAX).len() as u64,
            state: String::new(),
            dead: Some(why),
            silent,
        }
    }

    /// The blocks before the object's bytes in its pack.
    pub(super) fn header(&self) -> Vec<u8> {
        encode_header(&self.object, self.bytes)
    }

    /// Number of zeros after the object's bytes.
    pub(super) fn padding(&self) -> u64 {
        padding(self.bytes)
    }
}

/// Sorts objects by the bytes of their names, as the files of a folder. Keeps one of several
/// objects of one name: a store may list a folder's marker, which is empty, under the name of an
/// object.
pub(super) fn sorted(mut objects: Vec<PackedObject>) -> Vec<PackedObject> {
    objects.sort_by(|a, b| a.object.cmp(&b.object).then(b.bytes.cmp(&a.bytes)));
    objects.dedup_by(|later, first| later.object == first.object);
    objects
}

/// Divides objects into packs.
pub(super) fn packs(objects: Vec<PackedObject>) -> Vec<Vec<PackedObject>> {
    let mut packs: Vec<Vec<PackedObject>> = Vec::new();
    let mut bytes = 0;
    for object in objects {
        bytes += object.bytes;
        match packs.last_mut() {
            Some(pack) if pack.len() < MOST_OBJECTS && bytes <= MOST_BYTES => pack.push(object),
            _ => {
                bytes = object.bytes;
                packs.push(vec![object]);
            }
        }
    }
    packs
}

/// Bytes of a pack.
pub(super) fn pack_bytes(objects: &[PackedObject]) -> u64 {
    let last = places(objects).last();
    END + last.map_or(0, |place| place.at + place.bytes + padding(place.bytes))
}

/// The place of each object in its pack.
pub(super) fn places(objects: &[PackedObject]) -> impl Iterator<Item = MemberPlace<'_>> {
    let mut end = 0;
    objects.iter().map(move |object| {
        let at = end + object.header().len() as u64;
        end = at + object.bytes + object.padding();
        MemberPlace {
            name: &object.object,
            at,
            bytes: object.bytes,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, bytes: u64) -> PackedObject {
        PackedObject {
            object: name.to_owned(),
            bytes,
            state: format!("of {name}"),
            dead: None,
            silent: false,
        }
    }

    #[test]
    fn objects_come_in_the_order_of_a_folder() {
        let names = ["b/1.jpg", "a-b/2.jpg", "a/b/1.jpg", "a/b-c.jpg", "a/a.jpg"];
        let mut objects: Vec<_> = names.iter().map(|name| object(name, 7)).collect();
        objects.push(object("a/a.jpg", 0));
        let packs = packs(sorted(objects));
        assert_eq!(packs.len(), 1);
        let order: Vec<&str> = packs[0].iter().map(|o| o.object.as_str()).collect();
        // `a-b/` comes before `a/`.
        let want = ["a-b/2.jpg", "a/a.jpg", "a/b-c.jpg", "a/b/1.jpg", "b/1.jpg"];
        assert_eq!(order, want);
        assert_eq!(packs[0][1].bytes, 7);
    }

    #[test]
    fn packs_are_bounded_and_their_layout_is_that_of_a_tar() {
        let mut objects: Vec<_> = (0..2500)
            .map(|n| object(&format!("{n:05}.jpg"), 100))
            .collect();
        objects.push(object("x.png", 200 << 20));
        objects.push(object("y.png", 1));
        objects.push(object("z.png", MOST_BYTES));
        let packs = packs(sorted(objects));
        let counts: Vec<usize> = packs.iter().map(Vec::len).collect();
        assert_eq!(counts, [1024, 1024, 452, 1, 1, 1]);
        assert_eq!(pack_bytes(&packs[0]), 1024 * (512 + 512) + 1024);
        let long = "a/".repeat(80) + "b.jpg";
        let objects = [object(&long, 513), object("c.jpg", 0), object("d.jpg", 512)];
        let places: Vec<_> = places(&objects)
            .map(|place| (place.at, place.bytes))
            .collect();
        // The long name takes a pax header, its record and another header.
        assert_eq!(places, [(1536, 513), (3072, 0), (3584, 512)]);
    }
}
