//! The planner's obligations, on pixels: what it moves and fuses as exact gives
//! the bytes of the written order; what changes values changes them by no more
//! than a stated amount.

use std::cell::Cell;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::decode_plan::stored_picture::SampleMemory;
use crate::jobs::sample::*;
use crate::order::PositionRandom;
use crate::picture::ExifOrientation;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::picture::npy;
use crate::picture::read_header::DecodeCost;
use crate::recipe::{
    AffineStyle, AspectDistribution, BoundedResizedCrop, Cast, CenterCrop, CenterCropOrPad,
    ColorJitter, ColorOrder, ColorSpace, ConvertColor, CoverCrop, CropPlace, CropWithPadding,
    DataType, Decode, DrawnPicture, ElasticTransform, EraseFill, FixedBoxes, GaussianBlur,
    GaussianNoise, Grayscale, InterpolationMode, Jpeg, LargeScaleJitter, Layout, LengthRounding,
    Letterbox, MemoryLayout, Normalize, Op, OrientationMode, Pad, PadAnchor, PadTo, Padding,
    PaddingMode, PcaLighting, PerChannel, PillowGaussianBlur, RandomAdjustSharpness, RandomAffine,
    RandomApply, RandomAutocontrast, RandomChannelPermutation, RandomChoice, RandomCrop,
    RandomEqualize, RandomErasing, RandomGrayscale, RandomHorizontalFlip, RandomHsv, RandomInvert,
    RandomIouCrop, RandomOrder, RandomPerspective, RandomPhotometricDistort, RandomPosterize,
    RandomResize, RandomResizedCrop, RandomRotate90, RandomRotation, RandomShortestSize,
    RandomSizedBboxSafeCrop, RandomSolarize, RandomVerticalFlip, RandomZoomOut, Recipe,
    ReorderMode, Resize, ResizeKeepRatio, Rotate90, RotationStyle, RowExtent, ScaleJitter, Size,
    Span, TorchvisionAugMix, TrimBorder,
};

/// A row, and the bytes that the canvas and the resampler held after it.
type Made = (std::result::Result<Vec<u8>, String>, (usize, usize));

/// The row that a recipe makes of a file.
fn row(recipe: &Recipe, bytes: &[u8], position: u64) -> Made {
    rows(recipe, &[bytes], position).remove(0)
}

/// Boxes that operations read, whatever the steps before them.
fn some_boxes() -> FixedBoxes {
    FixedBoxes(vec![[3.0, 5.0, 11.5, 20.0], [14.0, 1.0, 19.0, 6.0]])
}

fn with_boxes(boxes: &FixedBoxes, stored: StoredPicture) -> DrawnPicture<'_> {
    DrawnPicture {
        boxes: Some(boxes),
        ..DrawnPicture::of_size(stored.upright_size())
    }
}

/// The rows that one decoder makes of files, one after the other.
fn rows(recipe: &Recipe, files: &[&[u8]], position: u64) -> Vec<Made> {
    let program = SampleProgram::compile(recipe).unwrap();
    let limits = PictureLimits::default();
    let mut decoder = SampleDecoder::new(&program, &limits).unwrap();
    let RowExtent::Fixed { height, width } = program.extent else {
        panic!("rows of own sizes");
    };
    let bytes = program.row_bytes((height, width)) as usize;
    let boxes = some_boxes();
    let made = (position..).zip(files).map(|(position, file)| {
        let mut out = vec![0xa5; bytes];
        let request = RowRequest {
            random: &PositionRandom::new(7, 1, position),
            size: None,
            part: None,
            boxes: Some(&boxes),
            check_size: &|_| Ok(()),
        };
        let filled = decoder.make_row(file, &request, &mut out, &mut StageMeter::default());
        let buffer_bytes = (
            decoder.canvas.held_bytes(),
            decoder.resampler.scratch_bytes(),
        );
        (filled.map(|()| out).map_err(|f| f.reason), buffer_bytes)
    });
    made.collect()
}

/// A JPEG with this EXIF orientation, 1 to 8.
fn jpeg(width: u32, height: u32, orientation: u8) -> Vec<u8> {
    fixtures::turned(fixtures::jpeg(width, height, Sampling::S420), orientation)
}

/// A small picture that cannot be flipped, turned or shifted unseen.
fn png(width: u32, height: u32) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let v = (x * 5 + y * 11) % 251;
        image::Rgb([
            v as u8,
            (x * y % 256) as u8,
            (255 - (x * 3 + y) % 200) as u8,
        ])
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

fn npy(width: u32, height: u32) -> Vec<u8> {
    let pixels = fixtures::pattern(width, height, 3);
    [&npy::header((height, width), 3)[..], &pixels].concat()
}

