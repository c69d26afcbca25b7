//! Finds the models of a scene, and the images of a model.
//!
//! Runs in the consumer. Lists folders, and counts the images of a model.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::data::index::lossy;
use crate::scene::data::colmap::models::ModelImage;
use crate::scene::data::colmap::{binary, text};
use crate::scene::data::image_folders::IMAGE_FOLDERS;

/// Folders of models, relative to the scene's folder, in search order.
const FOLDERS: [&str; 6] = [
    "sparse/0",
    "sparse",
    "colmap/sparse/0",
    "colmap/sparse",
    "colmap_text",
    "",
];

/// Folders with one model in each subfolder.
const PARENTS: [&str; 2] = ["sparse", "colmap/sparse"];

/// Number of images to look for when searching their folder.
const LOOKED_FOR: usize = 16;

/// A COLMAP model of a scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModelFolder {
    #[serde(serialize_with = "lossy")]
    pub folder: PathBuf,
    /// `None` if its file of images cannot be read.
    pub images: Option<u64>,
    /// Whether this model is used.
    pub is_read: bool,
}

fn is_model(folder: &Path) -> bool {
    let files = ["cameras.bin", "cameras.txt"];
    files.iter().any(|name| folder.join(name).exists())
}

/// The model to use for a scene's folder; the folder itself if it is a model.
pub(in crate::scene::data) fn model_folder(root: &Path) -> Option<PathBuf> {
    let mut folders = FOLDERS.iter().map(|folder| root.join(folder));
    folders
        .find(|folder| is_model(folder))
        .or_else(|| model_folders(root).into_iter().next())
}

/// All models of a scene's folder.
fn model_folders(root: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    for parent in PARENTS {
        let entries = std::fs::read_dir(root.join(parent)).into_iter().flatten();
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // 2 before 10.
        folders.sort_by_key(|folder| (folder.as_os_str().len(), folder.clone()));
        all.extend(folders);
    }
    let mut models: Vec<PathBuf> = Vec::new();
    for folder in all {
        if is_model(&folder)
            && !models
                .iter()
                .any(|m| m.components().eq(folder.components()))
        {
            models.push(folder);
        }
    }
    models
}

/// All models of a scene. `read` is the one that is used.
pub(super) fn count_models(root: &Path, read: &Path) -> Vec<ModelFolder> {
    let mut models = model_folders(root);
    if !models.iter().any(|m| m.components().eq(read.components())) {
        models.push(read.to_owned());
    }
    let models = models.into_iter();
    models
        .map(|folder| ModelFolder {
            images: match folder.join("cameras.bin").exists() {
                true => binary::count_images(&folder.join("images.bin")).ok(),
                false => text::images(&folder.join("images.txt"))
                    .ok()
                    .map(|(images, _)| images.len() as u64),
            },
            is_read: folder.components().eq(read.components()),
            folder,
        })
        .collect()
}

/// A note for the user if the model in use is not the largest.
pub(super) fn larger_model(models: &[ModelFolder]) -> Option<String> {
    let read = models.iter().find(|model| model.is_read)?;
    let largest = models.iter().max_by_key(|model| model.images)?;
    (largest.images > read.images).then(|| {
        let count = |model: &ModelFolder| model.images.unwrap_or(0);
        format!(
            "the scene has {} COLMAP models, and the one in use is not the largest: {} has {} \
             images, {} has {}. Use that folder as the scene to read it",
            models.len(),
            read.folder.display(),
            count(read),
            largest.folder.display(),
            count(largest)
        )
    })
}

/// Folder of the scene that the model belongs to. It contains the images.
pub(super) fn scene_of_model(model: &Path, images: &[ModelImage]) -> PathBuf {
    let up = |folder: &Path| match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) => PathBuf::from("."),
        None => folder.to_owned(),
    };
    let is_known = |folder: &Path| {
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
        is_number || ["sparse", "colmap", "colmap_text"].contains(&name)
    };
    let mut root = model.to_owned();
    while is_known(&root) {
        root = up(&root);
    }
    // A model with another name: its images are one or two folders above.
    let mut above = root.clone();
    for _ in 0..3 {
        if images_folder(&above, images).is_some() {
            return above;
        }
        above = up(&above);
    }
    root
}

/// The image folder below `root`. It may not exist itself if there are folders of smaller images.
pub(super) fn images_folder(root: &Path, images: &[ModelImage]) -> Option<PathBuf> {
    let has_images = |folder: &Path| {
        let mut names = images.iter().take(LOOKED_FOR);
        names.any(|image| !image.name.is_empty() && folder.join(&image.name).exists())
    };
    let folders: Vec<PathBuf> = IMAGE_FOLDERS.iter().map(|name| root.join(name)).collect();
    let with_images = folders.iter().find(|folder| has_images(folder));
    let there = || folders.iter().find(|folder| folder.is_dir());
    if let Some(folder) = with_images.or_else(there) {
        return Some(folder.clone());
    }
    let has_smaller = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            let name = entry.file_name();
            let factor = name.to_str().and_then(|name| name.strip_prefix("images_"));
            factor.is_some_and(|factor| factor.parse::<u32>().is_ok()) && entry.path().is_dir()
        });
    if has_smaller {
        return Some(root.join("images"));
    }
    has_images(root).then(|| root.to_owned())
}
