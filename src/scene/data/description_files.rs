//! Finds the files that describe the scene in a folder, and chooses one of several descriptions.
//!
//! Runs in the consumer. Each description is a [`DescriptionFile`]. If a folder has several, the
//! first one is used, unless another one has more existing images.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene_description::SceneDescription;
use crate::scene::data::{colmap, foreign_names, images, llff, transforms, unsupported_layouts};

/// Location of a scene's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DescriptionFile {
    /// A transforms file.
    Transforms(PathBuf),
    /// A folder of `transforms_train.json` and similar files.
    Blender(PathBuf),
    /// The folder `dslr`.
    Scannet(PathBuf),
    /// A scene's folder, or a model's.
    Colmap(PathBuf),
    /// The folder of `poses_bounds.npy`.
    Llff(PathBuf),
}

impl DescriptionFile {
    pub(super) fn format(&self) -> SceneFormat {
        match self {
            Self::Transforms(_) => SceneFormat::Nerfstudio,
            Self::Blender(_) => SceneFormat::Blender,
            Self::Scannet(_) => SceneFormat::ScannetPp,
            Self::Colmap(_) => SceneFormat::Colmap,
            Self::Llff(_) => SceneFormat::Llff,
        }
    }

    /// Name for the user.
    fn title(&self) -> &'static str {
        match self {
            Self::Transforms(_) => "transforms.json",
            Self::Blender(_) => "transforms_train.json",
            Self::Scannet(_) => "dslr/nerfstudio/transforms.json",
            Self::Colmap(_) => "the COLMAP model",
            Self::Llff(_) => llff::FILE,
        }
    }

    fn read(&self, options: &SceneOptions) -> Result<SceneDescription> {
        let mut found = match self {
            Self::Transforms(file) => transforms::open(file, options.format, options)?,
            Self::Blender(root) => transforms::open_blender(root, options)?,
            Self::Scannet(dslr) => transforms::open_scannet(dslr, options)?,
            Self::Colmap(root) => colmap::open(root)?,
            Self::Llff(root) => llff::open(root, options)?,
        };
        match self {
            Self::Colmap(_) | Self::Llff(_) => {
                foreign_names::resolve_names(&mut found, &|base, path| (base.into(), path.into()))?;
            }
            _ => foreign_names::resolve_names(&mut found, &transforms::split_folder)?,
        }
        Ok(found)
    }
}

/// Reads the description of the scene at `path`.
///
/// # Errors
/// A path without a scene; files that cannot be read.
pub(super) fn read(path: &Path, options: &SceneOptions) -> Result<SceneDescription> {
    if let Some(format) = options.format {
        return description_of_format(path, format).read(options);
    }
    let ways = find_descriptions(path);
    let Some((first, others)) = ways.split_first() else {
        return Err(no_scene(path));
    };
    if others.is_empty() {
        return first.read(options);
    }
    let mut best = first.read(options).map(|found| (first, found));
    for description in others {
        // An error in a description that is not needed must not hide a good one.
        let Ok(found) = description.read(options) else {
            continue;
        };
        let reason = match &best {
            Err(e) if e.is_dataset() => Some(format!("{} is not used: {e}", first.title())),
            Err(_) => None,
            Ok((before, known)) => reason_to_prefer((before, known), (description, &found)),
        };
        if let Some(reason) = reason {
            best = Ok((description, found));
            note(
                &mut best,
                format!("{} is used. {reason}", description.title()),
            );
        }
    }
    if let Ok((DescriptionFile::Transforms(_), _)) = &best
        && others
            .iter()
            .any(|description| matches!(description, DescriptionFile::Colmap(_)))
    {
        let text = "transforms.json is used. There is also a COLMAP model (to read it, use format: \
                    colmap)";
        note(&mut best, text.into());
    }
    best.map(|(_, found)| found)
}

fn note(best: &mut Result<(&DescriptionFile, SceneDescription)>, text: String) {
    if let Ok((_, found)) = best {
        found.notes.push(text);
    }
}

