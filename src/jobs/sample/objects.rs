//! The objects of a sample: from the table to the record of a row.
//!
//! Runs where `sample` does. The steps of the sample's picture say how its objects move.
//!
//! - `joined`: objects of a row that is made of several samples.

pub(crate) mod joined;

use std::sync::Arc;

use crate::data::objects::{ObjectShape, ObjectTable, ObjectsOfSample, RotatedForm};
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_record::{self, ObjectRecord, RecordHead, RecordLayout};
use crate::jobs::object_rule::{ObjectOverflow, ObjectRule};
use crate::jobs::sample::instance_masks::{InstanceMaskMaker, MaskedObjects};
use crate::jobs::sample::{KEEP, RowRequest};
use crate::picture::PixelBox;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::Size;
use crate::recipe::random::RandomStreams;
use crate::sys::panics::catch_panic;
use crate::targets::{
    BoxFormat, DropCounts, KeypointSwap, PolygonArray, RotatedFormat, SampleMotion, SampleObjects,
    TargetFault, TargetRules, box_in_pixels, clamp_boxes, sanitize_boxes,
};

/// Makes the records of rows.
#[derive(Debug)]
pub(crate) struct ObjectMaker {
    table: Arc<ObjectTable>,
    rule: ObjectRule,
    rules: TargetRules,
    swap: Option<KeypointSwap>,
    layout: RecordLayout,
    masks: Option<InstanceMaskMaker>,
}

/// The picture of a sample whose row was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedPicture<'a> {
    /// Height and width of the whole upright picture.
    pub(crate) size: (u32, u32),
    /// The sample's box, if it has one. Everything else treats the box as the picture.
    pub(crate) part: Option<PixelBox>,
    pub(crate) motion: &'a SampleMotion,
}

impl ObjectMaker {
    /// # Errors
    /// Partners of keypoints that are no pairs.
    pub(crate) fn new(
        table: Arc<ObjectTable>,
        rule: &ObjectRule,
        masks: Option<InstanceMaskMaker>,
    ) -> Result<Self, TargetFault> {
        let form = table.form();
        let swap = rule.swap_of(form).map(<[usize]>::to_vec);
        Ok(Self {
            swap: swap.map(KeypointSwap::new).transpose()?,
            rules: rule.rules(form),
            layout: RecordLayout::of(form),
            rule: rule.clone(),
            table,
            masks,
        })
    }

    /// Whether it makes masks, which takes a decoder of its own.
    pub(crate) fn draws_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// Most bytes that the objects of so many samples take while they move.
    pub(crate) fn memory(&self, samples: u64) -> u64 {
        object_record::scratch_bytes(&self.table, samples)
    }

    /// Writes the record of sample `id` into `out`.
    ///
    /// # Errors
    /// A picture of another size than its annotation states; more objects than the rule allows;
    /// keypoints without partners in a mirrored picture.
    pub(crate) fn write(
        &mut self,
        id: u64,
        picture: MovedPicture<'_>,
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let write = || self.write_record(id, picture, request, out, meter);
        let written = catch_panic(write).unwrap_or_else(|| {
            Err(FaultKind::Corrupt
                .fault("moving the objects of this sample panicked: please report it"))
        });
        if let Some(masks) = &mut self.masks {
            masks.free_above(KEEP);
        }
        written
    }

    fn write_record(
        &mut self,
        id: u64,
        picture: MovedPicture<'_>,
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        self.check_size(id, picture.size)?;
        let table = self.table.clone();
        let stated = table.sample(id);
        let mut shapes = self.shapes(&stated, picture)?;
        let (record, moved) = self.record(&stated, &shapes, picture)?;
        let output = picture.motion.output();
        let layout = self.layout.with_masks(self.rule.mask_size(output));
        if !layout.write(&record, out) {
            return Err(FaultKind::Corrupt.fault("its objects do not fit the room of its row"));
        }
        let Some(masks) = &mut self.masks else {
            return Ok(());
        };
        let kept = record
            .number
            .iter()
            .map(|n| std::mem::take(&mut shapes[*n as usize]));
        let objects = MaskedObjects {
            shapes: &kept.collect::<Vec<_>>(),
            moved: &moved,
            picture: picture.size,
            output,
        };
        let range = layout.mask_range(out.len(), record.number.len());
        masks.write(&objects, request, &mut out[range], meter)
    }

    /// The shapes of all objects in pixels of the whole picture. None without masks.
    fn shapes(
        &self,
        stated: &ObjectsOfSample<'_>,
        picture: MovedPicture<'_>,
    ) -> Result<Vec<ObjectShape>, SampleFault> {
        if self.masks.is_none() {
            return Ok(Vec::new());
        }
        let (height, width) = picture.size;
        let scale = match self.table.form().shares {
            true => [f64::from(width), f64::from(height)],
            false => [1.0, 1.0],
        };
        let shape = |object| {
            let damaged = || FaultKind::Corrupt.fault("the table of objects is damaged");
            let mut shape = stated.shape(object).ok_or_else(damaged)?;
            if let ObjectShape::Polygons(rings) = &mut shape {
                for [x, y] in rings.iter_mut().flatten() {
                    (*x, *y) = (*x * scale[0], *y * scale[1]);
                }
            }
            Ok(shape)
        };
        (0..stated.len()).map(shape).collect()
    }

