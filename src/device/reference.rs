//! What a device makes of a crop, on the CPU: the meaning of `kernels/crops.cu`.
//!
//! In the consumer, where a check runs. The resize is two plain sums over the
//! row's own weights; colour steps and emission are those of workers, on floats.
//! Slow and readable.

use crate::packing::crop::{CROP_HEADER, CropHeader};
use crate::pixels::canvas::{Canvas, Held};
use crate::pixels::emit::Emitter;
use crate::pixels::resample::Resampler;
use crate::recipe::{CropRoom, Emission, Step};

/// Makes rows of a batch of what workers handed over.
#[derive(Debug)]
pub(crate) struct CpuStage {
    canvas: Canvas,
    resampler: Resampler,
    emitter: Emitter,
}

impl CpuStage {
    pub(crate) fn new(emission: Emission, resampler: Resampler) -> Self {
        Self {
            canvas: Canvas::default(),
            resampler,
            emitter: Emitter::new(emission),
        }
    }

    /// The elements of a row. `header` was read from `row`, and checked.
    pub(crate) fn row(&mut self, row: &[u8], header: &CropHeader, room: CropRoom) -> Vec<u8> {
        let (width, height) = (header.out_width as usize, header.out_height as usize);
        let values = resized(row, header, room);
        let to = self.canvas.begin_floats(width, height, header.placement());
        to.copy_from_slice(&values);
        let steps = header.step.iter().take(header.steps as usize);
        let steps: Vec<Step> = steps.filter_map(|s| s.step()).collect();
        let mut done = 0;
        while done < steps.len() {
            done += self
                .canvas
                .apply(steps[done..].iter(), true, &mut self.resampler);
        }
        let mut out = vec![0; self.emitter.row_bytes(width, height)];
        if let (Held::Floats(view), placement) = self.canvas.held() {
            self.emitter.emit_floats(view, placement, &mut out);
        }
        out
    }
}

/// Levels of the row as it is stored, held to 0 to 255 and not rounded.
fn resized(row: &[u8], header: &CropHeader, room: CropRoom) -> Vec<f32> {
    let (width, height) = (header.out_width as usize, header.out_height as usize);
    let tables = &row[CROP_HEADER..];
    let across = Table::new(tables, width, header.across_taps);
    let down = Table::new(&tables[across.bytes()..], height, header.down_taps);
    let line = 3 * header.width as usize;
    let pixels = &row[room.pixels_at()..][..line * header.height as usize];
    let mut between = Vec::with_capacity(3 * width * header.height as usize);
    for line in pixels.chunks_exact(line) {
        for o in 0..width {
            for c in 0..3 {
                between.push(across.sum(o, |x| f32::from(line[3 * x + c])));
            }
        }
    }
    let mut out = Vec::with_capacity(3 * width * height);
    for o in 0..height {
        for x in 0..3 * width {
            let sum = down.sum(o, |y| between[3 * width * y + x]);
            out.push(sum.clamp(0.0, 255.0));
        }
    }
    out
}

/// The weights of one axis, as a row has them.
struct Table<'a> {
    words: &'a [[u8; 4]],
    outputs: usize,
    taps: usize,
}

impl<'a> Table<'a> {
    fn new(bytes: &'a [u8], outputs: usize, taps: u32) -> Self {
        let taps = taps as usize;
        Self {
            words: &bytes.as_chunks().0[..outputs * (1 + taps)],
            outputs,
            taps,
        }
    }

    fn bytes(&self) -> usize {
        self.words.as_flattened().len()
    }

    /// The weighted sum of the pixels of an output pixel. Weights of 0 fill up,
    /// and may stand behind the last pixel.
    fn sum(&self, o: usize, pixel: impl Fn(usize) -> f32) -> f32 {
        let start = u32::from_ne_bytes(self.words[o]) as usize;
        let weights = (1..=self.taps).map(|tap| self.words[tap * self.outputs + o]);
        let weights = weights.map(f32::from_ne_bytes).enumerate();
        weights
            .filter(|(_, weight)| *weight != 0.0)
            .map(|(i, weight)| pixel(start + i) * weight)
            .sum()
    }
}

