//! What there is: the paths of all samples, their labels and the class names.
//!
//! Built in the consumer, before any other process exists, and sealed into a
//! memfd that coordinator and workers map: its bytes are paid for once. Only
//! names are read here, and of tar shards headers and labels: no picture is
//! opened, so a sample that is broken, dangling or no regular file is found when
//! it is loaded. A sample's
//! id is its position, from 0. Nothing here is random, prints, or decides
//! which samples a batch takes: that is the plan's.
//!
//! ```
//! # fn main() -> featherload::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let src = dir.path();
//! # std::fs::create_dir_all(src.join("cat")).unwrap();
//! # std::fs::write(src.join("cat/1.jpg"), "").unwrap();
//! use featherload::index::{FolderOptions, Index, Label};
//!
//! let (index, report) = Index::folder(src, &FolderOptions::default())?;
//! assert_eq!(index.len(), 1);
//! assert_eq!(index.relative_path(0), std::path::Path::new("cat/1.jpg"));
//! assert_eq!(index.label(0), Label::Class(0));
//! assert_eq!(report.skipped_total(), 0);
//! # Ok(())
//! # }
//! ```

mod class_counts;
mod classes;
mod folder;
mod json;
mod kept;
mod lines;
mod list;
mod names;
mod of_cache;
mod open_cache;
mod place;
mod report;
mod save;
mod sealed;
mod shards;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::shard::expand;
use crate::shard::manifest::CacheManifest;
use crate::sys::regular::Stamp;
use crate::sys::sealed::SealedBytes;

pub use class_counts::ClassCount;
pub use classes::Classes;
pub use folder::{FolderLabels, FolderOptions};
pub(crate) use json::lossy;
pub use list::{Delimiter, ListLabels, ListOptions};
pub use names::{ARRAY_EXTENSION, IMAGE_EXTENSIONS, OWN_PREFIX};
pub(crate) use of_cache::CachedSamples;
pub use report::{DamagedShard, ScanReport, SkipReason, Skipped};
pub use sealed::LabelVector;
pub(crate) use sealed::Part;
pub(crate) use shards::refuse_what_is_no_tar;
pub use shards::{JSON_EXTENSION, KeepIndex, ShardLabels, ShardOptions};

use sealed::{Content, Damage, Layout};

/// The samples of a data set, in a fixed order. Immutable.
#[derive(Debug)]
pub struct Index {
    sealed: SealedBytes,
    layout: Layout,
    classes: Classes,
}

/// What is known about one sample beside its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Label<'a> {
    None,
    /// A class number; -1 in a flat folder.
    Class(i64),
    Vector(LabelVector<'a>),
}

