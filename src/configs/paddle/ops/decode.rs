//! From files to pixels. OpenCV turns pictures as EXIF says, Pillow's `open` does
//! not; both drop alpha, where featherload composites it by default.

use super::backend::{Backend, backend};
use super::held::Held;
use super::pipe::Pipe;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::{Alpha, Background, ColorOrder, Decode, DecodeMode, Truncated, Upright};

pub(crate) fn by_opencv(color: ColorOrder) -> Decode {
    Decode {
        color,
        mode: Some(DecodeMode::Full),
        background: Background::default(),
        orientation: Upright::Exif,
        alpha: Alpha::Drop,
        truncated: Truncated::Refuse,
    }
}

pub(crate) fn by_pillow(color: ColorOrder) -> Decode {
    Decode {
        orientation: Upright::Stored,
        ..by_opencv(color)
    }
}

pub(crate) fn image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    let to_rgb = params.flag("to_rgb", true)?;
    let to_np = params.flag("to_np", true)?;
    let backend = backend(params)?;
    if params.flag("channel_first", false)? {
        return Err(params.wrong(
            "channel_first",
            "channel_first is true, and the operations after it need false",
        ));
    }
    if !pipe.ops.is_empty() {
        return Err(params.wrong("", "comes after an operation that decodes: remove it"));
    }
    // A picture that stays Pillow's is RGB; an array that stays OpenCV's is BGR.
    let is_rgb = match (to_np, backend) {
        (true, _) => to_rgb,
        (false, Backend::Pil) => true,
        (false, Backend::Cv2) => false,
    };
    pipe.color = if is_rgb {
        ColorOrder::Rgb
    } else {
        ColorOrder::Bgr
    };
    pipe.held = match (to_np, backend) {
        (false, Backend::Pil) => Held::Picture,
        _ => Held::Array,
    };
    pipe.push(match backend {
        Backend::Cv2 => by_opencv(pipe.color),
        Backend::Pil => by_pillow(pipe.color),
    });
    Ok(())
}
