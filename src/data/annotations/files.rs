//! Which files an option names, and reading them.

use std::path::{Path, PathBuf};

use super::box_csv::{read_csv, read_csv_for};
use super::coco::{AnnotatedSet, read_coco, read_coco_for};
use super::options::AnnotationOptions;
use super::polygon_json::read_polygons;
use super::report::AnnotationReport;
use super::voc::read_voc;
use super::wider_face::{is_named as is_wider_face, read_wider_face, read_wider_face_for};
use super::yolo::{YoloForm, read_yaml, read_yaml_for, read_yolo};
use crate::data::index::{Index, PathPattern};
use crate::data::objects::ObjectTable;
use crate::error::{Error, Result};

/// Files of annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectFiles {
    /// JSON of COCO, LVIS or Roboflow: `instances.json`.
    Coco(PathBuf),
    /// `data.yaml` of YOLO. Its label files are found by the paths of images.
    DataYaml(PathBuf),
    /// A text file for each image: `../labels/{stem}.txt`.
    Yolo(PathPattern),
    /// An XML file for each image: `../Annotations/{stem}.xml`.
    Voc(PathPattern),
    /// A table with a box in each row: `boxes.csv`.
    BoxTable(PathBuf),
    /// The text file of WIDER FACE.
    WiderFace(PathBuf),
    /// A JSON file with outlines for each image: those of Cityscapes and labelme.
    Polygons(PathPattern),
}

impl ObjectFiles {
    /// The files that a text names.
    ///
    /// # Errors
    /// An ending of no known format; a wrong pattern.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let ending = Path::new(text).extension().unwrap_or_default();
        let ending = ending.to_string_lossy().to_ascii_lowercase();
        let is_pattern = PathPattern::is_pattern(text);
        match (&*ending, is_pattern) {
            ("json", false) => Ok(Self::Coco(text.into())),
            ("yaml" | "yml", false) => Ok(Self::DataYaml(text.into())),
            ("csv" | "tsv", false) => Ok(Self::BoxTable(text.into())),
            ("json", true) => Ok(Self::Polygons(PathPattern::parse(text)?)),
            ("txt", false) if is_wider_face(Path::new(text)) => Ok(Self::WiderFace(text.into())),
            ("txt", true) => Ok(Self::Yolo(PathPattern::parse(text)?)),
            ("xml", true) => Ok(Self::Voc(PathPattern::parse(text)?)),
            ("txt" | "xml", false) => Err(Error::config(format!(
                "objects '{text}' is one file for all images: give a pattern such as \
                 '../labels/{{stem}}.{ending}'"
            ))),
            _ => Err(Error::config(format!(
                "objects '{text}' is no known format: give a .json of COCO, a data.yaml of YOLO, \
                 a .csv of boxes, or a pattern such as '../labels/{{stem}}.txt' or \
                 '../Annotations/{{stem}}.xml'"
            ))),
        }
    }

    /// The objects of the images of `index`. `names` are the names of categories, in the order of
    /// labels. Without them, YOLO's are numbers, and those of VOC are sorted.
    ///
    /// # Errors
    /// Files that cannot be read; no usable annotation; a wrong one with
    /// [`AnnotationOptions::strict`].
    pub(crate) fn read_for(
        &self,
        index: &Index,
        names: Option<&[String]>,
        options: &AnnotationOptions,
    ) -> Result<(ObjectTable, AnnotationReport)> {
        match self {
            Self::Coco(json) => read_coco_for(json, index, options),
            Self::DataYaml(yaml) => read_yaml_for(yaml, index, options),
            Self::Yolo(pattern) => {
                let form = YoloForm {
                    names: names.map(<[String]>::to_vec),
                    ..YoloForm::default()
                };
                read_yolo(index, pattern, &form, options)
            }
            Self::Voc(pattern) => read_voc(index, pattern, names, options),
            Self::BoxTable(file) => read_csv_for(file, index, names, options),
            Self::WiderFace(file) => read_wider_face_for(file, index, options),
            Self::Polygons(pattern) => read_polygons(index, pattern, names, options),
        }
    }

    /// The data set that the files describe, with its images below `images`. None if they do not
    /// say which images there are. `split`: that of a `data.yaml`.
    ///
    /// # Errors
    /// As [`ObjectFiles::read_for`]; none of the images exists.
    pub(crate) fn read_with_images(
        &self,
        images: &Path,
        split: Option<&str>,
        names: Option<&[String]>,
        options: &AnnotationOptions,
    ) -> Result<Option<AnnotatedSet>> {
        match (self, split) {
            (Self::Coco(json), _) => read_coco(json, images, options).map(Some),
            (Self::DataYaml(yaml), Some(split)) => read_yaml(yaml, split, options).map(Some),
            (Self::BoxTable(file), _) => read_csv(file, images, names, options),
            (Self::WiderFace(file), _) => read_wider_face(file, images, options).map(Some),
            (Self::DataYaml(_) | Self::Yolo(_) | Self::Voc(_) | Self::Polygons(_), _) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_formats() {
        let of = |text: &str| ObjectFiles::parse(text);
        assert!(matches!(of("a/instances.json"), Ok(ObjectFiles::Coco(_))));
        assert!(matches!(of("boxes.csv"), Ok(ObjectFiles::BoxTable(_))));
        let wider = of("split/wider_face_val_bbx_gt.txt");
        assert!(matches!(wider, Ok(ObjectFiles::WiderFace(_))));
        assert!(matches!(of("{stem}.json"), Ok(ObjectFiles::Polygons(_))));
        assert!(matches!(of("data.YAML"), Ok(ObjectFiles::DataYaml(_))));
        assert!(matches!(
            of("../labels/{stem}.txt"),
            Ok(ObjectFiles::Yolo(_))
        ));
        assert!(matches!(of("{dir}/{stem}.xml"), Ok(ObjectFiles::Voc(_))));
        for (text, what) in [
            ("labels.txt", "one file for all images: give a pattern"),
            ("a.parquet", "is no known format: give a .json of COCO"),
            ("{id}.txt", "has {id}: placeholders are"),
        ] {
            let e = of(text).unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        }
    }
}
