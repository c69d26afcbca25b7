//! JSON of COCO: instances, person_keypoints, panoptic segments, LVIS and Roboflow.
//!
//! A file is walked through twice. The first walk finds pictures and categories, and where the
//! annotations of each picture are: 16 bytes each. The second one reads them picture by picture. So
//! a file of any length takes little more memory than its table.
//!
//! - `entries`: pictures and categories; `annotation`: an annotation; `segmentation`: its shape.

mod annotation;
mod entries;
mod segmentation;
#[cfg(test)]
mod tests;

use std::path::Path;

use annotation::{AnnotationFields, AnnotationReader};
use entries::{CategoryEntry, PictureEntry, PictureFault};
pub(super) use segmentation::run_text_fills;

use super::json_file::{JsonFile, MOST_BYTES};
use super::json_value::{self, ValueFault};
use super::options::AnnotationOptions;
use super::pictures::{DescribedPicture, PictureNames, list_below, match_pictures};
use super::report::{AnnotationFault, AnnotationReport, ReportBuilder};
use crate::data::index::{Index, shown};
use crate::data::objects::{ObjectTable, ObjectTableWriter, StatedObjects};
use crate::error::{Error, Result};

/// A data set of annotated pictures.
#[derive(Debug)]
pub(crate) struct AnnotatedSet {
    pub(crate) index: Index,
    pub(crate) table: ObjectTable,
    pub(crate) report: AnnotationReport,
}

/// Objects of the largest picture. The objects of one picture are in memory as they are read.
const MOST_OBJECTS: usize = 1 << 20;

/// Reads the data set that a JSON file describes: its pictures in the order of their ids, below
/// `images`.
///
/// # Errors
/// A damaged file; no pictures, or none that exists of those looked for; no usable annotation;
/// a wrong annotation with [`AnnotationOptions::strict`].
pub(crate) fn read_coco(
    json: &Path,
    images: &Path,
    options: &AnnotationOptions,
) -> Result<AnnotatedSet> {
    let coco = CocoFile::open(json, options)?;
    let described = coco.pictures.iter().map(|of| DescribedPicture {
        name: &of.name,
        number: of.id,
    });
    let index = list_below(json, images, described)?;
    let order: Vec<Option<u32>> = (0..coco.pictures.len() as u32).map(Some).collect();
    let (table, report) = coco.read_objects(&order, options)?;
    Ok(AnnotatedSet {
        index,
        table,
        report,
    })
}

/// Reads the annotations of the images of `index`. They are found by their path in the data set,
/// else by a file name that is unique.
///
/// # Errors
/// As [`read_coco`]; none of the images has an entry.
pub(crate) fn read_coco_for(
    json: &Path,
    index: &Index,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    let mut coco = CocoFile::open(json, options)?;
    let names: Vec<&str> = coco.pictures.iter().map(|of| of.name.as_str()).collect();
    let found = match_pictures(json, index, &names, PictureNames::Paths)?;
    let report = &mut coco.report.report;
    report.images_without_entry = found.images_without_entry;
    report.entries_without_image = found.entries_without_image;
    coco.read_objects(&found.order, options)
}

/// Where an annotation is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AnnotationSpan {
    /// The place of its picture in the order of ids.
    picture: u32,
    offset: u64,
    len: u32,
}

/// A file after the first walk.
struct CocoFile {
    file: JsonFile,
    /// In the order of their ids.
    pictures: Vec<PictureEntry>,
    categories: Vec<CategoryEntry>,
    /// By picture, then as in the file.
    spans: Vec<AnnotationSpan>,
    /// All annotations, those without a picture too.
    annotations: u64,
    report: ReportBuilder,
}

/// The lists of a file, and where they are.
#[derive(Default)]
struct CocoLists {
    has_pictures: bool,
    has_categories: bool,
    has_annotations: bool,
    /// Where the annotations begin, if the pictures come after them.
    later: Option<u64>,
}

impl CocoFile {
    /// Walks through the file for the first time.
    fn open(json: &Path, options: &AnnotationOptions) -> Result<Self> {
        let mut file = JsonFile::open(json)?;
        let mut coco = Self {
            file: file.walk_again()?,
            pictures: Vec::new(),
            categories: Vec::new(),
            spans: Vec::new(),
            annotations: 0,
            report: ReportBuilder::new(options.strict),
        };
        let mut lists = CocoLists::default();
        file.members(|file, key| {
            let (seen, name) = match key {
                b"images" => (&mut lists.has_pictures, "images"),
                b"categories" => (&mut lists.has_categories, "categories"),
                b"annotations" => (&mut lists.has_annotations, "annotations"),
                _ => return file.skip().map(|_| ()),
            };
            if std::mem::replace(seen, true) {
                return Err(Error::dataset(json, format!("has '{name}' twice")));
            }
            match name {
                "images" => coco.read_pictures(file),
                "categories" => coco.read_categories(file),
                _ if lists.has_pictures => coco.find_annotations(file),
                _ => {
                    lists.later = Some(file.skip()?);
                    Ok(())
                }
            }
        })?;
        for (has, name) in [
            (lists.has_pictures, "images"),
            (lists.has_categories, "categories"),
            (lists.has_annotations, "annotations"),
        ] {
            if !has {
                let what = format!(
                    "has no list '{name}': give a file of COCO's form, with images, categories \
                     and annotations"
                );
                return Err(Error::dataset(json, what));
            }
        }
        if let Some(offset) = lists.later {
            file.seek(offset);
            coco.find_annotations(&mut file)?;
        }
        file.check_unchanged()?;
        coco.spans.sort_unstable();
        Ok(coco)
    }

