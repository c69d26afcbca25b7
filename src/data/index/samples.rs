//! The samples of a data set: paths, labels and class names, in one sealed memory segment.
//!
//! The consumer makes it. The coordinator and the workers map it too. Not in this file: the scans
//! that find the samples (`constructors`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twox_hash::xxhash3_128::Hasher;

use crate::data::index::address_text;
use crate::data::index::binary_form::Label;
use crate::data::index::binary_form::{IndexContent, IndexDamage, IndexLayout};
use crate::data::index::classes::ClassList;
use crate::data::index::link_targets::LinkTargets;
use crate::error::{Error, Result};
use crate::picture::PixelBox;
use crate::sys::regular_file::FileStamp;
use crate::sys::sealed_bytes::SealedBytes;

/// The samples of a data set, in a fixed order. Immutable.
#[derive(Debug)]
pub struct Index {
    pub(super) sealed: SealedBytes,
    pub(super) layout: IndexLayout,
    classes: ClassList,
    /// Targets of links, if the scan looked at them.
    pub(super) beyond: Option<LinkTargets>,
    /// The bytes of all samples, if they are in memory.
    memory: Option<Arc<SealedBytes>>,
    /// The address of the samples, if they are single objects of a store. Only in the consumer.
    store: Option<Arc<str>>,
    /// Most bytes for a page, as the scan found them. Only in the process that made the index.
    pub(super) page_bytes: Option<u64>,
    /// The hash of the list of addresses that the samples are from. Only in the consumer.
    listed: Option<u128>,
}

