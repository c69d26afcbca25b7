//! Boxes that are erased.

use super::held::Held;
use super::pad::level;
use super::pipe::{Pipe, Values};
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::{
    Aspect, CropWithPadding, Cutout, Erasing, HideAndSeek, PerChannel, RandomErasing, Span,
};

pub(crate) fn random_erasing(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    let p = params.chance("EPSILON", 0.5)?;
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
        return Err(params.wrong(
            "",
            "erases only the first of four channels, and channel_num is 4 before it: move it \
             before NormalizeImage",
        ));
    }
    if pipe.chw && !pipe.tensor {
        return Err(params.wrong(
            "",
            "needs an array of height x width x 3, and comes after a transpose: move it before \
             ToCHWImage",
        ));
    }
    if ratio <= 0.0 {
        return Err(params.wrong("r1", format_args!("r1 is {ratio}: use more than 0")));
    }
    let in_bytes = pipe.values == Values::Levels && pipe.held != Held::Floats;
    let mean = match in_bytes {
        // NumPy cuts what it writes into bytes.
        true => mean.map(f64::trunc),
        false => mean,
    };
    let value = match mode {
        "pixel" => Erasing::Random,
        "const" => Erasing::Value(channels(mean)),
        other => {
            return Err(params.wrong(
                "mode",
                format_args!("mode is '{other}': use pixel or const"),
            ));
        }
    };
    match (value, pipe.values) {
        (Erasing::Random, Values::Normalised) => {}
        (Erasing::Random, _) => {
            return Err(params.wrong(
                "mode",
                "mode pixel draws normalised values: move RandomErasing after NormalizeImage",
            ));
        }
        (Erasing::Value(_), Values::Normalised) if mean != [0.0; 3] => pipe.note(
            params,
            "mean is a normalised value here, as in PaddleClas, not a mean colour",
        ),
        (Erasing::Value(_), Values::Parts) if mean != [0.0; 3] => {
            return Err(params.wrong(
                "mean",
                "is served before ToTensor or after Normalize: move \
                                             it there",
            ));
        }
        (Erasing::Value(_), _) => {}
    }
    pipe.push(RandomErasing {
        p,
        scale: Span(low, high),
        ratio: Span(ratio.min(1.0 / ratio), ratio.max(1.0 / ratio)),
        aspect: if log { Aspect::Log } else { Aspect::Uniform },
        attempts,
        value,
    });
    Ok(())
}

pub(crate) fn cutout(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let holes = params.whole_or("n_holes", 1)?;
    let length = params.whole_or("length", 112)?;
    // Python's `(0, 0, 0)` where it is not written, which PaddleClas cannot fill with.
    if !params.given(&["fill_value"]) {
        return Err(params.wrong(
            "fill_value",
            "fill_value is missing: use fill_value: none (a random colour), the only one that \
             works in PaddleClas",
        ));
    }
    match params.text("fill_value")? {
        None | Some("none") => {}
        Some(other) => {
            return Err(params.wrong(
                "fill_value",
                format_args!(
                    "fill_value is '{other}': use none (a random colour), the only one that \
                     works in PaddleClas"
                ),
            ));
        }
    }
    // `cv2.rectangle` fills from half a length before the centre to half behind it,
    // both ends included.
    let length = 2 * (length / 2) + 1;
    pipe.push(Cutout {
        p: 1.0,
        holes,
        length,
        value: None,
    });
    Ok(())
}

/// The box is that of paddle.vision's RandomResizedCrop, which it derives from.
pub(crate) fn crop_with_padding(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_levels(params)?;
    // It resizes nothing.
    params.ignore(&["size", "interpolation", "key"]);
    if params.is_list("padding_num") {
        return Err(params.wrong(
            "padding_num",
            "is a list, and NumPy makes 64-bit numbers of it that no later operation takes: use \
             one number",
        ));
    }
    let op = CropWithPadding {
        p: params.chance("prob", 1.0)?,
        scale: params.span("scale")?.unwrap_or(Span(0.08, 1.0)),
        ratio: params.span("ratio")?.unwrap_or(Span(3.0 / 4.0, 4.0 / 3.0)),
        value: PerChannel(level(params, "padding_num", 0.0)?),
    };
    if op.p == 0.0 {
        pipe.note(params, "prob is 0, so it is left out");
        return Ok(());
    }
    if pipe.needs_array(params).is_err() && op.p < 1.0 {
        return Err(params.wrong(
            "prob",
            "gives an array when it happens and a Pillow picture when not: write prob: 1, or \
             to_np: True in DecodeImage",
        ));
    }
    if pipe.held != Held::Floats {
        pipe.held = Held::Array;
    }
    pipe.push(op);
    Ok(())
}

/// Its probability is `prob` times the part of 240 epochs that is over, by a count that
/// nothing in PaddleClas advances.
pub(crate) fn grid_mask(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    params.ignore(&["d1", "d2", "rotate", "ratio", "mode", "prob"]);
    pipe.note(
        params,
        "its probability grows with a count of epochs that PaddleClas leaves at 0, so it is left \
         out",
    );
    Ok(())
}

/// Zeros in cells of a grid. It takes an array for 3 x height x width.
pub(crate) fn hide_and_seek(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_array(params)?;
    if !pipe.chw || pipe.tensor {
        return Err(params.wrong(
            "",
            "needs an array of 3 x height x width: put ToCHWImage before it, and write order: \
             chw in a NormalizeImage after that",
        ));
    }
    pipe.push(HideAndSeek::default());
    Ok(())
}
