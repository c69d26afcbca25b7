//! The manifests of a cache: `manifest.json` for the whole, and a `.json` file beside each shard.
//!
//! Runs in the consumer. Every value has exactly one text: JSON as `serde_json` writes it, with a
//! checksum of the text inside. A reader writes the value again and compares the bytes, so it
//! notices any changed byte. Never in here: times, host names, and the place of the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use twox_hash::xxhash3_128::Hasher;

use crate::data::objects::ObjectForm;
pub(crate) use crate::data::shard::hash::{HexHash64, HexHash128};
use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::sys::atomic_file::replace_by;
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};
use crate::sys::whole_file::too_long;

/// The name of a cache's manifest in its folder.
pub(crate) const CACHE_MANIFEST: &str = "manifest.json";

/// The name of the sealed index of all samples in a cache's folder. Its root is `/`, so its bytes
/// do not depend on the place of the cache.
pub(crate) const CACHE_INDEX: &str = "index.fli";

/// The name of shard number `shard` of a cache, without extension. A cache's shards have no other
/// names, so a manifest cannot lead out of the cache's folder.
pub(crate) fn shard_name(shard: u64) -> String {
    format!("shard-{shard:06}")
}

/// The table of objects in a cache's folder, as a run maps it. Only in caches with objects.
pub(crate) const CACHE_OBJECTS: &str = "objects.flo";

/// The index of all masks in a cache's folder. Only in caches with masks.
pub(crate) const CACHE_MASKS: &str = "masks.fli";

/// The index of the rasters with this name in a cache's folder, as [`CACHE_MASKS`] is that of masks.
pub(crate) fn raster_file(name: &str) -> String {
    format!("{RASTER_FILE}{name}.fli")
}

/// Most rasters of a cache, masks included.
pub(crate) const MOST_RASTERS: usize = 7;

/// The beginning of [`raster_file`].
const RASTER_FILE: &str = "raster-";

/// Whether a cache may have a file of this name beside its shards and its manifest.
pub(crate) fn is_side_file(name: &str) -> bool {
    let raster = name
        .strip_prefix(RASTER_FILE)
        .and_then(|rest| rest.strip_suffix(".fli"));
    [CACHE_INDEX, CACHE_OBJECTS, CACHE_MASKS].contains(&name) || raster.is_some_and(is_raster_name)
}

/// Whether a raster may have this name. It becomes a part of names of files and members.
pub(crate) fn is_raster_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_word)
}

/// The extension of the member that has the objects of a sample.
pub(crate) const OBJECTS_EXTENSION: &str = "objects.json";

/// The extension of the member that has the mask of a sample, without that of its format.
pub(crate) const MASK_EXTENSION: &str = "mask";

/// The version of both kinds of manifest, for caches without columns and targets.
pub(crate) const VERSION: u32 = 2;
/// The version of both kinds of manifest, for caches with columns and without targets.
pub(crate) const COLUMNS_VERSION: u32 = 3;
/// The version of both kinds of manifest, for caches with targets: objects or masks.
pub(crate) const TARGETS_VERSION: u32 = 4;
/// The version of both kinds of manifest, for caches with rasters other than masks.
pub(crate) const RASTERS_VERSION: u32 = 5;
/// The latest version.
pub(crate) const LAST_VERSION: u32 = RASTERS_VERSION;

/// The name of the member that has the columns of a shard: an Arrow file. Readers of WebDataset pass
/// over hidden names.
pub(crate) const COLUMNS_MEMBER: &str = ".columns.arrow";

/// One shard of a cache: `shard-000000.json` beside `shard-000000.tar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardManifest {
    /// [`ShardManifest::FORMAT`].
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Of the text of this manifest with zeros in this field. Set by [`Manifest::to_bytes`].
    pub(crate) checksum: HexHash128,
    /// The id of the first sample in the cache. For a shard that stands alone: the first place of
    /// the order that it is made of.
    pub(crate) first_id: u64,
    /// Length of the tar, end blocks included.
    pub(crate) bytes: u64,
    /// XXH3-128 of the whole tar.
    pub(crate) hash: HexHash128,
    /// Which targets each sample has.
    #[serde(default, skip_serializing_if = "TargetMembers::is_none")]
    pub(crate) targets: TargetMembers,
    /// In the cache's order. The n-th has id `first_id + n`, unless the shard stands alone.
    pub(crate) samples: Vec<SampleEntry>,
    /// The member after all samples: an Arrow file with a row for each sample. None without columns,
    /// or without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<MemberEntry>,
    /// Samples of the source that were left out, between these samples or after the last one. In
    /// the cache's order.
    pub(crate) skipped: Vec<SkippedEntry>,
}

