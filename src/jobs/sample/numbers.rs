//! A raster of numbers: depths, alpha or a flow, from a file to its planes in a row.
//!
//! Runs where `sample` does. The steps of the image are drawn again. The number of each pixel of
//! the file moves as a label does, so each pixel of the row knows its pixel of the file, whatever
//! the steps are. `Bilinear` reads around the place that the matrix of all steps has.

use std::io::Cursor;

use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::raster_rule::{RasterFilter, RasterFloat, RasterRule, bytes_of, write_all};
use crate::jobs::sample::raster_size::{of_raster, size_fault};
use crate::jobs::sample::{KEEP, ONLY, RowRequest, SampleDecoder};
use crate::picture::ExifOrientation;
use crate::picture::PictureLimits;
use crate::picture::labels::{LABEL, OUTSIDE};
use crate::picture::read_header::DecodeCost;
use crate::picture::{depth, flow};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{LabelMoves, SampleProgram};
use crate::sys::panics::catch_panic;
use crate::targets::{MotionKind, PointMatrix, SampleMotion};

/// The place of a pixel that is outside of its image.
const NOWHERE: u32 = u32::MAX;

/// What is read, and how it is written.
#[derive(Debug, Clone, Copy)]
struct NumberForm {
    /// Numbers of a pixel in the file: 2 for a flow.
    channels: usize,
    divide: f32,
    missing: Option<f32>,
    fill: f32,
    /// Whether a last plane says where numbers are known.
    valid: bool,
    filter: RasterFilter,
    dtype: RasterFloat,
}

/// The state that is kept from raster to raster.
#[derive(Debug)]
pub(crate) struct NumberDecoder {
    decoder: SampleDecoder,
    form: NumberForm,
    limits: PictureLimits,
    /// The numbers of the file. NaN is missing.
    numbers: Vec<f32>,
    labels: Vec<u8>,
    row: Vec<u8>,
    /// For each pixel of the row, its pixel of the file.
    places: Vec<u32>,
}

