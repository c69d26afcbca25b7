//! What workers hand over, on a real device against the CPU stage: every colour step,
//! at most 2e-3 of a level in `f32`. Without a device as `gpu_tests`.

use std::sync::Arc;

use super::gpu_tests::context;
use super::tests::ring::TestRing;
use super::{CropStage, CudaContext};
use crate::device::UploadMode;
use crate::device::crop_launch::{KernelEmission, KernelRow, MASKED};
use crate::device::stage_shapes::{CropShape, RowPlaces};
use crate::device::tests::reference::CpuStage;
use crate::device::tests::reference::color_distance::largest_distance;
use crate::device::tests::reference::worker_rows::handed;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::pixels::resample::ImageResampler;
use crate::pixels::rounding::elements;
use crate::recipe::{
    Cast, ColorJitter, ColorSpace, ConvertColor, DataType, Decode, Grayscale, Layout, MemoryLayout,
    Normalize, Op, OutputFormat, RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop,
    RandomRotate90, Recipe, ReorderMode, SampleProgram, Span, WhitePoint,
};
use crate::sys::cpu::CpuLevel;

const TOLERANCE: f64 = 2e-3;
const ROWS: usize = 24;

/// Every ninth row holds no sample.
fn is_masked(row: usize) -> bool {
    row % 9 == 8
}

/// Pictures of all sizes as workers hand them over, and the rows that the CPU stage
/// makes of them.
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<KernelRow>,
    wanted: Vec<Vec<f32>>,
    places: RowPlaces,
    emission: OutputFormat,
    size: (u32, u32),
}

impl Batch {
    fn new(colors: &[Op], layout: MemoryLayout, size: (u32, u32)) -> Self {
        let mut recipe = Recipe::new("crops").then(Decode::default());
        recipe.ops.push(RandomResizedCrop::new(size).into());
        recipe.ops.push(RandomHorizontalFlip::default().into());
        if size.0 == size.1 {
            recipe.ops.push(RandomRotate90::default().into());
        }
        recipe.ops.extend(colors.iter().cloned());
        recipe.ops.push(
            Cast {
                dtype: DataType::F32,
            }
            .into(),
        );
        recipe.ops.push(Layout { layout }.into());
        recipe.reorder = Some(ReorderMode::Exact);
        let program = SampleProgram::compile(&recipe).unwrap();
        let program = program.with_crops().unwrap();
        let room = program.crops.unwrap().row_bytes(size);
        let mut batch = Self {
            bytes: Vec::new(),
            rows: Vec::new(),
            wanted: Vec::new(),
            places: RowPlaces {
                capacity: room.row_bytes(),
                tables: room.pixels_at(),
                pixels_end: room.pixels_end(),
            },
            emission: program.output_format,
            size,
        };
        let resampler = || ImageResampler::new(CpuLevel::detect().unwrap());
        for sample in 0..ROWS {
            let begin = batch.bytes.len();
            let of = sample as u32;
            let file = match sample {
                0 => fixtures::jpeg(1, 1, Sampling::S444),
                _ => fixtures::jpeg(90 + 37 * of, 300 - (40 * of) % 200, Sampling::S420),
            };
            let (row, header, room) = handed(&program, &file, sample as u64, None).unwrap();
            let made = CpuStage::new(program.output_format, resampler()).row(&row, &header, room);
            batch.bytes.extend(row);
            if is_masked(sample) {
                batch.rows.push(KernelRow {
                    flags: MASKED,
                    ..KernelRow::default()
                });
                batch.wanted.push(vec![0.0; made.len() / 4]);
            } else {
                batch.rows.push(KernelRow::of(&header, begin, room));
                batch.wanted.push(floats(&made));
            }
        }
        batch
    }

    /// The same rows, in elements of another type.
    fn with_dtype(mut self, dtype: DataType) -> Self {
        self.emission.dtype = dtype;
        self
    }

    fn stage(&self, context: &Arc<CudaContext>) -> (TestRing, CropStage) {
        let scene = TestRing::new(2, ROWS as u32, self.bytes.len());
        let emission = KernelEmission::new(&self.emission, self.size);
        let shape = CropShape {
            rows: ROWS,
            source_bytes: ROWS * self.places.capacity,
            outputs: 2,
            output_bytes: ROWS * emission.elements() * self.emission.dtype.size(),
            dtype: self.emission.dtype,
            copies: true,
            jpegs: None,
        };
        let stage = CropStage::new(context, scene.ring(), shape).unwrap();
        (scene, stage)
    }

