//! A scene in Python: numbers and paths. Images are not opened here.

use std::path::PathBuf;
use std::sync::Arc;

use featherload::scene::{Frame, PointCloud, Pose, Scene, SceneSplit, scene_svg};
use featherload::{DataType, Result};
use pyo3::prelude::*;

use crate::dlpack::ElementType;
use crate::errors::raised;
use crate::json::json;
use crate::options::{self, SceneRequest};
use crate::tensor::Tensor;
use crate::wait::in_thread;

/// Name, image, mask, depth; whether mask and depth belong to the original images, and whether the
/// mask is inverted; camera, time, split, radius of a fisheye crop; timing of a rolling shutter.
type FrameParts = (
    (String, PathBuf, Option<PathBuf>, Option<PathBuf>),
    (bool, bool, bool),
    (u32, Option<f64>, &'static str, Option<f64>),
    Option<[f64; 4]>,
);

/// Images with cameras and poses.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawScene {
    scene: Arc<Scene>,
}

impl RawScene {
    pub fn new(scene: Scene) -> Self {
        Self {
            scene: Arc::new(scene),
        }
    }

    pub fn scene(&self) -> &Scene {
        &self.scene
    }
}

#[pymethods]
impl RawScene {
    /// Reads the scene that `options` describe.
    #[new]
    fn open(py: Python<'_>, options: &str) -> PyResult<Self> {
        let wanted: SceneRequest = options::parse(py, options)?;
        in_thread(py, move || Scene::open(&wanted.path, &wanted.scene)).map(Self::new)
    }

    #[getter]
    fn root(&self) -> PathBuf {
        self.scene.root.clone()
    }

    /// Summary of the scene, as JSON.
    fn report(&self) -> PyResult<String> {
        told(json(&self.scene.report()))
    }

    /// The cameras, as JSON.
    fn cameras(&self) -> PyResult<String> {
        told(json(&self.scene.cameras))
    }

    /// The frames without their poses.
    fn frames(&self) -> Vec<FrameParts> {
        let parts = |frame: &Frame| {
            (
                (
                    frame.name.clone(),
                    frame.image.clone(),
                    frame.mask.clone(),
                    frame.depth.clone(),
                ),
                (
                    frame.mask_is_full_size,
                    frame.depth_is_full_size,
                    frame.mask_is_inverted,
                ),
                (
                    frame.camera,
                    frame.time,
                    frame.split.name(),
                    frame.fisheye_crop_radius,
                ),
                frame.rolling_shutter.map(|shutter| shutter.timing),
            )
        };
        self.scene.frames.iter().map(parts).collect()
    }

    /// Poses, camera to world, with OpenCV's axes: float64, frames x 3 x 4.
    fn poses(&self) -> Tensor {
        of_poses(self.scene.frames.iter().map(|frame| frame.pose))
    }

    /// Poses at the end of a rolling shutter. A frame without one has its pose here.
    fn end_poses(&self) -> Tensor {
        let end = |frame: &Frame| frame.rolling_shutter.map_or(frame.pose, |s| s.end);
        of_poses(self.scene.frames.iter().map(end))
    }

    /// Numbers of the frames of a split.
    fn frames_of(&self, split: &str) -> Option<Vec<u32>> {
        let named = SceneSplit::ALL.into_iter().find(|s| s.name() == split)?;
        Some(self.scene.frames_of(named))
    }

    /// Positions (float32, points x 3) and colours (uint8, points x 3; None if the points have no
    /// colours). None for a scene without points.
    fn points(&self, py: Python<'_>) -> PyResult<Option<(Tensor, Option<Tensor>)>> {
        let Some(points) = self.read_points(py)? else {
            return Ok(None);
        };
        let numbers = points.xyz.as_flattened().iter();
        let xyz = numbers.flat_map(|v| v.to_ne_bytes());
        let shape = [points.xyz.len(), 3];
        let xyz = of_bytes(xyz, ElementType::Pixel(DataType::F32), &shape);
        let colours = points.rgb.as_flattened().iter().copied();
        let rgb = (points.rgb.len() == points.xyz.len())
            .then(|| of_bytes(colours, ElementType::Pixel(DataType::U8), &shape));
        Ok(Some((xyz, rgb)))
    }

    /// nerfstudio's `dataparser_transforms`: a 3 x 4 transform, and a scale.
    fn dataparser_transforms(&self) -> ([[f64; 4]; 3], f64) {
        self.scene.dataparser_transforms()
    }

    /// The scene as an SVG drawing, with or without its points.
    fn svg(&self, py: Python<'_>, points: bool) -> PyResult<String> {
        let points = match points {
            true => self.read_points(py)?,
            false => None,
        };
        Ok(scene_svg(&self.scene, points.as_ref()))
    }
}

impl RawScene {
    fn read_points(&self, py: Python<'_>) -> PyResult<Option<PointCloud>> {
        let scene = self.scene.clone();
        in_thread(py, move || scene.points())
    }
}

fn told<T>(done: Result<T>) -> PyResult<T> {
    done.map_err(|e| raised(&e))
}

fn of_poses(poses: impl ExactSizeIterator<Item = Pose>) -> Tensor {
    let shape = [poses.len(), 3, 4];
    let numbers = poses.flat_map(|pose| pose.0.into_iter().flatten());
    let words = numbers.map(f64::to_bits).collect();
    Tensor::of_words(words, ElementType::Float64, &shape)
}

/// A tensor from the bytes of its elements.
fn of_bytes(bytes: impl Iterator<Item = u8>, element: ElementType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>() * element.size();
    let mut words = Vec::with_capacity(count.div_ceil(8));
    let mut word = [0; 8];
    let mut filled = 0;
    for byte in bytes {
        word[filled] = byte;
        filled += 1;
        if filled == word.len() {
            words.push(u64::from_ne_bytes(std::mem::take(&mut word)));
            filled = 0;
        }
    }
    if filled > 0 {
        words.push(u64::from_ne_bytes(word));
    }
    Tensor::of_words(words, element, shape)
}