/// As photos are where nothing happens.
fn smooth(width: u32, height: u32) -> Vec<u8> {
    let wave = |v: u32, period: f32| 128.0 + 110.0 * (v as f32 / period).sin();
    let picture = RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([
            wave(x, 17.0) as u8,
            wave(y, 13.0) as u8,
            wave(x + y, 23.0) as u8,
        ])
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

fn jitter() -> impl Strategy<Value = Op> {
    let amounts = prop::array::uniform4(prop_oneof![Just(0.0), 0.05f64..0.5]);
    (amounts, prop::bool::ANY, select(vec![0.5, 1.0])).prop_map(|(a, random_order, p)| {
        let around = |a: f64| Span(1.0 - a, 1.0 + a);
        ColorJitter {
            brightness: around(a[0]),
            contrast: around(a[1]),
            saturation: around(a[2]),
            hue: Span(-a[3], a[3]),
            p,
            random_order,
            ..ColorJitter::default()
        }
        .into()
    })
}

/// Operations that keep levels what they are, whatever the size.
fn on_levels() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => jitter(),
        1 => Just(PcaLighting::default().into()),
        1 => Just(RandomGrayscale { p: 0.5 }.into()),
        1 => Just(RandomPhotometricDistort::default().into()),
        1 => Just(GaussianNoise::default().into()),
        1 => Just(Grayscale { num_output_channels: 3 }.into()),
        2 => anything(),
        3 => on_bytes(),
        2 => holding(),
    ]
}

fn filter() -> impl Strategy<Value = InterpolationMode> {
    select(vec![
        InterpolationMode::Nearest,
        InterpolationMode::Bilinear,
        InterpolationMode::Bicubic,
    ])
}

/// Operations on 8-bit levels, which keep the size.
fn on_bytes() -> impl Strategy<Value = Op> {
    let p = 0.5;
    prop_oneof![
        (0u32..=8).prop_map(move |bits| RandomPosterize { bits, p }.into()),
        (0.0f64..256.0).prop_map(move |threshold| RandomSolarize { threshold, p }.into()),
        Just(RandomEqualize { p }.into()),
        Just(RandomAutocontrast { p }.into()),
        Just(RandomInvert { p }.into()),
        Just(Jpeg::new(20, 90).into()),
        Just(TorchvisionAugMix::default().into()),
        Just(RandomHsv::default().into()),
        (0.1f64..9.0).prop_map(move |high| {
            PillowGaussianBlur {
                radius: Span(0.1, high),
                p,
            }
            .into()
        }),
        (0.0f64..4.0).prop_map(move |sharpness_factor| {
            RandomAdjustSharpness {
                sharpness_factor,
                p,
            }
            .into()
        }),
        (filter(), any::<bool>()).prop_map(|(interpolation, is_opencv)| {
            RandomAffine {
                translate: [0.2, 0.1],
                scale: Span(0.7, 1.4),
                interpolation,
                style: match interpolation {
                    InterpolationMode::Bilinear if is_opencv => AffineStyle::Opencv,
                    _ => AffineStyle::Pillow,
                },
                ..RandomAffine::new(Span(-40.0, 90.0))
            }
            .into()
        }),
        (filter(), 0.0f64..1.0).prop_map(|(interpolation, distortion_scale)| {
            RandomPerspective {
                distortion_scale,
                interpolation,
                ..RandomPerspective::default()
            }
            .into()
        }),
    ]
}

/// Operations that hold such that keep the size.
fn holding() -> impl Strategy<Value = Op> {
    let inside = prop_oneof![
        2 => on_bytes(),
        1 => jitter(),
        1 => Just(RandomHorizontalFlip::default().into()),
        1 => Just(GaussianBlur::new((5, 3)).into()),
        1 => Just(RandomErasing::default().into()),
        1 => Just(ElasticTransform::default().into()),
    ];
    let one = |(transforms, which): (Vec<Op>, u8)| -> Op {
        match which {
            0 => RandomApply::new(transforms).into(),
            1 => RandomChoice::new(transforms).into(),
            _ => RandomOrder::new(transforms).into(),
        }
    };
    let flat = (prop::collection::vec(inside, 1..4), 0u8..3).prop_map(one);
    (prop::collection::vec(flat, 1..3), 0u8..6).prop_map(move |(mut ops, which)| {
        match (which, ops.pop()) {
            (3.., Some(op)) if ops.is_empty() => op,
            (which, last) => {
                ops.extend(last);
                one((ops, which % 3))
            }
        }
    })
}

