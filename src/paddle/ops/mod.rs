//! PaddleClas' `transform_ops` as operations of a recipe: which name is read by
//! what. The meaning is that of PaddleClas' CPU path.
//!
//! - `decode`, `shape`, `pad`, `normalise`, `erase`, `jitter`, `augment`: one function
//!   a name, from its parameters to operations;
//! - `held`: what PaddleClas has in hand between them; `multi_scale`: whose sizes count.
//!
//! Never here: what operations do to pixels, or whether they fit together; that is
//! the recipe's.

mod augment;
mod decode;
mod erase;
mod held;
mod jitter;
mod multi_scale;
mod normalise;
mod pad;
mod shape;
#[cfg(test)]
mod tests;

use super::dataset::LabelKey;
use super::note::Notes;
use super::params::{Params, Read};
use crate::recipe::file::{Key, Mistake, Node, Position, Value, nearest};
use crate::recipe::{Cast, ColorOrder, Dtype, Interpolation, Layout, MemoryLayout, Op};
use held::Held;
use multi_scale::Sizes;

/// An operation that `--skip-unknown-ops` left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub name: String,
    /// Line of the config, from 1.
    pub line: u64,
}

/// The operations so far, and what is known behind them.
pub(super) struct Pipe<'n> {
    pub(super) ops: Vec<Op>,
    /// Line of each.
    pub(super) lines: Vec<u64>,
    notes: &'n mut Notes,
    line: u64,
    sizes: Sizes,
    held: Held,
    /// CustomLabelDataset: whose draw is the label.
    label_key: Option<LabelKey<'n>>,
    color: ColorOrder,
    values: Values,
    chw: bool,
    /// By ToTensor: operations know its order of axes.
    tensor: bool,
    dtype: Dtype,
}

/// What the numbers of a picture are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Levels,
    /// ToTensor divided them by 255.
    Parts,
    Normalised,
}

type Translate = fn(&mut Params<'_>, &mut Pipe<'_>) -> Read<()>;

/// Every name that is served.
const NAMES: &[(&str, Translate)] = &[
    ("DecodeImage", decode::image),
    ("ResizeImage", shape::resize_image),
    ("RandCropImage", shape::rand_crop_image),
    ("CropImage", shape::crop_image),
    ("CropImageAtRatio", shape::crop_image_at_ratio),
    ("RandCropImageV2", shape::rand_crop_image_v2),
    ("RandomCropImage", shape::random_crop_image),
    ("RandFlipImage", shape::rand_flip_image),
    ("RandomResizedCrop", shape::random_resized_crop),
    ("RandomHorizontalFlip", shape::random_horizontal_flip),
    ("RandomRotation", shape::random_rotation),
    ("RandomRot90", shape::random_rot90),
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
    ("ColorJitter", jitter::color_jitter),
    ("PCALighting", jitter::pca_lighting),
    ("TimmAutoAugment", augment::timm),
    ("AutoAugment", augment::auto),
    ("RandAugment", augment::rand),
    ("RandAugmentV3", augment::rand_v3),
    ("RandAugmentV4", augment::rand_v4),
    ("AugMix", augment::aug_mix),
];

/// Names that PaddleClas has, and that are not served.
const REFUSED: &[(&str, &str)] = &[
    ("BlurImage", "its draw is the label"),
    ("RandomCrop", "paddle.vision's"),
    ("RandAugmentV2", "progressive"),
    ("RandomApply", "a list of operations with a probability"),
    ("RandomGrayscale", "paddle.vision's"),
    ("HideAndSeek", "erases cells of a grid"),
    ("RandomInterpolationAugment", "resizes down and up"),
    ("Resize", "paddle.vision's"),
    ("CenterCrop", "paddle.vision's"),
];

/// Where pictures come from before the first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// Bytes: DecodeImage must be there.
    No,
    /// By OpenCV.
    Array,
    /// By Pillow: an array of its pixels, or the picture itself.
    Pillow { is_picture: bool },
}

