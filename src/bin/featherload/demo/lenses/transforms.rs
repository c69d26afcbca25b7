//! A scene as nerfstudio's `transforms.json`.
//!
//! Pure: text. The keys are those of nerfstudio 1.1.5.

use featherload::{Camera, Lens};
use serde_json::{Map, Value, json};

use super::sets::Set;

/// The file. Intrinsics stand at the top where all frames share them, else in the frames.
pub(super) fn text(set: &Set, names: &[String]) -> String {
    let shared = set.views.first().map(|view| view.camera);
    let shared = shared.filter(|camera| set.views.iter().all(|view| view.camera == *camera));
    let mut top = shared.as_ref().map_or_else(Map::new, intrinsics);
    top.insert("camera_model".into(), set.model.into());
    if set.depths {
        let unit = set.form.depth_unit();
        top.insert("integer_depth_scale".into(), unit.into());
    }
    let frames = set.views.iter().zip(names).map(|(view, name)| {
        let mut frame = match shared {
            Some(_) => Map::new(),
            None => intrinsics(&view.camera),
        };
        let path = format!("images/{name}.{}", set.coding.extension());
        frame.insert("file_path".into(), path.into());
        frame.insert("transform_matrix".into(), json!(view.place.opengl()));
        if let Some(time) = view.time {
            frame.insert("time".into(), time.into());
        }
        if view.mask.is_some() {
            frame.insert("mask_path".into(), format!("masks/{name}.png").into());
        }
        if set.depths {
            frame.insert(
                "depth_file_path".into(),
                format!("depths/{name}.png").into(),
            );
        }
        Value::Object(frame)
    });
    top.insert("frames".into(), frames.collect());
    format!("{:#}\n", Value::Object(top))
}

fn intrinsics(camera: &Camera) -> Map<String, Value> {
    let mut keys = Map::new();
    keys.insert("w".into(), camera.width.into());
    keys.insert("h".into(), camera.height.into());
    let Camera { fx, fy, cx, cy, .. } = *camera;
    for (key, value) in [("fl_x", fx), ("fl_y", fy), ("cx", cx), ("cy", cy)] {
        keys.insert(key.into(), value.into());
    }
    let (k, p, s): (&[f64], &[f64], &[f64]) = match &camera.lens {
        Lens::Brown { k, p } => (k, p, &[]),
        Lens::Fisheye { k } => (k, &[], &[]),
        Lens::Fisheye624 { k, p, s } => (k, p, s),
        // Without coefficients; the rest has no name in this format.
        _ => (&[], &[], &[]),
    };
    for (letter, values) in [("k", k), ("p", p), ("s", s)] {
        for (number, value) in (1..).zip(values) {
            keys.insert(format!("{letter}{number}"), (*value).into());
        }
    }
    keys
}