    /// The record of a sample, and the polygons of its objects if they are drawn last.
    fn record(
        &self,
        stated: &ObjectsOfSample<'_>,
        shapes: &[ObjectShape],
        picture: MovedPicture<'_>,
    ) -> Result<(ObjectRecord, PolygonArray), SampleFault> {
        let mut objects = self.objects(stated, picture);
        if self
            .masks
            .as_ref()
            .is_some_and(InstanceMaskMaker::needs_moved)
        {
            let (left, top) = corner_of(picture.part);
            for shape in shapes {
                let rings: Vec<Vec<[f64; 2]>> = match shape {
                    ObjectShape::Polygons(rings) => (rings.iter())
                        .map(|ring| ring.iter().map(|[x, y]| [x - left, y - top]).collect())
                        .collect(),
                    _ => Vec::new(),
                };
                objects
                    .polygons
                    .push_object(rings.iter().map(Vec::as_slice));
            }
        }
        let drops = self.move_to_row(picture.motion, &mut objects)?;
        let record = record_of(&objects, (picture.size, picture.motion.output()), drops);
        Ok((record, objects.polygons))
    }

    /// Moves objects to the row, and drops those that the rule does not keep.
    fn move_to_row(
        &self,
        motion: &SampleMotion,
        objects: &mut SampleObjects,
    ) -> Result<DropCounts, SampleFault> {
        let mut drops = self.move_by(&self.rules, motion, objects)?;
        let output = motion.output();
        if let (Some((side, area)), TargetRules::Torchvision(rules)) =
            (self.rule.sanitizing(), &self.rules)
        {
            // torchvision drops boxes that touch an edge by rounding. Here they are clamped first.
            clamp_boxes(rules, objects, output);
            let keep = sanitize_boxes(rules, objects, output, side, area);
            drops.small += keep.iter().filter(|keep| !**keep).count() as u32;
            objects.retain(&keep);
        }
        if matches!(self.rules, TargetRules::Hf) {
            keep_inside(objects, output, &mut drops);
        }
        self.limit_objects(objects, &mut drops)?;
        Ok(drops)
    }

    fn move_by(
        &self,
        rules: &TargetRules,
        motion: &SampleMotion,
        objects: &mut SampleObjects,
    ) -> Result<DropCounts, SampleFault> {
        let moved = rules.move_objects(motion, objects, self.swap.as_ref());
        moved.map_err(|fault| FaultKind::Unsupported.fault(format!("its objects: {fault}")))
    }

