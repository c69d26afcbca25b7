//! Labels that go through the stages of a row of several samples: the masks of classes and of
//! objects.
//!
//! Runs where `sample` does. Masks of objects are drawn at the size of their picture in each style.
//! Between stages they are bits, because joints cover them. A stage moves the bits of 24 objects at
//! a time.

use crate::data::objects::ObjectShape;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::sample::RowRequest;
use crate::jobs::sample::instance_masks::{move_shapes, moves_of_bits, write_bits};
use crate::jobs::sample::label_mover::{LabelMover, LabelPicture};
use crate::jobs::sample::mask::MaskReader;
use crate::jobs::stage_needs::{BITS, StageNeeds, label_bytes};
use crate::picture::PictureLimits;
use crate::picture::jpeg::PixelRegion;
use crate::picture::labels::LABEL;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::RandomStreams;
use crate::recipe::size_bounds::HeightWidth;
use crate::recipe::{LabelFilter, PixelRect, SampleProgram, Size};
use crate::targets::masks::{BitMask, MaskScale};

/// Moves the labels of the pictures of a stage. Keeps its buffers.
#[derive(Debug)]
pub(crate) struct StageLabels {
    pub(crate) mover: LabelMover,
    filter: LabelFilter,
    /// Labels of classes: of the last picture, and of the canvas.
    pub(crate) picture: Vec<u8>,
    pub(crate) canvas: Vec<u8>,
}

impl StageLabels {
    /// Of a stage with this program. None if no labels go through it.
    ///
    /// # Errors
    /// A program that has no labels.
    pub(crate) fn new(
        program: &SampleProgram,
        limits: &PictureLimits,
        needs: StageNeeds,
    ) -> Result<Option<Self>> {
        if !needs.any() {
            return Ok(None);
        }
        let program = program.for_labels();
        let program = program.map_err(|fault| Error::protocol(fault.message))?;
        Ok(Some(Self {
            mover: LabelMover::new(&program, limits)?,
            filter: needs.objects.unwrap_or_default(),
            picture: Vec::new(),
            canvas: Vec::new(),
        }))
    }

