//! `featherload demo`: writes a small, reproducible set of images, to try all other commands
//! without a data set.
//!
//! Every file is a pure function of the seed, its number, its class and the format number below. It
//! is written beside its place and then renamed, so a file with an image's name is complete. An
//! interrupted call is completed by writing the missing files. A hidden manifest is made first, and
//! is locked while files are written. It states the arguments of the folder.
//!
//! Never overwritten or removed: files that this command did not make.
//!
//! - `args`: the arguments;
//! - `picture`: one image;
//! - `photo`: size and coding of photos;
//! - `scene`: pixels with the statistics of photos;
//! - `chunks`: PNG written by hand;
//! - `random`: random numbers;
//! - `encode`: encoders;
//! - `files`: writes the files of a set;
//! - `manifest`: the arguments of a folder;
//! - `mixed`: all formats;
//! - `broken`: files that cannot be loaded;
//! - `lenses`: `--scene`, scenes with cameras and poses instead of class folders.

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

/// Raised when the bytes of any file change.
const FORMAT: u32 = 1;

/// The contents of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Summary {
    #[serde(serialize_with = "crate::output::lossy")]
    dir: PathBuf,
    kind: DemoKind,
    images: u32,
    classes: u32,
    seed: u64,
    /// Images that this call wrote; the others existed already.
    written: u32,
    /// Bytes of all images together.
    bytes: u64,
    pixels: u64,
    /// Files that cannot be loaded, beside the images.
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

/// Makes the set, or its missing files.
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
