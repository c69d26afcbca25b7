//! Boxes that a file lists in any order, with the names of their pictures.
//!
//! All of them are in memory, with 48 bytes each, until they are sorted by picture.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::category_finder::CategoryFinder;
use super::coco::AnnotatedSet;
use super::label_files::check_some;
use super::options::{AnnotationOptions, CrowdPolicy};
use super::pictures::{DescribedPicture, PictureNames, list_below, match_pictures};
use super::report::{AnnotationFault, AnnotationReport, ReportBuilder};
use crate::data::index::Index;
use crate::data::objects::{
    BoxForm, ObjectForm, ObjectTable, ObjectTableWriter, StatedObject, StatedObjects,
};
use crate::error::{self, Error, Result};
use crate::sys::memory;

/// Objects of the largest picture.
const MOST_OBJECTS: usize = 1 << 20;
/// Rows between two looks at the available memory.
const LOOK: usize = 1 << 20;

/// A box of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoxRow {
    pub(super) numbers: [f64; 4],
    /// By [`BoxRows::picture`].
    pub(super) picture: u32,
    /// By the finder of categories.
    pub(super) label: u32,
    pub(super) crowd: bool,
}

/// The name of a picture, with height and width if the file states them.
type NamedPicture = (Arc<str>, Option<(u32, u32)>);

/// The boxes of a file, as they are read.
pub(super) struct BoxRows<'a> {
    file: &'a Path,
    boxes: BoxForm,
    shares: bool,
    crowds: CrowdPolicy,
    /// In the order of their first rows.
    pictures: Vec<NamedPicture>,
    by_name: HashMap<Arc<str>, u32>,
    rows: Vec<BoxRow>,
    pub(super) categories: CategoryFinder,
    pub(super) report: ReportBuilder,
}

impl<'a> BoxRows<'a> {
    pub(super) fn new(
        file: &'a Path,
        (boxes, shares): (BoxForm, bool),
        names: Option<&[String]>,
        options: &AnnotationOptions,
    ) -> Self {
        Self {
            file,
            boxes,
            shares,
            crowds: options.crowds,
            pictures: Vec::new(),
            by_name: HashMap::new(),
            rows: Vec::new(),
            categories: CategoryFinder::new(names),
            report: ReportBuilder::new(options.strict),
        }
    }

