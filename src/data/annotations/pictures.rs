//! The pictures that a file of annotations describes: as a data set, or in one that is there
//! already.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::data::index::{Index, ItemLabel, ItemList, shown};
use crate::error::{Error, Result};

/// Images that are looked for before a run.
const PROBES: u64 = 64;

/// A picture that a file describes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DescribedPicture<'a> {
    /// The path of its file below the folder of the images.
    pub(super) name: &'a str,
    /// Its number in the file, for errors.
    pub(super) number: i64,
}

/// The data set of the pictures of `file`, below `images`.
///
/// # Errors
/// A name that leads out of the folder; none of the images that are looked for exists.
pub(super) fn list_below<'a>(
    file: &Path,
    images: &Path,
    pictures: impl Iterator<Item = DescribedPicture<'a>>,
) -> Result<Index> {
    // The parent of a bare file name is empty.
    let images = if images == Path::new("") {
        Path::new(".")
    } else {
        images
    };
    let mut list = ItemList::in_folder(images)?;
    for DescribedPicture { name, number } in pictures {
        if leaves(name, images) {
            let what = format!(
                "image {number}: '{}' leads out of the folder of the images, {}: give the folder \
                 that all of them are in",
                shown(name.as_bytes()),
                shown(images.as_os_str().as_encoded_bytes())
            );
            return Err(Error::dataset(file, what));
        }
        list.push(name, ItemLabel::None)?;
    }
    let index = Index::items(list)?;
    let step = (index.len() / PROBES).max(1) as usize;
    let mut probes = (0..index.len()).step_by(step).map(|id| index.path(id));
    let is_file = !index.is_of_addresses();
    if is_file && !probes.any(|path| path.exists()) {
        return Err(Error::dataset(
            file,
            format!(
                "names images that do not exist, such as {}: give the folder that holds them",
                shown(index.path(0).as_os_str().as_encoded_bytes())
            ),
        ));
    }
    Ok(index)
}

/// Whether a name leads out of a folder. It may be an absolute path inside of it.
fn leaves(name: &str, folder: &Path) -> bool {
    let path = Path::new(name);
    let is_parent = |part| part == Component::ParentDir;
    let is_outside = || !path.starts_with(folder) || folder.is_relative();
    path.components().any(is_parent) || path.is_absolute() && is_outside()
}

/// Which part of an image's path the names of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PictureNames {
    /// A path, or a file name.
    Paths,
    /// A file name without its extension.
    Stems,
}

/// The entries of a file that belong to the images of a data set.
#[derive(Debug)]
pub(super) struct MatchedPictures {
    /// For each image the number of its entry: by its path, else by its name, if no other entry and
    /// no other image has it.
    pub(super) order: Vec<Option<u32>>,
    pub(super) images_without_entry: u64,
    pub(super) entries_without_image: u64,
}

/// Finds the entries of the images of `index` among those that `file` names.
///
/// # Errors
/// None of the images has an entry.
pub(super) fn match_pictures(
    file: &Path,
    index: &Index,
    names: &[&str],
    form: PictureNames,
) -> Result<MatchedPictures> {
    let order = order_of(index, names, form);
    let mut used = vec![false; names.len()];
    for entry in order.iter().flatten() {
        used[*entry as usize] = true;
    }
    let with_image = used.iter().filter(|used| **used).count();
    if with_image == 0 && !index.is_empty() {
        let first = names.first().map_or("", |name| name);
        return Err(Error::dataset(
            file,
            format!(
                "names none of the {} images of the data set: it has '{}', and the data set '{}'",
                index.len(),
                shown(first.as_bytes()),
                shown(index.relative_path(0).as_os_str().as_encoded_bytes()),
            ),
        ));
    }
    Ok(MatchedPictures {
        images_without_entry: order.iter().filter(|entry| entry.is_none()).count() as u64,
        entries_without_image: (used.len() - with_image) as u64,
        order,
    })
}

fn order_of(index: &Index, names: &[&str], form: PictureNames) -> Vec<Option<u32>> {
    let mut by_path: HashMap<&[u8], u32> = HashMap::new();
    // None: several have the name.
    let mut by_name: HashMap<&[u8], Option<u32>> = HashMap::new();
    for (number, path) in (0..).zip(names) {
        let path = path.as_bytes();
        by_path.entry(path).or_insert(number);
        by_name
            .entry(name_of(path))
            .and_modify(|of| *of = None)
            .or_insert(Some(number));
    }
    let paths = || {
        (0..index.len()).map(|id| {
            let path = index.relative_path(id).as_os_str().as_bytes();
            match form {
                PictureNames::Paths => path,
                PictureNames::Stems => without_extension(path),
            }
        })
    };
    let mut images: HashMap<&[u8], u32> = HashMap::new();
    for path in paths() {
        *images.entry(name_of(path)).or_default() += 1;
    }
    paths()
        .map(|path| {
            let name = name_of(path);
            let of_name = by_name.get(name).copied().flatten();
            let of_name = of_name.filter(|_| images.get(name) == Some(&1));
            by_path.get(path).copied().or(of_name)
        })
        .collect()
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

fn without_extension(path: &[u8]) -> &[u8] {
    let name = name_of(path);
    match name.iter().rposition(|b| *b == b'.') {
        Some(dot) if dot > 0 => &path[..path.len() - name.len() + dot],
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(paths: &[&str]) -> Index {
        let mut list = ItemList::in_folder(Path::new("/set")).unwrap();
        for path in paths {
            list.push(path, ItemLabel::None).unwrap();
        }
        Index::items(list).unwrap()
    }

    #[test]
    fn a_path_or_a_unique_name() {
        let names = ["a/1.jpg", "b/1.jpg", "train/2.jpg", "3.jpg", "4.jpg"];
        let index = index(&[
            "b/1.jpg", "c/1.jpg", "2.jpg", "x/3.jpg", "y/3.jpg", "4.jpg", "5.jpg",
        ]);
        let found = match_pictures(Path::new("f"), &index, &names, PictureNames::Paths).unwrap();
        assert_eq!(
            found.order,
            [Some(1), None, Some(2), None, None, Some(4), None]
        );
        assert_eq!(
            (found.images_without_entry, found.entries_without_image),
            (4, 2)
        );
        let e = match_pictures(Path::new("f"), &index, &["z.jpg"], PictureNames::Paths);
        let e = e.unwrap_err().to_string();
        assert!(
            e.contains("it has 'z.jpg', and the data set 'b/1.jpg'"),
            "{e}"
        );
    }

    #[test]
    fn ids_are_names_without_their_extension() {
        let index = index(&["a/1.jpg", "2.x.png", ".jpg", "3", "b/4.jpg", "c/4.jpg"]);
        let names = ["1", "2.x", ".jpg", "3", "4", "c/4"];
        let found = match_pictures(Path::new("f"), &index, &names, PictureNames::Stems).unwrap();
        assert_eq!(
            found.order,
            [Some(0), Some(1), Some(2), Some(3), None, Some(5)]
        );
    }
}
