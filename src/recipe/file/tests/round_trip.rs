use std::collections::BTreeSet;
use std::path::Path;

use proptest::collection::vec;
use proptest::num;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::RecipeFormat;
use super::super::text::parse;
use crate::recipe::{
    AffineStyle, AlphaMode, AspectDistribution, AugMix, AutoAugment, AutoPolicy, BackgroundColor,
    BoundedResizedCrop, BucketRule, BucketStyle, Cast, CenterCrop, CenterCropOrPad, ChainDepth,
    ColorJitter, ColorOrder, ColorSpace, ConvertColor, CopyPaste, CornerCrop, CoverCrop, CropPlace,
    CropWithPadding, CutSamples, Cutout, DataType, Decode, DecodeMode, ElasticTransform, EraseFill,
    GaussianBlur, GaussianNoise, Grayscale, HideAndSeek, ImageCorner, InterpolationMode,
    JitterStyle, Jpeg, LargeScaleJitter, Layout, LengthRounding, Letterbox, MemoryLayout,
    MixChoice, MixOp, MixSamples, Mixing, Mosaic, Normalize, Op, OrientationMode, Pad, PadAnchor,
    PadTo, Padding, PaddingMode, PatchStyle, Patches, PcaLighting, PerChannel, PillowGaussianBlur,
    RandAugment, RandTable, RandomAdjustSharpness, RandomAffine, RandomApply, RandomAutocontrast,
    RandomBlur, RandomChannelPermutation, RandomChoice, RandomCrop, RandomEqualize, RandomErasing,
    RandomGrayscale, RandomHorizontalFlip, RandomHsv, RandomInterpolation, RandomInvert,
    RandomIouCrop, RandomOrder, RandomPerspective, RandomPhotometricDistort, RandomPosterize,
    RandomResize, RandomResizedCrop, RandomRotate90, RandomRotation, RandomShortestSize,
    RandomSizedBboxSafeCrop, RandomSolarize, RandomVerticalFlip, RandomZoomOut, Recipe,
    ReorderMode, Resize, ResizeKeepRatio, ResizeTo, Rotate90, RotationStyle, ScaleJitter, Shear,
    Size, Span, Standardize, TileStyle, Tiles, TimmAugment, TorchvisionAugMix, TrimBorder,
    TrivialAugment, TruncationPolicy, WhitePoint, ZeroChannel,
};

const FORMATS: [RecipeFormat; 3] = [RecipeFormat::Yaml, RecipeFormat::Toml, RecipeFormat::Json];

fn number() -> impl Strategy<Value = f64> {
    let any = num::f64::POSITIVE
        | num::f64::NEGATIVE
        | num::f64::NORMAL
        | num::f64::SUBNORMAL
        | num::f64::ZERO;
    prop_oneof![any, 0.0..1.0, (-999i32..999).prop_map(f64::from)]
}

fn single_precision() -> impl Strategy<Value = f32> {
    let any = num::f32::POSITIVE
        | num::f32::NEGATIVE
        | num::f32::NORMAL
        | num::f32::SUBNORMAL
        | num::f32::ZERO;
    prop_oneof![any, 0.0f32..1.0, (0u8..=255).prop_map(f32::from)]
}

fn per_channel() -> impl Strategy<Value = PerChannel> {
    prop_oneof![
        single_precision().prop_map(PerChannel::from),
        [single_precision(), single_precision(), single_precision()].prop_map(PerChannel::from),
    ]
}

fn pixels() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), 0u32..1000, Just(u32::MAX)]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        pixels().prop_map(Size::from),
        (pixels(), pixels()).prop_map(Size::from),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    (number(), number()).prop_map(|(a, b)| Span(a, b))
}

fn padding() -> impl Strategy<Value = Padding> {
    [pixels(), pixels(), pixels(), pixels()].prop_map(|[left, top, right, bottom]| Padding {
        left,
        top,
        right,
        bottom,
    })
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|i| all[i])
}

fn interpolation() -> impl Strategy<Value = InterpolationMode> {
    use InterpolationMode::{Area, Bicubic, Bilinear, Lanczos, Nearest};
    one_of(&[Nearest, Bilinear, Bicubic, Lanczos, Area])
}

