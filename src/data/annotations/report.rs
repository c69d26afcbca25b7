//! What annotations have, and what is wrong with them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::data::index::shown;
use crate::data::objects::ObjectCategory;
use crate::error::{Error, Result};

/// What is wrong with an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnnotationFault {
    /// Its picture has no entry.
    MissingPicture,
    /// The entry of a picture lacks id or file name.
    DamagedPicture,
    /// Two pictures have one id. The first one is kept.
    DoubledPicture,
    /// It cannot be read: a field is missing, or is no number.
    Damaged,
    UnknownCategory,
    /// No box of four numbers.
    MissingBox,
    /// NaN, infinite, or too large for a number.
    NotFinite,
    /// A box without width or height.
    EmptyBox,
    /// A box outside of the picture.
    OutsideBox,
    /// An outline of fewer than three points, or of an odd count of numbers.
    ShortOutline,
    /// Run lengths of another size than the picture, or that do not fill it.
    WrongRuns,
    /// Another count of keypoints than the category has.
    WrongKeypoints,
    /// The same row again.
    DoubledRow,
    /// Lists of one picture that differ in their lengths.
    UnevenLists,
    /// A box that is partly outside, by more than a pixel. It is kept.
    PartlyOutside,
    /// Two objects have one id. Both are kept.
    DoubledId,
    /// A negative area, or one that is no number. The object is kept, with the area of its box.
    WrongArea,
    /// Keypoints of a category without names of keypoints. The object is kept, without them.
    UnnamedKeypoints,
}

impl AnnotationFault {
    /// Whether the object stays.
    #[must_use]
    pub fn is_kept(self) -> bool {
        matches!(
            self,
            Self::PartlyOutside | Self::DoubledId | Self::WrongArea | Self::UnnamedKeypoints
        )
    }

    fn text(self) -> &'static str {
        match self {
            Self::MissingPicture => "of a picture without an entry",
            Self::DamagedPicture => "pictures without a number as id or without a file name",
            Self::DoubledPicture => "pictures with the id of another one",
            Self::Damaged => "that cannot be read",
            Self::UnknownCategory => "of an unknown category",
            Self::MissingBox => "without a box of four numbers",
            Self::NotFinite => "with a number that is not finite",
            Self::EmptyBox => "with a box without width or height",
            Self::OutsideBox => "with a box outside of the picture",
            Self::ShortOutline => "outlines of fewer than three points",
            Self::WrongRuns => "with run lengths that do not fit the picture",
            Self::WrongKeypoints => "with another count of keypoints than the category",
            Self::DoubledRow => "rows that are there twice",
            Self::UnevenLists => "rows with lists of different lengths",
            Self::PartlyOutside => "with a box partly outside of the picture",
            Self::DoubledId => "with the id of another object",
            Self::WrongArea => "without a usable area",
            Self::UnnamedKeypoints => "with keypoints that the category does not name",
        }
    }
}

/// Wrong annotations of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    pub fault: AnnotationFault,
    pub count: u64,
    /// Whether the objects stay.
    pub kept: bool,
    /// Where the first of them are.
    pub first: Vec<String>,
}

impl fmt::Display for FaultCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = if self.kept { "kept" } else { "dropped" };
        let first = self.first.first().map_or("", String::as_str);
        write!(
            f,
            "{} {}: {result}; first: {first}",
            self.count,
            self.fault.text()
        )
    }
}

/// A category, its label, and its objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CategoryCount {
    /// The number in the annotation.
    pub id: i64,
    /// The number in batches.
    pub label: usize,
    pub name: String,
    pub objects: u64,
}

/// What annotations have, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AnnotationReport {
    pub images: u64,
    pub objects: u64,
    pub images_without_objects: u64,
    /// Images of the data set that the annotations do not name.
    pub images_without_entry: u64,
    /// Entries whose images are not in the data set.
    pub entries_without_image: u64,
    /// Objects that stand for several.
    pub crowds: u64,
    pub crowds_dropped: u64,
    pub categories: Vec<CategoryCount>,
    pub wrong: Vec<FaultCount>,
}

impl AnnotationReport {
    /// The number of wrong annotations of a kind.
    #[must_use]
    pub fn count(&self, fault: AnnotationFault) -> u64 {
        let found = self.wrong.iter().find(|of| of.fault == fault);
        found.map_or(0, |of| of.count)
    }
}

