//! `featherload demo`: a small, reproducible set of photo-like JPEGs, so that
//! everything else can be tried without a data set.
//!
//! Every file is a pure function of (seed, its number, its class, the format
//! number below), and is written beside its place, then renamed: what has a
//! picture's name is whole. So a set that was broken off is completed by
//! writing what is missing. `featherload-demo.json`, which is made first and
//! locked while files are written, says which arguments the folder belongs to.
//! Never overwritten, never removed: anything that this command did not make.

mod photo;
mod random;
mod scene;

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use featherload::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{Outcome, output};
use photo::Photo;

const MANIFEST: &str = "featherload-demo.json";
/// Rises when any picture's bytes change.
const FORMAT: u32 = 1;

/// Write a small, reproducible set of photo-like JPEGs in class folders.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Folder to write; made when missing, must be empty or hold this very set
    dir: PathBuf,
    /// Number of pictures, about 90 kB each
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    images: u32,
    /// Number of class folders
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    classes: u32,
    /// Another seed gives other pictures
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What stands in the folder now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Summary {
    dir: PathBuf,
    images: u32,
    classes: u32,
    seed: u64,
    /// Files that this call wrote; the others were there.
    written: u32,
    /// Of all files together.
    bytes: u64,
    pixels: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = f64::from(self.images);
        write!(
            f,
            "{}: {} images in {} classes, mean {:.2} megapixels and {:.0} kB; ",
            self.dir.display(),
            self.images,
            self.classes,
            self.pixels as f64 / images / 1e6,
            self.bytes as f64 / images / 1e3,
        )?;
        match self.images - self.written {
            0 => write!(f, "all written now"),
            there if self.written == 0 => write!(f, "all {there} already there"),
            there => write!(f, "{} written now, {there} already there", self.written),
        }
    }
}

/// What the folder was made from; its file is the folder's lock too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    images: u32,
    classes: u32,
    seed: u64,
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--images {} --classes {} --seed {} (format {})",
            self.images, self.classes, self.seed, self.format
        )
    }
}

pub fn run(args: DemoArgs) -> Result<Outcome> {
    let summary = write(&args)?;
    if args.json {
        output::json(&summary)?;
    } else {
        output::line(&summary.to_string())?;
    }
    Ok(Outcome::Done)
}

/// Makes the set, or what is missing of it.
fn write(args: &DemoArgs) -> Result<Summary> {
    if args.classes > args.images {
        return Err(Error::config(format!(
            "--classes {} is more than --images {}: every class needs an image",
            args.classes, args.images
        )));
    }
    let wanted = Manifest {
        format: FORMAT,
        images: args.images,
        classes: args.classes,
        seed: args.seed,
    };
    let _lock = claim(&args.dir, &wanted)?;
    for class in 0..args.classes {
        let dir = args.dir.join(class_name(class));
        fs::create_dir_all(&dir).map_err(|e| Error::io_at("create folder", &dir, e))?;
    }

    let made = make_all(args)?;
    Ok(Summary {
        dir: args.dir.clone(),
        images: args.images,
        classes: args.classes,
        seed: args.seed,
        written: made.written,
        bytes: made.bytes,
        pixels: made.pixels,
    })
}

fn class_name(class: u32) -> String {
    format!("class_{class:02}")
}

