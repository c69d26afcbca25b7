//! Samples whose bytes a program has in memory: image files, or pixels of an array.
//!
//! Runs in the consumer. The bytes are copied once, to sealed memory that all processes share. The
//! index names the memory by the hash of its bytes, so its own hash covers them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use twox_hash::xxhash3_128::Hasher;

use crate::data::index::binary_form::{IndexContent, StoredForm};
use crate::data::index::classes::ClassList;
use crate::data::index::items::{ItemLabel, PLACE};
use crate::data::index::samples::Index;
use crate::data::index::table::labels::TableLabelCollector;
use crate::data::pixel_shape::PixelShape;
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytesWriter;

/// Name of the memfd.
const NAME: &str = "featherload-samples";

/// A list of samples in memory. The id of a sample is its position, from 0.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// use featherload::index::{Index, ItemLabel, Label, MemoryItems};
///
/// let mut items = MemoryItems::new()?;
/// // Two grey images of 8 x 9 pixels.
/// items.push_pixels(&[2, 8, 9], &[0; 144], [ItemLabel::Class(5), ItemLabel::Class(7)])?;
/// let index = Index::memory_items(items)?;
/// assert_eq!(index.label(1), Label::Class(7));
/// assert_eq!(index.path(1), std::path::Path::new("item 1 of the list"));
/// # Ok(())
/// # }
/// ```
pub struct MemoryItems {
    memory: SealedBytesWriter,
    hasher: Hasher,
    labels: TableLabelCollector<'static>,
    /// Bytes of each sample.
    sizes: Vec<u64>,
    /// The first sample of each run of samples in one form.
    forms: Vec<(usize, Option<PixelShape>)>,
}

impl MemoryItems {
    /// A list without items.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new() -> Result<Self> {
        Ok(Self {
            memory: SealedBytesWriter::new(NAME)?,
            hasher: Hasher::new(),
            labels: TableLabelCollector::new(PLACE, None),
            sizes: Vec::new(),
            forms: Vec::new(),
        })
    }

    /// Numbers class names by their position in `classes`. A name that `classes` lacks is an error
    /// of the item.
    #[must_use]
    pub fn with_classes(self, classes: ClassList) -> Self {
        Self {
            labels: TableLabelCollector::new(PLACE, Some(Cow::Owned(classes))),
            ..self
        }
    }

    /// Adds an image: the bytes of a file in any format that is decoded. They are not looked at
    /// before the sample is loaded.
    ///
    /// # Errors
    /// A label of another kind than the first item's, or a class name that is not in the class
    /// list. The system gives no memory.
    pub fn push(&mut self, file: &[u8], label: ItemLabel) -> Result<()> {
        self.begin_form(None);
        self.push_bytes(file, label)
    }

    /// Adds the images of an array in C order, with these sides: N x H x W, or N x H x W x C with 1
    /// or 3 channels.
    ///
    /// # Errors
    /// Other sides; another number of bytes or labels than the sides have; and as
    /// [`MemoryItems::push`].
    pub fn push_pixels(
        &mut self,
        sides: &[u64],
        pixels: &[u8],
        labels: impl IntoIterator<Item = ItemLabel>,
    ) -> Result<()> {
        let wrong = |what: String| Error::config(format!("the array {what}"));
        let (count, shape) = PixelShape::of_array(sides).map_err(wrong)?;
        let bytes = usize::try_from(shape.bytes()).unwrap_or(usize::MAX);
        if pixels.len() as u64 != count.saturating_mul(shape.bytes()) {
            let (found, need) = (pixels.len(), count.saturating_mul(shape.bytes()));
            return Err(wrong(format!(
                "has {found} bytes, and its sides need {need}"
            )));
        }
        self.begin_form(Some(shape));
        let mut labels = labels.into_iter();
        for image in pixels.chunks_exact(bytes) {
            let label = labels.next();
            let label = label.ok_or_else(|| wrong("has more images than labels".into()))?;
            self.push_bytes(image, label)?;
        }
        match labels.next() {
            None => Ok(()),
            Some(_) => Err(wrong("has fewer images than labels".into())),
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether the list has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn begin_form(&mut self, form: Option<PixelShape>) {
        if self.forms.last().is_none_or(|(_, last)| *last != form) {
            self.forms.push((self.len(), form));
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], label: ItemLabel) -> Result<()> {
        let number = self.len() as u64;
        (self.labels.add(number, label.into_value()))
            .map_err(|what| Error::config(format!("{PLACE} {number}: {what}")))?;
        self.memory.write(bytes)?;
        self.hasher.write(bytes);
        self.sizes.push(bytes.len() as u64);
        Ok(())
    }
}

impl std::fmt::Debug for MemoryItems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryItems({} items)", self.len())
    }
}