/// One sample of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SampleEntry {
    /// Its id in the source.
    pub(crate) source: u64,
    /// Upright height and width of the image in the source, if the cache has targets and resizes
    /// images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<(u32, u32)>,
    /// The image first, then the label, the objects, the mask and other rasters, if there are any.
    pub(crate) members: Vec<MemberEntry>,
}

impl SampleEntry {
    /// The member with its raster of this number, in a shard with `count` rasters.
    pub(crate) fn raster(&self, number: usize, count: usize) -> Option<&MemberEntry> {
        let first = self.members.len().checked_sub(count).filter(|at| *at > 0)?;
        self.members.get(first + number)
    }
}

/// Which targets each sample of a shard has, as members of its tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetMembers {
    pub(crate) objects: bool,
    pub(crate) masks: bool,
    /// The number of rasters other than the mask.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) rasters: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl TargetMembers {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The members of a sample that are targets. They are its last ones.
    pub(crate) fn count(self) -> usize {
        usize::from(self.objects) + self.all_rasters()
    }

    /// The members of a sample that are rasters: its last ones. A mask is the first of them.
    pub(crate) fn all_rasters(self) -> usize {
        usize::from(self.masks) + self.rasters as usize
    }
}

/// One member of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberEntry {
    pub(crate) name: String,
    /// Offset of its first header. The bytes up to `data_at` equal
    /// `shard_writer::encode_header(name, size)`.
    pub(crate) header_at: u64,
    pub(crate) data_at: u64,
    pub(crate) size: u64,
    /// XXH3-64 of the data.
    pub(crate) hash: HexHash64,
}

/// A sample of the source that is not in the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkippedEntry {
    /// Its id in the source.
    pub(crate) source: u64,
    /// Its path under the source's root. Bytes that are not UTF-8 are replaced.
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// A whole cache: `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheManifest {
    /// [`CacheManifest::FORMAT`].
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Like that of [`ShardManifest`].
    pub(crate) checksum: HexHash128,
    /// The version of featherload that builds the cache.
    pub(crate) featherload: String,
    /// False until the build has ended. Until then `shards` is empty, `samples` and `skipped` are
    /// 0, and `index` is none.
    pub(crate) complete: bool,
    pub(crate) options: OptionsEntry,
    pub(crate) source: SourceEntry,
    /// Names of the classes. Empty if labels are numbers without names, vectors, or absent.
    pub(crate) classes: Vec<String>,
    /// Numbers per label: 0 without labels, 1 for classes, n for vectors.
    pub(crate) label_width: u64,
    /// Columns of the source that the shards have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) columns: Vec<ColumnEntry>,
    /// The objects of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) objects: Option<ObjectsEntry>,
    /// The masks of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) masks: Option<MasksEntry>,
    /// The other rasters of the samples, in the order of their members.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "raster_entries"
    )]
    pub(crate) rasters: Vec<RasterEntry>,
    /// Samples in all shards.
    pub(crate) samples: u64,
    /// Samples of the source that are in no shard.
    pub(crate) skipped: u64,
    /// In order. The n-th is named by [`shard_name`].
    pub(crate) shards: Vec<ShardEntry>,
    /// Hash of the file `index.fli`.
    pub(crate) index: Option<HexHash128>,
}

impl CacheManifest {
    /// The files beside the shards, with their hashes: the index, and those of targets. A file
    /// whose hash is not known is left out.
    pub(crate) fn side_files(&self) -> Vec<(String, HexHash128)> {
        let objects = self.objects.as_ref().and_then(|entry| entry.table);
        let masks = self.masks.as_ref().and_then(|entry| entry.index);
        let own = [
            (CACHE_INDEX, self.index),
            (CACHE_OBJECTS, objects),
            (CACHE_MASKS, masks),
        ];
        let rasters = self.rasters.iter();
        let rasters = rasters.map(|entry| (raster_file(&entry.name), entry.index));
        own.into_iter()
            .map(|(name, hash)| (name.to_owned(), hash))
            .chain(rasters)
            .filter_map(|(name, hash)| Some((name, hash?)))
            .collect()
    }

