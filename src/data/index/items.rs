//! Samples that a program lists one by one, such as a list of paths and labels in Python.
//!
//! Runs in the consumer. Opens no file: a path that has none is found when its sample is loaded,
//! as for a list file.
//!
//! The root of the index is the longest folder that all paths share. So the index holds each path
//! once, without that folder, and a run resumes after the folder was moved.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::address_text;
use crate::data::index::binary_form::IndexContent;
use crate::data::index::classes::ClassList;
use crate::data::index::label_value::LabelValue;
use crate::data::index::list_root::{self, AddressRows, PathFault};
use crate::data::index::names::shown;
use crate::data::index::samples::Index;
use crate::data::index::table::labels::TableLabelCollector;
use crate::error::{Error, Result};

/// A word for the place of a sample in error texts, as "line" is for files.
pub(super) const PLACE: &str = "item";

/// The label of one item. All items of a list have the same kind of label.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ItemLabel {
    /// No label.
    None,
    /// The number of a class.
    Class(i64),
    /// The name of a class. Names are numbered in the order of their bytes, from 0, or by the list
    /// that [`ItemList::with_classes`] received.
    Name(String),
    /// Numbers, the same count for each item. One number is a vector of width 1.
    Vector(Vec<f32>),
}

impl ItemLabel {
    /// The value that labels of a list are collected from.
    pub(in crate::data::index) fn into_value(self) -> Option<LabelValue> {
        match self {
            Self::None => None,
            Self::Class(number) => Some(LabelValue::Number(number)),
            Self::Name(name) => Some(LabelValue::Name(name.into_bytes())),
            Self::Vector(values) => Some(LabelValue::Vector(values)),
        }
    }
}

/// A list of samples: the path of an image file and a label each. The id of a sample is its
/// position, from 0.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// use featherload::index::{Index, ItemLabel, ItemList, Label};
///
/// let mut items = ItemList::new();
/// items.push("/data/cat/1.jpg", ItemLabel::Name("cat".into()))?;
/// items.push("/data/ant/7.jpg", ItemLabel::Name("ant".into()))?;
/// let index = Index::items(items)?;
/// assert_eq!(index.root(), std::path::Path::new("/data"));
/// assert_eq!(index.label(0), Label::Class(1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ItemList {
    content: IndexContent,
    labels: TableLabelCollector<'static>,
    /// Folder of relative paths, with a slash at its end. Empty until a relative path comes.
    start: Vec<u8>,
    /// Bytes that all paths begin with, up to and with a slash; None before the first path.
    shared: Option<Vec<u8>>,
    rows: AddressRows,
}

impl ItemList {
    /// A list without items. Relative paths start from the working directory.
    pub fn new() -> Self {
        Self {
            content: IndexContent::default(),
            labels: TableLabelCollector::new(PLACE, None),
            start: Vec::new(),
            shared: None,
            rows: AddressRows::default(),
        }
    }

    /// Like [`ItemList::new`], with the folder that relative paths start from.
    ///
    /// # Errors
    /// `root` is relative, and the working directory does not exist.
    pub fn in_folder(root: &Path) -> Result<Self> {
        let root = std::path::absolute(root).map_err(|e| Error::io_at("find", root, e))?;
        Ok(Self {
            start: with_slash(&root),
            ..Self::new()
        })
    }