/// Makes the folder ours: the manifest is there, locked, and says `wanted`.
fn claim(dir: &Path, wanted: &Manifest) -> Result<File> {
    fs::create_dir_all(dir).map_err(|e| Error::io_at("create folder", dir, e))?;
    let path = dir.join(MANIFEST);
    let others = holds_others(dir)?;
    if others && !path.exists() {
        return Err(Error::dataset(
            dir,
            format!("the folder is not empty and holds no {MANIFEST}: name another DIR"),
        ));
    }
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|e| Error::io_at("open", &path, e))?;
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => Error::dataset(
            dir,
            "another process is writing this demo set: wait for it, or name another DIR",
        ),
        TryLockError::Error(e) => Error::io_at("lock", &path, e),
    })?;

    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(|e| Error::io_at("read", &path, e))?;
    // Killed between making the manifest and filling it.
    if text.is_empty() && !others {
        let json = serde_json::to_string(wanted)
            .map_err(|e| Error::io_at("write", &path, io::Error::other(e)))?;
        file.write_all(format!("{json}\n").as_bytes())
            .map_err(|e| Error::io_at("write", &path, e))?;
        return Ok(file);
    }
    let found: Manifest = serde_json::from_str(&text)
        .map_err(|e| Error::dataset(&path, format!("not a demo set's manifest: {e}")))?;
    if found == *wanted {
        return Ok(file);
    }
    Err(Error::dataset(
        dir,
        format!("holds the demo set of {found}, wanted is {wanted}: name another DIR"),
    ))
}

/// True when the folder holds anything beside the manifest.
fn holds_others(dir: &Path) -> Result<bool> {
    let failed = |e| Error::io_at("read folder", dir, e);
    for entry in fs::read_dir(dir).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != MANIFEST {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Default)]
struct Made {
    /// Files written; the others were there.
    written: u32,
    bytes: u64,
    pixels: u64,
}

impl Made {
    fn add(&mut self, other: &Made) {
        self.written += other.written;
        self.bytes += other.bytes;
        self.pixels += other.pixels;
    }
}

/// All pictures, by as many threads as there are processors. The first error
/// ends the work of all.
fn make_all(args: &DemoArgs) -> Result<Made> {
    let threads = thread::available_parallelism()
        .map_err(|e| Error::io("count the processors", e))?
        .get();
    let next = AtomicU32::new(0);
    let work = || -> Result<Made> {
        let mut sum = Made::default();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= args.images {
                return Ok(sum);
            }
            match make(args, i) {
                Ok(made) => sum.add(&made),
                Err(e) => {
                    next.store(args.images, Ordering::Relaxed);
                    return Err(e);
                }
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut sum = Made::default();
        for thread in threads {
            let made = thread
                .join()
                .map_err(|_| Error::worker("a thread that makes pictures panicked"))??;
            sum.add(&made);
        }
        Ok(sum)
    })
}

/// Picture `i`, unless it is there.
fn make(args: &DemoArgs, i: u32) -> Result<Made> {
    let (class, number) = (i % args.classes, i / args.classes);
    let dir = args.dir.join(class_name(class));
    let path = dir.join(format!("{number:04}.jpg"));
    let photo = Photo::new(args.seed, i.into(), class.into());
    let pixels = photo.pixels();
    match fs::symlink_metadata(&path) {
        // An empty file is what a power cut may leave of a rename.
        Ok(there) if there.is_file() && there.len() > 0 => {
            return Ok(Made {
                written: 0,
                bytes: there.len(),
                pixels,
            });
        }
        Ok(there) if !there.is_file() => {
            return Err(Error::dataset(&path, "is in the way: not a regular file"));
        }
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(Error::io_at("look at", &path, e)),
    }
    let jpeg = photo
        .jpeg()
        .map_err(|e| Error::io_at("encode", &path, io::Error::other(e)))?;
    write_whole(&dir.join(format!(".{number:04}.jpg.part")), &path, &jpeg)?;
    Ok(Made {
        written: 1,
        bytes: jpeg.len() as u64,
        pixels,
    })
}

/// Writes `path` whole or not at all. The lock makes `part` ours alone, so a
/// killed call's leaving is overwritten here and gone after the rename.
fn write_whole(part: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    let written = fs::write(part, bytes)
        .map_err(|e| Error::io_at("write", part, e))
        .and_then(|()| fs::rename(part, path).map_err(|e| Error::io_at("rename to", path, e)));
    if written.is_err() {
        // The first error is the one to tell; a part left behind is harmless.
        let _ = fs::remove_file(part);
    }
    written
}

#[cfg(test)]
mod tests;
