//! `featherload demo --scene`: a room with coloured walls, seen through every camera model. The
//! colour of every ray is known without an image.
//!
//! Each scene is one folder with its own `transforms.json` or COLMAP model, which is written after
//! its images. The manifest has the room's numbers and describes each scene.
//!
//! - `texture`: the room;
//! - `place`: camera positions and motions;
//! - `render`: what a camera sees;
//! - `sets`: the list of scenes;
//! - `transforms`: a scene as `transforms.json`;
//! - `colmap`: a scene as a COLMAP model;
//! - `pictures`: images, masks and depths as files.

mod colmap;
mod pictures;
mod place;
mod render;
mod sets;
mod texture;
mod transforms;

use std::fmt;
use std::path::{Path, PathBuf};

use std::fs;

use featherload::{Error, Result};
use serde::{Deserialize, Serialize};

use super::files::{in_threads, make_file};
use super::manifest;
use sets::{ImageEncoding, LensSet};
use texture::TexturedRoom;

/// Raised when the bytes of any file change.
const FORMAT: u32 = 2;

/// The arguments and contents of the folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    seed: u64,
    room: TexturedRoom,
    scenes: Vec<Described>,
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--scene --seed {} (format {})", self.seed, self.format)
    }
}

/// One scene.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    /// Its folder, relative to the set's.
    path: String,
    /// The camera model, as its file names it.
    model: String,
    what: String,
    images: usize,
    /// The image format: `png`, `rgba` or `jpeg`.
    coding: String,
    /// Length of one depth level, in units of the room. None without depths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    depth_unit: Option<f64>,
}

/// The contents of the folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LensSceneSummary {
    #[serde(serialize_with = "crate::output::lossy")]
    dir: PathBuf,
    seed: u64,
    images: usize,
    /// Files that this call wrote; the others existed already.
    written: u32,
    /// Bytes of all files together.
    bytes: u64,
    scenes: Vec<Described>,
}

impl fmt::Display for LensSceneSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} scenes, {} images, {:.0} kB; {}",
            self.dir.display(),
            self.scenes.len(),
            self.images,
            self.bytes as f64 / 1e3,
            match self.written {
                0 => "all files already there".to_owned(),
                written => format!("{written} files written now"),
            }
        )?;
        for scene in &self.scenes {
            let (path, images, model) = (&scene.path, scene.images, &scene.model);
            write!(f, "\n  {path:<18} {images:>3} x {model:<18} {}", scene.what)?;
        }
        Ok(())
    }
}

/// Makes the scenes, or their missing files.
pub(super) fn write(dir: &Path, seed: u64) -> Result<LensSceneSummary> {
    let room = TexturedRoom::new(seed);
    let sets = sets::all(seed);
    let scenes: Vec<Described> = sets.iter().map(described).collect();
    let wanted = Manifest {
        format: FORMAT,
        seed,
        room: room.clone(),
        scenes: scenes.clone(),
    };
    let _lock = manifest::claim(dir, &wanted)?;
    let mut images = Vec::new();
    for set in &sets {
        for folder in folders(set) {
            let folder = dir.join(set.name).join(folder);
            fs::create_dir_all(&folder).map_err(|e| Error::io_at("create folder", &folder, e))?;
        }
        images.extend((0..set.views.len()).map(|number| (set, number)));
    }
    let image = |number: usize| {
        let (set, number) = images[number];
        pictures::make(&dir.join(set.name), set, number, &room)
    };
    let mut made = in_threads(images.len(), image)?;
    for set in &sets {
        for (path, bytes) in model(set) {
            let path = dir.join(set.name).join(path);
            made.add(&make_file(&path, || Ok(bytes))?);
        }
    }
    Ok(LensSceneSummary {
        dir: dir.to_owned(),
        seed,
        images: images.len(),
        written: made.written,
        bytes: made.bytes,
        scenes,
    })
}

fn described(set: &LensSet) -> Described {
    Described {
        path: set.name.into(),
        model: set.model.into(),
        what: set.what.into(),
        images: set.views.len(),
        coding: set.coding.name().into(),
        depth_unit: set.depths.then(|| set.form.depth_unit()),
    }
}

fn folders(set: &LensSet) -> Vec<&'static str> {
    let mut all = vec!["images"];
    if set.views.iter().any(|view| view.mask.is_some()) {
        all.push("masks");
    }
    if set.depths {
        all.push("depths");
    }
    if set.form != ImageEncoding::Transforms {
        all.push("sparse/0");
    }
    all
}

/// The files with the cameras and poses of a scene.
fn model(set: &LensSet) -> Vec<(String, Vec<u8>)> {
    let names: Vec<String> = (0..set.views.len()).map(pictures::name).collect();
    let files = match set.form {
        ImageEncoding::Transforms => {
            let text = transforms::text(set, &names);
            return vec![("transforms.json".into(), text.into_bytes())];
        }
        ImageEncoding::ColmapText => colmap::text(set, &names),
        ImageEncoding::ColmapBinary => colmap::binary(set, &names),
    };
    let below = files.into_iter();
    below
        .map(|(name, bytes)| (format!("sparse/0/{name}"), bytes))
        .collect()
}

#[cfg(test)]
mod tests;