fn padding_mode() -> impl Strategy<Value = PaddingMode> {
    one_of(&[
        PaddingMode::Constant,
        PaddingMode::Edge,
        PaddingMode::Reflect,
    ])
}

fn decode() -> impl Strategy<Value = Op> {
    let color = one_of(&[ColorOrder::Rgb, ColorOrder::Bgr, ColorOrder::Grey]);
    let mode = option::of(one_of(&[DecodeMode::Full, DecodeMode::Scaled]));
    let background = any::<[u8; 3]>().prop_map(BackgroundColor);
    let orientation = one_of(&[OrientationMode::Exif, OrientationMode::Stored]);
    let alpha = one_of(&[AlphaMode::Composite, AlphaMode::Drop]);
    let truncated = one_of(&[TruncationPolicy::Refuse, TruncationPolicy::Keep]);
    (color, mode, background, orientation, alpha, truncated).prop_map(
        |(color, mode, background, orientation, alpha, truncated)| {
            Op::from(Decode {
                color,
                mode,
                background,
                orientation,
                alpha,
                truncated,
            })
        },
    )
}

fn resize() -> impl Strategy<Value = Op> {
    let to = prop_oneof![
        pixels().prop_map(ResizeTo::Shorter),
        size().prop_map(ResizeTo::Exact)
    ];
    (
        option::of(to),
        option::of(pixels()),
        interpolation(),
        any::<bool>(),
        rounding(),
    )
        .prop_map(|(size, max_size, interpolation, antialias, rounding)| {
            Op::from(Resize {
                size,
                max_size,
                interpolation,
                antialias,
                rounding,
            })
        })
}

fn rounding() -> impl Strategy<Value = LengthRounding> {
    one_of(&[
        LengthRounding::Down,
        LengthRounding::Nearest,
        LengthRounding::Up,
    ])
}

fn aspect() -> impl Strategy<Value = AspectDistribution> {
    one_of(&[AspectDistribution::Log, AspectDistribution::Uniform])
}

fn random_resized_crop() -> impl Strategy<Value = Op> {
    (size(), span(), span(), interpolation(), any::<bool>()).prop_map(
        |(size, scale, ratio, interpolation, antialias)| {
            Op::from(RandomResizedCrop {
                size,
                scale,
                ratio,
                interpolation,
                interpolation_or: (interpolation == InterpolationMode::Bilinear)
                    .then_some(InterpolationMode::Bicubic),
                antialias,
            })
        },
    )
}

fn bounded_resized_crop() -> impl Strategy<Value = Op> {
    let how = (interpolation(), any::<bool>());
    (size(), span(), span(), aspect(), how).prop_map(
        |(size, scale, ratio, aspect, (interpolation, antialias))| {
            Op::from(BoundedResizedCrop {
                size,
                scale,
                ratio,
                aspect,
                interpolation,
                interpolation_or: (interpolation == InterpolationMode::Bilinear)
                    .then_some(InterpolationMode::Bicubic),
                antialias,
            })
        },
    )
}

fn random_crop() -> impl Strategy<Value = Op> {
    (
        size(),
        padding(),
        any::<bool>(),
        per_channel(),
        padding_mode(),
    )
        .prop_map(|(size, padding, pad_if_needed, fill, padding_mode)| {
            Op::from(RandomCrop {
                size,
                padding,
                pad_if_needed,
                fill,
                padding_mode,
            })
        })
}

fn center_crop() -> impl Strategy<Value = Op> {
    let given = (option::of(size()), option::of(number()));
    (given, rounding(), any::<bool>()).prop_map(|((size, ratio), rounding, pad_if_needed)| {
        Op::from(CenterCrop {
            size,
            ratio,
            rounding,
            pad_if_needed,
        })
    })
}

fn center_crop_or_pad() -> impl Strategy<Value = Op> {
    (size(), per_channel(), padding_mode()).prop_map(|(size, fill, padding_mode)| {
        Op::from(CenterCropOrPad {
            size,
            fill,
            padding_mode,
        })
    })
}

