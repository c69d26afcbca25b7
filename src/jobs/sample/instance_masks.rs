//! The instance masks of a sample: from polygons and run lengths to bytes of a row.
//!
//! Runs where `sample` does. Masks that are drawn at the picture's size go through the steps of their
//! picture as the bits of a label image: a label has three bytes, so it holds the masks of 24
//! objects. Labels move by nearest filters, which mix no bits.

use crate::data::objects::ObjectShape;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_rule::ObjectRule;
use crate::jobs::sample::RowRequest;
use crate::jobs::sample::label_mover::{LabelMover, LabelPicture};
use crate::jobs::stage_needs::{BITS, label_bytes};
use crate::picture::labels::LABEL;
use crate::picture::{PictureLimits, jpeg::PixelRegion};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::{LabelFilter, LabelMoves, SampleProgram, Size};
use crate::targets::masks::{MaskScale, PolygonLimits, RunLengths, mask_of_polygons};
use crate::targets::{PolygonArray, TargetFault};

/// Makes the masks of rows. Keeps its buffers.
#[derive(Debug)]
pub(crate) struct InstanceMaskMaker {
    mover: LabelMover,
    scale: MaskScale,
    filter: LabelFilter,
    at_source: bool,
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
            mover: LabelMover::new(program, limits)?,
            scale,
            filter: rule.mask_filter(),
            at_source: rule.draws_at_source(),
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
            self.write_chunk(objects, chunk, request, out, meter)?;
        }
        Ok(())
    }

    /// Fills the masks of these objects, at most [`BITS`], by way of a label image.
    fn write_chunk(
        &mut self,
        objects: &MaskedObjects<'_>,
        chunk: &[usize],
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let row = (objects.output.height, objects.output.width);
        let picture = LabelPicture {
            size: objects.picture,
            row,
            moves: moves_of_bits(self.filter),
            scratch: 0,
        };
        let shapes = chunk.iter().map(|number| &objects.shapes[*number]);
        let labels = move_shapes(&mut self.mover, shapes, &picture, request, meter)?;
        write_bits(
            labels,
            (objects.output, self.scale),
            chunk.iter().copied(),
            out,
        );
        Ok(())
    }

    /// Frees all buffers if they hold more than `most` bytes.
    pub(crate) fn free_above(&mut self, most: usize) {
        self.mover.free_above(most);
    }
}

/// Writes the masks in the bits of labels of a row. `numbers`: for each bit the place of its mask in
/// `out`, where masks follow each other.
pub(crate) fn write_bits(
    labels: &[u8],
    (row, scale): (Size, MaskScale),
    numbers: impl Iterator<Item = usize>,
    out: &mut [u8],
) {
    let size = scale.size(row);
    let mask = size.height as usize * size.width as usize;
    let step = match scale {
        MaskScale::Full => 1,
        MaskScale::Quarter => 4,
    };
    for (bit, number) in numbers.enumerate() {
        let out = &mut out[number * mask..][..mask];
        let lines = labels.chunks_exact(LABEL * row.width as usize);
        let lines = lines.step_by(step);
        for (to, line) in out.chunks_exact_mut(size.width as usize).zip(lines) {
            let labels = line.chunks_exact(LABEL).step_by(step);
            for (to, label) in to.iter_mut().zip(labels) {
                *to = (label[bit / 8] >> (bit % 8)) & 1;
            }
        }
    }
}

/// How bits move: outside of a picture none is set.
pub(crate) fn moves_of_bits(filter: LabelFilter) -> LabelMoves {
    LabelMoves {
        filter,
        fill: [0; LABEL],
    }
}

/// Draws shapes at the size of their picture, at most [`BITS`], and moves them. Returns the labels
/// of the row: bit n is the mask of shape n.
///
/// # Errors
/// Shapes that are over a limit or of another picture; too little memory for the labels.
pub(crate) fn move_shapes<'a, 's>(
    mover: &'a mut LabelMover,
    shapes: impl Iterator<Item = &'s ObjectShape>,
    picture: &LabelPicture,
    request: &RowRequest<'_, impl RandomStreams>,
    meter: &mut StageMeter,
) -> std::result::Result<&'a [u8], SampleFault> {
    let (height, width) = picture.size;
    let draw = |window: PixelRegion, labels: &mut Vec<u8>| {
        labels.clear();
        labels.resize(label_bytes((window.h, window.w)) as usize, 0);
        for (bit, shape) in shapes.enumerate() {
            if let Some(runs) = runs_of(shape, Size { height, width })? {
                set_bits(&runs, window, bit, labels);
            }
        }
        Ok(())
    };
    mover.move_labels(picture, request, draw, meter)
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
