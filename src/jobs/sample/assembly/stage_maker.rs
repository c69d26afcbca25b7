//! Makes the pictures of a stage, with their objects and labels, and joins them on its canvas.

use std::cell::Cell;

use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_mover::MovedPicture;
use crate::jobs::sample::assembly::picture_source::PictureSource;
use crate::jobs::sample::label_mover::LabelPicture;
use crate::jobs::sample::objects::joined::JoinedObjects;
use crate::jobs::sample::stage_labels::StageLabels;
use crate::jobs::sample::{KEEP, PIXEL, RowRequest, SampleDecoder};
use crate::jobs::stage_needs::{StageNeeds, label_bytes};
use crate::jobs::stages;
use crate::picture::PictureLimits;
use crate::picture::labels::{LABEL, OUTSIDE};
use crate::pixels::joining::JoinedCanvas;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::joints::{JointDraw, JointKind, MosaicLayout, centered};
use crate::recipe::random::{CropStreams, RandomStreams};
use crate::recipe::{JoinedStage, PixelRect};
use crate::targets::masks::BitMask;

/// Numbers of partners are multiples of this for each joint, so no two partners share theirs.
const PARTNERS: u32 = 64;

// Labels are joined like pixels.
const _: () = assert!(LABEL == PIXEL);

/// Makes the pictures of a stage, and joins them.
#[derive(Debug)]
pub(super) struct StageMaker {
    pub(super) stage: JoinedStage,
    pub(super) decoder: SampleDecoder,
    /// The last picture: room for the largest.
    pub(super) picture: Vec<u8>,
    pub(super) canvas: Vec<u8>,
    /// If labels go through the stages.
    pub(super) labels: Option<StageLabels>,
    needs: StageNeeds,
}

/// A picture after a stage.
struct StagePicture {
    /// Height and width.
    size: (u32, u32),
    objects: Option<JoinedObjects>,
}

/// The canvas of a stage while pictures are joined on it.
struct StageCanvas<'a> {
    draw: &'a JointDraw,
    layout: Option<MosaicLayout>,
    objects: Option<JoinedObjects>,
}

fn bytes_of((height, width): (u32, u32)) -> usize {
    PIXEL * height as usize * width as usize
}

impl StageMaker {
    pub(super) fn new(
        stage: &JoinedStage,
        limits: &PictureLimits,
        needs: StageNeeds,
    ) -> Result<Self> {
        Ok(Self {
            decoder: SampleDecoder::new(&stage.program, limits)?,
            labels: StageLabels::new(&stage.program, limits, needs)?,
            needs,
            stage: stage.clone(),
            picture: Vec::new(),
            canvas: Vec::new(),
        })
    }

    /// Frees all buffers.
    pub(super) fn free_buffers(&mut self) {
        self.decoder.free_buffers();
        (self.picture, self.canvas) = (Vec::new(), Vec::new());
        if let Some(labels) = &mut self.labels {
            labels.free_buffers();
        }
    }

    /// Frees buffers of moves that hold more than is kept.
    pub(super) fn free_large(&mut self) {
        if let Some(labels) = &mut self.labels {
            labels.mover.free_above(KEEP);
        }
    }