impl Index {
    /// Maps an index that was received from another process. Its samples are in files.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        Self::from_descriptors(&mut std::iter::once(fd))
    }

    /// Maps an index from the first of the descriptors that another process sent. If its samples
    /// are in memory, maps that memory from the next one. These are [`Index::descriptors`] of the
    /// other process.
    pub(crate) fn from_descriptors(fds: &mut impl Iterator<Item = OwnedFd>) -> Result<Self> {
        let fd = fds.next();
        let fd = fd.ok_or_else(|| Error::protocol("an index came without its descriptor"))?;
        let sealed = SealedBytes::from_fd(fd)?;
        let damaged = |damage| Error::protocol(format!("the received index: {damage}"));
        let index = Self::decode(sealed).map_err(damaged)?;
        if !index.layout.is_in_memory() {
            return Ok(index);
        }
        let memory = fds.next().map(SealedBytes::from_fd).transpose()?;
        let memory = memory.ok_or_else(|| {
            Error::protocol("an index of samples in memory came without that memory")
        })?;
        index.with_memory(Arc::new(memory))
    }

    /// The descriptors that [`Index::from_descriptors`] needs.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let memory = self.memory.as_deref().map(AsFd::as_fd);
        std::iter::once(self.as_fd()).chain(memory)
    }

    /// The same index, of samples in `memory`.
    pub(super) fn with_memory(self, memory: Arc<SealedBytes>) -> Result<Self> {
        self.check_ends(std::iter::repeat(memory.bytes().len() as u64))
            .map_err(|what| Error::protocol(format!("the received index {what}")))?;
        Ok(Self {
            memory: Some(memory),
            ..self
        })
    }

    /// Seals the content of samples in `memory`.
    pub(super) fn seal_in_memory(
        mut content: IndexContent,
        memory: Arc<SealedBytes>,
    ) -> Result<Self> {
        content.in_memory = true;
        Self::decode(content.encode(Path::new("/"))?)
            .map_err(|damage| Error::protocol(format!("the index just made: {damage}")))?
            .with_memory(memory)
    }

    /// The memory that the samples are in. `None` if they are in files.
    pub(super) fn memory(&self) -> Option<&Arc<SealedBytes>> {
        self.memory.as_ref()
    }

    /// Whether the samples are in memory that belongs to this index.
    pub fn is_in_memory(&self) -> bool {
        self.layout.is_in_memory()
    }

    /// Rejects an index of samples in memory. `what`: what needs files, as the start of a sentence.
    ///
    /// # Errors
    /// The samples are in memory.
    pub(crate) fn check_in_files(&self, what: &str) -> Result<()> {
        match self.is_in_memory() {
            false => Ok(()),
            true => Err(Error::config(format!(
                "{what} needs samples in files, and these are in memory: write them to files"
            ))),
        }
    }

    /// A second handle of the same index. Both share one copy of its bytes.
    ///
    /// # Errors
    /// The process has no free file descriptor.
    pub fn try_clone(&self) -> Result<Self> {
        let fd = self.as_fd().try_clone_to_owned();
        let fd = fd.map_err(|e| Error::io("duplicate the index's descriptor", e))?;
        let index = Self::decode(SealedBytes::from_fd(fd)?)
            .map_err(|damage| Error::protocol(format!("the copied index: {damage}")))?;
        Ok(Self {
            memory: self.memory.clone(),
            store: self.store.clone(),
            page_bytes: self.page_bytes,
            listed: self.listed,
            ..index
        })
    }

    pub(super) fn seal(root: &Path, mut content: IndexContent) -> Result<Self> {
        let beyond = content.beyond.take();
        let page_bytes = Some(content.page_bytes());
        let sealed = |index| Self {
            beyond,
            page_bytes,
            ..index
        };
        Self::open(content.encode(root)?)
            .map(sealed)
            .map_err(|damage| Error::protocol(format!("the index just made: {damage}")))
    }

    /// The index of samples in files.
    pub(super) fn open(sealed: SealedBytes) -> Result<Self, IndexDamage> {
        match Self::decode(sealed)? {
            index if index.layout.is_in_memory() => Err(IndexDamage::WithoutMemory),
            index => Ok(index),
        }
    }

    fn decode(sealed: SealedBytes) -> Result<Self, IndexDamage> {
        let (layout, classes) = IndexLayout::decode(sealed.bytes())?;
        Ok(Self {
            sealed,
            layout,
            classes,
            beyond: None,
            memory: None,
            store: None,
            page_bytes: None,
            listed: None,
        })
    }

    /// An index of files without labels, in this order. The files may be in any folder.
    pub(crate) fn of_files(files: &[PathBuf]) -> Result<Self> {
        let mut content = IndexContent::default();
        for file in files {
            let file = std::path::absolute(file).map_err(|e| Error::io_at("find", file, e))?;
            content.push_path(file.as_os_str().as_bytes());
        }
        Self::seal(Path::new("/"), content)
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.layout.samples()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folder that relative paths start from. It is absolute.
    pub fn root(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.layout.root(self.sealed.bytes())))
    }

    /// The path of a sample below the root. It is absolute only for a sample of a list outside the
    /// root. For a sample in a shard it is the name of its member. Empty if `id` is not less than
    /// [`Index::len`].
    pub fn relative_path(&self, id: u64) -> &Path {
        Path::new(OsStr::from_bytes(self.layout.path(self.sealed.bytes(), id)))
    }

    /// The full path of a sample. For a sample in a shard it is the path of the shard and the name
    /// of the member. No file has that path. A sample in memory is named by its place in the list
    /// that it came from, and an object of a store by its address.
    pub fn path(&self, id: u64) -> PathBuf {
        if self.is_in_memory() {
            let place = self.relative_path(id).display();
            return PathBuf::from(format!("item {place} of the list"));
        }
        let name = self.relative_path(id);
        match self.part(id) {
            Some(_) if address_text::is_of_store(name.as_os_str().as_bytes()) => name.to_owned(),
            Some(_) if self.store.is_some() => {
                let store = self.store.as_deref().unwrap_or_default();
                PathBuf::from(format!("{store}/{}", name.display()))
            }
            Some(part) => self.shard_path(part.shard).join(name),
            None if self.root() == Path::new(address_text::ROOT) => name.to_owned(),
            None => self.root().join(name),
        }
    }

    /// The name of a sample, which it keeps when the data set moves: the path below the root, after
    /// the path of its shard if it has one. Samples of one file of other kinds have the offset of
    /// their bytes after it, and boxes follow. Of a sample in memory: its place in the list.
    /// `is_listed`: a program lists the samples, so their root follows from the list. The paths are
    /// then whole ones.
    pub fn sample_name(&self, id: u64, is_listed: bool) -> Vec<u8> {
        let below = |path: &Path| {
            let path = path.strip_prefix(self.root()).unwrap_or(path);
            path.as_os_str().as_bytes().to_vec()
        };
        let path = self.path(id);
        let mut text = match is_listed || self.is_in_memory() {
            true => path.into_os_string().into_vec(),
            false => below(&path),
        };
        if let Some(part) = self
            .part(id)
            .filter(|_| !self.is_in_memory() && !self.has_tars())
        {
            text.extend(format!("@{}", part.at).into_bytes());
        }
        if let Some(of) = self.pixel_box(id) {
            let of = [of.left, of.top, of.right, of.bottom];
            text.extend(format!("{of:?}").into_bytes());
        }
        text
    }

    /// What a sample is found by: xxh3-128 of [`Index::sample_name`], or of the bytes of a sample in
    /// memory.
    pub fn sample_key(&self, id: u64, is_listed: bool) -> u128 {
        let mut hasher = Hasher::new();
        match self.bytes_in_memory(id) {
            Some(bytes) => hasher.write(bytes),
            None => hasher.write(&self.sample_name(id, is_listed)),
        }
        hasher.finish_128()
    }

    /// The length of a sample's file, or of its bytes in another file. None if it cannot be known.
    pub fn sample_bytes(&self, id: u64) -> Option<u64> {
        match (self.bytes_in_memory(id), self.part(id)) {
            (Some(bytes), _) => Some(bytes.len() as u64),
            (None, Some(part)) => Some(part.bytes),
            (None, None) => self.path(id).metadata().ok().map(|found| found.len()),
        }
    }

    /// The same index of single objects of a store, whose names begin at `address`.
    pub(super) fn named_by(self, address: &str) -> Self {
        Self {
            store: Some(Arc::from(address)),
            ..self
        }
    }

    /// The same index of the objects of a list of addresses, which has this hash.
    pub(super) fn of_list(self, hash: u128) -> Self {
        Self {
            listed: Some(hash),
            ..self
        }
    }

    /// An index of shards below `root` with unlabelled samples. Each sample is an offset and a
    /// length.
    #[cfg(test)]
    pub(crate) fn of_parts(root: &Path, shards: &[(&str, Vec<(u64, u64)>)]) -> Self {
        let mut content = IndexContent::default();
        for (path, parts) in shards {
            content.begin_shard(path.as_bytes());
            for (at, bytes) in parts {
                content.push_part(b"member", *at, *bytes);
            }
        }
        Self::seal(root, content).unwrap()
    }

    /// The same samples under another root, which must be absolute, with a fingerprint for each
    /// shard.
    pub(super) fn rebased(&self, root: &Path, stamps: &[FileStamp]) -> Result<Self> {
        let page_bytes = self.page_bytes;
        Self::open(self.layout.rebased(self.sealed.bytes(), root, stamps)?)
            .map(|index| Self {
                page_bytes,
                ..index
            })
            .map_err(|damage| Error::protocol(format!("the index under another root: {damage}")))
    }

    /// The label of a sample. [`Label::None`] if `id` is not less than [`Index::len`].
    pub fn label(&self, id: u64) -> Label<'_> {
        self.layout.label(self.sealed.bytes(), id)
    }

    /// Numbers per label: 0 without labels, 1 for classes, n for vectors.
    pub fn label_width(&self) -> usize {
        self.layout.label_width()
    }

    /// The names of classes, from folders or from labels. Empty if labels are numbers, or if there
    /// are none. [`Index::class_counts`] includes classes without a name.
    pub fn classes(&self) -> &ClassList {
        &self.classes
    }

    /// Whether samples have boxes ([`ListOptions::boxes`](crate::index::ListOptions::boxes)).
    /// Either all samples have one, or none has.
    pub fn has_boxes(&self) -> bool {
        self.layout.has_boxes()
    }

    /// The part of the image of a sample that is used. `None` if samples have no boxes, or if `id`
    /// is not less than [`Index::len`]. A box may reach past the edge of the image. It then ends
    /// there.
    pub fn pixel_box(&self, id: u64) -> Option<PixelBox> {
        self.layout.pixel_box(self.sealed.bytes(), id)
    }

    /// xxh3-128 of everything except the root and the fingerprints of shards. A data set that was
    /// moved keeps its hash, so a run over it can be resumed.
    ///
    /// For a list of addresses it is the hash of the list: of addresses, labels, classes and boxes.
    /// Each row is a sample, whatever its server answers.
    pub fn hash(&self) -> u128 {
        self.listed.unwrap_or(self.layout.hash())
    }

    /// Like [`Index::hash`], with all that decides an order by shards. Of a list of addresses that is
    /// the division into packs, too, which depends on the answers.
    pub(crate) fn hash_of_division(&self) -> u128 {
        let Some(listed) = self.listed else {
            return self.hash();
        };
        let mut hasher = Hasher::new();
        hasher.write(&listed.to_le_bytes());
        for id in 0..self.len() {
            let shard = self.part(id).map_or(u64::MAX, |part| part.shard);
            hasher.write(&shard.to_le_bytes());
        }
        hasher.finish_128()
    }

    /// Bytes of shared memory, counted once for all processes. They include samples in memory.
    pub fn bytes(&self) -> u64 {
        let samples = self
            .memory
            .as_ref()
            .map_or(0, |memory| memory.bytes().len());
        (self.sealed.bytes().len() + samples) as u64
    }
}

