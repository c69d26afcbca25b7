//! Makes the pictures of a stage, with their objects and labels, and joins them on its canvas.

use std::cell::{Cell, RefCell};

use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_mover::MovedPicture;
use crate::jobs::picture_window::{KeptPicture, PictureWindow};
use crate::jobs::sample::assembly::picture_source::PictureSource;
use crate::jobs::sample::label_mover::LabelPicture;
use crate::jobs::sample::objects::joined::JoinedObjects;
use crate::jobs::sample::stage_labels::StageLabels;
use crate::jobs::sample::{KEEP, PIXEL, RowRequest, SampleDecoder};
use crate::jobs::stage_needs::{StageNeeds, label_bytes};
use crate::jobs::stages;
use crate::order::PlacedSample;
use crate::picture::labels::{LABEL, OUTSIDE};
use crate::picture::{PictureLimits, PixelBox};
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
        sample: PlacedSample,
        random: &R,
        source: &mut PictureSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        self.picture.resize(bytes_of(self.stage.most), 0);
        if before.is_empty() {
            return self.kept_or_decoded(sample, random, source, meter);
        }
        let mut objects = join(before, sample, random, source, meter)?;
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

    /// The picture of a sample in the window of pictures. If it is not there, it is made from its
    /// file, and kept there.
    fn kept_or_decoded<R: CropStreams>(
        &mut self,
        PlacedSample { id, place }: PlacedSample,
        random: &R,
        source: &mut PictureSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<StagePicture, SampleFault> {
        let Some(window) = source.window else {
            return self.decode_picture(id, random, source, meter);
        };
        let part = source.files.pixel_box(id);
        if let Some((size, truncated)) = self.copy_kept(window, (id, place), part, random) {
            // A fault of the objects is that of the file, or of what is kept.
            if let Ok(objects) = self.begin_objects(id, size, random, source, meter) {
                meter.truncated += u64::from(truncated);
                meter.lap(stages::AUGMENT);
                return Ok(StagePicture { size, objects });
            }
        }
        let truncated = meter.truncated;
        let made = self.decode_picture(id, random, source, meter)?;
        if let Some(slot) = window.hold(place) {
            let kept = KeptPicture {
                image: self.decoder.last_image(),
                truncated: meter.truncated > truncated,
            };
            let labels = self.labels.as_ref().filter(|_| self.needs.classes);
            let labels = labels.map_or(&[][..], |labels| &labels.picture);
            slot.keep(id, kept, &self.picture[..bytes_of(made.size)], labels);
        }
        meter.lap(stages::AUGMENT);
        Ok(made)
    }

    /// Copies the picture of a sample from its slot, with its labels. Returns its height and width,
    /// and whether its file is truncated. None if it is not there. A worker may have written anything
    /// into the slot, so sizes are checked.
    fn copy_kept(
        &mut self,
        window: &PictureWindow,
        (id, place): (u64, u64),
        part: Option<PixelBox>,
        random: &impl CropStreams,
    ) -> Option<((u32, u32), bool)> {
        let slot = window.hold(place)?;
        let kept = slot.picture_of(id)?;
        let source = self.decoder.plan_kept(kept.image, part, random).ok()?;
        let size = self.stage.output(source, random).ok()?;
        let labels = match &mut self.labels {
            Some(labels) if self.needs.classes => {
                labels.picture.resize(label_bytes(size) as usize, 0);
                &mut labels.picture[..]
            }
            _ => &mut [],
        };
        let pixels = &mut self.picture[..bytes_of(size)];
        (slot.copy_to(pixels, labels)).then_some((size, kept.truncated))
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
            ..
        } = self;
        let size = Cell::new((0, 0));
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
                decoder.make_row(bytes, &request, out, meter)
            })?;
        let size = size.get();
        let objects = self.begin_objects(id, size, random, source, meter)?;
        if let (Some(labels), Some(reader)) = (&mut self.labels, source.masks) {
            let request = request_of(random, source.files.pixel_box(id));
            let image = self.decoder.last_image();
            (source.files).with_mask(id, meter, &mut |bytes, _, meter| {
                labels.read_classes((reader, bytes), (image, size), &request, meter)
            })?;
        }
        Ok(StagePicture { size, objects })
    }

    /// The objects of the last picture, that of sample `id`. `size`: height and width of the picture
    /// after the stage.
    fn begin_objects<R: CropStreams>(
        &mut self,
        id: u64,
        size: (u32, u32),
        random: &R,
        source: &PictureSource<'_>,
        meter: &mut StageMeter,
    ) -> Result<Option<JoinedObjects>, SampleFault> {
        let Some(maker) = source.objects else {
            return Ok(None);
        };
        let part = source.files.pixel_box(id);
        let whole = self.decoder.last_image();
        let picture = MovedPicture {
            size: whole,
            part,
            motion: &self.decoder.last_motion(),
            centre_crops: &[],
        };
        let mut joined = maker.begin_joined(id, picture)?;
        if let (Some(labels), true) = (&mut self.labels, self.needs.objects.is_some()) {
            let request = request_of(random, part);
            maker.add_masks(&mut joined, (id, whole), |shapes| {
                labels.draw_masks(shapes, (whole, size), &request, meter)
            })?;
        }
        Ok(Some(joined))
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

/// What the labels of a picture need. Its size was checked with its pixels.
fn request_of<R: CropStreams>(random: &R, part: Option<PixelBox>) -> RowRequest<'_, R> {
    RowRequest {
        random,
        size: None,
        part,
        boxes: None,
        check_size: &|_| Ok(()),
    }
}

/// Fills the canvas of the last of these stages for sample `own`. Returns its objects.
pub(super) fn join<R: CropStreams>(
    stages: &mut [StageMaker],
    own: PlacedSample,
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
    let places = RefCell::new(Vec::new());
    let partner = |draw| {
        let PlacedSample { id, place } = source.files.partner(draw);
        places.borrow_mut().push(place);
        id
    };
    let draw = joint.draw((random, stream), &partner, size);
    let own = of_stage.make_picture(before, own, random, source, meter)?;
    let mut canvas = of_stage.begin(own, &draw);
    meter.lap(stages::AUGMENT);
    let partners = draw.partners.iter().zip(places.into_inner());
    for (number_of_partner, (&id, place)) in (1..).zip(partners) {
        let numbers = random.of_crop(number * PARTNERS + number_of_partner);
        let other = PlacedSample { id, place };
        let picture = of_stage.make_picture(before, other, &numbers, source, meter);
        let picture = picture.map_err(|fault| {
            let name = source.files.name(id);
            SampleFault::new(
                fault.kind,
                format!("its partner, sample {id} ({name}): {}", fault.reason),
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
