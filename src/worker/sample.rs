//! One sample: from a file's bytes to the bytes of a finished row.
//!
//! Runs in workers, and in the consumer with zero workers. Knows no path, no
//! index and no ring. The steps are those of [`SampleDecoder::fill`]; on the
//! JPEG path no heap allocation once warm.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::emit::{Emitter, Placement};
use super::meter::{Meter, Stage};
use super::resample::{Resampler, Rows, Source, Target};
use crate::error::{FaultKind, Result, SampleFault};
use crate::picture::jpeg::{self, Decoded, JpegDecoder, Region, Scale};
use crate::picture::raster::{self, Raster};
use crate::picture::{Format, Limits, Orientation};
use crate::recipe::geometry::{BoxF, SampleGeometry, Uniform, sample_geometry, scale_denominator};
use crate::recipe::weights::Filter;
use crate::recipe::{Background, Crop, RowExtent, SampleProgram};
use crate::sys::cpu::CpuLevel;

/// Bytes of a decoded pixel.
const PIXEL: usize = 3;

/// The filter of every resize that a recipe can name today.
const FILTER: Filter = Filter::Triangle;

/// Buffers are given back after a sample, good or bad, when they are larger
/// than this together: one huge picture must not cost its memory for the rest
/// of the run, nor the next picture its own.
pub(super) const KEEP: usize = 64 << 20;

/// Whether a picture of this upright height and width fits its row.
pub(crate) type Admit<'a> = &'a dyn Fn((u32, u32)) -> std::result::Result<(), SampleFault>;

/// Everything that is kept from sample to sample.
#[derive(Debug)]
pub(crate) struct SampleDecoder {
    program: SampleProgram,
    limits: Limits,
    jpeg: JpegDecoder,
    jpeg_scratch: jpeg::Scratch,
    raster_scratch: raster::Scratch,
    resampler: Resampler,
    emitter: Emitter,
    /// RGB8 of the output's size, before it is emitted.
    resampled: Vec<u8>,
}

impl SampleDecoder {
    pub(crate) fn new(program: &SampleProgram, limits: &Limits) -> Result<Self> {
        let p = program;
        let resampled = match p.extent {
            RowExtent::Fixed { height, width } => 3 * width as usize * height as usize,
            RowExtent::Own => 0,
        };
        Ok(Self {
            program: p.clone(),
            limits: *limits,
            jpeg: JpegDecoder::new(limits),
            jpeg_scratch: jpeg::Scratch::default(),
            raster_scratch: raster::Scratch::default(),
            resampler: Resampler::new(CpuLevel::detect()?),
            emitter: Emitter::new(p.mean, p.std, p.dtype, p.layout),
            resampled: vec![0; resampled],
        })
    }

    /// Most bytes of pixels between resampling and output.
    pub(crate) fn row_scratch(&self) -> u64 {
        match self.program.extent {
            RowExtent::Fixed { .. } => self.resampled.len() as u64,
            // Counted with the rest of the scratch.
            RowExtent::Own => 0,
        }
    }

