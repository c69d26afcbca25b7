//! Reads the label files of many pictures, one for each.
//!
//! Mostly it waits for storage, so several threads read. Results come in the order of pictures.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::report::{AnnotationFault, ReportBuilder};
use crate::data::index::shown;
use crate::data::objects::{ObjectTableWriter, StatedObjects};
use crate::error::{Error, Result};
use crate::sys::threads::with_pool;
use crate::sys::whole_file;

/// Bytes of the longest label file.
const MOST_BYTES: u64 = 16 << 20;
/// Objects of the fullest label file.
pub(super) const MOST_OBJECTS: usize = 1 << 16;
/// Files that are in memory at once.
const FILES: usize = 64;
/// Does not follow the number of cores, because reading mostly waits.
const THREADS: usize = 8;
/// A folder with fewer images of the data set is not listed: it may have many other files.
const LISTED: u64 = 16;

/// A wrong row or object of a label file, by its number from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LabelFault {
    pub(super) fault: AnnotationFault,
    /// What is counted: lines, or objects. None: the file.
    pub(super) place: Option<(&'static str, usize)>,
}

/// The objects of a label file, and what is wrong in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct FileObjects {
    pub(super) sample: StatedObjects,
    pub(super) faults: Vec<LabelFault>,
    pub(super) crowds_dropped: u64,
}

/// The label files of a data set, one for each image. Most of them may be missing.
pub(super) struct LabelFiles<'a> {
    images: u64,
    path_of: &'a (dyn Fn(u64) -> PathBuf + Sync),
    /// How the paths are made, for errors.
    pattern: String,
    folders: HashMap<PathBuf, FolderNames>,
}

/// The files of a folder that label files are in.
enum FolderNames {
    /// There is no such folder.
    Missing,
    /// Hashes of all names. A name with the hash of another one is found missing when it is opened.
    Listed(HashSet<u64>),
    /// It has few images, or cannot be listed: each file is opened.
    Unlisted,
}

impl FolderNames {
    fn read(folder: &Path, images: u64) -> Result<Self> {
        if images < LISTED {
            return Ok(Self::Unlisted);
        }
        let failed = |e| Error::io_at("list", folder, e);
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => {
                return match e.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(Self::Missing),
                    ErrorKind::PermissionDenied => Ok(Self::Unlisted),
                    _ => Err(failed(e)),
                };
            }
        };
        let hash = |entry: std::io::Result<DirEntry>| Ok(name_hash(&entry?.file_name()));
        let names: std::io::Result<_> = entries.map(hash).collect();
        names.map(Self::Listed).map_err(failed)
    }

    fn may_have(&self, name: &OsStr) -> bool {
        match self {
            Self::Missing => false,
            Self::Listed(names) => names.contains(&name_hash(name)),
            Self::Unlisted => true,
        }
    }
}

fn name_hash(name: &OsStr) -> u64 {
    twox_hash::XxHash3_64::oneshot(name.as_bytes())
}

impl<'a> LabelFiles<'a> {
    /// Lists the folders of the label files, so that missing files are not looked for one by one.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub(super) fn find(
        images: u64,
        pattern: impl Into<String>,
        path_of: &'a (dyn Fn(u64) -> PathBuf + Sync),
    ) -> Result<Self> {
        let mut counts: HashMap<PathBuf, u64> = HashMap::new();
        for id in 0..images {
            let path = path_of(id);
            let folder = path.parent().unwrap_or(Path::new("/"));
            match counts.get_mut(folder) {
                Some(count) => *count += 1,
                None => {
                    counts.insert(folder.to_owned(), 1);
                }
            }
        }
        let mut folders = HashMap::new();
        for (folder, images) in counts {
            let names = FolderNames::read(&folder, images)?;
            folders.insert(folder, names);
        }
        Ok(Self {
            images,
            path_of,
            pattern: pattern.into(),
            folders,
        })
    }

    fn may_exist(&self, path: &Path) -> bool {
        let (folder, name) = (path.parent(), path.file_name());
        let names = folder.and_then(|folder| self.folders.get(folder));
        names.is_none_or(|names| names.may_have(name.unwrap_or_default()))
    }

    /// Calls `each` with what `parse` makes of each file, in order. `None`: the file does not exist.
    ///
    /// # Errors
    /// None of the files exists; one that exists and cannot be read, or is too long; what the
    /// closures return.
    pub(super) fn for_each<T: Send>(
        &self,
        parse: impl Fn(&[u8]) -> Result<T, String> + Sync,
        mut each: impl FnMut(&Path, Option<T>) -> Result<()> + Send,
    ) -> Result<()> {
        let read = |id: u64| {
            let path = (self.path_of)(id);
            if !self.may_exist(&path) {
                return Ok((path, None));
            }
            let found = match whole_file::read(&path, MOST_BYTES) {
                Ok(bytes) => {
                    let parsed = parse(&bytes).map_err(|what| Error::dataset(&path, what));
                    Some(parsed?)
                }
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            };
            Ok((path, found))
        };
        let images = self.images;
        let threads = usize::try_from(images).map_or(THREADS, |images| images.min(THREADS));
        let found_some = with_pool("featherload-labels", threads, |_| {
            let mut found_some = false;
            for start in (0..images).step_by(FILES) {
                let ids = start..images.min(start + FILES as u64);
                let found: Vec<Result<(PathBuf, Option<T>)>> =
                    ids.into_par_iter().map(read).collect();
                for file in found {
                    let (path, file) = file?;
                    found_some |= file.is_some();
                    each(&path, file)?;
                }
            }
            Ok(found_some)
        })?;
        match found_some? || images == 0 {
            true => Ok(()),
            false => Err(self.none_found()),
        }
    }

    fn none_found(&self) -> Error {
        let first = (self.path_of)(0);
        let what = format!(
            "objects: none of the {} images has a label file by the pattern '{}': the first one \
             would be {}: correct the pattern, or leave `objects` out",
            self.images,
            self.pattern,
            shown(first.as_os_str().as_bytes())
        );
        Error::option("objects", what)
    }
}

/// Adds the objects of a file, or of a row of it, to table and report.
pub(super) fn add_file(
    path: &Path,
    row: Option<&str>,
    file: Option<FileObjects>,
    writer: &mut ObjectTableWriter,
    report: &mut ReportBuilder,
) -> Result<()> {
    let Some(file) = file else {
        report.report.images_without_entry += 1;
        report.image(0);
        return writer.push(&StatedObjects {
            image_id: -1,
            ..StatedObjects::default()
        });
    };
    for of in &file.faults {
        let place = || match (row, of.place) {
            (None, Some((word, number))) => format!("{word} {number}"),
            (None, None) => "the file".to_owned(),
            (Some(row), Some((word, number))) => format!("{row}, {word} {number}"),
            (Some(row), None) => row.to_owned(),
        };
        report.wrong(of.fault, path, place)?;
    }
    report.report.crowds_dropped += file.crowds_dropped;
    for object in &file.sample.objects {
        report.object(object.label, object.crowd);
    }
    report.image(file.sample.objects.len());
    writer.push(&file.sample)
}

/// Checks that some rows can be used.
///
/// # Errors
/// All rows are wrong.
pub(super) fn check_some(report: &ReportBuilder, files: &Path, advice: &str) -> Result<()> {
    if report.report.objects + report.report.crowds_dropped > 0 || report.dropped() == 0 {
        return Ok(());
    }
    Err(Error::dataset(
        files,
        format!(
            "none of the annotations can be used: {}: {advice}",
            report.commonest()
        ),
    ))
}