    fn read_pictures(&mut self, file: &mut JsonFile) -> Result<()> {
        let path = file.path().to_owned();
        let (pictures, report) = (&mut self.pictures, &mut self.report);
        let whole = file.bytes();
        let mut number = 0u64;
        file.elements("images", |offset, entry| {
            let place = || format!("images[{number}], at byte {offset}");
            match PictureEntry::read(entry) {
                Ok(picture) => pictures.push(picture),
                Err(PictureFault::Incomplete) => {
                    report.wrong(AnnotationFault::DamagedPicture, &path, place)?;
                }
                Err(PictureFault::TextId(id)) => {
                    let what = format!(
                        "{}: the id '{}' is a text: number images, and write the numbers as \
                         'image_id' of annotations",
                        place(),
                        shown(id.as_bytes())
                    );
                    return Err(Error::dataset(&path, what));
                }
                Err(PictureFault::Structure(e)) => return Err(damaged(&path, whole, offset, e)),
            }
            number += 1;
            Ok(())
        })?;
        if self.pictures.is_empty() {
            return Err(Error::dataset(path, "'images' has no usable entry"));
        }
        if u32::try_from(self.pictures.len()).is_err() {
            return Err(Error::dataset(path, "has more than 4294967295 images"));
        }
        // Stable: of equal ids the first one of the file is kept.
        self.pictures.sort_by_key(|of| of.id);
        let mut doubled = Vec::new();
        self.pictures.dedup_by(|later, first| {
            let is_same = later.id == first.id;
            if is_same {
                doubled.push((later.id, std::mem::take(&mut later.name)));
            }
            is_same
        });
        for (id, name) in doubled {
            let place = || format!("image id {id}, '{}'", shown(name.as_bytes()));
            self.report
                .wrong(AnnotationFault::DoubledPicture, &path, place)?;
        }
        Ok(())
    }

    fn read_categories(&mut self, file: &mut JsonFile) -> Result<()> {
        let path = file.path().to_owned();
        let whole = file.bytes();
        let categories = &mut self.categories;
        file.elements("categories", |offset, entry| {
            match CategoryEntry::read(entry) {
                Ok(Some(category)) => categories.push(category),
                Ok(None) => {
                    let what = format!("the category at byte {offset} has no number as id");
                    return Err(Error::dataset(&path, what));
                }
                Err(e) => return Err(damaged(&path, whole, offset, e)),
            }
            Ok(())
        })
    }

    /// Finds the place of each annotation and its picture.
    fn find_annotations(&mut self, file: &mut JsonFile) -> Result<()> {
        let path = file.path().to_owned();
        let whole = file.bytes();
        let (pictures, spans) = (&self.pictures, &mut self.spans);
        let (report, count) = (&mut self.report, &mut self.annotations);
        file.elements("annotations", |offset, annotation| {
            *count += 1;
            let id = image_id(annotation).map_err(|e| damaged(&path, whole, offset, e))?;
            let picture = id.and_then(|id| pictures.binary_search_by_key(&id, |of| of.id).ok());
            match picture {
                Some(picture) => spans.push(AnnotationSpan {
                    picture: picture as u32,
                    len: annotation.len() as u32,
                    offset,
                }),
                None => {
                    let place = || match id {
                        Some(id) => format!("annotation at byte {offset}, image_id {id}"),
                        None => format!("annotation at byte {offset}, no number as image_id"),
                    };
                    report.wrong(AnnotationFault::MissingPicture, &path, place)?;
                }
            }
            Ok(())
        })?;
        if *count > 0 && spans.is_empty() {
            let what = format!(
                "none of its {count} annotations can be used: {}",
                report.commonest()
            );
            return Err(Error::dataset(path, what));
        }
        Ok(())
    }