    /// Fills the row `out` from the bytes of a file, with the parameters that
    /// `random` gives. A failed row may leave anything in `out`, which may be
    /// longer than the row. `size` is the row's when it is not the recipe's.
    ///
    /// `admit` is asked with the upright height and width before a pixel is
    /// decoded: its fault is the sample's.
    pub(crate) fn fill(
        &mut self,
        bytes: &[u8],
        size: Option<(u32, u32)>,
        random: &mut impl Uniform,
        admit: Admit<'_>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        if let Some((height, width)) = size {
            return Err(SampleFault::new(
                FaultKind::Unsupported,
                format!("rows of {height} x {width} by multi_scale are not served yet"),
            ));
        }
        let filled = self.fill_row(bytes, random, admit, out, meter);
        self.give_back();
        filled
    }

    fn give_back(&mut self) {
        let own = match self.program.extent {
            RowExtent::Fixed { .. } => 0,
            RowExtent::Own => self.resampled.capacity(),
        };
        let held = self.jpeg_scratch.bytes()
            + self.raster_scratch.bytes()
            + self.resampler.scratch_bytes()
            + own;
        if held > KEEP {
            self.jpeg_scratch = jpeg::Scratch::default();
            self.raster_scratch = raster::Scratch::default();
            self.resampler.give_back();
            if own > 0 {
                self.resampled = Vec::new();
            }
        }
    }

    fn fill_row(
        &mut self,
        bytes: &[u8],
        random: &mut impl Uniform,
        admit: Admit<'_>,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let (cut, pixels) = match Format::of(bytes)? {
            Format::Jpeg => self.resample_jpeg(bytes, random, admit, meter)?,
            format => {
                // These decoders are Rust and have panicked on hostile files
                // before. Nothing that is half-way done is looked at again: all
                // state that they share with the next sample is buffers.
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    self.resample_raster(format, bytes, random, admit, meter)
                }));
                caught.unwrap_or_else(|_| {
                    Err(SampleFault::new(
                        FaultKind::Corrupt,
                        format!("the {format} decoder panicked"),
                    ))
                })?
            }
        };
        let (width, height) = (cut.size.0 as usize, cut.size.1 as usize);
        let out = &mut out[..self.emitter.row_bytes(width, height)];
        let (rgb, stride) = match pixels {
            Pixels::Resampled => (&self.resampled[..], width),
            Pixels::Decoded(decoded) => {
                let source = source(&self.jpeg_scratch.rgb, &decoded, cut.want);
                (source.pixels, source.stride / PIXEL)
            }
        };
        self.emitter
            .emit_rows(rgb, stride, (width, height), cut.placement, out);
        meter.lap(Stage::Emit);
        Ok(())
    }

    /// Of a JPEG only the part that the filter sees is decoded.
    fn resample_jpeg(
        &mut self,
        bytes: &[u8],
        random: &mut impl Uniform,
        admit: Admit<'_>,
        meter: &mut Meter,
    ) -> std::result::Result<(Cut, Pixels), SampleFault> {
        let header = jpeg::read_header(bytes)?;
        let stored = Stored {
            size: (header.width, header.height),
            orientation: header.orientation,
        };
        admit(stored.upright())?;
        let cut = stored.cut(&self.program, random, true);
        meter.lap(Stage::Open);
        let decoded =
            self.jpeg
                .decode_region(bytes, &header, cut.scale, cut.want, &mut self.jpeg_scratch)?;
        meter.lap(Stage::Decode);
        if self.program.crop == Crop::Whole {
            return Ok((cut, Pixels::Decoded(decoded)));
        }
        self.resampled.resize(cut.resampled_bytes(), 0);
        self.resampler.resample(
            source(&self.jpeg_scratch.rgb, &decoded, cut.want),
            cut.within,
            &mut self.resampled,
            cut.target(),
        );
        meter.lap(Stage::Resample);
        Ok((cut, Pixels::Resampled))
    }

    /// Everything else comes row by row: decoding and resampling take turns,
    /// and both count as decoding.
    fn resample_raster(
        &mut self,
        format: Format,
        bytes: &[u8],
        random: &mut impl Uniform,
        admit: Admit<'_>,
        meter: &mut Meter,
    ) -> std::result::Result<(Cut, Pixels), SampleFault> {
        let mut picture = Raster::open(format, bytes, &self.limits)?;
        let stored = Stored {
            size: picture.size(),
            orientation: picture.orientation(),
        };
        admit(stored.upright())?;
        let cut = stored.cut(&self.program, random, false);
        meter.lap(Stage::Open);
        let seen = (cut.want.w as usize, cut.want.h as usize);
        let mut scratch =
            picture.scratch_bytes() + Resampler::window_bytes(seen, cut.within, cut.target());
        if self.program.extent == RowExtent::Own {
            scratch += cut.resampled_bytes() as u64;
        }
        self.limits.check_scratch(format.name(), scratch)?;
        picture.begin(&mut self.raster_scratch)?;
        self.resampled.resize(cut.resampled_bytes(), 0);
        let mut rows = WantedRows {
            picture,
            want: cut.want,
            background: self.program.background,
            scratch: &mut self.raster_scratch,
        };
        self.resampler.resample_rows(
            &mut rows,
            seen,
            cut.within,
            &mut self.resampled,
            cut.target(),
        )?;
        rows.picture.finish(rows.scratch)?;
        meter.lap(Stage::Decode);
        Ok((cut, Pixels::Resampled))
    }
}