    fn made(&self, scene: &mut TestRing, stage: &mut CropStage, read: UploadMode) -> Vec<u8> {
        if !scene.has_free() {
            assert!(stage.wait_one().unwrap());
        }
        let emission = KernelEmission::new(&self.emission, self.size);
        let slot = scene.held_slot(&self.bytes);
        let rows = stage.submit(slot, &self.rows, self.places, &emission, read, &[]);
        rows.unwrap().to_host().unwrap()
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let elements = bytes.as_chunks().0.iter();
    elements.map(|b| f32::from_ne_bytes(*b)).collect()
}

fn around(of: f64) -> Span {
    Span(f64::max(0.0, 1.0 - of), 1.0 + of)
}

fn jitter(brightness: f64, contrast: f64, saturation: f64, hue: f64) -> ColorJitter {
    ColorJitter {
        brightness: around(brightness),
        contrast: around(contrast),
        saturation: around(saturation),
        hue: Span(-hue, hue),
        ..ColorJitter::default()
    }
}

/// A contrast of this factor alone.
fn contrast(factor: f64) -> Op {
    ColorJitter {
        contrast: Span(factor, factor),
        ..ColorJitter::default()
    }
    .into()
}

fn to(space: ColorSpace) -> Op {
    ConvertColor::new(space).into()
}

/// Operations, and the space that they lead to.
fn cases() -> Vec<(Vec<Op>, Option<ColorSpace>)> {
    let lab = |white_point| {
        let lab = ConvertColor {
            white_point,
            ..ConvertColor::new(ColorSpace::Lab)
        };
        (vec![Op::from(lab)], Some(ColorSpace::Lab))
    };
    let one = Grayscale {
        num_output_channels: 1,
    };
    let usual = jitter(0.4, 0.4, 0.4, 0.1);
    let some = ColorJitter { p: 0.5, ..usual };
    let plain = jitter(0.5, 0.0, 0.7, 0.2);
    let levels = |ops: Vec<Op>| (ops, None);
    vec![
        levels(vec![]),
        levels(vec![jitter(0.6, 0.0, 0.0, 0.0).into()]),
        levels(vec![jitter(0.0, 0.0, 0.9, 0.0).into()]),
        levels(vec![jitter(0.0, 0.0, 0.0, 0.5).into()]),
        levels(vec![
            jitter(0.4, 0.0, 0.4, 0.2).into(),
            jitter(0.3, 0.0, 0.3, 0.1).into(),
        ]),
        levels(vec![RandomGrayscale { p: 0.5 }.into()]),
        lab(WhitePoint::D65),
        lab(WhitePoint::D50),
        (vec![to(ColorSpace::Ycbcr)], Some(ColorSpace::Ycbcr)),
        (vec![to(ColorSpace::Hsv)], Some(ColorSpace::Hsv)),
        (
            vec![usual.into(), to(ColorSpace::Hsv)],
            Some(ColorSpace::Hsv),
        ),
        // Contrast alone, towards the mean, to it, and far from it.
        levels(vec![jitter(0.0, 0.9, 0.0, 0.0).into()]),
        levels(vec![contrast(0.0)]),
        levels(vec![contrast(3.0)]),
        // In any place, of half of the rows, first, last.
        levels(vec![usual.into(), Normalize::imagenet().into()]),
        levels(vec![some.into(), RandomGrayscale { p: 0.5 }.into()]),
        levels(vec![contrast(1.6), plain.into()]),
        levels(vec![plain.into(), contrast(0.3)]),
        levels(vec![usual.into(), one.into()]),
    ]
}

#[test]
fn what_workers_hand_over_becomes_what_the_cpu_stage_makes() {
    let Some(context) = context() else { return };
    // Over the edges of tiles, turned, one of a single pixel, one as thin as a thread.
    let sizes = [(45, 70), (67, 67), (1, 1), (1, 131)];
    for (n, (colors, space)) in cases().into_iter().enumerate() {
        for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
            for size in sizes {
                let batch = Batch::new(&colors, layout, size);
                let (mut scene, mut stage) = batch.stage(&context);
                for read in [UploadMode::InPlace, UploadMode::Copied] {
                    let made = floats(&batch.made(&mut scene, &mut stage, read));
                    let len = batch.wanted[0].len();
                    assert_eq!(made.len(), ROWS * len);
                    let mut worst = 0.0f64;
                    let rows = made.chunks_exact(len).zip(&batch.wanted);
                    for (row, (made, wanted)) in rows.enumerate() {
                        if is_masked(row) {
                            assert!(made.iter().all(|v| v.to_bits() == 0), "masked row {row}");
                            continue;
                        }
                        worst = worst.max(largest_distance(made, wanted, &batch.emission, space));
                    }
                    let what = format!("case {n} {} {size:?} {read:?}", layout.name());
                    println!("{what}: {worst} levels off");
                    assert!(worst <= TOLERANCE, "{what}: {worst}");
                }
            }
        }
    }
}

/// Elements of two bytes are the kernel's own floats, rounded once.
#[test]
fn shorter_elements_are_the_floats_rounded() {
    let Some(context) = context() else { return };
    let colors = [
        jitter(0.4, 0.4, 0.4, 0.1).into(),
        Normalize::imagenet().into(),
    ];
    for layout in [MemoryLayout::Nchw, MemoryLayout::Nhwc] {
        let batch = || Batch::new(&colors, layout, (45, 70));
        let of = |dtype| {
            let batch = batch().with_dtype(dtype);
            let (mut scene, mut stage) = batch.stage(&context);
            batch.made(&mut scene, &mut stage, UploadMode::Copied)
        };
        let made = floats(&of(DataType::F32));
        for half in [DataType::F16, DataType::Bf16] {
            assert!(of(half) == elements(made.clone(), half), "{half} {layout}");
        }
    }
}

/// Blocks add to the sum of a row in any order, and the bits must not tell.
#[test]
fn the_mean_of_a_row_is_the_same_in_every_launch() {
    let Some(context) = context() else { return };
    let colors = [jitter(0.4, 0.9, 0.4, 0.1).into()];
    let batch = Batch::new(&colors, MemoryLayout::Nchw, (224, 224));
    assert!(batch.rows.iter().any(KernelRow::takes_mean));
    let (mut scene, mut stage) = batch.stage(&context);
    let first = batch.made(&mut scene, &mut stage, UploadMode::InPlace);
    for turn in 0..20 {
        for read in [UploadMode::InPlace, UploadMode::Copied] {
            let again = batch.made(&mut scene, &mut stage, read);
            assert!(again == first, "turn {turn} {read:?}");
        }
    }
}