    fn check_size(&self, id: u64, (height, width): (u32, u32)) -> Result<(), SampleFault> {
        let stated = self.table.stated_size(id).filter(|_| !self.rule.any_size);
        match stated {
            Some((h, w)) if (h, w) != (height, width) => {
                let advice = match (w, h) == (height, width) {
                    true => {
                        "if the annotation is of the image as stored, use orientation 'stored', \
                         and if of the upright image, 'exif'"
                    }
                    false => {
                        "use the images that were annotated, or set `any_size` to take coordinates \
                         as they are"
                    }
                };
                Err(FaultKind::Unsupported.fault(format!(
                    "its annotation states {w} x {h} pixels, and the image has {width} x {height}: \
                     {advice}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The objects in pixels of the picture. Boxes become left, top, right, bottom, as torchvision
    /// converts them before its first transform.
    fn objects(&self, stated: &ObjectsOfSample<'_>, picture: MovedPicture<'_>) -> SampleObjects {
        let form = self.table.form();
        let size = Size {
            height: picture.size.0,
            width: picture.size.1,
        };
        let in_pixels = |values: [f64; 4]| match form.shares {
            true => box_in_pixels(values, size),
            false => values,
        };
        let (wide, high) = match form.shares {
            true => (f64::from(size.width), f64::from(size.height)),
            false => (1.0, 1.0),
        };
        let (left, top) = corner_of(picture.part);
        let boxes = stated.numbers.iter().map(|values| {
            let [x0, y0, x1, y1] = form.boxes.corners(in_pixels(*values));
            let moved = [x0 - left, y0 - top, x1 - left, y1 - top];
            // The sample's box is a crop.
            picture.part.map_or(moved, |part| {
                let wide = f64::from(part.right.min(picture.size.1) - part.left);
                let high = f64::from(part.bottom.min(picture.size.0) - part.top);
                clamped(moved, wide, high)
            })
        });
        let mut objects = SampleObjects {
            number: (0..stated.len() as u32).collect(),
            boxes: boxes.collect(),
            box_format: BoxFormat::Xyxy,
            area: stated.areas.to_vec(),
            crowd: stated.crowds.iter().map(|crowd| *crowd != 0).collect(),
            ..SampleObjects::default()
        };
        objects.keypoints.per_object = form.keypoints;
        for [x, y, seen] in stated.keypoints {
            let point = [f64::from(*x) * wide - left, f64::from(*y) * high - top];
            objects.keypoints.points.push(point);
            objects.keypoints.visibility.push(*seen as u8);
        }
        if let Some(rotated) = form.rotated {
            objects.rotated.format = Some(rotated_format(rotated));
            let mut values = stated.rotated.to_vec();
            for values in values.chunks_exact_mut(rotated.numbers()) {
                place_rotated(values, rotated, [wide, high], [left, top]);
            }
            objects.rotated.values = values;
        }
        objects
    }

    /// Drops what is over the most objects of a picture.
    fn limit_objects(
        &self,
        objects: &mut SampleObjects,
        drops: &mut DropCounts,
    ) -> Result<(), SampleFault> {
        let most = (self.rule.max_objects).map_or(usize::MAX, |most| most as usize);
        let count = objects.len();
        if count <= most {
            return Ok(());
        }
        let mut keep = vec![false; count];
        match self.rule.overflow {
            ObjectOverflow::First => keep[..most].fill(true),
            ObjectOverflow::Largest => {
                let area = |n: &usize| {
                    let [x0, y0, x1, y1] = objects.boxes[*n];
                    (x1 - x0) * (y1 - y0)
                };
                let mut order: Vec<usize> = (0..count).collect();
                // Stable: of equal boxes the first is kept.
                order.sort_by(|a, b| area(b).total_cmp(&area(a)));
                order[..most].iter().for_each(|n| keep[*n] = true);
            }
            ObjectOverflow::Error => {
                return Err(FaultKind::Unsupported.fault(format!(
                    "it has {count} objects, over `max_objects` = {most}: raise it, or set \
                     `overflow` to first or largest"
                )));
            }
        }
        objects.retain(&keep);
        drops.over += (count - most) as u32;
        Ok(())
    }
}

/// The record of objects in pixels of the row. `source`: height and width of the whole picture.
fn record_of(
    objects: &SampleObjects,
    (source, output): ((u32, u32), Size),
    drops: DropCounts,
) -> ObjectRecord {
    let points = objects.keypoints.points.iter();
    ObjectRecord {
        head: RecordHead::new(source.into(), output, drops),
        number: objects.number.clone(),
        samples: Vec::new(),
        boxes: (objects.boxes.iter())
            .map(|values| values.map(|v| v as f32))
            .collect(),
        area: objects.area.iter().map(|v| *v as f32).collect(),
        keypoints: (points.zip(&objects.keypoints.visibility))
            .map(|([x, y], seen)| [*x as f32, *y as f32, f32::from(*seen)])
            .collect(),
        rotated: objects.rotated.values.iter().map(|v| *v as f32).collect(),
    }
}

fn clamped([x0, y0, x1, y1]: [f64; 4], width: f64, height: f64) -> [f64; 4] {
    [
        x0.clamp(0.0, width),
        y0.clamp(0.0, height),
        x1.clamp(0.0, width),
        y1.clamp(0.0, height),
    ]
}

/// Clips boxes to the row, and drops those outside. Processors of Hugging Face do not crop, so they
/// have no rule for it.
fn keep_inside(objects: &mut SampleObjects, output: Size, drops: &mut DropCounts) {
    let (width, height) = (f64::from(output.width), f64::from(output.height));
    let mut keep = Vec::with_capacity(objects.len());
    for values in &mut objects.boxes {
        *values = clamped(*values, width, height);
        let [x0, y0, x1, y1] = *values;
        keep.push(x1 > x0 && y1 > y0);
    }
    drops.hidden += keep.iter().filter(|keep| !**keep).count() as u32;
    objects.retain(&keep);
}

/// The corner of the sample's box in the picture.
fn corner_of(part: Option<PixelBox>) -> (f64, f64) {
    part.map_or((0.0, 0.0), |part| {
        (f64::from(part.left), f64::from(part.top))
    })
}

fn rotated_format(form: RotatedForm) -> RotatedFormat {
    match form {
        RotatedForm::Corners => RotatedFormat::Xyxyxyxy,
        RotatedForm::Centre => RotatedFormat::Cxcywhr,
    }
}

/// Makes pixels of a rotated box, and moves it by the corner of the sample's part.
fn place_rotated(values: &mut [f64], form: RotatedForm, scale: [f64; 2], corner: [f64; 2]) {
    let points = match form {
        RotatedForm::Corners => 4,
        RotatedForm::Centre => 1,
    };
    let (moved, sides) = values.split_at_mut(2 * points);
    for (n, v) in moved.iter_mut().enumerate() {
        *v = *v * scale[n % 2] - corner[n % 2];
    }
    if form == RotatedForm::Centre {
        sides[0] *= scale[0];
        sides[1] *= scale[1];
    }
}
