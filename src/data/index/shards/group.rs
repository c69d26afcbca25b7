//! Groups the members of one shard into samples: consecutive members with the same key.
//!
//! Runs in the consumer, one thread per shard. Reads headers, or DALI's index instead of them, and
//! the members that hold labels. It reads no image.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data::index::label_value::{self, LabelValue};
use crate::data::index::record_keys;
use crate::data::index::report::{DamagedShard, ScanReport, SkipReason};
use crate::data::index::shards::fields::{self, FieldChoice, FieldUsage, is_json};
use crate::data::index::shards::options::{ShardLabels, ShardOptions};
use crate::data::index::shards::shard_scan::{RawLabel, ShardScan};
use crate::data::shard;
use crate::data::shard::dali_index;
use crate::data::shard::dali_index::DaliIndex;
use crate::data::shard::header::BLOCK;
use crate::data::shard::member_name;
use crate::data::shard::walk::{
    DamageKind, HeaderWalk, ShardDamage, ShardEnding, ShardMember, SkippedFiles, WalkResult,
    block_after,
};
use crate::error::{self, Error, Result};

/// Maximum size of a label. A larger member is not a label.
const MAX_LABEL: u64 = 1 << 20;
/// Maximum number of labels without an image that are kept, to be compared with samples.
const MOST_LONE_LABELS: usize = 1000;

/// Reads the shard at `path`, which is absolute. Reports name it `shown`. If another choice of
/// fields is better for this shard, its headers are read once more.
pub(crate) fn read(path: &Path, shown: &Path, options: &ShardOptions) -> Result<ShardScan> {
    let (file, len) = shard::open(path)?;
    let index = dali_index::path_of(path);
    let is_newer = is_newer(&index, path, &file)?;
    let idx = match is_newer {
        true => usable(&index, &file, len),
        false => None,
    };
    let read = |choice: &FieldChoice| -> Result<ShardScan> {
        let new = || SampleGrouper::new(&file, path, shown, &options.labels, choice);
        if let Some(idx) = &idx {
            let mut grouper = new();
            grouper.by_index = true;
            match grouper.members_of(idx) {
                Ok(()) => return Ok(grouper.found),
                // The headers show whether this is a fault of the shard.
                Err(why) => tracing::warn!(
                    "{}: {why}, so the shard's headers are read",
                    index.display()
                ),
            }
        }
        let mut grouper = new();
        let mut walk = HeaderWalk::new(&file, len);
        while let Some(member) = walk.next().map_err(|e| Error::io_at("read", path, e))? {
            grouper.push(member)?;
        }
        let walked = walk.finish();
        check_is_tar(path, &file, len, &walked)?;
        grouper.end(&walked, len, &index, is_newer)?;
        Ok(grouper.found)
    };
    let choice = FieldChoice::of(options);
    let found = read(&choice)?;
    let Some(better) = choice.improve(found.samples(), &found.seen, options) else {
        return Ok(found);
    };
    let mut chosen = read(&better)?;
    chosen.seen = FieldUsage {
        pictures: found.seen.pictures.clone(),
        member: found.seen.member.clone(),
        ..chosen.seen
    };
    // Needed if other shards have images by their extensions alone.
    chosen.plain = (better.pictures != choice.pictures).then(|| Box::new(found));
    chosen.choice = better;
    Ok(chosen)
}

/// Whether DALI's index exists and is newer than its shard.
fn is_newer(index: &Path, path: &Path, shard: &File) -> Result<bool> {
    let Ok(meta) = index.metadata() else {
        return Ok(false);
    };
    let of_shard = shard
        .metadata()
        .map_err(|e| Error::io_at("look at", path, e))?;
    Ok(dali_index::is_newer(&meta, &of_shard))
}

/// DALI's index, if it is valid.
fn usable(index: &Path, shard: &File, len: u64) -> Option<DaliIndex> {
    match DaliIndex::read(index, shard, len) {
        Ok(idx) => Some(idx),
        Err(unusable) => {
            // The walk over the headers finds the same damage, and more.
            tracing::warn!(
                "{}: {unusable}, so the shard's headers are read",
                index.display()
            );
            None
        }
    }
}

