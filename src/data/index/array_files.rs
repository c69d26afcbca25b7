//! Samples in files of NumPy (`.npy`) that hold many images: N x H x W or N x H x W x C, `u8`.
//!
//! Runs in the consumer. Reads headers only. Workers read each image where it lies in its file. Such
//! a file is a shard, and its images are raw pixels of one shape. A file that changes later is
//! noticed when it is opened.

use std::borrow::Cow;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::binary_form::{IndexContent, StoredForm};
use crate::data::index::classes::ClassList;
use crate::data::index::items::{ItemLabel, PLACE};
use crate::data::index::names::ARRAY_EXTENSION;
use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::data::index::table::labels::TableLabelCollector;
use crate::data::pixel_shape::PixelShape;
use crate::error::{Error, Result};
use crate::picture::npy;
use crate::sys::regular_file::{self, FileStamp};

/// Files of NumPy with many images each, and a label for each image. The id of a sample is its
/// position in the list, from 0.
#[derive(Debug)]
pub struct ArrayFiles {
    content: IndexContent,
    labels: TableLabelCollector<'static>,
    /// Folder of the first file.
    root: Option<PathBuf>,
    stamps: Vec<FileStamp>,
}

impl ArrayFiles {
    /// A list without files.
    pub fn new() -> Self {
        Self {
            content: IndexContent::default(),
            labels: TableLabelCollector::new(PLACE, None),
            root: None,
            stamps: Vec::new(),
        }
    }

    /// Numbers class names by their position in `classes`. A name that `classes` lacks is an error
    /// of [`ArrayFiles::push`].
    #[must_use]
    pub fn with_classes(self, classes: ClassList) -> Self {
        Self {
            labels: TableLabelCollector::new(PLACE, Some(Cow::Owned(classes))),
            ..self
        }
    }

    /// Adds images of a file: those at `rows`, in this order, or all. `labels` has one for each, or
    /// is `None`.
    ///
    /// # Errors
    /// A file that cannot be read or has no such array; a row that it lacks; another number of
    /// labels; a label of another kind than the first one.
    pub fn push(
        &mut self,
        file: &Path,
        rows: Option<&[u64]>,
        labels: Option<Vec<ItemLabel>>,
    ) -> Result<()> {
        let file = std::path::absolute(file).map_err(|e| Error::io_at("find", file, e))?;
        let wrong = |what: String| Error::dataset(&file, what);
        // Before the header is read, so that a change during the read is noticed.
        let stamp = FileStamp::of(&file).map_err(|e| Error::io_at("open", &file, e))?;
        let (sides, data_at) = read_header(&file)?;
        let (count, shape) = PixelShape::of_array(&sides).map_err(wrong)?;
        let needed = (count.checked_mul(shape.bytes())).and_then(|n| n.checked_add(data_at));
        if needed.is_none_or(|needed| needed > stamp.bytes) {
            let has = stamp.bytes;
            return Err(wrong(format!(
                "is cut off: it has {has} bytes, too few for its shape"
            )));
        }
        let given = rows.map_or(count, |rows| rows.len() as u64);
        let labels = match labels {
            Some(labels) if labels.len() as u64 != given => {
                let found = labels.len();
                return Err(wrong(format!(
                    "has {given} images, and there are {found} labels: give one label an image"
                )));
            }
            labels => labels.unwrap_or_default(),
        };
        let root = file.parent().unwrap_or(Path::new("/"));
        let name = match self.root.get_or_insert_with(|| root.to_owned()) == root {
            true => file.file_name().unwrap_or_default().as_bytes(),
            false => file.as_os_str().as_bytes(),
        };
        self.content
            .begin_form(name, Some(StoredForm::Pixels(shape)));
        self.stamps.push(stamp);
        let mut labels = labels.into_iter();
        for place in 0..given {
            let row = rows.map_or(place, |rows| rows[place as usize]);
            if row >= count {
                return Err(wrong(format!("has {count} images, and no image {row}")));
            }
            let id = self.content.samples() as u64;
            let label = labels.next().and_then(ItemLabel::into_value);
            (self.labels.add(id, label))
                .map_err(|what| Error::config(format!("{PLACE} {id}: {what}")))?;
            let at = data_at + row * shape.bytes();
            (self.content).push_part(row.to_string().as_bytes(), at, shape.bytes());
        }
        Ok(())
    }
}

impl Default for ArrayFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// The images of arrays in files of NumPy, in the order of the list.
    ///
    /// # Errors
    /// A list without images; class names that [`ArrayFiles::with_classes`] received, and labels
    /// that are not names.
    pub fn array_files(list: ArrayFiles) -> Result<Self> {
        let ArrayFiles {
            mut content,
            labels,
            root,
            stamps,
        } = list;
        let Some(root) = root.filter(|_| content.samples() > 0) else {
            return Err(Error::config(
                "no images in these arrays: give at least one",
            ));
        };
        (content.labels, content.classes) = labels.finish().map_err(Error::config)?;
        Self::seal(&root, content)?.rebased(&root, &stamps)
    }

    /// All images of one array in a file of NumPy, without labels.
    ///
    /// # Errors
    /// As [`ArrayFiles::push`]; an array without images.
    pub fn array_file(file: &Path) -> Result<(Self, ScanReport)> {
        let mut list = ArrayFiles::new();
        list.push(file, None, None)?;
        if list.content.samples() == 0 {
            return Err(Error::dataset(file, "has no images"));
        }
        let index = Self::array_files(list)?;
        let report = ScanReport {
            samples: index.len(),
            ..ScanReport::default()
        };
        Ok((index, report))
    }

    /// Whether `path` has the extension of files of NumPy.
    pub fn names_array(path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case(ARRAY_EXTENSION))
    }
}

