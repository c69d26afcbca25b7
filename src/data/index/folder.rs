//! Reads a folder tree: which entries are samples, and their classes.
//!
//! Runs in the consumer, before the workers start. With many class folders it uses threads,
//! which are joined before it returns. It reads folders and the types of entries, and opens no
//! file. The exception is a folder without images: then `foreign_data` looks at files for the error
//! message. The result does not depend on the order in which the system lists a folder, on the
//! locale, or on the number of threads.
//!
//! - Every folder and every link to a folder is entered, whatever its extension, unless it leads
//!   back to a parent folder. `linked_folders` limits how many folders are reached again through
//!   links.
//! - Any other name with a known image extension is a sample: a file, a link (dangling too), a
//!   FIFO. Samples that cannot be loaded become failed samples, which a report names. They are not
//!   left out silently.
//! - A name that begins with a dot is neither a sample nor a class. Folders of operating systems
//!   (`names`) are not entered: copies of thumbnails and of file attributes have image names there.
//! - Files of featherload itself, whose names begin with [`OWN_PREFIX`], are skipped.
//! - Everything else is counted by reason.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::data::index::ClassList;
use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::foreign_data::{self, tar_in};
use crate::data::index::link_targets::LinkTargets;
use crate::data::index::names::{
    IMAGE_EXTENSIONS, OWN_PREFIX, has_image_extension, is_hidden, is_system_folder,
};
use crate::data::index::open_cache;
use crate::data::index::parquet;
use crate::data::index::report::{ScanReport, SkipReason};
use crate::data::linked_folders::LinkedFolders;
use crate::error::{Error, Result};
use crate::sys::threads;

/// How [`Index::folder`](crate::data::index::Index::folder) reads a folder.
#[derive(Debug, Clone, Default)]
pub struct FolderOptions {
    /// Where labels come from.
    pub labels: FolderLabels,
    /// The number of each class name, for example from [`ClassList::read`]. By default, class
    /// folders are numbered by the bytes of their names.
    pub classes: Option<ClassList>,
}

/// The source of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderLabels {
    /// The sub-folders of the root are the classes. In a root without sub-folders all labels are
    /// -1.
    #[default]
    FromFolders,
    /// Every image below the root, without labels.
    None,
}

/// Maximum depth of folders below the root.
const MAX_DEPTH: usize = 128;
/// Does not follow the number of cores, because a scan of a network file system mostly waits.
const MAX_THREADS: usize = 8;
/// With fewer class folders, the caller scans them alone.
const MIN_PARALLEL: usize = 8;

pub(crate) fn scan(
    root: &Path,
    options: &FolderOptions,
) -> Result<(PathBuf, IndexContent, ScanReport)> {
    let root = std::path::absolute(root)
        .map_err(|_| Error::config("the folder of samples has an empty name"))?;
    if options.labels == FolderLabels::None && options.classes.is_some() {
        return Err(Error::config(
            "a class table has no effect without labels: remove `classes` or `labels: none`",
        ));
    }
    let mut above = above(&root)?;
    let top = list_folder(&root, b"", &mut above)?;

    let mut report = top.report;
    let mut beyond = top.beyond;
    let mut content = IndexContent::default();
    let mut warning = None;
    match options.labels {
        FolderLabels::None => {
            let chunks = scan_folders(&root, &top.folders, &top.links, &above, &mut beyond)?;
            merge(&mut content, &top.images, &top.folders, chunks, &mut report);
        }
        FolderLabels::FromFolders if top.folders.is_empty() => {
            if options.classes.is_some() && top.images.len() > 0 {
                return Err(Error::dataset(
                    &root,
                    "there are no class folders for the class table: remove `classes`, or give \
                     the folder that holds the class folders",
                ));
            }
            foreign_data::check_unread_labels(&root, top.images.len() > 0)?;
            merge(&mut content, &top.images, &[], Vec::new(), &mut report);
            content.labels = IndexLabels::Class(vec![-1; content.samples()]);
        }
        FolderLabels::FromFolders => {
            if let Some(image) = top.images.iter().next() {
                let folder = OsStr::from_bytes(&top.folders[0]);
                return Err(Error::dataset(
                    &root,
                    format!(
                        "images lie beside class folders, such as {:?} beside {folder:?}: move \
                         them into class folders, or use `labels: none` to read every image \
                         without a label",
                        OsStr::from_bytes(image)
                    ),
                ));
            }
            if options.classes.is_none() {
                warning = foreign_data::check_class_folders(&root, &top.folders)?;
            }
            let classes = match &options.classes {
                Some(table) => table.clone(),
                None => ClassList::new(top.folders.iter().cloned().map(OsString::from_vec))?,
            };
            let numbers = class_numbers(&root, &classes, &top.folders)?;
            let chunks = scan_folders(&root, &top.folders, &top.links, &above, &mut beyond)?;
            for (folder, chunk) in top.folders.iter().zip(&chunks) {
                if chunk.images.len() == 0 {
                    let name = OsStr::from_bytes(folder).to_owned();
                    report.empty_classes.push(name);
                }
            }
            let counts = merge(&mut content, &top.images, &top.folders, chunks, &mut report);
            let mut labels = Vec::with_capacity(content.samples());
            for (folder, count) in counts {
                let number = numbers.get(folder).copied().unwrap_or(-1);
                labels.extend(std::iter::repeat_n(number, count));
            }
            content.labels = IndexLabels::Class(labels);
            content.classes = classes;
        }
    }
    content.beyond = Some(beyond);
    report.samples = content.samples() as u64;
    if report.samples == 0 {
        return Err(nothing_found(&root, &report));
    }
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
    Ok((root, content, report))
}

