//! Every name with the operation that it becomes, and every trap of the arithmetic.

mod image_form;
mod multi_scale;

use crate::configs::paddle::dataset_config::ImageOpener;
use crate::configs::paddle::note::{NoteList, SkippedOperation};
use crate::configs::paddle::ops::{OpListRules, translate};
use crate::recipe::file::{TextMistake, TreeNode};
use crate::recipe::{
    AlphaMode, AspectDistribution, AugMix, AutoAugment, AutoPolicy, BoundedResizedCrop, Cast,
    CenterCrop, ChainDepth, ColorJitter, ColorOrder, CropWithPadding, Cutout, DataType, Decode,
    DecodeMode, EraseFill, HideAndSeek, InterpolationMode, JitterStyle, Layout, LengthRounding,
    MemoryLayout, Normalize, Op, OrientationMode, Pad, PadAnchor, PadTo, PaddingMode, PcaLighting,
    PerChannel, RandAugment, RandTable, RandomApply, RandomBlur, RandomCrop, RandomErasing,
    RandomHorizontalFlip, RandomResizedCrop, RandomRotate90, RandomRotation, RandomVerticalFlip,
    RecipeFormat, Resize, ResizeTo, RotationStyle, Size, Span, TimmAugment, ZeroChannel,
};

fn tree(text: &str) -> TreeNode {
    RecipeFormat::Yaml.tree(text).unwrap()
}

struct Translated {
    ops: Vec<Op>,
    stages: Vec<Size>,
    notes: Vec<String>,
    skipped: Vec<SkippedOperation>,
}

fn with(text: &str, rules: &OpListRules) -> Result<Translated, TextMistake> {
    let (mut notes, mut skipped) = (NoteList::default(), Vec::new());
    let made = translate(&tree(text), rules, &mut notes, &mut skipped)?;
    assert_eq!(made.ops.len(), made.lines.len());
    Ok(Translated {
        ops: made.ops,
        stages: made.stages,
        notes: notes.0.into_iter().map(|note| note.to_string()).collect(),
        skipped,
    })
}

fn rules() -> OpListRules<'static> {
    OpListRules {
        opener: ImageOpener::Undecoded,
        multi_scale: false,
        label_key: None,
        skip_unknown: false,
        progressive: false,
    }
}

/// The operations for `text` after DecodeImage, without the final ones.
fn ops(text: &str) -> Vec<Op> {
    let all = with(&format!("- DecodeImage:\n{text}"), &rules());
    let all = all.unwrap_or_else(|e| panic!("{text}: {e}")).ops;
    all[1..all.len() - 2].to_vec()
}

