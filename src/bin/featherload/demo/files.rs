//! Writing the set's files: whole or not at all, by as many threads as there
//! are processors.

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
    /// Files written; the others were there.
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

/// Calls `make` with 0 to `count`, in as many threads as there are processors. The first
/// error ends the work of all.
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
                .map_err(|_| Error::worker("a thread that makes pictures panicked"))??;
            sum.add(&made);
        }
        Ok(sum)
    })
}

/// Picture `i` of a set of classes, unless it is there.
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

/// The file at `path`, which `encode` gives the bytes of, unless it is there.
pub(super) fn make_file(
    path: &Path,
    encode: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<DemoFile> {
    if let Some(bytes) = regular_file(path)?
        // An empty file is what a power cut may leave of a rename.
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

/// The length of the file at `path`; none when nothing is there.
///
/// # Errors
/// When anything else is there.
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

/// Writes `path` whole or not at all, by way of a hidden file beside it. The
/// lock makes that one ours alone, so a killed call's leaving is overwritten
/// here and gone after the rename.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part"));
    let written = fs::write(&part, bytes)
        .map_err(|e| Error::io_at("write", &part, e))
        .and_then(|()| fs::rename(&part, path).map_err(|e| Error::io_at("rename to", path, e)));
    if written.is_err() {
        // The first error is the one to tell; a part left behind is harmless.
        let _ = fs::remove_file(&part);
    }
    written
}

/// The folder of a class.
pub fn class_name(class: u32) -> String {
    format!("class_{class:02}")
}
