//! Reads a folder tree: which entries are samples, and of which class.
//!
//! Runs in the consumer, before there are other processes; its threads, when
//! there are many class folders, are joined before it returns. It reads
//! folders and the types of entries, and never opens a file. What it finds does
//! not depend on the order in which the system lists a folder, on the locale or
//! on the number of threads.
//!
//! - A name with a known image extension is a sample, whatever it is the name
//!   of: a file, a link (dangling too), a FIFO, even a folder. Those that
//!   cannot be loaded become failed samples, which a report names; to leave
//!   them out here would be silent.
//! - Every other folder, and every link to one, is entered, unless its name
//!   begins with a dot or it leads back to a folder above it.
//! - What featherload itself left there, by [`OWN_PREFIX`], is passed over.
//! - Everything else is counted by reason.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Sync};
use std::thread;

use crate::error::{Error, Result};
use crate::index::report::{ScanReport, SkipReason};
use crate::index::sealed::{Content, Labels};
use crate::index::{Classes, OWN_PREFIX, has_image_extension};

/// How [`Index::folder`](crate::index::Index::folder) reads a folder.
#[derive(Debug, Clone, Default)]
pub struct FolderOptions {
    pub labels: FolderLabels,
    /// Which class name has which number, as
    /// [`Classes::read`] gives it; without it the class folders are numbered in
    /// the order of their names' bytes.
    pub classes: Option<Classes>,
}

/// Where labels come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderLabels {
    /// The sub-folders of the root are the classes; a folder without
    /// sub-folders is flat, and all its labels are -1.
    #[default]
    FromFolders,
    /// Every image under the root, without a label.
    None,
}

/// Folders within folders; deeper is a mistake.
const MAX_DEPTH: usize = 128;
/// A scan of a network file system waits more than it computes, so this does
/// not follow the number of cores.
const MAX_THREADS: usize = 8;
/// Fewer folders than this are scanned by the caller alone.
const MIN_PARALLEL: usize = 8;

pub(super) fn scan(root: &Path, options: &FolderOptions) -> Result<(PathBuf, Content, ScanReport)> {
    let root = std::path::absolute(root)
        .map_err(|_| Error::config("the folder of samples has an empty name"))?;
    if options.labels == FolderLabels::None && options.classes.is_some() {
        return Err(Error::config(
            "a class table is of no use without labels; leave out `--classes` or `--labels none`",
        ));
    }
    let mut above = above(&root)?;
    let top = list_folder(&root, b"", &mut above)?;

    let mut report = top.report;
    let mut content = Content::default();
    match options.labels {
        FolderLabels::None => {
            let chunks = scan_folders(&root, &top.folders, &above)?;
            merge(&mut content, &top.images, &top.folders, chunks, &mut report);
        }
        FolderLabels::FromFolders if top.folders.is_empty() => {
            if options.classes.is_some() && top.images.len() > 0 {
                return Err(Error::dataset(
                    &root,
                    "there are no class folders to look up in the class table; leave out \
                     `--classes`, or pass the folder that holds the class folders",
                ));
            }
            merge(&mut content, &top.images, &[], Vec::new(), &mut report);
            content.labels = Labels::Class(vec![-1; content.samples()]);
        }
        FolderLabels::FromFolders => {
            if let Some(image) = top.images.iter().next() {
                let folder = OsStr::from_bytes(&top.folders[0]);
                return Err(Error::dataset(
                    &root,
                    format!(
                        "images beside class folders, such as {:?} beside {folder:?}; move them \
                         into class folders, or pass `--labels none` to take every image \
                         without a label",
                        OsStr::from_bytes(image)
                    ),
                ));
            }
            let classes = match &options.classes {
                Some(table) => table.clone(),
                None => Classes::new(top.folders.iter().cloned().map(OsString::from_vec))?,
            };
            let numbers = class_numbers(&root, &classes, &top.folders)?;
            let chunks = scan_folders(&root, &top.folders, &above)?;
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
            content.labels = Labels::Class(labels);
            content.classes = classes;
        }
    }
    report.samples = content.samples() as u64;
    if report.samples == 0 {
        return Err(nothing_found(&root, &report));
    }
    Ok((root, content, report))
}

