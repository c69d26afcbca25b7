//! A row that is made of the pictures of several samples: mosaics, and mixed pictures.
//!
//! Runs where `sample` does. The recipe is divided into stages by its joints. The picture of a
//! sample after a stage is that of the stage's program on a canvas. The canvas has the pictures of
//! the sample and of its partners after the stage before. Each partner has random numbers of its
//! own, which follow from the position, so a row is the same in every process.

use std::cell::Cell;

use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_mover::MovedPicture;
use crate::jobs::sample::objects::ObjectMaker;
use crate::jobs::sample::objects::joined::JoinedObjects;
use crate::jobs::sample::{ONLY, PIXEL, RowRequest, SampleDecoder};
use crate::jobs::stages;
use crate::picture::{PictureLimits, PixelBox};
use crate::pixels::joining::JoinedCanvas;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::joints::{JointDraw, JointKind, MosaicLayout, PartnerDraw, centered};
use crate::recipe::random::{CropStreams, RandomStreams};
use crate::recipe::{DrawnPicture, JoinedStage, SampleProgram, Size};
use crate::sys::panics::catch_panic;
use crate::targets::SampleMotion;

/// Numbers of partners are multiples of this for each joint, so no two partners share theirs.
const PARTNERS: u32 = 64;

/// What is made of the bytes of a file.
pub(crate) type FileUse<'a> =
    dyn FnMut(&[u8], Option<PixelBox>, &mut StageMeter) -> Result<(), SampleFault> + 'a;

/// The files of samples.
pub(crate) trait SampleFiles {
    /// Opens the file of a sample. The box is that of the sample, if it has one.
    fn with_file(
        &mut self,
        id: u64,
        meter: &mut StageMeter,
        make: &mut FileUse<'_>,
    ) -> Result<(), SampleFault>;

    /// The sample in messages.
    fn name(&self, id: u64) -> String;

    /// The sample of a draw.
    fn partner(&self, draw: PartnerDraw) -> u64;
}

/// Makes rows of several pictures.
#[derive(Debug)]
pub(crate) struct SampleAssembler {
    stages: Vec<StageMaker>,
}

/// Makes the pictures of a stage, and joins them.
#[derive(Debug)]
struct StageMaker {
    stage: JoinedStage,
    decoder: SampleDecoder,
    /// The last picture: room for the largest.
    picture: Vec<u8>,
    canvas: Vec<u8>,
}

/// What all pictures of a row have in common.
struct RowSource<'a> {
    files: &'a mut dyn SampleFiles,
    objects: Option<&'a ObjectMaker>,
}

/// A picture after a stage.
struct StagePicture {
    /// Height and width.
    size: (u32, u32),
    objects: Option<JoinedObjects>,
}

fn bytes_of((height, width): (u32, u32)) -> usize {
    PIXEL * height as usize * width as usize
}

impl SampleAssembler {
    /// None unless the program joins samples.
    pub(crate) fn of(program: &SampleProgram, limits: &PictureLimits) -> Result<Option<Self>> {
        let stages = program.joined_stages().iter().map(|stage| {
            Ok(StageMaker {
                decoder: SampleDecoder::new(&stage.program, limits)?,
                stage: stage.clone(),
                picture: Vec::new(),
                canvas: Vec::new(),
            })
        });
        let stages: Vec<_> = stages.collect::<Result<_>>()?;
        Ok((!stages.is_empty()).then_some(Self { stages }))
    }

    /// The number of decoders.
    pub(crate) fn decoders(&self) -> usize {
        self.stages.len()
    }

    /// Bytes of the pictures between stages.
    pub(crate) fn canvas_bytes(&self) -> u64 {
        let each = self.stages.iter().map(|maker| maker.stage.bytes());
        each.fold(0, u64::saturating_add)
    }

    /// The most pictures of which a row is made.
    pub(crate) fn most_pictures(&self) -> u64 {
        let each = self.stages.iter();
        each.map(|maker| u64::from(maker.stage.joint.partners()) + 1)
            .product()
    }

