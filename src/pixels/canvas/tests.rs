//! Compares the canvas with `decode_plan::canvas_memory`, on random lists of steps.

use proptest::prelude::*;

use crate::decode_plan::canvas_memory::{CanvasBufferBytes, CanvasMemory};
use crate::pixels::canvas::buffers::ensure_len;
use crate::pixels::canvas::*;
use crate::pixels::resample::ImageResampler;
use crate::pixels::rounding::rounded;
use crate::recipe::ChannelScaling;
use crate::recipe::geometry::PixelRect;
use crate::recipe::{
    AffineStyle, AugmentStep, BoxFill, DataType, InterpolationMode, Padding, PaddingMode,
    PixelPlacement, Size, Step,
};
use crate::sys::cpu::CpuLevel;

/// A kind of step, and numbers for its parameters.
type Seed = (u8, [u8; 4]);

const FILTERS: [InterpolationMode; 3] = [
    InterpolationMode::Nearest,
    InterpolationMode::Bilinear,
    InterpolationMode::Bicubic,
];

/// A box in an image of this width and height.
fn part((w, h): (u32, u32), [a, b, c, d]: [u8; 4]) -> PixelRect {
    let (left, top) = (u32::from(a) % w, u32::from(b) % h);
    PixelRect {
        left,
        top,
        width: 1 + u32::from(c) % (w - left),
        height: 1 + u32::from(d) % (h - top),
    }
}

fn augment(size: (u32, u32), kind: u8, seeds: [u8; 4]) -> AugmentStep {
    let factor = f32::from(seeds[0]) / 64.0 - 0.5;
    let interpolation = FILTERS[usize::from(seeds[1]) % 3];
    let fill = [seeds[2], 9, 200];
    let part_of = |v: u8| f64::from(v) / 200.0 - 0.6;
    match kind % 25 {
        0 => AugmentStep::AutoContrast,
        1 => AugmentStep::Equalize,
        2 => AugmentStep::Invert,
        3 => AugmentStep::Posterize { bits: seeds[0] % 9 },
        4 => AugmentStep::Solarize {
            threshold: f32::from(seeds[0]),
        },
        5 => AugmentStep::SolarizeAdd {
            add: seeds[0],
            threshold: seeds[1],
        },
        6 => AugmentStep::Brightness(factor),
        7 => AugmentStep::Contrast(factor),
        8 => AugmentStep::Color(factor),
        9 | 10 => AugmentStep::Sharpness(factor),
        11 => AugmentStep::Hue(seeds[0]),
        12 | 13 => AugmentStep::Affine {
            matrix: [
                1.0,
                part_of(seeds[0]),
                part_of(seeds[2]) * 20.0,
                part_of(seeds[3]),
                1.0,
                -1.5,
            ],
            interpolation,
            fill,
            style: match interpolation {
                InterpolationMode::Bilinear if seeds[3].is_multiple_of(2) => AffineStyle::Opencv,
                _ => AffineStyle::Pillow,
            },
        },
        17 | 18 => AugmentStep::Perspective {
            coefficients: [
                1.0,
                part_of(seeds[0]),
                part_of(seeds[2]) * 20.0,
                part_of(seeds[3]),
                1.0,
                -1.5,
                part_of(seeds[0]) * 0.05,
                part_of(seeds[2]) * 0.05,
            ],
            interpolation,
            fill,
        },
        14 => AugmentStep::Rotate {
            degrees: f64::from(seeds[0]),
            interpolation,
            fill,
        },
        15 | 16 => AugmentStep::Rotate {
            degrees: f64::from(seeds[0] % 5) * 90.0,
            interpolation,
            fill,
        },
        19 => AugmentStep::BoxBlurs {
            radius: f32::from(seeds[0]) / 20.0,
        },
        20 => AugmentStep::Jpeg {
            quality: 1 + seeds[0] % 100,
        },
        21 => AugmentStep::TensorAffine {
            matrix: [1.0, part_of(seeds[0]), 2.0, part_of(seeds[1]), 0.9, -1.0],
            interpolation: FILTERS[usize::from(seeds[1]) % 2],
            fill: (seeds[2].is_multiple_of(2)).then_some(fill),
        },
        22 => AugmentStep::TensorAutoContrast,
        23 => AugmentStep::TensorSharpness(factor.max(0.0)),
        _ => AugmentStep::Fill {
            rect: part(size, seeds),
            color: fill,
        },
    }
}