/// Operations on pixels of any values.
fn anything() -> impl Strategy<Value = Op> {
    let fill = PerChannel([10.0, 200.0, 90.0]);
    let modes = vec![
        PaddingMode::Constant,
        PaddingMode::Edge,
        PaddingMode::Reflect,
    ];
    prop_oneof![
        Just(RandomHorizontalFlip::default().into()),
        Just(RandomVerticalFlip::default().into()),
        (0.0f64..40.0, 0.1f64..3.0, prop::bool::ANY).prop_map(move |(alpha, sigma, near)| {
            ElasticTransform {
                alpha: [alpha, 9.0],
                sigma: [sigma, 0.4],
                interpolation: match near {
                    true => InterpolationMode::Nearest,
                    false => InterpolationMode::Bilinear,
                },
                fill,
            }
            .into()
        }),
        (1.0f64..2.0, select(vec![0.5, 1.0])).prop_map(move |(low, p)| {
            RandomZoomOut {
                fill,
                side_range: Span(low, 2.5),
                p,
            }
            .into()
        }),
        (-3i32..4).prop_map(|times| Rotate90 { times }.into()),
        Just(RandomRotate90::default().into()),
        Just(RandomChannelPermutation {}.into()),
        Just(GaussianBlur::new((5, 3)).into()),
        (0u32..5, 0u32..5, select(modes.clone())).prop_map(move |(a, b, padding_mode)| {
            let padding = Padding {
                left: a,
                top: b,
                right: b + 1,
                bottom: 0,
            };
            Pad {
                padding,
                fill,
                padding_mode,
            }
            .into()
        }),
        (
            select(vec![
                (RotationStyle::Tensor, InterpolationMode::Nearest),
                (RotationStyle::Tensor, InterpolationMode::Bilinear),
                (RotationStyle::Opencv, InterpolationMode::Nearest),
                (RotationStyle::Opencv, InterpolationMode::Bicubic),
            ]),
            prop::bool::ANY,
            select(vec![1.0, 0.5]),
        )
            .prop_map(move |((style, interpolation), expand, p)| {
                RandomRotation {
                    interpolation,
                    expand: expand && style == RotationStyle::Tensor,
                    fill,
                    p,
                    style,
                    ..RandomRotation::new(Span(-60.0, 75.0))
                }
                .into()
            }),
        (
            (1u32..40, 1u32..9),
            select(vec![
                PadAnchor::TopLeft,
                PadAnchor::Center,
                PadAnchor::BottomRight
            ]),
            // Levels that bytes hold, and such that they do not.
            select(vec![fill, PerChannel([127.5, 3.0, -9.0])]),
            select(modes.clone()),
        )
            .prop_map(|(of, anchor, fill, padding_mode)| {
                PadTo {
                    anchor,
                    fill,
                    padding_mode,
                    ..PadTo::multiple_of(of)
                }
                .into()
            }),
        (
            select(vec![Span(0.08, 1.0), Span(0.001, 0.1), Span(1.0, 1.0)]),
            select(vec![Span(0.75, 4.0 / 3.0), Span(3.0, 40.0)]),
            select(vec![0.5, 1.0]),
        )
            .prop_map(move |(scale, ratio, p)| {
                CropWithPadding {
                    p,
                    scale,
                    ratio,
                    value: fill,
                }
                .into()
            }),
        (
            select(vec![EraseFill::Value(fill), EraseFill::Random]),
            select(vec![AspectDistribution::Log, AspectDistribution::Uniform]),
        )
            .prop_map(|(value, aspect)| {
                RandomErasing {
                    value,
                    aspect,
                    ..RandomErasing::default()
                }
                .into()
            }),
    ]
}

