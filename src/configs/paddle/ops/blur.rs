//! BlurImage, whose draw may be the label.

use super::held::Held;
use super::labels::BLUR_KEY;
use super::pipe::Pipe;
use crate::configs::paddle::params::{Params, Read};
use crate::recipe::RandomBlur;

pub(crate) fn blur_image(params: &mut Params<'_>, pipe: &mut Pipe<'_>) -> Read<()> {
    pipe.needs_rgb(params)?;
    pipe.needs_array(params)?;
    pipe.needs_bytes(params)?;
    let op = RandomBlur {
        p: params.chance("ratio", 0.5)?,
        gaussian_below: params.whole_or("gaussian_max_ksize", 12)?,
        motion_below: params.whole_or("motion_max_ksize", 12)?,
        motion_angle: params.whole_or("motion_max_angle", 45)?,
        label: pipe.label_key.is_some_and(|key| key.name == BLUR_KEY),
    };
    pipe.push(op);
    pipe.held = Held::Array;
    Ok(())
}
