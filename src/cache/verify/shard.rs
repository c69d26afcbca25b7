//! Checks one shard against its manifest: the tar, and the files beside it.
//!
//! The manifest determines every byte of the tar. Headers are encoded again and compared. Data have
//! a hash each. The rest is zeros.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::cache::layout::{INDEX, ShardFile};
use crate::cache::shard_ledger::idx_text;
use crate::cache::targets::objects_json;
use crate::cache::verify::file_window::{FileWindow, first_difference, read_whole};
use crate::cache::verify::findings::{DamagedSample, FindingKind, FindingLog, VerifyFinding};
use crate::cache::verify::index::{MOST_LABEL, TarLabel, compare};
use crate::cache::verify::tar_headers;
use crate::data::index::{Index, shown};
use crate::data::objects::ObjectTable;
use crate::data::shard::manifest::{
    CACHE_OBJECTS, ColumnsPlace, HexHash128, Manifest, MemberEntry, SampleEntry, ShardEntry,
    ShardManifest,
};
use crate::data::shard::shard_writer::{END, encode_header, member_bytes};

/// Bytes of a tar that one thread checks as one task; at least one sample.
const PIECE: u64 = 32 << 20;

/// A shard with an intact manifest.
struct CheckedShard {
    /// The name of the tar.
    name: String,
    file: File,
    len: u64,
    manifest: ShardManifest,
    stands_alone: bool,
    /// The id of its first sample in the index of all samples; none if they do not agree.
    first_in_index: Option<u64>,
}

/// What the intact rest of the cache says about a shard.
#[derive(Clone, Copy)]
pub(super) struct ShardExpectation<'a> {
    pub(super) entry: Option<&'a ShardEntry>,
    pub(super) stands_alone: bool,
    pub(super) source_samples: Option<u64>,
    pub(super) index: Option<&'a Index>,
}

/// The result of the check of a member's data.
enum MemberState {
    /// The file ends before it does.
    Cut,
    /// Reported already, or cannot be read.
    Damaged,
    /// Undamaged, with the first bytes of its data.
    Good(Vec<u8>),
}

/// A range of samples of a shard.
pub(super) struct ShardPiece {
    shard: Arc<CheckedShard>,
    samples: Range<usize>,
}

/// Checks the files beside the tar, and the entry of the shard in the cache's manifest. Returns the
/// pieces of the tar.
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
        let message = format!("has {len} bytes, but its manifest says {}", manifest.bytes);
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

/// The manifest of a shard, and the id of its first sample in the index of all samples, if they
/// agree. `None` if the manifest cannot be trusted.
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
        let what = format!("has {samples} samples, but the cache's manifest says {said_samples}");
        tell(FindingKind::Manifest, what);
    }
    let place = manifest.columns.as_ref().map(|member| ColumnsPlace {
        at: member.data_at,
        bytes: member.size,
    });
    if place != entry.columns {
        let what = "states another place of the columns than the cache's manifest";
        tell(FindingKind::Manifest, what.into());
    }
    let index = said.index;
    let first = index.and_then(|index| compare(index, number, &manifest, found));
    Some((manifest, first))
}

/// Checks a manifest for impossible values: members must follow one another as a writer places
/// them. Each sample must have an image, and exist in the source.
fn lies(manifest: &ShardManifest, source_samples: Option<u64>) -> Result<(), String> {
    let is_of_source = |id: u64| source_samples.is_none_or(|all| id < all);
    let sources = manifest.samples.iter().map(|sample| sample.source);
    let mut sources = sources.chain(manifest.skipped.iter().map(|entry| entry.source));
    if let Some(id) = sources.find(|id| !is_of_source(*id)) {
        return Err(format!(
            "lists sample {id} of its source, which has no such sample"
        ));
    }
    if manifest
        .samples
        .iter()
        .any(|sample| sample.members.is_empty())
    {
        return Err("has a sample without a picture".into());
    }
    let targets = manifest.targets.count();
    let lacks = |sample: &SampleEntry| sample.members.len() <= targets;
    if manifest.samples.iter().any(lacks) {
        return Err("has a sample without its targets".into());
    }
    let mut at = 0u64;
    let members = manifest.samples.iter().flat_map(|s| &s.members);
    for member in members.chain(&manifest.columns) {
        let header = encode_header(&member.name, member.size).len() as u64;
        if member.header_at != at || member.data_at != at + header {
            let name = shown(member.name.as_bytes());
            return Err(format!("states an impossible offset for '{name}'"));
        }
        // No file is that large.
        at = at
            .checked_add(member_bytes(&member.name, member.size))
            .filter(|end| *end < 1 << 62)
            .ok_or_else(|| {
                let name = shown(member.name.as_bytes());
                format!("states that '{name}' is larger than any file")
            })?;
    }
    match manifest.bytes == at + END {
        true => Ok(()),
        false => Err(format!(
            "states that its shard has {} bytes, but its members end at byte {at}",
            manifest.bytes
        )),
    }
}

