//! The instance masks of a sample: from polygons and run lengths to bytes of a row.
//!
//! Runs where `sample` does. Masks that are drawn at the picture's size go through the steps of their
//! picture as the bits of a label image: a label has three bytes, so it holds the masks of 24
//! objects. Labels move by nearest filters, which mix no bits.

use crate::data::objects::ObjectShape;
use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::sample::mask::label_bytes;
use crate::jobs::sample::{ONLY, RowRequest, SampleDecoder};
use crate::picture::labels::LABEL;
use crate::picture::read_header::DecodeCost;
use crate::picture::{ExifOrientation, PictureLimits, jpeg::PixelRegion};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{LabelFilter, LabelMoves, SampleProgram, Size};
use crate::targets::masks::{MaskScale, PolygonLimits, RunLengths, mask_of_polygons};
use crate::targets::{PolygonArray, TargetFault};

/// Masks that a label holds, one in each bit.
const BITS: usize = 8 * LABEL;

/// Makes the masks of rows. Keeps its buffers.
#[derive(Debug)]
pub(crate) struct InstanceMaskMaker {
    decoder: SampleDecoder,
    scale: MaskScale,
    filter: LabelFilter,
    at_source: bool,
    /// Labels of the part of the picture that the first steps need.
    labels: Vec<u8>,
    /// Labels of the row.
    row: Vec<u8>,
}

/// The objects of a row whose masks are made.
pub(crate) struct MaskedObjects<'a> {
    /// As the annotation states them, in pixels of the whole picture.
    pub(crate) shapes: &'a [ObjectShape],
    /// Polygons in pixels of the row, or none.
    pub(crate) moved: &'a PolygonArray,
    /// Height and width of the whole upright picture.
    pub(crate) picture: (u32, u32),
    /// The size of the row.
    pub(crate) output: Size,
}

impl InstanceMaskMaker {
    /// `program`: that of labels ([`SampleProgram::for_labels`]).
    pub(crate) fn new(
        program: &SampleProgram,
        limits: &PictureLimits,
        scale: MaskScale,
        rule: &ObjectRule,
    ) -> Result<Self> {
        Ok(Self {
            decoder: SampleDecoder::new(program, limits)?,
            scale,
            filter: rule.mask_filter(),
            at_source: rule.draws_at_source(),
            labels: Vec::new(),
            row: Vec::new(),
        })
    }

    /// Whether polygons of the row are needed.
    pub(crate) fn needs_moved(&self) -> bool {
        !self.at_source
    }

    /// Fills the masks `out`, which are 0: one after the other.
    ///
    /// # Errors
    /// Shapes that are over a limit or of another picture; too little memory for the labels.
    pub(crate) fn write(
        &mut self,
        objects: &MaskedObjects<'_>,
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let size = self.scale.size(objects.output);
        let mask = size.height as usize * size.width as usize;
        if out.len() != mask * objects.shapes.len() {
            return Err(FaultKind::Corrupt.fault("its masks do not fit the room of its row"));
        }
        let mut at_source = Vec::new();
        for (number, shape) in objects.shapes.iter().enumerate() {
            match shape {
                ObjectShape::None => {}
                ObjectShape::Polygons(_) if !self.at_source => {
                    let rings = objects.moved.rings(number);
                    let limits = PolygonLimits::default();
                    let runs = mask_of_polygons(rings, objects.output, self.scale, &limits);
                    let out = &mut out[number * mask..][..mask];
                    let drawn = runs.and_then(|runs| runs.decode(out));
                    drawn.map_err(|fault| wrong(&fault))?;
                }
                _ => at_source.push(number),
            }
        }
        for chunk in at_source.chunks(BITS) {
            self.write_chunk(objects, chunk, request, (out, size), meter)?;
        }
        Ok(())
    }

