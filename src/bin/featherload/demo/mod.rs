//! `featherload demo`: a small, reproducible set of pictures, so that everything
//! else can be tried without a data set.
//!
//! Every file is a pure function of (seed, its number, its class, the format
//! number below), and is written beside its place, then renamed: what has a
//! picture's name is whole. So a set that was broken off is completed by
//! writing what is missing. A hidden manifest, which is made first and locked
//! while files are written, says which arguments the folder belongs to. Never
//! overwritten, never removed: anything that this command did not make.
//!
//! - `args`: what is asked for;
//! - `picture`: one picture; `photo`, `scene`, `chunks`: what is in it;
//!   `random`: its numbers; `encode`: how it is encoded;
//! - `files`, `manifest`: which files there are; `mixed`: all formats; `broken`: what is
//!   wrong with files;
//! - `lenses`: `--scene`, scenes with cameras and poses in place of class folders.

mod args;
mod broken;
mod chunks;
mod encode;
mod files;
mod lenses;
mod manifest;
mod mixed;
mod photo;
mod picture;
mod random;
mod scene;

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use featherload::{Error, Result};
use serde::Serialize;

use crate::outcome::CommandOutcome;
use crate::output;
pub use args::{DemoArgs, DemoKind};
use files::class_name;
use manifest::DemoManifest;
use picture::DemoPicture;

/// Rises when any file's bytes change.
const FORMAT: u32 = 1;

/// What stands in the folder now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Summary {
    #[serde(serialize_with = "crate::output::lossy")]
    dir: PathBuf,
    kind: DemoKind,
    images: u32,
    classes: u32,
    seed: u64,
    /// Pictures that this call wrote; the others were there.
    written: u32,
    /// Of all pictures together.
    bytes: u64,
    pixels: u64,
    /// Files beside the pictures that cannot be loaded.
    broken: usize,
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
        }?;
        match self.broken {
            0 => Ok(()),
            broken => write!(f, "; {broken} broken files beside them"),
        }
    }
}

pub fn run(args: DemoArgs) -> Result<CommandOutcome> {
    if args.scene {
        return print(&lenses::write(&args.dir, args.seed)?, args.json);
    }
    print(&write(&args)?, args.json)
}

fn print(summary: &(impl Serialize + fmt::Display), json: bool) -> Result<CommandOutcome> {
    output::report(summary, json, |summary| output::line(&summary.to_string()))?;
    Ok(CommandOutcome::Done)
}

/// Makes the set, or what is missing of it.
fn write(args: &DemoArgs) -> Result<Summary> {
    if args.classes > args.images {
        return Err(Error::config(format!(
            "--classes {} is more than --images {}: use fewer classes, since each needs an image",
            args.classes, args.images
        )));
    }
    let broken = match args.broken {
        true => broken::files(args.classes),
        false => Vec::new(),
    };
    let wanted = DemoManifest {
        format: FORMAT,
        kind: args.kind,
        images: args.images,
        classes: args.classes,
        seed: args.seed,
        broken: broken.iter().map(|b| b.listed.clone()).collect(),
    };
    let _lock = manifest::claim(&args.dir, &wanted)?;
    for class in 0..args.classes {
        let dir = args.dir.join(class_name(class));
        fs::create_dir_all(&dir).map_err(|e| Error::io_at("create folder", &dir, e))?;
    }

    let made = files::in_threads(args.images as usize, |i| files::make(args, i as u32))?;
    for file in &broken {
        file.make(&args.dir, args.seed)?;
    }
    Ok(Summary {
        dir: args.dir.clone(),
        kind: args.kind,
        images: args.images,
        classes: args.classes,
        seed: args.seed,
        written: made.written,
        bytes: made.bytes,
        pixels: made.pixels,
        broken: broken.len(),
    })
}

/// The first photo of the default set.
pub fn one_photo() -> io::Result<Vec<u8>> {
    DemoPicture::new(DemoKind::Photos, 0, 0, 0).encode()
}

#[cfg(test)]
mod tests;