impl NumberDecoder {
    /// `program`: [`SampleProgram::for_places`]. `rule`: of numbers or a flow.
    pub(crate) fn new(
        program: &SampleProgram,
        rule: &RasterRule,
        limits: &PictureLimits,
    ) -> Result<Self> {
        let form = match rule {
            RasterRule::Numbers(rule) => NumberForm {
                channels: 1,
                divide: rule.divide,
                missing: rule.missing.map(|missing| missing.0),
                fill: rule.fill.0,
                valid: false,
                filter: rule.filter,
                dtype: rule.dtype,
            },
            RasterRule::Flow(rule) => NumberForm {
                channels: 2,
                divide: 1.0,
                missing: None,
                fill: rule.fill(),
                valid: rule.valid,
                filter: rule.filter,
                dtype: rule.dtype,
            },
            RasterRule::Mask(_) | RasterRule::Image(_) => {
                let what = "a raster of labels or colours is none of numbers";
                return Err(crate::error::Error::protocol(what));
            }
        };
        Ok(Self {
            decoder: SampleDecoder::new(program, limits)?,
            form,
            limits: *limits,
            numbers: Vec::new(),
            labels: Vec::new(),
            row: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Fills the planes `out` from the bytes of a file. `image`: height and width of the upright
    /// image, without the sample's box.
    pub(crate) fn make_raster(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let make = || self.make(bytes, image, request, out, meter);
        let Some(made) = catch_panic(make) else {
            self.free_buffers();
            return Err(FaultKind::Corrupt
                .fault("decoding this raster panicked: please report it with the file"));
        };
        let numbers = self.numbers.capacity() + self.places.capacity();
        let held = self.labels.capacity() + self.row.capacity() + size_of::<f32>() * numbers;
        if held + self.decoder.held_bytes() > KEEP {
            self.free_buffers();
        }
        made
    }

    fn free_buffers(&mut self) {
        self.decoder.free_buffers();
        (self.numbers, self.places) = (Vec::new(), Vec::new());
        (self.labels, self.row) = (Vec::new(), Vec::new());
    }

    fn make(
        &mut self,
        bytes: &[u8],
        image: (u32, u32),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let is_flow = self.form.channels == 2;
        let mut file = Cursor::new(bytes);
        let header = match is_flow {
            true => flow::size_and_bytes(bytes, &self.limits),
            false => depth::size_and_bytes(&mut file, &self.limits).map_err(of_raster),
        };
        let (size, scratch) = header?;
        self.limits.check_pixels("a raster", size)?;
        if u64::from(size.0) * u64::from(size.1) >= u64::from(NOWHERE) {
            return Err(FaultKind::TooLarge.fault(format!(
                "the raster has {} x {} pixels: use fewer than 2^32",
                size.0, size.1
            )));
        }
        if (size.1, size.0) != image {
            return Err(size_fault((size.1, size.0), image, 1));
        }
        self.map_places((size, scratch), request, meter)?;
        let numbers = &mut self.numbers;
        match is_flow {
            true => flow::read(bytes, &self.limits, numbers),
            false => depth::read(bytes, &self.limits, &|_| Ok(()), numbers).map_err(of_raster),
        }?;
        let NumberForm {
            divide, missing, ..
        } = self.form;
        for number in &mut self.numbers {
            *number = match *number {
                n if !n.is_finite() || Some(n) == missing => f32::NAN,
                n => n / divide,
            };
        }
        self.write(
            size,
            request.part.map_or((0, 0), |part| (part.left, part.top)),
            out,
        )
    }

    /// Computes [`NumberDecoder::places`] for a file of this width and height, which takes `scratch`
    /// bytes.
    fn map_places(
        &mut self,
        (size, scratch): ((u32, u32), u64),
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let whole = StoredPicture {
            size,
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Raw,
            pixel_box: None,
        };
        let part = whole.with_box(request.part)?;
        let own = || self.decoder.program().extent.of(part.upright_size());
        let (height, across) = request.size.unwrap_or_else(own);
        let stored = StoredPicture {
            cost: DecodeCost::Rows {
                scratch: scratch + place_bytes(size, (across, height)),
            },
            ..part
        };
        let moves = LabelMoves {
            filter: self.form.filter.of_places(),
            fill: OUTSIDE,
        };
        let plan = (self.decoder).plan_with(stored, request, |steps| moves.replace(steps))?;
        let window = plan.window;
        let mut of_window = plan;
        (of_window.window.x, of_window.window.y) = (0, 0);
        let pixels = height as usize * across as usize;
        self.places.clear();
        self.places.resize(pixels, 0);
        // A label has 24 bits. The pixels of a large image need two: their row and their column.
        let fits = u64::from(size.0) * u64::from(size.1)
            < u64::from(u32::from_le_bytes([OUTSIDE[0], OUTSIDE[1], OUTSIDE[2], 0]));
        let width = size.0;
        let passes: &[fn(u32, u32, u32) -> u32] = match fits {
            true => &[|x, y, width| y * width + x],
            false => &[|_, y, _| y, |x, _, _| x],
        };
        for (pass, label) in passes.iter().enumerate() {
            self.labels.clear();
            self.labels
                .reserve_exact(LABEL * window.w as usize * window.h as usize);
            for y in window.y..window.y + window.h {
                for x in window.x..window.x + window.w {
                    let [low, middle, high, _] = label(x, y, width).to_le_bytes();
                    self.labels.extend_from_slice(&[low, middle, high]);
                }
            }
            self.row.clear();
            self.row.resize(LABEL * pixels, 0);
            let from = (&self.labels[..], window.w as usize);
            let row = &mut self.row;
            (self.decoder).fill_from_raw(ONLY, from, &of_window, request.size, row, meter)?;
            for (place, label) in self.places.iter_mut().zip(self.row.as_chunks::<LABEL>().0) {
                let [low, middle, high] = *label;
                let number = u32::from_le_bytes([low, middle, high, 0]);
                *place = match (*label == OUTSIDE, pass) {
                    (true, _) => NOWHERE,
                    (false, 0) => number,
                    (false, _) => *place * width + number,
                };
            }
        }
        Ok(())
    }

    /// Writes the planes. `size`: width and height of the file. `box_at`: left and top of the
    /// sample's box.
    fn write(
        &self,
        size: (u32, u32),
        box_at: (u32, u32),
        out: &mut [u8],
    ) -> Result<(), SampleFault> {
        let form = self.form;
        let motion = self.decoder.last_motion();
        let matrix = motion.matrix();
        let not_affine = || {
            FaultKind::Unsupported.fault(
                "the steps of the image have no single matrix: use filter floor, center or pillow",
            )
        };
        let reader = match form.filter {
            RasterFilter::Bilinear => {
                let inverse = matrix.as_ref().and_then(PointMatrix::inverse);
                Some(BilinearReader {
                    numbers: &self.numbers,
                    channels: form.channels,
                    width: size.0 as usize,
                    box_at,
                    inverse: inverse.ok_or_else(not_affine)?,
                    bounds: visible(&motion),
                })
            }
            RasterFilter::Floor | RasterFilter::Center | RasterFilter::Pillow => None,
        };
        let [[a, b, _], [d, e, _], _] = match form.channels {
            2 => matrix.ok_or_else(not_affine)?.0,
            _ => PointMatrix::IDENTITY.0,
        };
        let across = motion.output().width.max(1) as usize;
        let value = |at: usize, place: u32| -> [f32; 2] {
            let from = match (&reader, place) {
                (_, NOWHERE) => return [f32::NAN; 2],
                (Some(reader), _) => reader.at([at % across, at / across]),
                (None, place) => {
                    let first = place as usize * form.channels;
                    let last = first + form.channels - 1;
                    match (self.numbers.get(first), self.numbers.get(last)) {
                        (Some(x), Some(y)) => [*x, *y],
                        _ => [f32::NAN; 2],
                    }
                }
            };
            match form.channels {
                2 => {
                    let [u, v] = from.map(f64::from);
                    [(a * u + b * v) as f32, (d * u + e * v) as f32]
                }
                _ => from,
            }
        };
        let places = || self.places.iter().enumerate();
        let filled = |number: f32| if number.is_nan() { form.fill } else { number };
        let plane = self.places.len() * bytes_of(form.dtype);
        let mut planes = out.chunks_exact_mut(plane.max(1));
        for channel in 0..form.channels {
            if let Some(to) = planes.next() {
                let numbers = places().map(|(at, place)| filled(value(at, *place)[channel]));
                write_all(form.dtype, to, numbers);
            }
        }
        if let Some(to) = planes.next().filter(|_| form.valid) {
            let known = |(at, place): (usize, &u32)| {
                let is_known = value(at, *place).iter().all(|number| !number.is_nan());
                f32::from(u8::from(is_known))
            };
            write_all(form.dtype, to, places().map(known));
        }
        Ok(())
    }
}

/// Bytes of the labels and places of a raster of this size, for a row of this size. Sizes are widths
/// and heights.
pub(crate) fn place_bytes(file: (u32, u32), row: (u32, u32)) -> u64 {
    let pixels = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
    let of_row = (LABEL + size_of::<u32>()) as u64;
    LABEL as u64 * pixels(file) + of_row * pixels(row)
}

/// What resizes see of the source: left, top, right and bottom. A resize never reads outside of a
/// crop before it.
fn visible(motion: &SampleMotion) -> [f64; 4] {
    let source = motion.source();
    let mut seen = [0.0, 0.0, f64::from(source.width), f64::from(source.height)];
    let mut before = PointMatrix::IDENTITY;
    for step in motion.steps() {
        let [[a, b, _], [d, e, _], _] = before.0;
        let is_upright = (b == 0.0 && d == 0.0) || (a == 0.0 && e == 0.0);
        if step.kind == MotionKind::Resize
            && is_upright
            && let Some(inverse) = before.inverse()
        {
            let (width, height) = (f64::from(step.before.width), f64::from(step.before.height));
            let [x0, y0] = inverse.map([0.0, 0.0]);
            let [x1, y1] = inverse.map([width, height]);
            seen = [
                seen[0].max(x0.min(x1)),
                seen[1].max(y0.min(y1)),
                seen[2].min(x0.max(x1)),
                seen[3].min(y0.max(y1)),
            ];
        }
        if let Some(matrix) = step.matrix() {
            before = before.then(matrix);
        }
    }
    seen
}

/// Reads between pixels.
struct BilinearReader<'a> {
    numbers: &'a [f32],
    channels: usize,
    width: usize,
    /// Left and top of the sample's box.
    box_at: (u32, u32),
    /// From the row to the box.
    inverse: PointMatrix,
    bounds: [f64; 4],
}

impl BilinearReader<'_> {
    /// The numbers at the place of a pixel of the row. NaN: missing.
    fn at(&self, [x, y]: [usize; 2]) -> [f32; 2] {
        let place = self.inverse.map([x as f64 + 0.5, y as f64 + 0.5]);
        let axis = |at: f64, first: f64, end: f64| {
            // Between the centres of the first and the last pixel.
            let last = (end.ceil() - 1.0).max(first.floor());
            let at = (at - 0.5).clamp(first.floor(), last);
            let low = at.floor();
            (low as usize, (low + 1.0).min(last) as usize, at - low)
        };
        let [left, top, right, bottom] = self.bounds;
        let (x0, x1, fx) = axis(place[0], left, right);
        let (y0, y1, fy) = axis(place[1], top, bottom);
        let near = (
            if fx < 0.5 { x0 } else { x1 },
            if fy < 0.5 { y0 } else { y1 },
        );
        std::array::from_fn(|channel| {
            let number = |x: usize, y: usize| {
                let (x, y) = (x + self.box_at.0 as usize, y + self.box_at.1 as usize);
                let at = (y * self.width + x) * self.channels + channel % self.channels;
                self.numbers.get(at).copied().unwrap_or(f32::NAN)
            };
            let corners = [
                (x0, y0, (1.0 - fx) * (1.0 - fy)),
                (x1, y0, fx * (1.0 - fy)),
                (x0, y1, (1.0 - fx) * fy),
                (x1, y1, fx * fy),
            ];
            let used = corners.into_iter().filter(|(.., weight)| *weight > 0.0);
            let mean = used
                .map(|(x, y, weight)| weight * f64::from(number(x, y)))
                .sum::<f64>() as f32;
            // One missing number makes the sum NaN.
            match mean.is_nan() {
                true => number(near.0, near.1),
                false => mean,
            }
        })
    }
}