impl Index {
    /// Every image under a folder: class sub-folders, or a flat folder.
    ///
    /// Samples are sorted by the bytes of their relative path, as
    /// `find | LC_ALL=C sort` would; classes by the bytes of their name.
    pub fn folder(root: &Path, options: &FolderOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = folder::scan(root, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of a list file of `path label` lines, in the file's order.
    pub fn list(file: &Path, options: &ListOptions) -> Result<(Self, ScanReport)> {
        let (root, content, report) = list::read(file, options)?;
        Ok((Self::seal(&root, content)?, report))
    }

    /// The samples of uncompressed tar shards, as WebDataset writes them, in the
    /// order of `shards` and of their members. Reads headers and labels, never a
    /// picture; DALI's index beside a shard, when it is newer, takes the place of
    /// its headers.
    ///
    /// # Errors
    /// A shard that cannot be read or is no tar; labels that are of several kinds,
    /// or that some samples have and some have not; no samples at all. Damage
    /// costs what is damaged, and stands in the report.
    pub fn from_shards(shards: &[PathBuf], options: &ShardOptions) -> Result<(Self, ScanReport)> {
        Self::stamped(shards, |shards| shards::open(shards, options))
    }

    /// As [`Index::from_shards`], and then writes DALI's index, `SHARD.idx`, beside
    /// each shard, each whole or not at all, as its `wds2idx` does. With it comes, in
    /// the order of the shards, where each is; or the error that says why there is
    /// none: the shard is damaged, or lacks the blocks of zeros that end a tar, so
    /// that it may be cut; or a member's name cannot stand in an index; or it cannot
    /// be written.
    ///
    /// # Errors
    /// As [`Index::from_shards`]; nothing is written then.
    pub fn from_shards_writing_idx(
        shards: &[PathBuf],
        options: &ShardOptions,
    ) -> Result<(Self, ScanReport, Vec<Result<PathBuf>>)> {
        let mut written = Vec::new();
        let (index, report) = Self::stamped(shards, |shards| {
            let (index, report, of_shards) = shards::open_and_write_idx(shards, options)?;
            written = of_shards;
            Ok((index, report))
        })?;
        Ok((index, report, written))
    }

    /// The index that `open` makes of shards, which says what they were like.
    fn stamped(
        shards: &[PathBuf],
        open: impl FnOnce(&[PathBuf]) -> Result<(Self, ScanReport)>,
    ) -> Result<(Self, ScanReport)> {
        // In front of reading, so that a change meanwhile is noticed.
        let stamps: Vec<_> = shards.iter().map(|path| Stamp::of(path)).collect();
        let (index, report) = open(shards)?;
        let stamps = stamps
            .into_iter()
            .zip(shards)
            .map(|(stamp, path)| stamp.map_err(|e| Error::io_at("look at", path, e)));
        let stamps = stamps.collect::<Result<Vec<_>>>()?;
        Ok((index.rebased(index.root(), &stamps)?, report))
    }

    /// The paths that `patterns` name, in their order: paths, braces such as
    /// `train-{000..123}.tar`, globs such as `train-*.tar`. Globs are sorted by
    /// bytes.
    ///
    /// # Errors
    /// A glob that finds nothing, a path that is named twice, and an address
    /// (`s3://`, `pipe:`): shards are mapped, so they must be files.
    pub fn expand_shards(patterns: &[impl AsRef<OsStr>]) -> Result<Vec<PathBuf>> {
        expand::expand_all(patterns)
    }

    /// Whether `text` names tar shards: by its end `.tar`, or that of a compressed
    /// one (`.tar.gz`, `.tgz`), which reading refuses with what to do; or, where
    /// nothing of this name is there, by the signs of a pattern or of an address
    /// (`s3://`, `pipe:`), which reading refuses as well.
    pub fn names_shards(text: impl AsRef<OsStr>) -> bool {
        let text = text.as_ref();
        let path = Path::new(text);
        !path.is_dir()
            && (shards::has_tar_extension(path)
                || (expand::is_pattern(text) && !path.exists())
                || expand::is_elsewhere(text))
    }

    /// Writes DALI's index, `SHARD.idx`, beside each shard, each whole or not at
    /// all, as its `wds2idx` does; where they are. Reads no labels.
    ///
    /// # Errors
    /// The first shard that is no tar, is damaged or lacks the blocks of zeros that
    /// end one, or has a member whose name cannot stand in an index. Those in front
    /// of it have theirs by then.
    pub fn write_dali_indexes(shards: &[PathBuf]) -> Result<Vec<PathBuf>> {
        shards
            .iter()
            .map(|path| shards::write_dali_index(path))
            .collect()
    }

    /// An index that [`Index::save`] wrote.
    pub fn load(file: &Path) -> Result<Self> {
        save::load(file)
    }

    /// The samples of a cache that `featherload cache build` made in `folder`.
    /// Reads its manifest, its index and the lengths of its shards.
    ///
    /// # Errors
    /// A cache that is not complete, or whose files are not those of its manifest.
    pub fn cache(folder: &Path) -> Result<Self> {
        open_cache::open(folder)
    }

    /// The sealed index of the cache in `folder`, its root `/`; where `manifest` is
    /// given, the one that is meant there.
    ///
    /// # Errors
    /// One that is missing, damaged, of another version or of another cache.
    pub(crate) fn of_cache(folder: &Path, manifest: Option<&CacheManifest>) -> Result<Self> {
        open_cache::load(folder, manifest)
    }

    /// True when `folder` has a cache's manifest, complete or not.
    pub fn is_cache(folder: &Path) -> bool {
        open_cache::is_cache(folder)
    }

    /// True when the file at `path` begins as one that [`Index::save`] wrote; or as
    /// one that [`Index::from_shards`] kept for itself, which [`Index::load`] refuses
    /// with what it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_saved(path: &Path) -> Result<bool> {
        save::is_saved(path)
    }

    /// Writes the index to a file: whole, or not at all.
    pub fn save(&self, file: &Path) -> Result<()> {
        save::save(self.sealed.bytes(), file)
    }

    /// An index out of another process.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        Self::open(SealedBytes::from_fd(fd)?)
            .map_err(|damage| Error::protocol(format!("the received index: {damage}")))
    }