fn class_numbers(root: &Path, classes: &Classes, folders: &[Vec<u8>]) -> Result<Vec<i64>> {
    folders
        .iter()
        .map(|folder| {
            let name = OsStr::from_bytes(folder);
            classes.get(name).ok_or_else(|| {
                Error::dataset(
                    root.join(name),
                    "this class folder is not in the class table; add its name, move the folder \
                     away, or leave out `--classes`",
                )
            })
        })
        .collect()
}

fn nothing_found(root: &Path, report: &ScanReport) -> Error {
    let mut what = String::from("no images found");
    for (reason, skipped) in &report.skipped {
        let example = skipped.examples.first().map(|p| p.as_os_str());
        what.push_str(&format!("; {reason}: {}", skipped.count));
        if let Some(example) = example {
            what.push_str(&format!(", such as {example:?}"));
        }
    }
    what.push_str("; samples are files whose names end in ");
    what.push_str(&super::IMAGE_EXTENSIONS.join(", "));
    // Last, where the eye ends.
    if let Some(tar) = tar_in(root) {
        what.push_str(&format!("; it holds tar shards, such as {tar:?}: "));
        what.push_str(&format!("to read them give '{}/*.tar'", root.display()));
    }
    Error::dataset(root, what)
}

/// The first tar of a folder by its bytes, for a message.
fn tar_in(root: &Path) -> Option<OsString> {
    let names = fs::read_dir(root)
        .ok()?
        .filter_map(|e| Some(e.ok()?.file_name()));
    names
        .filter(|name| name.as_bytes().ends_with(b".tar"))
        .min()
}

/// Identities of folders, outermost first: what a link must not lead back to.
type Above = Vec<(u64, u64)>;

/// The folders above the root, as links and `..` resolve. The root itself is
/// added when it is listed.
fn above(root: &Path) -> Result<Above> {
    let kind = fs::metadata(root).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::dataset(root, "no such folder; check the path"),
        _ => unreadable(root, e),
    })?;
    if !kind.is_dir() {
        return Err(Error::dataset(
            root,
            "not a folder, where a folder of samples is due; a list of samples is read as a \
             list file",
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

/// An error while a folder is read, with the way out where there is one.
fn unreadable(path: &Path, e: io::Error) -> Error {
    match e.kind() {
        ErrorKind::PermissionDenied => Error::dataset(
            path,
            "permission denied, so its images would be missing; make the folder readable \
             (chmod u+rx) or move it away",
        ),
        ErrorKind::NotFound => Error::dataset(
            path,
            "vanished while it was read; start again when nothing changes the data set",
        ),
        _ => Error::io_at("read folder", path, e),
    }
}

/// Relative paths in one allocation, in sorted order once [`Images::sort`] ran.
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

/// What one folder holds itself.
struct Listing {
    images: Images,
    /// Folders to enter, by name, sorted by bytes.
    folders: Vec<Vec<u8>>,
    report: ScanReport,
}

/// Lists the top folder and adds it to `above`.
fn list_folder(path: &Path, relative: &[u8], above: &mut Above) -> Result<Listing> {
    let mut images = Images::default();
    let mut report = ScanReport::default();
    let folders = read_folder(path, relative, above, &mut images, &mut report)?;
    images.sort();
    Ok(Listing {
        images,
        folders,
        report,
    })
}

/// Reads one folder: images and counts go to the collections, the names of
/// folders to enter come back, sorted. The folder's identity is added to
/// `above`. `relative` is empty or ends in a slash.
fn read_folder(
    path: &Path,
    relative: &[u8],
    above: &mut Above,
    images: &mut Images,
    report: &mut ScanReport,
) -> Result<Vec<Vec<u8>>> {
    let failed = |e| unreadable(path, e);
    let own = fs::metadata(path).map_err(failed)?;
    above.push((own.dev(), own.ino()));
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_vec();
        if has_image_extension(&name) {
            images.push(relative, &name);
            continue;
        }
        if name.starts_with(OWN_PREFIX.as_bytes()) {
            continue;
        }
        let kind = entry
            .file_type()
            .map_err(|e| unreadable(&entry.path(), e))?;
        let reason = if kind.is_dir() || kind.is_symlink() {
            match folder_behind(&entry.path(), &name, above)? {
                None => {
                    folders.push(name);
                    continue;
                }
                Some(reason) => reason,
            }
        } else {
            not_an_image(&name)
        };
        let mut skipped = relative.to_vec();
        skipped.extend_from_slice(&name);
        report.skip(reason, OsString::from_vec(skipped).into());
    }
    folders.sort_unstable();
    Ok(folders)
}

fn not_an_image(name: &[u8]) -> SkipReason {
    if name.starts_with(b".") {
        SkipReason::Hidden
    } else {
        SkipReason::NotAnImageName
    }
}

/// `None` when the folder, or the folder that a link leads to, is to be
/// entered.
fn folder_behind(path: &Path, name: &[u8], above: &Above) -> Result<Option<SkipReason>> {
    let target = match fs::metadata(path) {
        Ok(target) => target,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Some(SkipReason::DanglingLink));
        }
        // A link that leads to itself.
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return Ok(Some(SkipReason::LinkLoop)),
        Err(e) => return Err(unreadable(path, e)),
    };
    Ok(if !target.is_dir() {
        Some(not_an_image(name))
    } else if name.starts_with(b".") {
        Some(SkipReason::HiddenFolder)
    } else if above.contains(&(target.dev(), target.ino())) {
        Some(SkipReason::LinkLoop)
    } else {
        None
    })
}

