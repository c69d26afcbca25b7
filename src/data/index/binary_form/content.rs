//! The result of a scan, and its encoding to the sealed form.
//!
//! Runs in the consumer.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use twox_hash::XxHash3_128;

use crate::data::index::ClassList;
use crate::data::index::binary_form::box_section;
use crate::data::index::binary_form::head::{
    COUNTS_END, HEAD, KIND_CLASS, KIND_NONE, KIND_VECTOR, MAGIC, NAME, VERSION,
};
use crate::data::index::binary_form::page_section::StoredForm;
use crate::data::index::binary_form::shard_sections::ShardContent;
use crate::data::index::link_targets::LinkTargets;
use crate::error::Result;
use crate::picture::PixelBox;
use crate::sys::regular_file::FileStamp;
use crate::sys::sealed_bytes::SealedBytes;

/// The result of a scan, before it is sealed.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexContent {
    paths: Vec<u8>,
    ends: Vec<u64>,
    parts: Option<ShardContent>,
    pub(crate) labels: IndexLabels,
    pub(crate) classes: ClassList,
    /// One per sample, or empty.
    pub(crate) boxes: Vec<PixelBox>,
    /// Shards are parts of sealed memory that belongs to the index.
    pub(in crate::data::index) in_memory: bool,
    /// Targets of links, if the scan looked at them. Not part of the sealed form.
    pub(in crate::data::index) beyond: Option<LinkTargets>,
}

/// The labels of all samples. All have the same kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum IndexLabels {
    #[default]
    None,
    Class(Vec<i64>),
    /// `width` numbers per sample.
    Vector {
        width: usize,
        values: Vec<f32>,
    },
}

impl IndexContent {
    pub(crate) fn push_path(&mut self, path: &[u8]) {
        self.paths.extend_from_slice(path);
        self.ends.push(self.paths.len() as u64);
    }

    /// Starts the shard at `path`. Samples that are pushed later are parts of it.
    pub(crate) fn begin_shard(&mut self, path: &[u8]) {
        self.begin_form(path, None);
    }

    /// Like `begin_shard`, for samples in another form than image files: parts of a page of the
    /// file at `path`, which is unpacked before they are read, or raw pixels.
    pub(crate) fn begin_form(&mut self, path: &[u8], form: Option<StoredForm>) {
        let first = self.ends.len() as u64;
        let parts = self.parts.get_or_insert_default();
        parts.begin_shard(path, first, form);
    }

    /// Adds a sample: `bytes` bytes at offset `at` of the current shard. `name` is its member name.
    pub(crate) fn push_part(&mut self, name: &[u8], at: u64, bytes: u64) {
        self.push_path(name);
        self.parts.get_or_insert_default().push(at, bytes);
    }

    /// Adds a sample of shard `number`, one of the shards that were begun before the first sample.
    /// With it, samples of shards need not be consecutive. All samples are added in this way.
    pub(crate) fn push_scattered(&mut self, number: u32, name: &[u8], at: u64, bytes: u64) {
        self.push_path(name);
        let parts = self.parts.get_or_insert_default();
        parts.push_scattered(number, at, bytes);
    }