fn resize_keep_ratio() -> impl Strategy<Value = Op> {
    let numbers = (number(), number(), number());
    (size(), span(), span(), interpolation(), numbers).prop_map(
        |(size, scale, ratio, interpolation, (longest, scale_p, aspect_p))| {
            Op::from(ResizeKeepRatio {
                size,
                longest,
                interpolation,
                interpolation_or: (interpolation == InterpolationMode::Bilinear)
                    .then_some(InterpolationMode::Bicubic),
                scale_p,
                scale,
                aspect_p,
                ratio,
            })
        },
    )
}

fn random_rotation() -> impl Strategy<Value = Op> {
    let style = one_of(&[RotationStyle::Tensor, RotationStyle::Opencv]);
    let p = prop_oneof![Just(1.0), number()];
    (
        (span(), interpolation()),
        (any::<bool>(), per_channel()),
        (p, style),
    )
        .prop_map(|((degrees, interpolation), (expand, fill), (p, style))| {
            Op::from(RandomRotation {
                degrees,
                interpolation,
                expand,
                fill,
                p,
                style,
            })
        })
}

fn pca_lighting() -> impl Strategy<Value = Op> {
    let three = || [number(), number(), number()];
    let vectors = [three(), three(), three()];
    (number(), three(), vectors, number()).prop_map(|(std, eigenvalues, eigenvectors, unit)| {
        Op::from(PcaLighting {
            std,
            eigenvalues,
            eigenvectors,
            unit,
        })
    })
}

fn pad() -> impl Strategy<Value = Op> {
    (padding(), per_channel(), padding_mode()).prop_map(|(padding, fill, padding_mode)| {
        Op::from(Pad {
            padding,
            fill,
            padding_mode,
        })
    })
}

fn pad_to() -> impl Strategy<Value = Op> {
    let anchor = one_of(&[
        PadAnchor::TopLeft,
        PadAnchor::Center,
        PadAnchor::BottomRight,
    ]);
    let sizes = (option::of(size()), option::of(size()), option::of(size()));
    let offset = option::of([pixels(), pixels()]);
    (sizes, anchor, offset, per_channel(), padding_mode()).prop_map(
        |((size, min_size, multiple_of), anchor, offset, fill, padding_mode)| {
            Op::from(PadTo {
                size,
                min_size,
                multiple_of,
                anchor,
                offset,
                fill,
                padding_mode,
            })
        },
    )
}

fn sizes_of_detectors() -> impl Strategy<Value = Op> {
    let parts = (
        (size(), option::of(size()), option::of(any::<u32>())),
        (span(), number(), per_channel()),
        (interpolation(), any::<bool>(), any::<bool>()),
        vec(any::<u32>(), 0..4),
        (any::<[u32; 2]>(), 0..6usize),
    );
    parts.prop_map(
        |(sizes, numbers, (interpolation, antialias, scale_up), list, (sides, which))| {
            let (size, crop, max_size) = sizes;
            let (scale, erosion_rate, fill) = numbers;
            match which {
                0 => Op::from(Letterbox {
                    scale_up,
                    anchor: PadAnchor::BottomRight,
                    fill,
                    interpolation,
                    antialias,
                    ..Letterbox::new(size)
                }),
                1 => Op::from(LargeScaleJitter {
                    scale,
                    fill,
                    interpolation,
                    antialias,
                    size,
                }),
                2 => Op::from(RandomShortestSize {
                    min_size: list,
                    max_size,
                    interpolation,
                    antialias,
                }),
                3 => Op::from(ScaleJitter {
                    size,
                    scale,
                    interpolation,
                    antialias,
                }),
                4 => Op::from(RandomResize {
                    interpolation,
                    antialias,
                    ..RandomResize::new(sides[0], sides[1])
                }),
                _ => Op::from(RandomSizedBboxSafeCrop {
                    size: crop,
                    erosion_rate,
                    interpolation,
                    antialias,
                }),
            }
        },
    )
}

fn color_jitter() -> impl Strategy<Value = Op> {
    let style = one_of(&[JitterStyle::Tensor, JitterStyle::Pillow]);
    let spans = (span(), span(), span(), span());
    (spans, number(), any::<bool>(), style).prop_map(
        |((brightness, contrast, saturation, hue), p, random_order, style)| {
            Op::from(ColorJitter {
                brightness,
                contrast,
                saturation,
                hue,
                p,
                random_order,
                style,
            })
        },
    )
}

