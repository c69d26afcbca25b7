//! Samples that a program lists one by one, as ranges of files.
//!
//! Runs in the consumer. Opens no file.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::classes::ClassList;
use crate::data::index::items::ItemLabel;
use crate::data::index::samples::Index;
use crate::data::index::shards::common_folder;
use crate::data::index::table::labels::TableLabelCollector;
use crate::error::{Error, Result};
use crate::sys::regular_file::FileStamp;

/// A word for the place of a sample in error texts.
const PLACE: &str = "item";

/// A list of samples whose images are ranges of files: rows of Arrow tables, for example. The id of
/// a sample is its position, from 0.
#[derive(Debug)]
pub struct FilePartList {
    files: Vec<PathBuf>,
    stamps: Vec<FileStamp>,
    content: IndexContent,
    labels: TableLabelCollector<'static>,
    classes: ClassList,
}

impl FilePartList {
    /// A list without samples, over these files.
    ///
    /// # Errors
    /// No file is named, or one does not exist.
    pub fn new(files: &[PathBuf]) -> Result<Self> {
        if files.is_empty() {
            return Err(Error::config("no files: name those that have the images"));
        }
        let absolute =
            |path: &PathBuf| std::path::absolute(path).map_err(|e| Error::io_at("find", path, e));
        let files = files.iter().map(absolute).collect::<Result<Vec<_>>>()?;
        let stamp =
            |path: &PathBuf| FileStamp::of(path).map_err(|e| Error::io_at("look at", path, e));
        let stamps = files.iter().map(stamp).collect::<Result<Vec<_>>>()?;
        let root = common_folder(&files);
        let mut content = IndexContent::default();
        for file in &files {
            let relative = file.strip_prefix(&root).unwrap_or(file);
            content.begin_shard(relative.as_os_str().as_bytes());
        }
        Ok(Self {
            files,
            stamps,
            content,
            labels: TableLabelCollector::new(PLACE, None),
            classes: ClassList::default(),
        })
    }

    /// Names the classes that labels are the numbers of.
    #[must_use]
    pub fn with_class_names(self, classes: ClassList) -> Self {
        Self { classes, ..self }
    }

    /// Adds a sample: `bytes` bytes at offset `at` of the file with this number. 0 bytes: the
    /// sample has no image, and fails.
    ///
    /// # Errors
    /// A range outside of the file, or a label of another kind than the first sample's.
    pub fn push(&mut self, file: u32, at: u64, bytes: u64, label: ItemLabel) -> Result<()> {
        let number = self.content.samples() as u64;
        let failed = |what: String| Error::config(format!("{PLACE} {number}: {what}"));
        let end = at.checked_add(bytes);
        let stamp = self.stamps.get(file as usize);
        if stamp.zip(end).is_none_or(|(stamp, end)| end > stamp.bytes) {
            return Err(failed(format!(
                "{bytes} bytes at {at} are not within file {file} of {}",
                self.files.len()
            )));
        }
        self.labels
            .add(number, label.into_value())
            .map_err(failed)?;
        let name = format!("row-{number}");
        self.content
            .push_scattered(file, name.as_bytes(), at, bytes);
        Ok(())
    }
}

impl Index {
    /// The samples that a program listed as ranges of files, in the order of the list.
    ///
    /// # Errors
    /// A list without samples.
    pub fn file_parts(list: FilePartList) -> Result<Self> {
        let FilePartList {
            files,
            stamps,
            mut content,
            labels,
            classes,
        } = list;
        if content.samples() == 0 {
            return Err(Error::config(
                "no samples in this list: give at least one image",
            ));
        }
        (content.labels, content.classes) = labels.finish().map_err(Error::config)?;
        if !classes.is_empty() {
            let names = classes.len() as i64;
            let IndexLabels::Class(all) = &content.labels else {
                return Err(Error::config(
                    "class names belong to labels that are whole numbers, and these are not",
                ));
            };
            if let Some(item) = all.iter().position(|label| !(0..names).contains(label)) {
                return Err(Error::config(format!(
                    "{PLACE} {item}: label {} is not one of the {names} classes",
                    all[item]
                )));
            }
            content.classes = classes;
        }
        let root = common_folder(&files);
        Self::seal(&root, content)?.rebased(&root, &stamps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::Label;

    #[test]
    fn parts_of_several_files_need_not_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a.arrow", "b.arrow"].map(|name| dir.path().join(name));
        for file in &files {
            std::fs::write(file, [7; 100]).unwrap();
        }
        let mut list = FilePartList::new(&files).unwrap();
        let parts = [(1, 90, 10), (0, 0, 7), (1, 0, 0), (0, 50, 50)];
        for (label, (file, at, bytes)) in parts.into_iter().enumerate() {
            let label = ItemLabel::Class(label as i64);
            list.push(file, at, bytes, label).unwrap();
        }
        for (file, at, bytes) in [(0, 91, 10), (2, 0, 1), (0, u64::MAX, 2)] {
            let e = list.push(file, at, bytes, ItemLabel::Class(0)).unwrap_err();
            assert!(e.to_string().contains("item 4: ") && e.is_usage(), "{e}");
        }
        let index = Index::file_parts(list).unwrap();
        assert_eq!((index.len(), index.shards()), (4, 2));
        for (id, (file, at, bytes)) in (0..).zip(parts) {
            let part = index.part(id).unwrap();
            assert_eq!(
                (part.shard, part.at, part.bytes),
                (u64::from(file), at, bytes)
            );
            assert_eq!(index.file(id), files[file as usize]);
            assert_eq!(index.label(id), Label::Class(id as i64));
        }
        // A file shorter than its parts is noticed, whichever part is the last.
        assert_eq!(index.check_ends([100, 100].into_iter()), Ok(()));
        assert!(index.check_ends([99, 100].into_iter()).is_err());
        let some = index.subset(&[3, 0]).unwrap();
        assert_eq!(some.file(0), files[0]);
        assert_eq!(some.part(1).unwrap().range(), 90..100);
        let saved = dir.path().join("saved");
        index.save(&saved).unwrap();
        let again = Index::load(&saved).unwrap();
        assert_eq!(again.hash(), index.hash());
        assert_eq!(again.part(3), index.part(3));
        assert!(FilePartList::new(&[]).is_err());
        let none = FilePartList::new(&files).unwrap();
        assert!(Index::file_parts(none).is_err());
    }
}