/// What a worker hands over of a file, and what it says.
pub(super) fn handed(
    program: &crate::recipe::SampleProgram,
    file: &[u8],
    position: u64,
) -> Result<(Vec<u8>, CropHeader, CropRoom), String> {
    use crate::picture::Limits;
    use crate::plan::PositionRandom;
    use crate::recipe::RowExtent;
    use crate::worker::meter::Meter;
    use crate::worker::sample::{RowRequest, SampleDecoder};
    let (RowExtent::Fixed { height, width }, Some(rule)) = (program.extent, program.crops) else {
        panic!("no crops");
    };
    let room = rule.room((height, width));
    let mut decoder = SampleDecoder::new(program, &Limits::default()).unwrap();
    let mut row = vec![0xa5; room.row_bytes()];
    let request = RowRequest {
        random: &PositionRandom::new(7, 1, position),
        size: None,
        admit: &|_| Ok(()),
    };
    decoder
        .fill(file, &request, &mut row, &mut Meter::default())
        .map_err(|f| f.reason)?;
    let header = CropHeader::read(&row, room, (height, width)).unwrap();
    Ok((row, header, room))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::picture::Limits;
    use crate::picture::jpeg::fixtures::{self, Sampling};
    use crate::pixels::rounding::{elements, numbers, step};
    use crate::plan::PositionRandom;
    use crate::recipe::{
        BoundedResizedCrop, Cast, CenterCrop, ColorJitter, ColorSpace, ConvertColor, Decode,
        DecodeMode, Dtype, Interpolation, Layout, MemoryLayout, Normalize, Op, RandomCrop,
        RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop, RandomRotate90,
        RandomVerticalFlip, Recipe, Reorder, Resize, RowExtent, SampleProgram, Size, Span,
    };
    use crate::sys::cpu::CpuLevel;
    use crate::worker::meter::Meter;
    use crate::worker::sample::{RowRequest, SampleDecoder};

    /// The row that a program makes, or hands over, of a file.
    fn row(program: &SampleProgram, file: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
        let mut decoder = SampleDecoder::new(program, &Limits::default()).unwrap();
        let mut out = vec![0xa5; bytes];
        let request = RowRequest {
            random: &PositionRandom::new(7, 1, 3),
            size: None,
            admit: &|_| Ok(()),
        };
        decoder
            .fill(file, &request, &mut out, &mut Meter::default())
            .map(|()| out)
            .map_err(|f| f.reason)
    }

    /// The elements of a row by way of a crop, and whether it was resized by the
    /// worker.
    fn by_crop(program: &SampleProgram, file: &[u8]) -> Result<(Vec<u8>, bool), String> {
        let (handed, header, room) = handed(program, file, 3)?;
        let resampler = Resampler::new(CpuLevel::detect().unwrap());
        let mut stage = CpuStage::new(program.emission, resampler);
        let resized = (header.width, header.height) == (header.out_width, header.out_height)
            && header.across_taps == 1;
        Ok((stage.row(&handed, &header, room), resized))
    }

    fn recipes() -> impl Strategy<Value = (Recipe, Recipe)> {
        let interpolation = select(vec![
            Interpolation::Nearest,
            Interpolation::Area,
            Interpolation::Bilinear,
        ]);
        let size = (1u32..70, 1u32..70).prop_map(|(height, width)| Size { height, width });
        let resize = (0..5, size, interpolation, any::<bool>()).prop_map(|(kind, size, i, a)| {
            let rrc = RandomResizedCrop {
                interpolation: i,
                antialias: a,
                ..RandomResizedCrop::new(size)
            };
            let exact = Resize {
                interpolation: i,
                antialias: a,
                ..Resize::exact(size.height, size.width)
            };
            let shorter = Resize {
                interpolation: i,
                antialias: a,
                ..Resize::shorter(70)
            };
            let ops: Vec<Op> = match kind {
                0 => vec![rrc.into()],
                1 => vec![exact.into()],
                2 => vec![shorter.into(), CenterCrop::new(size).into()],
                3 => vec![RandomCrop::new(size).into()],
                _ => vec![
                    BoundedResizedCrop {
                        interpolation: i,
                        antialias: a,
                        ..BoundedResizedCrop::new(size)
                    }
                    .into(),
                ],
            };
            ops
        });
        let turns = proptest::collection::vec(
            select(vec![
                Op::from(RandomHorizontalFlip::default()),
                RandomVerticalFlip::default().into(),
            ]),
            0..3,
        );
        let jitter = ColorJitter {
            brightness: Span(0.5, 1.6),
            saturation: Span(0.2, 1.9),
            hue: Span(-0.4, 0.4),
            ..ColorJitter::default()
        };
        let colors = proptest::collection::vec(
            select(vec![Op::from(jitter), RandomGrayscale { p: 0.5 }.into()]),
            0..3,
        );
        let last = select(vec![
            None,
            Some(Op::from(Normalize::imagenet())),
            Some(ConvertColor::new(ColorSpace::Lab).into()),
            Some(ConvertColor::new(ColorSpace::Hsv).into()),
            Some(ConvertColor::new(ColorSpace::Ycbcr).into()),
        ]);
        (resize, turns, colors, last, any::<bool>()).prop_map(|(resize, turns, colors, last, t)| {
            let mut ops: Vec<Op> = resize;
            ops.extend(turns);
            ops.extend(colors);
            ops.extend(last);
            ops.push(Cast { dtype: Dtype::F32 }.into());
            let layout = if t {
                MemoryLayout::Nhwc
            } else {
                MemoryLayout::Nchw
            };
            ops.push(Layout { layout }.into());
            let decode = Decode {
                mode: Some(DecodeMode::Full),
                ..Decode::default()
            };
            let with = |floats: bool| {
                let mut recipe = Recipe::new("crops");
                recipe.reorder = Some(Reorder::Exact);
                recipe.ops.push(decode.into());
                if floats {
                    recipe.ops.push(Cast { dtype: Dtype::F32 }.into());
                }
                recipe.ops.extend(ops.iter().cloned());
                recipe
            };
            (with(false), with(true))
        })
    }

    /// A crop that is finished later is the row that a worker makes of floats, and
    /// one that has no room is off by the rounding of its levels. Elements of two bytes
    /// are those floats, rounded: at most one step apart where these differ.
    #[test]
    fn a_crop_becomes_the_row_of_floats() {
        let mut runner = TestRunner::default();
        let (direct, resized) = (Cell::new(0), Cell::new(0));
        let pictures = (1u32..400, 1u32..300);
        let dtypes = select(vec![Dtype::F16, Dtype::Bf16]);
        let cases = (recipes(), pictures, dtypes);
        let rounded = Cell::new([0, 0]);
        runner
            .run(&cases, |((recipe, in_floats), (width, height), half)| {
                let file = fixtures::jpeg(width, height, Sampling::S444);
                let crops = |recipe: &Recipe| {
                    let program = SampleProgram::compile(recipe).unwrap();
                    program.with_crops().unwrap()
                };
                let program = crops(&recipe);
                let plain = SampleProgram::compile(&in_floats).unwrap();
                let RowExtent::Fixed { height, width } = plain.extent else {
                    panic!("own sizes");
                };
                let bytes = plain.row_bytes((height, width)) as usize;
                let made = by_crop(&program, &file);
                let wanted = row(&plain, &file, bytes);
                let ((made, was_resized), wanted) = match (made, wanted) {
                    (Ok(made), Ok(wanted)) => (made, wanted),
                    (made, wanted) => {
                        prop_assert_eq!(made.err(), wanted.err());
                        return Ok(());
                    }
                };
                // In units of what stands in the row: of levels, 1 / 255.
                let off = |made: &[u8], wanted: &[u8], dtype, allowed: fn(f64, Dtype) -> f64| {
                    numbers(made, dtype)
                        .into_iter()
                        .zip(numbers(wanted, dtype))
                        .map(|(a, b)| (a - b).abs() - allowed(a.abs().max(b.abs()), dtype))
                        .fold(0.0f64, f64::max)
                };
                let worst = off(&made, &wanted, Dtype::F32, |_, _| 0.0);
                // The same crop, and the same floats of a worker, in the other type.
                let (short, _) = by_crop(&crops(&recipe.clone().with_dtype(half)), &file).unwrap();
                let as_floats: Vec<f32> = (made.as_chunks().0.iter())
                    .map(|b| f32::from_ne_bytes(*b))
                    .collect();
                prop_assert_eq!(&short, &elements(as_floats, half), "{}", half);
                let plain = SampleProgram::compile(&in_floats.clone().with_dtype(half)).unwrap();
                let bytes = plain.row_bytes((height, width)) as usize;
                let shorter = row(&plain, &file, bytes).unwrap();
                let of_half = off(&short, &shorter, half, step);
                prop_assert!(
                    of_half <= worst,
                    "{} of {} off in {:?}",
                    of_half,
                    worst,
                    half
                );
                let mut count = rounded.get();
                count[usize::from(half == Dtype::Bf16)] += 1;
                rounded.set(count);
                if was_resized {
                    resized.set(resized.get() + 1);
                    // A level and a half, in units of the smallest deviation.
                    let colored = recipe.ops.iter().any(|op| {
                        matches!(
                            op,
                            Op::ColorJitter(_) | Op::RandomGrayscale(_) | Op::ConvertColor(_)
                        )
                    });
                    prop_assert!(colored || worst <= 0.03, "{} off in {:?}", worst, recipe);
                } else {
                    direct.set(direct.get() + 1);
                    let hue = recipe
                        .ops
                        .iter()
                        .any(|op| matches!(op, Op::ConvertColor(_)));
                    // Hue and a of nearly grey pixels swing with the last bit.
                    let limit = if hue { 0.5 } else { 2e-4 };
                    prop_assert!(worst <= limit, "{} off in {:?}", worst, recipe);
                }
                Ok(())
            })
            .unwrap();
        let (direct, resized) = (direct.get(), resized.get());
        assert!(direct > 100, "{direct} of them by a device");
        assert!(resized > 5, "{resized} of them without room");
        let rounded = rounded.get();
        assert!(
            rounded.iter().all(|n| *n > 50),
            "{rounded:?} of f16 and bf16"
        );
    }

    #[test]
    fn what_a_device_has_no_step_for_is_named() {
        let of = |op: Op| {
            let recipe = Recipe {
                ops: vec![
                    Decode::default().into(),
                    RandomResizedCrop::new(Size {
                        height: 9,
                        width: 9,
                    })
                    .into(),
                    op,
                ],
                ..Recipe::new("r")
            };
            let program = SampleProgram::compile(&recipe).unwrap();
            program.with_crops()
        };
        let contrast = ColorJitter {
            contrast: Span(0.5, 1.5),
            ..ColorJitter::default()
        };
        assert!(of(contrast.into()).unwrap_err().contains("contrast"));
        let blur = crate::recipe::GaussianBlur::new(3);
        assert!(of(blur.into()).unwrap_err().contains("gaussian_blur"));
        let lighting = crate::recipe::PcaLighting::default();
        assert!(of(lighting.into()).unwrap_err().contains("pca_lighting"));
        assert!(of(RandomRotate90::default().into()).is_ok());
        // Three of nine steps that a jitter may draw are too many.
        let jitter = Op::from(ColorJitter {
            brightness: Span(0.5, 1.5),
            ..ColorJitter::default()
        });
        let many = |count: usize| {
            let mut recipe = Recipe::new("r").then(Decode::default());
            recipe.ops.push(RandomResizedCrop::new(9).into());
            recipe
                .ops
                .extend(std::iter::repeat_n(jitter.clone(), count));
            let program = SampleProgram::compile(&recipe).unwrap();
            program.with_crops()
        };
        assert!(many(2).is_ok());
        assert!(many(3).unwrap_err().contains("9 steps"));
        assert!(of(Resize::exact(5, 5).into()).is_err());
    }
}
