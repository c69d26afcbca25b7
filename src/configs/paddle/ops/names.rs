//! The names of all PaddleClas operations with the functions that translate them, and the
//! translation of a list.

use super::image_form::ImageForm;
use super::op_pipeline::{OpPipeline, SizeSource, ValueScale};
use super::{apply, augment, blur, decode, erase, jitter, normalise, pad, paddle_vision, shape};
use crate::configs::paddle::dataset_config::{ImageOpener, LabelKey};
use crate::configs::paddle::note::{NoteList, SkippedOperation};
use crate::configs::paddle::op_list::{name_and_params, operations_of};
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::file::{MapKey, TextMistake, TreeNode, nearest};
use crate::recipe::{ColorOrder, DataType, Op, Size};

type OpTranslator = fn(&mut ConfigParams<'_>, &mut OpPipeline<'_>) -> ConfigResult<()>;

/// All supported names.
const NAMES: &[(&str, OpTranslator)] = &[
    ("DecodeImage", decode::image),
    ("ResizeImage", shape::resize_image),
    ("Resize", paddle_vision::resize),
    ("CenterCrop", paddle_vision::center_crop),
    ("RandCropImage", shape::rand_crop_image),
    ("CropImage", shape::crop_image),
    ("CropImageAtRatio", shape::crop_image_at_ratio),
    ("RandCropImageV2", shape::rand_crop_image_v2),
    ("RandomCropImage", shape::random_crop_image),
    ("RandFlipImage", shape::rand_flip_image),
    ("RandomResizedCrop", paddle_vision::random_resized_crop),
    ("RandomHorizontalFlip", shape::random_horizontal_flip),
    ("RandomRotation", shape::random_rotation),
    ("RandomRot90", shape::random_rot90),
    ("RandomCrop", shape::random_crop),
    ("Pad", pad::plain),
    ("Padv2", pad::pad_v2),
    ("Pad_paddle_vision", pad::paddle_vision),
    ("NormalizeImage", normalise::image),
    ("Normalize", normalise::plain),
    ("ToTensor", normalise::to_tensor),
    ("ToCHWImage", normalise::to_chw),
    ("RandomErasing", erase::random_erasing),
    ("Cutout", erase::cutout),
    ("CropWithPadding", erase::crop_with_padding),
    ("GridMask", erase::grid_mask),
    ("HideAndSeek", erase::hide_and_seek),
    ("BlurImage", blur::blur_image),
    ("RandomInterpolationAugment", blur::random_interpolation),
    ("RandomGrayscale", jitter::random_grayscale),
    ("ColorJitter", jitter::color_jitter),
    ("RawColorJitter", jitter::raw_color_jitter),
    ("RandomApply", apply::random_apply),
    ("PCALighting", jitter::pca_lighting),
    ("TimmAutoAugment", augment::timm),
    ("AutoAugment", augment::auto),
    ("RandAugment", augment::rand),
    ("RandAugmentV2", augment::rand_v2),
    ("RandAugmentV3", augment::rand_v3),
    ("RandAugmentV4", augment::rand_v4),
    ("AugMix", augment::aug_mix),
];

/// Settings for reading a list.
pub(crate) struct OpListRules<'a> {
    pub(crate) opener: ImageOpener,
    pub(crate) multi_scale: bool,
    pub(crate) label_key: Option<LabelKey<'a>>,
    pub(crate) skip_unknown: bool,
    /// Whether the stages of the training set their own sizes.
    pub(crate) progressive: bool,
}

/// The result of translating `transform_ops`.
pub(crate) struct TranslatedOps {
    pub(crate) ops: Vec<Op>,
    /// Line of each operation.
    pub(crate) lines: Vec<u64>,
    /// The size of each stage. Empty: no stages.
    pub(crate) stages: Vec<Size>,
}

/// Translates `transform_ops`.
pub(crate) fn translate(
    list: &TreeNode,
    rules: &OpListRules<'_>,
    notes: &mut NoteList,
    skipped: &mut Vec<SkippedOperation>,
) -> ConfigResult<TranslatedOps> {
    let mut pipe = OpPipeline {
        ops: Vec::new(),
        lines: Vec::new(),
        notes,
        line: list.at.line as u64,
        sizes: match rules.multi_scale {
            true => SizeSource::BatchPending,
            false => SizeSource::Own,
        },
        form: ImageForm::Array,
        label_key: rules.label_key,
        color: ColorOrder::Rgb,
        values: ValueScale::Levels,
        chw: false,
        tensor: false,
        zero_channel: false,
        dtype: DataType::F32,
        progressive: rules.progressive,
        stages: Vec::new(),
        read: inner,
    };
    match rules.opener {
        ImageOpener::Undecoded => {}
        ImageOpener::Array => pipe.push(decode::by_opencv(ColorOrder::Rgb)),
        ImageOpener::Pillow { is_picture } => {
            if is_picture {
                pipe.form = ImageForm::Picture;
            }
            pipe.push(decode::by_pillow(ColorOrder::Rgb));
        }
    }
    for item in operations_of(list, "transform_ops")? {
        let (key, node) = name_and_params(item)?;
        pipe.line = key.at.line as u64;
        let Some((_, function)) = NAMES.iter().find(|(name, _)| *name == key.name) else {
            let mistake = unsupported(key);
            if rules.skip_unknown {
                skipped.push(SkippedOperation::of(key));
                continue;
            }
            return Err(mistake);
        };
        if pipe.ops.is_empty() && key.name != "DecodeImage" {
            return Err(key.at.mistake(format!(
                "{} comes before the images are decoded: begin transform_ops with \
                     DecodeImage",
                key.name
            )));
        }
        read(function, key, node, &mut pipe)?;
    }
    if pipe.ops.is_empty() {
        return Err(list
            .at
            .mistake("transform_ops is empty: begin with DecodeImage"));
    }
    pipe.check_labels()?;
    pipe.finish().map_err(|e| list.at.mistake(e))?;
    Ok(TranslatedOps {
        ops: pipe.ops,
        lines: pipe.lines,
        stages: pipe.stages,
    })
}

/// Translates a nested operation.
fn inner(item: &TreeNode, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    let (key, node) = name_and_params(item)?;
    match NAMES.iter().find(|(name, _)| *name == key.name) {
        Some((_, function)) => read(function, key, node, pipe),
        None => Err(unsupported(key)),
    }
}

fn read(
    function: &OpTranslator,
    key: &MapKey,
    node: &TreeNode,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let mut params = ConfigParams::of(&key.name, key.at, node)?;
    function(&mut params, pipe)?;
    params.reject_unread()
}

/// The mistake that a name is not supported.
fn unsupported(key: &MapKey) -> TextMistake {
    let name = &key.name;
    let way = "`skip_unknown_ops` skips it, and the pixels change";
    let all: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    let text = match nearest(name, &all) {
        Some(near) => format!("operation '{name}' is unknown: did you mean '{near}'? {way}"),
        None => format!("operation '{name}' is unknown: {way}"),
    };
    key.at.mistake(text)
}