/// Adds the steps of a seed for an image of this width and height. Returns the new size.
fn push(steps: &mut Vec<Step>, size: (u32, u32), (kind, seeds): Seed) -> (u32, u32) {
    let [a, b, c, d] = seeds.map(u32::from);
    match kind {
        0 => {
            let rect = part(size, seeds);
            steps.push(Step::Crop(rect));
            return (rect.width, rect.height);
        }
        1 => steps.push(Step::Mirror),
        2 => {
            let quarters = 1 + seeds[0] % 3;
            steps.push(Step::Turn(quarters));
            if quarters % 2 == 1 {
                return (size.1, size.0);
            }
        }
        3 => {
            let (width, height) = (1 + a % 40, 1 + b % 40);
            steps.push(Step::Resize {
                size: Size { height, width },
                interpolation: FILTERS[usize::from(seeds[2]) % 3],
                antialias: true,
            });
            return (width, height);
        }
        4 => {
            let padding = Padding {
                left: a % 4,
                top: b % 4,
                right: c % 4,
                bottom: d % 4,
            };
            steps.push(Step::Pad {
                padding,
                mode: PaddingMode::Edge,
                fill: [0.0; 3],
            });
            return (size.0 + a % 4 + c % 4, size.1 + b % 4 + d % 4);
        }
        5 => {
            let floats = [DataType::F16, DataType::Bf16, DataType::F32][usize::from(seeds[0]) % 3];
            steps.extend([Step::Cast(floats), Step::Cast(DataType::U8)]);
        }
        6 => steps.push(Step::Erase {
            rect: part(size, seeds),
            with: BoxFill::Levels(3),
            grey: false,
        }),
        7 | 8 => {
            // AugMix with one or two chains.
            steps.push(Step::Augment(AugmentStep::Keep));
            for chain in 0..2 {
                for (i, seed) in seeds.into_iter().enumerate().take(1 + chain) {
                    let kind = seed ^ i as u8;
                    steps.push(Step::Augment(augment(size, kind, seeds)));
                }
                steps.push(Step::Augment(AugmentStep::Add { weight: 0.5 }));
            }
            steps.push(Step::Augment(AugmentStep::Blend { by: 0.7 }));
        }
        30 => {
            // torchvision's AugMix.
            steps.push(Step::Augment(AugmentStep::Keep));
            for kind in [19, 21] {
                steps.push(Step::Augment(AugmentStep::AddSingle { weight: 0.4 }));
                steps.push(Step::Augment(augment(size, kind, seeds)));
            }
            steps.push(Step::Augment(AugmentStep::AddSingle { weight: 0.2 }));
            steps.push(Step::Augment(AugmentStep::Total));
        }
        33 => {
            // timm's AugMix, with the final blend and without.
            for blended in [false, true] {
                steps.push(Step::Augment(AugmentStep::Keep));
                if blended {
                    steps.push(Step::Augment(AugmentStep::AddSingle { weight: 1.0 }));
                }
                for kind in [seeds[0], 19] {
                    steps.push(Step::Augment(augment(size, kind, seeds)));
                    steps.push(Step::Augment(match blended {
                        true => AugmentStep::MixIn { by: 0.4 },
                        false => AugmentStep::AddSingle { weight: 0.5 },
                    }));
                }
                steps.push(Step::Augment(match blended {
                    true => AugmentStep::Total,
                    false => AugmentStep::BlendTotal { by: 0.7 },
                }));
            }
        }
        31 => steps.push(Step::Permute([2, 0, 1])),
        32 => steps.push(Step::Noise {
            key: 17,
            mean: 0.0,
            sigma: 9.0,
            clip: true,
            grey: false,
        }),
        9 | 10 => steps.push(Step::Elastic {
            key: 11,
            alpha: [f64::from(a), f64::from(b)],
            sigma: [f64::from(c % 32) / 8.0, f64::from(d % 32) / 8.0],
            interpolation: FILTERS[usize::from(seeds[1]) % 2],
            fill: [0.0; 3],
        }),
        kind => steps.push(Step::Augment(augment(size, kind, seeds))),
    }
    size
}

fn steps(size: (u32, u32), seeds: &[Seed]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = size;
    for seed in seeds {
        at = push(&mut steps, at, *seed);
    }
    steps
}

/// One of eight orientations of a stored image.
fn placement(i: u8) -> PixelPlacement {
    PixelPlacement {
        flip_x: i & 1 != 0,
        flip_y: i & 2 != 0,
        transpose: i & 4 != 0,
    }
}

fn follow(canvas: &mut PictureCanvas, resampler: &mut ImageResampler, steps: &[Step], fuses: bool) {
    let mut rest = steps;
    while !rest.is_empty() {
        let done = canvas.apply(rest.iter(), fuses, resampler);
        rest = &rest[done..];
    }
}

