//! Parameters that all of PaddleClas' resizes have: who resizes, and by which filter.

use crate::configs::paddle::params::{Params, Read};
use crate::recipe::Interpolation;

/// The filters of operations that turn and move pixels.
pub(super) const PLAIN_FILTERS: [(&str, Interpolation); 3] = [
    ("nearest", Interpolation::Nearest),
    ("bilinear", Interpolation::Bilinear),
    ("bicubic", Interpolation::Bicubic),
];

/// OpenCV or Pillow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Cv2,
    Pil,
}

pub(super) fn backend(params: &mut Params<'_>) -> Read<Backend> {
    let Some(name) = params.text("backend")? else {
        return Ok(Backend::Cv2);
    };
    match name.to_ascii_lowercase().as_str() {
        "cv2" => Ok(Backend::Cv2),
        "pil" => Ok(Backend::Pil),
        _ => Err(params.wrong(
            "backend",
            format_args!("backend is '{name}': use cv2 or pil"),
        )),
    }
}

/// The parameter of this name, which none of PaddleClas' resizes has to have.
pub(super) fn interpolation(
    params: &mut Params<'_>,
    backend: Backend,
    default: Interpolation,
) -> Read<Interpolation> {
    let Some(name) = params.text("interpolation")? else {
        return Ok(default);
    };
    Ok(match (name.to_ascii_lowercase().as_str(), backend) {
        ("bilinear", _) => Interpolation::Bilinear,
        ("bicubic", _) => Interpolation::Bicubic,
        ("nearest", Backend::Pil) => Interpolation::Nearest,
        ("lanczos", Backend::Pil) => Interpolation::Lanczos,
        (_, backend) => {
            let served = match backend {
                Backend::Cv2 => "bilinear or bicubic",
                Backend::Pil => "nearest, bilinear, bicubic or lanczos",
            };
            return Err(params.wrong(
                "interpolation",
                format_args!("interpolation is '{name}': use {served} here"),
            ));
        }
    })
}
