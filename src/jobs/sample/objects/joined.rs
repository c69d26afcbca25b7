//! The objects of a row that is made of the pictures of several samples.
//!
//! Objects move with their picture through each stage, by the rules of the style. A joint shifts
//! them, and clips their boxes to the canvas. Each object keeps its sample and its number there.
//! Masks move along if a batch has them or a joint pastes objects.

use crate::data::objects::ObjectShape;
use crate::error::{FaultKind, SampleFault};
use crate::jobs::object_mover::{MovedPicture, clamped};
use crate::jobs::sample::objects::{ObjectMaker, record_of};
use crate::recipe::PixelRect;
use crate::sys::panics::catch_panic;
use crate::targets::masks::{BitMask, MaskScale};
use crate::targets::{DropCounts, RotatedFormat, SampleMotion, SampleObjects};

/// The objects of pictures that are joined to one.
#[derive(Debug, Default)]
pub(crate) struct JoinedObjects {
    /// Their numbers are places in `origins`.
    pub(super) objects: SampleObjects,
    /// The sample of each object, and its number there.
    origins: Vec<(u64, u32)>,
    /// The mask of each object in `origins`. Empty if masks do not move along. An object without an
    /// outline, or that was dropped, has no pixel.
    pub(super) masks: Vec<BitMask>,
    pub(super) drops: DropCounts,
    /// Height and width of the whole upright picture of the row's own sample.
    source: (u32, u32),
}

/// Moves masks through a stage, and writes them at this scale.
pub(crate) type MaskWrite<'a> =
    dyn FnMut(&[BitMask], MaskScale, &mut [u8]) -> Result<(), SampleFault> + 'a;

impl ObjectMaker {
    /// The same for rows that are made of several samples.
    pub(crate) fn joining(self) -> Self {
        Self {
            layout: self.layout.with_samples(),
            ..self
        }
    }

    /// The objects of sample `id` after the first stage.
    ///
    /// # Errors
    /// As [`ObjectMaker::write`].
    pub(crate) fn begin_joined(
        &self,
        id: u64,
        picture: MovedPicture<'_>,
    ) -> Result<JoinedObjects, SampleFault> {
        self.mover.check_size(id, picture.size)?;
        let stated = self.mover.table().sample(id);
        let mut joined = JoinedObjects {
            objects: self.mover.objects(&stated, picture),
            origins: (0..stated.len() as u32).map(|n| (id, n)).collect(),
            masks: Vec::new(),
            drops: DropCounts::default(),
            source: picture.size,
        };
        self.move_joined(&mut joined, picture.motion)?;
        Ok(joined)
    }

    /// Gives the objects of sample `id` their masks. `size`: height and width of the whole upright
    /// picture. `draw` makes those of shapes after the first stage.
    ///
    /// # Errors
    /// Those of `draw`.
    pub(crate) fn add_masks(
        &self,
        joined: &mut JoinedObjects,
        (id, size): (u64, (u32, u32)),
        draw: impl FnOnce(&[&ObjectShape]) -> Result<Vec<BitMask>, SampleFault>,
    ) -> Result<(), SampleFault> {
        let shapes = self.shapes(&self.mover.table().sample(id), size)?;
        joined.masks = vec![BitMask::default(); joined.origins.len()];
        let kept = joined.objects.number.iter();
        let drawn: Vec<_> = kept.map(|number| &shapes[*number as usize]).collect();
        let masks = draw(&drawn)?;
        for (number, mask) in joined.objects.number.iter().zip(masks) {
            joined.masks[*number as usize] = mask;
        }
        Ok(())
    }

    /// Moves objects through a stage that is not the last.
    ///
    /// # Errors
    /// Keypoints without partners in a mirrored picture.
    pub(crate) fn move_joined(
        &self,
        joined: &mut JoinedObjects,
        motion: &SampleMotion,
    ) -> Result<(), SampleFault> {
        let rules = self.mover.rules();
        let drops = self.mover.move_by(rules, motion, &mut joined.objects)?;
        joined.drops = joined.drops.and(drops);
        Ok(())
    }

