//! PaddleClas' own sizes, crops and flips.
//!
//! Pairs are width first. OpenCV resizes without antialias, Pillow with.

use super::backend::{Backend, PLAIN_FILTERS, backend, interpolation};
use super::held::Held;
use super::labels::ROT90_KEYS;
use super::pipe::{Pipe, Sizes};
use super::stages;
use crate::configs::paddle::dataset_form::LabelKey;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::{
    Aspect, BoundedResizedCrop, Cast, CenterCrop, Dtype, Interpolation, Op, RandomCrop,
    RandomHorizontalFlip, RandomRotate90, RandomRotation, RandomVerticalFlip, Resize, ResizeTo,
    RotationStyle, Rounding, Size, Span,
};

/// How a resize is done, by the parameters that all of them have.
pub(super) struct Way {
    backend: Backend,
    pub(super) interpolation: Interpolation,
    pub(super) antialias: bool,
}

impl Way {
    const BATCH: Self = Self::of(Backend::Cv2, Interpolation::Bilinear);

    pub(super) const fn of(backend: Backend, interpolation: Interpolation) -> Self {
        Self {
            backend,
            interpolation,
            antialias: matches!(backend, Backend::Pil),
        }
    }
}

impl Pipe<'_> {
    /// A way, and the interpolation that takes its turn for half of the samples.
    fn way_or(&mut self, params: &mut Params<'_>) -> Read<(Way, Option<Interpolation>)> {
        let is_random = matches!(
            params.text("interpolation"),
            Ok(Some(name)) if name.eq_ignore_ascii_case("random")
        );
        if !is_random {
            return Ok((self.way(params)?, None));
        }
        let backend = backend(params)?;
        match backend {
            Backend::Cv2 => self.needs_array(params)?,
            Backend::Pil => self.needs_bytes(params)?,
        }
        let way = Way::of(backend, Interpolation::Bilinear);
        Ok((way, Some(Interpolation::Bicubic)))
    }

    fn way(&mut self, params: &mut Params<'_>) -> Read<Way> {
        let backend = backend(params)?;
        let unsaid = match backend {
            Backend::Cv2 => {
                self.needs_array(params)?;
                Interpolation::Bilinear
            }
            Backend::Pil => {
                self.needs_bytes(params)?;
                Interpolation::Bicubic
            }
        };
        let way = Way::of(backend, interpolation(params, backend, unsaid)?);
        if backend == Backend::Pil && params.node("interpolation").is_none() {
            self.note(
                params,
                "interpolation is not written: bicubic, as in PaddleClas 2.4. Later versions use \
                 bilinear",
            );
        }
        Ok(way)
    }

    /// A resize; bicubic ones of OpenCV lose up to 19 levels where a level stands
    /// between their two passes, so they are done in floats.
    pub(super) fn push_resize(&mut self, op: impl Into<Op>, way: &Way) {
        let float = self.held != Held::Floats
            && !way.antialias
            && way.interpolation == Interpolation::Bicubic;
        if float {
            self.push(Cast { dtype: Dtype::F32 });
        }
        self.push(op);
        if float {
            self.push(Cast { dtype: Dtype::U8 });
        }
    }
}

pub(crate) fn resize_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes == Sizes::Made {
        return pipe.keeps_batch_size(params);
    }
    let (size, way) = if pipe.sizes == Sizes::Awaited {
        let size = pipe.makes_batch_size(params)?;
        pipe.held = Held::Array;
        (ResizeTo::Exact(size), Way::BATCH)
    } else {
        let size = params.width_first("size")?;
        let short = params.whole_above_zero("resize_short")?;
        let returns_array = params.flag("return_numpy", true)?;
        let way = pipe.way(params)?;
        pipe.held = match (way.backend, returns_array) {
            (Backend::Pil, false) => Held::Picture,
            (Backend::Pil, true) => Held::Array,
            (Backend::Cv2, _) => pipe.held,
        };
        let size = match (short, size) {
            (Some(side), _) => ResizeTo::Shorter(side),
            (None, Some(size)) => ResizeTo::Exact(size),
            (None, None) => return Err(params.wrong("size", "needs size or resize_short")),
        };
        (size, way)
    };
    let op = Resize {
        size: Some(size),
        max_size: None,
        interpolation: way.interpolation,
        antialias: way.antialias,
        rounding: match size {
            ResizeTo::Shorter(_) => Rounding::Nearest,
            // There is nothing to round.
            ResizeTo::Exact(_) => Rounding::Down,
        },
    };
    pipe.push_resize(op, &way);
    Ok(())
}

pub(crate) fn rand_crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes != Sizes::Own {
        let size = pipe.makes_batch_size(params)?;
        pipe.push(BoundedResizedCrop::new(size));
        return Ok(());
    }
    stages::progress_size(params, pipe)?;
    let size = params.width_first("size")?;
    let log = params.flag("use_log_aspect", false)?;
    let (way, other) = pipe.way_or(params)?;
    let op = BoundedResizedCrop {
        size: required(params, size)?,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        aspect: if log { Aspect::Log } else { Aspect::Uniform },
        interpolation: way.interpolation,
        interpolation_or: other,
        antialias: way.antialias,
    };
    // Bicubic where half of the samples are: what that needs does no harm to the others.
    let widest = Way::of(way.backend, other.unwrap_or(way.interpolation));
    pipe.push_resize(op, &widest);
    Ok(())
}

