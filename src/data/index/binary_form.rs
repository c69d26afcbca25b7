//! The binary form of an index, in the memfd and in a saved file.
//!
//! The consumer encodes it. Every process that maps it decodes it. Numbers are little-endian.
//! Nothing is aligned or padded, so equal contents are equal bytes. Decoding is one pass over the
//! bytes, and copies only the class names. After that pass no offset can leave the bytes, and the
//! accessors allocate nothing. There is no unsafe code here, and no input causes a panic.
//! ```text
//!   0  magic  8 bytes            | head: not part of the content
//!   8  version u32, 0 u32        |
//!  16  hash of the content, 16 bytes (xxh3-128 of 64..root)
//!  32  hash of the root, 16 bytes
//!  48  offset of the root u64, length of the root and the fingerprints u64
//!  64  samples u64               | content: the counts, from which
//!  72  kind u8, bytes per path end u8, bytes per label word u8,
//!      bytes per size of a sample u8, bytes per box u8 (0 or 16),
//!      bytes per packed page or pixel array u8 (0 or 32),
//!      bytes per shard number of a sample u8 (0 or 4), in memory u8 (0 or 1)
//!  80  label width u64           | every section's place follows
//!  88  path bytes u64, classes u64, class name bytes u64
//! 112  shards u64, shard path bytes u64
//! 128  path ends: samples x (4 or 8); a path begins where the one before ends
//!      labels: samples x width x (4 or 8 signed, or 4 float)
//!      with boxes: samples x (left, top, right, bottom u32)
//!      with shards: offsets: samples x 8; sizes: samples x (4 or 8);
//!                   first samples: shards x 8; shard path ends: shards x 8
//!      with packed pages: shards x (place, length, length unpacked, codec u64)
//!      with scattered samples: the shard of each: samples x 4
//!      with pixel arrays: shards x (height, width, channels, 7 u64)
//!      class name ends: classes x 8
//!      class names, shard paths, then paths
//!      root; then the fingerprint of each shard: length u64, time of change
//!      i64 (ns), inode u64, zeros if not recorded. Changing either leaves
//!      the content alone
//! ```
//!
//! Ends, class labels and sizes take 4 bytes if all of them fit. So a sample takes 8 bytes and its
//! path. It takes 12 more bytes in a shard (its path is then the member name), and 16 more with a
//! box.
//!
//! - `head`: the numbers at the start; `damage`: the reasons why bytes are not an index;
//! - `content`: the encoded results of a scan; `shard_sections`: the sections of shards;
//!   `box_section`: the section of boxes; `page_section`: the section of packed pages;
//! - `words`: tables of words in bytes; `label_vector`: the label of a sample.

mod box_section;
mod content;
mod damage;
mod head;
mod label_vector;
mod page_section;
mod shard_sections;
mod words;

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use twox_hash::XxHash3_128;

use crate::data::index::classes::ClassList;
use crate::error::Result;
use crate::picture::PixelBox;
use crate::sys::regular_file::FileStamp;
use crate::sys::sealed_bytes::SealedBytes;

use box_section::BoxSection;
pub(crate) use content::{IndexContent, IndexLabels};
use content::{STAMP, encode_head, place};
pub(crate) use damage::{IndexDamage, check_room};
use head::{COUNTS_END, KIND_CLASS, KIND_NONE, KIND_VECTOR, VERSION};
pub(crate) use head::{HEAD, MAGIC, NAME};
pub use label_vector::{Label, LabelVector};
pub(crate) use page_section::StoredForm;
pub(crate) use shard_sections::{SampleLocation, ShardExtent};
use shard_sections::{SectionCounts, ShardSections};
use words::{FieldReader, SectionCursor, WordArray};

