//! Which entry of a COCO file belongs to which image of a data set.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use super::entries::PictureEntry;
use crate::data::index::Index;

/// For each image the place of its entry: by its path, else by its file name, if no other entry
/// and no other image has it.
pub(super) fn pictures_of(index: &Index, pictures: &[PictureEntry]) -> Vec<Option<u32>> {
    let mut by_path: HashMap<&[u8], u32> = HashMap::new();
    // None: several have the name.
    let mut by_name: HashMap<&[u8], Option<u32>> = HashMap::new();
    for (number, picture) in (0..).zip(pictures) {
        let path = picture.name.as_bytes();
        by_path.entry(path).or_insert(number);
        by_name
            .entry(name_of(path))
            .and_modify(|of| *of = None)
            .or_insert(Some(number));
    }
    let paths = || (0..index.len()).map(|id| index.relative_path(id).as_os_str().as_bytes());
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::index::{ItemLabel, ItemList};

    #[test]
    fn a_path_or_a_unique_name() {
        let pictures: Vec<PictureEntry> = (0..)
            .zip(["a/1.jpg", "b/1.jpg", "train/2.jpg", "3.jpg", "4.jpg"])
            .map(|(id, name)| PictureEntry {
                id,
                size: None,
                name: name.into(),
            })
            .collect();
        let mut list = ItemList::in_folder(Path::new("/set")).unwrap();
        for path in [
            "b/1.jpg", "c/1.jpg", "2.jpg", "x/3.jpg", "y/3.jpg", "4.jpg", "5.jpg",
        ] {
            list.push(path, ItemLabel::None).unwrap();
        }
        let index = Index::items(list).unwrap();
        assert_eq!(
            pictures_of(&index, &pictures),
            [Some(1), None, Some(2), None, None, Some(4), None]
        );
    }
}