    /// The files of indices of rasters, and their hashes. Masks are the first.
    pub(crate) fn raster_files_mut(
        &mut self,
    ) -> impl Iterator<Item = (String, &mut Option<HexHash128>)> {
        let masks = self.masks.iter_mut();
        let masks = masks.map(|entry| (CACHE_MASKS.to_owned(), &mut entry.index));
        let rasters = self.rasters.iter_mut();
        masks.chain(rasters.map(|entry| (raster_file(&entry.name), &mut entry.index)))
    }

    /// Which targets the samples have.
    pub(crate) fn targets(&self) -> TargetMembers {
        TargetMembers {
            objects: self.objects.is_some(),
            masks: self.masks.is_some(),
            rasters: self.rasters.len() as u32,
        }
    }

    /// The same manifest, of a build that has not ended.
    pub(crate) fn begun(mut self) -> Self {
        self.complete = false;
        (self.samples, self.skipped) = (0, 0);
        self.shards.clear();
        self.index = None;
        if let Some(objects) = &mut self.objects {
            objects.table = None;
        }
        for (_, index) in self.raster_files_mut() {
            *index = None;
        }
        self
    }
}

/// The objects of a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectsEntry {
    /// Fingerprint of the objects of the source.
    pub(crate) source: HexHash128,
    /// How objects move with their images, if a run does not say it: fields of an `ObjectRule`.
    pub(crate) rule: serde_json::Value,
    /// What all objects have in common: categories, keypoints and others.
    pub(crate) form: ObjectForm,
    /// Hash of the file `objects.flo`. None until the build has ended.
    pub(crate) table: Option<HexHash128>,
}

/// The masks of a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MasksEntry {
    /// How labels become numbers, if a run does not say it: fields of a `MaskRule`.
    pub(crate) rule: serde_json::Value,
    /// Hash of the file `masks.fli`. None until the build has ended.
    pub(crate) index: Option<HexHash128>,
}

/// A raster of a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RasterEntry {
    #[serde(deserialize_with = "raster_name")]
    pub(crate) name: String,
    /// Its kind, and the fields that differ from those of the kind, if a run does not say it.
    pub(crate) rule: serde_json::Map<String, serde_json::Value>,
    /// Fingerprint of the members of shards that the rasters are; 0 for files, whose lengths and
    /// times are in [`SourceEntry::files`].
    pub(crate) source: HexHash128,
    /// Hash of the file [`raster_file`]. None until the build has ended.
    pub(crate) index: Option<HexHash128>,
}

/// Entries with different names, and not too many: each has a file that is downloaded.
fn raster_entries<'de, D>(from: D) -> std::result::Result<Vec<RasterEntry>, D::Error>
where
    D: Deserializer<'de>,
{
    let all = Vec::<RasterEntry>::deserialize(from)?;
    let names = all.iter().map(|entry| entry.name.to_ascii_lowercase());
    let names: BTreeSet<String> = names.collect();
    if all.len() > MOST_RASTERS || names.len() < all.len() {
        let what = format!("more than {MOST_RASTERS} rasters, or two of one name");
        return Err(serde::de::Error::custom(what));
    }
    Ok(all)
}

/// A name that leads to no other folder: a manifest may come from a store.
fn raster_name<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<String, D::Error> {
    let name = String::deserialize(from)?;
    // These are the masks of a cache, which have an entry of their own.
    let masks = ["masks", MASK_EXTENSION];
    let is_mask = masks.iter().any(|mask| name.eq_ignore_ascii_case(mask));
    match is_raster_name(&name) && !is_mask {
        true => Ok(name),
        false => Err(serde::de::Error::custom("a raster has an invalid name")),
    }
}

