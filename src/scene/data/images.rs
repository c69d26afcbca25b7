//! The files of a scene: images, of which folder, their sizes, their masks and depths.
//!
//! In the consumer. Reads headers of images, by threads that have ended when the call
//! returns; of masks and depths only whether they are there.

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

/// Over so many pixels a side nerfstudio looks for a folder of smaller images.
const MAX_AUTO_RESOLUTION: f64 = 1600.0;

/// What a name without extension may have for one, in this order.
pub(super) const EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "exr", "webp", "JPG"];

/// What smaller images may have for an extension where the originals have another.
const OTHER_EXTENSIONS: [&str; 4] = ["png", "jpg", "JPG", "jpeg"];

/// How the name of instant-ngp's masks begins. What is not zero in them is left out
/// (`nerf_loader.cu`), as opposed to all other masks.
const DYNAMIC_MASK: &str = "dynamic_mask_";

/// What depths that are found by name may have for an extension.
const DEPTHS: [&str; 5] = ["png", "npy", "tiff", "tif", "exr"];

/// Where 3D Gaussian splatting keeps the scales of inverse depths, from the scene's folder on.
const INVERSE: [&str; 3] = ["sparse/0", "sparse", ""];

/// The files of one frame.
#[derive(Debug)]
pub(super) struct FrameFiles {
    pub(super) image: PathBuf,
    /// Width and height as stored: scenes are not turned by EXIF.
    pub(super) size: (u32, u32),
    /// Whether EXIF would turn it by 90 degrees.
    pub(super) is_turned: bool,
    pub(super) mask: Option<PathBuf>,
    pub(super) mask_is_full_size: bool,
    /// Whether pixels that are not zero are left out, as in `dynamic_mask_*`.
    pub(super) mask_is_inverted: bool,
    pub(super) depth: Option<PathBuf>,
    /// The depth that has the image's name, where the scene's file names none.
    pub(super) found_depth: Option<PathBuf>,
    pub(super) depth_is_full_size: bool,
    /// Whether the scene's file names a depth that is not there.
    pub(super) misses_depth: bool,
    /// Whether the mask was found by its name alone.
    pub(super) mask_was_found: bool,
}

/// For each frame its files, or why there are none, and the folder that they are of:
/// 1 or n of `images_n`.
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

/// The file by which a folder of depths has inverse ones.
pub(super) fn inverse_depths(root: &Path) -> Option<PathBuf> {
    let mut files = INVERSE
        .iter()
        .map(|folder| root.join(folder).join("depth_params.json"));
    files.find(|file| file.is_file())
}

/// Which folder of images: as asked for, or as nerfstudio's parsers choose.
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
                    .map(|frame| sibling(&frame.folder, &found.root, "images", factor).0);
                let wanted = wanted.unwrap_or_else(|| found.root.clone());
                Err(Error::dataset(
                    wanted,
                    format!(
                        "downscale_folder is {factor}, and none of the scene's images is there: \
                         make them, or remove the option"
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
                // No original is there: the largest of the smaller ones.
                let there = |factor: &u32| found.frames.iter().any(|f| has_folder(f, *factor));
                return Ok(smaller_folders(found).into_iter().find(there).unwrap_or(1));
            };
            // LLFF's scenes are read at the size that is asked for.
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

/// The numbers n of folders `images_n` beside the originals, the smallest first.
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

/// Whether the image of a frame is there, in its size or a smaller one.
pub(super) fn is_anywhere(root: &Path, frame: &FrameDescription) -> bool {
    [1, 2, 4, 8].into_iter().any(|factor| {
        let mut files = candidates(root, frame, factor).into_iter();
        files.any(|path| path.exists())
    })
}

/// Beside a folder of images the one called `kind`, small and full size.
fn sibling(images: &Path, root: &Path, kind: &str, factor: u32) -> (PathBuf, PathBuf) {
    let beside = match images == root {
        true => root,
        false => images.parent().unwrap_or(root),
    };
    let small = beside.join(format!("{kind}_{factor}"));
    (small, beside.join(kind))
}

/// Where the image of a frame may lie, best first.
fn candidates(root: &Path, frame: &FrameDescription, factor: u32) -> Vec<PathBuf> {
    if factor == 1 {
        let path = frame.original();
        let mut all = vec![path.clone()];
        all.extend(EXTENSIONS.map(|extension| with_more(&path, extension)));
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

/// `name.jpg` as `name.jpg.png`.
fn with_more(path: &Path, extension: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(".");
    path.push(extension);
    PathBuf::from(path)
}

/// A folder of masks or depths that is there, and whether they are of original images.
type Folder = (PathBuf, bool);

/// For each folder of images those of masks, or of depths, that belong to it.
fn folders(found: &SceneDescription, kinds: &[&str], factor: u32) -> HashMap<PathBuf, Vec<Folder>> {
    let mut all = HashMap::new();
    for frame in &found.frames {
        if all.contains_key(&frame.folder) {
            continue;
        }
        let mut there: Vec<Folder> = Vec::new();
        for kind in kinds {
            let (small, full) = sibling(&frame.folder, &found.root, kind, factor);
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

/// What looking for files takes.
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
                misses_depth: false,
                mask_was_found: false,
            };
            match &frame.mask {
                Some(mask) => {
                    // Without its mask the image would teach what it must not.
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
                files.misses_depth = depth.is_none();
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

    /// A mask or depth that the scene's file names, in the folder of its size.
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

    /// instant-ngp's mask of what moves: beside the image that is read, or beside the original.
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

/// A mask or depth by the name of its image: `name.png`, `name.jpg.png`, `name.jpg`.
fn by_name(folders: Option<&Vec<Folder>>, image: &Path, extensions: &[&str]) -> Option<Folder> {
    for (folder, full) in folders.into_iter().flatten() {
        let path = folder.join(image);
        let mut named: Vec<PathBuf> = Vec::with_capacity(5);
        for extension in extensions {
            named.push(path.with_extension(extension));
            named.push(with_more(&path, extension));
        }
        named.push(path);
        if let Some(path) = named.into_iter().find(|path| path.is_file()) {
            return Some((path, *full));
        }
    }
    None
}

/// Whether nothing has this name, not even a link that leads nowhere.
fn is_absent(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
