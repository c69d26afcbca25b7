//! What all objects of a data set have in common.

use serde::{Deserialize, Serialize};

/// The four numbers of a box in an annotation. Coordinates are continuous: a box of the whole
/// picture is 0, 0, width, height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxForm {
    /// Left, top, right, bottom: Pascal VOC.
    #[default]
    Xyxy,
    /// Left, top, width, height: COCO.
    Xywh,
    /// Centre, width, height: YOLO.
    Cxcywh,
}

impl BoxForm {
    /// Left, top, right and bottom of a box.
    pub(crate) fn corners(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        match self {
            Self::Xyxy => [a, b, c, d],
            Self::Xywh => [a, b, a + c, b + d],
            Self::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        }
    }
}

/// The numbers of a rotated box in an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RotatedForm {
    /// Four corners, clockwise: x, y each. YOLO's OBB and DOTA.
    Corners,
    /// Centre x and y, width, height, and degrees counter-clockwise.
    Centre,
}

impl RotatedForm {
    /// The count of numbers.
    #[must_use]
    pub fn numbers(self) -> usize {
        match self {
            Self::Corners => 8,
            Self::Centre => 5,
        }
    }
}

/// A category of objects. Its label in batches is its place in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCategory {
    /// The number in the annotation.
    pub id: i64,
    pub name: String,
}

/// What all objects of a data set have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ObjectForm {
    pub boxes: BoxForm,
    /// Whether coordinates are shares of the picture's width and height, 0 to 1, as in YOLO. Of
    /// boxes, rotated boxes, keypoints and polygons alike.
    pub shares: bool,
    /// Whether objects have areas.
    pub area: bool,
    /// Keypoints of an object. 0: none.
    pub keypoints: usize,
    pub keypoint_names: Vec<String>,
    /// For each keypoint the one that takes its place in a mirrored picture. Empty: not known.
    pub keypoint_swap: Vec<usize>,
    /// Pairs of keypoints that a drawing joins, from 0.
    pub skeleton: Vec<[usize; 2]>,
    /// None: no rotated boxes.
    pub rotated: Option<RotatedForm>,
    /// Whether objects have outlines or run lengths.
    pub shapes: bool,
    pub categories: Vec<ObjectCategory>,
}