fn sizing() -> impl Strategy<Value = Vec<Op>> {
    let interpolation = select(vec![
        InterpolationMode::Nearest,
        InterpolationMode::Bilinear,
        InterpolationMode::Bicubic,
        InterpolationMode::Lanczos,
        InterpolationMode::Area,
    ]);
    let rounding = select(vec![LengthRounding::Down, LengthRounding::Nearest]);
    let aspect = select(vec![AspectDistribution::Log, AspectDistribution::Uniform]);
    let ratio = select(vec![Span(0.75, 4.0 / 3.0), Span(0.1, 9.0), Span(3.0, 40.0)]);
    let scale = select(vec![Span(0.08, 1.0), Span(0.001, 0.3), Span(1.0, 1.0)]);
    (
        interpolation,
        prop::bool::ANY,
        rounding,
        (scale, ratio, aspect),
        0..15,
    )
        .prop_map(
            |(interpolation, antialias, rounding, (scale, ratio, aspect), which)| match which {
                0 => vec![
                    RandomResizedCrop {
                        interpolation,
                        antialias,
                        ..RandomResizedCrop::new((20, 24))
                    }
                    .into(),
                ],
                1 => vec![
                    Resize {
                        interpolation,
                        antialias,
                        ..Resize::exact(21, 17)
                    }
                    .into(),
                ],
                2 => vec![
                    Resize {
                        interpolation,
                        antialias,
                        rounding,
                        ..Resize::shorter(26)
                    }
                    .into(),
                    CenterCrop {
                        rounding,
                        ..CenterCrop::new((19, 22))
                    }
                    .into(),
                ],
                3 => vec![
                    BoundedResizedCrop {
                        scale,
                        ratio,
                        aspect,
                        interpolation,
                        antialias,
                        ..BoundedResizedCrop::new((20, 24))
                    }
                    .into(),
                ],
                4 => vec![
                    Resize {
                        interpolation,
                        antialias,
                        ..Resize::longer(24)
                    }
                    .into(),
                    PadTo {
                        offset: (scale.0 < 0.5).then_some([3, 0]),
                        ..PadTo::size((24, 30))
                    }
                    .into(),
                ],
                5 => vec![
                    CenterCrop {
                        rounding,
                        ..CenterCrop::at_ratio(scale.1)
                    }
                    .into(),
                    Resize {
                        interpolation,
                        antialias,
                        ..Resize::exact(18, 25)
                    }
                    .into(),
                ],
                6 => vec![
                    TrimBorder { pixels: 1 }.into(),
                    ResizeKeepRatio {
                        longest: f64::from(rounding == LengthRounding::Down),
                        interpolation,
                        // Two filters must allow the same decoding.
                        interpolation_or: (interpolation == InterpolationMode::Bilinear)
                            .then_some(InterpolationMode::Bicubic),
                        scale_p: 0.5,
                        aspect_p: 0.5,
                        ..ResizeKeepRatio::new((20, 24))
                    }
                    .into(),
                    CenterCropOrPad {
                        padding_mode: PaddingMode::Reflect,
                        ..CenterCropOrPad::new((18, 25))
                    }
                    .into(),
                ],
                7 => vec![
                    Letterbox {
                        interpolation,
                        antialias,
                        scale_up: rounding == LengthRounding::Down,
                        ..Letterbox::new((20, 24))
                    }
                    .into(),
                ],
                8 => vec![
                    LargeScaleJitter {
                        scale: Span(0.3, 2.0),
                        interpolation,
                        antialias,
                        ..LargeScaleJitter::new((20, 24))
                    }
                    .into(),
                ],
                13 => vec![
                    CoverCrop {
                        place: match rounding {
                            LengthRounding::Down => CropPlace::Center,
                            _ => CropPlace::Random,
                        },
                        interpolation: Some(interpolation),
                        ..CoverCrop::new((20, 24))
                    }
                    .into(),
                ],
                9 => vec![
                    RandomShortestSize {
                        max_size: Some(26),
                        interpolation,
                        antialias,
                        ..RandomShortestSize::new([14, 19, 31])
                    }
                    .into(),
                    PadTo::size((26, 26)).into(),
                ],
                10 => vec![
                    ScaleJitter {
                        scale: Span(0.4, 1.7),
                        interpolation,
                        antialias,
                        ..ScaleJitter::new((20, 24))
                    }
                    .into(),
                    PadTo::min_size((16, 15)).into(),
                    CenterCropOrPad::new((18, 25)).into(),
                ],
                11 => vec![
                    RandomIouCrop::default().into(),
                    RandomResize {
                        interpolation,
                        antialias,
                        ..RandomResize::new(9, 22)
                    }
                    .into(),
                    CenterCropOrPad::new((18, 25)).into(),
                ],
                12 => vec![
                    RandomSizedBboxSafeCrop {
                        erosion_rate: scale.0,
                        interpolation,
                        antialias,
                        ..RandomSizedBboxSafeCrop::new((20, 24))
                    }
                    .into(),
                ],
                _ => vec![
                    RandomCrop {
                        pad_if_needed: true,
                        padding: Padding::from(2),
                        ..RandomCrop::new((18, 25))
                    }
                    .into(),
                ],
            },
        )
}

pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    let color = select(vec![
        ColorOrder::Rgb,
        ColorOrder::Rgb,
        ColorOrder::Bgr,
        ColorOrder::Grey,
    ]);
    let spaces = select(vec![
        None,
        None,
        Some(ColorSpace::Lab),
        Some(ColorSpace::Hsv),
        Some(ColorSpace::Ycbcr),
    ]);
    let ends = (
        prop::bool::ANY,
        prop::option::of(anything()),
        select(&DataType::ALL[..]),
        select(vec![MemoryLayout::Nchw, MemoryLayout::Nhwc]),
        select(vec![
            None,
            Some(DataType::F32),
            Some(DataType::F16),
            Some(DataType::Bf16),
        ]),
    );
    (
        color,
        prop::collection::vec(on_levels(), 0..4),
        sizing(),
        prop::collection::vec(on_levels(), 0..3),
        (spaces, prop::bool::ANY),
        ends,
    )
        .prop_map(|(color, before, sizing, behind, (space, first), ends)| {
            let (normalize, last, dtype, layout, early) = ends;
            let mut ops: Vec<Op> = vec![
                Decode {
                    color,
                    ..Decode::default()
                }
                .into(),
            ];
            let convert = space.map(|to| Op::from(ConvertColor::new(to)));
            ops.extend(early.map(|dtype| Op::from(Cast { dtype })));
            ops.extend(before);
            if first {
                ops.extend(convert.clone());
            }
            ops.extend(sizing);
            ops.extend(behind);
            if !first {
                ops.extend(convert);
            }
            if normalize {
                ops.push(Normalize::new([0.4; 3], [0.25; 3]).into());
            }
            ops.extend(last);
            ops.push(Cast { dtype }.into());
            ops.push(Layout { layout }.into());
            Recipe {
                ops,
                ..Recipe::new("any")
            }
        })
}