    /// Fills the masks of these objects, at most [`BITS`], by way of a label image.
    fn write_chunk(
        &mut self,
        objects: &MaskedObjects<'_>,
        chunk: &[usize],
        request: &RowRequest<'_, impl RandomStreams>,
        (out, size): (&mut [u8], Size),
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let (height, width) = objects.picture;
        let row = (objects.output.width, objects.output.height);
        let whole = StoredPicture {
            size: (width, height),
            orientation: ExifOrientation::Normal,
            cost: DecodeCost::Rows {
                scratch: label_bytes((width, height)) + label_bytes(row),
            },
            pixel_box: None,
        };
        let stored = whole.with_box(request.part)?;
        let moves = LabelMoves {
            filter: self.filter,
            fill: [0; LABEL],
        };
        let plan = (self.decoder).plan_with(stored, request, |steps| moves.replace(steps))?;
        let window = plan.window;
        self.labels.clear();
        let bytes = label_bytes((window.w, window.h)) as usize;
        self.labels.resize(bytes, 0);
        for (bit, number) in chunk.iter().enumerate() {
            let picture = Size { height, width };
            if let Some(runs) = runs_of(&objects.shapes[*number], picture)? {
                set_bits(&runs, window, bit, &mut self.labels);
            }
        }
        let mut of_window = plan;
        (of_window.window.x, of_window.window.y) = (0, 0);
        self.row.clear();
        self.row.resize(label_bytes(row) as usize, 0);
        let from = (&self.labels[..], window.w as usize);
        let to = &mut self.row;
        (self.decoder).fill_from_raw(ONLY, from, &of_window, request.size, to, meter)?;
        let mask = size.height as usize * size.width as usize;
        let step = match self.scale {
            MaskScale::Full => 1,
            MaskScale::Quarter => 4,
        };
        for (bit, number) in chunk.iter().enumerate() {
            let out = &mut out[number * mask..][..mask];
            let lines = self.row.chunks_exact(LABEL * row.0 as usize);
            let lines = lines.step_by(step);
            for (to, line) in out.chunks_exact_mut(size.width as usize).zip(lines) {
                let labels = line.chunks_exact(LABEL).step_by(step);
                for (to, label) in to.iter_mut().zip(labels) {
                    *to = (label[bit / 8] >> (bit % 8)) & 1;
                }
            }
        }
        Ok(())
    }

    /// Frees all buffers if they hold more than `most` bytes.
    pub(crate) fn free_above(&mut self, most: usize) {
        let held = self.labels.capacity() + self.row.capacity() + self.decoder.held_bytes();
        if held > most {
            (self.labels, self.row) = (Vec::new(), Vec::new());
            self.decoder.free_buffers();
        }
    }
}

/// Sets a bit of the labels of a window where the mask of the whole picture is inside.
fn set_bits(runs: &RunLengths, window: PixelRegion, bit: usize, labels: &mut [u8]) {
    let height = u64::from(runs.size().height);
    let (top, bottom) = (u64::from(window.y), u64::from(window.y + window.h));
    let mut start = 0u64;
    for (run, count) in runs.counts().iter().enumerate() {
        let end = start + u64::from(*count);
        let mut at = start;
        // Runs go down a column, and on in the next one.
        while run % 2 == 1 && at < end {
            let (x, y) = (at / height, at % height);
            let column_end = end.min((x + 1) * height);
            let x = (x as u32).checked_sub(window.x);
            if let Some(x) = x.filter(|x| *x < window.w) {
                let last = y + (column_end - at);
                for y in y.max(top)..last.min(bottom) {
                    let pixel = (y - top) as usize * window.w as usize + x as usize;
                    labels[LABEL * pixel + bit / 8] |= 1 << (bit % 8);
                }
            }
            at = column_end;
        }
        start = end;
    }
}

/// The mask of a shape in a picture of this size. None if it covers nothing.
fn runs_of(shape: &ObjectShape, picture: Size) -> Result<Option<RunLengths>, SampleFault> {
    let check = |size: &(u32, u32)| match *size == (picture.height, picture.width) {
        true => Ok(()),
        false => Err(FaultKind::Unsupported.fault(format!(
            "a mask of its annotation has {} x {} pixels, and the image {} x {}: both must have \
             one size",
            size.1, size.0, picture.width, picture.height
        ))),
    };
    let runs = match shape {
        ObjectShape::None => return Ok(None),
        ObjectShape::Polygons(rings) => {
            let rings = rings.iter().map(Vec::as_slice);
            mask_of_polygons(rings, picture, MaskScale::Full, &PolygonLimits::default())
        }
        ObjectShape::Runs { size, counts } => {
            check(size)?;
            RunLengths::new(picture, counts.clone())
        }
        ObjectShape::RunText { size, text } => {
            check(size)?;
            RunLengths::from_text(picture, text)
        }
    };
    runs.map(Some).map_err(|fault| wrong(&fault))
}

fn wrong(fault: &TargetFault) -> SampleFault {
    FaultKind::Corrupt.fault(format!("its objects: {fault}"))
}
