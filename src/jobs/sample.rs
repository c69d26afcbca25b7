//! One sample: from a file's bytes to the bytes of a finished row.
//!
//! Runs in workers, and in the consumer with zero workers or for what a device flags. Knows no
//! path, no index and no ring. The steps are those of [`SampleDecoder::fill`]; on the
//! JPEG path no heap allocation once warm, but for operations that hold others and for coded rows.
//!
//! - `crop`: the row, where a device makes the batch's rows;
//! - `raw`: pixels that lie in the file as they are.

mod crop;
mod raw;

use self::crop::CropWriter;
use crate::cut::needs::check_steep;
use crate::cut::sample::{Cut, KEPT, Stored};
use crate::device::jpeg_part::PartLimits;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::stages;
use crate::picture::jpeg;
use crate::picture::jpeg::{JpegDecoder, JpegHeader, Region};
use crate::picture::raster;
use crate::picture::raster::Raster;
use crate::picture::{Format, Limits, PixelBox, Transparency, Truncated};
use crate::pixels::canvas::{Canvas, Held};
use crate::pixels::emit::Emitter;
use crate::pixels::normalise::Scaling;
use crate::pixels::resample::{Axes, Resampler, Rows, Source};
use crate::pixels::view::View;
use crate::pool::worker::meter::Meter;
use crate::recipe::random::Streams;
use crate::recipe::steps::OpStep;
use crate::recipe::{Placement, SampleProgram, Step};
use crate::sys::cpu::CpuLevel;
use crate::sys::memory;
use crate::sys::panics::caught;

/// Bytes of a decoded pixel.
const PIXEL: usize = 3;

/// Buffers are given back after a sample, good or bad, when they are larger
/// than this together: one huge picture must not cost its memory for the rest
/// of the run, nor the next picture its own.
pub(crate) const KEEP: usize = KEPT as usize;

/// In front of a sample that takes more, all that is free is given back.
const LARGE: u64 = 16 << 20;

/// What a worker takes beside the scratch of a decode: its resampler, a row of
/// the output, the decoders' working memory.
pub(crate) const BESIDE_SCRATCH: u64 = 64 << 20;

/// Whether a picture of this upright height and width fits its row.
pub(crate) type Admit<'a> = &'a dyn Fn((u32, u32)) -> Result<(), SampleFault>;

/// Everything that is kept from sample to sample.
#[derive(Debug)]
pub(crate) struct SampleDecoder {
    program: SampleProgram,
    limits: Limits,
    jpeg: JpegDecoder,
    jpeg_scratch: jpeg::Scratch,
    raster_scratch: raster::Scratch,
    resampler: Resampler,
    canvas: Canvas,
    emitter: Emitter,
    steps: Vec<OpStep>,
    /// Where a device makes the rows.
    crops: Option<CropWriter>,
}

/// What a row needs beside the bytes of its file.
pub(crate) struct RowRequest<'a, R> {
    /// The numbers of its position.
    pub(crate) random: &'a R,
    /// Height and width, where the batch sets them.
    pub(crate) size: Option<(u32, u32)>,
    /// The sample's box, if it has one: to all else here it is the picture.
    pub(crate) part: Option<PixelBox>,
    /// Asked with the upright height and width before a pixel is decoded: its
    /// fault is the sample's.
    pub(crate) admit: Admit<'a>,
}

