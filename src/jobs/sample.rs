//! One sample: from a file's bytes to the bytes of a finished row.
//!
//! Runs in workers, and in the consumer with zero workers or for images that a device flags. Knows
//! no path, no index and no ring. The steps are those of [`SampleDecoder::make_row`]. After warm-up
//! the JPEG path allocates nothing, except for coded rows and operations with other buffers.
//!
//! - `crop`: the row, if a device finishes the batch's rows;
//! - `crop_set`: several crops of one image, from one decode; `tiles`: its tiles and its overview;
//! - `hull_writer`, `level_steps`: the row, if a device makes the crops;
//! - `raster_maker`: a raster of an image; `mask`: its labels; `numbers`: depths and flows;
//!   `raster_size`: the size that it must have;
//! - `objects`: boxes and keypoints of an image; `instance_masks`: the masks of its objects;
//!   `label_mover`: moves the labels of masks;
//! - `assembly`: a row of the pictures of several samples; `stage_labels`: its masks;
//! - `shared_resize`: the resize of crops that begin alike;
//! - `raw`: files whose pixels are not compressed.

pub(crate) mod assembly;
mod crop;
mod crop_set;
mod hull_writer;
pub(crate) mod instance_masks;
pub(crate) mod label_mover;
mod level_steps;
pub(crate) mod mask;
pub(crate) mod numbers;
pub(crate) mod objects;
pub(crate) mod raster_maker;
pub(crate) mod raster_size;
mod raw;
mod shared_resize;
pub(crate) mod stage_labels;
mod tiles;

use self::crop::CropWriter;
use self::hull_writer::HullWriter;
use self::shared_resize::SharedResize;
use crate::decode_plan::canvas_memory::check_reduction;
use crate::decode_plan::stored_picture::{DecodePlan, MAX_KEPT_BYTES, StoredPicture};
use crate::device::jpeg_part::PartLimits;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::object_mover::motion_of;
use crate::jobs::stages;
use crate::picture::jpeg;
use crate::picture::jpeg::{JpegDecoder, JpegHeader, PixelRegion};
use crate::picture::raster;
use crate::picture::raster::RasterReader;
use crate::picture::{AlphaPolicy, FileFormat, PictureLimits, PixelBox, TruncationPolicy};
use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
use crate::pixels::emit::RowEmitter;
use crate::pixels::pixel_view::PixelView;
use crate::pixels::resample::{ImageResampler, PixelSource, ResizeAxes, RowSource};
use crate::pool::worker::meter::StageMeter;
use crate::recipe::ChannelScaling;
use crate::recipe::random::RandomStreams;
use crate::recipe::steps::OpStep;
use crate::recipe::{BoxSource, DrawnPicture, PairSteps, PixelPlacement, SampleProgram, Step};
use crate::sys::cpu::CpuLevel;
use crate::sys::memory;
use crate::sys::panics::catch_panic;
use crate::targets::SampleMotion;

/// Bytes of a decoded pixel.
const PIXEL: usize = 3;

/// After a sample, buffers above this size together are freed. One huge image must not occupy
/// memory for the rest of the run, or reduce the room for the next image.
pub(crate) const KEEP: usize = MAX_KEPT_BYTES as usize;

/// Before a sample with more memory than this, all free memory is returned to the system.
const LARGE: u64 = 16 << 20;

/// A worker's memory in addition to the scratch of a decode: its resampler, an output row, the
/// decoders' working memory.
pub(crate) const BESIDE_SCRATCH: u64 = 64 << 20;

/// Checks that an image of this upright height and width fits its row.
pub(crate) type SizeCheck<'a> = &'a dyn Fn((u32, u32)) -> Result<(), SampleFault>;