    /// Numbers class names by their position in `classes`. A name that `classes` lacks is an error
    /// of [`ItemList::push`].
    #[must_use]
    pub fn with_classes(self, classes: ClassList) -> Self {
        Self {
            labels: TableLabelCollector::new(PLACE, Some(Cow::Owned(classes))),
            ..self
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// An empty path, an address of no known store, an address beside files, a path with a zero
    /// byte, a label of another kind than the first item's, or a class name that is not in the
    /// class list. The error names the item by its position.
    pub fn push(&mut self, path: impl AsRef<Path>, label: ItemLabel) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        let number = self.content.samples() as u64;
        let failed = |what: String| Error::config(format!("{PLACE} {number}: {what}"));
        if path.is_empty() {
            return Err(failed(
                "the path is empty: give the path of an image".into(),
            ));
        }
        if path.contains(&0) {
            let path = shown(path);
            return Err(failed(format!(
                "path '{path}' has a zero byte, and no file has"
            )));
        }
        if path.ends_with(b"/") {
            let path = shown(path);
            return Err(failed(format!(
                "path '{path}' is a folder's: give the path of an image"
            )));
        }
        if list_root::is_address(path) {
            if !address_text::is_of_store(path) {
                return Err(failed(PathFault::Address(shown(path)).text()));
            }
            let checked = self.rows.add(path, true);
            checked.map_err(|bad| failed(bad.text()))?;
            self.labels
                .add(number, label.into_value())
                .map_err(failed)?;
            self.content.push_path(path);
            return Ok(());
        }
        let checked = self.rows.add(path, false);
        checked.map_err(|bad| failed(bad.text()))?;
        if !path.starts_with(b"/") && self.start.is_empty() {
            let here =
                std::env::current_dir().map_err(|e| Error::io("find the working directory", e))?;
            self.start = with_slash(&here);
        }
        self.labels
            .add(number, label.into_value())
            .map_err(failed)?;
        if path.starts_with(b"/") && !has_double_slash(path) {
            self.share(path);
            self.content.push_path(path);
        } else {
            let start: &[u8] = if path.starts_with(b"/") {
                b""
            } else {
                &self.start
            };
            let mut whole = [start, path].concat();
            // Without the shared folder, the rest of `/a//b` would begin at `/`.
            whole.dedup_by(|a, b| *a == b'/' && *b == b'/');
            self.share(&whole);
            self.content.push_path(&whole);
        }
        Ok(())
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.content.samples()
    }

    /// Whether the list has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn share(&mut self, path: &[u8]) {
        let folder = folder_of(path);
        match &mut self.shared {
            None => self.shared = Some(folder.to_vec()),
            Some(shared) if path.starts_with(shared) => {}
            Some(shared) => {
                let equal = shared
                    .iter()
                    .zip(folder)
                    .take_while(|(a, b)| a == b)
                    .count();
                let slash = shared[..equal].iter().rposition(|b| *b == b'/');
                shared.truncate(slash.map_or(0, |at| at + 1));
            }
        }
    }
}

impl Default for ItemList {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// The samples that a program listed, in the order of the list.
    ///
    /// # Errors
    /// A list without items; class names that [`ItemList::with_classes`] received, and labels that
    /// are not names.
    pub fn items(list: ItemList) -> Result<Self> {
        if list.is_empty() {
            return Err(Error::config(
                "no samples in this list: give the path of at least one image",
            ));
        }
        let (root, content) = list.into_content()?;
        Self::seal(&root, content)
    }
}

impl ItemList {
    /// The folder that all paths share, and the samples below it.
    pub(in crate::data::index) fn into_content(self) -> Result<(PathBuf, IndexContent)> {
        let Self {
            mut content,
            labels,
            shared,
            rows,
            ..
        } = self;
        (content.labels, content.classes) = labels.finish().map_err(Error::config)?;
        if rows.are_addresses() {
            return Ok((PathBuf::from(address_text::ROOT), content));
        }
        let shared = shared.unwrap_or_default();
        // `a/../b` may leave the shared folder, so such paths start from `/`.
        let is_parent = |part: &[u8]| part == b"..";
        let leaves = content
            .paths()
            .any(|path| path[shared.len()..].split(|b| *b == b'/').any(is_parent));
        let shared = if leaves { b"/".as_slice() } else { &shared };
        content.strip(shared.len());
        let root = match shared {
            b"/" => shared,
            shared => shared.strip_suffix(b"/").unwrap_or(shared),
        };
        Ok((PathBuf::from(OsStr::from_bytes(root)), content))
    }
}

fn has_double_slash(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair == b"//")
}

fn with_slash(folder: &Path) -> Vec<u8> {
    let mut bytes = folder.as_os_str().as_bytes().to_vec();
    if bytes.last() != Some(&b'/') {
        bytes.push(b'/');
    }
    bytes
}

