//! The objects of one sample, as its annotation states them.

use super::shape_bytes::ObjectShape;

/// The objects of a sample on their way into a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StatedObjects {
    /// Height and width of the picture, if the annotation states them.
    pub(crate) size: Option<(u32, u32)>,
    /// The number of the picture in the annotation. -1 if it has none.
    pub(crate) image_id: i64,
    pub(crate) objects: Vec<StatedObject>,
}

/// One object. Fields that the form lacks are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StatedObject {
    /// Four numbers, by the form.
    pub(crate) numbers: [f64; 4],
    /// The place of the category in the form's list.
    pub(crate) label: u32,
    /// The number of the object in the annotation. -1 if it has none.
    pub(crate) id: i64,
    pub(crate) area: f64,
    pub(crate) crowd: bool,
    /// x, y and visibility (0, 1, 2) of each keypoint.
    pub(crate) keypoints: Vec<[f32; 3]>,
    pub(crate) rotated: Vec<f64>,
    pub(crate) shape: ObjectShape,
}
