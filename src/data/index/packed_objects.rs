//! The index of single images of an object store, which come to this machine in packs.
//!
//! Used in the consumer. Names and places follow from the listing, so no pack is read. Labels are
//! those of a folder of the same files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::foreign_data;
use crate::data::index::names::{OWN_PREFIX, has_image_extension, is_hidden, is_system_folder};
use crate::data::index::report::{ScanReport, SkipCount, SkipReason};
use crate::data::index::shards::{ShardLabels, ShardOptions};
use crate::data::index::{ClassList, Index};
use crate::error::{Error, Result};

/// Names of left-out objects that are kept for each reason.
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
const EXAMPLES: usize = 3;

/// An image in a pack: its name below the address, the offset of its bytes and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberPlace<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// What a listing found beside images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedNames {
    /// Folders directly below the address, sorted by bytes. They are the classes.
    folders: Vec<String>,
    /// Objects that are no images.
    left_out: BTreeMap<SkipReason, LeftOutNames>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LeftOutNames {
    count: u64,
    examples: Vec<String>,
}

impl ListedNames {
    /// Counts the object of this name below the address. Returns whether it is an image. Folders
    /// and hidden names count as those of a folder on this machine.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(crate) fn is_image(&mut self, name: &str) -> bool {
        if let Some((top, _)) = name.split_once('/')
            && !is_hidden(top.as_bytes())
            && !is_system_folder(top.as_bytes())
            && let Err(at) = self
                .folders
                .binary_search_by(|known| known.as_str().cmp(top))
        {
            self.folders.insert(at, top.to_owned());
        }
        let (folders, file) = name.rsplit_once('/').unwrap_or(("", name));
        let parts = || folders.split('/').map(str::as_bytes);
        let reason = if file.starts_with(OWN_PREFIX) {
            return false;
        } else if is_hidden(file.as_bytes()) || parts().any(is_hidden) {
            Some(SkipReason::Hidden)
        } else if parts().any(is_system_folder) {
            Some(SkipReason::SystemFolder)
        } else {
            (!has_image_extension(file.as_bytes())).then_some(SkipReason::NotAnImageName)
        };
        if let Some(reason) = reason {
            let left_out = self.left_out.entry(reason).or_default();
            left_out.count += 1;
            left_out.examples.push(name.to_owned());
            left_out.examples.sort();
            left_out.examples.truncate(EXAMPLES);
        }
        reason.is_none()
    }

    /// The folders, without what was left out.
    #[cfg_attr(not(feature = "stores"), allow(dead_code))]
    pub(crate) fn folders_alone(&self) -> Self {
        Self {
            folders: self.folders.clone(),
            left_out: BTreeMap::new(),
        }
    }

    fn report(&self, samples: u64) -> ScanReport {
        let skipped = self.left_out.iter().map(|(reason, names)| {
            let count = SkipCount {
                count: names.count,
                examples: names.examples.iter().map(PathBuf::from).collect(),
            };
            (*reason, count)
        });
        ScanReport {
            samples,
            skipped: skipped.collect(),
            ..ScanReport::default()
        }
    }
}

