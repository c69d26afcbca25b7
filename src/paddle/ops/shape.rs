//! Sizes, crops and flips.
//!
//! PaddleClas' pairs are width first, but for paddle.vision's. OpenCV resizes
//! without antialias, Pillow with.

use super::{Backend, Params, Pipe, Read, Values, backend, interpolation, mistake_at};
use crate::recipe::{
    Aspect, BoundedResizedCrop, Cast, CenterCrop, Dtype, Interpolation, Op, RandomCrop,
    RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize, ResizeTo, Rounding, Size,
    Span,
};

/// What OpenCV and Pillow do when nobody says.
fn unsaid(backend: Backend) -> Interpolation {
    match backend {
        Backend::Cv2 => Interpolation::Bilinear,
        Backend::Pil => Interpolation::Bicubic,
    }
}

/// How a resize is done, by the parameters that all of them have.
struct Way {
    interpolation: Interpolation,
    antialias: bool,
}

impl Pipe<'_> {
    /// Of MultiScaleDataset, which drops every parameter but the size.
    fn way(&mut self, params: &mut Params<'_>) -> Read<Way> {
        let backend = backend(params)?;
        if backend == Backend::Pil {
            self.needs_bytes(params)?;
        }
        let way = Way {
            interpolation: interpolation(params, backend, unsaid(backend))?,
            antialias: backend == Backend::Pil,
        };
        if !self.multi_scale {
            return Ok(way);
        }
        Ok(Way {
            interpolation: Interpolation::Bilinear,
            antialias: false,
        })
    }

    /// MultiScaleDataset keeps nothing of these operations but their names.
    fn drops_parameters(&mut self, params: &Params<'_>, others: bool) -> bool {
        if self.multi_scale && others {
            self.note(
                params,
                "MultiScaleDataset takes the size from the sampler and drops every other \
                 parameter: bilinear by OpenCV, uniform aspect",
            );
        }
        self.multi_scale
    }

    /// A resize; bicubic ones of OpenCV would be off by tens of levels where a level,
    /// clipped, stood between their two passes, so they are done in floats: within a
    /// level of OpenCV's, as `tests/paddle_opencv.rs` says.
    fn push_resize(&mut self, op: impl Into<Op>, way: &Way) {
        let float =
            self.floats.is_none() && !way.antialias && way.interpolation == Interpolation::Bicubic;
        if float {
            self.push(Cast { dtype: Dtype::F32 });
        }
        self.push(op);
        if float {
            self.push(Cast { dtype: Dtype::U8 });
        }
    }
}

pub(super) fn resize_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    let size = params.width_first("size")?;
    let short = params.whole("resize_short")?.filter(|side| *side > 0);
    params.ignore(&["return_numpy"]);
    let others = params.given(&["resize_short", "interpolation", "backend"]);
    let way = pipe.way(params)?;
    let size = match (short, size) {
        _ if pipe.drops_parameters(params, others) => ResizeTo::Exact(pipe.placeholder(size)),
        (Some(side), _) => ResizeTo::Shorter(side),
        (None, Some(size)) => ResizeTo::Exact(size),
        (None, None) => return Err(params.wrong("size", "needs a size or a resize_short")),
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

pub(super) fn rand_crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    if params.node("progress_size").is_some() {
        return Err(params.wrong("progress_size", "progress_size is not served: leave it out"));
    }
    let size = params.width_first("size")?;
    let scale = params.span("scale")?.unwrap_or(Span(0.08, 1.0));
    let ratio = params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0));
    let log = params.flag("use_log_aspect", false)?;
    let others = params.given(&[
        "scale",
        "ratio",
        "use_log_aspect",
        "interpolation",
        "backend",
    ]);
    let way = pipe.way(params)?;
    let op = match pipe.drops_parameters(params, others) {
        true => BoundedResizedCrop::new(pipe.placeholder(size)),
        false => BoundedResizedCrop {
            size: required(params, size)?,
            scale,
            ratio,
            aspect: if log { Aspect::Log } else { Aspect::Uniform },
            interpolation: way.interpolation,
            antialias: way.antialias,
        },
    };
    pipe.push_resize(op, &way);
    Ok(())
}

