//! One shard by its manifest: what is in it, and what is beside it.
//!
//! The manifest says of every byte of the tar what it is: headers are made again
//! and compared, data have a hash each, the rest is zeros.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cache::layout::{INDEX, ShardFile};
use crate::cache::shard_ledger::idx_text;
use crate::cache::verify::file_window::{FileWindow, first_difference, read_whole};
use crate::cache::verify::findings::{DamagedSample, FindingKind, FindingLog, VerifyFinding};
use crate::cache::verify::index::{MOST_LABEL, TarLabel, compare};
use crate::cache::verify::tar_headers;
use crate::data::index::{Index, shown};
use crate::data::shard::manifest::{HexHash128, Manifest, MemberEntry, ShardEntry, ShardManifest};
use crate::data::shard::shard_writer::{END, encode_header, member_bytes};

/// Bytes of a tar that are checked by one thread in one go; a sample at least.
const PIECE: u64 = 32 << 20;

/// A shard whose manifest is good.
struct CheckedShard {
    /// The tar's name.
    name: String,
    file: File,
    len: u64,
    manifest: ShardManifest,
    stands_alone: bool,
    /// The id of the first sample in the index of all; none where that is not known.
    first_in_index: Option<u64>,
}

/// What the rest of the cache says of a shard, as far as that is good.
#[derive(Clone, Copy)]
pub(super) struct ShardExpectation<'a> {
    pub(super) entry: Option<&'a ShardEntry>,
    pub(super) stands_alone: bool,
    pub(super) source_samples: Option<u64>,
    pub(super) index: Option<&'a Index>,
}

/// Some samples of a shard.
pub(super) struct ShardPiece {
    shard: Arc<CheckedShard>,
    samples: Range<usize>,
}

/// Checks what is beside the tar, of the files that are there, and what the
/// cache's manifest says of them; gives the tar's pieces.
pub(super) fn begin(
    folder: &Path,
    number: u64,
    there: &[ShardFile],
    said: ShardExpectation<'_>,
    found: &FindingLog<'_>,
) -> Vec<ShardPiece> {
    let ShardExpectation {
        entry,
        stands_alone,
        ..
    } = said;
    let read = match there.contains(&ShardFile::Manifest) {
        true => read_manifest(folder, number, said, found),
        false => None,
    };
    let (manifest, first_in_index) = read.unzip();
    if there.contains(&ShardFile::Idx) {
        check_idx(folder, number, manifest.as_ref(), entry, found);
    }
    if !there.contains(&ShardFile::Tar) {
        return Vec::new();
    }
    let (path, name) = (
        ShardFile::Tar.path(folder, number),
        ShardFile::Tar.name(number),
    );
    let Some(manifest) = manifest else {
        tar_headers::check(&path, Path::new(&name), Some(entry.map(|e| e.bytes)), found);
        return Vec::new();
    };
    let (file, len) = match crate::data::shard::open(&path) {
        Ok(opened) => opened,
        Err(e) => {
            found.add_file_finding(&name, FindingKind::Unreadable, None, e.to_string());
            return Vec::new();
        }
    };
    found.shard(manifest.samples.len() as u64);
    if len != manifest.bytes {
        let message = format!("has {len} bytes, and its manifest says {}", manifest.bytes);
        let at = len.min(manifest.bytes);
        found.add_file_finding(&name, FindingKind::Length, Some(at), message);
    }
    let shard = Arc::new(CheckedShard {
        name,
        file,
        len,
        manifest,
        stands_alone,
        first_in_index: first_in_index.flatten(),
    });
    let pieces = shard.pieces().into_iter();
    pieces
        .map(|samples| {
            let shard = Arc::clone(&shard);
            ShardPiece { shard, samples }
        })
        .collect()
}