    /// Moves objects through the last stage, and writes the record of the row into `out`.
    /// `write_masks` moves masks through that stage, and writes them.
    ///
    /// # Errors
    /// More objects than the rule allows; keypoints without partners in a mirrored picture.
    pub(crate) fn write_joined(
        &self,
        joined: JoinedObjects,
        motion: &SampleMotion,
        write_masks: &mut MaskWrite<'_>,
        out: &mut [u8],
    ) -> Result<(), SampleFault> {
        let write = || {
            let mut joined = joined;
            let drops = self.mover.move_to_row(motion, &mut joined.objects)?;
            let drops = joined.drops.and(drops);
            let mut record = record_of(&joined.objects, (joined.source, motion), drops);
            let kept = std::mem::take(&mut record.number);
            let origins = kept.iter().map(|at| joined.origins[*at as usize]);
            (record.samples, record.number) = origins.unzip();
            let rule = self.mover.rule();
            let layout = self.layout.with_masks(rule.mask_size(motion.output()));
            if !layout.write(&record, out) {
                return Err(FaultKind::Corrupt.fault("its objects do not fit the room of its row"));
            }
            let Some(scale) = rule.mask_scale() else {
                return Ok(());
            };
            let masks = kept
                .iter()
                .map(|at| match joined.masks.get_mut(*at as usize) {
                    Some(mask) => std::mem::take(mask),
                    None => BitMask::default(),
                });
            let masks: Vec<_> = masks.collect();
            let range = layout.mask_range(out.len(), masks.len());
            write_masks(&masks, scale, &mut out[range])
        };
        catch_panic(write).unwrap_or_else(|| {
            Err(FaultKind::Corrupt
                .fault("moving the objects of this sample panicked: please report it"))
        })
    }
}

impl JoinedObjects {
    /// Moves objects by this many pixels to the right and down, onto a canvas of this height and
    /// width. Boxes are clipped to it, and dropped if nothing is left.
    pub(crate) fn shift(&mut self, [x, y]: [i64; 2], (height, width): (u32, u32)) {
        self.shift_masks([x, y], PixelRect::whole((height, width)));
        let (x, y) = (x as f64, y as f64);
        let (width, height) = (f64::from(width), f64::from(height));
        let objects = &mut self.objects;
        let mut keep = Vec::with_capacity(objects.len());
        for values in &mut objects.boxes {
            let [x0, y0, x1, y1] = *values;
            *values = clamped([x0 + x, y0 + y, x1 + x, y1 + y], width, height);
            let [x0, y0, x1, y1] = *values;
            keep.push(x1 > x0 && y1 > y0);
        }
        let keypoints = &mut objects.keypoints;
        for (point, seen) in keypoints.points.iter_mut().zip(&mut keypoints.visibility) {
            *point = [point[0] + x, point[1] + y];
            if !((0.0..=width).contains(&point[0]) && (0.0..=height).contains(&point[1])) {
                *seen = 0;
            }
        }
        let rotated = &mut objects.rotated;
        if let Some(format) = rotated.format {
            let points = match format {
                RotatedFormat::Xywhr | RotatedFormat::Cxcywhr => 1,
                RotatedFormat::Xyxyxyxy => 4,
            };
            for values in rotated.values.chunks_exact_mut(format.numbers()) {
                for [u, v] in values[..2 * points].as_chunks_mut::<2>().0 {
                    (*u, *v) = (*u + x, *v + y);
                }
            }
        }
        self.drops.hidden += keep.iter().filter(|keep| !**keep).count() as u32;
        objects.retain(&keep);
    }

    /// Moves masks by this many pixels, and keeps what lies in `rect`.
    fn shift_masks(&mut self, by: [i64; 2], rect: PixelRect) {
        for mask in &mut self.masks {
            *mask = mask.shifted(by, rect);
        }
    }