/// The state that is kept from sample to sample.
#[derive(Debug)]
pub(crate) struct SampleDecoder {
    limits: PictureLimits,
    jpeg: JpegDecoder,
    jpeg_scratch: jpeg::JpegScratch,
    raster_scratch: raster::RasterScratch,
    /// Pixels from which several crops are made, if they do not lie in the decoder's buffer.
    shared_pixels: Vec<u8>,
    /// None unless crops share operations.
    shared_resize: Option<SharedResize>,
    resampler: ImageResampler,
    canvas: PictureCanvas,
    /// One for each crop of a sample, or for its canvas and its overview. At least one.
    parts: Vec<PartMaker>,
    /// Whether the parts are a canvas of tiles and its overview.
    has_tiles: bool,
    /// If a device makes the crops of a sample.
    hulls: Option<HullWriter>,
    /// Most bytes of buffers after a sample so far.
    most_held: usize,
    /// Height and width of the last upright image, without the sample's box.
    image: (u32, u32),
    /// The size of what the steps of the last image began with: the image, or its box.
    source: (u32, u32),
    /// If this image belongs to another one, whose steps it gets.
    pair: PairSteps,
}

/// How one crop of a sample is made. A row of one image has one.
#[derive(Debug)]
struct PartMaker {
    program: SampleProgram,
    emitter: RowEmitter,
    steps: Vec<OpStep>,
    /// If a device finishes the rows.
    device: Option<CropWriter>,
}

/// The part of a row of one image.
const ONLY: usize = 0;

impl PartMaker {
    fn new(program: &SampleProgram) -> Self {
        Self {
            program: program.clone(),
            emitter: RowEmitter::new(program.output_format),
            steps: Vec::new(),
            device: program.crops.map(CropWriter::new),
        }
    }
}

/// A file, as it is opened: its format, and what happens if it is truncated.
type OpenedAs = (FileFormat, TruncationPolicy);

/// What a row needs in addition to the bytes of its file.
pub(crate) struct RowRequest<'a, R> {
    /// The random numbers of its position.
    pub(crate) random: &'a R,
    /// Height and width, if the batch sets them.
    pub(crate) size: Option<(u32, u32)>,
    /// The sample's box, if it has one. Everything else treats the box as the image.
    pub(crate) part: Option<PixelBox>,
    /// The boxes of the sample's objects, for operations that read them.
    pub(crate) boxes: Option<&'a dyn BoxSource>,
    /// Called with the upright height and width before a pixel is decoded. Its fault fails the
    /// sample.
    pub(crate) check_size: SizeCheck<'a>,
}

