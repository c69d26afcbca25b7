//! A crop that is finished later is the row of the same operations one by one, on
//! the whole picture; and what cannot be handed over is named.

mod contrast;

use std::collections::BTreeMap;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::apart::apart;
use super::handed::{extent, filled, handed, random};
use super::*;
use crate::packing::crop::CropStep;
use crate::picture::Orientation;
use crate::picture::jpeg::fixtures::{self, Sampling};
use crate::recipe::{
    BoundedResizedCrop, Cast, CenterCrop, ColorJitter, ColorOrder, ColorSpace, ConvertColor,
    Decode, DecodeMode, Dtype, Grayscale, Interpolation, JitterStyle, Layout, MemoryLayout,
    Normalize, Op, RandomCrop, RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop,
    RandomRotate90, RandomVerticalFlip, Recipe, Reorder, Resize, SampleProgram, Size, Span,
    Upright,
};
use crate::sys::cpu::CpuLevel;

/// What a level may be off before it is cast: as of the kernel.
const TOLERANCE: f64 = 2e-3;

fn resampler() -> Resampler {
    Resampler::new(CpuLevel::detect().unwrap())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let elements = bytes.as_chunks().0.iter();
    elements.map(|b| f32::from_ne_bytes(*b)).collect()
}

/// A row by way of a crop, and what was handed over for it.
fn by_crop(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
) -> Result<(Vec<f32>, CropHeader), String> {
    let (row, header, room) = handed(program, file, position, size)?;
    let made = CpuStage::new(program.emission, resampler()).row(&row, &header, room);
    Ok((floats(&made), header))
}

/// Whether the worker has resized what it handed over.
fn was_resized(header: &CropHeader) -> bool {
    (header.width, header.height) == (header.out_width, header.out_height)
        && header.across_taps == 1
        && header.down_taps == 1
}

/// Each step by itself on the whole upright picture, in floats: up to the colours in
/// whole levels where the worker has resized, as workers do.
fn step_by_step(
    program: &SampleProgram,
    file: &File,
    position: u64,
    size: Option<(u32, u32)>,
    whole: bool,
) -> Result<Vec<f32>, String> {
    let mut steps = Vec::new();
    let (height, width) = file.upright;
    program
        .steps((height, width), size, &random(position), &mut steps)
        .map_err(|f| f.reason)?;
    let steps: Vec<Step> = steps.iter().map(|s| s.step).collect();
    let colors = steps.iter().position(|s| {
        !matches!(
            s,
            Step::Crop(_) | Step::Resize { .. } | Step::Mirror | Step::UpsideDown | Step::Turn(_)
        )
    });
    let (shapes, colors) = steps.split_at(colors.unwrap_or(steps.len()));
    let mut canvas = Canvas::default();
    let bytes = 3 * (height * width) as usize;
    let pixels = filled(&stored_pictures(), &file.bytes, position, None, bytes)?;
    // A turned picture is resized as it is stored.
    let placement = file.orientation.placement();
    let (width, height) = match placement.transpose {
        true => (height, width),
        false => (width, height),
    };
    let to = canvas.begin(width as usize, height as usize, placement);
    to.copy_from_slice(&pixels);
    let mut resampler = resampler();
    let in_floats = [Step::Cast(Dtype::F32)];
    // Brightness by 1 holds levels to 0 to 255, which a sharp filter leaves.
    let held = [Step::Brightness(1.0)];
    let order: &[&[Step]] = match whole {
        true => &[shapes, &in_floats, colors],
        false => &[&in_floats, shapes, &held, colors],
    };
    for step in order.iter().copied().flatten() {
        canvas.apply([step].into_iter(), false, &mut resampler);
    }
    let (height, width) = extent(program, size);
    let mut out = vec![0; program.row_bytes((height, width)) as usize];
    let (Held::Floats(view), placement) = canvas.held() else {
        panic!("levels behind a cast");
    };
    Emitter::new(program.emission).emit_floats(view, placement, &mut out);
    Ok(floats(&out))
}