fn convert_color() -> impl Strategy<Value = Op> {
    let to = one_of(&[ColorSpace::Lab, ColorSpace::Hsv, ColorSpace::Ycbcr]);
    let white_point = one_of(&[WhitePoint::D65, WhitePoint::D50]);
    (to, white_point).prop_map(|(to, white_point)| Op::from(ConvertColor { to, white_point }))
}

fn gaussian_blur() -> impl Strategy<Value = Op> {
    (size(), span()).prop_map(|(kernel_size, sigma)| Op::from(GaussianBlur { kernel_size, sigma }))
}

fn random_erasing() -> impl Strategy<Value = Op> {
    let value = prop_oneof![
        per_channel().prop_map(EraseFill::Value),
        Just(EraseFill::Random)
    ];
    (number(), span(), span(), aspect(), any::<u32>(), value).prop_map(
        |(p, scale, ratio, aspect, attempts, value)| {
            Op::from(RandomErasing {
                p,
                scale,
                ratio,
                aspect,
                attempts,
                value,
            })
        },
    )
}

fn crop_with_padding() -> impl Strategy<Value = Op> {
    (number(), span(), span(), per_channel()).prop_map(|(p, scale, ratio, value)| {
        Op::from(CropWithPadding {
            p,
            scale,
            ratio,
            value,
        })
    })
}

fn depth() -> impl Strategy<Value = ChainDepth> {
    prop_oneof![
        any::<u32>().prop_map(ChainDepth::Fixed),
        Just(ChainDepth::Random)
    ]
}

fn policy() -> impl Strategy<Value = Op> {
    use RandTable::{Paddle, Paddle3, Paddle4, Torchvision};
    let tables = one_of(&[Torchvision, Paddle, Paddle3, Paddle4]);
    let look = || (interpolation(), per_channel());
    let own = (vec(size(), 0..3), vec(number(), 0..3));
    let rand = (any::<u32>(), number(), tables, look(), own).prop_map(
        |(num_ops, magnitude, table, (interpolation, fill), (sizes, magnitudes))| {
            Op::from(RandAugment {
                num_ops,
                magnitude,
                table,
                interpolation,
                fill,
                sizes,
                magnitudes,
            })
        },
    );
    let mix = (number(), number(), any::<u32>(), depth(), number()).prop_map(
        |(p, alpha, width, depth, severity)| {
            Op::from(AugMix {
                p,
                alpha,
                width,
                depth,
                severity,
            })
        },
    );
    let config = prop_oneof![any::<String>(), Just("rand-m9-mstd0.5-inc1".to_owned())];
    let timm = (config, number(), vec(interpolation(), 0..3), per_channel()).prop_map(
        |(config, p, interpolation, fill)| {
            Op::from(TimmAugment {
                config,
                p,
                interpolation,
                fill,
            })
        },
    );
    prop_oneof![
        Just(Op::from(AutoAugment {
            policy: AutoPolicy::Imagenet
        })),
        rand,
        look().prop_map(|(interpolation, fill)| TrivialAugment {
            interpolation,
            fill
        }
        .into()),
        mix,
        timm,
    ]
}

fn cutout() -> impl Strategy<Value = Op> {
    (number(), any::<u32>(), pixels(), option::of(per_channel())).prop_map(
        |(p, holes, length, value)| {
            Op::from(Cutout {
                p,
                holes,
                length,
                value,
            })
        },
    )
}

