//! Text files of YOLO: boxes, outlines, keypoints and rotated boxes.
//!
//! A row has a category and numbers between 0 and 1. Of a wrong row, ultralytics leaves out the
//! whole picture. Here, the row alone is left out, and counted.
//!
//! - `rows`: the rows of a file; `data_yaml`: names and splits; `yaml_tree`: YAML.

mod data_yaml;
mod rows;
#[cfg(test)]
mod tests;
mod yaml_tree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use data_yaml::DataYaml;
pub(crate) use data_yaml::YoloForm;
use rows::RowForm;

use super::coco::AnnotatedSet;
use super::keypoint_swap::keypoint_swap;
use super::label_files::{LabelFiles, add_file, check_some};
use super::options::AnnotationOptions;
use super::report::{AnnotationReport, ReportBuilder};
use crate::data::index::{Index, PathPattern};
use crate::data::objects::{
    BoxForm, ObjectCategory, ObjectForm, ObjectTable, ObjectTableWriter, RotatedForm,
};
use crate::error::Result;

/// Reads the label files that a pattern such as `../labels/{stem}.txt` names. A picture without
/// its file has no objects.
///
/// # Errors
/// None of the files exists; a file that cannot be read; no usable row; a wrong row with
/// [`AnnotationOptions::strict`].
pub(crate) fn read_yolo(
    index: &Index,
    pattern: &PathPattern,
    form: &YoloForm,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    index.check_has_paths(pattern.text(), "objects")?;
    let path_of = |id| index.path_beside(pattern, id);
    let files = LabelFiles::find(index.len(), pattern.text(), &path_of)?;
    read_labels(index, &files, form, options)
}

/// Reads the data set of a split of a `data.yaml`: `train`, `val` or `test`.
///
/// # Errors
/// As [`read_yolo`]; a `data.yaml` without names or split.
pub(crate) fn read_yaml(
    yaml: &Path,
    split: &str,
    options: &AnnotationOptions,
) -> Result<AnnotatedSet> {
    let yaml = DataYaml::open(yaml)?;
    let index = yaml.images(split)?;
    let (table, report) = read_beside(&index, &yaml, options)?;
    Ok(AnnotatedSet {
        index,
        table,
        report,
    })
}

/// Reads the label files of the images of `index`, with the names of a `data.yaml`.
///
/// # Errors
/// As [`read_yaml`].
pub(crate) fn read_yaml_for(
    yaml: &Path,
    index: &Index,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    read_beside(index, &DataYaml::open(yaml)?, options)
}

fn read_beside(
    index: &Index,
    yaml: &DataYaml,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    const PATTERN: &str = "images/NAME -> labels/NAME.txt";
    index.check_has_paths(PATTERN, "objects")?;
    let path_of = |id| label_path(&index.path(id));
    let files = LabelFiles::find(index.len(), PATTERN, &path_of)?;
    read_labels(index, &files, &yaml.form, options)
}

/// The label file of an image: the last folder `images` is `labels`, and the ending is `.txt`.
fn label_path(image: &Path) -> PathBuf {
    const IMAGES: &[u8] = b"/images/";
    let path = image.as_os_str().as_bytes();
    let at = path.windows(IMAGES.len()).rposition(|part| part == IMAGES);
    let path = match at {
        Some(at) => [&path[..at], b"/labels/", &path[at + IMAGES.len()..]].concat(),
        None => path.to_vec(),
    };
    Path::new(OsStr::from_bytes(&path)).with_extension("txt")
}

fn read_labels(
    index: &Index,
    files: &LabelFiles<'_>,
    yolo: &YoloForm,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    let names = match &yolo.names {
        Some(names) => names.clone(),
        None => {
            let mut categories = 0;
            let count = |text: &[u8]| Ok(rows::categories(text));
            files.for_each(count, |_, found| {
                categories = categories.max(found.unwrap_or(0));
                Ok(())
            })?;
            (0..categories).map(|number| number.to_string()).collect()
        }
    };
    let row = RowForm {
        categories: names.len(),
        keypoints: yolo.keypoints,
        keep_keypoints: options.keypoints,
        rotated: options.rotated,
        keep_shapes: options.shapes,
    };
    let form = object_form(names, yolo, options);
    let mut report = ReportBuilder::new(options.strict);
    report.set_categories(&form.categories);
    let mut writer = ObjectTableWriter::new(form)?;
    files.for_each(
        |text| rows::read(text, &row),
        |path, file| add_file(path, None, file, &mut writer, &mut report),
    )?;
    let advice = "coordinates are shares of the picture, 0 to 1";
    check_some(&report, index.root(), advice)?;
    Ok((writer.finish()?, report.finish()))
}

fn object_form(names: Vec<String>, yolo: &YoloForm, options: &AnnotationOptions) -> ObjectForm {
    let keypoints = yolo.keypoints.filter(|_| options.keypoints);
    let keypoints = keypoints.map_or(0, |(count, _)| count);
    let is_outline = yolo.keypoints.is_none() && !options.rotated;
    let category = |(id, name)| ObjectCategory { id, name };
    let swap = match yolo.keypoint_swap.is_empty() {
        true => keypoint_swap(&yolo.keypoint_names),
        false => yolo.keypoint_swap.clone(),
    };
    let has_keypoints = keypoints > 0;
    let is_rotated = options.rotated && yolo.keypoints.is_none();
    ObjectForm {
        boxes: BoxForm::Cxcywh,
        shares: true,
        keypoints,
        keypoint_names: if has_keypoints {
            yolo.keypoint_names.clone()
        } else {
            Vec::new()
        },
        keypoint_swap: if has_keypoints { swap } else { Vec::new() },
        rotated: is_rotated.then_some(RotatedForm::Corners),
        shapes: options.shapes && is_outline,
        categories: (0..).zip(names).map(category).collect(),
        ..ObjectForm::default()
    }
}
