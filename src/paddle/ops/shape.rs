//! Sizes, crops, flips and borders.
//!
//! PaddleClas' pairs are width first, but for paddle.vision's. OpenCV resizes
//! without antialias, Pillow with.

use super::{Backend, LabelKey, Params, Pipe, Read, Values, backend, interpolation};
use crate::recipe::{
    Aspect, BoundedResizedCrop, Cast, CenterCrop, Dtype, Interpolation, Op, Pad, Padding,
    PaddingMode, PerChannel, RandomCrop, RandomHorizontalFlip, RandomResizedCrop, RandomRotate90,
    RandomRotation, RandomVerticalFlip, Resize, ResizeTo, RotationStyle, Rounding, Size, Span,
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

    /// A resize; bicubic ones of OpenCV lose up to 19 levels where a level stands
    /// between their two passes, so they are done in floats.
    fn push_resize(&mut self, op: impl Into<Op>, way: &Way) {
        let float = !way.antialias && way.interpolation == Interpolation::Bicubic;
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
    pipe.size = match size {
        ResizeTo::Exact(size) => Some(size),
        ResizeTo::Shorter(_) => None,
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
    pipe.size = Some(op.size);
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
    pipe.size = Some(size);
    pipe.push(CenterCrop {
        size,
        rounding: Rounding::Down,
    });
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
    pipe.size = Some(size);
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
    pipe.size = Some(size);
    pipe.push_resize(op, &way);
    Ok(())
}

/// paddle.vision's, with a probability: by OpenCV of arrays.
pub(super) fn random_rotation(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["keys"]);
    if pipe.is_picture {
        return Err(params.wrong(
            "",
            "turns arrays, and backend: pil of the data set gives Pillow's pictures: leave backend \
             out",
        ));
    }
    let p = params.chance("prob", 0.5)?;
    let degrees = match params.numbers("degrees")?.as_deref() {
        None => Span(-90.0, 90.0),
        Some(&[most]) if most >= 0.0 => Span(-most, most),
        Some(&[low, high]) => Span(low, high),
        _ => {
            return Err(params.wrong("degrees", "degrees must be 0 or more, or [lowest, highest]"));
        }
    };
    let interpolation = match params.text("interpolation")? {
        Some("nearest") => Interpolation::Nearest,
        None | Some("bilinear") => Interpolation::Bilinear,
        Some("bicubic") => Interpolation::Bicubic,
        Some(other) => {
            return Err(params.wrong(
                "interpolation",
                format_args!(
                    "interpolation is '{other}': nearest, bilinear and bicubic are served"
                ),
            ));
        }
    };
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it never happens: left out");
        return Ok(());
    }
    pipe.push(RandomRotation {
        interpolation,
        p,
        style: RotationStyle::Opencv,
        ..RandomRotation::new(degrees)
    });
    Ok(())
}

/// What RandomRot90 calls its draw.
pub(super) const ROT90_KEYS: [&str; 2] = ["random_rot90_orientation", "orientation"];

/// NumPy's `rot90` by 0 to 3.
pub(super) fn random_rot90(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    if pipe.chw {
        pipe.needs_levels(params)?;
    }
    let is_label = |key: LabelKey<'_>| ROT90_KEYS.contains(&key.name);
    let label = pipe.label_key.is_some_and(is_label);
    if pipe.size.is_some_and(|size| size.height != size.width) {
        pipe.size = None;
    }
    pipe.push(RandomRotate90 { label });
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

pub(super) fn pad(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    let width = params.whole_or("padding", 0)?;
    let fill = level(params, "fill", 0.0)?;
    // Read by neither of PaddleClas' two backends: the border is always constant.
    params.ignore(&["padding_mode"]);
    backend(params)?;
    pipe.push_pad(Padding::from(width), fill, PaddingMode::Constant);
    Ok(())
}

pub(super) fn pad_paddle_vision(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["keys"]);
    let width = params.whole_or("padding", 0)?;
    let fill = level(params, "fill", 0.0)?;
    let mode = match params.text("padding_mode")? {
        None | Some("constant") => PaddingMode::Constant,
        Some("edge") => PaddingMode::Edge,
        Some("reflect") => PaddingMode::Reflect,
        Some(other) => {
            return Err(params.wrong(
                "padding_mode",
                format_args!("padding_mode is '{other}': constant, edge and reflect are served"),
            ));
        }
    };
    pipe.push_pad(Padding::from(width), fill, mode);
    Ok(())
}

/// To a size, where the size before is known: then it is a border.
pub(super) fn pad_v2(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    params.ignore(&["size_divisor"]);
    let size = params.width_first("size")?;
    let to = required(params, size)?;
    let fill = level(params, "fill_value", 127.5)?;
    let Some(from) = pipe.size else {
        return Err(params.wrong(
            "size",
            "pads to a size, and pictures have sizes of their own here: put a ResizeImage with \
             a size in front",
        ));
    };
    if from.height > to.height || from.width > to.width {
        return Err(params.wrong(
            "size",
            format_args!("pads to {to} (height x width), and pictures are {from} already"),
        ));
    }
    let (x, y) = (to.width - from.width, to.height - from.height);
    let mode = params.number_or("pad_mode", 0.0)?;
    let offsets = params.numbers("offsets")?;
    let (left, top) = match (mode, offsets.as_deref()) {
        (0.0, _) => (0, 0),
        (1.0, _) => (x / 2, y / 2),
        (2.0, _) => (x, y),
        (-1.0, Some(&[left, top]))
            if (0.0..=f64::from(x)).contains(&left)
                && (0.0..=f64::from(y)).contains(&top)
                && left.fract() == 0.0
                && top.fract() == 0.0 =>
        {
            (left as u32, top as u32)
        }
        _ => {
            return Err(params.wrong(
                "pad_mode",
                format_args!(
                    "pad_mode is {mode}: 0, 1, 2, or -1 with offsets [left, top] that leave room \
                     for {from} in {to} are served"
                ),
            ));
        }
    };
    let padding = Padding {
        left,
        top,
        right: x - left,
        bottom: y - top,
    };
    pipe.push_pad(padding, fill, PaddingMode::Constant);
    Ok(())
}

impl Pipe<'_> {
    fn push_pad(&mut self, padding: Padding, fill: [f32; 3], mode: PaddingMode) {
        let grown = |size: Size| {
            let height = size.height.saturating_add(padding.top);
            let width = size.width.saturating_add(padding.left);
            Size {
                height: height.saturating_add(padding.bottom),
                width: width.saturating_add(padding.right),
            }
        };
        self.size = self.size.map(grown);
        self.push(Pad {
            padding,
            fill: PerChannel(fill),
            padding_mode: mode,
        });
    }

    /// The size that the sampler replaces.
    fn placeholder(&self, written: Option<Size>) -> Size {
        debug_assert!(self.values == Values::Levels);
        written.unwrap_or(Size::from(224))
    }
}

fn required(params: &Params<'_>, size: Option<Size>) -> Read<Size> {
    size.ok_or_else(|| params.wrong("size", "'size' is missing, and has no default"))
}

/// A colour of whole levels.
fn level(params: &mut Params<'_>, name: &'static str, default: f64) -> Read<[f32; 3]> {
    let colour = params.colour(name)?.unwrap_or([default; 3]);
    match colour
        .iter()
        .find(|v| v.fract() != 0.0 || !(0.0..=255.0).contains(*v))
    {
        None => Ok(colour.map(|v| v as f32)),
        Some(v) => Err(params.wrong(
            name,
            format_args!("{name} is {v}: whole levels of 0 to 255 are served"),
        )),
    }
}