/// The sides of the array in a file, and the offset of its data.
fn read_header(file: &Path) -> Result<(Vec<u64>, u64)> {
    let failed = |e| Error::io_at("read", file, e);
    let (reader, _) = regular_file::open(file).map_err(failed)?;
    let mut head = Vec::new();
    reader
        .take(npy::HEAD)
        .read_to_end(&mut head)
        .map_err(failed)?;
    npy::read_stack(&head).map_err(|fault| Error::dataset(file, fault.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::Label;

    /// A file as NumPy writes it, of this dictionary.
    fn write(file: &Path, dtype: &str, order: &str, shape: &str, data: &[u8]) {
        let text = format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
        bytes.extend((padded as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(10 + padded - 1, b' ');
        bytes.push(b'\n');
        bytes.extend(data);
        std::fs::write(file, bytes).unwrap();
    }

    #[test]
    fn images_are_found_where_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let data: Vec<u8> = (0..24).collect();
        write(&at("a.npy"), "|u1", "False", "(2, 2, 2, 3)", &data);
        write(&at("b.npy"), "|u1", "False", "(3, 2, 4)", &data);
        let (index, report) = Index::array_file(&at("a.npy")).unwrap();
        assert_eq!((index.len(), report.samples, index.shards()), (2, 2, 1));
        assert_eq!(index.path(1), at("a.npy").join("1"));
        assert_eq!(index.part(1).unwrap().range(), 140..152);
        assert_eq!(index.pixels(0).unwrap().sides(), [2, 2, 3]);
        assert_eq!(index.label(0), Label::None);

        let labels = |n: i64| Some((0..n).map(ItemLabel::Class).collect::<Vec<_>>());
        let mut list = ArrayFiles::new();
        list.push(&at("b.npy"), Some(&[2, 0]), labels(2)).unwrap();
        list.push(&at("a.npy"), None, labels(2)).unwrap();
        let index = Index::array_files(list).unwrap();
        assert_eq!(index.path(0), at("b.npy").join("2"));
        assert_eq!(index.part(0).unwrap().range(), 128 + 16..128 + 24);
        assert_eq!(index.pixels(0).unwrap().sides(), [2, 4, 1]);
        assert_eq!(index.label(3), Label::Class(1));
        // A changed file is noticed when it is opened.
        write(&at("a.npy"), "|u1", "False", "(1, 2, 2, 3)", &data);
        let mut buf = Vec::new();
        let (path, _) = index.locate(3, &mut buf).unwrap();
        assert!(index.open_shard(1, path).is_err());
    }

    #[test]
    fn other_arrays_are_errors_that_name_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.npy");
        for (dtype, order, shape, text) in [
            (
                "<f4",
                "False",
                "(1, 2, 3)",
                "has dtype '<f4' in C order: save it as uint8",
            ),
            ("|u1", "True", "(1, 2, 3)", "in Fortran order"),
            ("|u1", "False", "(1, 3, 2, 8)", "looks like N x C x H x W"),
            ("|u1", "False", "(1, 2, 8, 2)", "with 1 or 3 channels"),
            ("|u1", "False", "(1, 2, 3, 4, 5)", "give N x H x W"),
            ("|u1", "False", "(9, 2, 8)", "is cut off: it has"),
            ("|u1", "False", "(0, 2, 8)", "has no images"),
        ] {
            write(&file, dtype, order, shape, &[0; 48]);
            let e = Index::array_file(&file).unwrap_err().to_string();
            assert!(e.contains(text) && e.contains("a.npy"), "{shape}: {e}");
        }
        std::fs::write(&file, b"no array").unwrap();
        let e = Index::array_file(&file).unwrap_err().to_string();
        assert!(e.contains("does not begin like a NumPy file"), "{e}");
        let e = Index::array_file(&dir.path().join("absent.npy")).unwrap_err();
        assert!(e.to_string().contains("absent.npy"), "{e}");
        write(&file, "|u1", "False", "(2, 2, 2)", &[0; 8]);
        let mut list = ArrayFiles::new();
        let e = list.push(&file, Some(&[2]), None).unwrap_err().to_string();
        assert!(e.contains("has 2 images, and no image 2"), "{e}");
        let e = list.push(&file, None, Some(vec![ItemLabel::Class(1)]));
        let e = e.unwrap_err().to_string();
        assert!(e.contains("has 2 images, and there are 1 labels"), "{e}");
    }
}