    /// Fills the row of sample `own`, and its record of objects. `last`: the decoder of the last
    /// stage.
    ///
    /// # Errors
    /// A file that cannot be used: of the sample, or of a partner, which the message names.
    pub(crate) fn make_row(
        &mut self,
        (own, last): (u64, &mut SampleDecoder),
        request: &RowRequest<'_, impl CropStreams>,
        (files, objects): (&mut dyn SampleFiles, Option<&ObjectMaker>),
        (out, record): (&mut [u8], Option<&mut [u8]>),
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let make = || {
            let mut source = RowSource { files, objects };
            let joined = join(&mut self.stages, own, request.random, &mut source, meter)?;
            let Some(stage) = self.stages.last_mut() else {
                return Err(FaultKind::Corrupt.fault("its recipe joins no samples"));
            };
            let canvas = (&mut stage.canvas, stage.stage.canvas);
            last.fill_from_canvas(canvas, request, out, meter)?;
            match (objects, joined, record) {
                (Some(objects), Some(joined), Some(record)) => {
                    objects.write_joined(joined, &last.last_motion(), record)
                }
                _ => Ok(()),
            }
        };
        let made = catch_panic(make);
        made.unwrap_or_else(|| {
            for stage in &mut self.stages {
                stage.decoder.free_buffers();
                (stage.picture, stage.canvas) = (Vec::new(), Vec::new());
            }
            last.free_buffers();
            Err(FaultKind::Corrupt
                .fault("joining the pictures of this sample panicked: please report it"))
        })
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

/// Fills the canvas of the last of these stages for sample `id`. Returns its objects.
fn join<R: CropStreams>(
    stages: &mut [StageMaker],
    id: u64,
    random: &R,
    source: &mut RowSource<'_>,
    meter: &mut StageMeter,
) -> Result<Option<JoinedObjects>, SampleFault> {
    let number = stages.len() as u32;
    let Some((of_stage, before)) = stages.split_last_mut() else {
        return Err(FaultKind::Corrupt.fault("its recipe joins no samples"));
    };
    let JoinedStage {
        joint,
        stream,
        canvas: size,
        ..
    } = of_stage.stage;
    let partner = |draw| source.files.partner(draw);
    let draw = joint.draw((random, stream), &partner, size);
    let own = of_stage.make_picture(before, id, random, source, meter)?;
    of_stage.canvas.resize(bytes_of(size), 0);
    let mut layout = match joint.kind {
        JointKind::Mosaic { size, .. } => Some(MosaicLayout::new(size, draw.center)),
        _ => None,
    };
    let mut objects = of_stage.begin(own, &draw, &mut layout);
    meter.lap(stages::AUGMENT);
    for (partner, other) in (1..).zip(&draw.partners) {
        let numbers = random.of_crop(number * PARTNERS + partner);
        let picture = of_stage.make_picture(before, *other, &numbers, source, meter);
        let picture = picture.map_err(|fault| {
            let name = source.files.name(*other);
            SampleFault::new(
                fault.kind,
                format!("its partner, sample {other} ({name}): {}", fault.reason),
            )
        })?;
        of_stage.add(picture, &draw, &mut layout, &mut objects);
        meter.lap(stages::AUGMENT);
    }
    Ok(objects)
}

impl StageMaker {
    /// Makes the picture of a sample. `before`: the stages before this one.
    fn make_picture<R: CropStreams>(
        &mut self,
        before: &mut [StageMaker],
        id: u64,
        random: &R,
        source: &mut RowSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        self.picture.resize(bytes_of(self.stage.most), 0);
        if before.is_empty() {
            return self.decode_picture(id, random, source, meter);
        }
        let objects = join(before, id, random, source, meter)?;
        let Some(from) = before.last_mut() else {
            return Err(FaultKind::Corrupt.fault("its recipe joins no samples"));
        };
        let (canvas, size) = (&mut from.canvas, from.stage.canvas);
        let request = RowRequest {
            random,
            size: None,
            part: None,
            boxes: None,
            check_size: &|size| self.stage.output(size, random).map(|_| ()),
        };
        let out = &mut self.picture[..];
        self.decoder
            .fill_from_canvas((canvas, size), &request, out, meter)?;
        let motion = self.decoder.last_motion();
        let mut objects = objects;
        if let (Some(maker), Some(objects)) = (source.objects, &mut objects) {
            maker.move_joined(objects, &motion)?;
        }
        let output = motion.output();
        Ok(StagePicture {
            size: (output.height, output.width),
            objects,
        })
    }

    /// Makes the picture of a sample from its file.
    fn decode_picture<R: CropStreams>(
        &mut self,
        id: u64,
        random: &R,
        source: &mut RowSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        let Self {
            stage,
            decoder,
            picture: out,
            ..
        } = self;
        let size = Cell::new((0, 0));
        let objects = source.objects;
        let mut made = None;
        source
            .files
            .with_file(id, meter, &mut |bytes, part, meter| {
                let request = RowRequest {
                    random,
                    size: None,
                    part,
                    boxes: None,
                    check_size: &|picture| {
                        size.set(stage.output(picture, random)?);
                        Ok(())
                    },
                };
                decoder.make_row(bytes, &request, out, meter)?;
                let motion = &decoder.last_motion();
                let picture = MovedPicture {
                    size: decoder.last_image(),
                    part,
                    motion,
                    centre_crops: &[],
                };
                let objects = objects.map(|maker| maker.begin_joined(id, picture));
                made = objects.transpose()?;
                Ok(())
            })?;
        Ok(StagePicture {
            size: size.get(),
            objects: made,
        })
    }

    fn canvas(&mut self) -> (JoinedCanvas<'_>, &[u8]) {
        let canvas = JoinedCanvas {
            pixels: &mut self.canvas,
            size: self.stage.canvas,
        };
        (canvas, &self.picture)
    }

    /// Begins the canvas with the last picture, that of the sample itself.
    fn begin(
        &mut self,
        own: StagePicture,
        draw: &JointDraw,
        layout: &mut Option<MosaicLayout>,
    ) -> Option<JoinedObjects> {
        let (kind, size) = (self.stage.joint.kind, self.stage.canvas);
        let (mut canvas, picture) = self.canvas();
        let mut at = [0, 0];
        if let (JointKind::Mosaic { fill, .. }, Some(layout)) = (kind, layout) {
            canvas.fill(fill);
            at = match draw.partners.is_empty() {
                true => centered(size, own.size),
                false => layout.place(own.size),
            };
        }
        canvas.paste(picture, own.size, at);
        let mut objects = own.objects;
        if let Some(objects) = &mut objects {
            objects.shift(at, size);
        }
        objects
    }

    /// Joins the last picture, that of a partner, with the canvas.
    fn add(
        &mut self,
        other: StagePicture,
        draw: &JointDraw,
        layout: &mut Option<MosaicLayout>,
        objects: &mut Option<JoinedObjects>,
    ) {
        let (kind, size) = (self.stage.joint.kind, self.stage.canvas);
        let (mut canvas, picture) = self.canvas();
        let mut new = other.objects;
        match kind {
            JointKind::Mosaic { .. } => {
                let at = layout
                    .as_mut()
                    .map_or([0, 0], |layout| layout.place(other.size));
                canvas.paste(picture, other.size, at);
                if let Some(new) = &mut new {
                    new.shift(at, size);
                }
            }
            JointKind::Mix { .. } => canvas.mix(picture, draw.weight.unwrap_or(1.0)),
            JointKind::Cut { min_visibility, .. } => {
                let (Some(own), Some(other)) = (&objects, &mut new) else {
                    return;
                };
                let Some(rect) = own.first_free(&draw.boxes) else {
                    return;
                };
                if !other.keep_inside(rect, min_visibility) {
                    return;
                }
                canvas.take_box(picture, rect);
            }
        }
        if let (Some(objects), Some(new)) = (objects, new) {
            objects.append(new);
        }
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