/// The levels of pictures as they are stored.
fn stored_pictures() -> SampleProgram {
    let decode = Decode {
        orientation: Upright::Stored,
        ..Decode::default()
    };
    let recipe = Recipe::new("stored")
        .then(decode)
        .then(Cast { dtype: Dtype::U8 })
        .then(Layout {
            layout: MemoryLayout::Nhwc,
        });
    SampleProgram::compile(&recipe).unwrap()
}

#[derive(Debug, Clone)]
struct File {
    what: &'static str,
    bytes: Vec<u8>,
    /// Height and width as it is looked at.
    upright: (u32, u32),
    orientation: Orientation,
}

impl File {
    /// `kind` 0 is a PNG, 1 to 8 a JPEG of that orientation.
    fn new(kind: u8, width: u32, height: u32) -> Self {
        let (what, bytes) = match kind {
            0 => ("png", png(width, height)),
            1 => ("jpeg", fixtures::jpeg(width, height, Sampling::S444)),
            _ => {
                let jpeg = fixtures::jpeg(width, height, Sampling::S420);
                ("turned jpeg", fixtures::turned(jpeg, kind))
            }
        };
        let orientation = Orientation::ALL[usize::from(kind.max(1)) - 1];
        let (width, height) = orientation.apply_to_size((width, height));
        Self {
            what,
            bytes,
            upright: (height, width),
            orientation,
        }
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let pixels = fixtures::pattern(width, height, 3);
    let picture = RgbImage::from_raw(width, height, pixels).unwrap();
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

/// The colour operations of a case: of contrast one at most, first, last, between
/// others and alone.
fn colors() -> impl Strategy<Value = Vec<Op>> {
    let others = (
        select(vec![Span(1.0, 1.0), Span(0.5, 1.6), Span(0.0, 0.0)]),
        select(vec![Span(1.0, 1.0), Span(0.2, 1.9)]),
        select(vec![Span(0.0, 0.0), Span(-0.4, 0.4)]),
    );
    let contrast = select(vec![Span(0.0, 0.0), Span(0.2, 1.8), Span(2.5, 2.5)]);
    (0..9, others, contrast, any::<bool>()).prop_map(
        |(kind, (brightness, saturation, hue), contrast, random_order)| {
            let other = ColorJitter {
                brightness,
                saturation,
                hue,
                random_order,
                ..ColorJitter::default()
            };
            let all = ColorJitter { contrast, ..other };
            let alone = ColorJitter {
                contrast,
                ..ColorJitter::default()
            };
            let grey = RandomGrayscale { p: 0.5 };
            match kind {
                0 => vec![],
                1 => vec![other.into(), other.into()],
                2 => vec![alone.into()],
                3 | 4 => vec![all.into()],
                5 => vec![alone.into(), other.into()],
                6 => vec![other.into(), alone.into()],
                7 => vec![grey.into(), all.into()],
                _ => vec![all.into(), grey.into()],
            }
        },
    )
}

fn interpolations() -> impl Strategy<Value = (Interpolation, bool)> {
    let all = vec![
        Interpolation::Nearest,
        Interpolation::Area,
        Interpolation::Bilinear,
        Interpolation::Bicubic,
        Interpolation::Lanczos,
    ];
    (select(all), any::<bool>())
}

fn side() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(1u32), 8 => 1u32..70]
}

fn resizes() -> impl Strategy<Value = Vec<Op>> {
    let size = (side(), side()).prop_map(|(height, width)| Size { height, width });
    (0..5, size, interpolations()).prop_map(|(kind, size, (interpolation, antialias))| {
        let resize = |resize: Resize| Resize {
            interpolation,
            antialias,
            ..resize
        };
        match kind {
            0 => vec![
                RandomResizedCrop {
                    interpolation,
                    antialias,
                    ..RandomResizedCrop::new(size)
                }
                .into(),
            ],
            1 => vec![resize(Resize::exact(size.height, size.width)).into()],
            2 => vec![
                resize(Resize::shorter(70)).into(),
                CenterCrop::new(size).into(),
            ],
            3 => vec![RandomCrop::new(size).into()],
            _ => vec![
                BoundedResizedCrop {
                    interpolation,
                    antialias,
                    ..BoundedResizedCrop::new(size)
                }
                .into(),
            ],
        }
    })
}