impl AsFd for Index {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::data::index::binary_form::IndexLabels;

    fn small(root: &str) -> Index {
        let mut content = IndexContent::default();
        content.push_path(b"a/1.jpg");
        content.push_path(b"b/\xff\n.png");
        content.push_path(b"/else/where.jpg");
        content.labels = IndexLabels::Class(vec![0, 1, 1 << 40]);
        Index::seal(Path::new(root), content).unwrap()
    }

    #[test]
    fn an_index_is_send_and_sync() {
        fn check<T: Send + Sync>() {}
        check::<Index>();
    }

    #[test]
    fn paths_and_labels_come_back() {
        let index = small("/data");
        assert_eq!(index.len(), 3);
        assert!(!index.is_empty());
        assert_eq!(index.relative_path(0), Path::new("a/1.jpg"));
        assert_eq!(index.path(0), Path::new("/data/a/1.jpg"));
        let odd = OsString::from_vec(b"/data/b/\xff\n.png".to_vec());
        assert_eq!(index.path(1), Path::new(&odd));
        assert_eq!(index.path(2), Path::new("/else/where.jpg"));
        assert_eq!(index.label(0), Label::Class(0));
        assert_eq!(index.label(2), Label::Class(1 << 40));
        assert_eq!(index.label_width(), 1);
        assert!(index.classes().is_empty());
    }