/// A shard's manifest, and the id of its first sample in the index of all, where that agrees with
/// it; none when it is not to be trusted.
fn read_manifest(
    folder: &Path,
    number: u64,
    said: ShardExpectation<'_>,
    found: &FindingLog<'_>,
) -> Option<(ShardManifest, Option<u64>)> {
    let entry = said.entry;
    let name = ShardFile::Manifest.name(number);
    let tell = |kind, what: String| found.add_file_finding(&name, kind, Some(0), what);
    let path = ShardFile::Manifest.path(folder, number);
    let bytes = match read_whole(&path, ShardManifest::MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(what) => {
            tell(FindingKind::Unreadable, what);
            return None;
        }
    };
    found.read(bytes.len() as u64);
    let manifest = match ShardManifest::from_bytes(&bytes) {
        Ok(manifest) => manifest,
        Err(damage) => {
            tell(FindingKind::Manifest, damage.to_string());
            return None;
        }
    };
    if let Err(what) = lies(&manifest, said.source_samples) {
        tell(FindingKind::Manifest, what);
        return None;
    }
    let Some(entry) = entry else {
        return Some((manifest, None));
    };
    if entry.manifest != HexHash128::of(&bytes) {
        let what = "belongs to another shard or cache: its hash differs from the cache's manifest";
        tell(FindingKind::Manifest, what.into());
        return Some((manifest, None));
    }
    let (samples, said_samples) = (manifest.samples.len() as u64, entry.samples);
    if samples != said_samples {
        let what = format!("has {samples} samples, and the cache's manifest says {said_samples}");
        tell(FindingKind::Manifest, what);
    }
    let index = said.index;
    let first = index.and_then(|index| compare(index, number, &manifest, found));
    Some((manifest, first))
}

/// Whether the members of a manifest follow one another, as a writer puts them, and each sample
/// has a picture and is one of the source's.
fn lies(manifest: &ShardManifest, source_samples: Option<u64>) -> Result<(), String> {
    let is_of_source = |id: u64| source_samples.is_none_or(|all| id < all);
    let sources = manifest.samples.iter().map(|sample| sample.source);
    let mut sources = sources.chain(manifest.skipped.iter().map(|entry| entry.source));
    if let Some(id) = sources.find(|id| !is_of_source(*id)) {
        return Err(format!(
            "names sample {id} of its source, which has none of this number"
        ));
    }
    if manifest
        .samples
        .iter()
        .any(|sample| sample.members.is_empty())
    {
        return Err("has a sample without a picture".into());
    }
    let mut at = 0u64;
    for member in manifest.samples.iter().flat_map(|s| &s.members) {
        let header = encode_header(&member.name, member.size).len() as u64;
        if member.header_at != at || member.data_at != at + header {
            let name = shown(member.name.as_bytes());
            return Err(format!("says that '{name}' lies where it cannot"));
        }
        // The end of a file is below 2^63.
        at = at
            .checked_add(member_bytes(&member.name, member.size))
            .filter(|end| *end < 1 << 62)
            .ok_or_else(|| {
                let name = shown(member.name.as_bytes());
                format!("says that '{name}' is larger than any file")
            })?;
    }
    match manifest.bytes == at + END {
        true => Ok(()),
        false => Err(format!(
            "says that its shard has {} bytes, and members of {at}",
            manifest.bytes
        )),
    }
}

/// DALI's index, by the manifest of the shard, of which it follows; else by the
/// hash that the cache's has.
fn check_idx(
    folder: &Path,
    number: u64,
    manifest: Option<&ShardManifest>,
    entry: Option<&ShardEntry>,
    found: &FindingLog<'_>,
) {
    let name = ShardFile::Idx.name(number);
    // It has less to say than the manifest.
    let path = ShardFile::Idx.path(folder, number);
    let bytes = match read_whole(&path, ShardManifest::MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(what) => return found.add_file_finding(&name, FindingKind::Unreadable, None, what),
    };
    found.read(bytes.len() as u64);
    let hurt = match (manifest, entry) {
        (Some(manifest), _) => match idx_text(manifest) {
            Ok(text) => first_difference(&bytes, &text).map(|n| n as u64),
            // Names that no build writes.
            Err(_) => Some(0),
        },
        (None, Some(entry)) => (entry.idx != HexHash128::of(&bytes)).then_some(0),
        (None, None) => None,
    };
    if let Some(at) = hurt {
        let what = "is not the index of this shard: a build writes it again";
        found.add_file_finding(&name, FindingKind::Index, Some(at), what.into());
    }
}

impl CheckedShard {
    /// Runs of samples of about so many bytes; the last has the shard's end. One at
    /// least.
    fn pieces(&self) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let (mut first, mut from) = (0, 0);
        for (i, sample) in self.manifest.samples.iter().enumerate() {
            let Some(member) = sample.members.first() else {
                continue;
            };
            if member.header_at - from > PIECE {
                pieces.push(first..i);
                (first, from) = (i, member.header_at);
            }
        }
        pieces.push(first..self.manifest.samples.len());
        pieces
    }
}

