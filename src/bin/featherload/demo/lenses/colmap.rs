//! Writes a scene as a COLMAP model, as text or binary: `cameras`, `images`, and no points.
//!
//! Pure. Formats and model numbers are those of COLMAP's `scene/reconstruction_io_text.cc`,
//! `reconstruction_io_binary.cc` and `sensor/models.h`.

use std::fmt::Write;

use featherload::{Camera, Lens};

use super::sets::LensSet;

/// The files of a model, by their names. All frames have one camera.
pub(super) fn text(set: &LensSet, names: &[String]) -> Vec<(&'static str, Vec<u8>)> {
    let mut cameras = String::from("# CAMERA_ID, MODEL, WIDTH, HEIGHT, PARAMS[]\n");
    if let Some(view) = set.views.first() {
        let Camera { width, height, .. } = view.camera;
        let parameters = joined(&parameters(&view.camera).1);
        // Writing to a string cannot fail.
        let _ = writeln!(cameras, "1 {} {width} {height} {parameters}", set.model);
    }
    let mut images = format!(
        "# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME\n# POINTS2D[]\n\
         # Number of images: {}\n",
        set.views.len()
    );
    for (number, (view, name)) in (1..).zip(set.views.iter().zip(names)) {
        let (quaternion, translation) = view.place.colmap();
        let (quaternion, translation) = (joined(&quaternion), joined(&translation));
        let extension = set.coding.extension();
        let _ = writeln!(
            images,
            "{number} {quaternion} {translation} 1 {name}.{extension}\n"
        );
    }
    vec![
        ("cameras.txt", cameras.into_bytes()),
        ("images.txt", images.into_bytes()),
        ("points3D.txt", b"# Number of points: 0\n".to_vec()),
    ]
}

/// Like [`text`], in binary form.
pub(super) fn binary(set: &LensSet, names: &[String]) -> Vec<(&'static str, Vec<u8>)> {
    let one = 1u32.to_le_bytes();
    let mut cameras = 1u64.to_le_bytes().to_vec();
    if let Some(view) = set.views.first() {
        let (model, parameters) = parameters(&view.camera);
        cameras.extend(one);
        cameras.extend(model.to_le_bytes());
        for side in [view.camera.width, view.camera.height] {
            cameras.extend(u64::from(side).to_le_bytes());
        }
        cameras.extend(parameters.iter().flat_map(|value| value.to_le_bytes()));
    }
    let mut images = (set.views.len() as u64).to_le_bytes().to_vec();
    for (number, (view, name)) in (1u32..).zip(set.views.iter().zip(names)) {
        let (quaternion, translation) = view.place.colmap();
        images.extend(number.to_le_bytes());
        let pose = quaternion.into_iter().chain(translation);
        images.extend(pose.flat_map(f64::to_le_bytes));
        images.extend(one);
        images.extend(format!("{name}.{}\0", set.coding.extension()).bytes());
        // No 2D points.
        images.extend(0u64.to_le_bytes());
    }
    vec![
        ("cameras.bin", cameras),
        ("images.bin", images),
        ("points3D.bin", 0u64.to_le_bytes().to_vec()),
    ]
}

fn joined(values: &[f64]) -> String {
    let words: Vec<String> = values.iter().map(f64::to_string).collect();
    words.join(" ")
}

/// The number of the camera's model, and its parameters in the model's order.
fn parameters(camera: &Camera) -> (i32, Vec<f64>) {
    let Camera { fx, fy, cx, cy, .. } = *camera;
    let (model, rest): (i32, Vec<f64>) = match camera.lens {
        Lens::Brown { k, p } => (4, vec![k[0], k[1], p[0], p[1]]),
        Lens::Fisheye { k } => (5, k.to_vec()),
        Lens::Rational { k, p } => (6, vec![k[0], k[1], p[0], p[1], k[2], k[3], k[4], k[5]]),
        Lens::Fov { omega } => (7, vec![omega]),
        Lens::ThinPrismFisheye { k, p, s } => {
            (10, vec![k[0], k[1], p[0], p[1], k[2], k[3], s[0], s[1]])
        }
        Lens::Fisheye624 { k, p, s } => (11, [k.as_slice(), &p, &s].concat()),
        // PINHOLE. Other models are written as `transforms.json`.
        _ => (1, Vec::new()),
    };
    (model, [vec![fx, fy, cx, cy], rest].concat())
}