/// How a list is read.
pub(super) struct Rules<'a> {
    pub(super) opened: Opened,
    pub(super) multi_scale: bool,
    pub(super) label_key: Option<LabelKey<'a>>,
    pub(super) skip_unknown: bool,
}

/// The operations of `transform_ops`, the line of each, and what was left out.
pub(super) fn translate(
    list: &Node,
    rules: &Rules<'_>,
    notes: &mut Notes,
    skipped: &mut Vec<Skipped>,
) -> Read<(Vec<Op>, Vec<u64>)> {
    let mut pipe = Pipe {
        ops: Vec::new(),
        lines: Vec::new(),
        notes,
        line: list.at.line as u64,
        sizes: match rules.multi_scale {
            true => Sizes::Awaited,
            false => Sizes::Own,
        },
        held: Held::Array,
        label_key: rules.label_key,
        color: ColorOrder::Rgb,
        values: Values::Levels,
        chw: false,
        tensor: false,
        dtype: Dtype::F32,
    };
    match rules.opened {
        Opened::No => {}
        Opened::Array => pipe.push(decode::by_opencv(ColorOrder::Rgb)),
        Opened::Pillow { is_picture } => {
            if is_picture {
                pipe.held = Held::Picture;
            }
            pipe.push(decode::by_pillow(ColorOrder::Rgb));
        }
    }
    for item in items(list, "transform_ops")? {
        let (key, node) = one_name(item)?;
        pipe.line = key.at.line as u64;
        let Some((_, function)) = NAMES.iter().find(|(name, _)| *name == key.name) else {
            let mistake = not_served(key);
            if rules.skip_unknown {
                skipped.push(Skipped {
                    name: key.name.clone(),
                    line: key.at.line as u64,
                });
                continue;
            }
            return Err(mistake);
        };
        if pipe.ops.is_empty() && key.name != "DecodeImage" {
            return Err(Mistake::new(
                key.at,
                format!(
                    "{} stands where pictures are still files: begin transform_ops with DecodeImage",
                    key.name
                ),
            ));
        }
        let mut params = Params::of(&key.name, key.at, node)?;
        function(&mut params, &mut pipe)?;
        params.done()?;
    }
    if pipe.ops.is_empty() {
        return Err(Mistake::new(list.at, "transform_ops is empty"));
    }
    pipe.check_labels()?;
    pipe.finish().map_err(|e| Mistake::new(list.at, e))?;
    Ok((pipe.ops, pipe.lines))
}

impl Pipe<'_> {
    fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
        self.lines.push(self.line);
    }

    /// Refuses a data set whose labels no operation gives.
    fn check_labels(&self) -> Read<()> {
        let Some(key) = self.label_key else {
            return Ok(());
        };
        if self.ops.iter().any(|op| op.gives_labels().is_some()) {
            return Ok(());
        }
        let name = key.name;
        let text = match shape::ROT90_KEYS.contains(&name) {
            true => format!("label_key: '{name}' is drawn by RandomRot90: add it to transform_ops"),
            false => format!(
                "label_key: '{name}' is not served: {} (RandomRot90's number of quarter turns) is",
                shape::ROT90_KEYS[0]
            ),
        };
        Err(Mistake::new(key.at, text))
    }

    /// The ends that PaddleClas has by itself: a float batch, transposed.
    fn finish(&mut self) -> Result<(), String> {
        self.ends_in_numbers(self.values == Values::Levels)?;
        if self.sizes == Sizes::Awaited {
            return Err(
                "transform_ops has no RandCropImage and no ResizeImage, to which MultiScaleDataset \
                 gives the batch's size"
                    .to_owned(),
            );
        }
        let dtype = match self.values {
            Values::Levels => Dtype::U8,
            Values::Parts | Values::Normalised => self.dtype,
        };
        self.push(Cast { dtype });
        self.push(Layout {
            layout: MemoryLayout::Nchw,
        });
        Ok(())
    }

    /// Refuses what works on levels behind their end.
    fn needs_levels(&self, params: &Params<'_>) -> Read<()> {
        if self.values == Values::Levels && !self.chw {
            return Ok(());
        }
        Err(Mistake::new(
            params.at,
            format!(
                "{} works on levels of height x width x 3, and stands behind what ends them: move \
                 it up",
                params.name
            ),
        ))
    }

    /// Refuses operations on colours where blue comes first: PaddleClas would take
    /// it for red.
    fn needs_rgb(&self, params: &Params<'_>) -> Read<()> {
        self.needs_levels(params)?;
        if self.color == ColorOrder::Rgb {
            return Ok(());
        }
        Err(Mistake::new(
            params.at,
            format!(
                "{} works on red, green, blue, and DecodeImage gives blue first: write to_rgb: True",
                params.name
            ),
        ))
    }

    fn note(&mut self, params: &Params<'_>, text: impl std::fmt::Display) {
        self.notes.at(params.at, format!("{}: {text}", params.name));
    }
}