    /// Makes the picture of a sample. `before`: the stages before this one.
    fn make_picture<R: CropStreams>(
        &mut self,
        before: &mut [StageMaker],
        id: u64,
        random: &R,
        source: &mut PictureSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        self.picture.resize(bytes_of(self.stage.most), 0);
        if before.is_empty() {
            return self.decode_picture(id, random, source, meter);
        }
        let mut objects = join(before, id, random, source, meter)?;
        let Some(from) = before.last_mut() else {
            return Err(FaultKind::Corrupt.fault("its recipe joins no samples"));
        };
        let canvas = from.stage.canvas;
        let request = RowRequest {
            random,
            size: None,
            part: None,
            boxes: None,
            check_size: &|size| self.stage.output(size, random).map(|_| ()),
        };
        let out = &mut self.picture[..];
        self.decoder
            .fill_from_canvas((&mut from.canvas, canvas), &request, out, meter)?;
        let motion = self.decoder.last_motion();
        if let (Some(maker), Some(objects)) = (source.objects, &mut objects) {
            maker.move_joined(objects, &motion)?;
        }
        let output = motion.output();
        let size = (output.height, output.width);
        if let Some(labels) = &mut self.labels {
            let request = RowRequest {
                check_size: &|_| Ok(()),
                ..request
            };
            if let Some(objects) = &mut objects {
                labels.move_masks(&mut objects.masks_mut(), (canvas, size), &request, meter)?;
            }
            if let (Some(reader), Some(from)) = (source.masks, &from.labels) {
                let picture = LabelPicture {
                    size: canvas,
                    row: size,
                    moves: reader.moves(),
                    scratch: 0,
                };
                labels.keep_classes(&from.canvas, &picture, &request, meter)?;
            }
        }
        Ok(StagePicture { size, objects })
    }

