//! Finds the key of `transforms.json` that a fault is about: in a frame, or at the top level for
//! all frames.
//!
//! Runs in the consumer. Pure.

use crate::camera::CameraFault;
use crate::scene::data::bounds::shown_number;
use crate::scene::data::transforms_keys::LensKeys;

/// Describes a fault of the frame `at`. `what` starts with the key. If the key occurs only at the
/// top level, the text does not name the frame.
pub(super) fn place(what: &str, at: &str, frame: &LensKeys, top: &LensKeys) -> String {
    let end = what.find([' ', ':', ',']).unwrap_or(what.len());
    let key = &what[..end];
    match !frame.has(key) && top.has(key) {
        true => what.to_owned(),
        false => format!("{at}.{what}"),
    }
}

/// Describes what is wrong with a camera. The text starts with the key.
pub(super) fn of_camera(fault: &CameraFault, frame: &LensKeys, top: &LensKeys) -> String {
    let CameraFault { field, reason } = fault;
    let both = [frame, top];
    let has = |key: &str| both.iter().any(|keys| keys.has(key));
    match field.as_str() {
        "fx" | "fy" | "camera_angle_x" | "camera_angle_y" => {
            let axes = match field.ends_with('x') {
                true => ["x", "y"],
                false => ["y", "x"],
            };
            // In the order in which they are read.
            let found = axes.iter().find_map(|axis| {
                let pixels = format!("fl_{axis}");
                let degrees = format!("{axis}_fov");
                let keys = [pixels, degrees, format!("camera_angle_{axis}")];
                both.iter().find_map(|place| {
                    let mut of_place = keys.iter().filter_map(|key| {
                        let value = place.number(key)?;
                        Some((key.clone(), value))
                    });
                    of_place.next()
                })
            });
            match found {
                Some((key, value)) if field.starts_with("camera") && key.ends_with("_fov") => {
                    let axis = axes[0];
                    let value = shown_number(value);
                    format!("{key} is {value} degrees: use 0 to 180, or give fl_{axis}")
                }
                Some((key, _)) if key.starts_with("fl_") || field.starts_with("camera") => {
                    format!("{key} {reason}")
                }
                Some((key, _)) => format!("{key} gives {field}, which {reason}"),
                None => format!("{field} {reason}"),
            }
        }
        "width" | "height" => format!("{} {reason}", &field[..1]),
        _ => {
            let key = coefficient_key(field, frame, top);
            match has(&key) || !has("distortion_params") {
                true => format!("{key} {reason}"),
                false => format!("distortion_params ({key}) {reason}"),
            }
        }
    }
}

/// FISHEYE624 lenses number their coefficients from 0, and the keys from 1.
fn coefficient_key(field: &str, frame: &LensKeys, top: &LensKeys) -> String {
    let model = frame.camera_model.as_ref().or(top.camera_model.as_ref());
    let number = field.get(1..).and_then(|digits| digits.parse::<u8>().ok());
    match number {
        Some(number) if model.is_some_and(|model| model == "FISHEYE624") => {
            format!("{}{}", &field[..1], number + 1)
        }
        _ => field.to_owned(),
    }
}