    /// The masks of these shapes of a picture after the stage. `size` and `row`: heights and widths
    /// of the whole upright picture, and after the stage.
    ///
    /// # Errors
    /// As [`move_shapes`].
    pub(crate) fn draw_masks(
        &mut self,
        shapes: &[&ObjectShape],
        (size, row): ((u32, u32), (u32, u32)),
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> std::result::Result<Vec<BitMask>, SampleFault> {
        let picture = self.bits(size, row);
        let mut masks = Vec::with_capacity(shapes.len());
        for chunk in shapes.chunks(BITS) {
            let shapes = chunk.iter().copied();
            let labels = move_shapes(&mut self.mover, shapes, &picture, request, meter)?;
            masks.extend(masks_of(labels, row.1, chunk.len()));
        }
        Ok(masks)
    }

    /// Moves masks of a canvas through the stage. `size` and `row`: heights and widths before and
    /// after it.
    ///
    /// # Errors
    /// Too little memory for the labels.
    pub(crate) fn move_masks(
        &mut self,
        masks: &mut [&mut BitMask],
        (size, row): ((u32, u32), (u32, u32)),
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let picture = self.bits(size, row);
        for chunk in masks.chunks_mut(BITS) {
            let fill = |window: PixelRegion, labels: &mut Vec<u8>| {
                set_masks(chunk.iter().map(|mask| &**mask), window, labels);
                Ok(())
            };
            let labels = self.mover.move_labels(&picture, request, fill, meter)?;
            let moved = masks_of(labels, row.1, chunk.len());
            for (mask, moved) in chunk.iter_mut().zip(moved) {
                **mask = moved;
            }
        }
        Ok(())
    }

    /// Moves masks of a canvas through the last stage, and writes them into `out`, which is 0: one
    /// after the other. Sizes as in [`StageLabels::move_masks`].
    ///
    /// # Errors
    /// Too little memory for the labels.
    pub(crate) fn write_masks(
        &mut self,
        masks: &[BitMask],
        ((size, row), scale): ((HeightWidth, HeightWidth), MaskScale),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let picture = self.bits(size, row);
        let of_row = Size {
            height: row.0,
            width: row.1,
        };
        let mask = scale.size(of_row);
        let chunk_bytes = BITS * mask.height as usize * mask.width as usize;
        for (chunk, out) in masks.chunks(BITS).zip(out.chunks_mut(chunk_bytes.max(1))) {
            let fill = |window: PixelRegion, labels: &mut Vec<u8>| {
                set_masks(chunk.iter(), window, labels);
                Ok(())
            };
            let labels = self.mover.move_labels(&picture, request, fill, meter)?;
            write_bits(labels, (of_row, scale), 0..chunk.len(), out);
        }
        Ok(())
    }

    /// Moves the labels of classes `from` through the stage.
    ///
    /// # Errors
    /// Too little memory for the labels.
    pub(crate) fn move_classes(
        &mut self,
        from: &[u8],
        picture: &LabelPicture,
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> std::result::Result<&[u8], SampleFault> {
        let across = LABEL * picture.size.1 as usize;
        let fill = |window: PixelRegion, labels: &mut Vec<u8>| {
            labels.clear();
            let columns = LABEL * window.x as usize..LABEL * (window.x + window.w) as usize;
            for y in window.y..window.y + window.h {
                labels.extend_from_slice(&from[y as usize * across..][columns.clone()]);
            }
            Ok(())
        };
        self.mover.move_labels(picture, request, fill, meter)
    }

    /// The same, into `picture`.
    ///
    /// # Errors
    /// Too little memory for the labels.
    pub(crate) fn keep_classes(
        &mut self,
        from: &[u8],
        picture: &LabelPicture,
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let mut kept = std::mem::take(&mut self.picture);
        let moved = self.move_classes(from, picture, request, meter)?;
        kept.clear();
        kept.extend_from_slice(moved);
        self.picture = kept;
        Ok(())
    }

    /// Reads the labels of classes of a file, and moves them into `picture`.
    ///
    /// # Errors
    /// As [`MaskReader::read_labels`].
    pub(crate) fn read_classes(
        &mut self,
        (reader, bytes): (&MaskReader, &[u8]),
        sizes: ((u32, u32), (u32, u32)),
        request: &RowRequest<'_, impl RandomStreams>,
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let read = reader.read_labels(&mut self.mover, bytes, sizes, request, meter)?;
        self.picture.clear();
        self.picture.extend_from_slice(read);
        Ok(())
    }

    fn bits(&self, size: (u32, u32), row: (u32, u32)) -> LabelPicture {
        LabelPicture {
            size,
            row,
            moves: moves_of_bits(self.filter),
            scratch: 0,
        }
    }

    pub(crate) fn free_buffers(&mut self) {
        self.mover.free_buffers();
        (self.picture, self.canvas) = (Vec::new(), Vec::new());
    }
}

/// Makes labels of a window, whose bits are these masks.
fn set_masks<'a>(
    masks: impl Iterator<Item = &'a BitMask>,
    window: PixelRegion,
    labels: &mut Vec<u8>,
) {
    labels.clear();
    labels.resize(label_bytes((window.h, window.w)) as usize, 0);
    for (bit, mask) in masks.enumerate() {
        for (x, y) in mask.pixels() {
            let (x, y) = (x.wrapping_sub(window.x), y.wrapping_sub(window.y));
            if x < window.w && y < window.h {
                let pixel = y as usize * window.w as usize + x as usize;
                labels[LABEL * pixel + bit / 8] |= 1 << (bit % 8);
            }
        }
    }
}

/// The masks in the first `count` bits of labels, in rows of this width.
fn masks_of(labels: &[u8], width: u32, count: usize) -> Vec<BitMask> {
    let pixels = || {
        let rows = (0..).zip(labels.chunks_exact(LABEL * width.max(1) as usize));
        rows.flat_map(|(y, row)| {
            let bits = row.as_chunks::<LABEL>().0.iter();
            let bits = bits.map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]));
            let bits = (0..).zip(bits).filter(|(_, bits)| *bits != 0);
            bits.map(move |(x, bits)| (x, y, bits))
        })
    };
    let set = |bits: u32| (0..count).filter(move |bit| bits >> bit & 1 == 1);
    let mut edges = vec![[u32::MAX, u32::MAX, 0, 0]; count];
    for (x, y, bits) in pixels() {
        for bit in set(bits) {
            let [left, top, right, bottom] = edges[bit];
            edges[bit] = [left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)];
        }
    }
    let within = |[left, top, right, bottom]: [u32; 4]| match right {
        0 => BitMask::default(),
        _ => BitMask::within(PixelRect {
            left,
            top,
            width: right - left,
            height: bottom - top,
        }),
    };
    let mut masks: Vec<_> = edges.into_iter().map(within).collect();
    for (x, y, bits) in pixels() {
        set(bits).for_each(|bit| masks[bit].insert(x, y));
    }
    masks
}
