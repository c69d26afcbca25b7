//! Compares one shard with the index of all samples: names, places and labels.
//!
//! The rest of the index (shards, classes, counts) is compared with the cache's manifest when it is
//! loaded.

use std::os::unix::ffi::OsStrExt;

use crate::cache::layout::{INDEX, shard_name};
use crate::cache::sample_members::label_member;
use crate::cache::verify::findings::{DamagedSample, FindingKind, FindingLog, VerifyFinding};
use crate::data::index::{Index, Label, shown};
use crate::data::shard::manifest::{MemberEntry, ShardManifest};

/// The most bytes of a label's member that are compared with the index.
pub(super) const MOST_LABEL: usize = 1 << 20;

/// Compares the index of all samples with the manifest of shard `number`. Returns the id of its
/// first sample in the index if all names and places are the same. Otherwise reports the first
/// difference and returns `None`.
pub(super) fn compare(
    index: &Index,
    number: u64,
    manifest: &ShardManifest,
    found: &FindingLog<'_>,
) -> Option<u64> {
    let name = shard_name(number);
    let in_shard = |id: u64| index.part(id).map_or(u64::MAX, |part| part.shard);
    let (mut first, mut behind) = (0, index.len());
    while first < behind {
        let middle = first + (behind - first) / 2;
        match in_shard(middle) < number {
            true => first = middle + 1,
            false => behind = middle,
        }
    }
    let mut ids = first..index.len();
    for (place, sample) in manifest.samples.iter().enumerate() {
        let (id, picture) = (ids.next(), sample.members.first()?);
        let due = (picture.name.as_bytes(), (picture.data_at, picture.size));
        let in_index = id.filter(|id| in_shard(*id) == number).and_then(|id| {
            let part = index.part(id)?;
            Some((index.relative_path(id), (part.at, part.bytes)))
        });
        let there = in_index.map(|(path, at)| (path.as_os_str().as_bytes(), at));
        if there == Some(due) {
            continue;
        }
        let text = |(name, (at, bytes)): (&[u8], (u64, u64))| {
            format!("'{}', {bytes} bytes at {at}", shown(name))
        };
        let message = format!(
            "has another name or place for sample {place} of {name}: {}, and its manifest has {}",
            there.map_or_else(|| "no sample".into(), text),
            text(due)
        );
        let id = first.saturating_add(place as u64);
        found.add(VerifyFinding {
            file: INDEX.into(),
            offset: Some(0),
            kind: FindingKind::IndexFile,
            sample: Some(DamagedSample::of_member(Some(id), picture.name.as_bytes())),
            message,
        });
        return None;
    }
    if ids.next().is_some_and(|id| in_shard(id) == number) {
        let what = format!("has more samples in {name} than its manifest");
        found.add_file_finding(INDEX, FindingKind::IndexFile, Some(0), what);
        return None;
    }
    Some(first)
}

/// The label of a sample in its tar.
pub(super) enum TarLabel<'a> {
    Nothing,
    /// Reported already, or cannot be read.
    Damaged,
    /// The member and its first [`MOST_LABEL`] bytes.
    Label(&'a MemberEntry, Vec<u8>),
}

impl TarLabel<'_> {
    /// Describes how the index's label differs from it; `None` if it does not.
    pub(super) fn differs_from(&self, label: Label<'_>) -> Option<String> {
        let due = label_member(label).ok()?;
        let in_index = || match &due {
            Some((_, text_of)) => format!("has the label {} in the index", shown(text_of)),
            None => "has no label in the index".to_owned(),
        };
        match (self, &due) {
            (Self::Damaged, _) | (Self::Nothing, None) => None,
            // If no sample has a class, the tar has no members for labels.
            (Self::Nothing, Some(_)) if label == Label::Class(-1) => None,
            (Self::Nothing, Some(_)) => Some(format!("{}, and none in its shard", in_index())),
            (Self::Label(member, bytes), due) => {
                let is_due = due.as_ref().is_some_and(|(extension, due)| {
                    member.name.ends_with(&format!(".{extension}"))
                        && member.size == due.len() as u64
                        && due.starts_with(bytes)
                });
                (!is_due).then(|| {
                    let name = shown(member.name.as_bytes());
                    format!("{}, and '{name}' says {}", in_index(), shown(bytes))
                })
            }
        }
    }
}