    /// Makes the picture of a sample from its file.
    fn decode_picture<R: CropStreams>(
        &mut self,
        id: u64,
        random: &R,
        source: &mut PictureSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        let Self {
            stage,
            decoder,
            picture: out,
            labels,
            needs,
            ..
        } = self;
        let size = Cell::new((0, 0));
        let objects = source.objects;
        let mut part_of_file = None;
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
                part_of_file = part;
                let motion = &decoder.last_motion();
                let whole = decoder.last_image();
                let picture = MovedPicture {
                    size: whole,
                    part,
                    motion,
                    centre_crops: &[],
                };
                let Some(maker) = objects else {
                    return Ok(());
                };
                let mut joined = maker.begin_joined(id, picture)?;
                if let (Some(labels), true) = (labels.as_mut(), needs.objects.is_some()) {
                    let sizes = (whole, size.get());
                    maker.add_masks(&mut joined, (id, whole), |shapes| {
                        labels.draw_masks(shapes, sizes, &request, meter)
                    })?;
                }
                made = Some(joined);
                Ok(())
            })?;
        let size = size.get();
        if let (Some(labels), Some(reader)) = (labels, source.masks) {
            let request = RowRequest {
                random,
                size: None,
                part: part_of_file,
                boxes: None,
                check_size: &|_| Ok(()),
            };
            let image = decoder.last_image();
            (source.files).with_mask(id, meter, &mut |bytes, _, meter| {
                labels.read_classes((reader, bytes), (image, size), &request, meter)
            })?;
        }
        Ok(StagePicture {
            size,
            objects: made,
        })
    }

    /// Calls `change` with the canvas and the last picture: pixels, and labels of classes if there
    /// are any.
    fn each_canvas(&mut self, mut change: impl FnMut(JoinedCanvas<'_>, &[u8], CanvasKind)) {
        let size = self.stage.canvas;
        let pixels = &mut self.canvas;
        change(
            JoinedCanvas { pixels, size },
            &self.picture,
            CanvasKind::Pixels,
        );
        if let (Some(labels), true) = (&mut self.labels, self.needs.classes) {
            let pixels = &mut labels.canvas;
            change(
                JoinedCanvas { pixels, size },
                &labels.picture,
                CanvasKind::Labels,
            );
        }
    }

    /// Begins the canvas with the last picture, that of the sample itself.
    fn begin<'a>(&mut self, own: StagePicture, draw: &'a JointDraw) -> StageCanvas<'a> {
        let (kind, size) = (self.stage.joint.kind, self.stage.canvas);
        self.canvas.resize(bytes_of(size), 0);
        if let (Some(labels), true) = (&mut self.labels, self.needs.classes) {
            labels.canvas.resize(label_bytes(size) as usize, 0);
        }
        let mut layout = match kind {
            JointKind::Mosaic { size, .. } => Some(MosaicLayout::new(size, draw.center)),
            _ => None,
        };
        let at = match &mut layout {
            None => [0, 0],
            Some(_) if draw.partners.is_empty() => centered(size, own.size),
            Some(layout) => layout.place(own.size),
        };
        self.each_canvas(|mut canvas, picture, of| {
            if let JointKind::Mosaic { fill, .. } = kind {
                canvas.fill(match of {
                    CanvasKind::Pixels => fill,
                    CanvasKind::Labels => OUTSIDE,
                });
            }
            canvas.paste(picture, own.size, at);
        });
        let mut objects = own.objects;
        if let Some(objects) = &mut objects {
            objects.shift(at, size);
        }
        StageCanvas {
            draw,
            layout,
            objects,
        }
    }

    /// Joins the last picture, that of a partner, with the canvas. `random`: the numbers of the
    /// sample.
    fn add(&mut self, other: StagePicture, random: &dyn RandomStreams, to: &mut StageCanvas<'_>) {
        let (joint, canvas_size) = (self.stage.joint, self.stage.canvas);
        let (size, mut new) = (other.size, other.objects);
        let objects = &mut to.objects;
        match joint.kind {
            JointKind::Mosaic { .. } => {
                let layout = to.layout.as_mut();
                let at = layout.map_or([0, 0], |layout| layout.place(size));
                self.each_canvas(|mut canvas, picture, _| canvas.paste(picture, size, at));
                if let Some(new) = &mut new {
                    new.shift(at, canvas_size);
                }
                if let Some(objects) = objects {
                    objects.cover_masks(at, size);
                }
            }
            JointKind::Mix { .. } => {
                let weight = to.draw.weight.unwrap_or(1.0);
                self.each_canvas(|mut canvas, picture, _| canvas.mix(picture, weight));
            }
            JointKind::Cut { min_visibility, .. } => {
                let (Some(own), Some(other)) = (objects.as_mut(), &mut new) else {
                    return;
                };
                let Some(rect) = own.first_free(&to.draw.boxes) else {
                    return;
                };
                if !other.keep_inside(rect, min_visibility) {
                    return;
                }
                let PixelRect { left, top, .. } = rect;
                own.cover_masks([left, top].map(i64::from), (rect.height, rect.width));
                self.each_canvas(|mut canvas, picture, _| canvas.take_box(picture, rect));
            }
            JointKind::Paste {
                max_overlap,
                min_visibility,
            } => {
                let (Some(own), Some(other)) = (objects.as_mut(), &mut new) else {
                    return;
                };
                let stream = self.stage.stream;
                let choose = |count| joint.draw_objects((random, stream), count);
                let Some(pasted) = other.keep_pasted(own, max_overlap, choose) else {
                    return;
                };
                own.cover(&pasted, min_visibility);
                self.paste_objects(&pasted);
            }
        }
        if let (Some(objects), Some(new)) = (objects, new) {
            objects.append(new);
        }
    }

    /// Takes these pixels from the last picture.
    fn paste_objects(&mut self, pasted: &BitMask) {
        let width = self.stage.canvas.1 as usize;
        let pixel = |(x, y): (u32, u32)| y as usize * width + x as usize;
        self.each_canvas(|mut canvas, picture, _| {
            canvas.take_pixels(picture, pasted.pixels().map(pixel));
        });
    }
}

/// Fills the canvas of the last of these stages for sample `id`. Returns its objects.
pub(super) fn join<R: CropStreams>(
    stages: &mut [StageMaker],
    id: u64,
    random: &R,
    source: &mut PictureSource<'_>,
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
    let mut canvas = of_stage.begin(own, &draw);
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
        of_stage.add(picture, random, &mut canvas);
        meter.lap(stages::AUGMENT);
    }
    Ok(canvas.objects)
}

/// What a canvas holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CanvasKind {
    Pixels,
    /// Labels of classes.
    Labels,
}
