//! What a cache says of itself: `manifest.json`, and a `.json` beside each shard.
//!
//! Runs in the consumer. One text for one value: JSON as `serde_json` writes it,
//! with a checksum of the text in it. What was read is written again and must be
//! the same, so that any changed byte of a manifest is noticed. Never in here:
//! times, host names, or where the cache lies.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

pub(crate) use crate::data::shard::hash::{HexHash64, HexHash128};
use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::sys::atomic_file::replace_by;
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};
use crate::sys::whole_file::too_long;

/// The name of a cache's manifest in its folder.
pub(crate) const CACHE_MANIFEST: &str = "manifest.json";

/// The name of the sealed index of all samples in a cache's folder; its root is
/// `/`, so its bytes do not say where the cache lies.
pub(crate) const CACHE_INDEX: &str = "index.fli";

/// The name of a cache's n-th shard, without extension. What a file names otherwise is no shard of
/// a cache: so no name leads out of the cache's folder.
pub(crate) fn shard_name(shard: u64) -> String {
    format!("shard-{shard:06}")
}

/// The version of both forms.
pub(crate) const VERSION: u32 = 2;

/// One shard of a cache: `shard-000000.json` beside `shard-000000.tar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardManifest {
    /// [`ShardManifest::FORMAT`].
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Of the text of this manifest, with this field 0. Set by
    /// [`Manifest::to_bytes`].
    pub(crate) checksum: HexHash128,
    /// The id in the cache of the first sample; of a shard that stands alone the place of
    /// the order that it begins at.
    pub(crate) first_id: u64,
    /// Length of the tar, end blocks included.
    pub(crate) bytes: u64,
    /// XXH3-128 of the whole tar.
    pub(crate) hash: HexHash128,
    /// In the cache's order: the n-th has id `first_id + n`, where the shard does not stand
    /// alone.
    pub(crate) samples: Vec<SampleEntry>,
    /// Samples of the source that came between these, or behind the last of
    /// them, and gave no member. In the cache's order.
    pub(crate) skipped: Vec<SkippedEntry>,
}

/// One sample of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SampleEntry {
    /// Its id in the source.
    pub(crate) source: u64,
    /// The picture first, then the label, if it has one.
    pub(crate) members: Vec<MemberEntry>,
}

/// One member of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberEntry {
    pub(crate) name: String,
    /// Where its (first) header begins; the bytes up to `data_at` are those of
    /// `append::encode_header(name, size)`.
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
    /// Its path under the source's root; bytes that are no UTF-8 replaced.
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// A cache: `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheManifest {
    /// [`CacheManifest::FORMAT`].
    pub(crate) format: String,
    pub(crate) version: u32,
    /// As in [`ShardManifest`].
    pub(crate) checksum: HexHash128,
    /// The version of featherload that builds it.
    pub(crate) featherload: String,
    /// False from the begin of the build to its end; then `shards`, `samples`,
    /// `skipped` and `index` are empty, 0 and none.
    pub(crate) complete: bool,
    pub(crate) options: OptionsEntry,
    pub(crate) source: SourceEntry,
    /// Names of the classes; empty when labels are none, numbers or vectors.
    pub(crate) classes: Vec<String>,
    /// Numbers per label: 0 without labels, 1 for classes, n for vectors.
    pub(crate) label_width: u64,
    /// Samples in all shards.
    pub(crate) samples: u64,
    /// Samples of the source that are in no shard.
    pub(crate) skipped: u64,
    /// In order; the n-th is called [`shard_name`].
    pub(crate) shards: Vec<ShardEntry>,
    /// Of the file `index.fli`.
    pub(crate) index: Option<HexHash128>,
}

/// What a cache was built by, as the command line spells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptionsEntry {
    /// `copy`, `jpeg:90` or `raw`.
    pub(crate) encode: String,
    /// `shorter:256`, `longer:256`, `exact:224x224`; none = as it is.
    pub(crate) resize: Option<String>,
    /// Bytes that a shard of more than one sample does not exceed;
    /// [`OptionsEntry::NO_SIZE`] where shards stand alone.
    pub(crate) shard_size: u64,
    /// Places of the order that a shard has at most; none = as many as fit.
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
    /// Of shards that stand alone: shard k is made of the places from k times
    /// `shard_samples` on, whatever their bytes.
    pub(crate) const NO_SIZE: u64 = 0;

    /// Whether each shard follows from source, options and its number alone.
    pub(crate) fn has_independent_shards(&self) -> bool {
        self.shard_size == Self::NO_SIZE
    }
}

/// By what a changed source is noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceEntry {
    pub(crate) samples: u64,
    /// `Index::hash`: paths under the root, labels and class names.
    pub(crate) index: HexHash128,
    /// Of the length and the time of change (ns) of every file, in the source's
    /// order; those of a path that no file has count as 0.
    pub(crate) files: HexHash128,
    /// None where nobody knows: of a saved index, or of another cache.
    pub(crate) lost: Option<SourceLosses>,
}

/// What of a source is no sample of its index, by what reading its names told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SourceLosses {
    /// Shards of which something is lost.
    pub damaged_shards: u64,
    /// Samples that are known to be lost with them.
    pub damaged_samples: u64,
    /// Entries that are no samples, by the name of the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Fields of samples that are neither picture nor label, by extension: how many
    /// samples have them. They are not copied.
    pub other_fields: BTreeMap<String, u64>,
}

/// What `manifest.json` says of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardEntry {
    /// Without extension: `shard-000000`.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) samples: u64,
    /// Of the file `NAME.json`.
    pub(crate) manifest: HexHash128,
    /// Of the file `NAME.idx`.
    pub(crate) idx: HexHash128,
}