/// torchvision's operations on places.
fn geometric() -> impl Strategy<Value = Op> {
    let affine = (
        span(),
        [number(), number()],
        span(),
        (span(), span()),
        interpolation(),
        per_channel(),
        (
            option::of([number(), number()]),
            one_of(&[AffineStyle::Pillow, AffineStyle::Opencv]),
        ),
    )
        .prop_map(
            |(degrees, translate, scale, (x, y), interpolation, fill, (center, style))| {
                Op::from(RandomAffine {
                    degrees,
                    translate,
                    scale,
                    shear: Shear { x, y },
                    interpolation,
                    fill,
                    center,
                    style,
                })
            },
        );
    let perspective = (number(), number(), interpolation(), per_channel()).prop_map(
        |(distortion_scale, p, interpolation, fill)| {
            Op::from(RandomPerspective {
                distortion_scale,
                p,
                interpolation,
                fill,
            })
        },
    );
    let two = || [number(), number()];
    let elastic = (two(), two(), interpolation(), per_channel()).prop_map(
        |(alpha, sigma, interpolation, fill)| {
            Op::from(ElasticTransform {
                alpha,
                sigma,
                interpolation,
                fill,
            })
        },
    );
    let zoom = (per_channel(), span(), number()).prop_map(|(fill, side_range, p)| {
        Op::from(RandomZoomOut {
            fill,
            side_range,
            p,
        })
    });
    prop_oneof![affine, perspective, elastic, zoom]
}

/// Operations that contain `inside`.
fn holding(inside: BoxedStrategy<Op>) -> impl Strategy<Value = Op> {
    let weights = option::of(vec(number(), 0..3));
    (vec(inside, 0..3), number(), weights, 0..3).prop_map(|(transforms, p, weights, which)| {
        match which {
            0 => RandomApply { transforms, p }.into(),
            1 => RandomChoice {
                transforms,
                p: weights,
            }
            .into(),
            _ => RandomOrder { transforms }.into(),
        }
    })
}

fn op() -> impl Strategy<Value = Op> {
    let alone = prop_oneof![
        // Five in one.
        5 => policy(),
        1 => cutout(),
        4 => geometric(),
        28 => other(),
    ]
    .boxed();
    let held = holding(alone.clone()).boxed();
    let twice = holding(held.clone());
    prop_oneof![30 => alone, 2 => held, 1 => twice]
}

