//! Finds the files of a scene: images and their sizes, masks and depths, and the folder to use.
//!
//! Runs in the consumer. Reads headers of images, in threads that end before the call returns. Of
//! masks and depths, only checks that the files exist.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::data::survey::{header_at, thread_count};
use crate::error::{Error, Result};
use crate::picture::PictureLimits;
use crate::scene::data::missing_files::UnreadImage;
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene_description::{FrameDescription, SceneDescription};
use crate::sys::threads::each;

/// Above this side length in pixels, nerfstudio looks for a folder of smaller images.
const MAX_AUTO_RESOLUTION: f64 = 1600.0;

/// Extensions to try for a name without one, in this order.
pub(super) const EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "exr", "webp", "JPG"];

/// Extensions of smaller images whose originals have another one.
const OTHER_EXTENSIONS: [&str; 4] = ["png", "jpg", "JPG", "jpeg"];

/// Prefix of instant-ngp's masks. Their nonzero pixels are masked out (`nerf_loader.cu`), unlike in
/// all other masks.
const DYNAMIC_MASK: &str = "dynamic_mask_";

/// Extensions of depths that are found by name.
const DEPTHS: [&str; 5] = ["png", "npy", "tiff", "tif", "exr"];

/// Folders where 3D Gaussian splatting keeps the scales of inverse depths, relative to the scene's
/// folder.
const INVERSE: [&str; 3] = ["sparse/0", "sparse", ""];

/// The files of one frame.
#[derive(Debug)]
pub(super) struct FrameFiles {
    pub(super) image: PathBuf,
    /// Width and height as stored: EXIF orientation is ignored.
    pub(super) size: (u32, u32),
    /// Whether EXIF orientation rotates the image by 90 degrees.
    pub(super) is_turned: bool,
    pub(super) mask: Option<PathBuf>,
    pub(super) mask_is_full_size: bool,
    /// Whether nonzero pixels are masked out, as in `dynamic_mask_*`.
    pub(super) mask_is_inverted: bool,
    pub(super) depth: Option<PathBuf>,
    /// The depth with the image's name, if the scene's file names none.
    pub(super) found_depth: Option<PathBuf>,
    pub(super) depth_is_full_size: bool,
    /// Whether the scene's file names a depth that does not exist.
    pub(super) names_missing_depth: bool,
    /// Whether the mask was found by name only.
    pub(super) mask_was_found: bool,
}

/// Returns the files of each frame, or why it has none. Also returns the folder: 1 for the
/// originals, or n for `images_n`.
pub(super) fn find(
    found: &SceneDescription,
    options: &SceneOptions,
) -> Result<(Vec<Result<FrameFiles, UnreadImage>>, u32)> {
    let limits = PictureLimits {
        max_pixels: options.max_pixels,
        ..PictureLimits::default()
    };
    let factor = choose_factor(found, options, &limits)?;
    let finder = Finder {
        root: &found.root,
        masks: match options.find_masks {
            true => folders(found, &["masks"], factor),
            false => HashMap::new(),
        },
        depths: folders(found, &["depths", "depth"], factor),
        find_depths: options.find_depths,
        find_masks: options.find_masks,
        factor,
        limits,
    };
    let threads = thread_count(found.frames.len());
    let files = each("featherload-scene", threads, &found.frames, |frame| {
        Ok(finder.files(frame))
    })?;
    Ok((files, factor))
}

/// The file that marks depths beside the images as inverse depths.
pub(super) fn inverse_depths(root: &Path) -> Option<PathBuf> {
    let mut files = INVERSE
        .iter()
        .map(|folder| root.join(folder).join("depth_params.json"));
    files.find(|file| file.is_file())
}

/// Chooses the image folder: from the option, or as nerfstudio's parsers do.
fn choose_factor(
    found: &SceneDescription,
    options: &SceneOptions,
    limits: &PictureLimits,
) -> Result<u32> {
    let has_folder = |frame: &FrameDescription, factor: u32| {
        let mut smaller = candidates(&found.root, frame, factor).into_iter();
        smaller.any(|path| path.exists())
    };
    match options.downscale_folder {
        Some(0) => Err(Error::option(
            "downscale_folder",
            "downscale_folder is 0: use 1 for the originals, or n for images_n",
        )),
        Some(1) => Ok(1),
        Some(factor) => match found.frames.iter().any(|frame| has_folder(frame, factor)) {
            true => Ok(factor),
            false => {
                let wanted = found
                    .frames
                    .first()
                    .map(|frame| folders_beside(&frame.folder, &found.root, "images", factor).0);
                let wanted = wanted.unwrap_or_else(|| found.root.clone());
                Err(Error::dataset(
                    wanted,
                    format!(
                        "downscale_folder is {factor}, but none of the scene's images exists in \
                         that size: create them, or remove the option"
                    ),
                ))
            }
        },
        None if matches!(
            found.format,
            SceneFormat::Blender | SceneFormat::InstantNgp | SceneFormat::ScannetPp
        ) =>
        {
            Ok(1)
        }
        None => {
            let size = |frame: &FrameDescription| {
                let header = header_at(&frame.original(), limits);
                header.ok().map(|header| header.stored_size)
            };
            let mut sized = (found.frames.iter()).filter_map(|frame| Some((frame, size(frame)?)));
            let Some((frame, (w, h))) = sized.next() else {
                // No original exists: the largest of the smaller images.
                let there = |factor: &u32| found.frames.iter().any(|f| has_folder(f, *factor));
                return Ok(smaller_folders(found).into_iter().find(there).unwrap_or(1));
            };
            // LLFF scenes are read at the requested size.
            if found.format == SceneFormat::Llff {
                return Ok(1);
            }
            let side = f64::from(w.max(h));
            let mut factor = 1;
            while side / f64::from(factor) > MAX_AUTO_RESOLUTION && has_folder(frame, factor * 2) {
                factor *= 2;
            }
            Ok(factor)
        }
    }
}

