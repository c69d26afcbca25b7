//! What stands around a picture.

use super::{Params, Pipe, Read, backend};
use crate::paddle::params::channels;
use crate::recipe::{Anchor, Cast, Dtype, Pad, PadTo, Padding, PaddingMode, PerChannel, Size};

pub(super) fn pad(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_bytes(params)?;
    let width = params.whole_or("padding", 0)?;
    let fill = level(params, "fill", 0.0)?;
    // Read by neither of PaddleClas' two backends: the border is always constant.
    params.ignore(&["padding_mode"]);
    backend(params)?;
    pipe.push(Pad {
        padding: Padding::from(width),
        fill: PerChannel(fill),
        padding_mode: PaddingMode::Constant,
    });
    Ok(())
}

pub(super) fn pad_paddle_vision(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_bytes(params)?;
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
    pipe.push(Pad {
        padding: Padding::from(width),
        fill: PerChannel(fill),
        padding_mode: mode,
    });
    Ok(())
}

/// To a size, or to the next multiples of a number. It leaves floats, whatever it
/// pads: the operations behind it work on those.
pub(super) fn pad_v2(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    if pipe.is_picture {
        return Err(params.wrong(
            "",
            "works on arrays, and DecodeImage leaves Pillow's picture: write to_np: True",
        ));
    }
    let divisor = params.whole_or("size_divisor", 32)?;
    let size = match params.numbers("size")?.as_deref() {
        Some([]) => None,
        None => {
            pipe.note(
                params,
                "without a size PaddleClas 2.4.0 ends with a TypeError; read as its text says, to \
                 multiples of size_divisor",
            );
            None
        }
        Some(_) => params.width_first("size")?,
    };
    let offsets = params.numbers("offsets")?;
    let mode = params.number_or("pad_mode", 0.0)?;
    let (anchor, offset) = match (mode, offsets.as_deref()) {
        (0.0, _) => (Anchor::TopLeft, None),
        (1.0, _) => (Anchor::Center, None),
        (2.0, _) => (Anchor::BottomRight, None),
        (-1.0, Some(&[left, top])) if is_place(left) && is_place(top) => {
            (Anchor::TopLeft, Some([left as u32, top as u32]))
        }
        _ => {
            return Err(params.wrong(
                "pad_mode",
                format_args!(
                    "pad_mode is {mode}: 0, 1, 2, or -1 with offsets [left, top] in whole pixels \
                     are served"
                ),
            ));
        }
    };
    let fill = params.colour("fill_value")?.unwrap_or([127.5; 3]);
    pipe.becomes_floats(params);
    pipe.push(PadTo {
        size,
        multiple_of: size.is_none().then(|| Size::from(divisor)),
        anchor,
        offset,
        fill: channels(fill),
        padding_mode: PaddingMode::Constant,
    });
    Ok(())
}

fn is_place(v: f64) -> bool {
    v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v)
}

impl Pipe<'_> {
    fn becomes_floats(&mut self, params: &Params<'_>) {
        if self.floats.is_none() {
            self.floats = Some(params.at);
            self.push(Cast { dtype: Dtype::F32 });
        }
    }
}

/// A colour of whole levels.
pub(super) fn level(params: &mut Params<'_>, name: &'static str, default: f64) -> Read<[f32; 3]> {
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