fn other() -> impl Strategy<Value = Op> {
    prop_oneof![
        decode(),
        resize(),
        random_resized_crop(),
        bounded_resized_crop(),
        random_crop(),
        center_crop(),
        (size(), 0..4usize).prop_map(|(size, corner)| {
            let corner = [
                ImageCorner::TopLeft,
                ImageCorner::TopRight,
                ImageCorner::BottomLeft,
                ImageCorner::BottomRight,
            ][corner];
            CornerCrop { size, corner }.into()
        }),
        (size(), interpolation(), 0..8usize, any::<(u32, u32, u32)>()).prop_map(
            |(size, interpolation, which, (area, step, side))| {
                let rule = BucketRule {
                    area: area.into(),
                    step: (which % 3 == 0).then_some(step),
                    style: [
                        BucketStyle::SdScripts,
                        BucketStyle::Diffusers,
                        BucketStyle::AiToolkit,
                        BucketStyle::SimpleTuner,
                    ][which % 4],
                    sides: (which > 4).then_some((side, step)),
                    upscale: which != 3,
                };
                CoverCrop {
                    size,
                    place: [CropPlace::Center, CropPlace::Random][which % 2],
                    interpolation: (which > 1).then_some(interpolation),
                    buckets: (which > 2).then_some(rule),
                }
                .into()
            }
        ),
        (
            0..3usize,
            any::<[Option<u32>; 6]>(),
            option::of(interpolation()),
        )
            .prop_map(|(style, numbers, interpolation)| {
                let [patch, merge, temporal, least, most, patches] = numbers;
                Patches {
                    style: [
                        PatchStyle::Siglip2,
                        PatchStyle::Qwen,
                        PatchStyle::Pix2struct,
                    ][style],
                    patch_size: patch,
                    merge_size: merge,
                    temporal_patch_size: temporal,
                    min_pixels: least.map(u64::from),
                    max_pixels: most.map(u64::from),
                    max_num_patches: patches,
                    interpolation,
                }
                .into()
            }),
        (
            any::<bool>(),
            any::<[Option<u32>; 3]>(),
            option::of(vec(any::<(u32, u32)>(), 0..4)),
            interpolation(),
        )
            .prop_map(
                |(of_internvl, [tile_size, min_tiles, max_tiles], list, filter)| {
                    Tiles {
                        style: [TileStyle::LlavaNext, TileStyle::Internvl]
                            [usize::from(of_internvl)],
                        tile_size,
                        min_tiles,
                        max_tiles,
                        grid_pinpoints: list,
                        interpolation: filter,
                    }
                    .into()
                }
            ),
        (
            size(),
            any::<u32>(),
            number(),
            per_channel(),
            any::<Option<u32>>()
        )
            .prop_map(|(size, grid, p, fill, partner_window)| {
                Mosaic {
                    size,
                    grid,
                    p,
                    fill,
                    partner_window,
                }
                .into()
            }),
        (number(), number(), any::<Option<u32>>()).prop_map(|(alpha, p, partner_window)| {
            MixSamples {
                alpha,
                p,
                partner_window,
            }
            .into()
        }),
        (
            number(),
            any::<u32>(),
            number(),
            number(),
            any::<Option<u32>>()
        )
            .prop_map(|(alpha, boxes, min_visibility, p, partner_window)| {
                CutSamples {
                    alpha,
                    boxes,
                    min_visibility,
                    p,
                    partner_window,
                }
                .into()
            }),
        (number(), number(), number(), any::<Option<u32>>()).prop_map(
            |(p, max_overlap, min_visibility, partner_window)| {
                CopyPaste {
                    p,
                    max_overlap,
                    min_visibility,
                    partner_window,
                }
                .into()
            }
        ),
        center_crop_or_pad(),
        resize_keep_ratio(),
        any::<u32>().prop_map(|pixels| TrimBorder { pixels }.into()),
        sizes_of_detectors(),
        (number(), number(), number()).prop_map(|(hue, saturation, value)| {
            RandomHsv {
                hue,
                saturation,
                value,
            }
            .into()
        }),
        (vec(number(), 0..4), number(), number(), any::<u32>()).prop_map(
            |(sampler_options, min_scale, max_aspect_ratio, trials)| {
                RandomIouCrop {
                    min_scale,
                    max_aspect_ratio,
                    sampler_options,
                    trials,
                    ..RandomIouCrop::default()
                }
                .into()
            }
        ),
        number().prop_map(|p| RandomHorizontalFlip { p }.into()),
        number().prop_map(|p| RandomInterpolation { p }.into()),
        number().prop_map(|p| RandomVerticalFlip { p }.into()),
        random_rotation(),
        any::<i32>().prop_map(|times| Rotate90 { times }.into()),
        (vec(any::<u32>(), 0..4), number(), any::<bool>()).prop_map(|(grids, p, is_nhwc)| {
            let layout = match is_nhwc {
                true => MemoryLayout::Nhwc,
                false => MemoryLayout::Nchw,
            };
            HideAndSeek { grids, p, layout }.into()
        }),
        (number(), any::<[u32; 3]>(), any::<bool>()).prop_map(|(p, sides, label)| {
            let [gaussian_below, motion_below, motion_angle] = sides;
            RandomBlur {
                p,
                gaussian_below,
                motion_below,
                motion_angle,
                label,
            }
            .into()
        }),
        Just(ZeroChannel {}.into()),
        any::<bool>().prop_map(|label| RandomRotate90 { label }.into()),
        pad(),
        color_jitter(),
        any::<u8>().prop_map(|n| Grayscale {
            num_output_channels: n
        }
        .into()),
        number().prop_map(|p| RandomGrayscale { p }.into()),
        (any::<u32>(), number()).prop_map(|(bits, p)| RandomPosterize { bits, p }.into()),
        (number(), number()).prop_map(|(threshold, p)| RandomSolarize { threshold, p }.into()),
        number().prop_map(|p| RandomEqualize { p }.into()),
        number().prop_map(|p| RandomAutocontrast { p }.into()),
        number().prop_map(|p| RandomInvert { p }.into()),
        (number(), number()).prop_map(|(sharpness_factor, p)| {
            RandomAdjustSharpness {
                sharpness_factor,
                p,
            }
            .into()
        }),
        convert_color(),
        pca_lighting(),
        gaussian_blur(),
        of_torchvision(),
        random_erasing(),
        crop_with_padding(),
        pad_to(),
        Just(Standardize {}.into()),
        (per_channel(), per_channel()).prop_map(|(mean, std)| Normalize { mean, std }.into()),
        one_of(&DataType::ALL).prop_map(|dtype| Cast { dtype }.into()),
        one_of(&[MemoryLayout::Nchw, MemoryLayout::Nhwc])
            .prop_map(|layout| Layout { layout }.into()),
    ]
}

