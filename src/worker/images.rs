//! Images: one row = one sample, from its path to finished elements.
//!
//! Runs in workers, and in the consumer with zero workers. The steps are those
//! of [`ImageJob::fill`], one after the other; no heap allocation once warm.

use std::ffi::CStr;
use std::ops::Range;

use super::emit::{Emitter, Placement};
use super::input::{Bytes, Input, InputMode};
use super::job::Job;
use super::meter::{Meter, Stage};
use super::resample::{Resampler, Source, Target};
use super::spec::ImageSpec;
use crate::error::{FaultKind, Result, SampleFault};
use crate::index::Index;
use crate::packing::{PackedBatch, Packing, Sizes};
use crate::picture::jpeg::{self, Decoded, JpegDecoder, JpegHeader, Region, Scale, Scratch};
use crate::plan::{Plan, PositionRandom, RowStatus};
use crate::recipe::SampleProgram;
use crate::recipe::geometry::{BoxF, SampleGeometry, sample_geometry, scale_denominator};
use crate::recipe::weights::Filter;
use crate::ring::consumer_side::Ticket;
use crate::sys::cpu::CpuLevel;

/// The filter of every resize that a recipe can name today.
const FILTER: Filter = Filter::Triangle;

/// Everything that a worker keeps from sample to sample.
#[derive(Debug)]
pub(crate) struct ImageJob {
    index: Index,
    plan: Plan,
    program: SampleProgram,
    input: Input,
    decoder: JpegDecoder,
    scratch: Scratch,
    resampler: Resampler,
    emitter: Emitter,
    packing: Packing,
    packed: PackedBatch,
    path: Vec<u8>,
    /// RGB8 of the output's size, before it is emitted.
    resampled: Vec<u8>,
}

/// What is decoded for one sample, and what becomes of it.
pub(super) struct Cut {
    pub(super) scale: Scale,
    /// Part of the scaled, stored image that the filter sees.
    pub(super) want: Region,
    /// The box to resample, within `want`.
    within: BoxF,
    /// Size of the resampled pixels, as stored: width, height.
    size: (u32, u32),
    placement: Placement,
}

impl ImageJob {
    /// `sizes` are those of the samples, where rows have sizes of their own.
    pub(crate) fn new(
        spec: &ImageSpec,
        index: Index,
        sizes: Option<Sizes>,
        mode: InputMode,
    ) -> Result<Self> {
        let p = &spec.program;
        Ok(Self {
            index,
            plan: spec.plan.clone(),
            program: p.clone(),
            input: Input::new(mode, spec.limits.max_scratch),
            decoder: JpegDecoder::new(&spec.limits),
            scratch: Scratch::default(),
            resampler: Resampler::new(CpuLevel::detect()?),
            emitter: Emitter::new(p.mean, p.std, p.dtype, p.layout),
            packing: Packing::new(p, spec.plan.clone(), spec.limits, sizes)?,
            packed: PackedBatch::default(),
            path: Vec::new(),
            resampled: Vec::new(),
        })
    }

    /// Bytes that the first `rows` rows of a batch take, with what lies in
    /// front of them.
    pub(crate) fn batch_bytes(&mut self, ticket: &Ticket, rows: u32) -> usize {
        let at = (ticket.epoch, ticket.batch);
        self.packing.batch_bytes(&mut self.packed, at, rows)
    }
}

impl Job for ImageJob {
    fn place(&mut self, ticket: &Ticket, row: u32) -> Range<usize> {
        let at = (ticket.epoch, ticket.batch);
        self.packing.place(&mut self.packed, at, row)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let row = self.plan.row(ticket.epoch, ticket.batch, row);
        if row.status == RowStatus::Padding {
            // Nobody posts padding: the ticket's words were scribbled on.
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row that holds no sample",
            ));
        }
        self.index.write_path(row.id, &mut self.path);
        let path = CStr::from_bytes_with_nul(&self.path)
            .map_err(|_| SampleFault::new(FaultKind::Unreadable, "the path holds a zero byte"))?;
        let bytes = self.input.open(path)?;
        meter.bytes += bytes.len() as u64;
        let header = jpeg::read_header(&bytes)?;
        let mut random = PositionRandom::new(self.plan.options().seed, ticket.epoch, row.position);
        let upright = header
            .orientation
            .apply_to_size((header.width, header.height));
        self.packing.check(row.id, (upright.1, upright.0))?;
        let geometry = sample_geometry(&self.program, upright.0, upright.1, &mut random);
        let cut = cut(&self.program, &header, &geometry);
        meter.lap(Stage::Open);
        let decoded =
            self.decoder
                .decode_region(&bytes, &header, cut.scale, cut.want, &mut self.scratch)?;
        close(bytes);
        meter.lap(Stage::Decode);
        let (width, height) = (cut.size.0 as usize, cut.size.1 as usize);
        self.resampled.resize(3 * width * height, 0);
        self.resampler.resample(
            source(&self.scratch.rgb, &decoded, cut.want),
            cut.within,
            &mut self.resampled,
            Target {
                width,
                height,
                filter: FILTER,
                antialias: true,
            },
        );
        meter.lap(Stage::Resample);
        self.emitter
            .emit(&self.resampled, width, height, cut.placement, out);
        meter.lap(Stage::Emit);
        Ok(())
    }

    fn describe(&self, ticket: &Ticket, row: u32) -> String {
        let id = self.plan.row(ticket.epoch, ticket.batch, row).id;
        format!("sample {id} ({})", self.index.path(id).display())
    }
}