/// Where the pixels of the output are, before they are emitted.
enum Pixels {
    /// In the buffer for it, without gaps.
    Resampled,
    /// Still where the JPEG decoder left them: they are wanted as they are.
    Decoded(Decoded),
}

/// The part of a picture that the filter sees, as a picture of its own.
struct WantedRows<'a, 'b> {
    picture: Raster<'a>,
    want: Region,
    background: Background,
    scratch: &'b mut raster::Scratch,
}

impl Rows for WantedRows<'_, '_> {
    type Fault = SampleFault;

    fn row(&mut self, y: usize) -> std::result::Result<&[u8], SampleFault> {
        let columns = self.want.x as usize..(self.want.x + self.want.w) as usize;
        let y = self.want.y as usize + y;
        self.picture.row(y, &columns, self.background, self.scratch)
    }
}

/// A picture as its file holds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    /// Width and height.
    pub(super) size: (u32, u32),
    pub(super) orientation: Orientation,
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

impl Cut {
    fn resampled_bytes(&self) -> usize {
        3 * self.size.0 as usize * self.size.1 as usize
    }

    fn target(&self) -> Target {
        Target {
            width: self.size.0 as usize,
            height: self.size.1 as usize,
            filter: FILTER,
            antialias: true,
        }
    }
}

impl Stored {
    /// Height and width, as the picture is to be looked at.
    fn upright(self) -> (u32, u32) {
        let (width, height) = self.orientation.apply_to_size(self.size);
        (height, width)
    }

    /// Draws the parameters of the sample and turns them into what is decoded.
    /// `scalable`: the decoder can give the picture at 1/2, 1/4 and 1/8.
    pub(super) fn cut(
        self,
        program: &SampleProgram,
        random: &mut impl Uniform,
        scalable: bool,
    ) -> Cut {
        let upright = self.orientation.apply_to_size(self.size);
        let geometry = sample_geometry(program, upright.0, upright.1, random);
        self.cut_of(program, &geometry, scalable)
    }

    /// From the box in the upright image to what is decoded of the stored one.
    fn cut_of(self, program: &SampleProgram, geometry: &SampleGeometry, scalable: bool) -> Cut {
        let turned = self.orientation.swaps_axes();
        let (height, width) = program.extent.of(self.upright());
        let size = if turned {
            (height, width)
        } else {
            (width, height)
        };
        let source = self.orientation.to_stored(geometry.source, self.size);
        let scale = if scalable {
            let d = scale_denominator(program.decode, &source, (size.1, size.0));
            Scale::of_denominator(d)
        } else {
            Scale::Full
        };
        let d = f64::from(scale.denominator());
        let scaled = BoxF {
            x0: source.x0 / d,
            y0: source.y0 / d,
            x1: source.x1 / d,
            y1: source.y1 / d,
        };
        let upright = Placement {
            transpose: turned,
            flip_x: self.orientation.flips_stored_x(),
            flip_y: self.orientation.flips_stored_y(),
        };
        let whole = scale.of_size(self.size);
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
    use crate::recipe::{CenterCrop, Recipe, Resize};

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
                    };
                    let cut = stored.cut(&program, &mut NoNumbers, true);
                    let (b, want) = (cut.within, cut.want);
                    assert!(b.x0 >= 0.0 && b.y0 >= 0.0, "{short} {orientation:?} {b:?}");
                    assert!(b.x1 <= f64::from(want.w) && b.y1 <= f64::from(want.h));
                    assert!(want.fits_in(cut.scale.of_size(stored.size)));
                }
            }
        }
    }

    struct NoNumbers;

    impl Uniform for NoNumbers {
        fn next_f64(&mut self) -> f64 {
            panic!("this recipe has nothing random");
        }
    }
}