/// The numbers n of folders `images_n` beside the originals, in ascending order.
fn smaller_folders(found: &SceneDescription) -> Vec<u32> {
    let folders: BTreeSet<&Path> = found.frames.iter().map(|f| f.folder.as_path()).collect();
    let numbers = folders.into_iter().flat_map(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let beside = std::fs::read_dir(folder.parent().unwrap_or(&found.root));
        let entries = beside.into_iter().flatten().flatten();
        let names: Vec<String> = entries
            .filter_map(|e| e.file_name().into_string().ok())
            .collect();
        let number = |entry: &String| entry.strip_prefix(&*name)?.strip_prefix('_')?.parse().ok();
        names
            .iter()
            .filter_map(number)
            .filter(|n| *n > 1)
            .collect::<Vec<u32>>()
    });
    numbers.collect::<BTreeSet<u32>>().into_iter().collect()
}

/// Whether the image of a frame exists, in its original or a smaller size.
pub(super) fn exists_in_any_size(root: &Path, frame: &FrameDescription) -> bool {
    [1, 2, 4, 8].into_iter().any(|factor| {
        let mut files = candidates(root, frame, factor).into_iter();
        files.any(|path| path.exists())
    })
}

/// Folders named `kind` beside a folder of images: for this size, and for the original size.
fn folders_beside(images: &Path, root: &Path, kind: &str, factor: u32) -> (PathBuf, PathBuf) {
    let beside = match images == root {
        true => root,
        false => images.parent().unwrap_or(root),
    };
    let small = beside.join(format!("{kind}_{factor}"));
    (small, beside.join(kind))
}

/// Possible paths of a frame's image, best first.
fn candidates(root: &Path, frame: &FrameDescription, factor: u32) -> Vec<PathBuf> {
    if factor == 1 {
        let path = frame.original();
        let mut all = vec![path.clone()];
        all.extend(EXTENSIONS.map(|extension| with_appended(&path, extension)));
        return all;
    }
    let mut named = frame.folder.file_name().unwrap_or_default().to_owned();
    named.push(format!("_{factor}"));
    let beside = frame.folder.with_file_name(named);
    let flat = root.join(format!("images_{factor}"));
    let name = frame.path.file_name().unwrap_or_default();
    let mut all = Vec::new();
    for path in [
        beside.join(&frame.path),
        flat.join(&frame.path),
        flat.join(name),
    ] {
        all.push(path.clone());
        all.extend(OTHER_EXTENSIONS.map(|extension| path.with_extension(extension)));
    }
    all
}

/// Appends an extension: `name.jpg` becomes `name.jpg.png`.
fn with_appended(path: &Path, extension: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(".");
    path.push(extension);
    PathBuf::from(path)
}

/// An existing folder of masks or depths, and whether they belong to the original images.
type Folder = (PathBuf, bool);

/// For each folder of images, its folders of masks or of depths.
fn folders(found: &SceneDescription, kinds: &[&str], factor: u32) -> HashMap<PathBuf, Vec<Folder>> {
    let mut all = HashMap::new();
    for frame in &found.frames {
        if all.contains_key(&frame.folder) {
            continue;
        }
        let mut there: Vec<Folder> = Vec::new();
        for kind in kinds {
            let (small, full) = folders_beside(&frame.folder, &found.root, kind, factor);
            if factor > 1 && small.is_dir() {
                there.push((small, false));
            }
            if full.is_dir() {
                there.push((full, factor > 1));
            }
        }
        all.insert(frame.folder.clone(), there);
    }
    all
}

/// Inputs of the search for files.
struct Finder<'a> {
    root: &'a Path,
    masks: HashMap<PathBuf, Vec<Folder>>,
    depths: HashMap<PathBuf, Vec<Folder>>,
    find_masks: bool,
    find_depths: bool,
    factor: u32,
    limits: PictureLimits,
}