/// A column of a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnEntry {
    /// As in the source.
    pub(crate) name: String,
    /// As [`ColumnKind`](crate::columns::ColumnKind) is printed.
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// The options that a cache was built with, spelled as on the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptionsEntry {
    /// `copy`, `jpeg:90` or `raw`.
    pub(crate) encode: String,
    /// `shorter:256`, `longer:256` or `exact:224x224`; none = not resized.
    pub(crate) resize: Option<String>,
    /// The most bytes of a shard with more than one sample. [`OptionsEntry::NO_SIZE`] if shards
    /// stand alone.
    pub(crate) shard_size: u64,
    /// The most places of the order that a shard is made of; none = as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard_samples: Option<u64>,
    /// The seed of the order; none = the source's order.
    pub(crate) shuffle: Option<u64>,
    /// `stop` or `skip`.
    pub(crate) on_error: String,
    pub(crate) max_pixels: u64,
    pub(crate) max_scratch: u64,
}

impl OptionsEntry {
    /// The `shard_size` of a cache whose shards stand alone. Shard k is made of `shard_samples`
    /// places, from place k times `shard_samples` on, whatever their bytes.
    pub(crate) const NO_SIZE: u64 = 0;

    /// Whether each shard depends only on the source, the options and its number.
    pub(crate) fn has_independent_shards(&self) -> bool {
        self.shard_size == Self::NO_SIZE
    }
}

/// Fingerprints that detect a changed source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceEntry {
    pub(crate) samples: u64,
    /// `Index::hash` of paths under the root, labels and class names.
    pub(crate) index: HexHash128,
    /// Hash of length and modification time (ns) of every file, in the source's order. Both count
    /// as 0 for a path without a file. For a source in a store: the fingerprint of its shards.
    pub(crate) files: HexHash128,
    /// None if it is not known: the source is a saved index or another cache.
    pub(crate) lost: Option<SourceLosses>,
}

/// Content of a source that is not in its index, as found when the names of its samples were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SourceLosses {
    /// Number of damaged shards.
    pub damaged_shards: u64,
    /// Number of samples that are known to be lost in damaged shards.
    pub damaged_samples: u64,
    /// Number of entries that are not samples, for each reason.
    pub left_out: BTreeMap<String, u64>,
    /// Fields of samples that are neither image nor label: the number of samples with that field,
    /// by extension. A cache does not copy them.
    pub other_fields: BTreeMap<String, u64>,
}

/// The entry of a shard in `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardEntry {
    /// Without extension: `shard-000000`.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) samples: u64,
    /// Hash of the file `NAME.json`.
    pub(crate) manifest: HexHash128,
    /// Hash of the file `NAME.idx`.
    pub(crate) idx: HexHash128,
    /// Where the columns are in the tar. None without columns, or without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<ColumnsPlace>,
}

/// The bytes of a shard that are the Arrow file of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnsPlace {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// Why bytes are not a valid manifest.
#[derive(Debug, PartialEq)]
pub(crate) enum ManifestDamage {
    /// Not JSON, or not the fields of this manifest.
    Text {
        what: String,
    },
    /// A manifest of another kind: its `format`.
    Format {
        found: String,
    },
    Version {
        found: u32,
    },
    /// The bytes have changed since they were written.
    Checksum,
}

impl fmt::Display for ManifestDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { what } => write!(f, "damaged, or not the manifest of a cache: {what}"),
            Self::Format { found } => write!(f, "a manifest of another kind: `{found}`"),
            Self::Version { found } => write!(
                f,
                "a manifest of version {found}, but this featherload reads versions {VERSION} to \
                 {LAST_VERSION}: build the cache again (in this folder with `force`), or use the featherload \
                 that built it"
            ),
            Self::Checksum => f.write_str("damaged: its checksum is wrong"),
        }
    }
}

impl std::error::Error for ManifestDamage {}

/// The common part of both manifests: how they are written and read.
pub(crate) trait Manifest: Serialize + DeserializeOwned + Clone {
    /// The value of the field `format`.
    const FORMAT: &'static str;
    /// Whether the JSON is indented, for people to read.
    const PRETTY: bool;
    /// The largest manifest that is written or read, bytes.
    const MOST_BYTES: u64;

    /// Format, version and checksum.
    fn head(&self) -> (&str, u32, HexHash128);
    fn has_columns(&self) -> bool;
    /// Which targets samples have.
    fn target_members(&self) -> TargetMembers;
    fn set_checksum(&mut self, checksum: HexHash128);

