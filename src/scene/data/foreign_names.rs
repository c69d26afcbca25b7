//! Resolves file names from another system: with backslashes, with the folders of another machine,
//! in another case or Unicode form.
//!
//! Runs in the consumer. Reads folders only if a name leads to no file. Counts the names that it
//! resolves in a note of the scene.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result};
use crate::scene::data::image_folders::IMAGE_FOLDERS;
use crate::scene::data::images::EXTENSIONS;
use crate::scene::data::point_cloud::PointsFile;
use crate::scene::data::scene_description::{FrameDescription, SceneDescription};

/// Names of folders that state their content. A mask or a depth must stay in its kind of folder.
const KINDS: [&str; 4] = ["mask", "masks", "depth", "depths"];

/// What a name refers to.
#[derive(Clone, Copy)]
enum NameKind<'a> {
    Image,
    /// A mask or a depth. It must not be one of these images.
    MaskOrDepth(&'a HashSet<PathBuf>),
    Points,
}

/// Normalises a name's separators to slashes, for comparisons.
pub(super) fn key(name: &str) -> String {
    let name = name.replace('\\', "/");
    name.trim_start_matches("./").nfc().collect()
}

/// Numbers of the frames with each name, by its [`key`].
pub(super) fn by_name(frames: &[FrameDescription]) -> HashMap<String, Vec<usize>> {
    let mut numbers: HashMap<String, Vec<usize>> = HashMap::with_capacity(frames.len());
    for (number, frame) in frames.iter().enumerate() {
        numbers.entry(key(&frame.name)).or_default().push(number);
    }
    numbers
}

/// Replaces paths of images, masks, depths and the point cloud by the files that their names mean.
/// `split` divides a path below [`SceneDescription::base`] into a folder of images and the rest.
///
/// # Errors
/// A name that matches two files; two names that match one file.
pub(super) fn resolve_names(
    found: &mut SceneDescription,
    split: &dyn Fn(&Path, &Path) -> (PathBuf, PathBuf),
) -> Result<()> {
    let mut names = Names::default();
    let mut taken: HashMap<PathBuf, String> = HashMap::new();
    let mut moved: HashSet<String> = HashSet::new();
    for frame in &mut found.frames {
        let at = |what: String| Error::dataset(&found.file, format!("{}: {what}", frame.at));
        if !is_image_there(frame) {
            let file = names
                .find(&found.base, &frame.name, NameKind::Image)
                .map_err(at)?;
            if let Some(path) = file.or_else(|| names.with_slashes(&frame.name)) {
                (frame.folder, frame.path) = split(&found.base, &path);
                moved.insert(frame.name.clone());
            }
        }
    }
    let images: HashSet<PathBuf> = found.frames.iter().flat_map(image_files).collect();
    for frame in &mut found.frames {
        for path in [&mut frame.mask, &mut frame.depth].into_iter().flatten() {
            names
                .resolve_path(&found.root, path, NameKind::MaskOrDepth(&images))
                .map_err(|what| Error::dataset(&found.file, format!("{}: {what}", frame.at)))?;
        }
    }
    if !moved.is_empty() {
        for frame in &found.frames {
            let first = taken
                .entry(frame.original())
                .or_insert_with(|| frame.name.clone());
            if *first != frame.name
                && (moved.contains(first.as_str()) || moved.contains(&frame.name))
            {
                let what = format!(
                    "{}: {first:?} and {:?} both mean {}: rename the file, or correct the names",
                    frame.at,
                    frame.name,
                    frame.original().display()
                );
                return Err(Error::dataset(&found.file, what));
            }
        }
    }
    if let Some(PointsFile::Ply(path)) = &mut found.points {
        names
            .resolve_path(&found.root, path, NameKind::Points)
            .map_err(|what| Error::dataset(&found.file, what))?;
    }
    found.notes.extend(names.notes());
    Ok(())
}

/// The image of a frame; all possible ones if its name has no extension.
fn image_files(frame: &FrameDescription) -> Vec<PathBuf> {
    let path = frame.original();
    match path.extension() {
        Some(_) => vec![path],
        None => EXTENSIONS.map(|e| path.with_extension(e)).to_vec(),
    }
}

