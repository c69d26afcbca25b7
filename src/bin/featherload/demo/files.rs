//! Writes the set's files, each completely or not at all, in one thread for each CPU.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use featherload::{Error, Result};

use super::args::DemoArgs;
use super::picture::DemoPicture;

#[derive(Default)]
pub(super) struct DemoFile {
    /// Number of files written; the others existed already.
    pub(super) written: u32,
    pub(super) bytes: u64,
    pub(super) pixels: u64,
}

impl DemoFile {
    pub(super) fn add(&mut self, other: &DemoFile) {
        self.written += other.written;
        self.bytes += other.bytes;
        self.pixels += other.pixels;
    }
}

/// Calls `make` with 0 to `count` (excluded), in one thread for each CPU. The first error stops all
/// threads.
pub(super) fn in_threads(
    count: usize,
    make: impl Fn(usize) -> Result<DemoFile> + Sync,
) -> Result<DemoFile> {
    let threads = thread::available_parallelism()
        .map_err(|e| Error::io("count the processors", e))?
        .get();
    let next = AtomicUsize::new(0);
    let work = || -> Result<DemoFile> {
        let mut sum = DemoFile::default();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return Ok(sum);
            }
            match make(i) {
                Ok(made) => sum.add(&made),
                Err(e) => {
                    next.store(count, Ordering::Relaxed);
                    return Err(e);
                }
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut sum = DemoFile::default();
        for thread in threads {
            let made = thread
                .join()
                .map_err(|_| Error::worker("a thread that makes images panicked"))??;
            sum.add(&made);
        }
        Ok(sum)
    })
}

/// Writes image `i` of a set with classes, unless it exists.
pub(super) fn make(args: &DemoArgs, i: u32) -> Result<DemoFile> {
    let (class, number) = (i % args.classes, i / args.classes);
    let picture = DemoPicture::new(args.kind, args.seed, i.into(), class.into());
    let path = args
        .dir
        .join(class_name(class))
        .join(picture.file_name(number));
    let made = make_file(&path, || picture.encode())?;
    Ok(DemoFile {
        pixels: picture.pixels(),
        ..made
    })
}

/// Writes the file at `path` with the bytes of `encode`, unless it exists.
pub(super) fn make_file(
    path: &Path,
    encode: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<DemoFile> {
    if let Some(bytes) = regular_file(path)?
        // A power cut after a rename may leave an empty file.
        && bytes > 0
    {
        return Ok(DemoFile {
            bytes,
            ..DemoFile::default()
        });
    }
    let file = encode().map_err(|e| Error::io_at("encode", path, e))?;
    write_whole(path, &file)?;
    Ok(DemoFile {
        written: 1,
        bytes: file.len() as u64,
        pixels: 0,
    })
}

/// The length of the file at `path`. None if it does not exist.
///
/// # Errors
/// Something other than a regular file exists there.
pub(super) fn regular_file(path: &Path) -> Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => Ok(Some(there.len())),
        Ok(_) => Err(Error::dataset(
            path,
            "is not a regular file: remove it, or name another DIR",
        )),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io_at("look at", path, e)),
    }
}

/// Writes `path` completely or not at all, through a hidden file beside it. The lock makes the
/// hidden file exclusive: the leftover of a killed call is overwritten here, and is gone after the
/// rename.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part"));
    let written = fs::write(&part, bytes)
        .map_err(|e| Error::io_at("write", &part, e))
        .and_then(|()| fs::rename(&part, path).map_err(|e| Error::io_at("rename to", path, e)));
    if written.is_err() {
        // The first error is the one to report; a leftover part is harmless.
        let _ = fs::remove_file(&part);
    }
    written
}

/// The folder of a class.
pub fn class_name(class: u32) -> String {
    format!("class_{class:02}")
}
