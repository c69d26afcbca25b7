//! A row that is made of the pictures of several samples: mosaics, mixed and pasted pictures.
//!
//! Runs where `sample` does. The recipe is divided into stages by its joints. The picture of a
//! sample after a stage is that of the stage's program on a canvas. The canvas has the pictures of
//! the sample and of its partners after the stage before. Each partner has random numbers of its
//! own, which follow from the position, so a row is the same in every process.
//!
//! - `picture_source`: the files of a row; `stage_maker`: the pictures of a stage, and its canvas.

pub(crate) mod picture_source;
mod stage_maker;

use self::picture_source::PictureSource;
use self::stage_maker::{StageMaker, join};
use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::sample::label_mover::LabelPicture;
use crate::jobs::sample::stage_labels::StageLabels;
use crate::jobs::sample::{KEEP, ONLY, RowRequest, SampleDecoder};
use crate::jobs::stage_needs::StageNeeds;
use crate::order::PlacedSample;
use crate::picture::PictureLimits;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::random::{CropStreams, RandomStreams};
use crate::recipe::{DrawnPicture, JoinedStage, SampleProgram, Size};
use crate::sys::panics::catch_panic;
use crate::targets::SampleMotion;
use crate::targets::masks::BitMask;

/// Makes rows of several pictures.
#[derive(Debug)]
pub(crate) struct SampleAssembler {
    stages: Vec<StageMaker>,
    needs: StageNeeds,
    /// Moves labels through the last stage.
    labels: Option<StageLabels>,
}

/// Where a row is written.
pub(crate) struct JoinedRow<'a> {
    pub(crate) pixels: &'a mut [u8],
    /// The mask of classes, if there is one.
    pub(crate) mask: Option<&'a mut [u8]>,
    /// The record of objects, if there is one.
    pub(crate) record: Option<&'a mut [u8]>,
}

impl SampleAssembler {
    /// None unless the program joins samples.
    pub(crate) fn of(
        program: &SampleProgram,
        limits: &PictureLimits,
        needs: StageNeeds,
    ) -> Result<Option<Self>> {
        let stages = program.joined_stages().iter();
        let stages = stages.map(|stage| StageMaker::new(stage, limits, needs));
        let stages: Vec<_> = stages.collect::<Result<_>>()?;
        if stages.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            stages,
            needs,
            labels: StageLabels::new(program, limits, needs)?,
        }))
    }

    /// The number of decoders, with those of labels.
    pub(crate) fn decoders(&self) -> usize {
        match self.needs.any() {
            true => 2 * self.stages.len() + 1,
            false => self.stages.len(),
        }
    }

    /// Bytes of the pictures and labels between stages.
    pub(crate) fn canvas_bytes(&self) -> u64 {
        let each = self.stages.iter().map(|maker| {
            let of_labels = self.needs.bytes(&maker.stage);
            maker.stage.bytes().saturating_add(of_labels)
        });
        each.fold(0, u64::saturating_add)
    }

    /// Most bytes of the masks of this number of objects between stages.
    pub(crate) fn mask_bytes(&self, objects: u64) -> u64 {
        let stages = self.stages.iter().map(|maker| &maker.stage);
        self.needs.mask_bytes(stages, objects)
    }

    /// The most pictures of which a row is made.
    pub(crate) fn most_pictures(&self) -> u64 {
        let each = self.stages.iter();
        each.map(|maker| u64::from(maker.stage.joint.partners()) + 1)
            .product()
    }

    /// Fills the row of sample `own`, and its mask and record of objects. `last`: the decoder of the
    /// last stage.
    ///
    /// # Errors
    /// A file that cannot be used: of the sample, or of a partner, which the message names.
    pub(crate) fn make_row(
        &mut self,
        (own, last): (PlacedSample, &mut SampleDecoder),
        request: &RowRequest<'_, impl CropStreams>,
        source: &mut PictureSource<'_>,
        out: JoinedRow<'_>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let make = || self.make(own, last, request, source, out, meter);
        let made = catch_panic(make);
        self.stages.iter_mut().for_each(StageMaker::free_large);
        if let Some(labels) = &mut self.labels {
            labels.mover.free_above(KEEP);
        }
        made.unwrap_or_else(|| {
            self.stages.iter_mut().for_each(StageMaker::free_buffers);
            if let Some(labels) = &mut self.labels {
                labels.free_buffers();
            }
            last.free_buffers();
            Err(FaultKind::Corrupt
                .fault("joining the pictures of this sample panicked: please report it"))
        })
    }

    fn make(
        &mut self,
        own: PlacedSample,
        last: &mut SampleDecoder,
        request: &RowRequest<'_, impl CropStreams>,
        source: &mut PictureSource<'_>,
        out: JoinedRow<'_>,
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let joined = join(&mut self.stages, own, request.random, source, meter)?;
        let Some(stage) = self.stages.last_mut() else {
            return Err(FaultKind::Corrupt.fault("its recipe joins no samples"));
        };
        let canvas = stage.stage.canvas;
        last.fill_from_canvas((&mut stage.canvas, canvas), request, out.pixels, meter)?;
        let motion = last.last_motion();
        let output = motion.output();
        let sizes = (canvas, (output.height, output.width));
        if let (Some(objects), Some(joined), Some(record)) = (source.objects, joined, out.record) {
            let mut labels = self.labels.as_mut();
            let mut write_masks = |masks: &[BitMask], scale, out: &mut [u8]| match &mut labels {
                Some(labels) => labels.write_masks(masks, (sizes, scale), request, out, meter),
                None => Ok(()),
            };
            objects.write_joined(joined, &motion, &mut write_masks, record)?;
        }
        let from = stage.labels.as_ref();
        if let (Some(labels), Some(from), Some(reader), Some(mask)) =
            (&mut self.labels, from, source.masks, out.mask)
        {
            let picture = LabelPicture {
                size: sizes.0,
                row: sizes.1,
                moves: reader.moves(),
                scratch: 0,
            };
            let moved = labels.move_classes(&from.canvas, &picture, request, meter)?;
            reader.write(moved, mask)?;
        }
        Ok(())
    }
}

impl SampleDecoder {
    /// Fills a row from a canvas, whose pixels change.
    fn fill_from_canvas(
        &mut self,
        (pixels, size): (&mut Vec<u8>, (u32, u32)),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let plan = self.plan_row(StoredPicture::canvas(size), request)?;
        let pixels = (pixels, size.1 as usize);
        self.fill_from_buffer(ONLY, pixels, &plan, request.size, out, meter)
    }
}

impl JoinedStage {
    /// Height and width of the picture that the stage makes of one of this height and width.
    fn output(
        &self,
        (height, width): (u32, u32),
        random: &impl RandomStreams,
    ) -> Result<(u32, u32), SampleFault> {
        let mut steps = Vec::new();
        let picture = DrawnPicture::of_size((height, width));
        self.program.steps(&picture, random, &mut steps)?;
        let motion = SampleMotion::of(
            Size { height, width },
            steps.iter().map(|of| (of.op, &of.step)),
        );
        let output = motion.output();
        if output.height > self.most.0 || output.width > self.most.1 {
            return Err(FaultKind::TooLarge.fault(format!(
                "{} takes images of at most {} x {}, and this one has {output} there: put a resize \
                 before it",
                self.name, self.most.1, self.most.0
            )));
        }
        Ok((output.height, output.width))
    }
}

#[cfg(test)]
mod tests;
