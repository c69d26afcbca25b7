//! Sizes and crops that are classes of paddle.vision.transforms: Pillow for Pillow images, OpenCV
//! for arrays. Pairs are height first.

use super::backend::{ResizeBackend, interpolation};
use super::op_pipeline::OpPipeline;
use super::shape::{ResizeMethod, required};
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{
    CenterCrop, InterpolationMode, LengthRounding, RandomResizedCrop, Resize, ResizeTo, Span,
};

fn resize_method(
    params: &mut ConfigParams<'_>,
    pipe: &OpPipeline<'_>,
) -> ConfigResult<ResizeMethod> {
    let backend = match pipe.holds_picture(params)? {
        true => ResizeBackend::Pil,
        false => ResizeBackend::Cv2,
    };
    let filter = interpolation(params, backend, InterpolationMode::Bilinear)?;
    Ok(ResizeMethod::of(backend, filter))
}

/// A single number is the shorter side. The longer side is truncated to a whole number.
pub(crate) fn resize(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    params.ignore(&["keys"]);
    let size = match params.is_list("size") {
        true => params.height_first("size")?.map(ResizeTo::Exact),
        false => params.whole_above_zero("size")?.map(ResizeTo::Shorter),
    };
    let Some(size) = size else {
        return Err(params.missing("size"));
    };
    let method = resize_method(params, pipe)?;
    let op = Resize {
        size: Some(size),
        max_size: None,
        interpolation: method.interpolation,
        antialias: method.antialias,
        rounding: LengthRounding::Down,
    };
    pipe.push_resize(op, &method);
    Ok(())
}

/// Half of an odd margin is rounded to an even number, as in torchvision. A smaller image is
/// rejected: an array would give a part of another size, and Pillow's border differs from
/// torchvision's.
pub(crate) fn center_crop(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    params.ignore(&["keys"]);
    let size = params.height_first("size")?;
    pipe.push(CenterCrop {
        pad_if_needed: false,
        ..CenterCrop::new(required(params, size)?)
    });
    Ok(())
}

/// The same distribution as torchvision.
pub(crate) fn random_resized_crop(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    params.ignore(&["keys"]);
    let size = params.height_first("size")?;
    let size = required(params, size)?;
    let method = resize_method(params, pipe)?;
    let op = RandomResizedCrop {
        size,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        interpolation: method.interpolation,
        interpolation_or: None,
        antialias: method.antialias,
    };
    pipe.push_resize(op, &method);
    Ok(())
}