/// Rejects a file that does not begin like a tar, because it was named by mistake.
pub(crate) fn check_is_tar(path: &Path, file: &File, len: u64, walked: &WalkResult) -> Result<()> {
    // A tar that is cut inside its first member, or inside the headers of that member, is a shard.
    let is_nothing = |d: &ShardDamage| {
        let is_cut = match d.what {
            DamageKind::Cut { .. } => true,
            DamageKind::CutHeader => len >= BLOCK,
            _ => false,
        };
        d.at == 0 && d.lost == len && !is_cut
    };
    if len > 0 && !walked.damage.first().is_some_and(is_nothing) {
        return Ok(());
    }
    let mut head = [0; 6];
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    let compressed = [
        (&b"\x1f\x8b"[..], "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"PK\x03\x04", "zip"),
    ];
    let by = compressed
        .iter()
        .find(|(magic, _)| head[..read].starts_with(magic));
    Err(Error::dataset(
        path,
        match by {
            _ if len == 0 => "is an empty file: remove it, or make the tar again".into(),
            Some((_, "zip")) => "is a zip archive: unpack it to a folder or to a plain tar".into(),
            Some((_, by)) => format!(
                "is compressed by {by}: unpack it to a plain tar, since samples are read in place"
            ),
            None => "is not a tar archive: it does not begin with a header".into(),
        },
    ))
}

/// One member of the current sample.
struct SampleField {
    /// In lower case.
    extension: Vec<u8>,
    name: Vec<u8>,
    at: u64,
    size: u64,
}

struct SampleGrouper<'a> {
    file: &'a File,
    path: &'a Path,
    shown: &'a Path,
    labels: &'a ShardLabels,
    choice: &'a FieldChoice,
    class_numbers: BTreeMap<Vec<u8>, u32>,
    found: ShardScan,
    /// The key of the current sample. If `fields` is empty, there is no current sample.
    key: Vec<u8>,
    fields: Vec<SampleField>,
    is_suspect: bool,
    next_is_suspect: bool,
    /// Number of samples so far, including skipped ones.
    groups: u64,
    /// Number of samples that lost a member.
    incomplete: u64,
    pictures: PictureRanks,
    /// Whether members come from DALI's index instead of the headers.
    by_index: bool,
    /// A label that the index names, but that is not in the shard. The index then belongs to
    /// another shard.
    other_label: Option<Vec<u8>>,
}

/// The image extensions of this shard so far. Each is a bit, numbered by its rank.
#[derive(Default)]
struct PictureRanks {
    chosen: u32,
    /// Extensions that were not chosen, because another field has a lower rank. For example, the
    /// features of an image.
    beside: u32,
}

impl PictureRanks {
    /// Whether a field with this extension only ever stands beside the image.
    fn is_beside(&self, rank: usize) -> bool {
        self.beside >> rank & 1 == 1 && self.chosen >> rank & 1 == 0
    }
}

impl<'a> SampleGrouper<'a> {
    fn new(
        file: &'a File,
        path: &'a Path,
        shown: &'a Path,
        labels: &'a ShardLabels,
        choice: &'a FieldChoice,
    ) -> Self {
        Self {
            file,
            path,
            shown,
            labels,
            class_numbers: BTreeMap::new(),
            choice,
            found: ShardScan::default(),
            key: Vec::new(),
            fields: Vec::new(),
            is_suspect: false,
            next_is_suspect: false,
            groups: 0,
            incomplete: 0,
            pictures: PictureRanks::default(),
            by_index: false,
            other_label: None,
        }
    }

    /// Adds all members that an index names. An error says why the index cannot be used.
    fn members_of(&mut self, idx: &DaliIndex) -> Result<(), String> {
        let told = |e: Error| format!("what it names cannot be used ({e})");
        for member in idx.members() {
            self.push(member).map_err(told)?;
            self.has_its_labels()?;
        }
        self.close().map_err(told)?;
        self.skip_some(SkipReason::NotPlain, &idx.not_plain);
        self.skip_some(SkipReason::Hidden, &idx.unnamed.hidden);
        self.skip_some(SkipReason::NoSampleName, &idx.unnamed.others);
        self.has_its_labels()
    }

    /// Checks that the shard has every label so far at the place that the index states.
    fn has_its_labels(&self) -> Result<(), String> {
        let lacks = |label: &Vec<u8>| {
            let label = label.escape_ascii();
            format!("names a label '{label}' that the shard does not have there")
        };
        self.other_label
            .as_ref()
            .map_or(Ok(()), |label| Err(lacks(label)))
    }

