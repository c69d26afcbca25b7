//! Reads the label files of many pictures, one for each.
//!
//! Mostly it waits for storage, so several threads read. Results come in the order of pictures.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::report::{AnnotationFault, ReportBuilder};
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

/// Calls `each` with what `parse` makes of each file, in order. `None`: the file does not exist.
///
/// # Errors
/// A file that exists and cannot be read, or is too long; what the closures return.
pub(super) fn for_each_file<T: Send>(
    files: u64,
    path_of: impl Fn(u64) -> PathBuf + Sync,
    parse: impl Fn(&[u8]) -> Result<T, String> + Sync,
    mut each: impl FnMut(&Path, Option<T>) -> Result<()> + Send,
) -> Result<()> {
    let read = |id: u64| {
        let path = path_of(id);
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
    let threads = usize::try_from(files).map_or(THREADS, |files| files.min(THREADS));
    with_pool("featherload-labels", threads, |_| {
        for start in (0..files).step_by(FILES) {
            let ids = start..files.min(start + FILES as u64);
            let found: Vec<Result<(PathBuf, Option<T>)>> = ids.into_par_iter().map(read).collect();
            for file in found {
                let (path, file) = file?;
                each(&path, file)?;
            }
        }
        Ok(())
    })?
}

/// Adds the objects of a file to table and report.
pub(super) fn add_file(
    path: &Path,
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
        let place = || match of.place {
            Some((word, number)) => format!("{word} {number}"),
            None => "the file".to_owned(),
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