/// A row, and what a device decodes of it; none = pixels are wanted.
type Request<'a, 'b, R> = (&'a RowRequest<'b, R>, Option<&'a PartLimits>);

impl SampleDecoder {
    pub(crate) fn new(program: &SampleProgram, limits: &Limits) -> Result<Self> {
        Ok(Self {
            program: program.clone(),
            limits: *limits,
            jpeg: JpegDecoder::new(limits),
            jpeg_scratch: jpeg::Scratch::default(),
            raster_scratch: raster::Scratch::default(),
            resampler: Resampler::new(CpuLevel::detect()?),
            canvas: Canvas::default(),
            emitter: Emitter::new(program.emission),
            steps: Vec::new(),
            crops: program.crops.map(CropWriter::new),
        })
    }

    /// Fills the row `out` from the bytes of a file. A failed row may leave
    /// anything in `out`, which may be longer than the row.
    ///
    /// A panic is a failed sample: the decoders in Rust have had some on hostile
    /// files, and with zero workers this is the caller's process. Nothing that is
    /// half-way done is looked at again: all buffers and the decoder start anew.
    pub(crate) fn fill(
        &mut self,
        bytes: &[u8],
        request: &RowRequest<'_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        self.fill_caught(bytes, (request, None), out, meter)
    }

    /// As [`SampleDecoder::fill`], for a device whose parts are within `limits`: the row of a file
    /// that it takes holds the coded crop. Nothing of that is decoded, but everything is checked
    /// that a decode checks before.
    pub(crate) fn fill_or_hand_over(
        &mut self,
        bytes: &[u8],
        request: &RowRequest<'_, impl Streams>,
        limits: &PartLimits,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        self.fill_caught(bytes, (request, Some(limits)), out, meter)
    }

    fn fill_caught(
        &mut self,
        bytes: &[u8],
        request: Request<'_, '_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let fill = || self.fill_row(bytes, request, out, meter);
        match caught(fill) {
            Some(filled) => {
                if self.held_bytes() > KEEP {
                    self.give_back();
                }
                filled
            }
            None => {
                self.jpeg = JpegDecoder::new(&self.limits);
                self.give_back();
                let format = Format::of(bytes)?;
                Err(SampleFault::new(
                    FaultKind::Corrupt,
                    format!("decoding this {format} file panicked: please report it with the file"),
                ))
            }
        }
    }

    /// Writes the coded crop into the row, if the device takes the file, and says whether it has.
    /// Else the row holds anything.
    fn hand_over_coded(
        &mut self,
        (bytes, header): (&[u8], &JpegHeader),
        cut: &Cut,
        size: Option<(u32, u32)>,
        limits: &PartLimits,
        out: &mut [u8],
    ) -> Result<bool, SampleFault> {
        let Some(crops) = &mut self.crops else {
            return Ok(false);
        };
        let (jpeg, scratch, steps) = (&self.jpeg, &self.jpeg_scratch, &self.steps);
        // Before weights are made in vain.
        if !jpeg.may_write_coded(bytes.len(), header, out.len()) {
            return Ok(false);
        }
        let write =
            |to: &mut [u8]| jpeg.write_coded((bytes, header), cut.scale, cut.want, scratch, to);
        let handed_over = caught(|| crops.hand_over_coded(cut, steps, size, limits, out, write));
        handed_over.unwrap_or_else(|| {
            // The decode that follows says what there is to say of the file.
            self.crops = self.program.crops.map(CropWriter::new);
            Ok(false)
        })
    }

    fn open_jpeg(
        &self,
        bytes: &[u8],
        request: &RowRequest<'_, impl Streams>,
    ) -> Result<(JpegHeader, Stored), SampleFault> {
        let header = jpeg::read_header(bytes)?;
        let stored = Stored {
            size: (header.width, header.height),
            orientation: (header.orientation).read_as(self.program.orientation, Format::Jpeg),
            decoding: header.decoding(),
            part: None,
        };
        Ok((header, stored.boxed(request.part)?))
    }

    fn give_back(&mut self) {
        self.jpeg_scratch = jpeg::Scratch::default();
        self.raster_scratch = raster::Scratch::default();
        self.resampler.give_back();
        self.canvas.give_back();
    }

    fn held_bytes(&self) -> usize {
        self.jpeg_scratch.bytes()
            + self.raster_scratch.bytes()
            + self.resampler.scratch_bytes()
            + self.canvas.held_bytes()
            + self.crops.as_ref().map_or(0, CropWriter::held_bytes)
    }

    fn fill_row(
        &mut self,
        bytes: &[u8],
        request: Request<'_, '_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let format = Format::of(bytes)?;
        let filled = self.fill_as(format, Truncated::Refuse, bytes, request, out, meter);
        let Err(fault) = filled else {
            return Ok(());
        };
        let is_kept = self.program.truncated == Truncated::Keep
            && fault.kind == FaultKind::Truncated
            && matches!(format, Format::Jpeg | Format::Png);
        if !is_kept {
            return Err(fault);
        }
        // A file without a header that can be read stays what it was.
        self.fill_as(format, Truncated::Keep, bytes, request, out, meter)
            .map_err(|_| fault)?;
        meter.truncated += 1;
        Ok(())
    }

    fn fill_as(
        &mut self,
        format: Format,
        truncated: Truncated,
        bytes: &[u8],
        request: Request<'_, '_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        match format {
            Format::Jpeg => {
                self.jpeg = JpegDecoder::that_may_keep(&self.limits, truncated);
                self.fill_from_jpeg(bytes, request, out, meter)
            }
            format => {
                let picture = match truncated {
                    Truncated::Refuse => Raster::open(format, bytes, &self.limits)?,
                    Truncated::Keep => Raster::open_truncated(bytes, &self.limits)?,
                };
                self.fill_from_raster((format, picture), request.0, out, meter)
            }
        }
    }

    /// Of a JPEG only the part that the first steps need is decoded.
    fn fill_from_jpeg(
        &mut self,
        bytes: &[u8],
        (request, coded): Request<'_, '_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let (header, stored) = self.open_jpeg(bytes, request)?;
        let cut = self.plan(stored, request)?;
        meter.lap(stages::OPEN);
        if let Some(limits) = coded
            && self.hand_over_coded((bytes, &header), &cut, request.size, limits, out)?
        {
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let scratch = &mut self.jpeg_scratch;
        let want = cut.want;
        let decoded = self
            .jpeg
            .decode_region(bytes, &header, cut.scale, want, scratch)?;
        meter.lap(stages::DECODE);
        // Exactly the wanted part of what was decoded: the decoder's alignment
        // must not change what the filter sees.
        let stride = decoded.stride / PIXEL;
        let first = (want.y - decoded.y) as usize * stride + (want.x - decoded.x) as usize;
        if let Some(crops) = &mut self.crops
            && let Some(pixels) = crops.begin(&cut, &self.steps, request.size, out)?
        {
            let lines = scratch.rgb[PIXEL * first..].chunks(decoded.stride);
            for (to, line) in pixels.chunks_exact_mut(PIXEL * want.w as usize).zip(lines) {
                to.copy_from_slice(&line[..to.len()]);
            }
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let (width, height) = (cut.size.0 as usize, cut.size.1 as usize);
        if let Some((x, y)) = cut.axes {
            let source = Source {
                pixels: &scratch.rgb[PIXEL * first..],
                width: want.w as usize,
                height: want.h as usize,
                stride: decoded.stride,
            };
            let to = self.canvas.begin(width, height, cut.fold.placement);
            self.resampler.resample(source, Axes { x, y }, to);
            meter.lap(stages::RESAMPLE);
            self.finish(&cut, request.size, out, meter)
        } else {
            // Wanted as they are: no copy.
            self.canvas.adopt(
                &mut self.jpeg_scratch.rgb,
                (first, stride),
                (width, height),
                cut.fold.placement,
            );
            let finished = self.finish(&cut, request.size, out, meter);
            self.canvas.release(&mut self.jpeg_scratch.rgb);
            finished
        }
    }

    /// Everything else comes row by row: decoding and resampling take turns,
    /// and both count as decoding.
    fn fill_from_raster(
        &mut self,
        (format, mut picture): (Format, Raster<'_>),
        request: &RowRequest<'_, impl Streams>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        let stored = Stored {
            size: picture.size(),
            orientation: (picture.orientation()).read_as(self.program.orientation, format),
            decoding: picture.decoding(),
            part: None,
        }
        .boxed(request.part)?;
        let cut = self.plan(stored, request)?;
        meter.lap(stages::OPEN);
        if let Some(pixels) = picture.raw() {
            let pixels = (pixels, stored.size.0 as usize);
            return self.fill_from_raw(pixels, &cut, request.size, out, meter);
        }
        let seen = (cut.want.w as usize, cut.want.h as usize);
        picture.begin(&mut self.raster_scratch)?;
        let mut rows = WantedRows {
            picture,
            want: cut.want,
            transparency: self.program.transparency,
            scratch: &mut self.raster_scratch,
        };
        if let Some(crops) = &mut self.crops
            && let Some(pixels) = crops.begin(&cut, &self.steps, request.size, out)?
        {
            rows.copy_all(pixels)?;
            rows.picture.finish(rows.scratch)?;
            meter.lap(stages::DECODE);
            return Ok(());
        }
        let (width, height) = (cut.size.0 as usize, cut.size.1 as usize);
        if stored.is_the_row(&cut, &self.program, &self.steps) {
            rows.copy_all(&mut out[..PIXEL * width * height])?;
            rows.picture.finish(rows.scratch)?;
            meter.lap(stages::DECODE);
            return Ok(());
        }
        let to = self.canvas.begin(width, height, cut.fold.placement);
        match cut.axes {
            Some((x, y)) => self
                .resampler
                .resample_rows(&mut rows, seen, Axes { x, y }, to)?,
            None => rows.copy_all(to)?,
        }
        rows.picture.finish(rows.scratch)?;
        meter.lap(stages::DECODE);
        self.finish(&cut, request.size, out, meter)
    }

    /// Draws the steps of the sample, and turns the first of them into what is
    /// decoded.
    fn plan(
        &mut self,
        stored: Stored,
        request: &RowRequest<'_, impl Streams>,
    ) -> Result<Cut, SampleFault> {
        (request.admit)(stored.upright())?;
        let (program, steps) = (&self.program, &mut self.steps);
        program.steps(stored.upright(), request.size, request.random, steps)?;
        let cut = stored.cut(program, steps);
        let scratch = stored.scratch(&cut, program, steps);
        check_steep(scratch.steep)?;
        self.limits.check_scratch("the picture", scratch.bytes())?;
        if scratch.bytes() > LARGE {
            // What the allocator kept of smaller samples, and of buffers that grow,
            // was not forecast beside it.
            if scratch.bytes() > self.held_bytes() as u64 {
                self.give_back();
            }
            memory::give_back_all_that_is_freed();
        }
        Ok(cut)
    }

    /// The steps that are left, and the row: of pixels that are as large as the row.
    fn finish(
        &mut self,
        cut: &Cut,
        size: Option<(u32, u32)>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> Result<(), SampleFault> {
        if let Some(crops) = &mut self.crops {
            // What had room is in the row already.
            let mut cut = *cut;
            if let Some(step) = crop::border(&cut, &self.steps) {
                let step = std::iter::once(&step);
                cut.fold.steps += self
                    .canvas
                    .apply(step, self.program.fuses, &mut self.resampler);
                if let (Held::Bytes(view), _) = self.canvas.held() {
                    cut.size = (view.width as u32, view.height as u32);
                }
            }
            let pixels = crops.begin_resized(&cut, &self.steps, size, out)?;
            meter.counted += 1;
            if let (Held::Bytes(view), _) = self.canvas.held() {
                view.copy_to(pixels);
            }
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let fuses = self.program.fuses;
        let mut done = cut.fold.steps;
        loop {
            let rest = &self.steps[done..];
            if let (Held::Bytes(view), placement) = self.canvas.held()
                && emit_levels(&mut self.emitter, (rest, fuses), view, placement, out)
            {
                break;
            }
            if rest.is_empty() {
                self.emit_floats(out);
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

    fn emit_floats(&mut self, out: &mut [u8]) {
        if let (Held::Floats(view), placement) = self.canvas.held() {
            let out = &mut out[..self.emitter.row_bytes(view.width, view.height)];
            self.emitter.emit_floats(view, placement, out);
        }
    }
}

/// Writes the row of levels where nothing is left to do on them, or nothing but to
/// normalise them: that is done with the emission. (What erases with noise stands
/// behind it, and most samples are not erased.) Whether it has.
fn emit_levels(
    emitter: &mut Emitter,
    (rest, fuses): (&[OpStep], bool),
    view: View<'_, u8>,
    placement: Placement,
    out: &mut [u8],
) -> bool {
    let scaling = match rest {
        [] => None,
        [last] => match last.step {
            Step::Normalize { unit, mean, std } if fuses && emitter.normalises() => {
                Some(Scaling { unit, mean, std })
            }
            _ => return false,
        },
        _ => return false,
    };
    let out = &mut out[..emitter.row_bytes(view.width, view.height)];
    match scaling {
        Some(scaling) => emitter.emit_normalised(view, scaling, placement, out),
        None => emitter.emit_rows(view, placement, out),
    }
    true
}

/// The part of a picture that is read, as a picture of its own.
struct WantedRows<'a, 'b> {
    picture: Raster<'a>,
    want: Region,
    transparency: Transparency,
    scratch: &'b mut raster::Scratch,
}

impl WantedRows<'_, '_> {
    /// The pixels as they are, tight.
    fn copy_all(&mut self, to: &mut [u8]) -> Result<(), SampleFault> {
        let line = PIXEL * self.want.w as usize;
        for (y, to) in to.chunks_exact_mut(line).enumerate() {
            to.copy_from_slice(self.row(y)?);
        }
        Ok(())
    }
}

impl Rows for WantedRows<'_, '_> {
    type Fault = SampleFault;

    fn row(&mut self, y: usize) -> Result<&[u8], SampleFault> {
        let columns = self.want.x as usize..(self.want.x + self.want.w) as usize;
        let y = self.want.y as usize + y;
        self.picture
            .row(y, &columns, self.transparency, self.scratch)
    }
}

#[cfg(test)]
mod moves_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Orientation;
    use crate::picture::header::Decoding;
    use crate::recipe::geometry::Uniform;
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
                for orientation in Orientation::ALL {
                    let stored = Stored {
                        size: (short, short * 3 / 2 + 1),
                        orientation,
                        decoding: Decoding::Jpeg {
                            coefficients: 0,
                            cmyk: false,
                        },
                        part: None,
                    };
                    let mut steps = Vec::new();
                    let none = OneStream::new(NoNumbers);
                    program
                        .steps(stored.upright(), None, &none, &mut steps)
                        .unwrap();
                    let cut = stored.cut(&program, &steps);
                    assert!(cut.want.fits_in(cut.scale.of_size(stored.size)));
                    let axes = cut.axes.unwrap();
                    for (axis, at_hand) in [(axes.0, cut.want.w), (axes.1, cut.want.h)] {
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
        use crate::picture::jpeg::fixtures;
        use crate::picture::jpeg::fixtures::Sampling;
        use crate::plan::PositionRandom;
        let program = SampleProgram::compile(&Recipe::eval224()).unwrap();
        let mut decoder = SampleDecoder::new(&program, &Limits::default()).unwrap();
        let file = fixtures::jpeg(300, 260, Sampling::S420);
        let mut fill = |admit: Admit<'_>| {
            let mut out = vec![0; 4 * 3 * 224 * 224];
            let request = RowRequest {
                random: &PositionRandom::new(7, 1, 0),
                size: None,
                part: None,
                admit,
            };
            let filled = decoder.fill(&file, &request, &mut out, &mut Meter::default());
            filled.map(|()| out)
        };
        let before = fill(&|_| Ok(())).unwrap();
        let fault = fill(&|_| panic!("on purpose")).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
        assert!(fault.reason.contains("JPEG file panicked"), "{fault}");
        assert!(fill(&|_| Ok(())).unwrap() == before);
    }

    /// A file that fails before its row is written fails as it does where it is decoded.
    #[test]
    fn faults_and_panics_are_the_same_where_coded_crops_are_handed_over() {
        use crate::device::jpeg_part::PartLimits;
        use crate::picture::jpeg::fixtures;
        use crate::picture::jpeg::fixtures::Sampling;
        use crate::plan::PositionRandom;
        const LIMITS: PartLimits = PartLimits {
            pictures: 8,
            rows: 1 << 20,
            pixels: 1 << 20,
        };
        let program = SampleProgram::compile(&Recipe::eval224()).unwrap();
        let program = program.with_crops().unwrap();
        let room = program.crops.unwrap().room((224, 224));
        let mut decoder = SampleDecoder::new(&program, &Limits::default()).unwrap();
        let mut fill = |file: &[u8], admit: Admit<'_>, limits: Option<&PartLimits>| {
            let mut out = vec![0; room.row_bytes()];
            let request = RowRequest {
                random: &PositionRandom::new(7, 1, 0),
                size: None,
                part: None,
                admit,
            };
            let meter = &mut Meter::default();
            let filled = match limits {
                Some(limits) => decoder.fill_or_hand_over(file, &request, limits, &mut out, meter),
                None => decoder.fill(file, &request, &mut out, meter),
            };
            let coded = out[crate::cut::crop::CROP_HEADER_CODED]
                .iter()
                .any(|&b| b != 0);
            filled
                .map(|()| (coded, out))
                .map_err(|fault| fault.to_string())
        };
        let whole = fixtures::jpeg(300, 260, Sampling::S420);
        let admitted: Admit<'_> = &|_| Ok(());
        let panics: Admit<'_> = &|_| panic!("on purpose");
        let cut = &whole[..whole.len() - 2];
        for (file, admit) in [(cut, admitted), (&whole[..3], admitted), (&whole, panics)] {
            let by_cpu = fill(file, admit, None).unwrap_err();
            assert_eq!(fill(file, admit, Some(&LIMITS)).unwrap_err(), by_cpu);
        }
        assert!(fill(&whole, admitted, Some(&LIMITS)).unwrap().0);
        // It fits no part.
        let small = PartLimits { rows: 64, ..LIMITS };
        let by_cpu = fill(&whole, admitted, None).unwrap();
        assert!(!by_cpu.0 && fill(&whole, admitted, Some(&small)).unwrap() == by_cpu);
    }

    struct NoNumbers;

    impl Uniform for NoNumbers {
        fn next_f64(&mut self) -> f64 {
            panic!("this recipe has nothing random");
        }
    }
}