pub(crate) fn crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.keeps_stages(params)?;
    if pipe.sizes != Sizes::Own {
        return pipe.keeps_batch_size(params);
    }
    pipe.needs_array(params)?;
    let size = params.width_first("size")?;
    let size = required(params, size)?;
    pipe.push(CenterCrop {
        // A smaller picture leaves PaddleClas a part of another size.
        pad_if_needed: false,
        rounding: Rounding::Down,
        ..CenterCrop::new(size)
    });
    Ok(())
}

/// Of later PaddleClas than the 2.4.0 that the rest is read by.
pub(crate) fn crop_image_at_ratio(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.may_set_size(params)?;
    let required = |params: &mut Params<'_>, name| {
        let value = params.whole(name)?;
        value.ok_or_else(|| params.missing(name))
    };
    let (size, pad) = (required(params, "size")?, required(params, "pad")?);
    let interpolation = interpolation(params, Backend::Cv2, Interpolation::Bilinear)?;
    if size == 0 {
        return Err(params.wrong("size", "size is 0: use at least 1"));
    }
    pipe.push(CenterCrop {
        rounding: Rounding::Down,
        ..CenterCrop::at_ratio(f64::from(size) / (f64::from(size) + f64::from(pad)))
    });
    let way = Way::of(Backend::Cv2, interpolation);
    let op = Resize {
        interpolation: way.interpolation,
        antialias: way.antialias,
        ..Resize::exact(size, size)
    };
    pipe.push_resize(op, &way);
    Ok(())
}

pub(crate) fn rand_crop_image_v2(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.note(
        params,
        "PaddleClas may draw a place one row too low. Here all places lie inside",
    );
    place(params, pipe)
}

pub(crate) fn random_crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_array(params)?;
    place(params, pipe)
}

/// PaddleClas has none; its config for UReID writes the size as its own operations have
/// it, and is meant to train.
pub(crate) fn random_crop(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.note(
        params,
        "PaddleClas does not have it and fails with a NameError. Read as RandomCropImage, whose \
         size is width, height",
    );
    if params.flag("pad_if_needed", false)? {
        return Err(params.wrong(
            "pad_if_needed",
            "pad_if_needed is true: use false, and a Pad before it",
        ));
    }
    random_crop_image(params, pipe)
}

fn place(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    let size = params.width_first("size")?;
    let size = required(params, size)?;
    pipe.push(RandomCrop::new(size));
    Ok(())
}

pub(crate) fn rand_flip_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    let code = params.number_or("flip_code", 1.0)?;
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    if code != 1.0 && matches!(pipe.held, Held::Picture | Held::Either) {
        // Of Pillow's pictures PaddleClas looks at no code.
        if !pipe.holds_picture(params)? || ![0.0, -1.0].contains(&code) {
            return Err(params.wrong("flip_code", format_args!("flip_code is {code}: use 1")));
        }
        pipe.note(
            params,
            "PaddleClas flips Pillow pictures left to right for every flip_code. So does \
             featherload",
        );
        pipe.push(RandomHorizontalFlip { p: 0.5 });
        return Ok(());
    }
    match code {
        1.0 => pipe.push(RandomHorizontalFlip { p: 0.5 }),
        0.0 => pipe.push(RandomVerticalFlip { p: 0.5 }),
        _ => {
            return Err(params.wrong(
                "flip_code",
                format_args!("flip_code is {code}: use 1 (left and right) or 0"),
            ));
        }
    }
    Ok(())
}

/// paddle.vision's, with a probability: by OpenCV of arrays.
pub(crate) fn random_rotation(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["keys"]);
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let p = params.chance("prob", 0.5)?;
    let degrees = match params.numbers("degrees")?.as_deref() {
        None => Span(-90.0, 90.0),
        Some(&[most]) if most >= 0.0 => Span(-most, most),
        Some(&[low, high]) => Span(low, high),
        _ => {
            return Err(params.wrong("degrees", "degrees must be 0 or more, or [lowest, highest]"));
        }
    };
    let interpolation = params.choice("interpolation", &PLAIN_FILTERS)?;
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.push(RandomRotation {
        interpolation: interpolation.unwrap_or(Interpolation::Bilinear),
        p,
        style: RotationStyle::Opencv,
        ..RandomRotation::new(degrees)
    });
    Ok(())
}

/// NumPy's `rot90` by 0 to 3.
pub(crate) fn random_rot90(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    let is_label = |key: LabelKey<'_>| ROT90_KEYS.contains(&key.name);
    let label = pipe.label_key.is_some_and(is_label);
    pipe.needs_array(params)?;
    // Stages have squares, which stay as they are.
    if pipe.stages.is_empty() {
        pipe.may_set_size(params)?;
    }
    pipe.push(RandomRotate90 { label });
    Ok(())
}

pub(crate) fn random_horizontal_flip(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    params.ignore(&["keys"]);
    let p = params.chance("prob", 0.5)?;
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    if p > 0.0 {
        pipe.push(RandomHorizontalFlip { p });
    }
    Ok(())
}

pub(crate) fn required(params: &Params<'_>, size: Option<Size>) -> Read<Size> {
    size.ok_or_else(|| params.missing("size"))
}