/// OpenCV or Pillow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    Cv2,
    Pil,
}

fn backend(params: &mut Params<'_>) -> Read<Backend> {
    let Some(name) = params.text("backend")? else {
        return Ok(Backend::Cv2);
    };
    match name.to_ascii_lowercase().as_str() {
        "cv2" => Ok(Backend::Cv2),
        "pil" => Ok(Backend::Pil),
        _ => Err(params.wrong(
            "backend",
            format_args!("backend is '{name}': cv2 or pil are served"),
        )),
    }
}

/// The parameter of this name, which none of PaddleClas' resizes has to have.
fn interpolation(
    params: &mut Params<'_>,
    backend: Backend,
    default: Interpolation,
) -> Read<Interpolation> {
    let Some(name) = params.text("interpolation")? else {
        return Ok(default);
    };
    Ok(match (name.to_ascii_lowercase().as_str(), backend) {
        ("bilinear", _) => Interpolation::Bilinear,
        ("bicubic", _) => Interpolation::Bicubic,
        ("nearest", Backend::Pil) => Interpolation::Nearest,
        ("lanczos", Backend::Pil) => Interpolation::Lanczos,
        (_, backend) => {
            let served = match backend {
                Backend::Cv2 => "bilinear and bicubic are",
                Backend::Pil => "nearest, bilinear, bicubic and lanczos are",
            };
            return Err(params.wrong(
                "interpolation",
                format_args!("interpolation is '{name}': {served} served here"),
            ));
        }
    })
}

/// The elements of a list of operations.
pub(super) fn items<'a>(node: &'a Node, name: &str) -> Read<&'a [Node]> {
    match &node.value {
        Value::List(items) => Ok(items),
        _ => {
            let expected = format!("{name} to be a list of operations");
            Err(Mistake::expected(node.at, &expected, &node.described()))
        }
    }
}

/// An element of a list: one name and its parameters.
pub(super) fn one_name(item: &Node) -> Read<(&Key, &Node)> {
    match &item.value {
        Value::Map(entries) => match entries.as_slice() {
            [(key, node)] => Ok((key, node)),
            [_, (second, _), ..] => Err(Mistake::new(
                second.at,
                format!(
                    "'{}' stands where one name belongs: indent it deeper if it is a parameter",
                    second.name
                ),
            )),
            [] => Err(Mistake::new(item.at, "the name of an operation is missing")),
        },
        _ => {
            let expected = "an operation and its parameters (Name: ...)";
            Err(Mistake::expected(item.at, expected, &item.described()))
        }
    }
}

/// What is said of a name that nothing reads.
fn not_served(key: &Key) -> Mistake {
    let name = &key.name;
    let way = "--skip-unknown-ops leaves it out";
    let text = match REFUSED.iter().find(|(known, _)| known == name) {
        Some((_, what)) => format!("{name} ({what}) is not served: {way}"),
        None => {
            let all: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            match nearest(name, &all) {
                Some(near) => {
                    format!("operation '{name}' is unknown: did you mean '{near}'? {way}")
                }
                None => format!("operation '{name}' is unknown: {way}"),
            }
        }
    };
    Mistake::new(key.at, text)
}

/// Where a mistake that has no better place belongs.
pub(super) fn mistake_at(at: Position, text: impl Into<String>) -> Mistake {
    Mistake::new(at, text)
}
