//! Borders: PaddleClas' with Pillow or OpenCV, paddle.vision's, and padding to a size.

use super::backend::{ResizeBackend, backend};
use super::image_form::ImageForm;
use super::op_pipeline::OpPipeline;
use crate::configs::paddle::params::channels;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::{Pad, PadAnchor, PadTo, Padding, PaddingMode, PerChannel, Size};

pub(crate) fn plain(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    let width = params.whole_or("padding", 0)?;
    let fill = level(params, "fill", 0.0)?;
    // Neither of PaddleClas' two backends reads it: the border is always constant.
    params.ignore(&["padding_mode"]);
    // The default is Pillow, unlike for resizes.
    let says = params.given(&["backend"]);
    if says && backend(params)? == ResizeBackend::Cv2 {
        pipe.needs_array(params)?;
    } else if !says && pipe.form == ImageForm::Array {
        pipe.note(
            params,
            "it gets an array, and backend is not written: PaddleClas uses Pillow and fails with \
             an AttributeError. Read as documented, with OpenCV",
        );
    } else {
        pipe.needs_picture(params, "write backend: cv2")?;
    }
    pipe.push_pad(Padding::from(width), fill, PaddingMode::Constant);
    Ok(())
}

pub(crate) fn paddle_vision(
    params: &mut ConfigParams<'_>,
    pipe: &mut OpPipeline<'_>,
) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.may_set_size(params)?;
    params.ignore(&["keys"]);
    let width = params.whole_or("padding", 0)?;
    let is_list = params.is_list("fill");
    let mut fill = level(params, "fill", 0.0)?;
    // A single number sets only the first channel, in Pillow and in OpenCV.
    if !is_list {
        fill = [fill[0], 0.0, 0.0];
    }
    let modes = [
        ("constant", PaddingMode::Constant),
        ("edge", PaddingMode::Edge),
        ("reflect", PaddingMode::Reflect),
    ];
    let mode = params.choice("padding_mode", &modes)?;
    pipe.push_pad(Padding::from(width), fill, mode.unwrap_or_default());
    Ok(())
}

/// To a size, or to the next multiples of a number. The result is always floats, so later
/// operations work on floats.
pub(crate) fn pad_v2(params: &mut ConfigParams<'_>, pipe: &mut OpPipeline<'_>) -> ConfigResult<()> {
    pipe.needs_levels(params)?;
    pipe.needs_array(params)?;
    pipe.may_set_size(params)?;
    let divisor = params.whole_or("size_divisor", 32)?;
    let size = match params.numbers("size")?.as_deref() {
        Some([]) => None,
        None => {
            pipe.note(
                params,
                "without a size PaddleClas 2.4.0 fails with a TypeError. Read as documented, to \
                 multiples of size_divisor",
            );
            None
        }
        Some(_) => params.width_first("size")?,
    };
    let offsets = params.numbers("offsets")?;
    let mode = params.number_or("pad_mode", 0.0)?;
    let (anchor, offset) = match (mode, offsets.as_deref()) {
        (0.0, _) => (PadAnchor::TopLeft, None),
        (1.0, _) => (PadAnchor::Center, None),
        (2.0, _) => (PadAnchor::BottomRight, None),
        (-1.0, Some(&[left, top])) if is_place(left) && is_place(top) => {
            (PadAnchor::TopLeft, Some([left as u32, top as u32]))
        }
        _ => {
            return Err(params.mistake_at(
                "pad_mode",
                format_args!(
                    "pad_mode is {mode}: use 0, 1, 2, or -1 with offsets [left, top] in whole \
                     pixels"
                ),
            ));
        }
    };
    let fill = params.colour("fill_value")?.unwrap_or([127.5; 3]);
    pipe.becomes_floats();
    pipe.push(PadTo {
        min_size: None,
        size,
        multiple_of: size.is_none().then(|| Size::from(divisor)),
        anchor,
        offset,
        fill: channels(fill),
        padding_mode: PaddingMode::Constant,
    });
    Ok(())
}

fn is_place(v: f64) -> bool {
    v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v)
}

impl OpPipeline<'_> {
    fn push_pad(&mut self, padding: Padding, fill: [f32; 3], mode: PaddingMode) {
        self.push(Pad {
            padding,
            fill: PerChannel(fill),
            padding_mode: mode,
        });
    }
}

/// A colour of whole levels.
pub(crate) fn level(
    params: &mut ConfigParams<'_>,
    name: &'static str,
    default: f64,
) -> ConfigResult<[f32; 3]> {
    let colour = params.colour(name)?.unwrap_or([default; 3]);
    match colour
        .iter()
        .find(|v| v.fract() != 0.0 || !(0.0..=255.0).contains(*v))
    {
        None => Ok(colour.map(|v| v as f32)),
        Some(v) => Err(params.mistake_at(
            name,
            format_args!("{name} is {v}: use whole levels from 0 to 255"),
        )),
    }
}