/// The space that the pixels are converted to, their order, and the operations that
/// do it.
fn ends() -> impl Strategy<Value = (Option<ColorSpace>, ColorOrder, Vec<Op>)> {
    let to = |space| {
        let op = Op::from(ConvertColor::new(space));
        (Some(space), ColorOrder::Rgb, vec![op])
    };
    let one = Grayscale {
        num_output_channels: 1,
    };
    select(vec![
        (None, ColorOrder::Rgb, vec![]),
        (None, ColorOrder::Rgb, vec![Normalize::imagenet().into()]),
        (None, ColorOrder::Bgr, vec![]),
        (None, ColorOrder::Bgr, vec![Normalize::imagenet().into()]),
        (None, ColorOrder::Grey, vec![one.into()]),
        to(ColorSpace::Lab),
        to(ColorSpace::Hsv),
        to(ColorSpace::Ycbcr),
    ])
}

#[derive(Debug, Clone)]
struct Case {
    recipe: Recipe,
    space: Option<ColorSpace>,
    order: ColorOrder,
}

fn cases() -> impl Strategy<Value = Case> {
    let turns = proptest::collection::vec(
        select(vec![
            Op::from(RandomHorizontalFlip::default()),
            RandomVerticalFlip::default().into(),
        ]),
        0..3,
    );
    let layout = select(vec![MemoryLayout::Nchw, MemoryLayout::Nhwc]);
    (resizes(), turns, colors(), ends(), layout).prop_map(
        |(resize, turns, colors, (space, order, last), layout)| {
            let decode = Decode {
                mode: Some(DecodeMode::Full),
                color: match order {
                    ColorOrder::Bgr => ColorOrder::Bgr,
                    _ => ColorOrder::Rgb,
                },
                ..Decode::default()
            };
            let mut recipe = Recipe::new("crops").then(decode);
            recipe.reorder = Some(Reorder::Exact);
            for ops in [resize, turns, colors, last] {
                recipe.ops.extend(ops);
            }
            recipe.ops.push(Cast { dtype: Dtype::F32 }.into());
            recipe.ops.push(Layout { layout }.into());
            Case {
                recipe,
                space,
                order,
            }
        },
    )
}

/// How often the cases had what they are for.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn add(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn at_least(&self, wanted: &[(&str, u32)]) {
        for (what, least) in wanted {
            let seen = self.0.get(*what).copied().unwrap_or(0);
            assert!(seen >= *least, "{seen} of {what}: {:?}", self.0);
        }
    }

    fn steps(&mut self, header: &CropHeader) {
        let steps = &header.step[..header.steps as usize];
        let Some(at) = steps.iter().position(CropStep::takes_mean) else {
            return;
        };
        self.add(match (at, steps.len() - 1 - at) {
            (0, 0) => "contrast alone",
            (0, _) => "contrast first",
            (_, 0) => "contrast last",
            _ => "contrast between",
        });
        match steps[at].amount {
            0.0 => self.add("factor 0"),
            1.0.. => self.add("factor above 1"),
            _ => {}
        }
    }

    /// Pixels on both sides of where hue begins, and nearly grey ones.
    fn hues(&mut self, row: &[f32], layout: MemoryLayout) {
        let pixels = row.len() / 3;
        for pixel in 0..pixels {
            let [h, s, _] = [0, 1, 2].map(|c| match layout {
                MemoryLayout::Nchw => row[c * pixels + pixel],
                MemoryLayout::Nhwc => row[3 * pixel + c],
            });
            if s > 0.05 && h < 4.0 {
                self.add("red from above");
            } else if s > 0.05 && h > 356.0 {
                self.add("red from below");
            } else if s < 0.02 {
                self.add("nearly grey");
            }
        }
    }
}

