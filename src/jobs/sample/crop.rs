//! The row of a crop: decoded pixels, with the weights and steps by which a device makes the
//! batch's row.
//!
//! Runs in workers. A crop that does not fit is resized here, and its weights only copy pixels.
//! Which crops that are depends on the sample alone. If a device decodes the sample, the row holds
//! its coded crop. If the decoded crop would not fit, the tables of the resize come with it, and
//! the device makes the same pixels.

use crate::decode_plan::crop_row::{CROP_HEADER, CROP_HEADER_CODED, CropHeader, CropStep};
use crate::decode_plan::stored_picture::DecodePlan;
use crate::device::jpeg_part::PartLimits;
use crate::error::{FaultKind, SampleFault};
use crate::picture::jpeg::gpu_rows::{CodedPicture, ResizeAxis, write_resize};
use crate::pixels::resample::down_first;
use crate::recipe::fixed_weights::FixedTable;
use crate::recipe::steps::OpStep;
use crate::recipe::weights::{AxisGeometry, WeightTable};
use crate::recipe::{CropRowBytes, CropRule, PixelPlacement, Step};

/// Writes rows. Keeps the tables of the last one.
#[derive(Debug)]
pub(crate) struct CropWriter {
    rule: CropRule,
    across: WeightTable,
    down: WeightTable,
    /// Tables in integers: across, down.
    fixed: [FixedTable; 2],
}

impl CropWriter {
    pub(crate) fn new(rule: CropRule) -> Self {
        Self {
            rule,
            across: WeightTable::default(),
            down: WeightTable::default(),
            fixed: Default::default(),
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let fixed = self.fixed.each_ref().map(FixedTable::bytes);
        self.across.bytes() + self.down.bytes() + fixed[0] + fixed[1]
    }

    /// Begins a row of the decoded pixels, and returns their place in it. None if they do not fit
    /// or need a border. Then the worker must finish them first.
    pub(crate) fn begin<'a>(
        &mut self,
        plan: &DecodePlan,
        steps: &[OpStep],
        size: Option<(u32, u32)>,
        row: &'a mut [u8],
    ) -> Result<Option<&'a mut [u8]>, SampleFault> {
        if pad_step(plan, steps).is_some() {
            return Ok(None);
        }
        let header = self.header(plan, steps)?;
        let room = self.room(plan, &header, size);
        let has_weights = self.weights(plan, header, room, row);
        Ok(has_weights.then(|| {
            let pixels = 3 * plan.window.w as usize * plan.window.h as usize;
            &mut row[room.pixels_at()..][..pixels]
        }))
    }

    /// Writes a row with a coded crop. `write` writes the crop and returns its bytes, or none if it
    /// does not fit or the file is not supported. False if a device with these limits should not
    /// decode the crop: it needs a border, or more than a part has. The content of the row is then
    /// undefined.
    pub(crate) fn copy_coded(
        &mut self,
        plan: &DecodePlan,
        steps: &[OpStep],
        size: Option<(u32, u32)>,
        limits: &PartLimits,
        row: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<bool, SampleFault> {
        if pad_step(plan, steps).is_some() {
            return Ok(false);
        }
        let header = self.header(plan, steps)?;
        let room = self.room(plan, &header, size);
        let window = (plan.window.w, plan.window.h);
        // How the row's pixels are made if the window does not fit.
        let resize = match self.weights(plan, header, room, row) {
            true => None,
            false => {
                write_identity_weights(&header, room, row);
                plan.axes
            }
        };
        let pixels = match resize {
            Some(_) => plan.size,
            None => window,
        };
        // A window of the same size needs no resize.
        if resize.is_some() && pixels == window {
            return Ok(false);
        }
        let space = &mut row[room.pixels_at()..][..room.coded];
        let coded = write(space).and_then(|coded| match resize {
            Some(axes) => Some(coded + self.tables(axes, &mut space[coded..])?),
            None => Some(coded),
        });
        // The consumer checks this too, and would end the run.
        let coded = coded.filter(|&coded| {
            let read = CodedPicture::read_as(&space[..coded], pixels);
            read.is_ok_and(|read| limits.hold(&read))
        });
        let Some(coded) = coded.and_then(|bytes| u32::try_from(bytes).ok()) else {
            return Ok(false);
        };
        row[CROP_HEADER_CODED].copy_from_slice(&coded.to_ne_bytes());
        Ok(true)
    }

    /// Writes the tables of a resize, as the workers' resampler has them. Returns the number of
    /// bytes. None if they do not fit.
    fn tables(&mut self, (x, y): (AxisGeometry, AxisGeometry), to: &mut [u8]) -> Option<usize> {
        self.across.prepare(x);
        self.down.prepare(y);
        let [across, down] = &mut self.fixed;
        across.fill(&mut self.across);
        down.fill(&mut self.down);
        let axes = [&*across, &*down].map(|table| ResizeAxis {
            starts: table.starts(),
            coefficients: table.coeffs(),
            taps: table.taps(),
            precision: table.precision(),
        });
        write_resize(axes, down_first(&x, &y), to)
    }

    /// Writes the header and the weights of a row. False if they, or the content, do not fit.
    fn weights(
        &mut self,
        plan: &DecodePlan,
        header: CropHeader,
        room: CropRowBytes,
        row: &mut [u8],
    ) -> bool {
        let Some((x, y)) = plan.axes else {
            write_identity_weights(&header, room, row);
            return true;
        };
        // Checks their sizes before tables are computed: tables for a very thin image are long.
        let taps = |axis: &AxisGeometry| axis.window() as u32;
        let most = CropHeader {
            width: plan.window.w,
            height: plan.window.h,
            across_taps: taps(&x),
            down_taps: taps(&y),
            ..header
        };
        if !most.fits(room) {
            return false;
        }
        self.across.prepare(x);
        self.down.prepare(y);
        let header = CropHeader {
            across_taps: most_weights(&self.across, header.out_width),
            down_taps: most_weights(&self.down, header.out_height),
            ..most
        };
        let (front, _) = split_row(&header, room, row);
        let (of_header, tables) = front.split_at_mut(CROP_HEADER);
        of_header.copy_from_slice(bytemuck::bytes_of(&header));
        let end = 4 * header.out_width as usize * (1 + header.across_taps as usize);
        let (across, down) = tables.split_at_mut(end);
        write(&self.across, header.out_width, across);
        write(&self.down, header.out_height, down);
        true
    }

    /// Begins a row of pixels that have the row's size, and returns their place.
    pub(crate) fn begin_resized<'a>(
        &mut self,
        plan: &DecodePlan,
        steps: &[OpStep],
        size: Option<(u32, u32)>,
        row: &'a mut [u8],
    ) -> Result<&'a mut [u8], SampleFault> {
        let header = self.header(plan, steps)?;
        let room = self.room(plan, &header, size);
        Ok(write_identity_weights(&header, room, row))
    }

    /// The header for pixels of the row's size.
    fn header(&self, plan: &DecodePlan, steps: &[OpStep]) -> Result<CropHeader, SampleFault> {
        let mut header = CropHeader {
            width: plan.size.0,
            height: plan.size.1,
            across_taps: 1,
            down_taps: 1,
            out_width: plan.size.0,
            out_height: plan.size.1,
            ..CropHeader::default()
        };
        let mut placement = plan.fold.placement;
        for step in &steps[plan.fold.steps..] {
            // Colour steps do not depend on places, so they commute with rotations.
            if let Some(turned) = turned(placement, &step.step) {
                placement = turned;
                continue;
            }
            let to = header.step.get_mut(header.steps as usize);
            let (Some(to), Some(step)) = (to, CropStep::of(&step.step)) else {
                return Err(SampleFault::new(
                    FaultKind::Unsupported,
                    "a device cannot run a step of the recipe",
                ));
            };
            *to = step;
            header.steps += 1;
        }
        header.flags = CropHeader::flags(placement);
        Ok(header)
    }

    /// The room of the row, whose size is set by the batch or the recipe.
    fn room(
        &self,
        plan: &DecodePlan,
        header: &CropHeader,
        size: Option<(u32, u32)>,
    ) -> CropRowBytes {
        let (width, height) = (plan.size.0 as usize, plan.size.1 as usize);
        let shown = header.placement().output_size(width, height);
        self.rule
            .row_bytes(size.unwrap_or((shown.1 as u32, shown.0 as u32)))
    }
}

