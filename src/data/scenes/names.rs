//! Names of files that another system wrote: with backslashes, with the folders of another
//! machine, in another case or Unicode form.
//!
//! In the consumer. Reads folders, and only where a name leads to no file. Each name that is
//! read in another way is counted in a note of the scene.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::data::scenes::found::{Found, FoundFrame};
use crate::data::scenes::images::EXTENSIONS;
use crate::data::scenes::points::PointsFile;
use crate::error::{Error, Result};

/// A name with slashes, whichever system wrote it, for a comparison with others.
pub(super) fn key(name: &str) -> String {
    let name = name.replace('\\', "/");
    name.trim_start_matches("./").nfc().collect()
}

/// The numbers of the frames of each name, by its [`key`].
pub(super) fn by_name(frames: &[FoundFrame]) -> HashMap<String, Vec<usize>> {
    let mut numbers: HashMap<String, Vec<usize>> = HashMap::with_capacity(frames.len());
    for (number, frame) in frames.iter().enumerate() {
        numbers.entry(key(&frame.name)).or_default().push(number);
    }
    numbers
}

/// Gives frames, masks, depths and the point cloud the files that their names mean.
/// `split`: a path below [`Found::base`] as a folder of images and the rest.
///
/// # Errors
/// A name that two files match; two names that one file matches.
pub(super) fn settle(
    found: &mut Found,
    split: &dyn Fn(&Path, &Path) -> (PathBuf, PathBuf),
) -> Result<()> {
    let mut names = Names::default();
    let mut taken: HashMap<PathBuf, String> = HashMap::new();
    let mut moved: HashSet<String> = HashSet::new();
    for frame in &mut found.frames {
        let at = |what: String| Error::dataset(&found.file, format!("{}: {what}", frame.at));
        if !is_image_there(frame) {
            let file = names
                .find(&found.base, &frame.name, &EXTENSIONS)
                .map_err(at)?;
            if let Some(path) = file.or_else(|| names.slashed(&frame.name)) {
                (frame.folder, frame.path) = split(&found.base, &path);
                moved.insert(frame.name.clone());
            }
        }
        for path in [&mut frame.mask, &mut frame.depth].into_iter().flatten() {
            names
                .settle_path(&found.root, path)
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
            .settle_path(&found.root, path)
            .map_err(|what| Error::dataset(&found.file, what))?;
    }
    found.notes.extend(names.notes());
    Ok(())
}

/// Whether the image lies where its name says, or has one more extension.
fn is_image_there(frame: &FoundFrame) -> bool {
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

/// A way in which names differ from files: how many do, the first of them and its file.
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

/// Finds files by names that are not quite theirs.
#[derive(Debug, Default)]
struct Names {
    /// The entries of a folder, by their names in one case and one Unicode form.
    listings: HashMap<PathBuf, HashMap<String, Vec<OsString>>>,
    backslashes: Difference,
    elsewhere: Difference,
    spelled: Difference,
}

impl Names {
    /// The path below `base` that a name means, where it is there.
    fn find(
        &mut self,
        base: &Path,
        name: &str,
        extensions: &[&str],
    ) -> Result<Option<PathBuf>, String> {
        let (parts, is_absolute) = parts(name);
        let folder = base.file_name().unwrap_or_default();
        for start in 0..parts.len() {
            let tail = &parts[start..];
            // Of an absolute path the file's name may be all that is left. Of a relative one
            // that would be a guess, unless the folder before it is this one.
            let is_in_base = start > 0 && folder == parts[start - 1];
            if start > 0 && tail.len() == 1 && !is_absolute && !is_in_base {
                break;
            }
            let Some((path, is_respelled)) = self.walk(base, tail, extensions)? else {
                continue;
            };
            if name.contains('\\') {
                self.backslashes.add(name, &path);
            }
            if start > 0 || is_absolute {
                self.elsewhere.add(name, &path);
            }
            if is_respelled {
                self.spelled.add(name, &path);
            }
            return Ok(Some(path));
        }
        Ok(None)
    }

    /// A relative name of Windows as a path, though nothing is there.
    fn slashed(&mut self, name: &str) -> Option<PathBuf> {
        let (parts, is_absolute) = parts(name);
        if is_absolute || !name.contains('\\') {
            return None;
        }
        let path: PathBuf = parts.iter().collect();
        self.backslashes.add(name, &path);
        Some(path)
    }

    /// Replaces a path by that of the file which it means.
    fn settle_path(&mut self, root: &Path, path: &mut PathBuf) -> Result<(), String> {
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let name = path.strip_prefix(root).unwrap_or(path);
        let Some(name) = name.to_str().map(str::to_owned) else {
            return Ok(());
        };
        let file = self.find(root, &name, &[])?;
        if let Some(file) = file.or_else(|| self.slashed(&name)) {
            *path = root.join(file);
        }
        Ok(())
    }

    /// The file below `base` with these names of folders and file, and whether one of them is
    /// spelled in another way.
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
            let mut found = self.like(&folder, part)?;
            if found.is_none() && number + 1 == parts.len() {
                for extension in extensions {
                    found = self.like(&folder, &format!("{part}.{extension}"))?;
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

    /// The entry of a folder with this name, in whichever case and Unicode form.
    fn like(&mut self, folder: &Path, name: &str) -> Result<Option<OsString>, String> {
        if !self.listings.contains_key(folder) {
            let mut listing: HashMap<String, Vec<OsString>> = HashMap::new();
            // A folder that is not there has no entries.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let file = entry.file_name();
                if let Some(text) = file.to_str() {
                    listing.entry(fold(text)).or_default().push(file);
                }
            }
            self.listings.insert(folder.to_owned(), listing);
        }
        let alike = self
            .listings
            .get(folder)
            .and_then(|all| all.get(&fold(name)));
        match alike.map(Vec::as_slice).unwrap_or_default() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [first, second, ..] => Err(format!(
                "{name:?} is not in {}, and both {first:?} and {second:?} are spelled like it: \
                 correct the name",
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
            &self.elsewhere,
            "names with folders of another machine, found by their last parts",
        );
        note(
            &self.spelled,
            "names in another case or Unicode form than their files",
        );
        notes
    }
}

/// The folders and the file of a name, without drive and dots, and whether it is absolute on
/// some system.
fn parts(name: &str) -> (Vec<&str>, bool) {
    let mut parts: Vec<&str> = name.split(['/', '\\']).collect();
    let is_drive = |part: &str| part.ends_with(':') && part.len() > 1;
    let has_drive = parts.first().is_some_and(|part| is_drive(part));
    let is_absolute = name.starts_with(['/', '\\']) || has_drive;
    parts.retain(|part| !matches!(*part, "" | "." | "..") && !is_drive(part));
    (parts, is_absolute)
}

/// A name in one case and one Unicode form.
fn fold(name: &str) -> String {
    name.nfc()
        .collect::<String>()
        .to_lowercase()
        .nfc()
        .collect()
}