fn of_torchvision() -> impl Strategy<Value = Op> {
    let style = one_of(&[JitterStyle::Tensor, JitterStyle::Pillow]);
    prop_oneof![
        (span(), number()).prop_map(|(radius, p)| PillowGaussianBlur { radius, p }.into()),
        ([span(), span(), span(), span()], number(), style).prop_map(
            |([brightness, contrast, saturation, hue], p, style)| RandomPhotometricDistort {
                brightness,
                contrast,
                saturation,
                hue,
                p,
                style,
            }
            .into()
        ),
        Just(RandomChannelPermutation {}.into()),
        (number(), number(), any::<bool>()).prop_map(|(mean, sigma, clip)| GaussianNoise {
            mean,
            sigma,
            clip
        }
        .into()),
        span().prop_map(|quality| Jpeg { quality }.into()),
        (
            any::<[u32; 3]>(),
            number(),
            any::<[bool; 2]>(),
            interpolation(),
            option::of(per_channel()),
        )
            .prop_map(
                |([severity, width, depth], alpha, [all_ops, is_random], interpolation, fill)| {
                    let depth = match is_random {
                        true => ChainDepth::Random,
                        false => ChainDepth::Fixed(depth),
                    };
                    TorchvisionAugMix {
                        severity,
                        width,
                        depth,
                        alpha,
                        all_ops,
                        interpolation,
                        fill,
                    }
                    .into()
                }
            ),
    ]
}

fn mix_op() -> impl Strategy<Value = MixOp> {
    let single = prop_oneof![
        number().prop_map(|alpha| MixOp::Mixup { alpha }),
        number().prop_map(|alpha| MixOp::Cutmix { alpha }),
        [number(), number(), number()].prop_map(|[alpha, decay_power, max_soft]| MixOp::Fmix {
            alpha,
            decay_power,
            max_soft,
        }),
        number().prop_map(|epsilon| MixOp::LabelSmoothing { epsilon }),
        [number(), number(), number(), number(), number()].prop_map(
            |[mixup_alpha, cutmix_alpha, p, switch_p, label_smoothing]| MixOp::MixupCutmix {
                mixup_alpha,
                cutmix_alpha,
                p,
                switch_p,
                label_smoothing,
            }
        ),
    ];
    let choices = vec((number(), single.boxed()), 0..4);
    let choices = choices.prop_map(|all| {
        let choice = |(p, op)| MixChoice { p, op };
        all.into_iter().map(choice).collect::<Vec<_>>()
    });
    // A list of one of them, or that one.
    choices.prop_map(|mut all| match all.len() {
        1 => all.remove(0).op,
        _ => MixOp::OneOf(all),
    })
}

