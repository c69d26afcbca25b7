//! How the objects of a sample move with its picture.
//!
//! Runs where rows are made, and in the plan of a run. The steps of the sample's picture say how its objects move.

use std::sync::Arc;

use crate::data::objects::{ObjectShape, ObjectTable, ObjectsOfSample, RotatedForm};
use crate::error::{FaultKind, SampleFault};
use crate::jobs::object_rule::{ObjectOverflow, ObjectRule};
use crate::picture::PixelBox;
use crate::recipe::steps::OpStep;
use crate::recipe::{BoxSource, DrawnPicture, Size};
use crate::targets::{
    BoxFormat, DropCounts, KeypointSwap, RotatedFormat, SampleMotion, SampleObjects, TargetFault,
    TargetRules, box_in_pixels, clamp_boxes, sanitize_boxes,
};

/// Moves the objects of samples by a rule.
#[derive(Debug)]
pub(crate) struct ObjectMover {
    table: Arc<ObjectTable>,
    rule: ObjectRule,
    rules: TargetRules,
    swap: Option<KeypointSwap>,
}

/// The picture of a sample whose row was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedPicture<'a> {
    /// Height and width of the whole upright picture.
    pub(crate) size: (u32, u32),
    /// The sample's box, if it has one. Everything else treats the box as the picture.
    pub(crate) part: Option<PixelBox>,
    pub(crate) motion: &'a SampleMotion,
    /// The numbers of the steps that keep only objects with their centre inside.
    pub(crate) centre_crops: &'a [usize],
}

/// The boxes of one sample, for operations that read them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleBoxes<'a> {
    pub(crate) mover: &'a ObjectMover,
    pub(crate) id: u64,
    /// The sample's box, if it has one.
    pub(crate) part: Option<PixelBox>,
}

impl BoxSource for SampleBoxes<'_> {
    fn boxes_after(
        &self,
        picture: &DrawnPicture<'_>,
        steps: &[OpStep],
    ) -> Result<Vec<[f64; 4]>, SampleFault> {
        let mover = self.mover;
        let stated = mover.table.sample(self.id);
        let boxes = mover.boxes(&stated, picture.whole, self.part);
        let motion = motion_of(picture.size, steps);
        Ok(mover.moved_boxes(boxes, &motion)?.boxes)
    }
}

impl ObjectMover {
    /// # Errors
    /// Partners of keypoints that are no pairs.
    pub(crate) fn new(table: Arc<ObjectTable>, rule: &ObjectRule) -> Result<Self, TargetFault> {
        let form = table.form();
        let swap = rule.swap_of(form).map(<[usize]>::to_vec);
        Ok(Self {
            swap: swap.map(KeypointSwap::new).transpose()?,
            rules: rule.rules(form),
            rule: rule.clone(),
            table,
        })
    }

    pub(crate) fn table(&self) -> &ObjectTable {
        &self.table
    }

    pub(crate) fn rules(&self) -> &TargetRules {
        &self.rules
    }

    pub(crate) fn rule(&self) -> &ObjectRule {
        &self.rule
    }

    /// The objects of a sample in its row, and how many were dropped. `shapes`: those of all
    /// objects in pixels of the whole picture, if polygons move with them.
    ///
    /// # Errors
    /// More objects than the rule allows; keypoints without partners in a mirrored picture.
    pub(crate) fn moved_objects(
        &self,
        stated: &ObjectsOfSample<'_>,
        shapes: Option<&[ObjectShape]>,
        picture: MovedPicture<'_>,
    ) -> Result<(SampleObjects, DropCounts), SampleFault> {
        let mut objects = self.objects(stated, picture);
        if let Some(shapes) = shapes {
            add_polygons(&mut objects, shapes, picture.part);
        }
        let mut outside = 0;
        for crop in picture.centre_crops {
            let keep = self.with_centre_inside(&objects, picture.motion, *crop)?;
            outside += keep.iter().filter(|keep| !**keep).count() as u32;
            objects.retain(&keep);
        }
        let mut drops = self.move_to_row(picture.motion, &mut objects)?;
        drops.hidden += outside;
        Ok((objects, drops))
    }