/// All that lies under one folder of the root.
#[derive(Default)]
struct Chunk {
    images: Images,
    report: ScanReport,
}

fn scan_folder(root: &Path, name: &[u8], above: &Above) -> Result<Chunk> {
    let mut chunk = Chunk::default();
    let mut relative = name.to_vec();
    relative.push(b'/');
    let mut above = above.clone();
    descend(root, &mut relative, &mut above, 1, &mut chunk)?;
    chunk.images.sort();
    Ok(chunk)
}

fn descend(
    root: &Path,
    relative: &mut Vec<u8>,
    above: &mut Above,
    depth: usize,
    chunk: &mut Chunk,
) -> Result<()> {
    let name = relative.strip_suffix(b"/").unwrap_or(relative);
    let path = root.join(OsStr::from_bytes(name));
    if depth > MAX_DEPTH {
        return Err(Error::dataset(
            path,
            format!("over {MAX_DEPTH} folders deep; pass a folder further down"),
        ));
    }
    let folders = read_folder(&path, relative, above, &mut chunk.images, &mut chunk.report)?;
    for name in folders {
        let length = relative.len();
        relative.extend_from_slice(&name);
        relative.push(b'/');
        descend(root, relative, above, depth + 1, chunk)?;
        relative.truncate(length);
    }
    above.pop();
    Ok(())
}

/// One chunk a folder, in the order of `folders`. When several folders fail,
/// the error is that of the first one, as if they had been read in order.
fn scan_folders(root: &Path, folders: &[Vec<u8>], above: &Above) -> Result<Vec<Chunk>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    // Folders are claimed in order and a claimed one is always finished, so
    // whatever precedes the first failure has been read.
    let work = || {
        let mut done = Vec::new();
        while !failed.load(Sync::Relaxed) {
            let at = next.fetch_add(1, Sync::Relaxed);
            let Some(name) = folders.get(at) else { break };
            let chunk = scan_folder(root, name, above);
            if chunk.is_err() {
                failed.store(true, Sync::Relaxed);
            }
            done.push((at, chunk));
        }
        done
    };
    let helpers = if folders.len() < MIN_PARALLEL {
        0
    } else {
        MAX_THREADS - 1
    };
    let mut done = thread::scope(|scope| -> Result<Vec<_>> {
        // A thread that cannot be started is done without.
        let helpers: Vec<_> = (0..helpers)
            .filter_map(|_| {
                thread::Builder::new()
                    .name("featherload-scan".into())
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        let mut done = work();
        for helper in helpers {
            let theirs = helper
                .join()
                .map_err(|_| Error::worker("a thread that reads folders panicked"))?;
            done.extend(theirs);
        }
        Ok(done)
    })?;
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, chunk)| chunk).collect()
}