/// A file, with the height and width that it is looked at in and its header.
#[derive(Debug, Clone)]
struct File {
    bytes: Vec<u8>,
    stored: StoredPicture,
}

fn file() -> impl Strategy<Value = File> {
    (0u8..=9, (9u32..70, 9u32..70)).prop_map(|(orientation, (w, h))| {
        let (bytes, orientation, decoding) = match orientation {
            0 => (png(w, h), 1, DecodeCost::Rows { scratch: 0 }),
            9 => (npy(w, h), 1, DecodeCost::Raw),
            n => {
                let decoding = DecodeCost::Jpeg {
                    coefficients: 0,
                    cmyk: false,
                };
                (jpeg(w, h, n), n, decoding)
            }
        };
        let stored = StoredPicture {
            size: (w, h),
            orientation: ExifOrientation::ALL[usize::from(orientation) - 1],
            cost: decoding,
            pixel_box: None,
        };
        File { bytes, stored }
    })
}

/// Whatever `exact` moves and fuses, the bytes are those of the written order, of
/// a second file too, which finds the buffers of the first; and no sample takes
/// more than was said.
#[test]
fn exact_is_exact() {
    let mut runner = TestRunner::new(ProptestConfig {
        max_global_rejects: 100_000,
        ..ProptestConfig::with_cases(600)
    });
    // Samples that failed in both orders compare nothing.
    let (all, good) = (Cell::new(0u32), Cell::new(0u32));
    let given = (recipes(), [file(), file()], any::<u64>());
    let tested = runner.run(&given, |(recipe, files, position)| {
        let position = position >> 1;
        let exact = recipe.clone().with_reorder(ReorderMode::Exact);
        let program = SampleProgram::compile(&exact);
        prop_assume!(program.as_ref().is_ok_and(|p| p.extent != RowExtent::Own));
        let program = program.unwrap();
        let bytes = files.each_ref().map(|f| &f.bytes[..]);
        let want = rows(&recipe.with_reorder(ReorderMode::Off), &bytes, position);
        let got = rows(&exact, &bytes, position);
        for ((want, _), (got, _)) in want.iter().zip(&got) {
            prop_assert!(got == want, "other bytes");
            all.set(all.get() + 1);
            good.set(good.get() + u32::from(got.is_ok()));
        }
        // The computed memory; the decoder's own pixels are not part of it.
        let boxes = some_boxes();
        let mut steps = Vec::new();
        let mut bound = SampleMemory::default();
        for ((file, (_, buffer_bytes)), position) in files.iter().zip(&got).zip(position..) {
            let stored = file.stored;
            let random = PositionRandom::new(7, 1, position);
            if program
                .steps(&with_boxes(&boxes, stored), &random, &mut steps)
                .is_ok()
            {
                let plan = stored.plan_decode(&program, &steps);
                bound.raise_all(&stored.sample_memory(&plan, &program, &steps));
            }
            let (canvas, resampler) = (buffer_bytes.0 as u64, buffer_bytes.1 as u64);
            let beside = bound.bytes() - bound.buffers.of_pictures();
            prop_assert!(canvas <= bound.bytes(), "{canvas} of {bound:?}");
            prop_assert!(resampler <= beside, "{resampler} of {bound:?}");
            prop_assert!(
                canvas + resampler <= bound.bytes(),
                "{buffer_bytes:?} of {bound:?}"
            );
        }
        Ok(())
    });
    if let Err(fault) = tested {
        panic!("{fault}");
    }
    let (all, good) = (all.get(), good.get());
    assert!(2 * good > all, "only {good} of {all} samples gave pixels");
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(4000) })]

    /// Whatever is drawn, no sample takes more than the memory plan, nor makes a
    /// buffer larger than what is said to be kept of all.
    #[test]
    fn no_draw_takes_more_than_the_forecast_says(
        recipe in recipes(),
        reorder in select(vec![None, Some(ReorderMode::Off), Some(ReorderMode::Exact), Some(ReorderMode::Fast)]),
        (w, h) in (1u32..300, 1u32..300),
        coefficients in select(vec![None, Some(None), Some(Some(0)), Some(Some(5000))]),
        orientation in select(ExifOrientation::ALL.to_vec()),
        row in proptest::option::of((1u32..90, 1u32..90)),
        part in proptest::option::of([0u32..300, 0..300, 1..300, 1..300]),
        first in 0u64..1 << 40,
    ) {
        let recipe = Recipe { reorder, ..recipe };
        let compiled = SampleProgram::compile(&recipe);
        prop_assume!(compiled.is_ok());
        let program = compiled.unwrap();
        let stored = StoredPicture {
            size: (w, h),
            orientation,
            cost: match coefficients {
                Some(Some(coefficients)) => DecodeCost::Jpeg { coefficients, cmyk: first % 2 == 0 },
                Some(None) => DecodeCost::Raw,
                None => DecodeCost::Rows { scratch: 77 },
            },
            pixel_box: None,
        };
        let (height, width) = stored.upright_size();
        let part = part.map(|[x, y, w, h]| PixelBox {
            left: x % width,
            top: y % height,
            right: x % width + w,
            bottom: y % height + h,
        });
        let stored = stored.with_box(part).unwrap();
        let row = row.filter(|_| program.allows_batch_sizes());
        check_forecast(&program, stored, row, first)?;
    }
}