    /// Removes the pixels of a rectangle, which another picture covers, from all masks. It may begin
    /// outside of the canvas. Boxes stay.
    pub(crate) fn cover_masks(&mut self, [left, top]: [i64; 2], (height, width): (u32, u32)) {
        let along =
            |at: u32, from: i64, side: u32| (from..from + i64::from(side)).contains(&i64::from(at));
        for mask in &mut self.masks {
            mask.remove(|x, y| along(x, left, width) && along(y, top, height));
        }
    }

    /// The masks of all objects. Those of dropped ones are freed.
    pub(crate) fn masks_mut(&mut self) -> Vec<&mut BitMask> {
        let mut is_kept = vec![false; self.masks.len()];
        for number in &self.objects.number {
            if let Some(kept) = is_kept.get_mut(*number as usize) {
                *kept = true;
            }
        }
        let mut kept = Vec::new();
        for (mask, is_kept) in self.masks.iter_mut().zip(is_kept) {
            match is_kept {
                true => kept.push(mask),
                false => *mask = BitMask::default(),
            }
        }
        kept
    }

    /// Adds the objects of another picture after these. The row stays that of the first.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.origins.len() as u32;
        self.origins.extend(other.origins);
        self.masks.extend(other.masks);
        self.drops = self.drops.and(other.drops);
        let (own, new) = (&mut self.objects, other.objects);
        own.number.extend(new.number.iter().map(|n| n + before));
        own.boxes.extend(new.boxes);
        own.area.extend(new.area);
        own.crowd.extend(new.crowd);
        own.keypoints.points.extend(new.keypoints.points);
        own.keypoints.visibility.extend(new.keypoints.visibility);
        own.rotated.values.extend(new.rotated.values);
    }

    /// The first of these boxes that touches none of these objects. None if each touches one.
    pub(crate) fn first_free(&self, boxes: &[PixelRect]) -> Option<PixelRect> {
        let is_free = |rect: &&PixelRect| {
            let mut objects = self.objects.boxes.iter();
            objects.all(|values| share_inside(*values, edges(**rect)) <= 0.0)
        };
        boxes.iter().find(is_free).copied()
    }

    /// Keeps the objects of which at least this share lies in a box, and clips their boxes to it.
    /// False if no object is left.
    pub(crate) fn keep_inside(&mut self, rect: PixelRect, least: f64) -> bool {
        self.shift_masks([0, 0], rect);
        let boxes = &mut self.objects.boxes;
        let share = |values: &[f64; 4]| share_inside(*values, edges(rect));
        let keep: Vec<bool> = (boxes.iter())
            .map(|values| share(values) > 0.0 && share(values) >= least)
            .collect();
        let [left, top, right, bottom] = edges(rect);
        for [x0, y0, x1, y1] in boxes.iter_mut() {
            (*x0, *x1) = (x0.clamp(left, right), x1.clamp(left, right));
            (*y0, *y1) = (y0.clamp(top, bottom), y1.clamp(top, bottom));
        }
        let keypoints = &mut self.objects.keypoints;
        for ([x, y], seen) in keypoints.points.iter().zip(&mut keypoints.visibility) {
            if !((left..=right).contains(x) && (top..=bottom).contains(y)) {
                *seen = 0;
            }
        }
        self.drops.hidden += keep.iter().filter(|keep| !**keep).count() as u32;
        self.objects.retain(&keep);
        !self.objects.is_empty()
    }
}

pub(super) fn edges(rect: PixelRect) -> [f64; 4] {
    let [left, top] = [rect.left, rect.top].map(f64::from);
    let [width, height] = [rect.width, rect.height].map(f64::from);
    [left, top, left + width, top + height]
}

/// The share of a box that lies in another. 0 for a box without area.
pub(super) fn share_inside(
    [x0, y0, x1, y1]: [f64; 4],
    [left, top, right, bottom]: [f64; 4],
) -> f64 {
    let wide = (x1.min(right) - x0.max(left)).max(0.0);
    let high = (y1.min(bottom) - y0.max(top)).max(0.0);
    match wide * high {
        inside if inside > 0.0 => inside / ((x1 - x0) * (y1 - y0)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