/// Checks DALI's index against the shard's manifest, which determines it. Without one, checks it
/// against its hash in the cache's manifest.
fn check_idx(
    folder: &Path,
    number: u64,
    manifest: Option<&ShardManifest>,
    entry: Option<&ShardEntry>,
    found: &FindingLog<'_>,
) {
    let name = ShardFile::Idx.name(number);
    // The index is shorter than the manifest.
    let path = ShardFile::Idx.path(folder, number);
    let bytes = match read_whole(&path, ShardManifest::MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(what) => return found.add_file_finding(&name, FindingKind::Unreadable, None, what),
    };
    found.read(bytes.len() as u64);
    let hurt = match (manifest, entry) {
        (Some(manifest), _) => match idx_text(manifest) {
            Ok(text) => first_difference(&bytes, &text).map(|n| n as u64),
            // The manifest has names that no build writes.
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
    /// Ranges of samples of about `PIECE` bytes each. There is at least one; the last one includes
    /// the end of the archive.
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
    /// Checks all bytes of these samples, and compares their labels with the index.
    /// Compares their objects with `objects`, the table of all samples.
    pub(super) fn check(
        self,
        index: Option<&Index>,
        objects: Option<&ObjectTable>,
        found: &FindingLog<'_>,
    ) {
        let CheckedShard {
            file,
            len,
            manifest,
            ..
        } = &*self.shard;
        // Reads each byte once: this piece ends where the next one begins.
        let next = manifest.samples[self.samples.end..].iter();
        let next = next.flat_map(|s| s.members.first()).next();
        let end = next.map_or(manifest.bytes, |member| member.header_at);
        let mut bytes = FileWindow::new(file, end.min(*len), found);
        for i in self.samples.clone() {
            self.check_sample(i, index, &mut bytes, found);
            if let Some(table) = objects {
                self.compare_objects(i, table, found);
            }
        }
        let is_last = self.samples.end == manifest.samples.len();
        if let Some(member) = manifest.columns.as_ref().filter(|_| is_last) {
            self.check_member(member, None, 0, &mut bytes, found);
        }
        if is_last && manifest.bytes <= *len {
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
        let manifest = &self.shard.manifest;
        let sample = &manifest.samples[i];
        // Targets come after the label.
        let first_target = sample
            .members
            .len()
            .saturating_sub(manifest.targets.count());
        let mut label = TarLabel::Nothing;
        for (nth, member) in sample.members.iter().enumerate() {
            let is_label = nth > 0 && nth < first_target;
            let kept = if is_label { MOST_LABEL } else { 0 };
            match self.check_member(member, Some(i), kept, bytes, found) {
                MemberState::Cut => return,
                MemberState::Damaged if nth < first_target => label = TarLabel::Damaged,
                MemberState::Good(first) if is_label => label = TarLabel::Label(member, first),
                MemberState::Damaged | MemberState::Good(_) => {}
            }
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

    /// Compares the hash of a sample's objects with that of its objects in the table.
    fn compare_objects(&self, i: usize, table: &ObjectTable, found: &FindingLog<'_>) {
        let manifest = &self.shard.manifest;
        let members = &manifest.samples[i].members;
        let at = members.len().checked_sub(manifest.targets.count());
        let (Some(id), Some(member)) =
            (self.shard.first_in_index, at.and_then(|at| members.get(at)))
        else {
            return;
        };
        let id = id + i as u64;
        let text = table
            .stated(id)
            .and_then(|sample| objects_json(&sample, table.form()).ok());
        let hash = text.map(|text| XxHash3_64::oneshot(&text));
        if hash == Some(member.hash.0) {
            return;
        }
        let name = shown(member.name.as_bytes());
        found.add(VerifyFinding {
            file: CACHE_OBJECTS.into(),
            offset: Some(0),
            kind: FindingKind::IndexFile,
            sample: Some(DamagedSample::of_member(Some(id), member.name.as_bytes())),
            message: format!("has other objects for sample {id} than '{name}'"),
        });
    }

    /// Checks header, data and padding of a member, of sample `i` if it belongs to one.
    fn check_member(
        &self,
        member: &MemberEntry,
        i: Option<usize>,
        kept: usize,
        bytes: &mut FileWindow<'_>,
        found: &FindingLog<'_>,
    ) -> MemberState {
        let len = self.shard.len;
        let data_end = member.data_at + member.size;
        let end = member.header_at + member_bytes(&member.name, member.size);
        let tell = |kind: FindingKind, from, at| {
            let what = || kind.of_member(&member.name);
            self.tell(found, kind, i.map(|i| (i, member)), from, at, what);
        };
        if end > len {
            let at = member.header_at.max(len.min(data_end));
            tell(FindingKind::Length, at, Ok(Some(at)));
            return MemberState::Cut;
        }
        let header = encode_header(&member.name, member.size);
        let at = bytes.differ_from(member.header_at, &header);
        tell(FindingKind::Header, member.header_at, at);
        let mut state = MemberState::Damaged;
        let hash = bytes.hash(member.data_at, data_end, kept);
        let hash = hash.map(|(hash, first)| {
            let is_good = hash == member.hash.0;
            if is_good {
                state = MemberState::Good(first);
            }
            (!is_good).then_some(member.data_at)
        });
        tell(FindingKind::Data, member.data_at, hash);
        let padding = bytes.not_zero(data_end, end);
        tell(FindingKind::Padding, data_end, padding);
        state
    }

    /// Reports the result of a check of the bytes from `from` on.
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
            // The manifest of an independent shard has no ids.
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
