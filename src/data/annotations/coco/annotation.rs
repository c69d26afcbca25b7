//! One annotation of a COCO file becomes an object, or several.

use std::collections::HashMap;

use super::super::json_value::{self, ValueFault};
use super::super::object_checks::{check_box, keypoints};
use super::super::options::{AnnotationOptions, CrowdPolicy};
use super::super::report::AnnotationFault;
use super::entries::CategoryEntry;
use super::segmentation;
use crate::data::objects::{ObjectForm, StatedObject};

/// What annotations are read by.
pub(super) struct AnnotationReader<'a> {
    options: &'a AnnotationOptions,
    /// Keypoints of an object in the table.
    keypoints: usize,
    /// Label and keypoints of each category, by its id.
    categories: HashMap<i64, (u32, usize)>,
    scratch: Vec<f64>,
}

/// The values of an annotation that are looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnnotationFields<'a> {
    id: Option<&'a [u8]>,
    image_id: Option<&'a [u8]>,
    category: Option<&'a [u8]>,
    bounds: Option<&'a [u8]>,
    area: Option<&'a [u8]>,
    crowd: Option<&'a [u8]>,
    segmentation: Option<&'a [u8]>,
    keypoints: Option<&'a [u8]>,
    /// The segments of a panoptic annotation.
    pub(super) segments: Option<&'a [u8]>,
}

impl<'a> AnnotationFields<'a> {
    pub(super) fn of(annotation: &'a [u8]) -> Result<Self, ValueFault> {
        let mut fields = Self::default();
        json_value::members(annotation, |key, value| {
            let field = match &*key {
                b"id" => &mut fields.id,
                b"image_id" => &mut fields.image_id,
                b"category_id" => &mut fields.category,
                b"bbox" => &mut fields.bounds,
                b"area" => &mut fields.area,
                b"iscrowd" => &mut fields.crowd,
                b"segmentation" => &mut fields.segmentation,
                b"keypoints" => &mut fields.keypoints,
                b"segments_info" => &mut fields.segments,
                _ => return,
            };
            *field = Some(value);
        })?;
        Ok(fields)
    }

    /// -1 if it has none.
    pub(super) fn id(&self) -> i64 {
        self.id.and_then(json_value::integer).unwrap_or(-1)
    }
}

/// What became of an annotation.
#[derive(Debug, PartialEq, Default)]
pub(super) struct ReadAnnotation {
    /// None: it is a crowd, and crowds are dropped.
    pub(super) object: Option<StatedObject>,
    /// What is wrong with it though it is kept.
    pub(super) faults: Vec<AnnotationFault>,
}

impl<'a> AnnotationReader<'a> {
    /// `categories` in the order of the form's.
    pub(super) fn new(
        options: &'a AnnotationOptions,
        form: &ObjectForm,
        categories: &[CategoryEntry],
    ) -> Self {
        let by_id = |(label, of): (u32, &CategoryEntry)| (of.id, (label, of.keypoints.len()));
        Self {
            options,
            keypoints: form.keypoints,
            categories: (0..).zip(categories).map(by_id).collect(),
            scratch: Vec::new(),
        }
    }

    /// The object of an annotation of a picture of this height and width.
    ///
    /// # Errors
    /// Why the object is dropped.
    pub(super) fn object(
        &mut self,
        fields: &AnnotationFields<'_>,
        size: Option<(u32, u32)>,
    ) -> Result<ReadAnnotation, AnnotationFault> {
        let mut read = ReadAnnotation::default();
        let category = fields.category.and_then(json_value::integer);
        let label = category.and_then(|id| self.categories.get(&id));
        let &(label, own_keypoints) = label.ok_or(AnnotationFault::UnknownCategory)?;
        let crowd = fields.crowd.and_then(json_value::number).unwrap_or(0.0) != 0.0;
        if crowd && self.options.crowds == CrowdPolicy::Drop {
            return Ok(read);
        }
        let numbers = self.bounds(fields)?;
        let [left, top, width, height] = numbers;
        if check_box([left, top, left + width, top + height], size)? {
            read.faults.push(AnnotationFault::PartlyOutside);
        }
        let area = match fields.area.map(json_value::number) {
            None => width * height,
            Some(Some(area)) if area.is_finite() && area >= 0.0 => area,
            Some(_) => {
                read.faults.push(AnnotationFault::WrongArea);
                width * height
            }
        };
        let mut object = StatedObject {
            numbers,
            label,
            id: fields.id(),
            area,
            crowd,
            ..StatedObject::default()
        };
        if let Some(value) = fields.segmentation.filter(|_| self.options.shapes) {
            let shape = segmentation::read(value, size, &mut self.scratch)?;
            let left_out = std::iter::repeat_n(AnnotationFault::ShortOutline, shape.left_out);
            read.faults.extend(left_out);
            object.shape = shape.shape;
        }
        if self.options.keypoints {
            let value = fields.keypoints.filter(|value| *value != b"null");
            object.keypoints = self.keypoints(value, own_keypoints, &mut read.faults)?;
        }
        read.object = Some(object);
        Ok(read)
    }

    fn bounds(&mut self, fields: &AnnotationFields<'_>) -> Result<[f64; 4], AnnotationFault> {
        let value = fields.bounds.ok_or(AnnotationFault::MissingBox)?;
        self.scratch.clear();
        let is_list = json_value::numbers(value, &mut self.scratch);
        match self.scratch[..] {
            [left, top, width, height] if is_list => Ok([left, top, width, height]),
            _ => Err(AnnotationFault::MissingBox),
        }
    }

    /// The keypoints of an object whose category has `own` of them.
    fn keypoints(
        &mut self,
        value: Option<&[u8]>,
        own: usize,
        faults: &mut Vec<AnnotationFault>,
    ) -> Result<Vec<[f32; 3]>, AnnotationFault> {
        let mut points = Vec::new();
        if let Some(value) = value {
            self.scratch.clear();
            if !json_value::numbers(value, &mut self.scratch) {
                return Err(AnnotationFault::WrongKeypoints);
            }
            match own {
                0 if self.scratch.is_empty() => {}
                0 => faults.push(AnnotationFault::UnnamedKeypoints),
                own if self.scratch.len() != 3 * own => {
                    return Err(AnnotationFault::WrongKeypoints);
                }
                _ => points = keypoints(&self.scratch)?,
            }
        }
        points.resize(self.keypoints, [0.0; 3]);
        Ok(points)
    }
}