/// The offsets of all sections. Made only by [`IndexLayout::decode`], for the bytes that it
/// checked.
#[derive(Debug, Clone)]
pub(crate) struct IndexLayout {
    samples: usize,
    ends: WordArray,
    labels: LabelSection,
    boxes: Option<BoxSection>,
    parts: Option<ShardSections>,
    in_memory: bool,
    paths: Range<usize>,
    root: Range<usize>,
    hash: u128,
}

#[derive(Debug, Clone, Copy)]
enum LabelSection {
    None,
    Class(WordArray),
    Vector { at: usize, width: usize },
}

/// The fields of the head, after the checks that need no other bytes.
struct IndexHead {
    content_hash: u128,
    root_hash: u128,
    root_at: u64,
    root_bytes: u64,
}

fn head(bytes: &[u8]) -> Result<IndexHead, IndexDamage> {
    let mut fields = FieldReader(bytes);
    if fields.take::<8>() != *MAGIC {
        return Err(IndexDamage::NotAnIndex);
    }
    let version = u32::from_le_bytes(fields.take());
    if version != VERSION {
        return Err(IndexDamage::Version { found: version });
    }
    if fields.take::<4>() != [0; 4] {
        return Err(IndexDamage::NotAnIndex);
    }
    Ok(IndexHead {
        content_hash: u128::from_le_bytes(fields.take()),
        root_hash: u128::from_le_bytes(fields.take()),
        root_at: fields.u64(),
        root_bytes: fields.u64(),
    })
}

/// The length of the whole index, from its first [`HEAD`] bytes.
pub(crate) fn total_bytes(bytes: &[u8]) -> Result<u64, IndexDamage> {
    let head = head(bytes)?;
    head.root_at
        .checked_add(head.root_bytes)
        .filter(|&total| total > HEAD as u64)
        .ok_or(IndexDamage::NotAnIndex)
}

/// The longest root in bytes. The system opens no longer path.
const MOST_ROOT: u64 = 64 << 10;

/// Bytes that [`check_counts`] reads.
pub(crate) const COUNTS_PREFIX: usize = COUNTS_END;

/// Checks that the counts fit the length in the head, from the first [`COUNTS_PREFIX`] bytes of a
/// file. So a file is checked before the rest of it is read.
pub(crate) fn check_counts(front: &[u8]) -> Result<(), IndexDamage> {
    let head = head(front)?;
    let root_at = usize::try_from(head.root_at).unwrap_or(usize::MAX);
    let content = front.get(HEAD..).unwrap_or_default();
    let (layout, _) = IndexLayout::of_counts(content, root_at)?;
    let stamps = stamps_bytes(layout.shards()).map(|stamps| stamps as u64);
    let root = stamps.and_then(|stamps| head.root_bytes.checked_sub(stamps));
    match root {
        Some(1..=MOST_ROOT) => Ok(()),
        _ => Err(IndexDamage::Counts { of: "root bytes" }),
    }
}

fn stamps_bytes(shards: u64) -> Option<usize> {
    usize::try_from(shards).ok()?.checked_mul(STAMP)
}

/// The offsets of the class names.
struct ClassNameSection {
    ends_at: usize,
    names: Range<usize>,
    count: usize,
}

impl IndexLayout {
    /// Checks everything that the accessors rely on.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, ClassList), IndexDamage> {
        let found = bytes.len() as u64;
        let said = total_bytes(bytes)?;
        if said != found {
            return Err(IndexDamage::Length { said, found });
        }
        let head = head(bytes)?;
        let root_at = usize::try_from(head.root_at).unwrap_or(usize::MAX);
        let (Some(content), Some(place)) = (bytes.get(HEAD..root_at), bytes.get(root_at..)) else {
            return Err(IndexDamage::Length { said, found });
        };
        if XxHash3_128::oneshot(place) != head.root_hash {
            return Err(IndexDamage::Checksum { of: "root" });
        }
        if XxHash3_128::oneshot(content) != head.content_hash {
            return Err(IndexDamage::Checksum { of: "content" });
        }