    fn push(&mut self, member: ShardMember) -> Result<()> {
        if member.after_damage {
            self.is_suspect = true;
            self.next_is_suspect = true;
        }
        let split = member_name::split(&member.name);
        let reason = fields::skip_reason(&member.name);
        let (Some((key, extension)), None) = (split, reason) else {
            // The index does not name members without a sample. `members_of` counts them.
            if !self.by_index || split.is_some() {
                let reason = reason.unwrap_or(SkipReason::NoSampleName);
                self.skip(reason, &member.name);
            }
            return Ok(());
        };
        if self.fields.is_empty() || self.key != key {
            self.close()?;
            self.key.extend_from_slice(key);
            self.groups += 1;
            self.is_suspect = self.next_is_suspect;
        }
        self.next_is_suspect = false;
        let extension = extension.to_ascii_lowercase();
        if self.fields.iter().any(|field| field.extension == extension) {
            return Err(self.error(
                &member.name,
                "this extension is twice in its sample: give each sample its own key",
            ));
        }
        self.fields.push(SampleField {
            extension,
            name: member.name,
            at: member.data_at,
            size: member.size,
        });
        Ok(())
    }

    /// Ends the current sample: finds its image and its label.
    fn close(&mut self) -> Result<()> {
        let fields = std::mem::take(&mut self.fields);
        if !fields.is_empty() {
            self.sample(&fields)?;
        }
        // Keeps the allocation for the next sample.
        self.fields = fields;
        self.fields.clear();
        self.key.clear();
        Ok(())
    }

    fn sample(&mut self, fields: &[SampleField]) -> Result<()> {
        let choice = self.choice;
        let ranks = fields
            .iter()
            .filter_map(|f| Some((choice.rank(&f.extension)?, f)));
        let picture = ranks.clone().min_by_key(|(rank, _)| *rank);
        let named = fields.iter().map(|f| (&f.extension[..], &f.name[..]));
        self.found.seen.add(named, picture.is_some());
        let Some((chosen, picture)) = picture else {
            let archive = fields.iter().find(|field| is_archive(&field.extension));
            let name = archive.map(|field| field.name.clone());
            self.found.archive = self.found.archive.take().or(name);
            let has_label = self.label_field(fields).is_some() || self.may_have_label(fields);
            if self.is_suspect {
                self.incomplete += 1;
            } else {
                let key = std::mem::take(&mut self.key);
                let lone = &mut self.found.lone_labels;
                if has_label && lone.len() < MOST_LONE_LABELS {
                    lone.push(relative(&key).as_os_str().as_bytes().to_vec());
                }
                self.skip(SkipReason::NoPicture, &key);
            }
            return Ok(());
        };
        // The image of this sample is lost, and only the file beside it is left.
        if self.is_suspect && self.pictures.is_beside(chosen) {
            self.incomplete += 1;
            return Ok(());
        }
        self.pictures.chosen |= 1 << chosen;
        for (beside, _) in ranks.filter(|(rank, _)| *rank != chosen) {
            self.pictures.beside |= 1 << beside;
        }
        let of_label = self.label_field(fields);
        let label = match of_label {
            Some(field) => self.label(field)?,
            None => RawLabel::Absent,
        };
        let found = &mut self.found;
        let is = |f: &SampleField, other: Option<&SampleField>| {
            other.is_some_and(|other| f.at == other.at)
        };
        let others = fields
            .iter()
            .filter(|f| !is(f, Some(picture)) && !is(f, of_label))
            .map(|f| str::from_utf8(&f.extension).unwrap_or(ScanReport::MORE_FIELDS));
        if self.is_suspect && of_label.is_none() {
            let others = others.map(str::to_owned).collect();
            found.suspects.push((found.ends.len(), others));
        } else {
            others.for_each(|name| found.report.add_field(name, 1));
        }
        let name = relative(&picture.name).as_os_str().as_bytes();
        found.names.extend_from_slice(name);
        found.ends.push(found.names.len());
        found.parts.push((picture.at, picture.size));
        found.labels.push(label);
        Ok(())
    }

