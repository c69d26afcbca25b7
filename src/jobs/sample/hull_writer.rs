//! The row of a sample whose crops a device makes: the decoded hull, and for each crop its window,
//! the coefficients of its resize, and its steps.
//!
//! Runs in workers. If the hull or a table does not fit the row, all crops are resized here, with
//! the same pixels. Which samples those are depends on the sample alone.

use crate::decode_plan::CropGeometry;
use crate::decode_plan::hull_row::{
    HULL_DOWN_FIRST, HULL_HEADER, HULL_WEIGHT_BYTES, HullCropHeader,
};
use crate::decode_plan::stored_picture::DecodePlan;
use crate::error::{FaultKind, SampleFault};
use crate::jobs::sample::level_steps::CropLevels;
use crate::jobs::stages;
use crate::picture::jpeg::{DecodeScale, PixelRegion};
use crate::pixels::resample::{ImageResampler, PixelSource, ResizeAxes, down_first};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::HullRule;
use crate::recipe::fixed_weights::FixedTable;
use crate::recipe::steps::OpStep;
use crate::recipe::weights::{AxisGeometry, WeightTable};

/// Bytes of a decoded pixel.
const PIXEL: usize = 3;

/// Writes rows. Keeps the tables of the last crop.
#[derive(Debug)]
pub(super) struct HullWriter {
    rule: HullRule,
    across: AxisCoefficients,
    down: AxisCoefficients,
}

/// The coefficients of one axis, as the CPU's resize has them.
#[derive(Debug, Default)]
struct AxisCoefficients {
    exact: WeightTable,
    fixed: FixedTable,
}

/// What is decoded for all crops of an image.
pub(super) struct SharedDecode {
    pub(super) scale: DecodeScale,
    /// The hull: the smallest window with the windows of all crops.
    pub(super) window: PixelRegion,
    /// The plan of each crop, at this scale.
    pub(super) plans: Vec<DecodePlan>,
}

impl SharedDecode {
    /// The plans, with windows in decoded pixels whose first one has this place.
    pub(super) fn plans_from(&self, origin: (u32, u32)) -> Vec<DecodePlan> {
        let mut plans = self.plans.clone();
        for plan in &mut plans {
            plan.window.x -= origin.0;
            plan.window.y -= origin.1;
        }
        plans
    }
}

/// Decoded pixels: of the hull, and perhaps of more around it.
#[derive(Clone, Copy)]
pub(super) struct DecodedPixels<'a> {
    pub(super) pixels: &'a [u8],
    /// Pixels from a line to the next.
    pub(super) stride: usize,
    /// Place of the first pixel in the scaled, stored image.
    pub(super) origin: (u32, u32),
}

/// The image of a row, and what was decoded of it.
#[derive(Clone, Copy)]
pub(super) struct HullSource<'a> {
    /// Height and width of the upright image.
    pub(super) upright: (u32, u32),
    pub(super) shared: &'a SharedDecode,
    pub(super) from: DecodedPixels<'a>,
}

impl HullWriter {
    pub(super) fn new(rule: HullRule) -> Self {
        Self {
            rule,
            across: AxisCoefficients::default(),
            down: AxisCoefficients::default(),
        }
    }

    /// Forgets the tables. Those that a panic left half made are not used again.
    pub(super) fn free_buffers(&mut self) {
        self.across = AxisCoefficients::default();
        self.down = AxisCoefficients::default();
    }

    /// The most bytes of the tables of any row.
    pub(super) fn most_bytes(&self) -> u64 {
        self.rule.worker_bytes()
    }

    pub(super) fn held_bytes(&self) -> usize {
        let axes = [&self.across, &self.down];
        axes.map(|axis| axis.exact.bytes() + axis.fixed.bytes())
            .iter()
            .sum()
    }