    /// The file's bytes, with the right checksum in them.
    ///
    /// # Errors
    /// Not for values of these types, although `serde_json` does not guarantee that.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut manifest = self.clone();
        manifest.set_checksum(HexHash128(0));
        let bytes = text(&manifest)?;
        manifest.set_checksum(HexHash128::of(&bytes));
        text(&manifest)
    }

    /// Parses and checks a file's bytes.
    ///
    /// # Errors
    /// When any byte differs from what [`Manifest::to_bytes`] writes.
    fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestDamage> {
        /// The fields that every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let text = |e: serde_json::Error| ManifestDamage::Text {
            what: Error::words_of_json(&e),
        };
        let check = |format: &str, version: u32| match (format == Self::FORMAT, version) {
            (false, _) => Err(ManifestDamage::Format {
                found: format.to_owned(),
            }),
            (true, VERSION..=LAST_VERSION) => Ok(()),
            (true, found) => Err(ManifestDamage::Version { found }),
        };
        // A good manifest is parsed once: it may have a million shards.
        let manifest: Self = match serde_json::from_slice(bytes) {
            Ok(manifest) => manifest,
            Err(e) => {
                let head: Head = serde_json::from_slice(bytes).map_err(text)?;
                check(&head.format, head.version)?;
                return Err(text(e));
            }
        };
        let (format, version, checksum) = manifest.head();
        check(format, version)?;
        let written = version_of(manifest.has_columns(), manifest.target_members());
        if version != written {
            let what = match (manifest.target_members().is_none(), manifest.has_columns()) {
                (false, _) => "targets, which only a manifest of another version has",
                (true, true) => "columns, which only a manifest of another version has",
                (true, false) => "no columns, which every manifest of its version has",
            };
            return Err(ManifestDamage::Text {
                what: format!("it is of version {version} with {what}"),
            });
        }
        match is_text_of(&manifest, bytes) && checksum == checksum_of(bytes) {
            true => Ok(manifest),
            false => Err(ManifestDamage::Checksum),
        }
    }

    /// Reads the file at `path` and checks it. Also returns the hash of the file.
    ///
    /// # Errors
    /// When the file cannot be read, is not a regular file, or is damaged. The error names the
    /// file.
    fn read(path: &Path) -> Result<(Self, HexHash128)> {
        let none = || Error::dataset(path, "not the manifest of a cache");
        let failed = |e: io::Error| match e.kind() {
            ErrorKind::InvalidInput => none(),
            _ => Error::io_at("read", path, e),
        };
        let (file, len) = regular_file::open(path).map_err(failed)?;
        if len > Self::MOST_BYTES {
            return Err(Error::dataset(path, too_long(len, Self::MOST_BYTES)));
        }
        let bytes = text_file::read(file, len).map_err(|refused| match refused {
            TextReadError::Read(e) => failed(e),
            other => Error::dataset(
                path,
                format!("{other}: restore it, or build the cache again"),
            ),
        })?;
        let manifest = Self::from_bytes(&bytes).map_err(|e| Error::dataset(path, e.to_string()))?;
        Ok((manifest, HexHash128::of(&bytes)))
    }

    /// Writes the manifest to `path`, or replaces the file there in one step. Returns the hash of
    /// the file.
    ///
    /// # Errors
    /// When the manifest is longer than [`Manifest::MOST_BYTES`], or the file cannot be written.
    fn write(&self, path: &Path) -> Result<HexHash128> {
        let bytes = self.to_bytes()?;
        if bytes.len() as u64 > Self::MOST_BYTES {
            let what = format!(
                "would have {}, but a manifest has {} at most: use another `shard_samples`",
                size_rounded_up(bytes.len() as u64),
                size_rounded_down(Self::MOST_BYTES)
            );
            return Err(Error::dataset(path, what));
        }
        replace_by(path, &bytes)?;
        Ok(HexHash128::of(&bytes))
    }
}

/// The version of a manifest with these contents.
pub(crate) fn version_of(has_columns: bool, targets: TargetMembers) -> u32 {
    match (targets.is_none(), has_columns) {
        (false, _) if targets.rasters > 0 => RASTERS_VERSION,
        (false, _) => TARGETS_VERSION,
        (true, true) => COLUMNS_VERSION,
        (true, false) => VERSION,
    }
}

