//! Writes scenes to disk.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::Result;
use crate::scene::data::options::{CenterMethod, OrientationMethod, SceneOptions};
use crate::scene::data::scene::Scene;

/// A folder for scenes.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(super) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A grey image. Its content determines the format, not its name.
    pub(super) fn picture(&self, path: &str, width: usize, height: usize) -> PathBuf {
        let mut bytes = format!("P5 {width} {height} 255\n").into_bytes();
        bytes.resize(bytes.len() + width * height, 7);
        self.write(path, bytes)
    }

    pub(super) fn json(&self, path: &str, value: &Value) -> PathBuf {
        self.write(path, serde_json::to_vec(value).unwrap())
    }

    pub(super) fn open(&self, options: &SceneOptions) -> Result<Scene> {
        Scene::open(self.path(), options)
    }

    /// The text of this scene's error.
    pub(super) fn refused(&self) -> String {
        match self.open(&SceneOptions::default()) {
            Err(e) => {
                assert!(e.is_usage(), "{e}");
                e.to_string()
            }
            Ok(scene) => panic!("{scene:?}"),
        }
    }
}

/// In the file's world: not oriented, not centred, not scaled.
pub(super) fn as_is() -> SceneOptions {
    SceneOptions {
        orientation: Some(OrientationMethod::None),
        center: Some(CenterMethod::None),
        auto_scale: Some(false),
        ..SceneOptions::default()
    }
}

/// A pose of `transforms.json`: at (x, y, z), its axes the world's.
pub(super) fn matrix(x: f64, y: f64, z: f64) -> Value {
    json!([[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1]])
}

/// A frame of `transforms.json`.
pub(super) fn frame(path: &str, x: f64) -> Value {
    json!({"file_path": path, "transform_matrix": matrix(x, 2.0 * x, 1.0)})
}

/// A JPEG with only a header and an EXIF orientation.
pub(super) fn jpeg(width: u16, height: u16, orientation: u8) -> Vec<u8> {
    let mut bytes =
        b"\xff\xd8\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    bytes.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(b"\xff\xc0\0\x0b\x08");
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend(b"\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0");
    bytes
}

/// Quaternion, translation, camera, name, 2D points.
pub(super) type Image = ([f64; 4], [f64; 3], u32, String, u64);

/// A COLMAP model.
#[derive(Clone)]
pub(super) struct Model {
    /// Id, model, width, height, parameters.
    pub(super) cameras: Vec<(u32, i32, u64, u64, Vec<f64>)>,
    pub(super) images: Vec<Image>,
    pub(super) points: Vec<([f64; 3], [u8; 3])>,
}

impl Model {
    /// Three images of one camera of 8 x 6 pixels.
    pub(super) fn small() -> Self {
        let half = 0.5f64.sqrt();
        let image = |q, t, name: &str, points| (q, t, 1, name.to_owned(), points);
        Self {
            cameras: vec![(
                1,
                4,
                8,
                6,
                vec![9.0, 9.5, 4.0, 3.0, 0.1, 0.02, 0.001, 0.002],
            )],
            images: vec![
                image([1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0], "b.png", 2),
                image([half, 0.0, 0.0, half], [0.0, 0.5, 0.0], "a.png", 0),
                image([half, half, 0.0, 0.0], [1.0, 0.0, 0.0], "sub/c.png", 1),
            ],
            points: vec![
                ([1.0, 2.0, 3.0], [10, 20, 30]),
                ([-1.0, 0.0, 0.5], [255, 0, 1]),
            ],
        }
    }

    pub(super) fn cameras_bin(&self) -> Vec<u8> {
        let mut bytes = (self.cameras.len() as u64).to_le_bytes().to_vec();
        for (id, model, width, height, parameters) in &self.cameras {
            bytes.extend(id.to_le_bytes());
            bytes.extend(model.to_le_bytes());
            bytes.extend(width.to_le_bytes());
            bytes.extend(height.to_le_bytes());
            bytes.extend(parameters.iter().flat_map(|p| p.to_le_bytes()));
        }
        bytes
    }

    pub(super) fn images_bin(&self) -> Vec<u8> {
        let mut bytes = (self.images.len() as u64).to_le_bytes().to_vec();
        for (number, (q, t, camera, name, points)) in (1u32..).zip(&self.images) {
            bytes.extend(number.to_le_bytes());
            bytes.extend(q.iter().chain(t).flat_map(|v| v.to_le_bytes()));
            bytes.extend(camera.to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.extend(points.to_le_bytes());
            bytes.resize(bytes.len() + 24 * *points as usize, 0x11);
        }
        bytes
    }

    pub(super) fn points_bin(&self) -> Vec<u8> {
        let mut bytes = (self.points.len() as u64).to_le_bytes().to_vec();
        for (number, (place, colour)) in (1u64..).zip(&self.points) {
            bytes.extend(number.to_le_bytes());
            bytes.extend(place.iter().flat_map(|v| v.to_le_bytes()));
            bytes.extend(colour);
            bytes.extend(0.5f64.to_le_bytes());
            // A track of `number` elements.
            bytes.extend(number.to_le_bytes());
            bytes.resize(bytes.len() + 8 * number as usize, 0x22);
        }
        bytes
    }

    /// Writes the model in binary and its images.
    pub(super) fn write(&self, folder: &Folder) {
        self.write_at(folder, "sparse/0");
    }

    pub(super) fn write_at(&self, folder: &Folder, model: &str) {
        folder.write(&format!("{model}/cameras.bin"), self.cameras_bin());
        folder.write(&format!("{model}/images.bin"), self.images_bin());
        folder.write(&format!("{model}/points3D.bin"), self.points_bin());
        self.write_images(folder);
    }

    pub(super) fn write_images(&self, folder: &Folder) {
        let (.., width, height, _) = &self.cameras[0];
        for (.., name, _) in &self.images {
            folder.picture(&format!("images/{name}"), *width as usize, *height as usize);
        }
    }

    /// Writes the same model as text.
    pub(super) fn write_text(&self, folder: &Folder, names: &[&str]) {
        let list = |values: &[f64]| -> String { values.iter().map(|v| format!(" {v}")).collect() };
        let mut cameras = String::from("# Camera list\n");
        for (id, model, width, height, parameters) in &self.cameras {
            let name = names[*model as usize];
            cameras += &format!("{id} {name} {width} {height}{}\n", list(parameters));
        }
        let mut images = format!("# Image list\n# Number of images: {}\n", self.images.len());
        for (number, (q, t, camera, name, points)) in (1..).zip(&self.images) {
            images += &format!("{number}{}{} {camera} {name}\n", list(q), list(t));
            let places: Vec<String> = (0..*points).map(|i| format!("1.5 2.5 {i}")).collect();
            images += &format!("{}\n", places.join(" "));
        }
        let mut points = String::from("# 3D point list\n");
        for (number, (place, [r, g, b])) in (1..).zip(&self.points) {
            points += &format!("{number}{} {r} {g} {b} 0.5 1 2\n", list(place));
        }
        folder.write("sparse/0/cameras.txt", cameras);
        folder.write("sparse/0/images.txt", images);
        folder.write("sparse/0/points3D.txt", points);
        self.write_images(folder);
    }
}