/// The memory of twelve draws against the forecast.
fn check_forecast(
    program: &SampleProgram,
    stored: StoredPicture,
    row: Option<(u32, u32)>,
    first: u64,
) -> Result<(), TestCaseError> {
    let mut steps = Vec::new();
    let mut largest = Vec::new();
    let boxes = some_boxes();
    let most = stored.scratch_bound(program, row, &mut largest);
    let [mut kept, some] = stored.scratch_bounds(program, row, &mut largest);
    kept.raise_all(&some);
    for position in first..first + 12 {
        let random = PositionRandom::new(7, 1, position);
        if program
            .steps(&with_boxes(&boxes, stored).in_row(row), &random, &mut steps)
            .is_err()
        {
            continue;
        }
        let plan = stored.plan_decode(program, &steps);
        let drawn = stored.sample_memory(&plan, program, &steps);
        let mut both = kept;
        both.raise_all(&drawn);
        prop_assert!(
            both == kept && drawn.bytes() <= most.bytes(),
            "{drawn:?}\nof {most:?}\nkept {kept:?}\n{steps:?}"
        );
    }
    Ok(())
}

/// A letterbox pads some images, and others fit without a border.
#[test]
fn the_forecast_knows_letterboxes_without_a_border() {
    let recipe = Recipe::new("letterbox")
        .then(Letterbox::new(Size::from((20, 24))))
        .then(Pad::new(1))
        .with_dtype(DataType::U8);
    let program = SampleProgram::compile(&recipe).unwrap();
    let mut fits = 0;
    for (width, height) in (1..100).flat_map(|width| (1..100).map(move |height| (width, height))) {
        let stored = StoredPicture {
            size: (width, height),
            orientation: ExifOrientation::default(),
            cost: DecodeCost::Rows { scratch: 77 },
            pixel_box: None,
        };
        let checked = check_forecast(&program, stored, None, 0);
        checked.unwrap_or_else(|fault| panic!("{width} x {height}: {fault}"));
        fits += u32::from(width * 20 == height * 24);
    }
    assert!(fits > 10);
}

/// A mirrored picture is copied before a step that needs it upright.
#[test]
fn the_forecast_knows_pictures_that_are_made_upright() {
    let affine = RandomAffine {
        interpolation: InterpolationMode::Bilinear,
        style: AffineStyle::Opencv,
        ..RandomAffine::new(Span(-9.0, 9.0))
    };
    for mirrored in [false, true] {
        let mut recipe = Recipe::new("affine");
        if mirrored {
            recipe = recipe.then(RandomHorizontalFlip::default());
        }
        let recipe = recipe.then(affine).then(Pad::new(3));
        let recipe = recipe.then(CenterCrop::new(5)).with_dtype(DataType::U8);
        let program = SampleProgram::compile(&recipe).unwrap();
        for orientation in ExifOrientation::ALL {
            for size in [(1, 1), (3, 2), (9, 9)] {
                let stored = StoredPicture {
                    size,
                    orientation,
                    cost: DecodeCost::Rows { scratch: 77 },
                    pixel_box: None,
                };
                let checked = check_forecast(&program, stored, None, 0);
                checked.unwrap_or_else(|fault| panic!("{orientation:?} {size:?}: {fault}"));
            }
        }
    }
}

/// CRC-32 of a PNG's chunk.
fn crc(bytes: &[u8]) -> u32 {
    let bit = |c: u32| (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg());
    let byte = |c: u32, b: &u8| (0..8).fold(c ^ u32::from(*b), |c, _| bit(c));
    !bytes.iter().fold(!0, byte)
}

