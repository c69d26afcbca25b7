//! From levels to the numbers of a batch.

use super::image_form::ImageForm;
use super::op_pipeline::{OpPipeline, ValueScale};
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{DataType, Normalize, ZeroChannel};

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// `(x * scale - mean) / std`. The recipe's operation is `(x / 255 - mean) / std`.
pub(crate) fn image(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    if pipe.values != ValueScale::Levels {
        pipe.needs_levels(params)?;
    }
    let scale = params.number_or("scale", 1.0 / 255.0)?;
    let mean = params.colour("mean")?.unwrap_or(MEAN);
    let std = params.colour("std")?.unwrap_or(STD);
    let channels_wanted = params.whole_or("channel_num", 3)?;
    if ![3, 4].contains(&channels_wanted) {
        return Err(params.mistake_at(
            "channel_num",
            format_args!("channel_num is {channels_wanted}: 3, or 4 with one of zeros, fit"),
        ));
    }
    if channels_wanted == 4 {
        pipe.zero_channel = true;
        pipe.push(ZeroChannel {});
    }
    if scale == 0.0 {
        return Err(params.mistake_at("scale", "scale is 0: use another number"));
    }
    if std.contains(&0.0) {
        return Err(params.mistake_at("std", "std holds 0: use other numbers"));
    }
    let chw = match params.text("order")? {
        Some("" | "hwc") => false,
        Some("chw") | None => true,
        Some(other) => {
            return Err(
                params.mistake_at("order", format_args!("order is '{other}': use hwc or chw"))
            );
        }
    };
    if chw != pipe.chw {
        let (order, fix) = match chw {
            true => ("chw", "write order: ''"),
            false => ("hwc", "write order: chw"),
        };
        return Err(params.mistake_at(
            "order",
            format_args!("order is {order} (chw by default), and the images have another: {fix}"),
        ));
    }
    if params.flag("output_fp16", false)? {
        pipe.dtype = DataType::F16;
    }
    let by = |v: [f64; 3]| channels(v.map(|v| v / (255.0 * scale)));
    pipe.push(Normalize {
        mean: by(mean),
        std: by(std),
    });
    pipe.values = ValueScale::Normalised;
    pipe.form = ImageForm::Array;
    Ok(())
}

/// paddle.vision's Normalize, after ToTensor.
pub(crate) fn plain(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    if pipe.values != ValueScale::Parts {
        return Err(params.mistake_at(
            "",
            "is supported only after ToTensor: use NormalizeImage for levels",
        ));
    }
    params.ignore(&["keys"]);
    let mean = params.colour("mean")?.unwrap_or([0.0; 3]);
    let std = params.colour("std")?.unwrap_or([1.0; 3]);
    if params.flag("to_rgb", false)? {
        return Err(params.mistake_at(
            "to_rgb",
            "to_rgb is true, and channels are in order already: use false",
        ));
    }
    match params.text("data_format")? {
        None | Some("CHW") => {}
        Some(other) => {
            return Err(params.mistake_at(
                "data_format",
                format_args!(
                    "data_format is '{other}', and images are CHW after ToTensor: use \
                              CHW"
                ),
            ));
        }
    }
    if std.contains(&0.0) {
        return Err(params.mistake_at("std", "std holds 0: use other numbers"));
    }
    pipe.push(Normalize {
        mean: channels(mean),
        std: channels(std),
    });
    pipe.values = ValueScale::Normalised;
    Ok(())
}

pub(crate) fn to_tensor(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    // It divides bytes only.
    pipe.needs_bytes(params)?;
    params.ignore(&["keys"]);
    params.choice("data_format", &[("CHW", ())])?;
    pipe.chw = true;
    pipe.tensor = true;
    pipe.values = ValueScale::Parts;
    pipe.form = ImageForm::Array;
    Ok(())
}

/// PaddleClas transposes batches at the end, with or without this operation.
pub(crate) fn to_chw(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    if pipe.chw {
        return Err(params.mistake_at("", "comes after an operation that transposes: remove it"));
    }
    pipe.chw = true;
    if pipe.form != ImageForm::Floats {
        pipe.form = ImageForm::Array;
    }
    Ok(())
}