impl Finder<'_> {
    fn files(&self, frame: &FrameDescription) -> Result<FrameFiles, UnreadImage> {
        let all = candidates(self.root, frame, self.factor);
        let unread = |path: &Path, reason: String| UnreadImage {
            name: frame.name.clone(),
            path: path.to_owned(),
            reason,
            misses_mask: false,
        };
        let mut nowhere = unread(&all[0], "no such file".into());
        for path in all {
            let header = match header_at(&path, &self.limits) {
                Ok(header) => header,
                Err(_) if is_absent(&path) => continue,
                Err(fault) => {
                    nowhere = unread(&path, fault.reason);
                    break;
                }
            };
            let mut files = FrameFiles {
                image: path,
                size: header.stored_size,
                is_turned: header.orientation.swaps_axes(),
                mask: None,
                mask_is_full_size: false,
                mask_is_inverted: false,
                depth: None,
                found_depth: None,
                depth_is_full_size: false,
                names_missing_depth: false,
                mask_was_found: false,
            };
            match &frame.mask {
                Some(mask) => {
                    // Without its mask, training would use pixels that must be excluded.
                    let (path, full) = self.named(mask, "masks").ok_or_else(|| UnreadImage {
                        misses_mask: true,
                        ..unread(mask, "its mask is missing: no such file".into())
                    })?;
                    (files.mask, files.mask_is_full_size) = (Some(path), full);
                }
                None => {
                    if let Some((path, full)) = self.mask_by_name(frame) {
                        (files.mask, files.mask_is_full_size) = (Some(path), full);
                        files.mask_was_found = true;
                    } else if let Some((path, full)) = self.dynamic_mask(frame, &files.image) {
                        (files.mask, files.mask_is_full_size) = (Some(path), full);
                        files.mask_was_found = true;
                        files.mask_is_inverted = true;
                    }
                }
            }
            if let Some(depth) = &frame.depth {
                let depth = self.named(depth, "depths");
                files.names_missing_depth = depth.is_none();
                if let Some((path, full)) = depth {
                    (files.depth, files.depth_is_full_size) = (Some(path), full);
                }
            } else if let Some((path, full)) =
                by_name(self.depths.get(&frame.folder), &frame.path, &DEPTHS)
            {
                files.depth = self.find_depths.then(|| path.clone());
                (files.found_depth, files.depth_is_full_size) = (Some(path), full);
            }
            return Ok(files);
        }
        Err(nowhere)
    }

    /// A mask or depth that the scene's file names, in the folder of the right size.
    fn named(&self, path: &Path, kind: &str) -> Option<Folder> {
        if self.factor > 1 {
            let name = path.file_name().unwrap_or_default();
            let flat = self.root.join(format!("{kind}_{}", self.factor));
            let folder = path.parent().unwrap_or(self.root);
            let mut beside = folder.file_name().unwrap_or_default().to_owned();
            beside.push(format!("_{}", self.factor));
            let small = [folder.with_file_name(beside).join(name), flat.join(name)];
            if let Some(path) = small.into_iter().find(|path| path.is_file()) {
                return Some((path, false));
            }
        }
        path.is_file().then(|| (path.to_owned(), self.factor > 1))
    }

    fn mask_by_name(&self, frame: &FrameDescription) -> Option<Folder> {
        by_name(self.masks.get(&frame.folder), &frame.path, &["png"])
    }

    /// instant-ngp's mask of moving objects: beside the image in use, or beside the original.
    fn dynamic_mask(&self, frame: &FrameDescription, image: &Path) -> Option<Folder> {
        if !self.find_masks {
            return None;
        }
        let beside = |image: &Path| {
            let mut name = OsString::from(DYNAMIC_MASK);
            name.push(image.file_stem()?);
            name.push(".png");
            let path = image.with_file_name(name);
            path.is_file().then_some(path)
        };
        let small = beside(image).map(|path| (path, false));
        small.or_else(|| Some((beside(&frame.original())?, self.factor > 1)))
    }
}

/// Finds a mask or depth by the name of its image: `name.png`, `name.jpg.png`, `name.jpg`.
fn by_name(folders: Option<&Vec<Folder>>, image: &Path, extensions: &[&str]) -> Option<Folder> {
    for (folder, full) in folders.into_iter().flatten() {
        let path = folder.join(image);
        let mut named: Vec<PathBuf> = Vec::with_capacity(5);
        for extension in extensions {
            named.push(path.with_extension(extension));
            named.push(with_appended(&path, extension));
        }
        named.push(path);
        if let Some(path) = named.into_iter().find(|path| path.is_file()) {
            return Some((path, *full));
        }
    }
    None
}

/// Whether the path does not exist, not even as a dangling link.
fn is_absent(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