/// A PNG with this EXIF orientation.
fn turned_png(width: u32, height: u32, orientation: u8) -> Vec<u8> {
    let mut bytes = png(width, height);
    let chunk = [
        b"eXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0",
        &[orientation, 0, 0, 0, 0, 0, 0, 0][..],
    ]
    .concat();
    let length = (chunk.len() as u32 - 4).to_be_bytes();
    let sum = crc(&chunk).to_be_bytes();
    bytes.splice(33..33, [&length[..], &chunk, &sum].concat());
    bytes
}

/// `orientation: stored`: the rows of a file without EXIF, and another than those
/// of the turned picture; sizes, crops and all.
#[test]
fn stored_pictures_are_as_if_there_were_no_exif() {
    let crop = RandomResizedCrop::new((20, 24));
    let eval = Recipe::new("eval")
        .then(Resize::shorter(26))
        .then(CenterCrop::new((19, 22)));
    for recipe in [Recipe::new("crop").then(crop), eval] {
        for reorder in [None, Some(ReorderMode::Off)] {
            let exif = Recipe {
                reorder,
                ..recipe.clone()
            };
            let stored = exif.clone().with_orientation(OrientationMode::Stored);
            for make in [jpeg, turned_png] {
                let plain = row(&exif, &make(70, 41, 1), 3).0.unwrap();
                for orientation in 1..=8 {
                    let file = make(70, 41, orientation);
                    let got = row(&stored, &file, 3).0.unwrap();
                    assert!(got == plain, "{orientation}");
                    let turned = row(&exif, &file, 3).0.unwrap();
                    assert_eq!(turned == plain, orientation == 1, "{orientation}");
                }
            }
        }
    }
}

/// A crop just below eight times the row is decoded at a quarter, and takes more
/// than the whole picture, which is decoded at an eighth.
#[test]
fn the_largest_crop_is_not_the_one_that_takes_most() {
    let program = SampleProgram::compile(&Recipe::train224()).unwrap();
    let stored = StoredPicture::baseline_jpeg((1792, 1792));
    let mut steps = Vec::new();
    let bound = stored.scratch_bound(&program, None, &mut steps).bytes();
    assert!(bound >= 759_790, "{bound} bytes");
    // And not much more: pixels of a quarter of the picture along each side, and
    // what the allowed shapes add.
    assert!(bound < 2_200_000, "{bound} bytes");
}

/// What a picture as long as no photo leaves in tables goes back with the rest.
#[test]
fn tables_are_counted_and_given_back() {
    let recipe = Recipe::new("steep").then(Resize {
        interpolation: InterpolationMode::Lanczos,
        ..Resize::exact(4000, 1)
    });
    let program = SampleProgram::compile(&recipe).unwrap();
    let mut decoder = SampleDecoder::new(&program, &PictureLimits::default()).unwrap();
    let mut out = vec![0; 4 * 3 * 4000];
    let request = RowRequest {
        random: &PositionRandom::new(7, 1, 0),
        size: None,
        part: None,
        boxes: None,
        check_size: &|_| Ok(()),
    };
    let file = png(8000, 60);
    let resize = |decoder: &mut SampleDecoder, out: &mut [u8]| {
        let mut meter = StageMeter::default();
        decoder.fill_by_policy(&file, &mut meter, |decoder, opened, meter| {
            decoder.fill_as(opened, &file, (&request, None), out, meter)
        })
    };
    resize(&mut decoder, &mut out).unwrap();
    let stored = StoredPicture {
        size: (8000, 60),
        orientation: ExifOrientation::Normal,
        cost: DecodeCost::Rows { scratch: 0 },
        pixel_box: None,
    };
    let bound = stored
        .scratch_bound(&program, None, &mut Vec::new())
        .bytes();
    let buffer_bytes = decoder.resampler.scratch_bytes() as u64;
    assert!(
        buffer_bytes > 3_000 * 8 && buffer_bytes <= bound,
        "{buffer_bytes} of {bound} bytes"
    );
    decoder.resampler.free_buffers();
    assert_eq!(decoder.resampler.scratch_bytes(), 0);
}

/// So steep a resize that weights do not fit their numbers is refused, in the
/// decoding and behind it, and nothing is taken.
#[test]
fn a_resize_of_too_many_pixels_to_one_is_refused() {
    let file = png(20_000, 2);
    let to = || Resize::exact(1, 1);
    let behind = Recipe::new("behind").then(GaussianBlur::new(3)).then(to());
    for recipe in [Recipe::new("first").then(to()), behind] {
        let (got, buffer_bytes) = row(&recipe, &file, 0);
        let reason = got.unwrap_err();
        assert!(reason.contains("20000 pixels is resized to 1"), "{reason}");
        assert_eq!(buffer_bytes, (0, 0));
    }
    // Floats have room for them.
    let floats = Recipe::new("floats")
        .then(Cast {
            dtype: DataType::F32,
        })
        .then(to());
    row(&floats.with_reorder(ReorderMode::Off), &file, 0)
        .0
        .unwrap();
}

