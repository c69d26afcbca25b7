//! Random colour changes: paddle.vision's ColorJitter on Pillow images, and colour noise.

use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{ColorJitter, JitterStyle, PcaLighting, Span};

pub(crate) fn color_jitter(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    params.ignore(&["keys"]);
    // The default, 2, means always.
    let p = params.probability("prob", 2.0)?;
    jitter(params, pipe, p)
}

/// paddle.vision's own ColorJitter.
pub(crate) fn raw_color_jitter(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    params.ignore(&["keys"]);
    jitter(params, pipe, 1.0)
}

fn jitter(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>, p: f64) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    let op = ColorJitter {
        brightness: around_one(params, "brightness")?,
        contrast: around_one(params, "contrast")?,
        saturation: around_one(params, "saturation")?,
        hue: around_zero(params)?,
        p,
        random_order: true,
        style: JitterStyle::Pillow,
    };
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.needs_bytes(params)?;
    pipe.form = match pipe.form {
        // If it does not run, the form before it stays.
        ImageForm::Picture | ImageForm::Either if p < 1.0 => ImageForm::Either,
        _ => ImageForm::Array,
    };
    pipe.push(op);
    Ok(())
}

/// paddle.vision's `to_grayscale` on Pillow images: Pillow's `L` in three channels, which equals
/// saturation 0.
pub(crate) fn random_grayscale(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_picture(
        params,
        "write backend: pil in the data set, or to_np: False and backend: pil in DecodeImage",
    )?;
    let p = params.probability("p", 0.1)?;
    if p == 0.0 {
        pipe.note(params, "p is 0, so it is left out");
        return Ok(());
    }
    pipe.push(ColorJitter {
        saturation: Span(0.0, 0.0),
        p,
        style: JitterStyle::Pillow,
        ..ColorJitter::default()
    });
    Ok(())
}

/// Its numbers are made for colours of 0 to 1, so the noise is only some hundredths of a level. The
/// same as in PaddleClas.
pub(crate) fn pca_lighting(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_array(params)?;
    pipe.note(
        params,
        "PaddleClas adds noise for colours of 0 to 1 to levels of 0 to 255, a 255th of what was \
         meant. So does featherload",
    );
    pipe.becomes_floats();
    pipe.push(PcaLighting {
        unit: 1.0,
        ..PcaLighting::default()
    });
    Ok(())
}

fn around_one(params: &mut ConfigParams<'_>, name: &'static str) -> ConfigResult<Span> {
    match params.numbers(name)?.as_deref() {
        None => Ok(Span(1.0, 1.0)),
        Some(&[b]) if b >= 0.0 => Ok(Span((1.0 - b).max(0.0), 1.0 + b)),
        Some(&[low, high]) => Ok(Span(low, high)),
        _ => Err(params.mistake_at(
            name,
            format_args!("{name} must be 0 or more, or [low, high]"),
        )),
    }
}

fn around_zero(params: &mut ConfigParams<'_>) -> ConfigResult<Span> {
    match params.numbers("hue")?.as_deref() {
        None | Some(&[0.0]) => Ok(Span(0.0, 0.0)),
        Some(&[h]) if h > 0.0 => Ok(Span(-h, h)),
        Some(&[low, high]) => Ok(Span(low, high)),
        _ => Err(params.mistake_at("hue", "hue must be 0 to 0.5, or [low, high]")),
    }
}
