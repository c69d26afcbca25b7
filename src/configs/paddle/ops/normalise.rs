//! From levels to the numbers of a batch.

use super::held::Held;
use super::pipe::{Pipe, Values};
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::{Dtype, Normalize, ZeroChannel};

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// `(x * scale - mean) / std`, where ours is `(x / 255 - mean) / std`.
pub(crate) fn image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    if pipe.values != Values::Levels {
        pipe.needs_levels(params)?;
    }
    let scale = params.number_or("scale", 1.0 / 255.0)?;
    let mean = params.colour("mean")?.unwrap_or(MEAN);
    let std = params.colour("std")?.unwrap_or(STD);
    let channels_wanted = params.whole_or("channel_num", 3)?;
    if ![3, 4].contains(&channels_wanted) {
        return Err(params.wrong(
            "channel_num",
            format_args!("channel_num is {channels_wanted}: 3, or 4 with one of zeros, fit"),
        ));
    }
    if channels_wanted == 4 {
        pipe.zero_channel = true;
        pipe.push(ZeroChannel {});
    }
    if scale == 0.0 {
        return Err(params.wrong("scale", "scale is 0: use another number"));
    }
    if std.contains(&0.0) {
        return Err(params.wrong("std", "std holds 0: use other numbers"));
    }
    let chw = match params.text("order")? {
        Some("" | "hwc") => false,
        Some("chw") | None => true,
        Some(other) => {
            return Err(params.wrong("order", format_args!("order is '{other}': use hwc or chw")));
        }
    };
    if chw != pipe.chw {
        let (order, fix) = match chw {
            true => ("chw", "write order: ''"),
            false => ("hwc", "write order: chw"),
        };
        return Err(params.wrong(
            "order",
            format_args!("order is {order} (chw by default), and the pictures have another: {fix}"),
        ));
    }
    if params.flag("output_fp16", false)? {
        pipe.dtype = Dtype::F16;
    }
    let by = |v: [f64; 3]| channels(v.map(|v| v / (255.0 * scale)));
    pipe.push(Normalize {
        mean: by(mean),
        std: by(std),
    });
    pipe.values = Values::Normalised;
    pipe.held = Held::Array;
    Ok(())
}

/// paddle.vision's, behind ToTensor.
pub(crate) fn plain(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    if pipe.values != Values::Parts {
        return Err(params.wrong(
            "",
            "is served only after ToTensor: use NormalizeImage for levels",
        ));
    }
    params.ignore(&["keys"]);
    let mean = params.colour("mean")?.unwrap_or([0.0; 3]);
    let std = params.colour("std")?.unwrap_or([1.0; 3]);
    if params.flag("to_rgb", false)? {
        return Err(params.wrong(
            "to_rgb",
            "to_rgb is true, and channels are in order already: use false",
        ));
    }
    match params.text("data_format")? {
        None | Some("CHW") => {}
        Some(other) => {
            return Err(params.wrong(
                "data_format",
                format_args!(
                    "data_format is '{other}', and pictures are CHW after ToTensor: use \
                              CHW"
                ),
            ));
        }
    }
    if std.contains(&0.0) {
        return Err(params.wrong("std", "std holds 0: use other numbers"));
    }
    pipe.push(Normalize {
        mean: channels(mean),
        std: channels(std),
    });
    pipe.values = Values::Normalised;
    Ok(())
}

pub(crate) fn to_tensor(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    // It divides bytes alone.
    pipe.needs_bytes(params)?;
    params.ignore(&["keys"]);
    params.choice("data_format", &[("CHW", ())])?;
    pipe.chw = true;
    pipe.tensor = true;
    pipe.values = Values::Parts;
    pipe.held = Held::Array;
    Ok(())
}

/// Batches are transposed at their end, with or without it.
pub(crate) fn to_chw(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    if pipe.chw {
        return Err(params.wrong("", "comes after an operation that transposes: remove it"));
    }
    pipe.chw = true;
    if pipe.held != Held::Floats {
        pipe.held = Held::Array;
    }
    Ok(())
}