fn levels(recipe: &Recipe, file: &[u8]) -> Vec<f32> {
    let bytes = row(recipe, file, 3).0.unwrap();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_ne_bytes(*b))
        .collect()
}

/// Each move that `fast` makes and `exact` does not: by how much values change on
/// a smooth picture, and that they do change.
#[test]
fn moves_that_change_values_change_them_a_little() {
    let file = smooth(120, 90);
    let to = || Resize::exact(30, 40);
    let jitter = |contrast: f64| ColorJitter {
        brightness: Span(1.2, 1.2),
        contrast: Span(contrast, contrast),
        saturation: Span(0.8, 0.8),
        ..ColorJitter::default()
    };
    let base = || Recipe::new("moved");
    // Recipe, what moves, unit of the values, most and mean distance in units.
    let cases: Vec<(Recipe, &str, f32, f32, f32)> = vec![
        (
            base().then(ConvertColor::new(ColorSpace::Lab)).then(to()),
            "convert_color",
            1.0,
            4.0,
            0.6,
        ),
        (
            base().then(jitter(1.0)).then(to()),
            "color_jitter",
            1.0 / 255.0,
            6.0,
            0.8,
        ),
        (
            base()
                .then(jitter(1.3))
                .then(to())
                .then(CenterCrop::new(16)),
            "color_jitter",
            1.0 / 255.0,
            30.0,
            20.0,
        ),
        (
            base()
                .then(Grayscale {
                    num_output_channels: 3,
                })
                .then(to()),
            "grayscale",
            1.0 / 255.0,
            2.0,
            1.0,
        ),
        (
            base().then(Normalize::imagenet()).then(to()),
            "normalize",
            1.0 / 255.0 / 0.22,
            1.5,
            0.6,
        ),
        (
            base()
                .then(Cast {
                    dtype: DataType::F32,
                })
                .then(to()),
            "cast",
            1.0 / 255.0,
            1.5,
            0.6,
        ),
    ];
    let mut over = Vec::new();
    for (recipe, op, unit, most, mean) in cases {
        let recipe = recipe.then(Cast {
            dtype: DataType::F32,
        });
        let fast = recipe
            .clone()
            .with_reorder(ReorderMode::Fast)
            .with_decode(crate::recipe::DecodeMode::Full);
        let exact = recipe.with_reorder(ReorderMode::Exact);
        let program = SampleProgram::compile(&fast).unwrap();
        let moved = program.moves().0;
        assert!(
            moved.iter().any(|m| m.op == op && !m.exact),
            "{op}: {moved:?}"
        );
        let refused = SampleProgram::compile(&exact).unwrap();
        let refused = refused.moves().1.to_vec();
        assert!(
            refused.iter().any(|m| m.op == op && !m.why.is_empty()),
            "{op}: {refused:?}"
        );
        let (a, b) = (levels(&fast, &file), levels(&exact, &file));
        assert_eq!(a.len(), b.len());
        let distances: Vec<f32> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| (a - b).abs() / unit)
            .collect();
        let largest = distances.iter().copied().fold(0.0, f32::max);
        let average = distances.iter().sum::<f32>() / distances.len() as f32;
        assert!(largest > 0.0, "{op}: nothing changed");
        if largest > most || average > mean {
            over.push(format!("{op}: {largest} and {average}"));
        }
    }
    assert!(over.is_empty(), "{over:?}");
}

#[test]
fn what_would_be_another_operation_never_moves() {
    for (recipe, op) in [
        (
            Recipe::new("blur")
                .then(GaussianBlur::new(3))
                .then(Resize::exact(8, 8)),
            "gaussian_blur",
        ),
        (
            Recipe::new("erase")
                .then(RandomErasing::default())
                .then(Resize::exact(8, 8)),
            "random_erasing",
        ),
    ] {
        let program = SampleProgram::compile(&recipe.with_reorder(ReorderMode::Fast)).unwrap();
        let (moved, refused) = program.moves();
        assert!(moved.is_empty());
        assert!(
            refused.iter().any(|m| m.op == op && m.behind == "resize"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_picture_smaller_than_a_crop_is_a_failed_sample() {
    let recipe = Recipe::new("crop").then(RandomCrop::new(Size::from(64)));
    let (got, _) = row(&recipe, &png(40, 70), 0);
    let reason = got.unwrap_err();
    assert!(
        reason.contains("40 x 70") && reason.contains("64 x 64"),
        "{reason}"
    );
}