impl Index {
    /// The index of the images at `address` in packs, which are files of `folder`.
    ///
    /// # Errors
    /// Options that read fields of tars; images beside class folders; a class folder that the class
    /// table lacks.
    pub(crate) fn packed_objects<'a, Places: Iterator<Item = MemberPlace<'a>>>(
        folder: &Path,
        address: &str,
        packs: impl Iterator<Item = (&'a str, Places)>,
        names: &ListedNames,
        options: &ShardOptions,
    ) -> Result<(Self, ScanReport)> {
        let wrong = |what: String| Error::dataset(address, what);
        let has_labels = match (&options.labels, &options.image_field) {
            (ShardLabels::Auto, None) => true,
            (ShardLabels::None, None) => false,
            _ => {
                return Err(wrong(
                    "has single images and no tars: remove the options that name fields of tars"
                        .to_owned(),
                ));
            }
        };
        if !has_labels && options.classes.is_some() {
            return Err(wrong(
                "a class table has no effect without labels: remove `classes` or `labels: none`"
                    .to_owned(),
            ));
        }
        let classes = match (&options.classes, names.folders.is_empty() || !has_labels) {
            (Some(_), true) => {
                return Err(wrong(
                    "has no class folders for the class table: remove `classes`, or give the \
                     address that holds the class folders"
                        .to_owned(),
                ));
            }
            (_, true) => ClassList::default(),
            (Some(table), false) => table.clone(),
            (None, false) => ClassList::new(names.folders.iter().map(OsString::from))?,
        };
        let are_splits = has_labels && options.classes.is_none() && !names.folders.is_empty() && {
            let mut folders = names.folders.iter();
            folders.all(|name| foreign_data::is_split(OsStr::new(name)))
        };
        if are_splits {
            let folders = names.folders.join(", ");
            return Err(wrong(format!(
                "its folders ({folders}) are splits, not classes: give one of them, such as \
                 {address}/{}; `labels: none` reads all without labels, and `classes` uses the \
                 folders as classes",
                names.folders[0]
            )));
        }
        let mut numbers = BTreeMap::new();
        if has_labels {
            for name in &names.folders {
                let number = classes.get(OsStr::new(name)).ok_or_else(|| {
                    wrong(format!(
                        "the class folder {name:?} is not in the class table: add its name, or \
                         remove `classes`"
                    ))
                })?;
                numbers.insert(name.as_str(), number);
            }
        }
        let (mut content, mut labels) = (IndexContent::default(), Vec::new());
        for (pack, places) in packs {
            content.begin_shard(pack.as_bytes());
            for place in places {
                content.push_part(place.name.as_bytes(), place.at, place.bytes);
                if !has_labels {
                    continue;
                }
                labels.push(match place.name.split_once('/') {
                    Some((top, _)) => numbers.get(top).copied().unwrap_or(-1),
                    None if numbers.is_empty() => -1,
                    None => {
                        return Err(wrong(format!(
                            "images lie beside class folders, such as {:?} beside {:?}: move them \
                             into class folders, or use `labels: none` to read every image \
                             without a label",
                            place.name, names.folders[0]
                        )));
                    }
                });
            }
        }
        if has_labels {
            content.labels = IndexLabels::Class(labels);
            content.classes = classes;
        }
        let samples = content.samples() as u64;
        let index = Self::seal(folder, content)?.named_by(address);
        Ok((index, names.report(samples)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::Label;

    const NAMES: [&str; 4] = ["ant/1.jpg", "ant/deep/2.PNG", "bee/1.jpg", "cow/3.webp"];

    fn listed(names: &[&str]) -> (ListedNames, Vec<MemberPlace<'static>>) {
        let mut found = ListedNames::default();
        let images = names.iter().filter(|name| found.is_image(name));
        let places = images.enumerate().map(|(number, name)| MemberPlace {
            name: Box::leak((*name).to_owned().into_boxed_str()),
            at: 512 + number as u64 * 1024,
            bytes: 9,
        });
        let places = places.collect();
        (found, places)
    }

    fn index(names: &[&str], options: &ShardOptions) -> Result<(Index, ScanReport)> {
        let (names, places) = listed(names);
        let packs = [("0.tar", places.into_iter())].into_iter();
        Index::packed_objects(Path::new("/f"), "s3://b/p", packs, &names, options)
    }

    fn class(index: &Index, id: u64) -> i64 {
        match index.label(id) {
            Label::Class(class) => class,
            other => panic!("{other:?}"),
        }
    }

    fn fault(names: &[&str], options: &ShardOptions) -> String {
        index(names, options).unwrap_err().to_string()
    }

    #[test]
    fn classes_are_the_folders_below_the_address() {
        let mut names = NAMES.to_vec();
        names.extend([
            "a.txt/x.txt",
            "ant/.hidden.jpg",
            ".git/a.jpg",
            "__MACOSX/1.jpg",
        ]);
        names.extend(["ant/no-image", ".featherload-demo.json"]);
        let (index, report) = index(&names, &ShardOptions::default()).unwrap();
        // A folder without images is a class, as on this machine.
        let classes: Vec<_> = index.classes().iter().map(|c| c.to_owned()).collect();
        assert_eq!(classes, ["a.txt", "ant", "bee", "cow"]);
        let e = fault(&["train/a/1.jpg", "val/a/2.jpg"], &ShardOptions::default());
        assert!(
            e.contains("give one of them, such as s3://b/p/train"),
            "{e}"
        );
        let labels: Vec<_> = (0..4).map(|id| class(&index, id)).collect();
        assert_eq!(labels, [1, 1, 2, 3]);
        assert_eq!(index.relative_path(1), Path::new("ant/deep/2.PNG"));
        assert_eq!(report.samples, 4);
        let count = |reason| report.skipped[&reason].count;
        assert_eq!(count(SkipReason::Hidden), 2);
        assert_eq!(count(SkipReason::SystemFolder), 1);
        assert_eq!(count(SkipReason::NotAnImageName), 2);
    }

    #[test]
    fn labels_may_be_absent_and_tables_number_them() {
        let none = ShardOptions {
            labels: ShardLabels::None,
            ..ShardOptions::default()
        };
        let (unlabelled, _) = index(&["1.jpg", "a/2.jpg"], &none).unwrap();
        assert_eq!((unlabelled.len(), unlabelled.classes().len()), (2, 0));
        let (flat, _) = index(&["1.jpg", "2.jpg"], &ShardOptions::default()).unwrap();
        assert_eq!(class(&flat, 1), -1);
        let table = ShardOptions {
            classes: Some(ClassList::new(["cow", "bee", "ant"]).unwrap()),
            ..ShardOptions::default()
        };
        let (numbered, _) = index(&NAMES, &table).unwrap();
        assert_eq!((class(&numbered, 0), class(&numbered, 3)), (2, 0));
        let e = fault(&["elk/1.jpg"], &table);
        assert!(e.contains("\"elk\" is not in the class table"), "{e}");
        let e = fault(&["1.jpg"], &table);
        assert!(e.contains("has no class folders"), "{e}");
        let e = fault(&["1.jpg", "a/2.jpg"], &ShardOptions::default());
        assert!(e.contains("\"1.jpg\" beside \"a\""), "{e}");
        let field = ShardOptions {
            image_field: Some("jpg".to_owned()),
            ..ShardOptions::default()
        };
        let e = fault(&NAMES, &field);
        assert!(e.contains("remove the options that name fields"), "{e}");
    }
}