/// A row, and the limits of images that a device decodes. None: the row must hold pixels.
type FillRequest<'a, 'b, R> = (&'a RowRequest<'b, R>, Option<&'a PartLimits>);

impl SampleDecoder {
    pub(crate) fn new(program: &SampleProgram, limits: &PictureLimits) -> Result<Self> {
        Ok(Self {
            limits: *limits,
            jpeg: JpegDecoder::new(limits),
            jpeg_scratch: jpeg::JpegScratch::default(),
            raster_scratch: raster::RasterScratch::default(),
            shared_pixels: Vec::new(),
            shared_resize: program.shares_operations().then(SharedResize::default),
            resampler: ImageResampler::new(CpuLevel::detect()?),
            canvas: PictureCanvas::default(),
            parts: program.crop_programs().iter().map(PartMaker::new).collect(),
            has_tiles: program.has_tiles(),
            hulls: program.hulls.clone().map(HullWriter::new),
            most_held: 0,
            image: (0, 0),
            source: (0, 0),
            pair: PairSteps::default(),
        })
    }

    /// The same for images that belong to others, whose steps become theirs as `pair` says.
    pub(crate) fn for_pair(self, pair: PairSteps) -> Self {
        Self { pair, ..self }
    }

    /// The program of the first crop. All crops have the same options of decoding.
    fn program(&self) -> &SampleProgram {
        &self.parts[ONLY].program
    }

    /// Height and width of the last upright image whose row was planned, without the sample's box.
    pub(crate) fn last_image(&self) -> (u32, u32) {
        self.image
    }

    /// What the steps of the last image did to coordinates.
    pub(crate) fn last_motion(&self) -> SampleMotion {
        motion_of(self.source, &self.parts[ONLY].steps)
    }

    /// The numbers of the steps of the last image that keep only objects with their centre inside.
    pub(crate) fn last_centre_crops(&self) -> Vec<usize> {
        let PartMaker { program, steps, .. } = &self.parts[ONLY];
        let drops =
            |of: &OpStep| matches!(of.step, Step::Crop(_)) && program.drops_by_centre(of.op);
        let steps = steps.iter().enumerate();
        steps.filter(|(_, of)| drops(of)).map(|(i, _)| i).collect()
    }

    /// Fills the row `out` from the bytes of a file. `out` may be longer than the row. After a
    /// failure its content is undefined.
    ///
    /// A panic fails the sample: Rust decoders have panicked on hostile files, and with zero
    /// workers this is the caller's process. All buffers and the decoder are then replaced, so no
    /// half-finished state is used.
    pub(crate) fn make_row(
        &mut self,
        bytes: &[u8],
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        self.fill_caught(bytes, meter, |decoder, opened, meter| {
            decoder.fill_as(opened, bytes, (request, None), out, meter)
        })
    }

    /// Like [`SampleDecoder::make_row`], for a device whose parts have these limits. If the device
    /// supports the file, the row holds the coded crop. It is not decoded, but it passes all checks
    /// that come before a decode.
    pub(crate) fn fill_or_copy_coded(
        &mut self,
        bytes: &[u8],
        request: &RowRequest<'_, impl RandomStreams>,
        limits: &PartLimits,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        self.fill_caught(bytes, meter, |decoder, opened, meter| {
            decoder.fill_as(opened, bytes, (request, Some(limits)), out, meter)
        })
    }

    fn fill_caught(
        &mut self,
        bytes: &[u8],
        meter: &mut StageMeter,
        fill: impl FnMut(&mut Self, OpenedAs, &mut StageMeter) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        let fill = || self.fill_by_policy(bytes, meter, fill);
        match catch_panic(fill) {
            Some(filled) => {
                let held = self.held_bytes();
                if held > KEEP {
                    self.free_buffers();
                } else if held > self.most_held {
                    // A buffer that has grown leaves its old place as a hole in the heap.
                    self.most_held = held;
                    memory::trim_heap();
                }
                filled
            }
            None => {
                self.jpeg = JpegDecoder::new(&self.limits);
                self.free_buffers();
                let format = FileFormat::of(bytes)?;
                Err(SampleFault::new(
                    FaultKind::Corrupt,
                    format!("decoding this {format} file panicked: please report it with the file"),
                ))
            }
        }
    }

    /// Writes the coded crop into the row if the device supports the file. False if not: the
    /// content of the row is then undefined.
    fn copy_coded(
        &mut self,
        (bytes, header): (&[u8], &JpegHeader),
        plan: &DecodePlan,
        size: Option<(u32, u32)>,
        limits: &PartLimits,
        out: &mut [u8],
    ) -> Result<bool, SampleFault> {
        let part = &mut self.parts[ONLY];
        let Some(crops) = &mut part.device else {
            return Ok(false);
        };
        let (jpeg, scratch, steps) = (&self.jpeg, &self.jpeg_scratch, &part.steps);
        // Checks first, before weights are computed in vain.
        if !jpeg.may_write_coded(bytes.len(), header, out.len()) {
            return Ok(false);
        }
        let write =
            |to: &mut [u8]| jpeg.write_coded((bytes, header), plan.scale, plan.window, scratch, to);
        let handed_over = catch_panic(|| crops.copy_coded(plan, steps, size, limits, out, write));
        handed_over.unwrap_or_else(|| {
            // The decode that follows reports the file's error.
            part.device = part.program.crops.map(CropWriter::new);
            Ok(false)
        })
    }

    fn open_jpeg(
        &self,
        bytes: &[u8],
        part: Option<PixelBox>,
    ) -> Result<(JpegHeader, StoredPicture), SampleFault> {
        let header = jpeg::read_header(bytes)?;
        let stored = StoredPicture {
            size: (header.width, header.height),
            orientation: (header.orientation).in_mode(self.program().orientation, FileFormat::Jpeg),
            cost: header.decoding(),
            pixel_box: None,
        };
        Ok((header, stored.with_box(part)?))
    }

    fn free_buffers(&mut self) {
        self.jpeg_scratch = jpeg::JpegScratch::default();
        self.raster_scratch = raster::RasterScratch::default();
        self.shared_pixels = Vec::new();
        if let Some(shared) = &mut self.shared_resize {
            *shared = SharedResize::default();
        }
        self.resampler.free_buffers();
        self.canvas.free_buffers();
        if let Some(hulls) = &mut self.hulls {
            hulls.free_buffers();
        }
    }

    fn held_bytes(&self) -> usize {
        self.jpeg_scratch.bytes()
            + self.raster_scratch.bytes()
            + self.shared_pixels.capacity()
            + (self.shared_resize.as_ref()).map_or(0, SharedResize::held_bytes)
            + self.resampler.scratch_bytes()
            + self.canvas.held_bytes()
            + (self.parts[ONLY].device.as_ref()).map_or(0, CropWriter::held_bytes)
            + self.hulls.as_ref().map_or(0, HullWriter::held_bytes)
    }

    fn fill_by_policy(
        &mut self,
        bytes: &[u8],
        meter: &mut StageMeter,
        mut fill: impl FnMut(&mut Self, OpenedAs, &mut StageMeter) -> Result<(), SampleFault>,
    ) -> Result<(), SampleFault> {
        let format = FileFormat::of(bytes)?;
        let filled = fill(self, (format, TruncationPolicy::Refuse), meter);
        let Err(fault) = filled else {
            return Ok(());
        };
        let is_kept = self.program().truncated == TruncationPolicy::Keep
            && fault.kind == FaultKind::Truncated
            && matches!(format, FileFormat::Jpeg | FileFormat::Png);
        if !is_kept {
            return Err(fault);
        }
        // A file without a readable header keeps its first fault.
        fill(self, (format, TruncationPolicy::Keep), meter).map_err(|_| fault)?;
        meter.truncated += 1;
        Ok(())
    }

    fn fill_as(
        &mut self,
        (format, truncated): OpenedAs,
        bytes: &[u8],
        request: FillRequest<'_, '_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        if self.has_tiles {
            return self.fill_tiles((format, truncated), bytes, request.0, out, meter);
        }
        match format {
            FileFormat::Jpeg => {
                self.jpeg = JpegDecoder::with_truncation(&self.limits, truncated);
                self.fill_from_jpeg(bytes, request, out, meter)
            }
            format => {
                let picture = self.open_raster((format, truncated), bytes)?;
                self.fill_from_raster((format, picture), request.0, out, meter)
            }
        }
    }

    fn open_raster<'a>(
        &self,
        (format, truncated): OpenedAs,
        bytes: &'a [u8],
    ) -> Result<RasterReader<'a>, SampleFault> {
        match truncated {
            TruncationPolicy::Refuse => RasterReader::open(format, bytes, &self.limits),
            TruncationPolicy::Keep => RasterReader::open_truncated(bytes, &self.limits),
        }
    }

    fn stored_raster(
        &self,
        (format, picture): (FileFormat, &RasterReader<'_>),
        part: Option<PixelBox>,
    ) -> Result<StoredPicture, SampleFault> {
        StoredPicture {
            size: picture.size(),
            orientation: (picture.orientation()).in_mode(self.program().orientation, format),
            cost: picture.decode_cost(),
            pixel_box: None,
        }
        .with_box(part)
    }

    /// Decodes only the part of a JPEG that the first steps need.
    fn fill_from_jpeg(
        &mut self,
        bytes: &[u8],
        (request, coded): FillRequest<'_, '_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let (header, stored) = self.open_jpeg(bytes, request.part)?;
        let plan = self.plan_row(stored, request)?;
        meter.lap(stages::OPEN);
        if let Some(limits) = coded
            && self.copy_coded((bytes, &header), &plan, request.size, limits, out)?
        {
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let scratch = &mut self.jpeg_scratch;
        let window = plan.window;
        let decoded = self
            .jpeg
            .decode_region(bytes, &header, plan.scale, window, scratch)?;
        meter.decoded += 1;
        meter.lap(stages::DECODE);
        // Cuts out exactly the requested part: the decoder's alignment must not change the filter's
        // input.
        let stride = decoded.stride / PIXEL;
        let first = (window.y - decoded.y) as usize * stride + (window.x - decoded.x) as usize;
        let part = &mut self.parts[ONLY];
        if let Some(crops) = &mut part.device
            && let Some(pixels) = crops.begin(&plan, &part.steps, request.size, out)?
        {
            let lines = scratch.rgb[PIXEL * first..].chunks(decoded.stride);
            for (to, line) in pixels
                .chunks_exact_mut(PIXEL * window.w as usize)
                .zip(lines)
            {
                to.copy_from_slice(&line[..to.len()]);
            }
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let (width, height) = (plan.size.0 as usize, plan.size.1 as usize);
        if let Some((x, y)) = plan.axes {
            let source = PixelSource {
                pixels: &scratch.rgb[PIXEL * first..],
                width: window.w as usize,
                height: window.h as usize,
                stride: decoded.stride,
            };
            let to = self.canvas.begin(width, height, plan.fold.placement);
            self.resampler.resample(source, ResizeAxes { x, y }, to);
            meter.lap(stages::RESAMPLE);
            self.finish(ONLY, &plan, request.size, out, meter)
        } else {
            // No resize and no copy.
            self.canvas.adopt_buffer(
                &mut self.jpeg_scratch.rgb,
                (first, stride),
                (width, height),
                plan.fold.placement,
            );
            let finished = self.finish(ONLY, &plan, request.size, out, meter);
            self.canvas.return_buffer(&mut self.jpeg_scratch.rgb);
            finished
        }
    }

    /// Other formats are read row by row. Decoding and resampling alternate, and both count as
    /// decoding.
    fn fill_from_raster(
        &mut self,
        (format, mut picture): (FileFormat, RasterReader<'_>),
        request: &RowRequest<'_, impl RandomStreams>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let stored = self.stored_raster((format, &picture), request.part)?;
        let plan = self.plan_row(stored, request)?;
        meter.lap(stages::OPEN);
        if let Some(pixels) = picture.raw_pixels() {
            let pixels = (pixels, stored.size.0 as usize);
            return self.fill_from_raw(ONLY, pixels, &plan, request.size, out, meter);
        }
        let seen = (plan.window.w as usize, plan.window.h as usize);
        picture.decode_frame(&mut self.raster_scratch)?;
        meter.decoded += 1;
        let mut rows = WindowRows {
            picture,
            window: plan.window,
            transparency: self.program().transparency,
            scratch: &mut self.raster_scratch,
        };
        let part = &mut self.parts[ONLY];
        if let Some(crops) = &mut part.device
            && let Some(pixels) = crops.begin(&plan, &part.steps, request.size, out)?
        {
            rows.copy_all(pixels)?;
            rows.picture.check_rest(rows.scratch)?;
            meter.lap(stages::DECODE);
            return Ok(());
        }
        let (width, height) = (plan.size.0 as usize, plan.size.1 as usize);
        if stored.writes_row_directly(&plan, &part.program, &part.steps) {
            rows.copy_all(&mut out[..PIXEL * width * height])?;
            rows.picture.check_rest(rows.scratch)?;
            meter.lap(stages::DECODE);
            return Ok(());
        }
        let to = self.canvas.begin(width, height, plan.fold.placement);
        match plan.axes {
            Some((x, y)) => {
                self.resampler
                    .resample_rows(&mut rows, seen, ResizeAxes { x, y }, to)?
            }
            None => rows.copy_all(to)?,
        }
        rows.picture.check_rest(rows.scratch)?;
        meter.lap(stages::DECODE);
        self.finish(ONLY, &plan, request.size, out, meter)
    }

    /// Draws the steps of the sample, and chooses which of them are part of the decoding.
    fn plan_row(
        &mut self,
        stored: StoredPicture,
        request: &RowRequest<'_, impl RandomStreams>,
    ) -> Result<DecodePlan, SampleFault> {
        let pair = self.pair;
        self.plan_with(stored, request, |steps| pair.replace(steps))
    }

    /// Like [`SampleDecoder::plan_row`], with the drawn steps changed.
    fn plan_with(
        &mut self,
        stored: StoredPicture,
        request: &RowRequest<'_, impl RandomStreams>,
        change: impl FnOnce(&mut Vec<OpStep>),
    ) -> Result<DecodePlan, SampleFault> {
        (request.check_size)(stored.upright_size())?;
        (self.image, self.source) = (stored.whole_size(), stored.upright_size());
        self.draw_part(ONLY, stored, request)?;
        let PartMaker { program, steps, .. } = &mut self.parts[ONLY];
        change(steps);
        let plan = stored.plan_decode(program, steps);
        let scratch = stored.sample_memory(&plan, program, steps);
        check_reduction(scratch.steep)?;
        self.make_room(scratch.bytes())?;
        Ok(plan)
    }

    /// Draws the steps of a part of a row.
    fn draw_part(
        &mut self,
        part: usize,
        stored: StoredPicture,
        request: &RowRequest<'_, impl RandomStreams>,
    ) -> Result<(), SampleFault> {
        let pair = self.pair;
        let PartMaker { program, steps, .. } = &mut self.parts[part];
        let of_image = |size: (u32, u32)| {
            (pair.of_image(size)).ok_or_else(|| {
                FaultKind::Unsupported.fault(format!(
                    "the picture of {} x {} pixels is no multiple of {}",
                    size.1, size.0, pair.scale
                ))
            })
        };
        let picture = DrawnPicture {
            size: of_image(stored.upright_size())?,
            whole: of_image(stored.whole_size())?,
            row: request.size,
            boxes: request.boxes,
        };
        program.steps(&picture, request.random, steps)
    }

    /// Draws the steps of an image whose row is made already: of an upright image of this height
    /// and width, with the sample's box. Returns height and width of the box, or of the image.
    ///
    /// # Errors
    /// No image has this size. The box lies outside.
    fn plan_kept(
        &mut self,
        whole: (u32, u32),
        part: Option<PixelBox>,
        random: &impl RandomStreams,
    ) -> Result<(u32, u32), SampleFault> {
        let pixels = u64::from(whole.0) * u64::from(whole.1);
        if !(1..=self.limits.max_pixels).contains(&pixels) {
            return Err(FaultKind::Corrupt.fault("no image has its size"));
        }
        let part = part.map(|part| part.within(whole)).transpose()?;
        let size = part.map_or(whole, PixelBox::size);
        (self.image, self.source) = (whole, size);
        let PartMaker { program, steps, .. } = &mut self.parts[ONLY];
        let picture = DrawnPicture {
            size,
            whole,
            row: None,
            boxes: None,
        };
        program.steps(&picture, random, steps)?;
        Ok(size)
    }

    /// Checks the memory of a sample before it is allocated.
    fn make_room(&mut self, scratch: u64) -> Result<(), SampleFault> {
        self.limits.check_scratch("the picture", scratch)?;
        if scratch > LARGE {
            // The memory plan does not count memory that the allocator kept from smaller samples.
            if scratch > self.held_bytes() as u64 {
                self.free_buffers();
            }
            memory::trim_heap();
        }
        Ok(())
    }

    /// Runs the remaining steps and writes the row. If a device finishes rows: writes pixels of the
    /// row's size.
    fn finish(
        &mut self,
        part: usize,
        plan: &DecodePlan,
        size: Option<(u32, u32)>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let PartMaker {
            program,
            emitter,
            steps,
            device,
        } = &mut self.parts[part];
        let fuses = program.fuses;
        if let Some(crops) = device {
            // A crop that fits was already written.
            let mut plan = *plan;
            if let Some(step) = crop::pad_step(&plan, steps) {
                let step = std::iter::once(&step);
                plan.fold.steps += self.canvas.apply(step, fuses, &mut self.resampler);
                if let (CanvasPixels::Bytes(view), _) = self.canvas.pixels() {
                    plan.size = (view.width as u32, view.height as u32);
                }
            }
            let pixels = crops.begin_resized(&plan, steps, size, out)?;
            meter.counted += 1;
            if let (CanvasPixels::Bytes(view), _) = self.canvas.pixels() {
                view.copy_to(pixels);
            }
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let mut done = plan.fold.steps;
        loop {
            let rest = &steps[done..];
            if let (CanvasPixels::Bytes(view), placement) = self.canvas.pixels()
                && emit_levels(emitter, (rest, fuses), view, placement, out)
            {
                break;
            }
            if rest.is_empty() {
                if let (CanvasPixels::Floats(view), placement) = self.canvas.pixels() {
                    let out = emitter.image_part(view.width, view.height, out);
                    emitter.emit_floats(view, placement, out);
                }
                break;
            }
            let stage = stages::of_step(&rest[0].step);
            let steps = rest.iter().map(|s| &s.step);
            done += self.canvas.apply(steps, fuses, &mut self.resampler);
            meter.lap(stage);
        }
        meter.lap(stages::EMIT);
        Ok(())
    }
}

/// Writes the row if no step is left, or only a normalization, which is part of the emission. False
/// if other steps are left. (Erasing with noise comes after a normalization, but most samples are
/// not erased.)
fn emit_levels(
    emitter: &mut RowEmitter,
    (rest, fuses): (&[OpStep], bool),
    view: PixelView<'_, u8>,
    placement: PixelPlacement,
    out: &mut [u8],
) -> bool {
    let scaling = match rest {
        [] => None,
        [last] => match last.step {
            Step::Normalize { unit, mean, std } if fuses && emitter.normalises() => {
                Some(ChannelScaling { unit, mean, std })
            }
            _ => return false,
        },
        _ => return false,
    };
    let out = emitter.image_part(view.width, view.height, out);
    match scaling {
        Some(scaling) => emitter.emit_normalised(view, scaling, placement, out),
        None => emitter.emit_rows(view, placement, out),
    }
    true
}

/// A window of an image, as an image of its own.
struct WindowRows<'a, 'b> {
    picture: RasterReader<'a>,
    window: PixelRegion,
    transparency: AlphaPolicy,
    scratch: &'b mut raster::RasterScratch,
}

impl WindowRows<'_, '_> {
    /// Copies the pixels without gaps.
    fn copy_all(&mut self, to: &mut [u8]) -> Result<(), SampleFault> {
        let line = PIXEL * self.window.w as usize;
        for (y, to) in to.chunks_exact_mut(line).enumerate() {
            to.copy_from_slice(self.row(y)?);
        }
        Ok(())
    }
}

impl RowSource for WindowRows<'_, '_> {
    type Fault = SampleFault;

    fn row(&mut self, y: usize) -> Result<&[u8], SampleFault> {
        let columns = self.window.x as usize..(self.window.x + self.window.w) as usize;
        let y = self.window.y as usize + y;
        self.picture
            .row(y, &columns, self.transparency, self.scratch)
    }
}

#[cfg(test)]
mod moves_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::ExifOrientation;
    use crate::picture::read_header::DecodeCost;
    use crate::recipe::geometry::UniformSource;
    use crate::recipe::weights::WeightTable;
    use crate::recipe::{CenterCrop, OneStream, Recipe, Resize};

    /// Whatever the size and the orientation, the box lies within what is
    /// decoded, though shorter side and crop are equal and nothing is to spare.
    #[test]
    fn the_box_lies_within_what_is_decoded() {
        for side in [224u32, 299, 300, 380] {
            let recipe = Recipe::new("tight")
                .then(Resize::shorter(side))
                .then(CenterCrop::new(side));
            let program = SampleProgram::compile(&recipe).unwrap();
            for short in 1..1200 {
                for orientation in ExifOrientation::ALL {
                    let stored = StoredPicture {
                        size: (short, short * 3 / 2 + 1),
                        orientation,
                        cost: DecodeCost::Jpeg {
                            coefficients: 0,
                            cmyk: false,
                        },
                        pixel_box: None,
                    };
                    let mut steps = Vec::new();
                    let none = OneStream::new(NoNumbers);
                    program
                        .steps(
                            &DrawnPicture::of_size(stored.upright_size()),
                            &none,
                            &mut steps,
                        )
                        .unwrap();
                    let plan = stored.plan_decode(&program, &steps);
                    assert!(plan.window.fits_in(plan.scale.of_size(stored.size)));
                    let axes = plan.axes.unwrap();
                    for (axis, at_hand) in [(axes.0, plan.window.w), (axes.1, plan.window.h)] {
                        let mut table = WeightTable::default();
                        table.prepare(axis);
                        let last = axis.out_size as usize - 1;
                        let (start, weights) = table.row(last);
                        assert!(start + weights.len() <= at_hand as usize, "{axis:?}");
                    }
                }
            }
        }
    }

    /// A panic is a failed sample, and nothing of it is left for the next one.
    #[test]
    fn a_panic_is_a_failed_sample() {
        use crate::order::PositionRandom;
        use crate::picture::jpeg::fixtures;
        use crate::picture::jpeg::fixtures::Sampling;
        let program = SampleProgram::compile(&Recipe::eval224()).unwrap();
        let mut decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
        let file = fixtures::jpeg(300, 260, Sampling::S420);
        let mut make_row = |admit: SizeCheck<'_>| {
            let mut out = vec![0; 4 * 3 * 224 * 224];
            let request = RowRequest {
                random: &PositionRandom::new(7, 1, 0),
                size: None,
                part: None,
                boxes: None,
                check_size: admit,
            };
            let filled = decoder.make_row(&file, &request, &mut out, &mut StageMeter::default());
            filled.map(|()| out)
        };
        let before = make_row(&|_| Ok(())).unwrap();
        let fault = make_row(&|_| panic!("on purpose")).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
        assert!(fault.reason.contains("JPEG file panicked"), "{fault}");
        assert!(make_row(&|_| Ok(())).unwrap() == before);
    }

    /// A file that fails before its row is written fails as it does where it is decoded.
    #[test]
    fn faults_and_panics_are_the_same_where_coded_crops_are_handed_over() {
        use crate::device::jpeg_part::PartLimits;
        use crate::order::PositionRandom;
        use crate::picture::jpeg::fixtures;
        use crate::picture::jpeg::fixtures::Sampling;
        const LIMITS: PartLimits = PartLimits {
            pictures: 8,
            rows: 1 << 20,
            pixels: 1 << 20,
        };
        let program = SampleProgram::compile(&Recipe::eval224()).unwrap();
        let program = program.with_crops().unwrap();
        let room = program.crops.unwrap().row_bytes((224, 224));
        let mut decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
        let mut make_row = |file: &[u8], admit: SizeCheck<'_>, limits: Option<&PartLimits>| {
            let mut out = vec![0; room.row_bytes()];
            let request = RowRequest {
                random: &PositionRandom::new(7, 1, 0),
                size: None,
                part: None,
                boxes: None,
                check_size: admit,
            };
            let meter = &mut StageMeter::default();
            let filled = match limits {
                Some(limits) => decoder.fill_or_copy_coded(file, &request, limits, &mut out, meter),
                None => decoder.make_row(file, &request, &mut out, meter),
            };
            let coded = out[crate::decode_plan::crop_row::CROP_HEADER_CODED]
                .iter()
                .any(|&b| b != 0);
            filled
                .map(|()| (coded, out))
                .map_err(|fault| fault.to_string())
        };
        let whole = fixtures::jpeg(300, 260, Sampling::S420);
        let admitted: SizeCheck<'_> = &|_| Ok(());
        let panics: SizeCheck<'_> = &|_| panic!("on purpose");
        let truncated = &whole[..whole.len() - 2];
        for (file, admit) in [
            (truncated, admitted),
            (&whole[..3], admitted),
            (&whole, panics),
        ] {
            let by_cpu = make_row(file, admit, None).unwrap_err();
            assert_eq!(make_row(file, admit, Some(&LIMITS)).unwrap_err(), by_cpu);
        }
        assert!(make_row(&whole, admitted, Some(&LIMITS)).unwrap().0);
        // It fits no part.
        let small = PartLimits { rows: 64, ..LIMITS };
        let by_cpu = make_row(&whole, admitted, None).unwrap();
        assert!(!by_cpu.0 && make_row(&whole, admitted, Some(&small)).unwrap() == by_cpu);
    }

    struct NoNumbers;

    impl UniformSource for NoNumbers {
        fn next_f64(&mut self) -> f64 {
            panic!("this recipe has nothing random");
        }
    }
}