impl Index {
    /// The samples of a list in memory, in the order of the list. Their bytes belong to the index,
    /// and exist once for all processes.
    ///
    /// # Errors
    /// A list without items; class names that [`MemoryItems::with_classes`] received, and labels
    /// that are not names.
    pub fn memory_items(list: MemoryItems) -> Result<Self> {
        if list.is_empty() {
            return Err(Error::config(
                "no samples in this list: give the bytes of at least one image",
            ));
        }
        let mut content = IndexContent::default();
        (content.labels, content.classes) = list.labels.finish().map_err(Error::config)?;
        let hash = list.hasher.finish_128();
        let ends = list.forms.iter().skip(1).map(|(first, _)| *first);
        let mut ends = ends.chain([list.sizes.len()]);
        let mut at = 0;
        for (number, (first, shape)) in list.forms.iter().enumerate() {
            let range: Range<usize> = *first..ends.next().unwrap_or(*first);
            let name = format!("memory-{number}-{hash:032x}");
            content.begin_form(name.as_bytes(), shape.map(StoredForm::Pixels));
            for (id, bytes) in range.clone().zip(list.sizes.get(range).unwrap_or_default()) {
                content.push_part(id.to_string().as_bytes(), at, *bytes);
                at += bytes;
            }
        }
        Self::seal_in_memory(content, Arc::new(list.memory.seal()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::Label;
    use std::path::Path;

    fn list(images: &[&[u8]]) -> Index {
        let mut items = MemoryItems::new().unwrap();
        for image in images {
            items.push(image, ItemLabel::None).unwrap();
        }
        Index::memory_items(items).unwrap()
    }

    #[test]
    fn bytes_come_back_and_the_hash_covers_them() {
        let index = list(&[b"one", b"", b"three"]);
        assert_eq!(index.len(), 3);
        assert_eq!(index.bytes_in_memory(0), Some(&b"one"[..]));
        assert_eq!(index.bytes_in_memory(1), Some(&b""[..]));
        assert_eq!(index.bytes_in_memory(2), Some(&b"three"[..]));
        assert_eq!(index.bytes_in_memory(3), None);
        assert_eq!(index.path(2), Path::new("item 2 of the list"));
        assert!(index.is_in_memory() && !index.is_remote());
        assert!(index.sandbox_roots().is_empty());
        assert_eq!(index.hash(), list(&[b"one", b"", b"three"]).hash());
        assert_ne!(index.hash(), list(&[b"one", b"", b"threE"]).hash());
        assert_ne!(index.hash(), list(&[b"on", b"e", b"three"]).hash());
    }

    #[test]
    fn other_processes_and_subsets_share_the_memory() {
        let index = list(&[b"one", b"two"]);
        let mut fds = index
            .descriptors()
            .map(|fd| fd.try_clone_to_owned().unwrap());
        let there = Index::from_descriptors(&mut fds).unwrap();
        assert_eq!(there.bytes_in_memory(1), Some(&b"two"[..]));
        assert_eq!(there.hash(), index.hash());
        let copy = index.try_clone().unwrap();
        assert_eq!(copy.bytes_in_memory(0), Some(&b"one"[..]));
        let part = index.subset(&[1]).unwrap();
        assert_eq!(part.bytes_in_memory(0), Some(&b"two"[..]));
        assert_eq!(part.path(0), Path::new("item 1 of the list"));
        // An index without its memory is not usable.
        let mut one = index
            .descriptors()
            .take(1)
            .map(|fd| fd.try_clone_to_owned().unwrap());
        let e = Index::from_descriptors(&mut one).unwrap_err();
        assert!(e.to_string().contains("without that memory"), "{e}");
        let dir = tempfile::tempdir().unwrap();
        let e = index.save(&dir.path().join("a.fli")).unwrap_err();
        assert!(e.to_string().contains("needs samples in files"), "{e}");
        // Of another memory, which is too short.
        let other = list(&[b"x"]);
        let mut mixed = (index.descriptors().take(1))
            .chain(other.descriptors().skip(1))
            .map(|fd| fd.try_clone_to_owned().unwrap());
        let e = Index::from_descriptors(&mut mixed).unwrap_err();
        assert!(e.to_string().contains("ends at byte 6"), "{e}");
    }

    #[test]
    fn arrays_and_files_stand_side_by_side() {
        let mut items = MemoryItems::new().unwrap();
        let labels = || [ItemLabel::Class(1), ItemLabel::Class(2)];
        items
            .push_pixels(&[2, 1, 2, 3], &[7; 12], labels())
            .unwrap();
        items.push_pixels(&[2, 2, 2], &[8; 8], labels()).unwrap();
        items.push(b"a file", ItemLabel::Class(9)).unwrap();
        for (sides, bytes, text) in [
            (&[2, 2, 2][..], 7, "has 7 bytes, and its sides need 8"),
            (&[2, 3, 32, 32], 0, "N x C x H x W"),
            (&[3, 1, 1], 3, "looks like one image"),
            (&[3, 1, 2], 6, "more images than labels"),
            (&[1, 1, 2], 2, "fewer images than labels"),
        ] {
            let e = items.push_pixels(sides, &vec![0; bytes], labels());
            let e = e.unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
        let e = items
            .push(b"a file", ItemLabel::Name("cat".into()))
            .unwrap_err();
        assert!(e.to_string().contains("class name"), "{e}");
        let index = Index::memory_items(items).unwrap();
        let shapes: Vec<_> = (0..3)
            .map(|n| index.pixels(n).map(PixelShape::sides))
            .collect();
        assert_eq!(shapes, [Some([1, 2, 3]), Some([2, 2, 1]), None]);
        assert_eq!(index.label(4), Label::Class(9));
        assert_eq!(index.bytes_in_memory(3), Some(&[8; 4][..]));
        assert_eq!(index.largest_page(), 512 + 6);
    }

    #[test]
    fn an_empty_list_is_an_error() {
        let e = Index::memory_items(MemoryItems::new().unwrap()).unwrap_err();
        assert!(e.to_string().contains("no samples in this list"), "{e}");
    }
}