/// A path up to its last slash, with it. The path is absolute.
fn folder_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|b| *b == b'/');
    &path[..slash.map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::Label;

    fn of(paths: &[&str]) -> Index {
        let mut items = ItemList::in_folder(Path::new("/sets/in")).unwrap();
        for path in paths {
            items.push(path, ItemLabel::None).unwrap();
        }
        Index::items(items).unwrap()
    }

    fn paths(index: &Index) -> Vec<PathBuf> {
        (0..index.len()).map(|id| index.path(id)).collect()
    }

    #[test]
    fn the_root_is_the_longest_folder_of_all_paths() {
        for (given, root, relative) in [
            (&["/a/b/c.jpg"] as &[&str], "/a/b", &["c.jpg"] as &[&str]),
            (
                &["/a/b/c.jpg", "/a/bc/d.jpg"],
                "/a",
                &["b/c.jpg", "bc/d.jpg"],
            ),
            (
                &["/a/bc/d.jpg", "/a/b/c.jpg"],
                "/a",
                &["bc/d.jpg", "b/c.jpg"],
            ),
            (&["/a/x.jpg", "/b/x.jpg"], "/", &["a/x.jpg", "b/x.jpg"]),
            (&["/x.jpg"], "/", &["x.jpg"]),
            (
                &["/a/b.jpg", "/a//c.jpg", "//a/d//e.jpg"],
                "/a",
                &["b.jpg", "c.jpg", "d/e.jpg"],
            ),
            (&["c.jpg", "d/e.jpg"], "/sets/in", &["c.jpg", "d/e.jpg"]),
            (&["c.jpg", "/sets/d.jpg"], "/sets", &["in/c.jpg", "d.jpg"]),
            (
                &["/a/b/c.jpg", "/a/b/../d.jpg"],
                "/",
                &["a/b/c.jpg", "a/b/../d.jpg"],
            ),
        ] {
            let index = of(given);
            assert_eq!(index.root(), Path::new(root), "{given:?}");
            let want: Vec<PathBuf> = relative.iter().map(PathBuf::from).collect();
            let got: Vec<PathBuf> = (0..index.len())
                .map(|id| index.relative_path(id).to_owned())
                .collect();
            assert_eq!(got, want, "{given:?}");
        }
        assert_eq!(
            paths(&of(&["c.jpg", "/sets/d.jpg"])),
            [Path::new("/sets/in/c.jpg"), Path::new("/sets/d.jpg")]
        );
    }

    #[test]
    fn labels_are_of_one_kind_and_names_are_numbered_by_their_bytes() {
        let mut items = ItemList::new();
        for name in ["cat", "ant", "cat"] {
            items.push("/a.jpg", ItemLabel::Name(name.into())).unwrap();
        }
        let e = items.push("/a.jpg", ItemLabel::Class(3)).unwrap_err();
        assert!(
            e.to_string().contains(
                "item 3: the label is a whole number, and that of item 0 is a class name"
            ),
            "{e}"
        );
        let index = Index::items(items).unwrap();
        let labels: Vec<Label<'_>> = (0..3).map(|id| index.label(id)).collect();
        assert_eq!(labels, [Label::Class(1), Label::Class(0), Label::Class(1)]);
        assert_eq!(index.len(), 3);

        let classes = ClassList::new(["cat", "ant"]).unwrap();
        let mut items = ItemList::new().with_classes(classes);
        items.push("/a.jpg", ItemLabel::Name("ant".into())).unwrap();
        let e = items
            .push("/a.jpg", ItemLabel::Name("bee".into()))
            .unwrap_err();
        assert!(e.to_string().contains("item 1: class 'bee' is not"), "{e}");
        assert_eq!(Index::items(items).unwrap().label(0), Label::Class(1));

        let mut items = ItemList::new();
        items.push("/a.jpg", ItemLabel::Vector(vec![0.5])).unwrap();
        items.push("/b.jpg", ItemLabel::Class(2)).unwrap();
        let index = Index::items(items).unwrap();
        assert!(matches!(index.label(1), Label::Vector(v) if v.iter().eq([2.0])));
    }

    #[test]
    fn bad_paths_are_named_by_their_item() {
        let mut items = ItemList::new();
        items.push("/a.jpg", ItemLabel::None).unwrap();
        for (path, what) in [
            ("", "item 1: the path is empty"),
            ("/a\0b", "item 1: path '/a\\u{0}b' has a zero byte"),
            ("/a/", "item 1: path '/a/' is a folder's"),
            (
                "ftp://host/a.jpg",
                "item 1: path 'ftp://host/a.jpg' is an address of no known store",
            ),
            (
                "s3://bucket/a.jpg",
                "item 1: path 's3://bucket/a.jpg' is of another kind",
            ),
        ] {
            let e = items.push(path, ItemLabel::None).unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        }
        assert_eq!(items.len(), 1);
        let e = Index::items(ItemList::new()).unwrap_err().to_string();
        assert!(e.contains("no samples in this list"), "{e}");
    }
}