    /// Most bytes that a page takes while it is unpacked, or a picture of raw pixels.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.parts.as_ref().map_or(0, ShardContent::page_bytes)
    }

    pub(crate) fn samples(&self) -> usize {
        self.ends.len()
    }

    /// The path of a sample that was pushed. Empty if there is no such sample.
    pub(crate) fn path(&self, sample: usize) -> &[u8] {
        let start = sample.checked_sub(1).map_or(Some(&0), |i| self.ends.get(i));
        let places = start.zip(self.ends.get(sample));
        places
            .and_then(|(start, end)| self.paths.get(*start as usize..*end as usize))
            .unwrap_or_default()
    }

    /// The paths of all samples, in their order.
    pub(in crate::data::index) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.samples()).map(|sample| self.path(sample))
    }

    /// Removes the first `bytes` bytes of each path. Each path has more.
    pub(in crate::data::index) fn strip(&mut self, bytes: usize) {
        let mut to = 0;
        let mut from = 0;
        for end in &mut self.ends {
            let last = *end as usize;
            self.paths.copy_within(from + bytes..last, to);
            to += last - from - bytes;
            from = last;
            *end = to as u64;
        }
        self.paths.truncate(to);
    }

    /// Seals the content under `root`.
    pub(crate) fn encode(self, root: &Path) -> Result<SealedBytes> {
        let (end_bytes, ends) = if self.paths.len() as u64 <= u64::from(u32::MAX) {
            let narrow = |&end: &u64| (end as u32).to_le_bytes();
            (4u8, self.ends.iter().flat_map(narrow).collect::<Vec<u8>>())
        } else {
            (8, self.ends.iter().flat_map(|e| e.to_le_bytes()).collect())
        };
        let samples = self.ends.len() as u64;
        drop(self.ends);

        let (kind, word_bytes, width, labels) = match self.labels {
            IndexLabels::None => (KIND_NONE, 0u8, 0, Vec::new()),
            IndexLabels::Class(all) if all.iter().all(|&l| i32::try_from(l).is_ok()) => {
                let narrow = |&label: &i64| (label as i32).to_le_bytes();
                (KIND_CLASS, 4, 1, all.iter().flat_map(narrow).collect())
            }
            IndexLabels::Class(all) => {
                let bytes = all.iter().flat_map(|l| l.to_le_bytes()).collect();
                (KIND_CLASS, 8, 1, bytes)
            }
            IndexLabels::Vector { width, values } => {
                let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                (KIND_VECTOR, 4, width as u64, bytes)
            }
        };

        let mut class_ends = Vec::new();
        let mut class_names = Vec::new();
        for name in self.classes.iter() {
            class_names.extend_from_slice(name.as_bytes());
            class_ends.extend_from_slice(&(class_names.len() as u64).to_le_bytes());
        }

        let parts = self.parts.map(ShardContent::encode).unwrap_or_default();
        let (box_bytes, boxes) = box_section::encode(&self.boxes);
        drop(self.boxes);

        let mut counts = Vec::with_capacity(COUNTS_END - HEAD);
        counts.extend_from_slice(&samples.to_le_bytes());
        counts.extend_from_slice(&[kind, end_bytes, word_bytes, parts.size_bytes]);
        counts.extend_from_slice(&[box_bytes, parts.page_bytes, parts.number_bytes]);
        counts.push(u8::from(self.in_memory));
        counts.extend_from_slice(&width.to_le_bytes());
        counts.extend_from_slice(&(self.paths.len() as u64).to_le_bytes());
        counts.extend_from_slice(&(self.classes.len() as u64).to_le_bytes());
        counts.extend_from_slice(&(class_names.len() as u64).to_le_bytes());
        counts.extend_from_slice(&parts.shards.to_le_bytes());
        counts.extend_from_slice(&parts.shard_path_bytes.to_le_bytes());

        let sections: [&[u8]; 14] = [
            &counts,
            &ends,
            &labels,
            &boxes,
            &parts.offsets,
            &parts.sizes,
            &parts.firsts,
            &parts.shard_ends,
            &parts.pages,
            &parts.numbers,
            &class_ends,
            &class_names,
            &parts.shard_paths,
            &self.paths,
        ];
        let mut hasher = twox_hash::xxhash3_128::Hasher::new();
        let mut root_at = HEAD as u64;
        for section in sections {
            hasher.write(section);
            root_at += section.len() as u64;
        }
        let place = place(root, &vec![FileStamp::default(); parts.shards as usize]);
        let head = encode_head(hasher.finish_128(), root_at, &place);
        let whole: Vec<&[u8]> = std::iter::once(&head[..])
            .chain(sections)
            .chain([&place[..]])
            .collect();
        SealedBytes::new(NAME, &whole)
    }
}

/// Bytes of the fingerprint of a shard.
pub(crate) const STAMP: usize = 24;

/// The last section: the root of the data set, and the fingerprints of its shards.
pub(crate) fn place(root: &Path, stamps: &[FileStamp]) -> Vec<u8> {
    let mut place = root.as_os_str().as_bytes().to_vec();
    for stamp in stamps {
        place.extend_from_slice(&stamp.bytes.to_le_bytes());
        place.extend_from_slice(&stamp.modified.to_le_bytes());
        place.extend_from_slice(&stamp.inode.to_le_bytes());
    }
    place
}

pub(crate) fn encode_head(content_hash: u128, root_at: u64, root: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&0u32.to_le_bytes());
    head.extend_from_slice(&content_hash.to_le_bytes());
    head.extend_from_slice(&XxHash3_128::oneshot(root).to_le_bytes());
    head.extend_from_slice(&root_at.to_le_bytes());
    head.extend_from_slice(&(root.len() as u64).to_le_bytes());
    head
}
