//! Writes a scene as nerfstudio's `transforms.json`.
//!
//! Pure. The keys are those of nerfstudio 1.1.5; the keys of a rolling shutter are instant-ngp's.

use featherload::{Camera, Lens};
use serde_json::{Map, Value, json};

use super::render::RenderView;
use super::sets::LensSet;

/// The file's text. Intrinsics are at the top if all frames share them, else in the frames. A
/// rolling shutter's timing is at the top, and in frames that differ.
pub(super) fn text(set: &LensSet, names: &[String]) -> String {
    let shared = set.views.first().map(|view| view.camera);
    let shared = shared.filter(|camera| set.views.iter().all(|view| view.camera == *camera));
    let mut top = shared.as_ref().map_or_else(Map::new, intrinsics);
    top.insert("camera_model".into(), set.model.into());
    if set.depths {
        let unit = set.form.depth_unit();
        top.insert("integer_depth_scale".into(), unit.into());
    }
    if let Some(radius) = set.views.iter().find_map(|view| view.crop_radius) {
        top.insert("fisheye_crop_radius".into(), radius.into());
    }
    let timing = set.views.iter().find_map(timing_of);
    if let Some(timing) = timing {
        top.insert("rolling_shutter".into(), json!(timing));
    }
    let frames = set.views.iter().zip(names).map(|(view, name)| {
        let mut frame = match shared {
            Some(_) => Map::new(),
            None => intrinsics(&view.camera),
        };
        let path = format!("images/{name}.{}", set.coding.extension());
        frame.insert("file_path".into(), path.into());
        let start = json!(view.place.opengl());
        match &view.shutter {
            None => frame.insert("transform_matrix".into(), start),
            Some(shutter) => {
                let end = view.place.moved(&shutter.motion, 1.0);
                frame.insert("transform_matrix_end".into(), json!(end.opengl()));
                frame.insert("transform_matrix_start".into(), start)
            }
        };
        if let Some(own) = timing_of(view).filter(|own| Some(*own) != timing) {
            frame.insert("rolling_shutter".into(), json!(own));
        }
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

/// Including instant-ngp's fourth number, the blur.
fn timing_of(view: &RenderView) -> Option<[f64; 4]> {
    let [begin, by_u, by_v] = view.shutter?.timing;
    Some([begin, by_u, by_v, 0.0])
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
        // Models without coefficients. The others have no name in this format.
        _ => (&[], &[], &[]),
    };
    for (letter, values) in [("k", k), ("p", p), ("s", s)] {
        for (number, value) in (1..).zip(values) {
            keys.insert(format!("{letter}{number}"), (*value).into());
        }
    }
    keys
}
