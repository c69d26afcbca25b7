//! The objects of a sample: from the table to the record of a row.
//!
//! Runs where `sample` does. The steps of the sample's picture say how its objects move.
//!
//! - `joined`: objects of a row that is made of several samples; `pasting`: those that are pasted.

pub(crate) mod joined;
mod pasting;

use std::sync::Arc;

use crate::data::objects::{ObjectShape, ObjectsOfSample};
use crate::error::{FaultKind, SampleFault};
use crate::jobs::object_mover::{MovedPicture, ObjectMover};
use crate::jobs::object_record::{self, ObjectRecord, RecordHead, RecordLayout};
use crate::jobs::sample::instance_masks::{InstanceMaskMaker, MaskedObjects};
use crate::jobs::sample::{KEEP, RowRequest};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::Size;
use crate::recipe::random::RandomStreams;
use crate::sys::panics::catch_panic;
use crate::targets::{DropCounts, PolygonArray, SampleMotion, SampleObjects};

/// Makes the records of rows.
#[derive(Debug)]
pub(crate) struct ObjectMaker {
    mover: Arc<ObjectMover>,
    layout: RecordLayout,
    masks: Option<InstanceMaskMaker>,
}

impl ObjectMaker {
    pub(crate) fn new(mover: Arc<ObjectMover>, masks: Option<InstanceMaskMaker>) -> Self {
        Self {
            layout: RecordLayout::of(mover.table().form()),
            mover,
            masks,
        }
    }

    pub(crate) fn mover(&self) -> &Arc<ObjectMover> {
        &self.mover
    }

    /// Whether it makes masks, which takes a decoder of its own.
    pub(crate) fn draws_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// Most bytes that the objects of so many samples take while they move.
    pub(crate) fn memory(&self, samples: u64) -> u64 {
        object_record::scratch_bytes(self.mover.table(), samples)
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
        let mover = self.mover.clone();
        mover.check_size(id, picture.size)?;
        let stated = mover.table().sample(id);
        let mut shapes = match self.masks {
            Some(_) => self.shapes(&stated, picture.size)?,
            None => Vec::new(),
        };
        let (record, moved) = self.record(&stated, &shapes, picture)?;
        let output = picture.motion.output();
        let layout = self.layout.with_masks(mover.rule().mask_size(output));
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

    /// The shapes of all objects in pixels of the whole picture, which has this height and width.
    fn shapes(
        &self,
        stated: &ObjectsOfSample<'_>,
        (height, width): (u32, u32),
    ) -> Result<Vec<ObjectShape>, SampleFault> {
        let scale = match self.mover.table().form().shares {
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
        let masks = self.masks.as_ref();
        let polygons = masks.is_some_and(InstanceMaskMaker::needs_moved);
        let shapes = polygons.then_some(shapes);
        let (objects, drops) = self.mover.moved_objects(stated, shapes, picture)?;
        let record = record_of(&objects, (picture.size, picture.motion), drops);
        Ok((record, objects.polygons))
    }
}

/// The record of objects in pixels of the row. `picture`: height and width of the whole picture,
/// and the last motion of its row.
fn record_of(
    objects: &SampleObjects,
    ((height, width), motion): ((u32, u32), &SampleMotion),
    drops: DropCounts,
) -> ObjectRecord {
    let points = objects.keypoints.points.iter();
    ObjectRecord {
        head: RecordHead::new(Size { height, width }, motion, drops),
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