    /// The number of a picture.
    ///
    /// # Errors
    /// Too many pictures.
    pub(super) fn picture(&mut self, name: &str, size: Option<(u32, u32)>) -> Result<u32> {
        if let Some(number) = self.by_name.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.pictures.len());
        let number =
            number.map_err(|_| Error::dataset(self.file, "has more than 4294967295 images"))?;
        let name: Arc<str> = name.into();
        self.pictures.push((name.clone(), size));
        self.by_name.insert(name, number);
        Ok(number)
    }

    /// Counts a wrong row.
    ///
    /// # Errors
    /// Always, if wrong annotations are errors.
    pub(super) fn wrong(&mut self, fault: AnnotationFault, line: u64) -> Result<()> {
        self.report
            .wrong(fault, self.file, || format!("line {line}"))
    }

    /// Adds a box.
    ///
    /// # Errors
    /// There is no memory for more.
    pub(super) fn push(&mut self, row: BoxRow) -> Result<()> {
        if row.crowd && self.crowds == CrowdPolicy::Drop {
            self.report.report.crowds_dropped += 1;
            return Ok(());
        }
        if self.rows.len() == self.rows.capacity() && self.rows.len() >= LOOK {
            self.check_room(memory::available_bytes())?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// A vector grows to twice its length.
    fn check_room(&self, available: Option<u64>) -> Result<()> {
        let bytes = 2 * (self.rows.len() * size_of::<BoxRow>()) as u64;
        match available {
            Some(room) if bytes > room / 2 => Err(Error::dataset(
                self.file,
                format!(
                    "has more than {} boxes, which take {}, more than half of the available \
                     memory: split the file",
                    self.rows.len(),
                    error::size_rounded_up(bytes)
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The data set of the pictures below `images`, in the order of the file.
    ///
    /// # Errors
    /// No picture; a name that leads out of the folder; no image that exists; no usable box.
    pub(super) fn finish_with_images(mut self, images: &Path) -> Result<AnnotatedSet> {
        self.check_pictures()?;
        let described = (0..).zip(&self.pictures).map(|(number, (name, _))| {
            // Of rows, the first has the number 1.
            DescribedPicture {
                name,
                number: number + 1,
            }
        });
        let index = list_below(self.file, images, described)?;
        let order: Vec<Option<u32>> = (0..self.pictures.len() as u32).map(Some).collect();
        let (table, report) = self.finish(&order)?;
        Ok(AnnotatedSet {
            index,
            table,
            report,
        })
    }

    /// The objects of the images of `index`.
    ///
    /// # Errors
    /// No picture, or none of `index`; no usable box.
    pub(super) fn finish_for(
        mut self,
        index: &Index,
        form: PictureNames,
    ) -> Result<(ObjectTable, AnnotationReport)> {
        self.check_pictures()?;
        let names: Vec<&str> = self.pictures.iter().map(|(name, _)| &**name).collect();
        let found = match_pictures(self.file, index, &names, form)?;
        let report = &mut self.report.report;
        report.images_without_entry = found.images_without_entry;
        report.entries_without_image = found.entries_without_image;
        self.finish(&found.order)
    }

    fn check_pictures(&mut self) -> Result<()> {
        if !self.pictures.is_empty() {
            // Only needed while rows are read.
            self.by_name = HashMap::new();
            return Ok(());
        }
        let what = match self.report.dropped() {
            0 => "has no rows".to_owned(),
            _ => format!("has no row with an image: {}", self.report.commonest()),
        };
        Err(Error::dataset(self.file, what))
    }

    fn finish(mut self, order: &[Option<u32>]) -> Result<(ObjectTable, AnnotationReport)> {
        let found = self.categories.finish();
        self.report.set_categories(&found.categories);
        if !self.rows.is_sorted_by_key(|row| row.picture) {
            self.rows.sort_by_key(|row| row.picture);
        }
        let mut writer = ObjectTableWriter::new(ObjectForm {
            boxes: self.boxes,
            shares: self.shares,
            area: !self.shares,
            categories: found.categories,
            ..ObjectForm::default()
        })?;
        let mut sample = StatedObjects::default();
        for picture in order {
            sample.objects.clear();
            (sample.size, sample.image_id) = (None, -1);
            if let Some(picture) = *picture {
                sample.size = self.pictures[picture as usize].1;
                let start = self.rows.partition_point(|row| row.picture < picture);
                let rows = &self.rows[start..];
                let count = rows.partition_point(|row| row.picture == picture);
                if count > MOST_OBJECTS {
                    let name = &self.pictures[picture as usize].0;
                    let what = format!("image '{name}' has more than {MOST_OBJECTS} objects");
                    return Err(Error::dataset(self.file, what));
                }
                for row in &rows[..count] {
                    let [left, top, right, bottom] = self.boxes.corners(row.numbers);
                    let label = found.labels[row.label as usize];
                    self.report.object(label, row.crowd);
                    sample.objects.push(StatedObject {
                        numbers: row.numbers,
                        label,
                        id: -1,
                        area: (right - left) * (bottom - top),
                        crowd: row.crowd,
                        ..StatedObject::default()
                    });
                }
            }
            self.report.image(sample.objects.len());
            writer.push(&sample)?;
        }
        check_some(&self.report, self.file, "correct the file")?;
        Ok((writer.finish()?, self.report.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_memory_are_refused() {
        let options = AnnotationOptions::default();
        let form = (BoxForm::Xyxy, false);
        let mut rows = BoxRows::new(Path::new("boxes.csv"), form, None, &options);
        let picture = rows.picture("a.jpg", None).unwrap();
        let label = rows.categories.of_name("cat").unwrap();
        for _ in 0..1000 {
            let row = BoxRow {
                numbers: [0.0, 0.0, 1.0, 1.0],
                picture,
                label,
                crowd: false,
            };
            rows.push(row).unwrap();
        }
        assert_eq!(size_of::<BoxRow>(), 48);
        assert!(rows.check_room(Some(192_000)).is_ok());
        assert!(rows.check_room(None).is_ok());
        let e = rows.check_room(Some(191_998)).unwrap_err().to_string();
        assert!(e.contains("boxes.csv: has more than 1000 boxes"), "{e}");
    }
}
