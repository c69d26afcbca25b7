//! Files of annotations become a table of objects.
//!
//! Runs in the consumer, before a run. Files are read within bounded memory, and wrong annotations
//! are counted by kind. No picture is opened.
//!
//! - `files`: which files an option names;
//! - `options`: what to keep; `report`: what was found, and what is wrong; `object_checks`: checks
//!   that all formats share; `keypoint_swap`: keypoints that change places in a mirror;
//! - `category_finder`: categories that are found while a file is read; `pictures`: the pictures
//!   that a file describes;
//! - `coco/`: JSON of COCO, LVIS and Roboflow, and of panoptic segments;
//! - `json_file`: a walk through a long JSON file; `json_frame`: where a value ends; `json_value`:
//!   values in memory;
//! - `yolo/`: text files of YOLO and their `data.yaml`; `voc`: XML files of Pascal VOC;
//!   `label_files`: the files of many pictures;
//! - `row_objects`: columns of tables, and JSON in tars; `object_values`: the objects of a row;
//!   `json_tree`: a JSON text as nested values;
//! - `box_csv`: tables with a box in each row; `box_rows`: boxes in any order;
//!   `wider_face`: the text file of WIDER FACE;
//! - `polygon_json`: JSON files of Cityscapes and labelme.

mod box_csv;
mod box_rows;
mod category_finder;
mod coco;
mod files;
mod json_file;
mod json_frame;
mod json_tree;
mod json_value;
mod keypoint_swap;
mod label_files;
mod object_checks;
mod object_values;
mod options;
mod pictures;
mod polygon_json;
mod report;
mod row_objects;
#[cfg(test)]
mod row_tests;
mod voc;
mod wider_face;
mod yolo;

pub(crate) use coco::AnnotatedSet;
pub(crate) use files::ObjectFiles;
pub(crate) use object_values::{CATEGORY_FIELDS, CoordinateForm, object_fields};
pub use options::{AnnotationOptions, CrowdPolicy};
pub use report::{AnnotationFault, AnnotationReport, CategoryCount, FaultCount};
pub(crate) use row_objects::{BESIDE, RowObjects, read_rows};
