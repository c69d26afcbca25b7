//! Operations that erase boxes.

use super::image_form::ImageForm;
use super::op_pipeline::{OpPipeline, ValueScale};
use super::pad::level;
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{
    AspectDistribution, CropWithPadding, Cutout, EraseFill, HideAndSeek, MemoryLayout, PerChannel,
    RandomErasing, Span,
};

pub(crate) fn random_erasing(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    let p = params.probability("EPSILON", 0.5)?;
    let low = params.number_or("sl", 0.02)?;
    let high = params.number_or("sh", 0.4)?;
    let ratio = params.number_or("r1", 0.3)?;
    let mean = params.colour("mean")?.unwrap_or_default();
    let attempts = params.whole_or("attempt", 100)?;
    let log = params.flag("use_log_aspect", false)?;
    let mode = params.text("mode")?.unwrap_or("const");
    if p == 0.0 {
        pipe.note(params, "EPSILON is 0, so it is left out");
        return Ok(());
    }
    pipe.needs_array(params)?;
    if pipe.zero_channel {
        return Err(params.mistake_at(
            "",
            "erases only the first of four channels, and channel_num is 4 before it: move it \
             before NormalizeImage",
        ));
    }
    if pipe.chw && !pipe.tensor {
        return Err(params.mistake_at(
            "",
            "needs an array of height x width x 3, and comes after a transpose: move it before \
             ToCHWImage",
        ));
    }
    if ratio <= 0.0 {
        return Err(params.mistake_at("r1", format_args!("r1 is {ratio}: use more than 0")));
    }
    let in_bytes = pipe.values == ValueScale::Levels && pipe.form != ImageForm::Floats;
    let mean = match in_bytes {
        // NumPy truncates numbers that it writes to bytes.
        true => mean.map(f64::trunc),
        false => mean,
    };
    let value = match mode {
        "pixel" => EraseFill::Random,
        "const" => EraseFill::Value(channels(mean)),
        other => {
            return Err(params.mistake_at(
                "mode",
                format_args!("mode is '{other}': use pixel or const"),
            ));
        }
    };
    match (value, pipe.values) {
        (EraseFill::Random, ValueScale::Normalised) => {}
        (EraseFill::Random, _) => {
            return Err(params.mistake_at(
                "mode",
                "mode pixel draws normalised values: move RandomErasing after NormalizeImage",
            ));
        }
        (EraseFill::Value(_), ValueScale::Normalised) if mean != [0.0; 3] => pipe.note(
            params,
            "mean is a normalised value here, as in PaddleClas, not a mean colour",
        ),
        (EraseFill::Value(_), ValueScale::Parts) if mean != [0.0; 3] => {
            return Err(params.mistake_at(
                "mean",
                "is supported before ToTensor or after Normalize: move \
                                             it there",
            ));
        }
        (EraseFill::Value(_), _) => {}
    }
    pipe.push(RandomErasing {
        p,
        scale: Span(low, high),
        ratio: Span(ratio.min(1.0 / ratio), ratio.max(1.0 / ratio)),
        aspect: if log {
            AspectDistribution::Log
        } else {
            AspectDistribution::Uniform
        },
        attempts,
        value,
    });
    Ok(())
}

/// On levels, or on the result of NormalizeImage, with the same fill values.
pub(crate) fn cutout(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    if pipe.chw || pipe.values == ValueScale::Parts {
        pipe.needs_levels(params)?;
    }
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let holes = params.whole_or("n_holes", 1)?;
    let length = params.whole_or("length", 112)?;
    let is_given = params.given(&["fill_value"]);
    match params.text("fill_value")? {
        None | Some("none") => {}
        Some(other) => {
            return Err(params.mistake_at(
                "fill_value",
                format_args!(
                    "fill_value is '{other}': use none (a random colour), the only one that \
                     works in PaddleClas"
                ),
            ));
        }
    }
    let (length, value) = match is_given {
        // `cv2.rectangle` fills from half a length before the centre to half after it, both
        // ends included.
        true => (2 * (length / 2) + 1, None),
        false => {
            pipe.note(
                params,
                "fill_value is missing, and PaddleClas fails without it. Filled with 0, as it \
                 did until September 2023",
            );
            (2 * (length / 2), Some(PerChannel::default()))
        }
    };
    if length == 0 {
        pipe.note(params, "length is less than 2, so it is left out");
        return Ok(());
    }
    pipe.push(Cutout {
        p: 1.0,
        holes,
        length,
        value,
    });
    Ok(())
}

/// The box is the one of paddle.vision's RandomResizedCrop, its base class.
pub(crate) fn crop_with_padding(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    // It does not resize.
    params.ignore(&["size", "interpolation", "key"]);
    if params.is_list("padding_num") {
        return Err(params.mistake_at(
            "padding_num",
            "is a list, and NumPy makes 64-bit numbers of it that no later operation takes: use \
             one number",
        ));
    }
    let op = CropWithPadding {
        p: params.probability("prob", 1.0)?,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        value: PerChannel(level(params, "padding_num", 0.0)?),
    };
    if op.p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    pipe.form = match pipe.form {
        ImageForm::Floats => ImageForm::Floats,
        // It makes an array if it runs, and keeps a Pillow image if not.
        ImageForm::Picture | ImageForm::Either if op.p < 1.0 => ImageForm::Either,
        _ => ImageForm::Array,
    };
    pipe.push(op);
    Ok(())
}

/// Its probability is `prob` times the share of 240 epochs that have passed. Nothing in PaddleClas
/// advances that count.
pub(crate) fn grid_mask(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    params.ignore(&["d1", "d2", "rotate", "ratio", "mode", "prob"]);
    pipe.note(
        params,
        "its probability grows with a count of epochs that PaddleClas leaves at 0, so it is left \
         out",
    );
    Ok(())
}

/// Zeros in cells of a grid. It treats every array as 3 x height x width.
pub(crate) fn hide_and_seek(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_array(params)?;
    if pipe.tensor {
        return Err(params.mistake_at(
            "",
            "needs an array, and ToTensor gives a tensor: use NormalizeImage instead of ToTensor",
        ));
    }
    let layout = match pipe.chw {
        true => MemoryLayout::Nchw,
        false => MemoryLayout::Nhwc,
    };
    if layout == MemoryLayout::Nhwc && pipe.zero_channel {
        return Err(params.mistake_at(
            "",
            "takes the channels for a width, and channel_num: 4 gives it 4 of them: move it before \
             NormalizeImage",
        ));
    }
    if layout == MemoryLayout::Nhwc {
        pipe.note(
            params,
            "PaddleClas takes height x width x 3 for 3 x height x width, and hides the first 3 \
             columns or nothing. So does featherload",
        );
    }
    pipe.push(HideAndSeek {
        layout,
        ..HideAndSeek::default()
    });
    Ok(())
}