        let (mut layout, class_names) = Self::of_counts(content, root_at)?;
        let root = stamps_bytes(layout.shards())
            .and_then(|stamps| place.len().checked_sub(stamps))
            .and_then(|root| place.get(..root))
            .filter(|root| root.starts_with(b"/") && !root.contains(&0))
            .ok_or(IndexDamage::Counts { of: "root bytes" })?;
        layout.root = root_at..root_at + root.len();
        layout.hash = head.content_hash;
        let classes = decode_classes(
            bytes,
            class_names.ends_at,
            class_names.names,
            class_names.count,
        )?;
        layout.check_samples(bytes, classes.len())?;
        if let Some(boxes) = layout.boxes {
            boxes.check(bytes, layout.samples)?;
        }
        if let Some(parts) = &layout.parts {
            parts.check(bytes, layout.samples)?;
        }
        Ok((layout, classes))
    }

    /// Computes the offsets of all sections of a content with these counts, and of the root after
    /// them. The root is left empty here. Reads only the counts, which are in the first
    /// [`COUNTS_PREFIX`] bytes of a file.
    fn of_counts(content: &[u8], root_at: usize) -> Result<(Self, ClassNameSection), IndexDamage> {
        let mut fields = FieldReader(content);
        let samples = fields.u64();
        let [
            kind,
            end_bytes,
            word_bytes,
            size_bytes,
            box_bytes,
            page_bytes,
            number_bytes,
            in_memory,
        ] = fields.take::<8>();
        let width = fields.u64();
        let path_bytes = fields.u64();
        let classes = fields.u64();
        let class_bytes = fields.u64();
        let of_parts = SectionCounts {
            samples,
            size_bytes,
            shards: fields.u64(),
            shard_path_bytes: fields.u64(),
            page_bytes,
            number_bytes,
        };
        if in_memory > 1 || (in_memory == 1 && of_parts.shards == 0) {
            return Err(IndexDamage::Counts { of: "fields" });
        }
        if end_bytes != 4 && end_bytes != 8 {
            return Err(IndexDamage::Counts {
                of: "bytes per path end",
            });
        }
        let well_formed = match kind {
            KIND_NONE => word_bytes == 0 && width == 0,
            KIND_CLASS => (word_bytes == 4 || word_bytes == 8) && width == 1,
            KIND_VECTOR => word_bytes == 4 && width > 0,
            _ => false,
        };
        if !well_formed {
            return Err(IndexDamage::Counts { of: "label bytes" });
        }
        // Each section begins where the one before it ends. The last one must end where the root
        // begins, so no section reaches past the bytes.
        let mut sections = SectionCursor {
            at: COUNTS_END,
            end: root_at,
        };
        let ends_at = sections.next([samples, u64::from(end_bytes), 1], "samples")?;
        let labels_at = sections.next([samples, width, u64::from(word_bytes)], "labels")?;
        let boxes = BoxSection::take(&mut sections, samples, box_bytes)?;
        let mut parts = match of_parts.is_of_shards()? {
            true => Some(ShardSections::take(&mut sections, of_parts)?),
            false => None,
        };
        let class_ends_at = sections.next([classes, 8, 1], "classes")?;
        let class_names = sections.next([class_bytes, 1, 1], "class name bytes")?;
        if let Some(parts) = &mut parts {
            parts.take_paths(&mut sections, of_parts)?;
        }
        let paths = sections.next([path_bytes, 1, 1], "path bytes")?;
        if sections.at != root_at {
            return Err(IndexDamage::Counts { of: "path bytes" });
        }

        let counted =
            |n: u64| usize::try_from(n).map_err(|_| IndexDamage::Counts { of: "samples" });
        let layout = Self {
            samples: counted(samples)?,
            ends: WordArray {
                at: ends_at.start,
                wide: end_bytes == 8,
            },
            labels: match kind {
                KIND_CLASS => LabelSection::Class(WordArray {
                    at: labels_at.start,
                    wide: word_bytes == 8,
                }),
                KIND_VECTOR => LabelSection::Vector {
                    at: labels_at.start,
                    width: counted(width)?,
                },
                _ => LabelSection::None,
            },
            boxes,
            parts,
            in_memory: in_memory == 1,
            paths,
            root: root_at..root_at,
            hash: 0,
        };
        let class_names = ClassNameSection {
            ends_at: class_ends_at.start,
            names: class_names,
            count: counted(classes)?,
        };
        Ok((layout, class_names))
    }

    /// Checks all samples in one pass. Path ends rise up to the end of the paths. No path is empty
    /// or contains a NUL. No class label is past the classes.
    fn check_samples(&self, bytes: &[u8], classes: usize) -> Result<(), IndexDamage> {
        let paths = bytes.get(self.paths.clone()).unwrap_or_default();
        let damaged = |id: usize, what| IndexDamage::Sample {
            id: id as u64,
            what,
        };
        let mut start = 0;
        for id in 0..self.samples {
            let end = self.ends.unsigned(bytes, id).unwrap_or(0);
            if end <= start || end > paths.len() as u64 {
                return Err(damaged(id, "path's place"));
            }
            start = end;
        }
        if start != paths.len() as u64 {
            return Err(IndexDamage::Counts { of: "path bytes" });
        }
        if let Some(at) = paths.iter().position(|&b| b == 0) {
            let ends = (0..self.samples).map(|id| self.ends.unsigned(bytes, id));
            let id = ends.take_while(|end| end.is_some_and(|e| e <= at as u64));
            return Err(damaged(id.count(), "path's bytes"));
        }
        if let LabelSection::Class(words) = self.labels
            && classes > 0
        {
            for id in 0..self.samples {
                let label = words.signed(bytes, id).map(usize::try_from);
                if !matches!(label, Some(Ok(class)) if class < classes) {
                    return Err(damaged(id, "class"));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples as u64
    }

    /// The same content under another root, with a fingerprint for each shard.
    pub(crate) fn rebased(
        &self,
        bytes: &[u8],
        root: &Path,
        stamps: &[FileStamp],
    ) -> Result<SealedBytes> {
        let place = place(root, stamps);
        let content = bytes.get(HEAD..self.root.start).unwrap_or_default();
        let head = encode_head(self.hash, self.root.start as u64, &place);
        SealedBytes::new(NAME, &[&head, content, &place])
    }

    /// The recorded fingerprint of a shard. `None` if it was not recorded.
    pub(crate) fn stamp(&self, bytes: &[u8], number: u64) -> Option<FileStamp> {
        let number = usize::try_from(number).ok()?;
        let at = number.checked_mul(STAMP)?.checked_add(self.root.end)?;
        let mut fields = FieldReader(bytes.get(at..)?.get(..STAMP)?);
        let stamp = FileStamp {
            bytes: fields.u64(),
            modified: i64::from_le_bytes(fields.take()),
            inode: fields.u64(),
        };
        (stamp != FileStamp::default()).then_some(stamp)
    }

    /// 0 if samples are files.
    /// Whether the samples of a shard are not consecutive.
    pub(crate) fn are_scattered(&self) -> bool {
        self.parts
            .as_ref()
            .is_some_and(ShardSections::are_scattered)
    }

    pub(crate) fn shards(&self) -> u64 {
        self.parts.as_ref().map_or(0, ShardSections::shards)
    }

    /// Empty if there is no shard of this number.
    pub(crate) fn shard_path<'a>(&self, bytes: &'a [u8], number: u64) -> &'a [u8] {
        let parts = self.parts.as_ref();
        parts
            .and_then(|p| p.shard_path(bytes, number))
            .unwrap_or_default()
    }

    /// The form of a shard's samples. `None` if the shard is a file of image files.
    pub(crate) fn form(&self, bytes: &[u8], number: u64) -> Option<StoredForm> {
        self.parts.as_ref()?.form(bytes, number)
    }

    /// Whether the shards are parts of sealed memory instead of files.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// `None` if samples are files, or if there is no sample of this id.
    pub(crate) fn part(&self, bytes: &[u8], id: u64) -> Option<SampleLocation> {
        self.parts.as_ref()?.part(bytes, self.check_id(id)?)
    }

    /// The extent of each shard. Empty if samples are files.
    pub(crate) fn extents(&self, bytes: &[u8]) -> Vec<ShardExtent> {
        let parts = self.parts.as_ref();
        parts.map_or_else(Vec::new, |parts| parts.extents(bytes, self.samples))
    }

    pub(crate) fn has_boxes(&self) -> bool {
        self.boxes.is_some()
    }

    /// `None` if samples have no boxes, or if there is no sample of this id.
    pub(crate) fn pixel_box(&self, bytes: &[u8], id: u64) -> Option<PixelBox> {
        self.boxes?.get(bytes, self.check_id(id)?)
    }

    pub(crate) fn hash(&self) -> u128 {
        self.hash
    }

    pub(crate) fn root<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.root.clone()).unwrap_or_default()
    }

    pub(crate) fn path<'a>(&self, bytes: &'a [u8], id: u64) -> &'a [u8] {
        self.path_at(bytes, id).unwrap_or_default()
    }

    fn path_at<'a>(&self, bytes: &'a [u8], id: u64) -> Option<&'a [u8]> {
        let id = self.check_id(id)?;
        let start = match id.checked_sub(1) {
            Some(before) => self.ends.unsigned(bytes, before)?,
            None => 0,
        };
        let end = self.ends.unsigned(bytes, id)?;
        bytes
            .get(self.paths.clone())?
            .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    pub(crate) fn label<'a>(&self, bytes: &'a [u8], id: u64) -> Label<'a> {
        self.label_at(bytes, id).unwrap_or(Label::None)
    }

    fn label_at<'a>(&self, bytes: &'a [u8], id: u64) -> Option<Label<'a>> {
        let id = self.check_id(id)?;
        match self.labels {
            LabelSection::None => None,
            LabelSection::Class(words) => words.signed(bytes, id).map(Label::Class),
            LabelSection::Vector { at, width } => {
                let values = bytes.get(at + id * width * 4..)?.get(..width * 4)?;
                Some(Label::Vector(LabelVector(values.as_chunks().0)))
            }
        }
    }

    pub(crate) fn label_width(&self) -> usize {
        match self.labels {
            LabelSection::None => 0,
            LabelSection::Class(_) => 1,
            LabelSection::Vector { width, .. } => width,
        }
    }

    /// Returns only ids below the number of samples, for which no product overflows.
    fn check_id(&self, id: u64) -> Option<usize> {
        usize::try_from(id).ok().filter(|&id| id < self.samples)
    }
}

fn decode_classes(
    bytes: &[u8],
    ends_at: usize,
    names: Range<usize>,
    classes: usize,
) -> Result<ClassList, IndexDamage> {
    let blob = bytes.get(names).unwrap_or_default();
    let ends = WordArray {
        at: ends_at,
        wide: true,
    };
    let mut names = Vec::with_capacity(classes);
    let mut start = 0;
    for number in 0..classes {
        let name = ends
            .unsigned(bytes, number)
            .and_then(|end| usize::try_from(end).ok())
            .and_then(|end| blob.get(start..end))
            .ok_or(IndexDamage::Class {
                number: number as u64,
                what: "name's place",
            })?;
        names.push(OsString::from_vec(name.to_vec()));
        start += name.len();
    }
    if start != blob.len() {
        return Err(IndexDamage::Counts {
            of: "class name bytes",
        });
    }
    ClassList::distinct(names).map_err(|(_, twice)| IndexDamage::Class {
        number: twice.second as u64,
        what: "duplicate name",
    })
}

#[cfg(test)]
mod tests;