impl fmt::Display for AnnotationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} objects of {} categories in {} images, {} of them without objects",
            self.objects,
            self.categories.len(),
            self.images,
            self.images_without_objects
        )?;
        for (count, what) in [
            (
                self.images_without_entry,
                "images that the annotations do not name",
            ),
            (
                self.entries_without_image,
                "annotated images that are not in the data set",
            ),
            (self.crowds, "crowds"),
            (self.crowds_dropped, "crowds dropped"),
        ] {
            if count > 0 {
                write!(f, "\n{count} {what}")?;
            }
        }
        for of in &self.wrong {
            write!(f, "\n{of}")?;
        }
        if !self.categories.is_empty() {
            write!(f, "\nlabel  category id  objects  name")?;
        }
        for of in &self.categories {
            let (label, id, objects) = (of.label, of.id, of.objects);
            let name = shown(of.name.as_bytes());
            write!(f, "\n{label:>5}  {id:>11}  {objects:>7}  {name}")?;
        }
        Ok(())
    }
}

/// Places that are kept of each kind.
const FIRST: usize = 3;

/// Collects what a report has while annotations are read.
pub(super) struct ReportBuilder {
    strict: bool,
    pub(super) report: AnnotationReport,
    wrong: BTreeMap<AnnotationFault, FaultCount>,
    /// Objects of each label.
    objects: Vec<u64>,
}

impl ReportBuilder {
    pub(super) fn new(strict: bool) -> Self {
        Self {
            strict,
            report: AnnotationReport::default(),
            wrong: BTreeMap::new(),
            objects: Vec::new(),
        }
    }

    /// The categories by their labels.
    pub(super) fn set_categories(&mut self, categories: &[ObjectCategory]) {
        let count = |(label, of): (usize, &ObjectCategory)| CategoryCount {
            id: of.id,
            label,
            name: of.name.clone(),
            objects: 0,
        };
        self.report.categories = categories.iter().enumerate().map(count).collect();
    }

    /// Counts a wrong annotation.
    ///
    /// # Errors
    /// Always, if wrong annotations are errors.
    pub(super) fn wrong(
        &mut self,
        fault: AnnotationFault,
        file: &Path,
        place: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.strict {
            let text = fault.text();
            let what = format!("{}: {text}: correct it, or leave `strict` out", place());
            return Err(Error::dataset(file, what));
        }
        let of = self.wrong.entry(fault).or_insert_with(|| FaultCount {
            fault,
            count: 0,
            kept: fault.is_kept(),
            first: Vec::new(),
        });
        of.count += 1;
        if of.first.len() < FIRST {
            // The end of a path differs among label files.
            let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
            let file = Path::new(folder).join(file.file_name().unwrap_or_default());
            let file = shown(file.as_os_str().as_encoded_bytes());
            of.first.push(format!("{file}: {}", place()));
        }
        Ok(())
    }

    /// Counts an object that is kept.
    pub(super) fn object(&mut self, label: u32, crowd: bool) {
        self.report.objects += 1;
        self.report.crowds += u64::from(crowd);
        let label = label as usize;
        if self.objects.len() <= label {
            self.objects.resize(label + 1, 0);
        }
        self.objects[label] += 1;
    }

    /// Sets the categories when the labels so far were those of the time being.
    /// `labels`: the final one of each of them.
    pub(super) fn relabel(&mut self, categories: &[ObjectCategory], labels: &[u32]) {
        let mut objects = vec![0; categories.len()];
        for (label, count) in labels.iter().zip(&self.objects) {
            objects[*label as usize] = *count;
        }
        self.objects = objects;
        self.set_categories(categories);
    }

    /// Counts an image with this many objects.
    pub(super) fn image(&mut self, objects: usize) {
        self.report.images += 1;
        self.report.images_without_objects += u64::from(objects == 0);
    }

    /// Wrong annotations that were dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        let dropped = self.wrong.values().filter(|of| !of.kept);
        dropped.map(|of| of.count).sum()
    }

    /// The commonest wrong annotations so far, as text.
    pub(super) fn commonest(&self) -> String {
        let most = self.wrong.values().max_by_key(|of| of.count);
        most.map_or(String::new(), |of| {
            let first = of.first.first().map_or("", String::as_str);
            format!("{} {}, first {first}", of.count, of.fault.text())
        })
    }

    pub(super) fn finish(mut self) -> AnnotationReport {
        for (of, count) in self.report.categories.iter_mut().zip(self.objects) {
            of.objects = count;
        }
        AnnotationReport {
            wrong: self.wrong.into_values().collect(),
            ..self.report
        }
    }
}
