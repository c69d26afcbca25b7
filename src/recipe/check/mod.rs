//! The checks of a recipe: every number in its range, every operation on pixels
//! that it can work on.
//!
//! Walks the operations in the written order and keeps what is known of the
//! pixels between them; the first mistake ends the walk.
//!
//! - `shape`, `color`, `ends`: the operations, as in `ops`;
//! - `numbers`: what lies in a range.

mod color;
mod ends;
mod numbers;
mod shape;

use super::augment;
use super::fault::RecipeFault;
use super::ops::{ColorOrder, ColorSpace, Op};
use super::tensor::Dtype;
use super::written::Recipe;
use numbers::probability;

/// Largest side of a picture, pixels: JPEG's own limit.
pub(super) const MAX_SIDE: u32 = 65_535;

/// What the values of a pixel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// 0 to 255.
    Levels,
    /// As `lab` or `hsv` has them.
    Color(ColorSpace),
    /// What `normalize` left.
    Normalized,
}

/// What is known of the pixels at a place of the order, whatever the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    pub(crate) values: Values,
    /// Red, green and blue, or something made of them.
    is_rgb: bool,
    pub(crate) channels: u8,
    /// Blue first.
    pub(crate) bgr: bool,
    /// Held in floats, whatever the values are.
    floats: bool,
    /// Height and width, when every picture has the same here.
    pub(crate) size: Option<(u32, u32)>,
    /// No side is smaller; none = nothing is known of the sides.
    at_least: Option<u32>,
    /// An operation has changed the size of some pictures.
    resized: bool,
}

/// What is known behind the last operation, and of the batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    /// What is known in front of each operation.
    pub(crate) before: Vec<Known>,
    pub(crate) known: Known,
    /// Of the batch.
    pub(crate) dtype: Dtype,
    /// The size of the rows: none = each its own picture's.
    pub(crate) size: Option<(u32, u32)>,
}

/// What divides levels before a mean is taken off.
pub(crate) fn unit(values: Values) -> f32 {
    match values {
        Values::Levels => 255.0,
        Values::Color(_) | Values::Normalized => 1.0,
    }
}

/// Checks every operation.
pub(crate) fn check(recipe: &Recipe) -> Result<Checked, RecipeFault> {
    let decode = recipe.decode();
    let mut known = Known {
        values: Values::Levels,
        is_rgb: true,
        channels: if decode.color == ColorOrder::Grey {
            1
        } else {
            3
        },
        bgr: decode.color == ColorOrder::Bgr,
        floats: false,
        size: None,
        at_least: None,
        resized: false,
    };
    let mut seen = Seen::default();
    let mut before = Vec::new();
    for (i, op) in recipe.ops.iter().enumerate() {
        let fault = |message: String| RecipeFault {
            op: Some(i),
            message: format!("{}: {message}", op.name()),
        };
        seen.note(op, i).map_err(fault)?;
        before.push(known);
        known.follow(op).map_err(fault)?;
    }
    let dtype = seen.dtype.unwrap_or(Dtype::F32);
    known.values.fit(dtype).map_err(|message| RecipeFault {
        op: seen.cast,
        message: format!("cast: {message}"),
    })?;
    if known.size.is_none() && known.resized {
        return Err(RecipeFault {
            op: seen.last_resize,
            message: format!(
                "{} leaves pictures of different sizes, and rows of a batch have one size, or all \
                 their pictures' own: add a center_crop, random_crop or a resize to [height, width] \
                 behind it, or leave it out",
                seen.last_resize
                    .map_or("the recipe", |i| recipe.ops[i].name())
            ),
        });
    }
    Ok(Checked {
        before,
        known,
        dtype,
        size: known.size,
    })
}

/// Operations that may stand once, and where some stood last.
#[derive(Default)]
struct Seen {
    normalize: bool,
    layout: bool,
    label: Option<&'static str>,
    cast: Option<usize>,
    dtype: Option<Dtype>,
    last_resize: Option<usize>,
}

impl Seen {
    fn note(&mut self, op: &Op, at: usize) -> Result<(), String> {
        let twice = |seen: &mut bool| match std::mem::replace(seen, true) {
            true => Err("is written twice: leave one out".to_owned()),
            false => Ok(()),
        };
        if op.gives_labels().is_some()
            && let Some(first) = self.label.replace(op.name())
        {
            return Err(format!(
                "label is true, and {first} in front of it gives the labels: leave one of them out"
            ));
        }
        match op {
            Op::Decode(_) if at > 0 => {
                return Err("is the first operation, and written once: move it to the top".into());
            }
            Op::Normalize(_) => twice(&mut self.normalize)?,
            Op::Layout(_) => twice(&mut self.layout)?,
            Op::Cast(cast) => {
                self.cast = Some(at);
                self.dtype = Some(cast.dtype);
            }
            Op::CenterCrop(o) if o.ratio.is_some() => self.last_resize = Some(at),
            Op::Resize(_)
            | Op::RandomRotation(_)
            | Op::Pad(_)
            | Op::PadTo(_)
            | Op::Rotate90(_)
            | Op::RandomRotate90(_) => self.last_resize = Some(at),
            _ => {}
        }
        Ok(())
    }
}

impl Known {
    /// Checks an operation's numbers, and what it makes of the pixels.
    fn follow(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Decode(_) | Op::Layout(_) => Ok(()),
            Op::Resize(o) => self.resize(o),
            Op::RandomResizedCrop(o) => self.random_resized_crop(o),
            Op::BoundedResizedCrop(o) => self.bounded_resized_crop(o),
            Op::RandomCrop(o) => self.random_crop(o),
            Op::CenterCrop(o) => self.center_crop(o),
            Op::RandomHorizontalFlip(o) => probability(o.p),
            Op::RandomVerticalFlip(o) => probability(o.p),
            Op::RandomRotation(o) => self.random_rotation(o),
            Op::Rotate90(o) => self.rotate90(o),
            Op::RandomRotate90(_) => {
                self.random_rotate90();
                Ok(())
            }
            Op::Pad(o) => self.pad(o),
            Op::PadTo(o) => self.pad_to(o),
            Op::ColorJitter(o) => self.color_jitter(o),
            Op::Grayscale(o) => self.grayscale(o),
            Op::RandomGrayscale(o) => self.random_grayscale(o),
            Op::ConvertColor(o) => self.convert_color(o),
            Op::PcaLighting(o) => self.pca_lighting(o),
            Op::GaussianBlur(o) => self.gaussian_blur(o),
            Op::RandomErasing(o) => self.random_erasing(o),
            Op::CropWithPadding(o) => self.crop_with_padding(o),
            Op::AutoAugment(_)
            | Op::RandAugment(_)
            | Op::TrivialAugment(_)
            | Op::AugMix(_)
            | Op::TimmAugment(_)
            | Op::Cutout(_) => self.is_rgb8().and_then(|()| augment::check(op)),
            Op::Normalize(o) => self.normalize(o),
            Op::Cast(o) => self.cast(o),
        }
    }
}
