//! Augmentation policies.

use super::backend::PLAIN_FILTERS;
use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use super::stages;
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{
    AugMix, AutoAugment, AutoPolicy, ChainDepth, InterpolationMode, RandAugment, RandTable,
    TimmAugment,
};

pub(crate) fn timm(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_bytes(params)?;
    let p = params.probability("prob", 1.0)?;
    let config = params.text("config_str")?.unwrap_or("rand-m9-mstd0.5-inc1");
    if !config.starts_with("rand") {
        return Err(params.mistake_at(
            "config_str",
            format_args!(
                "config_str is '{config}': only policies that begin with rand are supported"
            ),
        ));
    }
    // Only translations in pixels use it, and no `inc` policy has those.
    params.ignore(&["img_size"]);
    let mean = params.colour("mean")?.unwrap_or([0.485, 0.456, 0.406]);
    let drawn = || vec![InterpolationMode::Bilinear, InterpolationMode::Bicubic];
    let interpolation = match params.text("interpolation")? {
        Some("bicubic") => vec![InterpolationMode::Bicubic],
        Some("bilinear") => vec![InterpolationMode::Bilinear],
        Some("random" | "") => drawn(),
        // Null. If the key is absent, bicubic.
        None if params.given(&["interpolation"]) => drawn(),
        None => vec![InterpolationMode::Bicubic],
        Some(other) => {
            return Err(params.mistake_at(
                "interpolation",
                format_args!("interpolation is '{other}': use bilinear, bicubic or random"),
            ));
        }
    };
    // Even if the operation does not run.
    pipe.form = ImageForm::Array;
    if p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.push(TimmAugment {
        config: config.to_owned(),
        p,
        interpolation,
        fill: channels(mean.map(|v| (255.0 * v).round_ties_even().clamp(0.0, 255.0))),
    });
    Ok(())
}

pub(crate) fn auto(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_bytes(params)?;
    if let Some(fill) = params.colour("fillcolor")?
        && fill != [128.0; 3]
    {
        return Err(params.mistake_at("fillcolor", "fillcolor: only 128 is supported"));
    }
    pipe.push(AutoAugment {
        policy: AutoPolicy::Imagenet,
    });
    pipe.form = ImageForm::Array;
    Ok(())
}

/// One of the RandAugment versions. `of` has its defaults.
fn layers(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
    of: RandAugment,
) -> ConfigResult<RandAugment> {
    pipe.needs_rgb(params)?;
    pipe.needs_bytes(params)?;
    pipe.form = ImageForm::Array;
    Ok(RandAugment {
        num_ops: params.whole_or("num_layers", 2)?,
        magnitude: params.number_or("magnitude", of.magnitude)?,
        fill: params.colour("fillcolor")?.map_or(of.fill, channels),
        ..of
    })
}

pub(crate) fn rand(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    let of = RandAugment {
        magnitude: 5.0,
        table: RandTable::Paddle,
        fill: 128.0.into(),
        ..RandAugment::default()
    };
    let op = layers(params, pipe, of)?;
    pipe.push(op);
    Ok(())
}

/// EfficientNetV2's RandAugment.
pub(crate) fn rand_v2(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let magnitudes = stages::progress_magnitude(params, pipe)?;
    let of = RandAugment {
        magnitude: 5.0,
        table: RandTable::Paddle2,
        fill: 128.0.into(),
        ..RandAugment::default()
    };
    let op = layers(params, pipe, of)?;
    pipe.push(RandAugment {
        sizes: magnitudes.iter().map(|(size, _)| *size).collect(),
        magnitudes: magnitudes.iter().map(|(_, magnitude)| *magnitude).collect(),
        ..op
    });
    Ok(())
}

pub(crate) fn rand_v3(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let interpolation = params.choice("interpolation", &PLAIN_FILTERS)?;
    let of = RandAugment {
        magnitude: 3.0,
        table: RandTable::Paddle3,
        interpolation: interpolation.unwrap_or(InterpolationMode::Bicubic),
        ..RandAugment::default()
    };
    let op = layers(params, pipe, of)?;
    pipe.push(op);
    Ok(())
}

pub(crate) fn rand_v4(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_bytes(params)?;
    pipe.form = ImageForm::Array;
    pipe.push(RandAugment {
        table: RandTable::Paddle4,
        ..RandAugment::default()
    });
    Ok(())
}

pub(crate) fn aug_mix(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_rgb(params)?;
    let op = AugMix {
        p: params.probability("prob", 0.5)?,
        alpha: params.number_or("aug_prob_coeff", 0.1)?,
        width: params.whole_or("mixture_width", 3)?,
        depth: match params.number_or("mixture_depth", 1.0)? {
            v if v <= 0.0 => ChainDepth::Random,
            _ => params.whole_or("mixture_depth", 1)?.into(),
        },
        severity: params.number_or("aug_severity", 1.0)?,
    };
    if op.p == 0.0 {
        if pipe.form != ImageForm::Floats {
            pipe.form = ImageForm::Array;
        }
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    pipe.push(op);
    Ok(())
}