    /// Walks through the annotations of the pictures in this order.
    fn read_objects(
        mut self,
        order: &[Option<u32>],
        options: &AnnotationOptions,
    ) -> Result<(ObjectTable, AnnotationReport)> {
        let path = self.file.path().to_owned();
        let form = entries::form(&mut self.categories, options.shapes, options.keypoints);
        let form = form.map_err(|what| Error::dataset(&path, what))?;
        self.report.set_categories(&form.categories);
        let mut reader = AnnotationReader::new(options, &form, &self.categories);
        let mut writer = ObjectTableWriter::new(form)?;
        let mut ids = Vec::new();
        let mut sample = StatedObjects::default();
        let before = self.report.dropped();
        for picture in order {
            sample.objects.clear();
            (sample.size, sample.image_id) = (None, -1);
            if let Some(number) = *picture {
                let picture = &self.pictures[number as usize];
                (sample.size, sample.image_id) = (picture.size, picture.id);
                let start = self.spans.partition_point(|span| span.picture < number);
                let of_picture = self.spans[start..].iter();
                for span in of_picture.take_while(|span| span.picture == number) {
                    let annotation = self.file.bytes_at(span.offset, span.len as usize)?;
                    let part = AnnotationPart {
                        path: &path,
                        offset: span.offset,
                        image_id: picture.id,
                    };
                    part.read(
                        annotation,
                        &mut reader,
                        &mut sample,
                        &mut self.report,
                        &mut ids,
                    )?;
                }
            }
            for object in &sample.objects {
                self.report.object(object.label, object.crowd);
            }
            self.report.image(sample.objects.len());
            writer.push(&sample)?;
        }
        self.file.check_unchanged()?;
        let has_objects = self.report.report.objects + self.report.report.crowds_dropped > 0;
        if !has_objects && self.report.dropped() > before {
            let what = format!(
                "none of its annotations can be used: {}",
                self.report.commonest()
            );
            return Err(Error::dataset(path, what));
        }
        ids.sort_unstable();
        for pair in ids.windows(2).filter(|pair| pair[0] == pair[1]) {
            let place = || format!("annotation id {}", pair[0]);
            self.report
                .wrong(AnnotationFault::DoubledId, &path, place)?;
        }
        Ok((writer.finish()?, self.report.finish()))
    }
}

/// An annotation on its way into the objects of its picture.
struct AnnotationPart<'a> {
    path: &'a Path,
    offset: u64,
    image_id: i64,
}

impl AnnotationPart<'_> {
    fn read(
        &self,
        annotation: &[u8],
        reader: &mut AnnotationReader<'_>,
        sample: &mut StatedObjects,
        report: &mut ReportBuilder,
        ids: &mut Vec<i64>,
    ) -> Result<()> {
        let fields = AnnotationFields::of(annotation);
        let fields = fields.map_err(|e| self.damaged(e))?;
        let Some(segments) = fields.segments else {
            let before = sample.objects.len();
            self.add(&fields, reader, sample, report)?;
            ids.extend(
                sample.objects[before..]
                    .iter()
                    .map(|of| of.id)
                    .filter(|id| *id != -1),
            );
            return Ok(());
        };
        // Ids of segments are colours: each picture begins anew.
        let (mut result, mut wrong) = (Ok(()), None);
        let walked = json_value::elements(segments, |segment| {
            if result.is_err() || wrong.is_some() {
                return;
            }
            match AnnotationFields::of(segment) {
                Ok(fields) => result = self.add(&fields, reader, sample, report),
                Err(e) => wrong = Some(e),
            }
        });
        let walked = walked.and(wrong.map_or(Ok(()), Err));
        walked.map_err(|e| self.damaged(e))?;
        result
    }

    fn add(
        &self,
        fields: &AnnotationFields<'_>,
        reader: &mut AnnotationReader<'_>,
        sample: &mut StatedObjects,
        report: &mut ReportBuilder,
    ) -> Result<()> {
        let place = || {
            let (id, image, offset) = (fields.id(), self.image_id, self.offset);
            format!("annotation id {id} of image {image}, at byte {offset}")
        };
        let read = match reader.object(fields, sample.size) {
            Ok(read) => read,
            Err(fault) => return report.wrong(fault, self.path, place),
        };
        for fault in read.faults {
            report.wrong(fault, self.path, place)?;
        }
        let Some(object) = read.object else {
            report.report.crowds_dropped += 1;
            return Ok(());
        };
        if sample.objects.len() == MOST_OBJECTS {
            let what = format!(
                "image {} has more than {MOST_OBJECTS} objects",
                self.image_id
            );
            return Err(Error::dataset(self.path, what));
        }
        sample.objects.push(object);
        Ok(())
    }

    fn damaged(&self, e: ValueFault) -> Error {
        let at = self.offset + e.at as u64;
        Error::dataset(self.path, format!("not JSON: {}, at byte {at}", e.what))
    }
}

/// The number of an annotation's picture. The last one of equal keys counts.
fn image_id(annotation: &[u8]) -> Result<Option<i64>, ValueFault> {
    let mut id = None;
    json_value::members(annotation, |key, value| {
        if &*key == b"image_id" {
            id = json_value::integer(value);
        }
    })?;
    Ok(id)
}

fn damaged(path: &Path, whole: u64, offset: u64, e: ValueFault) -> Error {
    let at = offset + e.at as u64;
    let what = format!("not JSON: {}, at byte {at} of {whole}", e.what);
    Error::dataset(path, what)
}

const _: () = assert!(MOST_BYTES < u32::MAX as usize);