#[test]
fn a_crop_becomes_the_row_of_its_steps_one_by_one() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 512,
        ..ProptestConfig::default()
    });
    let files = (
        0u8..=8,
        prop_oneof![1 => Just((1, 1)), 15 => (1u32..300, 1u32..230)],
    )
        .prop_map(|(kind, (width, height))| File::new(kind, width, height));
    let sizes = proptest::option::of((side(), side()));
    let seen = std::cell::RefCell::new(Seen::default());
    let all = (cases(), files, sizes, 0u64..1000);
    runner
        .run(&all, |(case, file, size, position)| {
            let program = SampleProgram::compile(&case.recipe).unwrap();
            let program = program.with_crops().unwrap();
            let size = size.filter(|_| program.takes_sizes());
            let (made, header) = match by_crop(&program, &file.bytes, position, size) {
                Ok(made) => made,
                Err(why) => {
                    let other = step_by_step(&program, &file, position, size, false);
                    prop_assert_eq!(Some(why), other.err());
                    seen.borrow_mut().add("too small");
                    return Ok(());
                }
            };
            let whole = was_resized(&header);
            let wanted = step_by_step(&program, &file, position, size, whole).unwrap();
            let worst = apart(&made, &wanted, &program.emission, case.space);
            prop_assert!(worst <= TOLERANCE, "{} levels off, {:?}", worst, header);
            let mut seen = seen.borrow_mut();
            seen.add(if whole { "no room" } else { "by a device" });
            seen.add(file.what);
            seen.add(&format!("{:?}", case.order));
            seen.steps(&header);
            if let Some((height, width)) = size {
                seen.add("a size of the batch");
                prop_assert_eq!(
                    header
                        .placement()
                        .output_size(header.out_width as usize, header.out_height as usize),
                    (width as usize, height as usize)
                );
            }
            if case.space == Some(ColorSpace::Hsv) {
                seen.hues(&wanted, program.emission.layout);
            }
            for op in &case.recipe.ops {
                if let Op::RandomResizedCrop(RandomResizedCrop { interpolation, .. })
                | Op::Resize(Resize { interpolation, .. })
                | Op::BoundedResizedCrop(BoundedResizedCrop { interpolation, .. }) = op
                {
                    seen.add(&format!("{interpolation:?}"));
                }
            }
            Ok(())
        })
        .unwrap();
    seen.into_inner().at_least(&[
        ("by a device", 250),
        ("no room", 10),
        ("png", 20),
        ("jpeg", 20),
        ("turned jpeg", 150),
        ("Bgr", 50),
        ("Grey", 20),
        ("Nearest", 40),
        ("Area", 40),
        ("Bilinear", 40),
        ("Bicubic", 40),
        ("Lanczos", 40),
        ("a size of the batch", 40),
        ("contrast alone", 30),
        ("contrast first", 20),
        ("contrast last", 20),
        ("contrast between", 5),
        ("factor 0", 20),
        ("factor above 1", 20),
        ("red from above", 10),
        ("red from below", 10),
        ("nearly grey", 10),
    ]);
}

/// A picture that was decoded smaller, against the row that a worker makes of it: in
/// whole levels, twice rounded.
#[test]
fn a_crop_of_a_scaled_picture_is_the_row_of_a_worker() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 64,
        ..ProptestConfig::default()
    });
    let interpolation = select(vec![
        Interpolation::Area,
        Interpolation::Bilinear,
        Interpolation::Bicubic,
        Interpolation::Lanczos,
    ]);
    let cases = (
        0..3,
        interpolation,
        (8u32..50, 8u32..50),
        (1u8..=8, 150u32..420, 150u32..420),
        0u64..1000,
    );
    let scaled = std::cell::Cell::new(0);
    runner
        .run(
            &cases,
            |(kind, interpolation, size, (turn, w, h), position)| {
                let resize = |resize: Resize| Resize {
                    interpolation,
                    antialias: true,
                    ..resize
                };
                let ops: Vec<Op> = match kind {
                    0 => vec![
                        RandomResizedCrop {
                            interpolation,
                            antialias: true,
                            ..RandomResizedCrop::new(size)
                        }
                        .into(),
                    ],
                    1 => vec![resize(Resize::exact(size.0, size.1)).into()],
                    _ => vec![
                        resize(Resize::shorter(50)).into(),
                        CenterCrop::new(size).into(),
                    ],
                };
                let of = |mode| {
                    let mut recipe = Recipe::new("scaled").then(Decode {
                        mode: Some(mode),
                        ..Decode::default()
                    });
                    recipe.ops.extend(ops.iter().cloned());
                    recipe.ops.push(RandomHorizontalFlip::default().into());
                    recipe.ops.push(Cast { dtype: Dtype::F32 }.into());
                    SampleProgram::compile(&recipe).unwrap()
                };
                let file = File::new(turn, w, h).bytes;
                let plain = of(DecodeMode::Scaled);
                let program = plain.with_crops().unwrap();
                let (made, header) = by_crop(&program, &file, position, None).unwrap();
                let bytes = plain.row_bytes(extent(&plain, None)) as usize;
                let wanted = floats(&filled(&plain, &file, position, None, bytes).unwrap());
                let worst = apart(&made, &wanted, &plain.emission, None);
                prop_assert!(worst <= 1.5, "{} levels off, {:?}", worst, header);
                let full = of(DecodeMode::Full).with_crops().unwrap();
                let full = handed(&full, &file, position, None).unwrap().1;
                let full_has_room = !was_resized(&full);
                if !was_resized(&header) && (!full_has_room || 3 * header.width < 2 * full.width) {
                    scaled.set(scaled.get() + 1);
                }
                Ok(())
            },
        )
        .unwrap();
    let scaled = scaled.get();
    assert!(scaled > 20, "{scaled} pictures were decoded smaller");
}