fn one(text: &str) -> Op {
    let mut all = ops(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn notes(text: &str) -> String {
    with(&format!("- DecodeImage:\n{text}"), &rules())
        .unwrap()
        .notes
        .join("; ")
}

/// The mistake, and its line.
fn wrong(text: &str) -> (usize, String) {
    let text = format!("- DecodeImage:\n{text}");
    match with(&text, &rules()) {
        Ok(_) => panic!("{text} is read"),
        Err(e) => (e.line(), e.to_string()),
    }
}

const OPENCV: Decode = Decode {
    color: ColorOrder::Rgb,
    mode: Some(DecodeMode::Full),
    background: crate::recipe::BackgroundColor::WHITE,
    orientation: OrientationMode::Exif,
    alpha: AlphaMode::Drop,
    truncated: crate::recipe::TruncationPolicy::Refuse,
};

const RESIZE: Resize = Resize {
    size: None,
    max_size: None,
    interpolation: InterpolationMode::Bilinear,
    antialias: false,
    rounding: LengthRounding::Down,
};

#[test]
fn decoding_is_the_backends() {
    let decode = |text: &str| match with(&format!("{text}\n- ToCHWImage:"), &rules())
        .unwrap()
        .ops
        .remove(0)
    {
        Op::Decode(decode) => decode,
        other => panic!("{other:?}"),
    };
    assert_eq!(decode("- DecodeImage:"), OPENCV);
    assert_eq!(
        decode("- DecodeImage: {to_rgb: True, channel_first: False}"),
        OPENCV
    );
    let bgr = Decode {
        color: ColorOrder::Bgr,
        ..OPENCV
    };
    assert_eq!(decode("- DecodeImage: {to_rgb: False}"), bgr);
    // An array without conversion keeps OpenCV's channel order.
    assert_eq!(decode("- DecodeImage: {to_np: False}"), bgr);
    // Pillow's `open` ignores EXIF, and its images are RGB.
    let stored = Decode {
        orientation: OrientationMode::Stored,
        ..OPENCV
    };
    assert_eq!(decode("- DecodeImage: {backend: pil}"), stored);
    assert_eq!(
        decode("- DecodeImage: {backend: PIL, to_np: False, to_rgb: False}"),
        stored
    );
    let mut opened = rules();
    opened.opener = ImageOpener::Pillow { is_picture: true };
    let all = with("- RandFlipImage:\n- ToCHWImage:", &opened)
        .unwrap()
        .ops;
    assert_eq!(all[0], stored.into());
    opened.opener = ImageOpener::Array;
    assert_eq!(
        with("- RandFlipImage:", &opened).unwrap().ops[0],
        OPENCV.into()
    );
}

#[test]
fn resizes_are_width_first_and_the_longer_side_is_rounded() {
    let size = |height, width| Some(ResizeTo::Exact(Size { height, width }));
    assert_eq!(
        one("- ResizeImage: {size: [192, 48]}"),
        Resize {
            size: size(48, 192),
            ..RESIZE
        }
        .into()
    );
    assert_eq!(
        one("- ResizeImage: {size: 224, interpolation: bilinear, return_numpy: False}"),
        Resize {
            size: size(224, 224),
            ..RESIZE
        }
        .into()
    );
    // No value if it is not above 0.
    for none in ["-1", "0", "0.0", "null"] {
        assert_eq!(
            one(&format!(
                "- ResizeImage: {{resize_short: {none}, size: 224}}"
            )),
            Resize {
                size: size(224, 224),
                ..RESIZE
            }
            .into()
        );
        let alone = format!("- ResizeImage: {{resize_short: {none}}}");
        assert!(wrong(&alone).1.contains("needs size or"), "{none}");
    }
    // As PaddleClas: the shorter side comes first.
    assert_eq!(
        one("- ResizeImage: {resize_short: 256, size: 5}"),
        Resize {
            size: Some(ResizeTo::Shorter(256)),
            rounding: LengthRounding::Nearest,
            ..RESIZE
        }
        .into()
    );
    let pil = |interpolation| Resize {
        size: Some(ResizeTo::Shorter(256)),
        rounding: LengthRounding::Nearest,
        interpolation,
        antialias: true,
        ..RESIZE
    };
    assert_eq!(
        one("- ResizeImage: {resize_short: 256, interpolation: bilinear, backend: pil}"),
        pil(InterpolationMode::Bilinear).into()
    );
    // Pillow's default is bicubic, OpenCV's bilinear.
    assert_eq!(
        one("- ResizeImage: {resize_short: 256, interpolation: null, backend: PIL}"),
        pil(InterpolationMode::Bicubic).into()
    );
    assert!(
        notes("- ResizeImage: {size: 8, backend: pil}").contains("Later versions use bilinear")
    );
    assert_eq!(
        notes("- ResizeImage: {size: 8, backend: pil, interpolation: bicubic}"),
        ""
    );
}

#[test]
fn opencvs_bicubic_has_no_levels_between_its_passes() {
    let bicubic = Resize {
        size: Some(ResizeTo::Shorter(8)),
        rounding: LengthRounding::Nearest,
        interpolation: InterpolationMode::Bicubic,
        ..RESIZE
    };
    assert_eq!(
        ops("- ResizeImage: {resize_short: 8, interpolation: bicubic}"),
        [
            Cast {
                dtype: DataType::F32
            }
            .into(),
            bicubic.into(),
            Cast {
                dtype: DataType::U8
            }
            .into()
        ]
    );
}

#[test]
fn crops_have_paddleclas_laws() {
    let size = Size {
        height: 96,
        width: 128,
    };
    let crop = BoundedResizedCrop {
        size: 224.into(),
        scale: Span(0.08, 1.0),
        ratio: Span(3.0 / 4.0, 4.0 / 3.0),
        aspect: AspectDistribution::Uniform,
        interpolation: InterpolationMode::Bilinear,
        interpolation_or: None,
        antialias: false,
    };
    assert_eq!(one("- RandCropImage: {size: 224}"), crop.into());
    assert_eq!(
        one(
            "- RandCropImage: {size: [128, 96], scale: [0.5, 1], ratio: [1, 2], use_log_aspect: \
             True, interpolation: bicubic, backend: pil}"
        ),
        BoundedResizedCrop {
            size,
            scale: Span(0.5, 1.0),
            ratio: Span(1.0, 2.0),
            aspect: AspectDistribution::Log,
            interpolation: InterpolationMode::Bicubic,
            interpolation_or: None,
            antialias: true,
        }
        .into()
    );
    let drawn = BoundedResizedCrop {
        interpolation_or: Some(InterpolationMode::Bicubic),
        antialias: true,
        ..crop
    };
    assert_eq!(
        one("- RandCropImage: {size: 224, interpolation: random, backend: pil}"),
        drawn.into()
    );
    // OpenCV's bicubic runs in floats, and so does the interpolation that alternates with it.
    let made = ops("- RandCropImage: {size: 224, interpolation: random}");
    let drawn = BoundedResizedCrop {
        antialias: false,
        ..drawn
    };
    let to = |dtype| Op::from(Cast { dtype });
    assert_eq!(made, [to(DataType::F32), drawn.into(), to(DataType::U8)]);
    assert_eq!(
        one("- CropImage: {size: [128, 96]}"),
        CenterCrop {
            rounding: LengthRounding::Down,
            pad_if_needed: false,
            ..CenterCrop::new(size)
        }
        .into()
    );
    assert_eq!(
        one("- RandCropImageV2: {size: [128, 96]}"),
        RandomCrop::new(size).into()
    );
    assert!(notes("- RandCropImageV2: {size: 32}").contains("one row too low"));
    assert_eq!(
        one("- RandomCropImage: {size: [128, 96]}"),
        RandomCrop::new(size).into()
    );
    // paddle.vision's pairs are height first.
    assert_eq!(
        one("- RandomResizedCrop: {size: [96, 128]}"),
        RandomResizedCrop {
            antialias: false,
            ..RandomResizedCrop::new(size)
        }
        .into()
    );
}

#[test]
fn flips() {
    let p = 0.5;
    assert_eq!(
        one("- RandFlipImage: {flip_code: 1}"),
        RandomHorizontalFlip { p }.into()
    );
    assert_eq!(one("- RandFlipImage:"), RandomHorizontalFlip { p }.into());
    assert_eq!(
        one("- RandFlipImage: {flip_code: 0}"),
        RandomVerticalFlip { p }.into()
    );
    let p = 0.25;
    assert_eq!(
        one("- RandomHorizontalFlip: {prob: 0.25}"),
        RandomHorizontalFlip { p }.into()
    );
    assert!(wrong("- RandFlipImage: {flip_code: -1}").1.contains("-1"));
    // PaddleClas ignores the code for Pillow images.
    let picture = "- DecodeImage: {backend: pil, to_np: False}\n- RandFlipImage: {flip_code: 0}\n- \
                   ToCHWImage:";
    let read = with(picture, &rules()).unwrap();
    assert_eq!(read.ops[1], RandomHorizontalFlip { p: 0.5 }.into());
    assert!(read.notes[0].contains("left to right"), "{:?}", read.notes);
}

#[test]
fn borders() {
    let plain = |padding, padding_mode| Pad {
        padding,
        fill: PerChannel::default(),
        padding_mode,
    };
    // Neither backend of PaddleClas reads padding_mode.
    assert_eq!(
        one("- Pad: {padding: 10, fill: 0, padding_mode: reflect, backend: cv2}"),
        plain(10.into(), PaddingMode::Constant).into()
    );
    // A single number sets only the first channel, with Pillow and OpenCV.
    let filled = |fill| Pad {
        fill: PerChannel(fill),
        ..plain(1.into(), PaddingMode::Constant)
    };
    assert_eq!(
        one("- Pad_paddle_vision: {padding: 1, fill: 7}"),
        filled([7.0, 0.0, 0.0]).into()
    );
    assert_eq!(
        one("- Pad_paddle_vision: {padding: 1, fill: [7, 8, 9]}"),
        filled([7.0, 8.0, 9.0]).into()
    );
    assert_eq!(
        one("- Pad: {padding: 1, fill: 7, backend: cv2}"),
        filled([7.0; 3]).into()
    );
    assert_eq!(
        one("- Pad_paddle_vision: {padding: 4, padding_mode: reflect}"),
        plain(4.into(), PaddingMode::Reflect).into()
    );
}

/// The operations for Padv2 and those after it, without the normalisation that its floats need.
fn padded(text: &str) -> Vec<Op> {
    let mut all = ops(&format!("{text}\n- NormalizeImage: {{order: ''}}"));
    assert_eq!(all.pop(), Some(IMAGENET.into()));
    assert_eq!(
        all.remove(0),
        Cast {
            dtype: DataType::F32
        }
        .into(),
        "{text}"
    );
    all
}

#[test]
fn borders_up_to_a_size_leave_floats() {
    let grey = |op| PadTo {
        fill: PerChannel([127.5; 3]),
        ..op
    };
    let sized = grey(PadTo::size((212, 267)));
    for (rest, op) in [
        ("pad_mode: 0", sized),
        (
            "pad_mode: 1",
            PadTo {
                anchor: PadAnchor::Center,
                ..sized
            },
        ),
        (
            "pad_mode: 2, offsets: [3, 4]",
            PadTo {
                anchor: PadAnchor::BottomRight,
                ..sized
            },
        ),
        (
            "pad_mode: -1, offsets: [3, 4]",
            PadTo {
                offset: Some([3, 4]),
                ..sized
            },
        ),
    ] {
        // [width, height].
        let text = format!("- Padv2: {{size: [267, 212], {rest}}}");
        assert_eq!(padded(&text), [op.into()], "{rest}");
    }
    let multiple = |n: u32| Op::from(grey(PadTo::multiple_of(n)));
    assert_eq!(padded("- Padv2: {size: []}"), [multiple(32)]);
    assert_eq!(
        padded("- Padv2: {size: [], size_divisor: 8}"),
        [multiple(8)]
    );
    // PaddleClas fails here.
    assert_eq!(padded("- Padv2:"), [multiple(32)]);
    let text = "- Padv2:\n- NormalizeImage: {order: ''}";
    assert!(notes(text).contains("TypeError"));
    // Floats stay floats: bicubic resizes keep their fractions, and cast nothing.
    let text = "- Padv2: {size: 40}\n- Padv2: {size: 50}\n- ResizeImage: {size: 9, \
                interpolation: bicubic}";
    assert_eq!(
        padded(text),
        [
            grey(PadTo::size(40)).into(),
            grey(PadTo::size(50)).into(),
            Resize {
                interpolation: InterpolationMode::Bicubic,
                ..Resize {
                    antialias: false,
                    ..Resize::exact(9, 9)
                }
            }
            .into(),
        ]
    );
    let first = "- Padv2: {size: 8}\n";
    for (text, word) in [
        ("- Padv2: {size: 8, pad_mode: -1}".to_owned(), "pad_mode"),
        (
            "- Padv2: {size: 8, pad_mode: -1, offsets: [-2, 0]}".to_owned(),
            "pad_mode",
        ),
        ("- Padv2: {size: 8}".to_owned(), "end with NormalizeImage"),
        (format!("{first}- ToTensor:"), "gets an array of floats"),
        (
            format!("{first}- Pad: {{padding: 2}}"),
            "gets an array of floats",
        ),
        (format!("{first}- AutoAugment:"), "gets an array of floats"),
        (
            format!("{first}- ColorJitter: {{hue: 0.1}}"),
            "gets an array of floats",
        ),
        (
            format!("{first}- ResizeImage: {{size: 4, backend: pil}}"),
            "gets an array of floats",
        ),
    ] {
        let (_, said) = wrong(&text);
        assert!(said.contains(word), "{text}: {said}");
    }
}

#[test]
fn crops_at_a_ratio_are_cut_and_then_resized() {
    let crop = CenterCrop {
        rounding: LengthRounding::Down,
        ..CenterCrop::at_ratio(0.875)
    };
    let resize = Resize {
        antialias: false,
        ..Resize::exact(224, 224)
    };
    assert_eq!(
        ops("- CropImageAtRatio: {size: 224, pad: 32}"),
        [crop.into(), resize.into()]
    );
    let [first, .., last] =
        &ops("- CropImageAtRatio: {size: 224, pad: 32, interpolation: bicubic}")[..]
    else {
        panic!()
    };
    // Bicubic ones are done in floats, the crop is not.
    assert_eq!(*first, crop.into());
    assert_eq!(
        *last,
        Cast {
            dtype: DataType::U8
        }
        .into()
    );
    for (text, word) in [
        ("- CropImageAtRatio: {size: 224}", "'pad' is missing"),
        ("- CropImageAtRatio: {pad: 32}", "'size' is missing"),
        ("- CropImageAtRatio: {size: 0, pad: 32}", "size is 0"),
        (
            "- CropImageAtRatio: {size: 224, pad: 32, interpolation: random}",
            "random",
        ),
    ] {
        assert!(wrong(text).1.contains(word), "{text}: {}", wrong(text).1);
    }
    let mut multi = rules();
    multi.multi_scale = true;
    let text = "- DecodeImage:\n- CropImageAtRatio: {size: 224, pad: 32}";
    let Err(said) = with(text, &multi) else {
        panic!("read")
    };
    assert!(
        said.to_string().contains("MultiScaleDataset needs"),
        "{said}"
    );
}

#[test]
fn boxes_that_are_kept() {
    assert_eq!(
        one("- CropWithPadding: {size: 224, interpolation: bicubic}"),
        CropWithPadding::default().into()
    );
    assert_eq!(
        one("- CropWithPadding: {prob: 0.25, padding_num: 9, scale: [0.5, 1], ratio: [1, 2]}"),
        CropWithPadding {
            p: 0.25,
            scale: Span(0.5, 1.0),
            ratio: Span(1.0, 2.0),
            value: PerChannel([9.0; 3]),
        }
        .into()
    );
    assert_eq!(ops("- CropWithPadding: {prob: 0}"), []);
    assert!(notes("- CropWithPadding: {prob: 0}").contains("so it is left out"));
    let (_, said) = wrong("- CropWithPadding: {padding_num: 127.5}");
    assert!(said.contains("127.5"), "{said}");
    // PaddleClas never runs it.
    let mask = "- GridMask: {d1: 96, d2: 224, rotate: 360, ratio: 0.5, mode: 1, prob: 0.8}";
    assert_eq!(ops(mask), []);
    assert!(notes(mask).contains("so it is left out"));
    // The Pillow image becomes an array.
    let picture = |text: &str| {
        let text = format!("- DecodeImage: {{to_np: False, backend: pil}}\n{text}");
        with(&text, &rules())
    };
    let both = "- CropWithPadding:\n- RandomResizedCrop: {size: 8}";
    let Op::RandomResizedCrop(crop) = &picture(both).unwrap_or_else(|e| panic!("{e}")).ops[2]
    else {
        panic!()
    };
    assert!(!crop.antialias);
    // Or it stays one if the operation does not run.
    let drawn = "- CropWithPadding: {prob: 0.5}";
    assert!(picture(&format!("{drawn}\n- ToTensor:")).is_ok());
    let Err(said) = picture(&format!("{drawn}\n- CropImage: {{size: 8}}")) else {
        panic!("read")
    };
    let said = said.to_string();
    assert!(said.contains("a Pillow image or an array"), "{said}");
}

const IMAGENET: Normalize = Normalize {
    mean: PerChannel([0.485, 0.456, 0.406]),
    std: PerChannel([0.229, 0.224, 0.225]),
};

#[test]
fn normalising_is_of_parts_of_255() {
    assert_eq!(
        one("- NormalizeImage: {scale: 1.0/255.0, order: ''}"),
        IMAGENET.clone().into()
    );
    assert_eq!(one("- NormalizeImage: {order: hwc}"), IMAGENET.into());
    // Plain levels.
    let Op::Normalize(levels) =
        one("- NormalizeImage: {scale: 1.0, mean: [123.675, 116.28, 103.53], std: 51, order: hwc}")
    else {
        panic!()
    };
    let near = |a: f32, b: f64| assert!((f64::from(a) - b).abs() < 1e-7, "{a} {b}");
    near(levels.mean.0[0], 0.485);
    near(levels.std.0[2], 0.2);
    // 0.00392157 is not 1/255: x s - m over d is (x/255 - m/(255 s)) over d/(255 s).
    let Op::Normalize(rounded) = one("- NormalizeImage: {scale: 0.00392157, order: ''}") else {
        panic!()
    };
    near(rounded.mean.0[0], 0.485 / (255.0 * 0.003_921_57));
    near(rounded.std.0[1], 0.224 / (255.0 * 0.003_921_57));
    for (text, word) in [
        // PaddleClas' default order, on an image that is not transposed.
        ("- NormalizeImage:", "chw"),
        ("- ToCHWImage:\n- NormalizeImage: {order: hwc}", "hwc"),
        (
            "- NormalizeImage: {order: '', channel_num: 5}",
            "channel_num is 5",
        ),
        ("- NormalizeImage: {order: '', scale: 0}", "scale is 0"),
        ("- NormalizeImage: {order: '', scale: 1/0}", "divides by 0"),
        ("- NormalizeImage: {order: '', std: [1, 0, 1]}", "std"),
        ("- NormalizeImage: {order: '', mean: [1, 2]}", "2 numbers"),
        (
            "- NormalizeImage: {order: '', mean: [1, .nan, 1]}",
            "finite",
        ),
        ("- NormalizeImage: {order: '', scale: eval('1')}", "names"),
        ("- NormalizeImage: {order: xyz}", "xyz"),
        (
            "- NormalizeImage: {order: ''}\n- NormalizeImage: {order: ''}",
            "levels",
        ),
        ("- Normalize: {mean: 0, std: 1}", "ToTensor"),
        ("- ToTensor:\n- Normalize: {data_format: HWC}", "HWC"),
    ] {
        assert!(wrong(text).1.contains(word), "{text}: {}", wrong(text).1);
    }
}

#[test]
fn batches_end_as_transposed_floats() {
    let ends = |text: &str| {
        let mut all = with(&format!("- DecodeImage:\n{text}"), &rules())
            .unwrap()
            .ops;
        let layout = all.pop().unwrap();
        let nchw = MemoryLayout::Nchw;
        assert_eq!(layout, Layout { layout: nchw }.into());
        all.pop().unwrap()
    };
    let to = |dtype| Op::from(Cast { dtype });
    assert_eq!(ends("- NormalizeImage: {order: ''}"), to(DataType::F32));
    assert_eq!(
        ends("- NormalizeImage: {order: '', output_fp16: True}"),
        to(DataType::F16)
    );
    assert_eq!(ends("- ToTensor:"), to(DataType::F32));
    assert_eq!(ends("- ToCHWImage:"), to(DataType::U8));
    assert_eq!(
        ops("- ToTensor:\n- Normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"),
        [Op::from(IMAGENET)]
    );
}

#[test]
fn erasing() {
    let behind = |text: &str| {
        let all = ops(&format!("- NormalizeImage: {{order: ''}}\n{text}"));
        all.get(1).cloned()
    };
    let op = RandomErasing {
        p: 0.25,
        scale: Span(0.02, 1.0 / 3.0),
        ratio: Span(0.3, 1.0 / 0.3),
        aspect: AspectDistribution::Log,
        attempts: 10,
        value: EraseFill::Random,
    };
    assert_eq!(
        behind(
            "- RandomErasing: {EPSILON: 0.25, sl: 0.02, sh: 1.0/3.0, r1: 0.3, attempt: 10, \
             use_log_aspect: True, mode: pixel}"
        ),
        Some(op.into())
    );
    let defaults = RandomErasing {
        p: 0.5,
        scale: Span(0.02, 0.4),
        ratio: Span(0.3, 1.0 / 0.3),
        aspect: AspectDistribution::Uniform,
        attempts: 100,
        value: EraseFill::Value(PerChannel::default()),
    };
    assert_eq!(behind("- RandomErasing:"), Some(defaults.clone().into()));
    // The mean is a normalised value, not a mean colour.
    let mean = "- NormalizeImage: {order: ''}\n- RandomErasing: {mean: [0.485, 0.456, 0.406]}";
    let value = EraseFill::Value([0.485, 0.456, 0.406].into());
    assert_eq!(ops(mean)[1], RandomErasing { value, ..defaults }.into());
    assert!(notes(mean).contains("normalised"));
    for never in ["0", "0.0"] {
        let text = format!("- RandomErasing: {{EPSILON: {never}, mode: pixel}}");
        assert_eq!(behind(&text), None);
        assert!(notes(&text).contains("left out"));
    }
    for (text, word) in [
        ("- RandomErasing: {mode: pixel}", "after NormalizeImage"),
        ("- RandomErasing: {mode: rand}", "rand"),
        ("- RandomErasing: {r1: 0}", "more than 0"),
        ("- RandomErasing: {EPSILON: -1}", "EPSILON is -1"),
        ("- RandomErasing: {attempt: 1.5}", "whole"),
    ] {
        assert!(wrong(text).1.contains(word), "{text}: {}", wrong(text).1);
    }
}

#[test]
fn cutouts_have_a_random_colour() {
    let op = Cutout {
        p: 1.0,
        holes: 1,
        // OpenCV fills both ends.
        length: 225,
        value: None,
    };
    assert_eq!(
        one("- Cutout: {length: 224, fill_value: 'none'}"),
        op.clone().into()
    );
    assert_eq!(one("- Cutout: {length: 224, fill_value: null}"), op.into());
    assert!(wrong("- Cutout: {fill_value: 3}").1.contains("fill_value"));
}

/// As PaddleClas' ResNet50_Cutout.yaml: the versions with that file fill `[y - 56, y + 56)` of the
/// normalised image with 0.
#[test]
fn cutouts_without_a_colour_are_zeros_behind_normalize_too() {
    let zeros = |length| {
        Op::from(Cutout {
            p: 1.0,
            holes: 1,
            length,
            value: Some(PerChannel::default()),
        })
    };
    assert_eq!(one("- Cutout: {length: 113}"), zeros(112));
    let text = "- NormalizeImage: {order: ''}\n- Cutout: {n_holes: 1, length: 112}";
    assert_eq!(ops(text)[1], zeros(112));
    assert!(notes(text).contains("fill_value is missing"));
    // On 3 x height x width it would hide channels.
    let text = "- ToCHWImage:\n- Cutout: {fill_value: none}";
    assert!(wrong(text).1.contains("height x width x 3"));
}

/// As PaddleClas' ResNet50_HideAndSeek.yaml: `img[:, 0:3, 0:cell] = 0` of height x width x 3.
#[test]
fn hide_and_seek_without_a_transpose_hides_three_columns() {
    let text = "- NormalizeImage: {order: ''}\n- HideAndSeek:";
    let columns = HideAndSeek {
        layout: MemoryLayout::Nhwc,
        ..HideAndSeek::default()
    };
    assert_eq!(ops(text)[1], columns.into());
    assert!(notes(text).contains("first 3 columns"));
}

#[test]
fn sizes_and_crops_of_paddle_vision_are_height_first() {
    let resize = |size, antialias| {
        Op::from(Resize {
            size: Some(size),
            max_size: None,
            interpolation: InterpolationMode::Bilinear,
            antialias,
            rounding: LengthRounding::Down,
        })
    };
    assert_eq!(
        one("- Resize: {size: 256}"),
        resize(ResizeTo::Shorter(256), false)
    );
    let size = Size {
        height: 128,
        width: 96,
    };
    assert_eq!(
        one("- Resize: {size: [128, 96]}"),
        resize(ResizeTo::Exact(size), false)
    );
    let crop = CenterCrop {
        pad_if_needed: false,
        ..CenterCrop::new(size)
    };
    assert_eq!(one("- CenterCrop: {size: [128, 96]}"), crop.into());
    assert!(wrong("- Resize:").1.contains("'size' is missing"));
    // Pillow resizes Pillow images, with antialias.
    let pillow = OpListRules {
        opener: ImageOpener::Pillow { is_picture: true },
        ..rules()
    };
    let made = with("- Resize: {size: 256}\n- ToTensor:", &pillow)
        .unwrap()
        .ops;
    assert_eq!(made[1], resize(ResizeTo::Shorter(256), true));
}

/// As PaddleClas' EfficientNetV2_S.yaml, which trains for 350 epochs.
#[test]
fn stages_have_sizes_and_strengths() {
    let text = "- DecodeImage:\n- RandCropImage: {size: 171, progress_size: [171, 214, 257, 300]}\n- \
                RandFlipImage:\n- RandAugmentV2: {magnitude: 5, progress_magnitude: [5, 8, 11, 15]}";
    let progressive = OpListRules {
        progressive: true,
        ..rules()
    };
    let made = with(text, &progressive).unwrap();
    let sizes = [171, 214, 257, 300].map(Size::from);
    assert_eq!(made.stages, sizes);
    let Some(Op::RandAugment(op)) = made.ops.get(3) else {
        panic!("{:?}", made.ops)
    };
    assert_eq!((op.sizes.as_slice(), op.magnitude), (&sizes[..], 5.0));
    assert_eq!(op.magnitudes, [5.0, 8.0, 11.0, 15.0]);
    // `epoch_id > stone` of 87, 175 and 262, where epochs count from 1.
    assert_eq!(
        crate::configs::paddle::ops::first_epochs(350),
        [0, 87, 175, 262]
    );
    // Other trainings do not read them.
    let made = with(text, &rules()).unwrap();
    assert!(made.stages.is_empty() && made.notes.join(";").contains("progressive alone"));
    for (text, word) in [
        (
            "- RandAugmentV2: {progress_magnitude: [5, 8, 9, 9]}",
            "progress_size in a",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 8]}",
            "has 2 values",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 8, 9.5, 10]}",
            "whole numbers",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 6, 8, 8]}\n- RandAugmentV2: \
             {progress_magnitude: [5, 8, 9, 9]}",
            "two strengths",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 7, 8, 9]}\n- CropImage: {size: 6}",
            "CropImage: changes the size that progress_size sets",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 7, 8, 9]}\n- ResizeImage: {size: 6}",
            "ResizeImage: changes the size",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 7, 8, 9]}\n- RandCropImageV2: {size: 6}",
            "RandCropImageV2: changes the size",
        ),
        (
            "- RandCropImage: {size: 8, progress_size: [6, 7, 8, 9]}\n- RandCropImage: {size: 6}",
            "move it before RandCropImage",
        ),
    ] {
        let e = with(&format!("- DecodeImage:\n{text}"), &progressive);
        let said = e.err().unwrap().to_string();
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn jitter_is_pillows_and_always() {
    let op = ColorJitter {
        brightness: Span(0.6, 1.4),
        contrast: Span(0.6, 1.4),
        saturation: Span(0.0, 3.0),
        hue: Span(0.0, 0.0),
        p: 1.0,
        random_order: true,
        style: JitterStyle::Pillow,
    };
    let Op::ColorJitter(read) =
        one("- ColorJitter: {brightness: 0.4, contrast: 0.4, saturation: 2, hue: 0}")
    else {
        panic!()
    };
    assert_eq!(read, op);
    let Op::ColorJitter(read) = one("- ColorJitter: {prob: 0.5, hue: 0.4}") else {
        panic!()
    };
    assert_eq!(
        (read.p, read.hue, read.brightness),
        (0.5, Span(-0.4, 0.4), Span(1.0, 1.0))
    );
    assert!(ops("- ColorJitter: {prob: 0}").is_empty());
}

#[test]
fn operations_inside_of_others() {
    let jitter = "- RandomApply: {p: 0.3, transforms: [{RawColorJitter: {brightness: 0.4}}]}";
    let inside = ColorJitter {
        brightness: Span(0.6, 1.4),
        p: 1.0,
        random_order: true,
        style: JitterStyle::Pillow,
        ..ColorJitter::default()
    };
    let want = RandomApply {
        transforms: vec![Op::from(inside)],
        p: 0.3,
    };
    assert_eq!(one(jitter), want.into());
    assert_eq!(
        ops("- RandomApply: {p: 0, transforms: [{RawColorJitter: }]}"),
        []
    );
    for (text, part) in [
        ("- RandomApply: {p: 0.3}", "'transforms' is missing"),
        (
            "- RandomApply: {transforms: [{NormalizeImage: {order: ''}}]}",
            "changes the meaning of values",
        ),
        (
            "- RandomApply: {transforms: [{Jitter: }]}",
            "'Jitter' is unknown",
        ),
    ] {
        let (line, said) = wrong(text);
        assert_eq!(line, 2);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn policies() {
    let timm = TimmAugment::new("rand-m9-mstd0.5-inc1");
    assert_eq!(timm.fill, PerChannel([124.0, 116.0, 104.0]));
    assert_eq!(
        one(
            "- TimmAutoAugment: {config_str: rand-m9-mstd0.5-inc1, interpolation: bicubic, \
             img_size: [160, 80]}"
        ),
        timm.clone().into()
    );
    let Op::TimmAugment(other) = one(
        "- TimmAutoAugment: {config_str: rand-m7, prob: 0.5, interpolation: random, mean: [0.5, \
         0.5, 0.5]}",
    ) else {
        panic!()
    };
    assert_eq!((other.p, other.config.as_str()), (0.5, "rand-m7"));
    assert_eq!(
        other.interpolation,
        [InterpolationMode::Bilinear, InterpolationMode::Bicubic]
    );
    // Halves to even: 127.5 is 128.
    assert_eq!(other.fill, PerChannel([128.0; 3]));
    for never in ["0", "0.0"] {
        let text = format!("- TimmAutoAugment: {{prob: {never}}}");
        assert!(ops(&text).is_empty());
        assert!(notes(&text).contains("left out"));
    }
    let policy = AutoPolicy::Imagenet;
    assert_eq!(one("- AutoAugment:"), AutoAugment { policy }.into());
    let rand = |magnitude, table, interpolation, fill: f32| RandAugment {
        num_ops: 2,
        magnitude,
        table,
        interpolation,
        fill: fill.into(),
        ..RandAugment::default()
    };
    assert_eq!(
        one("- RandAugment: {num_layers: 2, magnitude: 10}"),
        rand(10.0, RandTable::Paddle, InterpolationMode::Nearest, 128.0).into()
    );
    assert_eq!(
        one("- RandAugmentV3: {num_layers: 2, interpolation: bicubic}"),
        rand(3.0, RandTable::Paddle3, InterpolationMode::Bicubic, 0.0).into()
    );
    let Op::RandAugment(v4) = one("- RandAugmentV4:") else {
        panic!()
    };
    assert_eq!(v4.table, RandTable::Paddle4);
    assert_eq!(one("- AugMix: {prob: 0.5}"), AugMix::default().into());
    for (written, depth) in [
        ("2", ChainDepth::Fixed(2)),
        ("-1", ChainDepth::Random),
        ("0", ChainDepth::Random),
    ] {
        let text = format!("- AugMix: {{mixture_depth: {written}}}");
        assert_eq!(
            one(&text),
            AugMix {
                depth,
                ..AugMix::default()
            }
            .into()
        );
    }
    assert!(wrong("- AugMix: {mixture_depth: 1.5}").1.contains("whole"));
    for name in [
        "AutoAugment",
        "RandAugmentV4",
        "TimmAutoAugment",
        "AugMix",
        "ColorJitter",
    ] {
        let text = format!("- DecodeImage: {{to_rgb: False}}\n- {name}:");
        let e = with(&text, &rules()).err().unwrap();
        assert!(e.to_string().contains("blue first"), "{name}: {e}");
    }
}

#[test]
fn what_is_not_served_has_name_and_line() {
    for (text, line, words) in [
        (
            "- RandomInterpolationAugment:",
            2,
            &["'prob' is missing"][..],
        ),
        ("- ToTensor:\n- HideAndSeek:", 3, &["NormalizeImage"]),
        (
            "- NormalizeImage: {order: '', channel_num: 4}\n- RandomErasing:",
            3,
            &["channel_num is 4"],
        ),
        ("- PCALighting:", 1, &["floats", "NormalizeImage"]),
        ("- PCALighting: {std: 1}", 2, &["has no parameter 'std'"]),
        (
            "- PCALighting:\n- AutoAugment:",
            3,
            &["before Padv2 or PCALighting"],
        ),
        (
            "- NormalizeImage: {order: ''}\n- ToCHWImage:\n- RandomErasing:",
            4,
            &["before ToCHWImage"],
        ),
        (
            "- CropWithPadding: {padding_num: [1, 2, 3]}",
            2,
            &["one number"],
        ),
        ("- RandomRotation: {degrees: -90}", 2, &["0 or more"]),
        (
            "- RandomRotation:\n    interpolation: area",
            3,
            &["area", "bicubic"],
        ),
        ("- RandomRot90: {p: 1}", 2, &["has no parameter 'p'"]),
        (
            "- RandCropImag: {size: 1}",
            2,
            &["unknown", "'RandCropImage'"],
        ),
        ("- Nonsense:", 2, &["'Nonsense' is unknown"]),
        (
            "- RandCropImage:\n    size: 224\n    sizes: 224",
            4,
            &["RandCropImage has no parameter 'sizes'", "'size'"],
        ),
        (
            "- AutoAugment:\n    x: 1",
            3,
            &["AutoAugment has no parameter 'x'"],
        ),
        (
            "- ResizeImage:\n    interpolation: random\n    size: 1",
            3,
            &["random", "bilinear or bicubic"],
        ),
        ("- RandCropImage: {size: -1}", 2, &["whole number"]),
        ("- RandCropImage: {size: 1.5}", 2, &["whole number"]),
        ("- RandCropImage: {}", 2, &["'size' is missing"]),
        ("- RandCropImage: 224", 2, &["parameters", "224"]),
        ("- ResizeImage: {size: 8, backend: gpu}", 2, &["gpu"]),
        (
            "- ResizeImage: {interpolation: area, size: 8}",
            2,
            &["area"],
        ),
        ("- ResizeImage:", 2, &["resize_short"]),
        (
            "- CropImage: {size: 8}\n  RandFlipImage:",
            3,
            &["next to another name"],
        ),
        ("- CropImage", 2, &["its parameters"]),
        ("- DecodeImage:", 2, &["remove it"]),
        (
            "- RandCropImage: {use_log_aspect: 1, size: 8}",
            2,
            &["true or false"],
        ),
    ] {
        let (at, said) = wrong(text);
        assert_eq!(at, line, "{text}: {said}");
        for word in words {
            assert!(said.contains(word), "{text}: {said}");
        }
    }
    let first = with("- CropImage: {size: 8}", &rules()).err().unwrap();
    assert!(first.to_string().contains("DecodeImage"), "{first}");
    assert!(
        with("[]", &rules())
            .err()
            .unwrap()
            .to_string()
            .contains("empty")
    );
    assert!(with("5", &rules()).is_err());
}

#[test]
fn unknown_operations_may_be_skipped_and_wrong_ones_may_not() {
    let mut skip = rules();
    skip.skip_unknown = true;
    let text = "- DecodeImage:\n- Noise:\n- Nonsense: {a: 1}\n- CropImage: {size: 8}";
    let read = with(text, &skip).unwrap();
    assert_eq!(read.ops.len(), 4);
    let skipped: Vec<_> = read.skipped.iter().map(|s| (&*s.name, s.line)).collect();
    assert_eq!(skipped, [("Noise", 2), ("Nonsense", 3)]);
    assert!(with("- DecodeImage:\n- CropImage: {sizes: 8}", &skip).is_err());
}

#[test]
fn turns() {
    let rotation = |p, degrees, interpolation| {
        Op::from(RandomRotation {
            p,
            interpolation,
            style: RotationStyle::Opencv,
            ..RandomRotation::new(degrees)
        })
    };
    use InterpolationMode::{Bicubic, Bilinear, Nearest};
    assert_eq!(
        one("- RandomRotation:"),
        rotation(0.5, Span(-90.0, 90.0), Bilinear)
    );
    assert_eq!(
        one("- RandomRotation: {prob: 0.3, degrees: 90, interpolation: bicubic}"),
        rotation(0.3, Span(-90.0, 90.0), Bicubic)
    );
    assert_eq!(
        one("- RandomRotation: {prob: 2, degrees: [-5, 20], interpolation: nearest}"),
        rotation(1.0, Span(-5.0, 20.0), Nearest)
    );
    assert!(notes("- RandomRotation: {prob: 0}").contains("left out"));
    let pillow = OpListRules {
        opener: ImageOpener::Pillow { is_picture: true },
        ..rules()
    };
    let e = with("- RandomRotation:", &pillow).err().unwrap();
    assert!(e.to_string().contains("works on arrays"), "{e}");
    // Also after the last operation on levels, but not after a transpose.
    let turn = Op::from(RandomRotate90::default());
    let normalised = ops("- NormalizeImage: {order: ''}\n- RandomRot90:");
    assert_eq!(normalised[1..], [turn]);
    let (line, said) = wrong("- ToCHWImage:\n- RandomRot90:");
    assert_eq!(line, 3, "{said}");
}

#[test]
fn colour_noise_is_added_to_levels() {
    let all = ops("- PCALighting:\n- RandFlipImage:\n- NormalizeImage: {order: ''}");
    let noise = PcaLighting {
        unit: 1.0,
        ..PcaLighting::default()
    };
    let float = Cast {
        dtype: DataType::F32,
    };
    assert_eq!(all[..2], [Op::from(float), noise.into()]);
    assert_eq!(all.len(), 4);
    let cropped = ops("- PCALighting:\n- CropImage: {size: 8}\n- NormalizeImage: {order: ''}");
    assert_eq!(cropped.len(), 4);
    let said = notes("- PCALighting:\n- NormalizeImage: {order: ''}");
    assert!(said.contains("255th"), "{said}");
}

#[test]
fn operations_of_later_paddleclas() {
    assert_eq!(one("- BlurImage:"), RandomBlur::default().into());
    assert_eq!(
        one(
            "- BlurImage: {ratio: 0.2, motion_max_ksize: 8, motion_max_angle: 30, gaussian_max_ksize: 6}"
        ),
        RandomBlur {
            p: 0.2,
            gaussian_below: 6,
            motion_below: 8,
            motion_angle: 30,
            label: false,
        }
        .into()
    );
    let v2 = RandAugment {
        num_ops: 3,
        magnitude: 15.0,
        table: RandTable::Paddle2,
        interpolation: InterpolationMode::Nearest,
        fill: 128.0.into(),
        ..RandAugment::default()
    };
    assert_eq!(
        one("- RandAugmentV2: {num_layers: 3, magnitude: 15}"),
        v2.into()
    );
    let made = ops("- ToCHWImage:\n- HideAndSeek:\n- NormalizeImage:");
    assert!(made.contains(&HideAndSeek::default().into()), "{made:?}");
    let (line, said) = wrong("- NormalizeImage: {order: '', channel_num: 4}\n- HideAndSeek:");
    assert_eq!(line, 3);
    assert!(said.contains("channel_num: 4"), "{said}");
    for op in ["Resize", "CenterCrop", "RandomResizedCrop", "CropImage"] {
        let (_, said) = wrong(&format!("- {op}: {{size: [64]}}"));
        assert!(said.contains("write 64 without []"), "{said}");
    }
    let made = ops("- NormalizeImage: {order: '', channel_num: 4}");
    assert!(made.contains(&ZeroChannel {}.into()), "{made:?}");
    let text = "- Pad: {padding: 10}\n- RandomCrop: {size: [6, 8], pad_if_needed: False}";
    let (made, said) = (ops(text), notes(text));
    let size = Size {
        height: 8,
        width: 6,
    };
    assert!(made.contains(&RandomCrop::new(size).into()), "{made:?}");
    assert!(
        said.contains("AttributeError") && said.contains("NameError"),
        "{said}"
    );
}