/// Unmaps the file as soon as its pixels are out.
fn close(bytes: Bytes<'_>) {
    drop(bytes);
}

/// From the box in the upright image to what is decoded of the stored one.
pub(super) fn cut(program: &SampleProgram, header: &JpegHeader, geometry: &SampleGeometry) -> Cut {
    let stored = (header.width, header.height);
    let turned = header.orientation.swaps_axes();
    let upright = header.orientation.apply_to_size(stored);
    let (height, width) = program.extent.of((upright.1, upright.0));
    let size = if turned {
        (height, width)
    } else {
        (width, height)
    };
    let source = header.orientation.to_stored(geometry.source, stored);
    let scale = Scale::of_denominator(scale_denominator(program.decode, &source, (size.1, size.0)));
    let d = f64::from(scale.denominator());
    let scaled = BoxF {
        x0: source.x0 / d,
        y0: source.y0 / d,
        x1: source.x1 / d,
        y1: source.y1 / d,
    };
    let upright = Placement {
        transpose: turned,
        flip_x: header.orientation.flips_stored_x(),
        flip_y: header.orientation.flips_stored_y(),
    };
    let whole = jpeg::scaled_size(header, scale);
    // A filter that sees beyond the box reaches as far as its support.
    let reach = |length: f64, to: u32| {
        if geometry.sees_outside {
            FILTER.reach(length / f64::from(to))
        } else {
            0.0
        }
    };
    let (x, w) = span(scaled.x0, scaled.x1, reach(scaled.width(), size.0), whole.0);
    let (y, h) = span(
        scaled.y0,
        scaled.y1,
        reach(scaled.height(), size.1),
        whole.1,
    );
    let (dx, dy) = (f64::from(x), f64::from(y));
    Cut {
        scale,
        want: Region { x, y, w, h },
        within: BoxF {
            // The arithmetic may leave a rounding error beyond the first and
            // the last pixel.
            x0: (scaled.x0 - dx).max(0.0),
            y0: (scaled.y0 - dy).max(0.0),
            x1: (scaled.x1 - dx).min(f64::from(w)),
            y1: (scaled.y1 - dy).min(f64::from(h)),
        },
        size,
        placement: if geometry.flip {
            upright.mirrored()
        } else {
            upright
        },
    }
}

/// The whole pixels from `from - reach` to `to + reach` that exist: first, count.
fn span(from: f64, to: f64, reach: f64, size: u32) -> (u32, u32) {
    let first = ((from - reach).floor().max(0.0) as u32).min(size - 1);
    let end = ((to + reach).ceil() as u32).clamp(first + 1, size);
    (first, end - first)
}

/// Exactly the wanted part of what was decoded: the decoder's alignment must
/// not change what the filter sees.
fn source<'a>(rgb: &'a [u8], decoded: &Decoded, want: Region) -> Source<'a> {
    let skip = (want.y - decoded.y) as usize * decoded.stride + 3 * (want.x - decoded.x) as usize;
    Source {
        pixels: &rgb[skip..],
        width: want.w as usize,
        height: want.h as usize,
        stride: decoded.stride,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Op, Recipe};
    use crate::picture::Orientation;
    use crate::picture::jpeg::fixtures;

    /// Whatever the size and the orientation, the box lies within what is
    /// decoded, though shorter side and crop are equal and nothing is to spare.
    #[test]
    fn the_box_lies_within_what_is_decoded() {
        let jpeg = fixtures::jpeg(8, 8, fixtures::Sampling::S444);
        let mut header = jpeg::read_header(&jpeg).unwrap();
        for side in [224u32, 299, 300, 380] {
            let recipe = Recipe::new(
                "tight",
                vec![
                    Op::ResizeShorter { size: side },
                    Op::CenterCrop { size: (side, side) },
                ],
            );
            let program = SampleProgram::compile(&recipe).unwrap();
            for short in 1..1200 {
                for orientation in Orientation::ALL {
                    (header.width, header.height) = (short, short * 3 / 2 + 1);
                    header.orientation = orientation;
                    let (w, h) = orientation.apply_to_size((header.width, header.height));
                    let geometry = sample_geometry(&program, w, h, &mut NoNumbers);
                    let cut = cut(&program, &header, &geometry);
                    let (b, want) = (cut.within, cut.want);
                    assert!(b.x0 >= 0.0 && b.y0 >= 0.0, "{short} {orientation:?} {b:?}");
                    assert!(b.x1 <= f64::from(want.w) && b.y1 <= f64::from(want.h));
                    assert!(want.fits_in(jpeg::scaled_size(&header, cut.scale)));
                }
            }
        }
    }

    struct NoNumbers;

    impl crate::recipe::geometry::Uniform for NoNumbers {
        fn next_f64(&mut self) -> f64 {
            panic!("this recipe has nothing random");
        }
    }
}