fn with_crops(ops: &[Op]) -> Result<SampleProgram, String> {
    let mut recipe = Recipe::new("r").then(Decode::default());
    recipe.ops.push(RandomResizedCrop::new(9).into());
    recipe.ops.extend(ops.iter().cloned());
    SampleProgram::compile(&recipe).unwrap().with_crops()
}

#[test]
fn what_a_device_has_no_step_for_is_named() {
    let refused = |op: Op| with_crops(&[op]).unwrap_err();
    let blur = crate::recipe::GaussianBlur::new(3);
    assert!(refused(blur.into()).contains("gaussian_blur"));
    let lighting = crate::recipe::PcaLighting::default();
    assert!(refused(lighting.into()).contains("pca_lighting"));
    let pillow = ColorJitter {
        brightness: Span(0.5, 1.5),
        style: JitterStyle::Pillow,
        ..ColorJitter::default()
    };
    assert!(refused(pillow.into()).contains("color_jitter is done by workers"));
    assert!(refused(Resize::exact(5, 5).into()).contains("more than once"));
    assert!(with_crops(&[RandomRotate90::default().into()]).is_ok());
    // Three of nine steps that a jitter may draw are too many.
    let jitter = Op::from(ColorJitter {
        brightness: Span(0.5, 1.5),
        ..ColorJitter::default()
    });
    assert!(with_crops(&vec![jitter.clone(); 2]).is_ok());
    let many = with_crops(&vec![jitter; 3]).unwrap_err();
    assert!(many.contains("9 steps"), "{many}");
}

#[test]
fn one_contrast_is_handed_over_and_two_are_not() {
    let reads_twice = |ops: &[Op]| with_crops(ops).unwrap().crops.unwrap().reads_twice();
    let plain = ColorJitter {
        brightness: Span(0.6, 1.4),
        saturation: Span(0.6, 1.4),
        hue: Span(-0.1, 0.1),
        ..ColorJitter::default()
    };
    let usual = Op::from(ColorJitter {
        contrast: Span(0.6, 1.4),
        ..plain
    });
    let grey = Op::from(RandomGrayscale { p: 0.1 });
    assert!(!reads_twice(&[]));
    assert!(!reads_twice(&[plain.into()]));
    assert!(reads_twice(&[usual.clone()]));
    // SimCLR's, and what colour spaces follow.
    assert!(reads_twice(&[
        usual.clone(),
        grey,
        Normalize::imagenet().into()
    ]));
    let lab = ConvertColor::new(ColorSpace::Lab);
    assert!(reads_twice(&[usual.clone(), lab.into()]));
    let two = with_crops(&[usual.clone(), usual.clone()]).unwrap_err();
    assert!(two.contains("2 contrast steps"), "{two}");
    // The mean of the crop is not that of the picture.
    let cropped = with_crops(&[usual, CenterCrop::new(5).into()]).unwrap_err();
    assert!(cropped.contains("behind color_jitter"), "{cropped}");
}