fn text<M: Manifest>(manifest: &M) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_text(manifest, &mut bytes)
        .map_err(|e| Error::protocol(format!("the new manifest cannot be written as JSON: {e}")))?;
    Ok(bytes)
}

fn write_text<M: Manifest>(manifest: &M, mut to: impl Write) -> io::Result<()> {
    match M::PRETTY {
        true => serde_json::to_writer_pretty(&mut to, manifest)?,
        false => serde_json::to_writer(&mut to, manifest)?,
    }
    to.write_all(b"\n")
}

/// Whether `bytes` are the text of `manifest`. Compares piece by piece, without a second copy of
/// the text.
fn is_text_of<M: Manifest>(manifest: &M, bytes: &[u8]) -> bool {
    /// The part of the text that is not compared yet.
    struct RemainingText<'a>(&'a [u8]);
    impl Write for RemainingText<'_> {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            let rest = self.0.strip_prefix(piece);
            self.0 = rest.ok_or(ErrorKind::InvalidData)?;
            Ok(piece.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut rest = RemainingText(bytes);
    write_text(manifest, &mut rest).is_ok() && rest.0.is_empty()
}

/// The right checksum for the text of a manifest: the hash of the text with zeros in the `checksum`
/// field, which is its third field.
fn checksum_of(text: &[u8]) -> HexHash128 {
    const FIELD: &[u8] = b"\"checksum\":";
    let mut hasher = Hasher::new();
    let digits = text
        .windows(FIELD.len())
        .position(|window| window == FIELD)
        .and_then(|at| {
            let at = at + FIELD.len();
            let quote = text.get(at..)?.iter().position(|byte| *byte == b'"')?;
            let digits = at + quote + 1;
            (digits + 32 <= text.len()).then_some(digits)
        });
    match digits {
        Some(at) => {
            hasher.write(&text[..at]);
            hasher.write(&[b'0'; 32]);
            hasher.write(&text[at + 32..]);
        }
        None => hasher.write(text),
    }
    HexHash128(hasher.finish_128())
}

impl Manifest for ShardManifest {
    const FORMAT: &'static str = "featherload-shard";
    const PRETTY: bool = false;
    /// Enough for a shard of five million samples.
    const MOST_BYTES: u64 = 1 << 30;

    fn head(&self) -> (&str, u32, HexHash128) {
        (&self.format, self.version, self.checksum)
    }

    fn has_columns(&self) -> bool {
        self.columns.is_some()
    }

    fn target_members(&self) -> TargetMembers {
        self.targets
    }

    fn set_checksum(&mut self, checksum: HexHash128) {
        self.checksum = checksum;
    }
}

impl Manifest for CacheManifest {
    const FORMAT: &'static str = "featherload-cache";
    const PRETTY: bool = true;
    /// Enough for a cache of two million shards.
    const MOST_BYTES: u64 = 512 << 20;

    fn head(&self) -> (&str, u32, HexHash128) {
        (&self.format, self.version, self.checksum)
    }

    fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    fn target_members(&self) -> TargetMembers {
        self.targets()
    }