fn class_numbers(root: &Path, classes: &ClassList, folders: &[Vec<u8>]) -> Result<Vec<i64>> {
    folders
        .iter()
        .map(|folder| {
            let name = OsStr::from_bytes(folder);
            classes.get(name).ok_or_else(|| {
                Error::dataset(
                    root.join(name),
                    "this class folder is not in the class table: add its name, move the folder \
                     away, or remove `classes`",
                )
            })
        })
        .collect()
}

fn nothing_found(root: &Path, report: &ScanReport) -> Error {
    if let Some(e) = open_cache::damaged_manifest(root) {
        return e;
    }
    let mut what = String::from("no images found");
    let mut foreign = foreign_data::of_folder(root);
    for skipped in report.skipped.values() {
        for example in &skipped.examples {
            let is = || foreign_data::of_file(&root.join(example));
            foreign = foreign.or_else(|| Some(format!("{} {}", example.display(), is()?)));
        }
    }
    // A list of skipped names would only hide this message.
    let tar = tar_in(root);
    if let Some(foreign) = foreign.filter(|_| tar.is_none()) {
        return Error::dataset(root, format!("{what}: {foreign}"));
    }
    for (reason, skipped) in &report.skipped {
        what.push_str(&format!("; {reason}: {}", skipped.count));
        if let Some(example) = skipped.examples.first() {
            what.push_str(&format!(", such as {:?}", example.as_os_str()));
        }
    }
    what.push_str("; samples are files whose names end in ");
    what.push_str(&IMAGE_EXTENSIONS.join(", "));
    // The hint comes last, where readers notice it.
    if let Some(tar) = tar {
        let example = tar.file_name().unwrap_or_default();
        what.push_str(&format!("; it holds tar shards, such as {example:?}: "));
        what.push_str(&format!("to read them give '{}/*.tar'", root.display()));
        if parquet::has_files(root) {
            let tables = root.join("*.parquet");
            what.push_str(&format!(
                ", and '{}' for its Parquet files",
                tables.display()
            ));
        }
    }
    Error::dataset(root, what)
}

/// Device and inode of folders, outermost first. A link must not lead back to one of them.
type FolderIdentities = Vec<(u64, u64)>;

/// The folders above the root, with links and `..` resolved. The root itself is added when it is
/// listed.
fn above(root: &Path) -> Result<FolderIdentities> {
    let kind = fs::metadata(root).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::dataset(root, "no such folder: check the path"),
        _ => unreadable(root, e),
    })?;
    if !kind.is_dir() {
        return Err(Error::dataset(
            root,
            "is not a folder: give a folder of images, or read the file as a list",
        ));
    }
    let resolved = fs::canonicalize(root).map_err(|e| unreadable(root, e))?;
    Ok(resolved
        .ancestors()
        .skip(1)
        .filter_map(|folder| fs::metadata(folder).ok())
        .map(|folder| (folder.dev(), folder.ino()))
        .collect())
}

/// The error of a folder that cannot be read, with a fix if there is one.
fn unreadable(path: &Path, e: io::Error) -> Error {
    match e.kind() {
        ErrorKind::PermissionDenied => Error::dataset(
            path,
            "permission denied, so its images would be missing: make the folder readable (chmod \
             u+rx), or move it away",
        ),
        ErrorKind::NotFound => Error::dataset(
            path,
            "disappeared while it was read: start again when no process changes the data set",
        ),
        _ => Error::io_at("read folder", path, e),
    }
}

/// Relative paths in one allocation. They are sorted after [`Images::sort`].
#[derive(Default)]
struct Images {
    blob: Vec<u8>,
    spans: Vec<(usize, u32)>,
}