/// The border that a crop needs to get the row's size.
pub(super) fn pad_step(plan: &DecodePlan, steps: &[OpStep]) -> Option<Step> {
    let next = steps.get(plan.fold.steps)?.step;
    matches!(next, Step::Pad { .. }).then_some(next)
}

fn turned(placement: PixelPlacement, step: &Step) -> Option<PixelPlacement> {
    match step {
        Step::Mirror => Some(placement.mirrored()),
        Step::UpsideDown => Some(placement.upside_down()),
        Step::Turn(quarters) => Some(placement.turned(*quarters)),
        _ => None,
    }
}

/// Weights that copy pixels, and the place of the pixels.
fn write_identity_weights<'a>(
    header: &CropHeader,
    room: CropRowBytes,
    row: &'a mut [u8],
) -> &'a mut [u8] {
    let (front, pixels) = split_row(header, room, row);
    let (of_header, mut tables) = front.split_at_mut(CROP_HEADER);
    of_header.copy_from_slice(bytemuck::bytes_of(header));
    for outputs in [header.out_width, header.out_height] {
        let (of_axis, rest) = tables.split_at_mut(8 * outputs as usize);
        let (starts, weights) = of_axis.split_at_mut(4 * outputs as usize);
        for (o, to) in (0..outputs).zip(starts.as_chunks_mut().0) {
            *to = o.to_ne_bytes();
        }
        weights.as_chunks_mut().0.fill(1.0f32.to_ne_bytes());
        tables = rest;
    }
    pixels
}

/// Splits a row into header and weights, and pixels.
fn split_row<'a>(
    header: &CropHeader,
    room: CropRowBytes,
    row: &'a mut [u8],
) -> (&'a mut [u8], &'a mut [u8]) {
    let (front, pixels) = row.split_at_mut(room.pixels_at());
    (front, &mut pixels[..header.payload_bytes() as usize])
}

/// The most weights of any output pixel.
fn most_weights(table: &WeightTable, outputs: u32) -> u32 {
    let of = |o: u32| table.row(o as usize).1.len() as u32;
    (0..outputs).map(of).max().unwrap_or(0)
}

/// Writes the first pixel of each output pixel, then tap by tap the weights of all output pixels.
fn write(table: &WeightTable, outputs: u32, to: &mut [u8]) {
    let outputs = outputs as usize;
    let to = to.as_chunks_mut::<4>().0;
    let (starts, weights) = to.split_at_mut(outputs);
    weights.fill([0; 4]);
    for (o, to) in starts.iter_mut().enumerate() {
        let (start, row) = table.row(o);
        *to = (start as u32).to_ne_bytes();
        let places = weights[o..].iter_mut().step_by(outputs);
        for (to, weight) in places.zip(row) {
            *to = (*weight as f32).to_ne_bytes();
        }
    }
}