    fn set_checksum(&mut self, checksum: HexHash128) {
        self.checksum = checksum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_in_a_manifest_is_not_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"{\n  \"format\": \"featherload-cache\"").unwrap();
        file.as_file().set_len(1 << 29).unwrap();
        let e = CacheManifest::read(file.path()).unwrap_err().to_string();
        assert!(e.contains("zero byte at offset 33"), "{e}");
    }

    #[test]
    fn a_manifest_is_read_up_to_its_bound() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |most: u64, read: &dyn Fn(&Path) -> Result<()>| {
            file.as_file().set_len(most + 1).unwrap();
            let e = read(file.path()).unwrap_err().to_string();
            let says = format!("({} bytes), but", most + 1);
            let names = e.contains(&file.path().display().to_string());
            assert!(
                names && e.contains(&says) && e.contains(&format!("({most} bytes): check")),
                "{e}"
            );
        };
        refused(512 << 20, &|path| CacheManifest::read(path).map(|_| ()));
        refused(1 << 30, &|path| ShardManifest::read(path).map(|_| ()));
    }

    fn shard() -> ShardManifest {
        let member = |name: &str, header_at| MemberEntry {
            name: name.into(),
            header_at,
            data_at: header_at + 512,
            size: 7,
            hash: HexHash64(header_at + 3),
        };
        ShardManifest {
            format: ShardManifest::FORMAT.into(),
            version: VERSION,
            checksum: HexHash128(0),
            first_id: 4,
            bytes: 3072,
            hash: HexHash128(u128::MAX / 3),
            targets: TargetMembers::default(),
            samples: vec![SampleEntry {
                source: 9,
                size: None,
                members: vec![member("00000004_a.jpg", 0), member("00000004_a.cls", 1024)],
            }],
            columns: None,
            skipped: vec![SkippedEntry {
                source: 2,
                path: "a/\u{1}\"é.jpg".into(),
                reason: "the file is empty".into(),
            }],
        }
    }

    fn cache() -> CacheManifest {
        CacheManifest {
            format: CacheManifest::FORMAT.into(),
            version: VERSION,
            checksum: HexHash128(0),
            featherload: "0.1.0".into(),
            complete: true,
            options: OptionsEntry {
                encode: "jpeg:90".into(),
                resize: Some("shorter:256".into()),
                shard_size: 1 << 28,
                shard_samples: None,
                shuffle: Some(u64::MAX),
                on_error: "stop".into(),
                max_pixels: 1,
                max_scratch: 2,
            },
            source: SourceEntry {
                samples: 3,
                index: HexHash128(1),
                files: HexHash128(2),
                lost: Some(SourceLosses {
                    damaged_shards: 1,
                    damaged_samples: 2,
                    left_out: BTreeMap::from([("empty shard".into(), 3)]),
                    other_fields: BTreeMap::from([("seg.png".into(), 4)]),
                }),
            },
            classes: vec!["cat".into(), "dog".into()],
            label_width: 1,
            columns: Vec::new(),
            objects: None,
            masks: None,
            rasters: Vec::new(),
            samples: 2,
            skipped: 1,
            shards: vec![ShardEntry {
                name: "shard-000000".into(),
                bytes: 3072,
                samples: 2,
                manifest: HexHash128(5),
                idx: HexHash128(6),
                columns: None,
            }],
            index: Some(HexHash128(7)),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let written = shard().write(&path).unwrap();
        let (read, hash) = ShardManifest::read(&path).unwrap();
        assert_eq!(hash, written);
        let mut expected = shard();
        expected.checksum = read.checksum;
        assert_eq!(read, expected);
        assert_ne!(read.checksum, HexHash128(0));

        let written = cache().write(&path).unwrap();
        let (read, hash) = CacheManifest::read(&path).unwrap();
        assert_eq!(hash, written);
        assert_eq!(read.shards, cache().shards);
        assert_eq!(read.options, cache().options);
        let e = ShardManifest::read(&path).unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("another kind"),
            "{e}"
        );
    }

    #[test]
    fn every_changed_bit_and_every_truncation_is_noticed() {
        fn check<M: Manifest + PartialEq + fmt::Debug>(manifest: &M) {
            let good = manifest.to_bytes().unwrap();
            assert!(M::from_bytes(&good).is_ok());
            for len in 0..good.len() {
                assert!(M::from_bytes(&good[..len]).is_err(), "{len}");
            }
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(M::from_bytes(&bad).is_err(), "bit {bit}");
            }
            for blank in 0..=good.len() {
                let mut bad = good.clone();
                bad.insert(blank, b' ');
                assert!(M::from_bytes(&bad).is_err(), "a blank at {blank}");
            }
        }
        check(&shard());
        check(&cache());
        let (mut shard, mut cache) = (shard(), cache());
        shard.columns = Some(shard.samples[0].members[0].clone());
        shard.version = COLUMNS_VERSION;
        check(&shard);
        cache.columns = vec![ColumnEntry {
            name: "a\"é".into(),
            kind: "text".into(),
        }];
        cache.shards[0].columns = Some(ColumnsPlace { at: 1, bytes: 2 });
        cache.version = COLUMNS_VERSION;
        check(&cache);
        shard.targets.objects = true;
        shard.samples[0].size = Some((3, 4));
        shard.version = TARGETS_VERSION;
        check(&shard);
        cache.objects = Some(ObjectsEntry {
            source: HexHash128(8),
            rule: serde_json::json!({"style": "hf", "min_size": 0.1}),
            form: ObjectForm::default(),
            table: Some(HexHash128(9)),
        });
        cache.version = TARGETS_VERSION;
        check(&cache);
        shard.targets.rasters = 2;
        shard.version = RASTERS_VERSION;
        check(&shard);
        cache.rasters = vec![raster("depth")];
        cache.version = RASTERS_VERSION;
        check(&cache);
        assert_eq!(cache.side_files().len(), 3);
        assert!(is_side_file(&cache.side_files()[2].0));
        assert!(cache.begun().side_files().is_empty());
    }

    fn raster(name: &str) -> RasterEntry {
        RasterEntry {
            name: name.into(),
            rule: serde_json::Map::from_iter([("kind".to_owned(), "depth".into())]),
            source: HexHash128(0),
            index: Some(HexHash128(11)),
        }
    }

    /// The manifest of a store names files of this machine.
    #[test]
    fn a_raster_has_no_name_that_leads_out_of_the_cache() {
        let masks = ["masks", "mask", "Masks"];
        let others = ["", "../a", "a/b", "a.b", "é", &"a".repeat(65)];
        for name in masks.into_iter().chain(others) {
            let mut cache = cache();
            cache.rasters = vec![raster(name)];
            cache.version = RASTERS_VERSION;
            let e = CacheManifest::from_bytes(&cache.to_bytes().unwrap()).unwrap_err();
            assert!(e.to_string().contains("invalid name"), "{name}: {e}");
            let is_word = masks.contains(&name);
            assert_eq!(is_side_file(&raster_file(name)), is_word, "{name}");
        }
    }

    #[test]
    fn rasters_that_no_build_writes_are_refused() {
        let many: Vec<_> = (0..=MOST_RASTERS).map(|n| format!("r{n}")).collect();
        let many = many.iter().map(|name| raster(name)).collect();
        for rasters in [many, vec![raster("depth"), raster("Depth")]] {
            let mut cache = cache();
            cache.rasters = rasters;
            cache.version = RASTERS_VERSION;
            let e = CacheManifest::from_bytes(&cache.to_bytes().unwrap()).unwrap_err();
            assert!(e.to_string().contains("more than 7 rasters"), "{e}");
            cache.rasters.truncate(1);
            CacheManifest::from_bytes(&cache.to_bytes().unwrap()).unwrap();
        }
    }

    /// A manifest with a right checksum, as nothing of this program writes it.
    #[test]
    fn the_version_follows_from_the_columns() {
        fn refused<M: Manifest + fmt::Debug>(manifest: &M, what: &str) {
            let e = M::from_bytes(&manifest.to_bytes().unwrap()).unwrap_err();
            assert!(e.to_string().contains(what), "{e}");
        }
        let (mut shard, mut cache) = (shard(), cache());
        shard.version = COLUMNS_VERSION;
        refused(&shard, "version 3 with no columns");
        cache.version = COLUMNS_VERSION;
        refused(&cache, "version 3 with no columns");
        shard.version = VERSION;
        shard.columns = Some(shard.samples[0].members[0].clone());
        refused(&shard, "version 2 with columns");
        cache.version = VERSION;
        cache.columns = vec![ColumnEntry {
            name: "a".into(),
            kind: "text".into(),
        }];
        refused(&cache, "version 2 with columns");
    }

    #[test]
    fn another_version_is_named() {
        let mut newer = cache();
        newer.version = LAST_VERSION + 1;
        let e = CacheManifest::from_bytes(&newer.to_bytes().unwrap()).unwrap_err();
        assert_eq!(e, ManifestDamage::Version { found: 6 });
        assert!(e.to_string().contains("version 6"), "{e}");
    }

    #[test]
    fn a_folder_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(CacheManifest::read(dir.path()).unwrap_err().is_usage());
        let e = CacheManifest::read(&dir.path().join("none")).unwrap_err();
        assert!(e.to_string().contains("none"), "{e}");
    }
}