impl Images {
    fn push(&mut self, folder: &[u8], name: &[u8]) {
        let start = self.blob.len();
        self.blob.extend_from_slice(folder);
        self.blob.extend_from_slice(name);
        let len = u32::try_from(folder.len() + name.len()).unwrap_or(u32::MAX);
        self.spans.push((start, len));
    }

    fn sort(&mut self) {
        let blob = &self.blob;
        let path = |&(start, len): &(usize, u32)| &blob[start..start + len as usize];
        self.spans.sort_unstable_by(|a, b| path(a).cmp(path(b)));
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans
            .iter()
            .map(|&(start, len)| &self.blob[start..start + len as usize])
    }

    fn len(&self) -> usize {
        self.spans.len()
    }
}

/// The entries of one folder.
struct FolderListing {
    images: Images,
    /// Folders to enter, sorted by the bytes of their names.
    folders: Vec<Vec<u8>>,
    /// The folders that are links.
    links: HashSet<Vec<u8>>,
    report: ScanReport,
    beyond: LinkTargets,
}

/// Lists the root, and adds it to `above`.
fn list_folder(
    path: &Path,
    relative: &[u8],
    above: &mut FolderIdentities,
) -> Result<FolderListing> {
    let mut chunk = FolderChunk::default();
    let folders = read_folder(path, relative, above, &mut chunk)?;
    chunk.images.sort();
    let links = folders.iter().filter(|folder| folder.is_link);
    Ok(FolderListing {
        images: chunk.images,
        links: links.map(|folder| folder.name.clone()).collect(),
        folders: folders.into_iter().map(|folder| folder.name).collect(),
        report: chunk.report,
        beyond: chunk.beyond,
    })
}

/// A folder to enter.
struct ChildFolder {
    name: Vec<u8>,
    is_link: bool,
}

/// Reads one folder. Adds images, counts and links to the chunk, and the identity of the folder to
/// `above`. Returns the folders to enter, sorted by name. `relative` is empty or ends in a slash.
fn read_folder(
    path: &Path,
    relative: &[u8],
    above: &mut FolderIdentities,
    chunk: &mut FolderChunk,
) -> Result<Vec<ChildFolder>> {
    let failed = |e| unreadable(path, e);
    let own = fs::metadata(path).map_err(failed)?;
    above.push((own.dev(), own.ino()));
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_vec();
        if name.starts_with(OWN_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| unreadable(&path, e))?;
        let what = match kind.is_dir() || kind.is_symlink() {
            true => folder_or_link(&path, &name, above)?,
            false => of_file(&name),
        };
        match what {
            EntryKind::Sample => {
                chunk.images.push(relative, &name);
                if kind.is_symlink() {
                    chunk.beyond.link(&path);
                }
            }
            EntryKind::Folder => {
                if kind.is_symlink() {
                    chunk.beyond.folder(&path);
                }
                let is_link = kind.is_symlink();
                folders.push(ChildFolder { name, is_link });
            }
            EntryKind::LeftOut(reason) => {
                let mut skipped = relative.to_vec();
                skipped.extend_from_slice(&name);
                let skipped = OsString::from_vec(skipped).into();
                chunk.report.skip(reason, skipped);
            }
        }
    }
    folders.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(folders)
}

/// The kind of an entry of a folder.
enum EntryKind {
    Sample,
    /// A folder to enter.
    Folder,
    LeftOut(SkipReason),
}

/// The kind of an entry that is not a folder, by its name.
fn of_file(name: &[u8]) -> EntryKind {
    if is_hidden(name) {
        EntryKind::LeftOut(SkipReason::Hidden)
    } else if has_image_extension(name) {
        EntryKind::Sample
    } else {
        EntryKind::LeftOut(SkipReason::NotAnImageName)
    }
}

/// The kind of a folder, or of the target of a link.
fn folder_or_link(path: &Path, name: &[u8], above: &FolderIdentities) -> Result<EntryKind> {
    let target = match fs::metadata(path) {
        Ok(target) => target,
        // The run reports an image that it cannot open.
        Err(_) if matches!(of_file(name), EntryKind::Sample) => return Ok(EntryKind::Sample),
        Err(_) if is_hidden(name) => return Ok(EntryKind::LeftOut(SkipReason::Hidden)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(EntryKind::LeftOut(SkipReason::DanglingLink));
        }
        // A link that leads to itself.
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => {
            return Ok(EntryKind::LeftOut(SkipReason::LinkLoop));
        }
        Err(e) => return Err(unreadable(path, e)),
    };
    Ok(if !target.is_dir() {
        of_file(name)
    } else if is_hidden(name) {
        EntryKind::LeftOut(SkipReason::HiddenFolder)
    } else if is_system_folder(name) {
        EntryKind::LeftOut(SkipReason::SystemFolder)
    } else if above.contains(&(target.dev(), target.ino())) {
        EntryKind::LeftOut(SkipReason::LinkLoop)
    } else {
        EntryKind::Folder
    })
}

