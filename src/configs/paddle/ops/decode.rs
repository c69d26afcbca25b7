//! From files to pixels. OpenCV applies the EXIF orientation, Pillow's `open` does not. Both drop
//! alpha, while featherload composites it by default.

use super::backend::{ResizeBackend, backend};
use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{
    AlphaMode, BackgroundColor, ColorOrder, Decode, DecodeMode, OrientationMode, TruncationPolicy,
};

pub(crate) fn by_opencv(color: ColorOrder) -> Decode {
    Decode {
        color,
        mode: Some(DecodeMode::Full),
        background: BackgroundColor::default(),
        orientation: OrientationMode::Exif,
        alpha: AlphaMode::Drop,
        truncated: TruncationPolicy::Refuse,
    }
}

pub(crate) fn by_pillow(color: ColorOrder) -> Decode {
    Decode {
        orientation: OrientationMode::Stored,
        ..by_opencv(color)
    }
}

pub(crate) fn image(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    let to_rgb = params.flag("to_rgb", true)?;
    let to_np = params.flag("to_np", true)?;
    let backend = backend(params)?;
    if params.flag("channel_first", false)? {
        return Err(params.mistake_at(
            "channel_first",
            "channel_first is true, and the operations after it need false",
        ));
    }
    if !pipe.ops.is_empty() {
        return Err(params.mistake_at("", "comes after an operation that decodes: remove it"));
    }
    // Without conversion, Pillow's image is RGB and OpenCV's array is BGR.
    let is_rgb = match (to_np, backend) {
        (true, _) => to_rgb,
        (false, ResizeBackend::Pil) => true,
        (false, ResizeBackend::Cv2) => false,
    };
    pipe.color = if is_rgb {
        ColorOrder::Rgb
    } else {
        ColorOrder::Bgr
    };
    pipe.form = match (to_np, backend) {
        (false, ResizeBackend::Pil) => ImageForm::Picture,
        _ => ImageForm::Array,
    };
    pipe.push(match backend {
        ResizeBackend::Cv2 => by_opencv(pipe.color),
        ResizeBackend::Pil => by_pillow(pipe.color),
    });
    Ok(())
}