    /// The member that holds the label.
    fn label_field<'f>(&self, fields: &'f [SampleField]) -> Option<&'f SampleField> {
        let wanted = self.choice.label(self.labels)?;
        let named = |f: &&SampleField| f.extension.eq_ignore_ascii_case(wanted.as_bytes());
        fields.iter().find(named)
    }

    /// Whether a field may become the field of labels, if no option names one.
    fn may_have_label(&self, fields: &[SampleField]) -> bool {
        *self.labels == ShardLabels::Auto
            && self.choice.label.is_none()
            && fields.iter().any(|f| f.extension.ends_with(b".cls"))
    }

    fn label(&mut self, field: &SampleField) -> Result<RawLabel> {
        let pointer = match self.labels {
            ShardLabels::Field(field) if is_json(field) => Some(""),
            ShardLabels::Json { pointer, .. } => Some(pointer.as_str()),
            ShardLabels::None | ShardLabels::Auto | ShardLabels::Field(_) => None,
        };
        let Some(bytes) = self.data(field)? else {
            self.other_label.get_or_insert_with(|| field.name.clone());
            return Ok(RawLabel::Absent);
        };
        let value = match pointer {
            Some(pointer) => label_value::of_json(&bytes, pointer),
            None => label_value::of_text(&bytes).map(Some),
        };
        if let (Some(pointer), Ok(None)) = (pointer, &value) {
            let keys = || record_keys::list_keys(&bytes, pointer);
            self.found.without_place.get_or_insert_with(keys);
        }
        let value = value.map_err(|what| {
            let what = format!("this label {what}: correct it, or use `labels: none`");
            self.error(&field.name, &what)
        })?;
        Ok(match value {
            None => RawLabel::Absent,
            Some(LabelValue::Number(number)) => RawLabel::Number(number),
            Some(LabelValue::Name(name)) => {
                let next = self.found.class_names.len() as u32;
                let number = *self.class_numbers.entry(name.clone()).or_insert(next);
                if number == next {
                    self.found.class_names.push(name);
                }
                RawLabel::Name(number)
            }
            Some(LabelValue::Vector(vector)) => {
                self.found.vectors.extend_from_slice(&vector);
                RawLabel::Vector(vector.len() as u32)
            }
        })
    }

    /// Reads the member of a label. `None` if an index names it, and the header there is of another
    /// member.
    fn data(&self, field: &SampleField) -> Result<Option<Vec<u8>>> {
        if field.size > MAX_LABEL {
            let what = format!(
                "a label of {}, but at most 1 MiB is allowed: name another field",
                error::size_rounded_up(field.size)
            );
            return Err(self.error(&field.name, &what));
        }
        let failed = |e| Error::io_at("read", self.path, e);
        if !self.by_index {
            let mut bytes = vec![0; field.size as usize];
            self.file
                .read_exact_at(&mut bytes, field.at)
                .map_err(failed)?;
            return Ok(Some(bytes));
        }
        // Header and data are mostly in one memory page.
        let mut bytes = vec![0; BLOCK as usize + field.size as usize];
        self.file
            .read_exact_at(&mut bytes, field.at - BLOCK)
            .map_err(failed)?;
        let is_it = bytes
            .first_chunk()
            .is_some_and(|block| dali_index::is_header_of(block, &field.name, field.size, false));
        Ok(is_it.then(|| bytes.split_off(BLOCK as usize)))
    }

    /// Ends a shard whose headers were read. `is_newer`: whether DALI's index is newer than it.
    fn end(&mut self, walked: &WalkResult, len: u64, index: &Path, is_newer: bool) -> Result<()> {
        self.skip_some(SkipReason::NotPlain, &walked.not_plain);
        // The lost part may hold other members of the last sample.
        if walked.ending == ShardEnding::NoBlocks || walked.tail_is_damaged {
            self.is_suspect = true;
        }
        let last = walked.last.as_ref().map(|damage| &damage.what);
        if let Some(DamageKind::Cut { name, .. }) = last {
            match member_name::split(name) {
                // All of this sample is lost. Its header shows that the previous sample has no more
                // members.
                Some((key, _)) if key != self.key => {
                    self.groups += 1;
                    self.incomplete += 1;
                }
                _ => self.is_suspect = true,
            }
        }
        if let Some(ShardDamage { at, what, .. }) = &walked.last
            && matches!(what, DamageKind::Zeros | DamageKind::BehindTheEnd)
        {
            self.drop_zeroed(*at)?;
        }
        self.close()?;
        let is_whole = walked.ending == ShardEnding::Blocks && walked.places == 0;
        if is_whole && !is_newer {
            // An index of a former shard does not describe this one.
            return Ok(());
        }
        let stated = DaliIndex::samples_at(index);
        // Samples that the index counts and that were not found at all.
        let missing = stated.map(|stated| stated.saturating_sub(self.groups));
        let ends_openly = walked.ending == ShardEnding::NoBlocks;
        let fewer = missing.is_some_and(|missing| missing > 0);
        let is_damaged =
            walked.places > 0 || fewer || self.incomplete > 0 || (ends_openly && missing.is_none());
        if !is_damaged && !ends_openly {
            return Ok(());
        }
        let what = match walked.damage.first() {
            Some(damage) => damage.to_string(),
            None if ends_openly => format!(
                "ends at byte {len} without the two zero blocks of a tar's end: samples after \
                 it may be lost"
            ),
            None => "has fewer samples than its index says".to_owned(),
        };
        let damaged = DamagedShard {
            path: self.path.to_owned(),
            at: walked.damage.first().map_or(len, |d| d.at),
            what,
            places: walked.places,
            bytes_lost: walked.lost,
            samples_incomplete: self.incomplete,
            samples_missing: missing,
        };
        match is_damaged {
            true => self.found.report.damaged.push(damaged),
            false => self.found.tail = Some(damaged),
        }
        Ok(())
    }

    /// Drops the last member if zeros replaced its end. `end` is the offset at which zeros replaced
    /// the rest of the shard. They may have replaced the end of the member before it too.
    ///
    /// A member counts as lost if its last 512 bytes are zeros, or all bytes of a shorter one. Fewer
    /// zeros are normal at the end of an array. A label is text, so a single zero byte is enough.
    fn drop_zeroed(&mut self, end: u64) -> Result<()> {
        let Some(last) = self.fields.last().filter(|last| last.size > 0) else {
            return Ok(());
        };
        if block_after(last.at, last.size) != end {
            // There is a header between them.
            return Ok(());
        }
        let is_label = self
            .label_field(&self.fields)
            .is_some_and(|label| label.at == last.at);
        let zeros = match is_label {
            true => 1,
            false => last.size.min(BLOCK),
        };
        let mut bytes = [1; BLOCK as usize];
        let bytes = &mut bytes[..zeros as usize];
        self.file
            .read_exact_at(bytes, last.at + last.size - zeros)
            .map_err(|e| Error::io_at("read", self.path, e))?;
        if bytes.iter().all(|&b| b == 0) {
            self.fields.pop();
            if self.fields.is_empty() {
                self.incomplete += 1;
            }
        }
        Ok(())
    }

    fn skip_some(&mut self, reason: SkipReason, files: &SkippedFiles) {
        for name in &files.names {
            self.skip(reason, name);
        }
        if let Some(skipped) = self.found.report.skipped.get_mut(&reason) {
            skipped.count += files.count - files.names.len() as u64;
        }
    }

    fn skip(&mut self, reason: SkipReason, name: &[u8]) {
        let path = self.shown.join(relative(name));
        self.found.report.skip(reason, path);
    }

    fn error(&self, name: &[u8], what: &str) -> Error {
        Error::dataset(self.path.join(relative(name)), what)
    }
}

/// Whether an extension, in lower case, is that of an archive.
fn is_archive(extension: &[u8]) -> bool {
    let ends = [
        &b"tar"[..],
        b"tar.gz",
        b"tar.zst",
        b"tar.xz",
        b"tar.bz2",
        b"tgz",
        b"zip",
        b"7z",
    ];
    ends.iter().any(|end| {
        let front = extension.strip_suffix(*end);
        front.is_some_and(|front| front.is_empty() || front.ends_with(b"."))
    })
}

/// The name of a member as a path below its shard, without slashes at its start.
pub(crate) fn relative(name: &[u8]) -> &Path {
    let slashes = name.iter().take_while(|&&b| b == b'/').count();
    Path::new(OsStr::from_bytes(&name[slashes..]))
}