/// Whether the image is at the path of its name, or has one more extension.
fn is_image_there(frame: &FrameDescription) -> bool {
    let path = frame.original();
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    is_there(&path)
        || EXTENSIONS.iter().any(|extension| {
            let mut path = OsString::from(&path);
            path.push(".");
            path.push(extension);
            is_there(Path::new(&path))
        })
}

/// One kind of difference between names and files: the number of names, and the first one with its
/// file.
#[derive(Debug, Default)]
struct Difference {
    count: u64,
    first: (String, PathBuf),
}

impl Difference {
    fn add(&mut self, name: &str, file: &Path) {
        if self.count == 0 {
            self.first = (name.to_owned(), file.to_owned());
        }
        self.count += 1;
    }
}

/// Finds files whose names differ slightly.
#[derive(Debug, Default)]
struct Names {
    /// The entries of a folder, by their names in one case and one Unicode form.
    listings: HashMap<PathBuf, HashMap<String, Vec<OsString>>>,
    backslashes: Difference,
    moved_files: Difference,
    spelled: Difference,
}

impl Names {
    /// The existing path below `base` that a name means.
    fn find(
        &mut self,
        base: &Path,
        name: &str,
        of: NameKind<'_>,
    ) -> Result<Option<PathBuf>, String> {
        let (parts, is_absolute) = parts(name);
        let folder = folder_name(base);
        let extensions: &[&str] = match of {
            NameKind::Image => &EXTENSIONS,
            NameKind::MaskOrDepth(_) | NameKind::Points => &[],
        };
        for start in 0..parts.len() {
            let (dropped, tail) = parts.split_at(start);
            let is_in_base = dropped.last().is_some_and(|last| folder == **last);
            // Only an absolute path has folders of another machine. For a relative one, dropping
            // folders would be a guess, unless the last dropped one is this folder.
            if start > 0 && !is_absolute && !is_in_base {
                continue;
            }
            if start > 0 && matches!(of, NameKind::MaskOrDepth(_)) {
                let drops_kind = dropped.iter().any(|part| is_kind(part)) && !names_kind(tail);
                if drops_kind || (tail.len() == 1 && !is_in_base) {
                    continue;
                }
            }
            let Some((path, is_respelled)) = self.walk(base, tail, extensions)? else {
                continue;
            };
            if let NameKind::MaskOrDepth(images) = of
                && images.contains(&base.join(&path))
            {
                continue;
            }
            self.count(name, &path, start > 0 || is_absolute, is_respelled);
            return Ok(Some(path));
        }
        if !matches!(of, NameKind::Image) || !is_absolute {
            return Ok(None);
        }
        let found = self.find_in_image_folders(base, &parts)?;
        if let Some((path, is_respelled)) = &found {
            self.count(name, path, true, *is_respelled);
        }
        Ok(found.map(|(path, _)| path))
    }