    /// Moves objects to the row, and drops those that the rule does not keep.
    ///
    /// # Errors
    /// As [`ObjectMover::moved_objects`].
    pub(crate) fn move_to_row(
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

    /// Moves objects by these rules.
    ///
    /// # Errors
    /// Keypoints without partners in a mirrored picture.
    pub(crate) fn move_by(
        &self,
        rules: &TargetRules,
        motion: &SampleMotion,
        objects: &mut SampleObjects,
    ) -> Result<DropCounts, SampleFault> {
        let moved = rules.move_objects(motion, objects, self.swap.as_ref());
        moved.map_err(moving_fault)
    }

    /// For each object whether its centre lies inside the crop with this number.
    fn with_centre_inside(
        &self,
        objects: &SampleObjects,
        motion: &SampleMotion,
        crop: usize,
    ) -> Result<Vec<bool>, SampleFault> {
        let moved = self.moved_boxes(objects.boxes.clone(), &motion.first(crop))?;
        let mut keep = vec![false; objects.len()];
        if let Some(rect) = motion.crop_rect(crop) {
            for (number, values) in moved.number.iter().zip(&moved.boxes) {
                if let Some(keep) = keep.get_mut(*number as usize) {
                    *keep = rect.has_centre_of(*values);
                }
            }
        }
        Ok(keep)
    }

    /// Boxes after these steps, without those that the rule drops. Numbers are places in `boxes`.
    fn moved_boxes(
        &self,
        boxes: Vec<[f64; 4]>,
        motion: &SampleMotion,
    ) -> Result<SampleObjects, SampleFault> {
        let mut objects = SampleObjects {
            number: (0..boxes.len() as u32).collect(),
            crowd: vec![false; boxes.len()],
            boxes,
            box_format: BoxFormat::Xyxy,
            ..SampleObjects::default()
        };
        let moved = self.rules.move_objects(motion, &mut objects, None);
        moved.map_err(moving_fault)?;
        Ok(objects)
    }

    /// # Errors
    /// A picture of another size than its annotation states.
    pub(crate) fn check_size(
        &self,
        id: u64,
        (height, width): (u32, u32),
    ) -> Result<(), SampleFault> {
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

    /// The boxes as left, top, right, bottom, in pixels of the picture or of the sample's box in it.
    /// torchvision converts them so before its first transform.
    fn boxes(
        &self,
        stated: &ObjectsOfSample<'_>,
        (height, width): (u32, u32),
        part: Option<PixelBox>,
    ) -> Vec<[f64; 4]> {
        let form = self.table.form();
        let in_pixels = |values: [f64; 4]| match form.shares {
            true => box_in_pixels(values, Size { height, width }),
            false => values,
        };
        let (left, top) = corner_of(part);
        let boxes = stated.numbers.iter().map(|values| {
            let [x0, y0, x1, y1] = form.boxes.corners(in_pixels(*values));
            let moved = [x0 - left, y0 - top, x1 - left, y1 - top];
            // The sample's box is a crop.
            part.map_or(moved, |part| {
                let wide = f64::from(part.right.min(width) - part.left);
                let high = f64::from(part.bottom.min(height) - part.top);
                clamped(moved, wide, high)
            })
        });
        boxes.collect()
    }

    /// The objects in pixels of the picture.
    pub(crate) fn objects(
        &self,
        stated: &ObjectsOfSample<'_>,
        picture: MovedPicture<'_>,
    ) -> SampleObjects {
        let form = self.table.form();
        let (wide, high) = match form.shares {
            true => (f64::from(picture.size.1), f64::from(picture.size.0)),
            false => (1.0, 1.0),
        };
        let (left, top) = corner_of(picture.part);
        let mut objects = SampleObjects {
            number: (0..stated.len() as u32).collect(),
            boxes: self.boxes(stated, picture.size, picture.part),
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

fn moving_fault(fault: TargetFault) -> SampleFault {
    FaultKind::Unsupported.fault(format!("its objects: {fault}"))
}

/// Adds the polygons of these shapes. Other shapes have none.
fn add_polygons(objects: &mut SampleObjects, shapes: &[ObjectShape], part: Option<PixelBox>) {
    let (left, top) = corner_of(part);
    for shape in shapes {
        let rings: Vec<Vec<[f64; 2]>> = match shape {
            ObjectShape::Polygons(rings) => (rings.iter())
                .map(|ring| ring.iter().map(|[x, y]| [x - left, y - top]).collect())
                .collect(),
            _ => Vec::new(),
        };
        (objects.polygons).push_object(rings.iter().map(Vec::as_slice));
    }
}

pub(crate) fn clamped([x0, y0, x1, y1]: [f64; 4], width: f64, height: f64) -> [f64; 4] {
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

/// What these steps do to the coordinates of a picture of this height and width.
pub(crate) fn motion_of((height, width): (u32, u32), steps: &[OpStep]) -> SampleMotion {
    let steps = steps.iter().map(|of| (of.op, &of.step));
    SampleMotion::of(Size { height, width }, steps)
}