    fn seal(root: &Path, content: Content) -> Result<Self> {
        Self::open(content.encode(root)?)
            .map_err(|damage| Error::protocol(format!("the index just made: {damage}")))
    }

    fn open(sealed: SealedBytes) -> Result<Self, Damage> {
        let (layout, classes) = Layout::decode(sealed.bytes())?;
        Ok(Self {
            sealed,
            layout,
            classes,
        })
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.layout.samples()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folder that relative paths start from; absolute.
    pub fn root(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.layout.root(self.sealed.bytes())))
    }

    /// A sample's path under the root; absolute only for a list file's sample
    /// outside the root. The name of its member, where it is a part of a shard.
    /// Empty for an id that is not less than [`Index::len`].
    pub fn relative_path(&self, id: u64) -> &Path {
        Path::new(OsStr::from_bytes(self.layout.path(self.sealed.bytes(), id)))
    }

    /// A sample's full path; that of its shard with the name of its member behind
    /// it, where it is a part of one: no file has that path.
    pub fn path(&self, id: u64) -> PathBuf {
        match self.part(id) {
            Some(part) => self.shard_path(part.shard).join(self.relative_path(id)),
            None => self.root().join(self.relative_path(id)),
        }
    }

    /// Shards under `root` with unlabelled parts: where they begin and how long
    /// they are.
    #[cfg(test)]
    pub(crate) fn of_parts(root: &Path, shards: &[(&str, Vec<(u64, u64)>)]) -> Self {
        let mut content = Content::default();
        for (path, parts) in shards {
            content.begin_shard(path.as_bytes());
            for (at, bytes) in parts {
                content.push_part(b"member", *at, *bytes);
            }
        }
        Self::seal(root, content).unwrap()
    }

    /// The same samples under another root, which must be absolute, with a stamp
    /// for each shard.
    fn rebased(&self, root: &Path, stamps: &[Stamp]) -> Result<Self> {
        Self::open(self.layout.rebased(self.sealed.bytes(), root, stamps)?)
            .map_err(|damage| Error::protocol(format!("the index under another root: {damage}")))
    }

    /// A sample's label; `None` for an id that is not less than [`Index::len`].
    pub fn label(&self, id: u64) -> Label<'_> {
        self.layout.label(self.sealed.bytes(), id)
    }

    /// Numbers per label: 0 without labels, 1 for classes, n for vectors.
    pub fn label_width(&self) -> usize {
        self.layout.label_width()
    }

    /// The names of classes, which are those of folders or of labels in shards;
    /// empty where labels are numbers, or there are none. [`Index::class_counts`] has
    /// classes without a name too.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// xxh3-128 of all but the root, so that a data set that was moved as a
    /// whole keeps its hash and a run over it can be resumed.
    pub fn hash(&self) -> u128 {
        self.layout.hash()
    }

    /// Shared memory held, once for all processes.
    pub fn bytes(&self) -> u64 {
        self.sealed.bytes().len() as u64
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

    fn small(root: &str) -> Index {
        let mut content = Content::default();
        content.push_path(b"a/1.jpg");
        content.push_path(b"b/\xff\n.png");
        content.push_path(b"/else/where.jpg");
        content.labels = sealed::Labels::Class(vec![0, 1, 1 << 40]);
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
        let mut content = Content::default();
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
        let unknown = [Stamp::default(); 2];
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
        let mut content = Content::default();
        content.push_path(b"a/1.jpg");
        let other = Index::seal(Path::new("/data"), content).unwrap();
        assert_ne!(index.hash(), other.hash());
    }
}
