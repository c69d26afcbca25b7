//! BlurImage, whose drawn value may be the label, and resampling that blurs images.

use super::image_form::ImageForm;
use super::labels::BLUR_KEY;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{RandomBlur, RandomInterpolation};

pub(crate) fn blur_image(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let op = RandomBlur {
        p: params.probability("ratio", 0.5)?,
        gaussian_below: params.whole_or("gaussian_max_ksize", 12)?,
        motion_below: params.whole_or("motion_max_ksize", 12)?,
        motion_angle: params.whole_or("motion_max_angle", 45)?,
        label: pipe.label_key.is_some_and(|key| key.name == BLUR_KEY),
    };
    pipe.push(op);
    pipe.form = ImageForm::Array;
    Ok(())
}

/// It keeps the form of the image.
pub(crate) fn random_interpolation(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.needs_bytes(params)?;
    if !params.given(&["prob"]) {
        return Err(params.missing("prob"));
    }
    let p = params.probability("prob", 0.0)?;
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.push(RandomInterpolation { p });
    Ok(())
}