    /// Fills a row. `steps`: the drawn steps of each crop.
    pub(super) fn write<'s>(
        &mut self,
        steps: impl Iterator<Item = &'s [OpStep]>,
        source: HullSource<'_>,
        resampler: &mut ImageResampler,
        row: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let plans = &source.shared.plans;
        if row.len() < self.rule.row_bytes() || plans.len() != self.rule.count() {
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row that has no room for its crops",
            ));
        }
        let mut headers = Vec::with_capacity(plans.len());
        for (crop, (plan, steps)) in plans.iter().zip(steps).enumerate() {
            let mut header = HullCropHeader {
                out_width: plan.size.0,
                out_height: plan.size.1,
                geometry: CropGeometry::of(source.upright, steps),
                ..HullCropHeader::default()
            };
            let levels = CropLevels {
                header: &mut header,
                weights: &mut row[self.rule.tables_at(crop)..],
            };
            levels.write(&steps[plan.fold.steps..], plan.fold.placement)?;
            headers.push(header);
        }
        // The size first, before tables are computed in vain.
        let fits = self.has_room(source.shared.window);
        if fits && self.has_tables(&mut headers, plans, row) {
            self.copy_hull(&mut headers, source, row);
            meter.lap(stages::EMIT);
        } else {
            meter.counted += 1;
            self.resize_all(&mut headers, source, resampler, row);
            meter.lap(stages::RESAMPLE);
        }
        row[..headers.len() * HULL_HEADER].copy_from_slice(bytemuck::cast_slice(&headers));
        Ok(())
    }

    /// Writes the coefficients of all crops. False if those of one do not fit.
    fn has_tables(
        &mut self,
        headers: &mut [HullCropHeader],
        plans: &[DecodePlan],
        row: &mut [u8],
    ) -> bool {
        let mut crops = headers.iter_mut().zip(plans).enumerate();
        crops.all(|(crop, (header, plan))| self.tables(crop, plan, header, row))
    }

    fn tables(
        &mut self,
        crop: usize,
        plan: &DecodePlan,
        header: &mut HullCropHeader,
        row: &mut [u8],
    ) -> bool {
        let room = self.rule.crops[crop];
        (header.width, header.height) = (plan.window.w, plan.window.h);
        let Some((x, y)) = plan.axes else {
            write_copies(&self.rule, crop, header, row);
            return header.fits(&room);
        };
        // Tables of a strong reduction are long, so their length is estimated first.
        let most = room.most_window();
        let is_long = |axis: &AxisGeometry| !axis.is_identity() && axis.window() > most;
        if is_long(&x) || is_long(&y) {
            return false;
        }
        let taps = [(&mut self.across, x), (&mut self.down, y)].map(|(axis, of)| {
            axis.prepare(of);
            axis.taps(&of)
        });
        [header.across_taps, header.down_taps] = taps.map(|(taps, _)| taps);
        [header.across_precision, header.down_precision] = taps.map(|(_, precision)| precision);
        if !x.is_identity() && !y.is_identity() && down_first(&x, &y) {
            header.flags |= HULL_DOWN_FIRST;
        }
        if !header.fits(&room) {
            return false;
        }
        let to = &mut row[self.rule.tables_at(crop) + HULL_WEIGHT_BYTES..];
        let written = self.across.write(&x, to);
        self.down.write(&y, &mut to[written..]);
        true
    }

    /// Whether the pixels of a hull fit a row.
    fn has_room(&self, hull: PixelRegion) -> bool {
        PIXEL as u64 * u64::from(hull.w) * u64::from(hull.h) <= self.rule.pixels as u64
    }

    /// Copies a hull that fits.
    fn copy_hull(&self, headers: &mut [HullCropHeader], source: HullSource<'_>, row: &mut [u8]) {
        let HullSource { shared, from, .. } = source;
        let hull = shared.window;
        let line = PIXEL * hull.w as usize;
        let to = &mut row[self.rule.pixels_at()..][..line * hull.h as usize];
        let (left, top) = (hull.x - from.origin.0, hull.y - from.origin.1);
        let first = PIXEL * (top as usize * from.stride + left as usize);
        let lines = from.pixels[first..].chunks(PIXEL * from.stride);
        for (to, line) in to.chunks_exact_mut(line).zip(lines) {
            to.copy_from_slice(&line[..to.len()]);
        }
        for (header, plan) in headers.iter_mut().zip(&shared.plans) {
            let (x, y) = (plan.window.x - hull.x, plan.window.y - hull.y);
            header.line = line as u32;
            header.pixels = y * header.line + PIXEL as u32 * x;
        }
    }

    /// Resizes all crops, which follow each other in the row.
    fn resize_all(
        &self,
        headers: &mut [HullCropHeader],
        source: HullSource<'_>,
        resampler: &mut ImageResampler,
        row: &mut [u8],
    ) {
        let HullSource { shared, from, .. } = source;
        let mut end = 0;
        for (crop, (header, plan)) in headers.iter_mut().zip(&shared.plans).enumerate() {
            (header.width, header.height) = plan.size;
            header.flags &= !HULL_DOWN_FIRST;
            header.line = PIXEL as u32 * header.width;
            header.pixels = end as u32;
            write_copies(&self.rule, crop, header, row);
            let bytes = header.line as usize * header.height as usize;
            let to = &mut row[self.rule.pixels_at() + end..][..bytes];
            end += bytes;
            let window = plan.window;
            let (left, top) = (window.x - from.origin.0, window.y - from.origin.1);
            let pixels = PixelSource {
                pixels: &from.pixels[PIXEL * (top as usize * from.stride + left as usize)..],
                width: window.w as usize,
                height: window.h as usize,
                stride: PIXEL * from.stride,
            };
            if let Some((x, y)) = plan.axes {
                resampler.resample(pixels, ResizeAxes { x, y }, to);
                continue;
            }
            let lines = pixels.pixels.chunks(pixels.stride);
            for (to, line) in to.chunks_exact_mut(header.line as usize).zip(lines) {
                to.copy_from_slice(&line[..to.len()]);
            }
        }
    }
}

