//! What the objects of a data set are, without a run.
//!
//! In the consumer. Opens no image, except for its header where boxes are shares of its sides.

use serde::Serialize;

use crate::data::annotations::AnnotationReport;
use crate::data::index::{Index, shown};
use crate::data::objects::ObjectTable;
use crate::data::survey::read_sizes;
use crate::error::{Error, Result};
use crate::loader::object_source::ObjectOptions;
use crate::loader::source::Source;
use crate::picture::{OrientationMode, PictureLimits};

/// Below this many square pixels an object is small, as in COCO.
pub const SMALL_AREA: f64 = 32.0 * 32.0;
/// Below this many square pixels an object is of medium size.
pub const MEDIUM_AREA: f64 = 96.0 * 96.0;
/// Images without objects that are named.
const NAMED: usize = 10;

/// What the objects of a data set are.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ObjectSurvey {
    #[serde(flatten)]
    pub annotations: AnnotationReport,
    /// Objects of the fullest image.
    pub most_in_image: usize,
    pub sizes: ObjectSizes,
    /// The first images without objects. Signs that a terminal would act on are replaced.
    pub first_without_objects: Vec<String>,
}

/// Objects by their area, in the classes of COCO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ObjectSizes {
    pub small: u64,
    pub medium: u64,
    pub large: u64,
    /// Boxes are shares of the sides, and the size of the image is not known.
    pub unknown: u64,
}

impl ObjectSizes {
    fn add(&mut self, area: Option<f64>) {
        *match area {
            None => &mut self.unknown,
            Some(area) if area < SMALL_AREA => &mut self.small,
            Some(area) if area < MEDIUM_AREA => &mut self.medium,
            Some(_) => &mut self.large,
        } += 1;
    }
}

impl ObjectOptions {
    /// Reads the objects of the images of `source`, as a run does. With `reads_headers`, headers of
    /// images give the pixels of boxes that are shares.
    ///
    /// # Errors
    /// A data set or annotations that cannot be read; objects that are a list; a data set in an
    /// object store.
    pub fn survey(&self, source: Source, reads_headers: bool) -> Result<ObjectSurvey> {
        self.check()?;
        let (own, _fetched) = self.downloaded(None)?;
        let columns = own.column_source(&source)?;
        let (index, opened) = match own.open_with_images(&source)? {
            Some(found) => found,
            None => {
                let (index, _) = source.open()?;
                if index.is_remote() && self.are_members() {
                    return Err(Error::option(
                        "objects",
                        "objects: `member` reads JSON beside images, and these shards are in an \
                         object store: use a copy on this machine",
                    ));
                }
                let opened = own.open(&index, columns)?;
                (index, opened)
            }
        };
        let annotations = opened.report.ok_or_else(|| {
            Error::option(
                "objects",
                "objects: those of a cache or of a program have no report: name files, or use `cache \
                 info`",
            )
        })?;
        let sizes = areas(&index, &opened.table, reads_headers)?;
        let none = (0..index.len()).filter(|id| opened.table.count(*id) == 0);
        let path = |id| shown(index.relative_path(id).as_os_str().as_encoded_bytes());
        Ok(ObjectSurvey {
            annotations,
            most_in_image: opened.table.most_objects(),
            sizes,
            first_without_objects: none.take(NAMED).map(path).collect(),
        })
    }
}

fn areas(index: &Index, table: &ObjectTable, reads_headers: bool) -> Result<ObjectSizes> {
    let form = table.form();
    let is_local = !index.is_remote();
    let headers = match form.shares && reads_headers && is_local {
        true => {
            let limits = PictureLimits::default();
            Some(read_sizes(index, &limits, OrientationMode::Exif)?)
        }
        false => None,
    };
    let mut sizes = ObjectSizes::default();
    for id in 0..table.samples() {
        let sample = table.sample(id);
        let size = table.stated_size(id);
        let size = size.or_else(|| headers.as_ref().and_then(|of| of.get(id)));
        let pixels = size.map(|(height, width)| f64::from(height) * f64::from(width));
        for object in 0..sample.len() {
            let [left, top, right, bottom] = form.boxes.corners(sample.numbers[object]);
            let of_box = (right - left) * (bottom - top);
            sizes.add(match (sample.areas.get(object), form.shares) {
                (Some(area), _) => Some(*area),
                (None, false) => Some(of_box),
                (None, true) => pixels.map(|pixels| of_box * pixels),
            });
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_table_and_their_sizes() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path().join("images");
        std::fs::create_dir(&images).unwrap();
        for name in ["a.png", "b.png", "c.png"] {
            image::RgbImage::new(200, 100)
                .save(images.join(name))
                .unwrap();
        }
        let write = |name: &str, text: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            ObjectOptions::new(file.to_str().unwrap())
        };
        let pixels = write(
            "pixels.csv",
            "path,xmin,ymin,xmax,ymax,label\na.png,0,0,31,33,x\na.png,0,0,32,32,y\n\
             a.png,0,0,96,96,x\nb.png,,,,,\nb.png,0,0,96,95,x\nc.png,,,,,\n",
        );
        let source = || Source::detect(&images).unwrap();
        let found = pixels.survey(source(), true).unwrap();
        let sizes = |small, medium, large, unknown| ObjectSizes {
            small,
            medium,
            large,
            unknown,
        };
        assert_eq!(found.sizes, sizes(1, 2, 1, 0));
        assert_eq!((found.most_in_image, found.annotations.objects), (3, 4));
        assert_eq!(found.first_without_objects, ["c.png"]);
        let shares = write(
            "shares.csv",
            "ImageID,XMin,YMin,XMax,YMax,LabelName\na,0,0,1,1,x\na,0,0,0.5,0.1,x\nc,0,0,1,0.1,x\n",
        );
        let found = shares.survey(source(), true).unwrap();
        assert_eq!(found.sizes, sizes(1, 1, 1, 0));
        assert_eq!(found.first_without_objects, ["b.png"]);
        let found = shares.survey(source(), false).unwrap();
        assert_eq!(found.sizes, sizes(0, 0, 0, 3));
    }
}
