//! Parameters of all PaddleClas resizes: the library and the filter.

use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::recipe::InterpolationMode;

/// The filters of operations that rotate or move pixels.
pub(super) const PLAIN_FILTERS: [(&str, InterpolationMode); 3] = [
    ("nearest", InterpolationMode::Nearest),
    ("bilinear", InterpolationMode::Bilinear),
    ("bicubic", InterpolationMode::Bicubic),
];

/// The library that resizes: OpenCV or Pillow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResizeBackend {
    Cv2,
    Pil,
}

pub(super) fn backend(params: &mut ConfigParams<'_>) -> ConfigResult<ResizeBackend> {
    let Some(name) = params.text("backend")? else {
        return Ok(ResizeBackend::Cv2);
    };
    match name.to_ascii_lowercase().as_str() {
        "cv2" => Ok(ResizeBackend::Cv2),
        "pil" => Ok(ResizeBackend::Pil),
        _ => Err(params.mistake_at(
            "backend",
            format_args!("backend is '{name}': use cv2 or pil"),
        )),
    }
}

/// The parameter `interpolation`, which is optional in all resizes.
pub(super) fn interpolation(
    params: &mut ConfigParams<'_>,
    backend: ResizeBackend,
    default: InterpolationMode,
) -> ConfigResult<InterpolationMode> {
    let Some(name) = params.text("interpolation")? else {
        return Ok(default);
    };
    Ok(match (name.to_ascii_lowercase().as_str(), backend) {
        ("bilinear", _) => InterpolationMode::Bilinear,
        ("bicubic", _) => InterpolationMode::Bicubic,
        ("nearest", ResizeBackend::Pil) => InterpolationMode::Nearest,
        ("lanczos", ResizeBackend::Pil) => InterpolationMode::Lanczos,
        (_, backend) => {
            let supported = match backend {
                ResizeBackend::Cv2 => "bilinear or bicubic",
                ResizeBackend::Pil => "nearest, bilinear, bicubic or lanczos",
            };
            return Err(params.mistake_at(
                "interpolation",
                format_args!("interpolation is '{name}': use {supported} here"),
            ));
        }
    })
}