impl AxisCoefficients {
    fn prepare(&mut self, axis: AxisGeometry) {
        if !axis.is_identity() && self.exact.prepare(axis) {
            self.fixed.fill(&mut self.exact);
        }
    }

    /// Coefficients of each output pixel, and their fractional bits.
    fn taps(&self, axis: &AxisGeometry) -> (u32, u32) {
        match axis.is_identity() {
            true => (1, 0),
            false => (self.fixed.taps() as u32, self.fixed.precision()),
        }
    }

    /// Writes the first pixel of each output pixel, then tap by tap the coefficients of all output
    /// pixels. Returns the number of bytes.
    fn write(&self, axis: &AxisGeometry, to: &mut [u8]) -> usize {
        let outputs = axis.out_size as usize;
        if axis.is_identity() {
            return write_picks(axis.copies_from(), outputs, to);
        }
        let taps = self.fixed.taps();
        let (starts, rest) = to.split_at_mut(size_of::<u32>() * outputs);
        for (to, start) in starts.as_chunks_mut().0.iter_mut().zip(self.fixed.starts()) {
            *to = start.to_ne_bytes();
        }
        let coefficients = rest[..size_of::<i32>() * outputs * taps].as_chunks_mut().0;
        for (o, of_output) in self.fixed.coeffs().chunks_exact(taps).enumerate() {
            let places = coefficients[o..].iter_mut().step_by(outputs);
            for (to, coefficient) in places.zip(of_output) {
                *to = coefficient.to_ne_bytes();
            }
        }
        outputs * (size_of::<u32>() + size_of::<i32>() * taps)
    }
}

/// Coefficients that copy the pixels from `first` on. Returns the number of bytes.
fn write_picks(first: usize, outputs: usize, to: &mut [u8]) -> usize {
    let (starts, rest) = to.split_at_mut(size_of::<u32>() * outputs);
    for (o, to) in (first as u32..).zip(starts.as_chunks_mut().0) {
        *to = o.to_ne_bytes();
    }
    let coefficients = &mut rest[..size_of::<i32>() * outputs];
    coefficients.as_chunks_mut().0.fill(1i32.to_ne_bytes());
    outputs * (size_of::<u32>() + size_of::<i32>())
}

/// Coefficients of a crop whose window has its size.
fn write_copies(rule: &HullRule, crop: usize, header: &mut HullCropHeader, row: &mut [u8]) {
    (header.across_taps, header.down_taps) = (1, 1);
    (header.across_precision, header.down_precision) = (0, 0);
    let to = &mut row[rule.tables_at(crop) + HULL_WEIGHT_BYTES..];
    let written = write_picks(0, header.out_width as usize, to);
    write_picks(0, header.out_height as usize, &mut to[written..]);
}