    /// The only image that matches the longest last part of a name, in one of the image folders.
    fn find_in_image_folders(
        &mut self,
        base: &Path,
        parts: &[&str],
    ) -> Result<Option<(PathBuf, bool)>, String> {
        for start in 0..parts.len() {
            let mut found: Option<(PathBuf, bool)> = None;
            for folder in IMAGE_FOLDERS {
                let mut tail = vec![folder];
                tail.extend(&parts[start..]);
                let Some(other) = self.walk(base, &tail, &EXTENSIONS)? else {
                    continue;
                };
                // One folder may be a link to another one.
                let is_same = |path: &Path| {
                    let real = |path: &Path| base.join(path).canonicalize().ok();
                    real(path) == real(&other.0)
                };
                match &found {
                    None => found = Some(other),
                    Some((first, _)) if is_same(first) => {}
                    Some(_) => return Ok(None),
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn count(&mut self, name: &str, path: &Path, is_elsewhere: bool, is_respelled: bool) {
        if name.contains('\\') {
            self.backslashes.add(name, path);
        }
        if is_elsewhere {
            self.moved_files.add(name, path);
        }
        if is_respelled {
            self.spelled.add(name, path);
        }
    }

    /// Converts a relative Windows name to a path, whether or not the path exists.
    fn with_slashes(&mut self, name: &str) -> Option<PathBuf> {
        let (parts, is_absolute) = parts(name);
        if is_absolute || !name.contains('\\') {
            return None;
        }
        let path: PathBuf = parts.iter().collect();
        self.backslashes.add(name, &path);
        Some(path)
    }

    /// Replaces a path by that of the file that it means.
    fn resolve_path(
        &mut self,
        root: &Path,
        path: &mut PathBuf,
        of: NameKind<'_>,
    ) -> Result<(), String> {
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let name = path.strip_prefix(root).unwrap_or(path);
        let Some(name) = name.to_str().map(str::to_owned) else {
            return Ok(());
        };
        let file = self.find(root, &name, of)?;
        if let Some(file) = file.or_else(|| self.with_slashes(&name)) {
            *path = root.join(file);
        }
        Ok(())
    }

    /// The file below `base` with these names of folders and file, and whether one of them has
    /// another spelling.
    fn walk(
        &mut self,
        base: &Path,
        parts: &[&str],
        extensions: &[&str],
    ) -> Result<Option<(PathBuf, bool)>, String> {
        let mut path = PathBuf::new();
        let mut is_respelled = false;
        for (number, part) in parts.iter().enumerate() {
            let folder = base.join(&path);
            if folder.join(part).symlink_metadata().is_ok() {
                path.push(part);
                continue;
            }
            let mut found = self.find_entry(&folder, part)?;
            if found.is_none() && number + 1 == parts.len() {
                for extension in extensions {
                    found = self.find_entry(&folder, &format!("{part}.{extension}"))?;
                    if found.is_some() {
                        break;
                    }
                }
            }
            let Some(found) = found else {
                return Ok(None);
            };
            path.push(found);
            is_respelled = true;
        }
        Ok(Some((path, is_respelled)))
    }

    /// The entry of a folder with this name, in any case and Unicode form.
    fn find_entry(&mut self, folder: &Path, name: &str) -> Result<Option<OsString>, String> {
        if !self.listings.contains_key(folder) {
            let mut listing: HashMap<String, Vec<OsString>> = HashMap::new();
            // A folder that does not exist has no entries.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let file = entry.file_name();
                if let Some(text) = file.to_str() {
                    listing.entry(fold_case(text)).or_default().push(file);
                }
            }
            self.listings.insert(folder.to_owned(), listing);
        }
        let alike = self
            .listings
            .get(folder)
            .and_then(|all| all.get(&fold_case(name)));
        match alike.map(Vec::as_slice).unwrap_or_default() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [first, second, ..] => Err(format!(
                "{name:?} is not in {}, but both {first:?} and {second:?} match it: correct the \
                 name",
                folder.display()
            )),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |difference: &Difference, what: &str| {
            let (name, file) = &difference.first;
            if difference.count > 0 {
                notes.push(format!(
                    "{what}: {}, first {name:?}, read from {}",
                    difference.count,
                    file.display()
                ));
            }
        };
        note(&self.backslashes, "names with Windows' backslashes");
        note(
            &self.moved_files,
            "names with folders of another machine, matched by their last parts",
        );
        note(
            &self.spelled,
            "names that differ from their files in case or Unicode form",
        );
        notes
    }
}

/// The name of a folder, even if its path is `.`.
fn folder_name(folder: &Path) -> OsString {
    let name = |path: &Path| path.file_name().map(OsString::from);
    let real = || name(&folder.canonicalize().ok()?);
    name(folder).or_else(real).unwrap_or_default()
}

fn is_kind(part: &str) -> bool {
    KINDS.contains(&part.to_lowercase().as_str())
}

/// Whether a folder of this path states its content.
fn names_kind(tail: &[&str]) -> bool {
    let folders = tail.split_last().map_or(&[][..], |(_, folders)| folders);
    folders.iter().any(|part| is_kind(part))
}

/// The folders and the file of a name, without drive and dots, and whether it is absolute on any
/// system.
fn parts(name: &str) -> (Vec<&str>, bool) {
    let mut parts: Vec<&str> = name.split(['/', '\\']).collect();
    let is_drive = |part: &str| part.ends_with(':') && part.len() > 1;
    let has_drive = parts.first().is_some_and(|part| is_drive(part));
    let is_absolute = name.starts_with(['/', '\\']) || has_drive;
    parts.retain(|part| !matches!(*part, "" | "." | "..") && !is_drive(part));
    (parts, is_absolute)
}

/// A name in one case and one Unicode form.
fn fold_case(name: &str) -> String {
    name.nfc()
        .collect::<String>()
        .to_lowercase()
        .nfc()
        .collect()
}