impl ShardPiece {
    /// Reads all bytes of these samples, and compares their labels with the index.
    pub(super) fn check(self, index: Option<&Index>, found: &FindingLog<'_>) {
        let CheckedShard {
            file,
            len,
            manifest,
            ..
        } = &*self.shard;
        // Each byte once: what the next piece begins with is the next one's.
        let next = manifest.samples[self.samples.end..].iter();
        let next = next.flat_map(|s| s.members.first()).next();
        let end = next.map_or(manifest.bytes, |member| member.header_at);
        let mut bytes = FileWindow::new(file, end.min(*len), found);
        for i in self.samples.clone() {
            self.check_sample(i, index, &mut bytes, found);
        }
        if self.samples.end == manifest.samples.len() && manifest.bytes <= *len {
            let from = manifest.bytes - END;
            let at = bytes.not_zero(from, manifest.bytes);
            let what = || "the end of the archive is not zero".to_owned();
            self.tell(found, FindingKind::EndBlocks, None, from, at, what);
        }
    }

    fn check_sample(
        &self,
        i: usize,
        index: Option<&Index>,
        bytes: &mut FileWindow<'_>,
        found: &FindingLog<'_>,
    ) {
        let (len, sample) = (self.shard.len, &self.shard.manifest.samples[i]);
        let mut label = TarLabel::Nothing;
        for (nth, member) in sample.members.iter().enumerate() {
            let data_end = member.data_at + member.size;
            let end = member.header_at + member_bytes(&member.name, member.size);
            let tell = |kind: FindingKind, from, at| {
                let what = || kind.of_member(&member.name);
                self.tell(found, kind, Some((i, member)), from, at, what);
            };
            if end > len {
                let at = member.header_at.max(len.min(data_end));
                return tell(FindingKind::Length, at, Ok(Some(at)));
            }
            let header = encode_header(&member.name, member.size);
            let at = bytes.differ_from(member.header_at, &header);
            tell(FindingKind::Header, member.header_at, at);
            let kept = if nth == 0 { 0 } else { MOST_LABEL };
            let hash = bytes.hash(member.data_at, data_end, kept);
            let hash = hash.map(|(hash, first)| {
                let is_good = hash == member.hash.0;
                label = match is_good {
                    true if nth == 0 => TarLabel::Nothing,
                    true => TarLabel::Label(member, first),
                    false => TarLabel::Damaged,
                };
                (!is_good).then_some(member.data_at)
            });
            if hash.is_err() {
                label = TarLabel::Damaged;
            }
            tell(FindingKind::Data, member.data_at, hash);
            tell(
                FindingKind::Padding,
                data_end,
                bytes.not_zero(data_end, end),
            );
        }
        let id = self.shard.first_in_index.map(|first| first + i as u64);
        if let Some((id, index)) = id.zip(index)
            && let Some(message) = label.differs_from(index.label(id))
            && let Some(picture) = sample.members.first()
        {
            found.add(VerifyFinding {
                file: INDEX.into(),
                offset: Some(0),
                kind: FindingKind::IndexFile,
                sample: Some(DamagedSample::of_member(Some(id), picture.name.as_bytes())),
                message: format!("'{}' {message}", shown(picture.name.as_bytes())),
            });
        }
    }

    /// Tells what a check of the bytes from `from` on has found.
    fn tell(
        &self,
        found: &FindingLog<'_>,
        kind: FindingKind,
        of: Option<(usize, &MemberEntry)>,
        from: u64,
        at: io::Result<Option<u64>>,
        what: impl Fn() -> String,
    ) {
        let (kind, at, message) = match at {
            Ok(None) => return,
            Ok(Some(at)) => (kind, at, what()),
            Err(e) => (
                FindingKind::Unreadable,
                from,
                format!("cannot be read: {e}"),
            ),
        };
        let sample = of.map(|(i, member)| {
            let first = self.shard.manifest.first_id;
            // Of a shard that stands alone only the place is known, which the name has.
            let id = (!self.shard.stands_alone).then(|| first.saturating_add(i as u64));
            DamagedSample::of_member(id, member.name.as_bytes())
        });
        found.add(VerifyFinding {
            file: self.shard.name.as_str().into(),
            offset: Some(at),
            kind,
            sample,
            message,
        });
    }
}
