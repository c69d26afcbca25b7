//! An index of some samples of another index.
//!
//! Runs in the consumer. Reads no file.

use std::os::unix::ffi::OsStrExt;

use crate::data::index::binary_form::{IndexContent, IndexLabels};
use crate::data::index::{Index, Label};
use crate::error::{Error, Result};

impl Index {
    /// The samples `ids` of this index, in this order, with their labels and the same classes.
    /// Their new ids are their positions in `ids`.
    ///
    /// # Errors
    /// An id is not in this index, or `ids` is empty.
    pub fn subset(&self, ids: &[u64]) -> Result<Self> {
        if let Some(id) = ids.iter().find(|id| **id >= self.len()) {
            return Err(Error::config(format!(
                "there is no sample {id}: the data set has {}, numbered from 0",
                self.len()
            )));
        }
        if ids.is_empty() {
            return Err(Error::config("no samples are chosen: name at least one"));
        }
        let mut content = IndexContent::default();
        content.classes = self.classes().clone();
        content.beyond = self.beyond.clone();
        let (mut stamps, mut shard) = (Vec::new(), None);
        let is_scattered = self.layout.are_scattered();
        let mut begin = |content: &mut IndexContent, number| {
            let bytes = self.sealed.bytes();
            content.begin_form(
                self.layout.shard_path(bytes, number),
                self.layout.form(bytes, number),
            );
            stamps.push(self.layout.stamp(bytes, number).unwrap_or_default());
        };
        if is_scattered {
            (0..self.shards()).for_each(|number| begin(&mut content, number));
        }
        for &id in ids {
            let name = self.relative_path(id).as_os_str().as_bytes();
            match self.part(id) {
                None => content.push_path(name),
                Some(part) if is_scattered => {
                    // An index has at most as many shards as the numbers of its samples count.
                    content.push_scattered(part.shard as u32, name, part.at, part.bytes);
                }
                Some(part) => {
                    if shard.replace(part.shard) != Some(part.shard) {
                        begin(&mut content, part.shard);
                    }
                    content.push_part(name, part.at, part.bytes);
                }
            }
            content.boxes.extend(self.pixel_box(id));
        }
        content.labels = self.labels_of(ids);
        if let Some(memory) = self.memory() {
            return Self::seal_in_memory(content, memory.clone());
        }
        let index = Self::seal(self.root(), content)?;
        match stamps.is_empty() {
            true => Ok(index),
            false => index.rebased(self.root(), &stamps),
        }
    }

    pub(super) fn labels_of(&self, ids: &[u64]) -> IndexLabels {
        let labels = || ids.iter().map(|id| self.label(*id));
        match self.label(0) {
            Label::None => IndexLabels::None,
            Label::Class(_) => IndexLabels::Class(
                labels()
                    .map(|label| match label {
                        Label::Class(class) => class,
                        // All samples of an index have the same kind of label.
                        Label::None | Label::Vector(_) => -1,
                    })
                    .collect(),
            ),
            Label::Vector(_) => IndexLabels::Vector {
                width: self.label_width(),
                values: labels()
                    .flat_map(|label| match label {
                        Label::Vector(vector) => vector.iter().collect(),
                        Label::None | Label::Class(_) => Vec::new(),
                    })
                    .collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::index::{ListLabels, ListOptions};

    #[test]
    fn chosen_samples_keep_paths_labels_and_classes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ant/1.jpg", "bee/2.jpg", "bee/3.jpg", "cat/4.jpg"] {
            std::fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let (all, _) = Index::folder(dir.path(), &Default::default()).unwrap();
        let some = all.subset(&[3, 1, 1]).unwrap();
        assert_eq!(some.len(), 3);
        for (id, from) in [(0, 3), (1, 1), (2, 1)] {
            assert_eq!(some.path(id), all.path(from));
            assert_eq!(some.label(id), all.label(from));
        }
        assert_eq!(some.classes().len(), all.classes().len());
        assert!(
            all.subset(&[4])
                .unwrap_err()
                .to_string()
                .contains("no sample 4")
        );
        assert!(all.subset(&[]).is_err());
    }

    #[test]
    fn chosen_parts_stay_where_they_are() {
        let shards = [
            ("a.tar", vec![(512, 7), (2048, 9)]),
            ("b.tar", vec![(512, 5)]),
        ];
        let all = Index::of_parts(Path::new("/data"), &shards);
        let some = all.subset(&[2, 1, 0, 2]).unwrap();
        for (id, from) in [(0, 2), (1, 1), (2, 0), (3, 2)] {
            assert_eq!(some.file(id), all.file(from), "{id}");
            let range = |index: &Index, id| index.part(id).unwrap().range();
            assert_eq!(range(&some, id), range(&all, from), "{id}");
        }
    }

    #[test]
    fn chosen_vectors_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.jpg 1 2\nb.jpg 3 4\n").unwrap();
        let options = ListOptions {
            labels: ListLabels::Vector,
            ..ListOptions::default()
        };
        let (all, _) = Index::list(&list, &options).unwrap();
        let some = all.subset(&[1]).unwrap();
        let Label::Vector(vector) = some.label(0) else {
            panic!("no vector");
        };
        assert_eq!(vector.iter().collect::<Vec<_>>(), [3.0, 4.0]);
    }
}