fn mixing() -> impl Strategy<Value = Mixing> {
    (any::<u32>(), vec(mix_op(), 0..4)).prop_map(|(num_classes, ops)| Mixing { num_classes, ops })
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let name = prop_oneof![
        any::<String>(),
        vec(any::<char>(), 0..8).prop_map(String::from_iter)
    ];
    let reorder = option::of(one_of(&[
        ReorderMode::Off,
        ReorderMode::Exact,
        ReorderMode::Fast,
    ]));
    (name, reorder, vec(op(), 0..6), option::of(mixing())).prop_map(
        |(name, reorder, ops, mixing)| Recipe {
            name,
            reorder,
            ops,
            mixing,
            crops: Vec::new(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn what_is_written_reads_back(recipe in recipe()) {
        for format in FORMATS {
            let text = recipe.to_text(format).unwrap();
            let back = parse(&text, format, Path::new("other")).map(|l| l.recipe);
            prop_assert!(back.is_ok(), "{}\n{:?}", text, back);
            // Also by Debug, which distinguishes 0 from -0, like the hash.
            let back = back.unwrap();
            prop_assert_eq!(&back, &recipe, "{}", text);
            prop_assert_eq!(back.hash(), recipe.hash(), "{}", text);
            for op in &recipe.ops {
                prop_assert!(text.contains(op.name()));
            }
        }
    }
}

#[test]
fn the_recipes_above_have_every_operation() {
    let all = crate::recipe::operations();
    let all: BTreeSet<String> = all.iter().map(|op| op.name.to_owned()).collect();
    let mut runner = TestRunner::deterministic();
    let drawn: BTreeSet<String> = (0..3000)
        .map(|_| {
            op().new_tree(&mut runner)
                .unwrap()
                .current()
                .name()
                .to_owned()
        })
        .collect();
    let missing: Vec<_> = all.difference(&drawn).collect();
    assert!(missing.is_empty(), "no line of `other` makes {missing:?}");
}

#[test]
fn text_that_could_be_something_else_stays_text() {
    let names = [
        "",
        " ",
        "null",
        "~",
        "True",
        "off",
        "12",
        "1e3",
        ".nan",
        "-",
        "a: b",
        "a #b",
        "#",
        "{",
        "\"",
        "\\",
        "\u{7f}\u{85}\u{2028}\u{feff}\r\n\t\u{0}",
        "é 🦀",
        "'",
        "--- a",
        "<<",
        "*a",
        "&a",
        "!a",
    ];
    for name in names {
        for format in FORMATS {
            let text = Recipe::new(name).to_text(format).unwrap();
            let back = parse(&text, format, Path::new("f"));
            let back = back
                .unwrap_or_else(|e| panic!("{name:?}: {e}\n{text}"))
                .recipe;
            assert_eq!(back.name, name, "{text}");
        }
    }
}

#[test]
fn it_is_written_as_a_person_would() {
    let recipe = Recipe::new("mine")
        .then(RandomResizedCrop::new((224, 192)))
        .then(RandomRotate90::default())
        .then(Normalize::imagenet())
        .with_reorder(ReorderMode::Off);
    let crop = "scale: [0.08, 1.0], ratio: [0.75, 1.3333333333333333], interpolation: bilinear, \
                antialias: true";
    assert_eq!(
        recipe.to_text(RecipeFormat::Yaml).unwrap(),
        format!(
            "featherload: 1\nname: mine\nreorder: off\nops:\n  - random_resized_crop: {{size: [224, \
             192], {crop}}}\n  - random_rotate90\n  - normalize: {{mean: [0.485, 0.456, 0.406], \
             std: [0.229, 0.224, 0.225]}}\n"
        )
    );
    let cast = Recipe::new("mine")
        .then(RandomRotate90::default())
        .with_dtype(DataType::F16);
    assert_eq!(
        cast.to_text(RecipeFormat::Toml).unwrap(),
        "featherload = 1\nname = \"mine\"\nops = [\n  \"random_rotate90\",\n  {cast = {dtype = \
         \"f16\"}},\n]\n"
    );
    assert_eq!(
        cast.to_text(RecipeFormat::Json).unwrap(),
        "{\n  \"featherload\": 1,\n  \"name\": \"mine\",\n  \"ops\": [\n    \"random_rotate90\",\n    \
         {\"cast\": {\"dtype\": \"f16\"}}\n  ]\n}\n"
    );
}

#[test]
fn what_is_not_finite_is_written_where_there_are_words_for_it() {
    let recipe = Recipe::new("odd").then(Normalize::new(f32::INFINITY, f32::NEG_INFINITY));
    for format in [RecipeFormat::Yaml, RecipeFormat::Toml] {
        let text = recipe.to_text(format).unwrap();
        assert_eq!(parse(&text, format, Path::new("f")).unwrap().recipe, recipe);
    }
    let nan = Recipe::new("odd").then(RandomHorizontalFlip { p: f64::NAN });
    for format in [RecipeFormat::Yaml, RecipeFormat::Toml] {
        let text = nan.to_text(format).unwrap();
        let back = parse(&text, format, Path::new("f")).unwrap().recipe;
        assert_eq!(back.hash(), nan.hash());
    }
    let said = nan.to_text(RecipeFormat::Json).unwrap_err().to_string();
    assert_eq!(
        said,
        "JSON cannot hold NaN: write the recipe as YAML or TOML"
    );
}