pub(super) fn crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    let size = params.width_first("size")?;
    let size = match pipe.drops_parameters(params, false) {
        true => pipe.placeholder(size),
        false => required(params, size)?,
    };
    pipe.push(CenterCrop {
        rounding: Rounding::Down,
        ..CenterCrop::new(size)
    });
    Ok(())
}

/// Of later PaddleClas than the 2.4.0 that the rest is read by.
pub(super) fn crop_image_at_ratio(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    let required = |params: &mut Params<'_>, name| {
        let value = params.whole(name)?;
        value.ok_or_else(|| {
            params.wrong(
                name,
                format_args!("'{name}' is missing, and has no default"),
            )
        })
    };
    let (size, pad) = (required(params, "size")?, required(params, "pad")?);
    let interpolation = interpolation(params, Backend::Cv2, Interpolation::Bilinear)?;
    if size == 0 {
        return Err(params.wrong("size", "size is 0, it must be at least 1"));
    }
    if pipe.multi_scale {
        return Err(mistake_at(
            params.at,
            "CropImageAtRatio: MultiScaleDataset does not size it, so rows would keep its own \
             size: take RandCropImage, ResizeImage or CropImage",
        ));
    }
    pipe.push(CenterCrop {
        rounding: Rounding::Down,
        ..CenterCrop::at_ratio(f64::from(size) / (f64::from(size) + f64::from(pad)))
    });
    let way = Way {
        interpolation,
        antialias: false,
    };
    let op = Resize {
        interpolation: way.interpolation,
        antialias: way.antialias,
        ..Resize::exact(size, size)
    };
    pipe.push_resize(op, &way);
    Ok(())
}

pub(super) fn rand_crop_image_v2(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.note(
        params,
        "PaddleClas draws one place too many, which lacks a row; here all places lie inside",
    );
    place(params, pipe)
}

pub(super) fn random_crop_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    place(params, pipe)
}

fn place(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    let size = params.width_first("size")?;
    let size = required(params, size)?;
    pipe.push(RandomCrop::new(size));
    Ok(())
}

pub(super) fn rand_flip_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    let code = params.number_or("flip_code", 1.0)?;
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    match code {
        1.0 => pipe.push(RandomHorizontalFlip { p: 0.5 }),
        0.0 => pipe.push(RandomVerticalFlip { p: 0.5 }),
        _ => {
            return Err(params.wrong(
                "flip_code",
                format_args!("flip_code is {code}: 1 (left and right) and 0 are served"),
            ));
        }
    }
    Ok(())
}

/// paddle.vision's: torchvision's law, by OpenCV for arrays.
pub(super) fn random_resized_crop(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["keys"]);
    let size = params.height_first("size")?;
    let size = required(params, size)?;
    let backend = match pipe.is_picture {
        true => Backend::Pil,
        false => Backend::Cv2,
    };
    let way = Way {
        interpolation: interpolation(params, backend, Interpolation::Bilinear)?,
        antialias: pipe.is_picture,
    };
    let op = RandomResizedCrop {
        size,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        interpolation: way.interpolation,
        antialias: way.antialias,
    };
    pipe.push_resize(op, &way);
    Ok(())
}

pub(super) fn random_horizontal_flip(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
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

impl Pipe<'_> {
    /// The size that the sampler replaces.
    fn placeholder(&self, written: Option<Size>) -> Size {
        debug_assert!(self.values == Values::Levels);
        written.unwrap_or(Size::from(224))
    }
}

fn required(params: &Params<'_>, size: Option<Size>) -> Read<Size> {
    size.ok_or_else(|| params.wrong("size", "'size' is missing, and has no default"))
}
