//! Recipes that can be handed over, and files, all that differs for a device.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use proptest::sample::select;

use crate::picture::ExifOrientation;
use crate::picture::jpeg::fixtures;
use crate::picture::jpeg::fixtures::Sampling;
use crate::recipe::{
    BoundedResizedCrop, Cast, CenterCrop, ColorJitter, ColorOrder, ColorSpace, ConvertColor,
    DataType, Decode, DecodeMode, Grayscale, InterpolationMode, Layout, MemoryLayout, Normalize,
    Op, RandomCrop, RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip,
    Recipe, ReorderMode, Resize, Size, Span,
};

#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) what: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Height and width as it is looked at.
    pub(super) upright: (u32, u32),
    pub(super) orientation: ExifOrientation,
}

impl File {
    /// `kind` 0 is a PNG, 1 to 8 a JPEG of that orientation.
    pub(super) fn new(kind: u8, width: u32, height: u32) -> Self {
        let (what, bytes) = match kind {
            0 => ("png", png(width, height)),
            1 => ("jpeg", fixtures::jpeg(width, height, Sampling::S444)),
            _ => {
                let jpeg = fixtures::jpeg(width, height, Sampling::S420);
                ("turned jpeg", fixtures::turned(jpeg, kind))
            }
        };
        let orientation = ExifOrientation::ALL[usize::from(kind.max(1)) - 1];
        let (width, height) = orientation.apply_to_size((width, height));
        Self {
            what,
            bytes,
            upright: (height, width),
            orientation,
        }
    }
}

pub(super) fn png(width: u32, height: u32) -> Vec<u8> {
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
pub(super) fn colors() -> impl Strategy<Value = Vec<Op>> {
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

pub(super) fn interpolations() -> impl Strategy<Value = (InterpolationMode, bool)> {
    let all = vec![
        InterpolationMode::Nearest,
        InterpolationMode::Area,
        InterpolationMode::Bilinear,
        InterpolationMode::Bicubic,
        InterpolationMode::Lanczos,
    ];
    (select(all), any::<bool>())
}

pub(super) fn side() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(1u32), 8 => 1u32..70]
}

pub(super) fn resizes() -> impl Strategy<Value = Vec<Op>> {
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
pub(super) fn ends() -> impl Strategy<Value = (Option<ColorSpace>, ColorOrder, Vec<Op>)> {
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
pub(super) struct Case {
    pub(super) recipe: Recipe,
    pub(super) space: Option<ColorSpace>,
    pub(super) order: ColorOrder,
}

pub(super) fn cases() -> impl Strategy<Value = Case> {
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
            recipe.reorder = Some(ReorderMode::Exact);
            for ops in [resize, turns, colors, last] {
                recipe.ops.extend(ops);
            }
            recipe.ops.push(
                Cast {
                    dtype: DataType::F32,
                }
                .into(),
            );
            recipe.ops.push(Layout { layout }.into());
            Case {
                recipe,
                space,
                order,
            }
        },
    )
}