/// The upright image: its width and its elements.
fn upright(canvas: &PictureCanvas) -> (usize, Vec<u8>) {
    let (CanvasPixels::Bytes(view), placement) = canvas.pixels() else {
        panic!("not in bytes");
    };
    let (w, h) = placement.output_size(view.width, view.height);
    let at = |i: usize| {
        let rect = PixelRect {
            left: (i % w) as u32,
            top: (i / w) as u32,
            width: 1,
            height: 1,
        };
        let stored = placement.to_stored(rect, (view.width as u32, view.height as u32));
        view.row(stored.top as usize)[stored.left as usize]
    };
    (w, (0..w * h).flat_map(at).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Two images one after the other take at most the computed memory of both. The same images
    /// again take no more. Earlier work does not change the pixels.
    #[test]
    fn the_canvas_takes_no_more_than_was_said(
        pictures in prop::array::uniform2((
            (1u32..40, 1u32..40),
            0u8..8,
            prop::collection::vec((0u8..36, any::<[u8; 4]>()), 0..7),
        )),
        adopts in any::<bool>(),
        fuses in any::<bool>(),
    ) {
        let mut canvas = PictureCanvas::default();
        let mut resampler = ImageResampler::new(CpuLevel::Scalar);
        let mut decoded = Vec::new();
        let mut said = CanvasBufferBytes::default();
        let mut most_decoded = 0;
        let mut held = Vec::new();
        let mut made = Vec::new();
        for round in 0..2 {
            for ((w, h), turn, seeds) in &pictures {
                let (stored, turn) = ((*w, *h), placement(*turn));
                let (w, h) = (*w as usize, *h as usize);
                let size = turn.output_size(w, h);
                let steps = steps((size.0 as u32, size.1 as u32), seeds);
                let picture = |i: usize| (i * 89 % 251) as u8;
                let mut needs = if adopts {
                    ensure_len(&mut decoded, 3 * w * h);
                    for (i, v) in decoded.iter_mut().enumerate() {
                        *v = picture(i);
                    }
                    canvas.adopt_buffer(&mut decoded, (0, w), (w, h), turn);
                    most_decoded = most_decoded.max(3 * w * h);
                    CanvasMemory::begin_in_decoder(stored, turn)
                } else {
                    for (i, v) in canvas.begin(w, h, turn).iter_mut().enumerate() {
                        *v = picture(i);
                    }
                    CanvasMemory::begin(stored, turn)
                };
                needs.add_steps(steps.iter(), fuses);
                follow(&mut canvas, &mut resampler, &steps, fuses);
                let (width, pixels) = upright(&canvas);
                let (said_w, said_h) = needs.upright_size();
                prop_assert_eq!((width, pixels.len()), (said_w as usize, 3 * (said_w * said_h) as usize));
                if adopts {
                    canvas.return_buffer(&mut decoded);
                }
                said.raise_all(needs.buffers());
                let taken = canvas.held_bytes() + decoded.capacity();
                let said = said.of_pictures() as usize + most_decoded;
                prop_assert!(taken <= said, "{} of {}: {:?}", taken, said, steps);
                if round == 0 {
                    made.push(pixels);
                } else {
                    prop_assert!(made.contains(&pixels), "other pixels: {:?}", steps);
                }
            }
            held.push(canvas.held_bytes() + decoded.capacity());
        }
        prop_assert_eq!(held[0], held[1]);
        canvas.free_buffers();
        prop_assert_eq!(canvas.held_bytes(), 0);
    }
}

/// Steps after a cast see values rounded to the type.
#[test]
fn a_cast_rounds_floats_to_what_its_type_holds() {
    let scaling = ChannelScaling {
        unit: 255.0,
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    };
    let mut resampler = ImageResampler::new(CpuLevel::Scalar);
    let mut floats = |steps: &[Step]| {
        let mut canvas = PictureCanvas::default();
        let picture = canvas.begin(16, 16, PixelPlacement::default());
        for (v, level) in picture.iter_mut().zip((0..=255).cycle()) {
            *v = level;
        }
        follow(&mut canvas, &mut resampler, steps, true);
        let (CanvasPixels::Floats(view), _) = canvas.pixels() else {
            panic!("not in floats");
        };
        view.rows()
            .flatten()
            .flatten()
            .copied()
            .collect::<Vec<f32>>()
    };
    let ChannelScaling { unit, mean, std } = scaling;
    let normalize = Step::Normalize { unit, mean, std };
    let plain = floats(&[normalize]);
    for dtype in [DataType::F16, DataType::Bf16] {
        let levels: Vec<f32> = (0..=255u8).cycle().take(768).map(f32::from).collect();
        assert_eq!(floats(&[Step::Cast(dtype)]), levels, "{dtype} holds levels");
        let cast = floats(&[normalize, Step::Cast(dtype)]);
        let want: Vec<f32> = plain.iter().map(|v| rounded(*v, dtype)).collect();
        assert_eq!(cast, want, "{dtype}");
        assert_ne!(cast, plain, "{dtype}");
        let later = floats(&[
            normalize,
            Step::Cast(dtype),
            Step::Cast(DataType::F32),
            normalize,
        ]);
        let want: Vec<f32> = (cast.iter().zip([0, 1, 2].into_iter().cycle()))
            .map(|(v, c)| scaling.of(c, *v))
            .collect();
        assert_eq!(later, want, "{dtype}, and the steps after it");
    }
}