    #[test]
    fn an_id_past_the_end_is_an_empty_path_without_a_label() {
        let index = small("/data");
        for id in [3, 4, u64::from(u32::MAX), u64::MAX / 8, u64::MAX] {
            assert_eq!(index.relative_path(id), Path::new(""));
            assert_eq!(index.label(id), Label::None);
        }
    }

    #[test]
    fn a_file_is_located_at_its_path_in_a_buffer_that_is_kept() {
        for root in ["/data", "/", "/data/x/"] {
            let index = small(root);
            let mut buf = Vec::with_capacity(64);
            let at = buf.as_ptr();
            for id in [2, 0, 1] {
                let (path, part) = index.locate(id, &mut buf).unwrap();
                assert_eq!(path.to_bytes(), index.path(id).as_os_str().as_bytes());
                assert_eq!(part, None);
            }
            assert_eq!(buf.as_ptr(), at);
        }
    }

    #[test]
    fn a_part_is_located_in_its_shard() {
        let mut content = IndexContent::default();
        content.begin_shard(b"a.tar");
        content.push_part(b"x/1.jpg", 512, 100);
        content.begin_shard(b"/else/b.tar");
        content.push_part(b"2.jpg", 1024, 7);
        let index = Index::seal(Path::new("/data"), content).unwrap();
        let mut buf = Vec::new();
        assert_eq!(index.shards(), 2);
        let at = (c"/data/a.tar", Some(512..612));
        assert_eq!(index.locate(0, &mut buf).unwrap(), at);
        let at = (c"/else/b.tar", Some(1024..1031));
        assert_eq!(index.locate(1, &mut buf).unwrap(), at);
        assert_eq!(index.path(0), Path::new("/data/a.tar/x/1.jpg"));
        assert_eq!(index.file(0), Path::new("/data/a.tar"));
        assert_eq!(index.path(1), Path::new("/else/b.tar/2.jpg"));
        let unknown = [FileStamp::default(); 2];
        let moved = index.rebased(Path::new("/moved"), &unknown).unwrap();
        assert_eq!(moved.path(0), Path::new("/moved/a.tar/x/1.jpg"));
        assert_eq!(moved.hash(), index.hash());
    }

    #[test]
    fn another_process_sees_the_same_index() {
        let index = small("/data");
        let other = Index::from_fd(index.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(other.hash(), index.hash());
        assert_eq!(other.path(1), index.path(1));
        assert_eq!(other.bytes(), index.bytes());
    }

    #[test]
    fn a_sealed_descriptor_that_is_no_index_is_a_protocol_error() {
        let sealed = SealedBytes::new("featherload-test", &[&[7; 500]]).unwrap();
        let e = Index::from_fd(sealed.as_fd().try_clone_to_owned().unwrap()).unwrap_err();
        assert!(matches!(e, Error::Protocol { .. }), "{e}");
    }

    #[test]
    fn the_hash_knows_the_content_and_not_the_root() {
        let index = small("/data");
        assert_eq!(index.hash(), small("/moved/elsewhere").hash());
        let mut content = IndexContent::default();
        content.push_path(b"a/1.jpg");
        let other = Index::seal(Path::new("/data"), content).unwrap();
        assert_ne!(index.hash(), other.hash());
    }
}