/// Why bytes are no manifest, or no longer one.
#[derive(Debug, PartialEq)]
pub(crate) enum ManifestDamage {
    /// No JSON, or not the fields of this manifest.
    Text {
        what: String,
    },
    /// Of another kind: what its `format` says.
    Format {
        found: String,
    },
    Version {
        found: u32,
    },
    /// Other bytes than were written.
    Checksum,
}

impl fmt::Display for ManifestDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { what } => write!(f, "damaged, or not the manifest of a cache: {what}"),
            Self::Format { found } => write!(f, "a manifest of another kind: `{found}`"),
            Self::Version { found } => write!(
                f,
                "a manifest of version {found}, and this featherload reads version {VERSION}: \
                 build the cache again (in this folder with `force`), or use the featherload \
                 that built it"
            ),
            Self::Checksum => f.write_str("damaged: its checksum is wrong"),
        }
    }
}

impl std::error::Error for ManifestDamage {}

/// What both manifests have in common: their text.
pub(crate) trait Manifest: Serialize + DeserializeOwned + Clone {
    /// What stands in `format`.
    const FORMAT: &'static str;
    /// Whether people read it: many short lines, or few long ones.
    const PRETTY: bool;
    /// The most that is written and read of one.
    const MOST_BYTES: u64;

    /// Format, version and checksum.
    fn head(&self) -> (&str, u32, HexHash128);
    fn set_checksum(&mut self, checksum: HexHash128);

    /// The file's bytes, with the checksum that they must have.
    ///
    /// # Errors
    /// None for values of these types; `serde_json` does not promise that.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut manifest = self.clone();
        manifest.set_checksum(HexHash128(0));
        let bytes = text(&manifest)?;
        manifest.set_checksum(HexHash128::of(&bytes));
        text(&manifest)
    }

    /// Reads and checks a file's bytes.
    ///
    /// # Errors
    /// When they are not, to the last byte, what [`Manifest::to_bytes`] gives.
    fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestDamage> {
        /// What every version has.
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
            (true, VERSION) => Ok(()),
            (true, found) => Err(ManifestDamage::Version { found }),
        };
        // Read once where it is good: it may have a million shards.
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
        match is_text_of(&manifest, bytes) && checksum == checksum_of(bytes) {
            true => Ok(manifest),
            false => Err(ManifestDamage::Checksum),
        }
    }

    /// As [`Manifest::from_bytes`], with the hash of the file.
    ///
    /// # Errors
    /// When the file cannot be read, is not a regular file, or is damaged: a data
    /// set's error, which names the file.
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

    /// Puts it in the place of what is at `path`: whole, or not at all. Returns
    /// the hash of the file.
    ///
    /// # Errors
    /// What the system says, with the path; one that would not be read again.
    fn write(&self, path: &Path) -> Result<HexHash128> {
        let bytes = self.to_bytes()?;
        if bytes.len() as u64 > Self::MOST_BYTES {
            let what = format!(
                "would have {}, and {} of a manifest are read: use another `shard_samples`",
                size_rounded_up(bytes.len() as u64),
                size_rounded_down(Self::MOST_BYTES)
            );
            return Err(Error::dataset(path, what));
        }
        replace_by(path, &bytes)?;
        Ok(HexHash128::of(&bytes))
    }
}

fn text<M: Manifest>(manifest: &M) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_text(manifest, &mut bytes)
        .map_err(|e| Error::protocol(format!("the manifest just made: {e}")))?;
    Ok(bytes)
}

fn write_text<M: Manifest>(manifest: &M, mut to: impl Write) -> io::Result<()> {
    match M::PRETTY {
        true => serde_json::to_writer_pretty(&mut to, manifest)?,
        false => serde_json::to_writer(&mut to, manifest)?,
    }
    to.write_all(b"\n")
}

/// Whether `bytes` are the text of `manifest`. No second text is in memory for it.
fn is_text_of<M: Manifest>(manifest: &M, bytes: &[u8]) -> bool {
    /// What is still to come.
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

/// The checksum that the text of a manifest must have: of the text with zeros in its place. The
/// third field has it.
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
    /// A shard of five million samples has less.
    const MOST_BYTES: u64 = 1 << 30;

    fn head(&self) -> (&str, u32, HexHash128) {
        (&self.format, self.version, self.checksum)
    }

    fn set_checksum(&mut self, checksum: HexHash128) {
        self.checksum = checksum;
    }
}

impl Manifest for CacheManifest {
    const FORMAT: &'static str = "featherload-cache";
    const PRETTY: bool = true;
    /// A cache of two million shards has less.
    const MOST_BYTES: u64 = 512 << 20;

    fn head(&self) -> (&str, u32, HexHash128) {
        (&self.format, self.version, self.checksum)
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
            samples: vec![SampleEntry {
                source: 9,
                members: vec![member("00000004_a.jpg", 0), member("00000004_a.cls", 1024)],
            }],
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
            samples: 2,
            skipped: 1,
            shards: vec![ShardEntry {
                name: "shard-000000".into(),
                bytes: 3072,
                samples: 2,
                manifest: HexHash128(5),
                idx: HexHash128(6),
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
    }

    #[test]
    fn another_version_is_named() {
        let mut newer = cache();
        newer.version = 3;
        let e = CacheManifest::from_bytes(&newer.to_bytes().unwrap()).unwrap_err();
        assert_eq!(e, ManifestDamage::Version { found: 3 });
        assert!(e.to_string().contains("version 3"), "{e}");
    }

    #[test]
    fn a_folder_and_a_missing_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(CacheManifest::read(dir.path()).unwrap_err().is_usage());
        let e = CacheManifest::read(&dir.path().join("none")).unwrap_err();
        assert!(e.to_string().contains("none"), "{e}");
    }
}