/// Puts the root's own images and the folders' chunks into one order: by the
/// bytes of the relative path. A folder's paths all begin with its name and a
/// slash, so they stay together; but `a-b/` comes before `a/`, although the
/// name `a` comes before `a-b`. Gives each chunk's folder and number of samples
/// in that order.
fn merge(
    content: &mut Content,
    images: &Images,
    folders: &[Vec<u8>],
    chunks: Vec<Chunk>,
    report: &mut ScanReport,
) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, &Vec<u8>, Chunk)> = folders
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

/// The order of two names with a slash behind each.
fn compare_as_folders(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().chain(b"/").cmp(b.iter().chain(b"/"))
}

/// The order of a name and of a name with a slash behind it.
fn compare_with_folder(image: &[u8], folder: &[u8]) -> Ordering {
    image.iter().cmp(folder.iter().chain(b"/"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::sys::stat::Mode;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::index::{Index, Label};

    /// Makes the named files, and the folders for names that end in a slash.
    fn tree(names: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            make(dir.path(), name.as_bytes());
        }
        dir
    }

    fn make(root: &Path, name: &[u8]) {
        let path = root.join(OsStr::from_bytes(name));
        if name.ends_with(b"/") {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn labelled(dir: &TempDir) -> Result<(Index, ScanReport)> {
        Index::folder(dir.path(), &FolderOptions::default())
    }

    fn unlabelled(dir: &TempDir) -> Result<(Index, ScanReport)> {
        let options = FolderOptions {
            labels: FolderLabels::None,
            ..FolderOptions::default()
        };
        Index::folder(dir.path(), &options)
    }

    fn mapped(dir: &TempDir, classes: &[&str]) -> Result<(Index, ScanReport)> {
        let options = FolderOptions {
            classes: Some(Classes::new(classes).unwrap()),
            ..FolderOptions::default()
        };
        Index::folder(dir.path(), &options)
    }

    fn paths(index: &Index) -> Vec<String> {
        (0..index.len())
            .map(|id| shown_path(index.relative_path(id)))
            .collect()
    }

    fn shown_path(path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    fn labels(index: &Index) -> Vec<i64> {
        (0..index.len())
            .map(|id| match index.label(id) {
                Label::Class(class) => class,
                other => panic!("{other:?} where a class is due"),
            })
            .collect()
    }

    fn error(result: Result<(Index, ScanReport)>) -> String {
        let e = result.unwrap_err();
        assert!(e.is_usage(), "{e}");
        e.to_string()
    }

    fn fifo(path: &Path) {
        nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
    }

    #[test]
    fn class_folders_give_classes_by_name_and_samples_by_path() {
        let dir = tree(&[
            "cat/2.jpg",
            "cat/10.jpg",
            "ant/z/1.PNG",
            "ant/b.webp",
            "Zoo/x.Tiff",
        ]);
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(
            paths(&index),
            [
                "Zoo/x.Tiff",
                "ant/b.webp",
                "ant/z/1.PNG",
                "cat/10.jpg",
                "cat/2.jpg"
            ]
        );
        assert_eq!(labels(&index), [0, 1, 1, 2, 2]);
        assert_eq!(
            index.classes(),
            &Classes::new(["Zoo", "ant", "cat"]).unwrap()
        );
        assert_eq!(report.samples, 5);
        assert_eq!(report.skipped_total(), 0);
        assert_eq!(index.root(), dir.path());
        assert_eq!(index.label_width(), 1);
    }

    #[test]
    fn class_numbers_follow_names_where_paths_sort_otherwise() {
        let dir = tree(&["a/1.jpg", "a-b/2.jpg", "a.b/3.jpg", "a0/4.jpg"]);
        let (index, _) = labelled(&dir).unwrap();
        assert_eq!(
            paths(&index),
            ["a-b/2.jpg", "a.b/3.jpg", "a/1.jpg", "a0/4.jpg"]
        );
        assert_eq!(labels(&index), [1, 2, 0, 3]);
        for (name, number) in [("a", 0), ("a-b", 1), ("a.b", 2), ("a0", 3)] {
            assert_eq!(index.classes().get(name), Some(number));
        }
    }

    #[test]
    fn a_flat_folder_is_class_minus_one() {
        let dir = tree(&["b.jpg", "a.JPG", "notes.txt"]);
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(paths(&index), ["a.JPG", "b.jpg"]);
        assert_eq!(labels(&index), [-1, -1]);
        assert!(index.classes().is_empty());
        assert_eq!(report.skipped[&SkipReason::NotAnImageName].count, 1);
    }

    #[test]
    fn without_labels_every_image_is_taken_in_the_order_of_its_path() {
        let dir = tree(&["b/1.jpg", "b.jpg", "b0.jpg", "a.png", "b-c/d/2.gif", "c/"]);
        let (index, report) = unlabelled(&dir).unwrap();
        assert_eq!(
            paths(&index),
            ["a.png", "b-c/d/2.gif", "b.jpg", "b/1.jpg", "b0.jpg"]
        );
        assert_eq!(index.label(0), Label::None);
        assert_eq!(index.label_width(), 0);
        assert!(index.classes().is_empty() && report.empty_classes.is_empty());
    }

    #[test]
    fn images_beside_class_folders_are_an_error_with_a_way_out() {
        let dir = tree(&["cat/1.jpg", "z.jpg", "stray.jpg"]);
        let e = error(labelled(&dir));
        assert!(e.contains("\"stray.jpg\" beside \"cat\""), "{e}");
        assert!(e.contains("`--labels none`"), "{e}");
        assert_eq!(unlabelled(&dir).unwrap().0.len(), 3);
    }

    #[test]
    fn an_empty_class_keeps_its_number_and_is_reported() {
        let dir = tree(&["a/1.jpg", "b/", "c/readme", "d/4.jpg"]);
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(labels(&index), [0, 3]);
        assert_eq!(index.classes().len(), 4);
        assert_eq!(report.empty_classes, ["b", "c"]);
    }

    #[test]
    fn a_class_table_gives_the_numbers() {
        let dir = tree(&["a/1.jpg", "b/2.jpg"]);
        let (index, _) = mapped(&dir, &["b", "nobody", "a"]).unwrap();
        assert_eq!(paths(&index), ["a/1.jpg", "b/2.jpg"]);
        assert_eq!(labels(&index), [2, 0]);
        assert_eq!(index.classes().len(), 3);
        let e = error(mapped(&dir, &["b", "c"]));
        assert!(e.contains("/a: this class folder is not in"), "{e}");
    }

    #[test]
    fn a_class_table_without_a_use_is_an_error() {
        let dir = tree(&["1.jpg"]);
        let e = error(mapped(&dir, &["a"]));
        assert!(e.contains("no class folders"), "{e}");
        let options = FolderOptions {
            labels: FolderLabels::None,
            classes: Some(Classes::new(["a"]).unwrap()),
        };
        let e = error(Index::folder(dir.path(), &options));
        assert!(e.contains("`--labels none`"), "{e}");
    }

    #[test]
    fn what_is_no_sample_is_counted_with_examples() {
        let dir = tree(&[
            "a/1.jpg",
            "a/.DS_Store",
            "a/b/5.txt",
            "a/4.txt",
            "a/1.txt",
            "a/2.txt",
            ".git/x.jpg",
            "a/.thumbs/y.jpg",
            "Thumbs.db",
            "a/jpg",
            // Notes of our own are passed over.
            ".featherload-demo.json",
            "a/.featherload-cache/x.jpg",
        ]);
        symlink("nowhere", dir.path().join("a/gone")).unwrap();
        symlink("1.txt", dir.path().join("a/link.txt")).unwrap();
        fifo(&dir.path().join("a/pipe"));
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(paths(&index), ["a/1.jpg"]);
        assert_eq!(index.classes().len(), 1);
        let count = |reason| report.skipped[&reason].count;
        assert_eq!(count(SkipReason::NotAnImageName), 8);
        assert_eq!(count(SkipReason::Hidden), 1);
        assert_eq!(count(SkipReason::HiddenFolder), 2);
        assert_eq!(count(SkipReason::DanglingLink), 1);
        assert_eq!(report.skipped_total(), 12);
        let examples = &report.skipped[&SkipReason::NotAnImageName].examples;
        let first: Vec<_> = ["Thumbs.db", "a/1.txt", "a/2.txt"]
            .map(PathBuf::from)
            .into();
        assert_eq!(examples, &first);
    }

    #[test]
    fn whatever_has_an_image_name_is_a_sample() {
        let dir = tree(&["a/1.jpg", "a/dir.jpg/inner.jpg", "a/._1.jpg", "other/5.jpg"]);
        fifo(&dir.path().join("a/pipe.jpg"));
        symlink("nowhere", dir.path().join("a/gone.jpg")).unwrap();
        symlink("1.jpg", dir.path().join("a/link.png")).unwrap();
        symlink(dir.path().join("other"), dir.path().join("a/dirlink.jpg")).unwrap();
        symlink("loop.jpg", dir.path().join("a/loop.jpg")).unwrap();
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(
            paths(&index),
            [
                "a/._1.jpg",
                "a/1.jpg",
                "a/dir.jpg",
                "a/dirlink.jpg",
                "a/gone.jpg",
                "a/link.png",
                "a/loop.jpg",
                "a/pipe.jpg",
                "other/5.jpg"
            ]
        );
        assert_eq!(report.skipped_total(), 0);
    }

    #[test]
    fn links_to_folders_are_entered_and_loops_are_not() {
        let store = tree(&["x/1.jpg", "y/2.jpg"]);
        let dir = tree(&["a/0.jpg", "a/deep/er/3.jpg"]);
        let at = |name: &str| dir.path().join(name);
        symlink(store.path().join("x"), at("linked")).unwrap();
        symlink(store.path(), at("a/store")).unwrap();
        symlink(".", at("a/self")).unwrap();
        symlink("..", at("a/up")).unwrap();
        symlink("../..", at("a/deep/er/up")).unwrap();
        symlink(dir.path().parent().unwrap(), at("outer")).unwrap();
        symlink("ring", at("ring")).unwrap();
        symlink(dir.path(), store.path().join("y/back")).unwrap();
        let (index, report) = labelled(&dir).unwrap();
        assert_eq!(
            paths(&index),
            [
                "a/0.jpg",
                "a/deep/er/3.jpg",
                "a/store/x/1.jpg",
                "a/store/y/2.jpg",
                "linked/1.jpg"
            ]
        );
        assert_eq!(labels(&index), [0, 0, 0, 0, 1]);
        assert_eq!(report.skipped[&SkipReason::LinkLoop].count, 6);
        assert_eq!(report.skipped_total(), 6);
    }

    #[test]
    fn a_root_behind_a_link_is_as_good() {
        let dir = tree(&["data/a/1.jpg"]);
        symlink("..", dir.path().join("data/a/up")).unwrap();
        symlink("data", dir.path().join("link")).unwrap();
        let root = dir.path().join("link");
        let (index, report) = Index::folder(&root, &FolderOptions::default()).unwrap();
        assert_eq!(index.path(0), root.join("a/1.jpg"));
        assert_eq!(report.skipped[&SkipReason::LinkLoop].count, 1);
    }

    #[test]
    fn names_need_not_be_text() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            &b"\xff\xfe/\x80.jpg"[..],
            b"a\nb/c d.jpg",
            b"\xc3\xa9/1.jpg",
        ] {
            make(dir.path(), name);
        }
        let (index, _) = labelled(&dir).unwrap();
        let found: Vec<_> = (0..3)
            .map(|id| index.relative_path(id).as_os_str().as_bytes())
            .collect();
        assert_eq!(
            found,
            [
                &b"a\nb/c d.jpg"[..],
                b"\xc3\xa9/1.jpg",
                b"\xff\xfe/\x80.jpg"
            ]
        );
        assert_eq!(index.classes().get(OsStr::from_bytes(b"\xff\xfe")), Some(2));
        assert!(index.path(2).exists());
    }

    #[test]
    fn a_folder_that_is_none_is_named() {
        let dir = tree(&["file"]);
        for (path, want) in [
            (dir.path().join("none"), "none: no such folder"),
            (dir.path().join("file"), "file: not a folder"),
            (PathBuf::new(), "empty name"),
        ] {
            let e = error(Index::folder(&path, &FolderOptions::default()));
            assert!(e.contains(want), "{e}");
        }
    }

    #[test]
    fn no_images_is_an_error_that_says_what_was_there() {
        let e = error(labelled(&tree(&[])));
        assert!(e.contains("no images found; samples are files"), "{e}");
        let e = error(labelled(&tree(&["a/x.heic", "b/"])));
        assert!(
            e.contains("no image extension: 1, such as \"a/x.heic\""),
            "{e}"
        );
        assert!(e.contains("jpg, jpeg"), "{e}");
        assert!(error(unlabelled(&tree(&["a/"]))).contains("no images found"));
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_an_error_that_names_it() {
        let dir = tree(&["a/1.jpg", "b/secret/2.jpg"]);
        let secret = dir.path().join("b/secret");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
        if nix::unistd::geteuid().is_root() {
            eprintln!("NOT CHECKED: root may read every folder, so no error can be provoked");
        } else {
            let e = error(labelled(&dir));
            assert!(e.contains("b/secret: permission denied"), "{e}");
        }
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).unwrap();
        let e = unreadable(&secret, ErrorKind::PermissionDenied.into());
        assert!(e.is_usage() && e.to_string().contains("chmod"), "{e}");
    }

    #[test]
    fn of_several_failures_the_first_folder_is_named() {
        let dir = tree(&["a/1.jpg"]);
        let names: Vec<Vec<u8>> = (0..40)
            .map(|i| {
                if i % 10 == 3 {
                    format!("{i}")
                } else {
                    "a".into()
                }
                .into_bytes()
            })
            .collect();
        for _ in 0..20 {
            let e = scan_folders(dir.path(), &names, &Vec::new()).err().unwrap();
            assert!(e.to_string().contains("/3: vanished"), "{e}");
        }
    }

    #[test]
    fn too_deep_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let mut deep = b"d/".repeat(MAX_DEPTH);
        deep.extend(b"1.jpg");
        make(dir.path(), &deep);
        assert_eq!(labelled(&dir).unwrap().0.len(), 1);
        deep.truncate(2 * MAX_DEPTH);
        deep.extend(b"e/");
        make(dir.path(), &deep);
        assert!(error(labelled(&dir)).contains("over 128 folders deep"));
    }

    /// Names that sort differently with and without a slash behind them.
    fn name() -> impl Strategy<Value = String> {
        let letter = proptest::sample::select(vec!['a', 'b', 'B', '-', '.', '0', ' ', '\u{e9}']);
        vec(letter, 0..3).prop_map(|tail| std::iter::once('k').chain(tail).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Many folders (so threads) and few, made in any order: the samples
        /// are those of a plain sort.
        #[test]
        fn the_order_is_that_of_the_paths_bytes(
            names in vec((name(), proptest::option::of(name()), name()), 1..40)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut expected: Vec<String> = names
                .iter()
                .map(|(class, folder, name)| match folder {
                    Some(folder) => format!("{class}/{folder}/{name}.jpg"),
                    None => format!("{class}/{name}.jpg"),
                })
                .collect();
            for name in &expected {
                make(dir.path(), name.as_bytes());
            }
            expected.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
            expected.dedup();
            let (index, _) = labelled(&dir).unwrap();
            prop_assert_eq!(&paths(&index), &expected);
            let (plain, _) = unlabelled(&dir).unwrap();
            prop_assert_eq!(&paths(&plain), &expected);
            for (path, label) in expected.iter().zip(labels(&index)) {
                let class = path.split('/').next().unwrap();
                prop_assert_eq!(index.classes().get(class), Some(label));
            }
            let (again, _) = labelled(&dir).unwrap();
            prop_assert_eq!(again.hash(), index.hash());
        }
    }
}
