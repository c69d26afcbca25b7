//! Borders: PaddleClas' by Pillow or OpenCV, paddle.vision's, and those that fill a
//! picture up to a size.

use super::held::Held;
use super::shape::required;
use super::{Backend, Params, Pipe, Read, backend};
use crate::recipe::{Pad, Padding, PaddingMode, PerChannel, Size};

pub(super) fn plain(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    let width = params.whole_or("padding", 0)?;
    let fill = level(params, "fill", 0.0)?;
    // Read by neither of PaddleClas' two backends: the border is always constant.
    params.ignore(&["padding_mode"]);
    // Pillow where nobody says, other than of resizes.
    match params.given(&["backend"]) && backend(params)? == Backend::Cv2 {
        true => pipe.needs_array(params)?,
        false => pipe.needs_picture(params, "write backend: cv2")?,
    }
    pipe.push_pad(Padding::from(width), fill, PaddingMode::Constant);
    Ok(())
}

pub(super) fn paddle_vision(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    params.ignore(&["keys"]);
    let width = params.whole_or("padding", 0)?;
    let is_list = params.is_list("fill");
    let mut fill = level(params, "fill", 0.0)?;
    // One number is the first channel's, to Pillow as to OpenCV.
    if !is_list {
        fill = [fill[0], 0.0, 0.0];
    }
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
pub(super) fn to_size(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.may_set_size(params)?;
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
    pipe.held = Held::Floats;
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