/// The reason to use `other` instead of `known`, if there is one.
fn reason_to_prefer(
    (description, known): (&DescriptionFile, &SceneDescription),
    (other, found): (&DescriptionFile, &SceneDescription),
) -> Option<String> {
    let there = |found: &SceneDescription| {
        let frames = found.frames.iter();
        frames
            .filter(|f| images::exists_in_any_size(&found.root, f))
            .count()
    };
    if let (DescriptionFile::Transforms(_), DescriptionFile::Blender(_)) = (description, other) {
        let stem = |path: PathBuf| path.with_extension("");
        let named: HashSet<PathBuf> = found.frames.iter().map(|f| stem(f.original())).collect();
        if known
            .frames
            .iter()
            .all(|f| named.contains(&stem(f.original())))
        {
            return Some(format!("{} names the same images", description.title()));
        }
    }
    let (had, has) = (there(known), there(found));
    let is_better = match other {
        // Derived from a model, for the images of one folder.
        DescriptionFile::Llff(_) => had == 0 && has > 0,
        _ => has > had,
    };
    is_better.then(|| {
        format!(
            "{} has {had} existing images instead of {has} (to read it, use format {})",
            description.title(),
            description.format()
        )
    })
}

fn no_scene(path: &Path) -> Error {
    let what = unsupported_layouts::conversion_hint(path).unwrap_or_else(|| {
        "no scene here: use a folder with transforms.json, transforms_train.json, \
         dslr/nerfstudio/transforms.json, poses_bounds.npy, or a COLMAP model (cameras.bin or \
         cameras.txt in sparse/0, sparse, colmap/sparse/0 or colmap_text)"
            .into()
    });
    Error::dataset(path, what)
}

/// All descriptions of the scene at `path`, with the default one first. Reads no file.
pub(super) fn find_descriptions(path: &Path) -> Vec<DescriptionFile> {
    if path.is_dir() {
        let mut all = Vec::new();
        let file = path.join("transforms.json");
        if file.exists() {
            all.push(DescriptionFile::Transforms(file));
        }
        let mut blender = transforms::BLENDER.iter();
        if blender.any(|(name, _)| path.join(name).exists()) {
            all.push(DescriptionFile::Blender(path.to_owned()));
        }
        all.extend(scannet_folder(path).map(DescriptionFile::Scannet));
        if colmap::model_folder(path).is_some() {
            all.push(DescriptionFile::Colmap(path.to_owned()));
        }
        if path.join(llff::FILE).exists() {
            all.push(DescriptionFile::Llff(path.to_owned()));
        }
        return all;
    }
    transforms_description(path).into_iter().collect()
}

fn transforms_description(path: &Path) -> Option<DescriptionFile> {
    if !path.is_file() {
        return None;
    }
    let name = path.file_name().unwrap_or_default();
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        if transforms::BLENDER.iter().any(|(known, _)| name == *known) {
            return Some(DescriptionFile::Blender(folder_of(path)));
        }
        // dslr/nerfstudio/transforms.json
        let dslr = folder_of(&folder_of(path));
        let is_scannet = scannet_folder(&dslr).is_some_and(|found| found == dslr);
        return Some(match is_scannet {
            true => DescriptionFile::Scannet(dslr),
            false => DescriptionFile::Transforms(path.to_owned()),
        });
    }
    if name == llff::FILE {
        return Some(DescriptionFile::Llff(folder_of(path)));
    }
    let is_model = ["cameras", "images", "points3D"].iter().any(|part| {
        name == format!("{part}.bin").as_str() || name == format!("{part}.txt").as_str()
    });
    is_model.then(|| DescriptionFile::Colmap(folder_of(path)))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The folder `dslr` of a scene of ScanNet++.
fn scannet_folder(path: &Path) -> Option<PathBuf> {
    let folders = [path.join("dslr"), path.to_owned()];
    folders.into_iter().find(|dslr| {
        dslr.join("resized_images").is_dir() && dslr.join("nerfstudio/transforms.json").exists()
    })
}

/// The description of a format that the user named.
fn description_of_format(path: &Path, format: SceneFormat) -> DescriptionFile {
    let is_file = path.is_file();
    let folder = || match is_file {
        true => folder_of(path),
        false => path.to_owned(),
    };
    match format {
        SceneFormat::Nerfstudio | SceneFormat::InstantNgp => {
            DescriptionFile::Transforms(match is_file {
                true => path.to_owned(),
                false => path.join("transforms.json"),
            })
        }
        SceneFormat::Blender => DescriptionFile::Blender(folder()),
        SceneFormat::ScannetPp => DescriptionFile::Scannet(match scannet_folder(path) {
            Some(dslr) => dslr,
            None if is_file => folder_of(&folder_of(path)),
            None => path.join("dslr"),
        }),
        SceneFormat::Colmap => DescriptionFile::Colmap(folder()),
        SceneFormat::Llff => DescriptionFile::Llff(folder()),
    }
}