/// Everything below one folder of the root.
#[derive(Default)]
struct FolderChunk {
    images: Images,
    report: ScanReport,
    beyond: LinkTargets,
}

/// The shared state of one scan.
struct FolderScan<'a> {
    root: &'a Path,
    relinked: LinkedFolders,
}

fn scan_folder(
    scan: &FolderScan<'_>,
    name: &[u8],
    is_link: bool,
    above: &FolderIdentities,
) -> Result<FolderChunk> {
    let mut chunk = FolderChunk::default();
    let mut relative = name.to_vec();
    relative.push(b'/');
    let mut above = above.clone();
    let place = (1, is_link);
    descend(scan, &mut relative, &mut above, place, &mut chunk)?;
    chunk.images.sort();
    Ok(chunk)
}

/// `depth` is the number of folders below the root. `linked`: whether one of them is a link.
fn descend(
    scan: &FolderScan<'_>,
    relative: &mut Vec<u8>,
    above: &mut FolderIdentities,
    (depth, linked): (usize, bool),
    chunk: &mut FolderChunk,
) -> Result<()> {
    let name = relative.strip_suffix(b"/").unwrap_or(relative);
    let path = scan.root.join(OsStr::from_bytes(name));
    if depth > MAX_DEPTH {
        return Err(Error::dataset(
            path,
            format!("is over {MAX_DEPTH} folders deep: give a folder further down"),
        ));
    }
    let folders = read_folder(&path, relative, above, chunk)?;
    if let Some(identity) = above.last().filter(|_| linked) {
        scan.relinked.enter(scan.root, relative, *identity)?;
    }
    for folder in folders {
        let length = relative.len();
        relative.extend_from_slice(&folder.name);
        relative.push(b'/');
        let place = (depth + 1, linked || folder.is_link);
        descend(scan, relative, above, place, chunk)?;
        relative.truncate(length);
    }
    above.pop();
    Ok(())
}

/// Scans one chunk per folder, in the order of `folders`. Adds their links to `beyond`. If several
/// folders fail, returns the error of the first one in this order.
fn scan_folders(
    root: &Path,
    folders: &[Vec<u8>],
    links: &HashSet<Vec<u8>>,
    above: &FolderIdentities,
    beyond: &mut LinkTargets,
) -> Result<Vec<FolderChunk>> {
    let scan = FolderScan {
        root,
        relinked: LinkedFolders::default(),
    };
    let threads = match folders.len() < MIN_PARALLEL {
        true => 1,
        false => MAX_THREADS,
    };
    let mut chunks = threads::each("featherload-scan", threads, folders, |name| {
        scan_folder(&scan, name, links.contains(name), above)
    })?;
    for chunk in &mut chunks {
        beyond.merge(std::mem::take(&mut chunk.beyond));
    }
    Ok(chunks)
}

/// Puts the root's own images and the chunks into the order of the bytes of relative paths. The
/// paths of a folder begin with its name and a slash, so they stay together. But `a-b/` comes
/// before `a/`, although the name `a` comes before `a-b`. Returns the position of the folder and
/// the number of samples of each chunk, in that order.
fn merge(
    content: &mut IndexContent,
    images: &Images,
    folders: &[Vec<u8>],
    chunks: Vec<FolderChunk>,
    report: &mut ScanReport,
) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, &Vec<u8>, FolderChunk)> = folders
        .iter()
        .enumerate()
        .zip(chunks)
        .map(|((at, name), chunk)| (at, name, chunk))
        .collect();
    order.sort_by(|(_, a, _), (_, b, _)| compare_as_folders(a, b));
    let mut images = images.iter().peekable();
    let mut counts = Vec::with_capacity(order.len());
    for (at, name, chunk) in order {
        while let Some(image) = images.next_if(|image| compare_with_folder(image, name).is_lt()) {
            content.push_path(image);
        }
        counts.push((at, chunk.images.len()));
        for path in chunk.images.iter() {
            content.push_path(path);
        }
        report.merge(chunk.report);
    }
    for image in images {
        content.push_path(image);
    }
    counts
}

/// Compares two names as if each had a slash after it.
fn compare_as_folders(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().chain(b"/").cmp(b.iter().chain(b"/"))
}

/// Compares a name with another name that has a slash after it.
fn compare_with_folder(image: &[u8], folder: &[u8]) -> Ordering {
    image.iter().cmp(folder.iter().chain(b"/"))
}

#[cfg(test)]
mod tests;
