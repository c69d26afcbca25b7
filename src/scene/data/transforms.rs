//! `transforms.json` in all its dialects: nerfstudio's, instant-ngp's, Blender's and D-NeRF's,
//! ScanNet++'s.
//!
//! Runs in the consumer. Converts keys to cameras and poses; opens no image. Where dialects
//! contradict each other, a frame's own intrinsics override those at the top level, as in
//! instant-ngp. (nerfstudio uses them only if the top level has none.)

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::camera::Lens;
use crate::error::{Error, Result};
use crate::scene::data::bounds::{self, quoted, shown_number};
use crate::scene::data::camera_description::{CameraDescription, FocalLength};
use crate::scene::data::fault_keys;
use crate::scene::data::foreign_names;
use crate::scene::data::options::{OrientationMethod, SceneFormat, SceneOptions};
use crate::scene::data::point_cloud::PointsFile;
use crate::scene::data::scene::{Pose, RollingShutter, SceneSplit, WorldTransform};
use crate::scene::data::scene_description::{DuplicateImages, FrameDescription, SceneDescription};
use crate::scene::data::transforms_keys::{
    self, FrameKeys, LensKeys, TransformMatrix, TransformsFile,
};

/// nerfstudio's perspective camera models, with its six distortion coefficients.
const PERSPECTIVE: &[&str] = &[
    "SIMPLE_PINHOLE",
    "PINHOLE",
    "SIMPLE_RADIAL",
    "RADIAL",
    "OPENCV",
    "PERSPECTIVE",
];
const OTHER_MODELS: &str = "OPENCV_FISHEYE, FISHEYE624, EQUIRECTANGULAR, ORTHOPHOTO";

/// Largest number in `rolling_shutter`. They are fractions of an exposure.
const MOST_TIMING: f64 = 1e6;

/// Files of a Blender scene, and the split of their frames.
pub(super) const BLENDER: [(&str, SceneSplit); 3] = [
    ("transforms_train.json", SceneSplit::Train),
    ("transforms_val.json", SceneSplit::Eval),
    ("transforms_test.json", SceneSplit::Test),
];

/// Reads a scene of one `transforms.json`. Without a format it is instant-ngp's if no focal length
/// is in pixels, otherwise nerfstudio's.
pub(super) fn open(
    file: &Path,
    format: Option<SceneFormat>,
    options: &SceneOptions,
) -> Result<SceneDescription> {
    let document = transforms_keys::read(file, options.max_json_bytes)?;
    let root = folder_of_file(file);
    let frames = document.frames.as_deref().unwrap_or_default();
    let has_pixels = |lens: &LensKeys| lens.has_any(&["fl_x", "fl_y"]);
    let format = format.unwrap_or_else(|| {
        let model = document.lens.camera_model.is_some();
        match model || has_pixels(&document.lens) || frames.iter().any(|f| has_pixels(&f.lens)) {
            true => SceneFormat::Nerfstudio,
            false => SceneFormat::InstantNgp,
        }
    });
    let mut reader = Reader::new(file, root.clone(), format, &document);
    let mut frames = reader.frames("frames", document.frames.as_deref(), &root)?;
    let is_listed = mark_listed_frames(&mut frames, &document, file, &mut reader.notes)?;
    reader.found(frames, is_listed, &document)
}

/// Reads a scene of `transforms_{train,val,test}.json`. Some of them may be missing.
pub(super) fn open_blender(root: &Path, options: &SceneOptions) -> Result<SceneDescription> {
    let mut all: Option<SceneDescription> = None;
    let mut missing = Vec::new();
    for (name, split) in BLENDER {
        let file = root.join(name);
        if !file.exists() {
            missing.push(name);
            continue;
        }
        let document = transforms_keys::read(&file, options.max_json_bytes)?;
        let mut reader = Reader::new(&file, root.to_owned(), SceneFormat::Blender, &document);
        let mut frames = reader.frames("frames", document.frames.as_deref(), root)?;
        for frame in &mut frames {
            frame.split = Some(split);
            frame.at = format!("{name}: {}", frame.at);
        }
        match &mut all {
            None => all = Some(reader.found(frames, true, &document)?),
            Some(all) => {
                all.frames.append(&mut frames);
                all.notes.append(&mut reader.notes);
            }
        }
    }
    let mut all = all.ok_or_else(|| {
        let names = BLENDER.map(|(name, _)| name).join(", ");
        Error::dataset(root, format!("none of {names} exists"))
    })?;
    if !missing.is_empty() {
        all.notes.push(format!("no {}", missing.join(", no ")));
    }
    Ok(all)
}

/// Reads a scene of ScanNet++. `dslr` is the folder of that name.
pub(super) fn open_scannet(dslr: &Path, options: &SceneOptions) -> Result<SceneDescription> {
    let file = dslr.join("nerfstudio/transforms.json");
    let document = transforms_keys::read(&file, options.max_json_bytes)?;
    let images = dslr.join("resized_images");
    let mut reader = Reader::new(&file, dslr.to_owned(), SceneFormat::ScannetPp, &document);
    reader.masks = Some(dslr.join("resized_anon_masks"));
    reader.base.clone_from(&images);
    let mut frames = reader.frames("frames", document.frames.as_deref(), &images)?;
    let test = document.test_frames.as_deref();
    let is_listed = test.is_some();
    for frame in &mut frames {
        frame.split = is_listed.then_some(SceneSplit::Train);
    }
    if test.is_some() {
        let mut test = reader.frames("test_frames", test, &images)?;
        for frame in &mut test {
            frame.split = Some(SceneSplit::Eval);
        }
        frames.append(&mut test);
    }
    reader.found(frames, is_listed, &document)
}

/// Sets the split of frames from `train_filenames` and similar lists. False if there are none.
fn mark_listed_frames(
    frames: &mut [FrameDescription],
    document: &TransformsFile,
    file: &Path,
    notes: &mut Vec<String>,
) -> Result<bool> {
    let lists = [
        ("test_filenames", &document.test_filenames, SceneSplit::Test),
        ("val_filenames", &document.val_filenames, SceneSplit::Eval),
        (
            "train_filenames",
            &document.train_filenames,
            SceneSplit::Train,
        ),
    ];
    if lists.iter().all(|(_, list, _)| list.is_none()) {
        return Ok(false);
    }
    let numbers = foreign_names::by_name(frames);
    let mut moved = 0;
    for (key, list, split) in lists {
        for name in list.as_deref().unwrap_or_default() {
            let named = numbers.get(&foreign_names::key(name)).ok_or_else(|| {
                Error::dataset(
                    file,
                    format!("{key} names {}, but no frame has that name", quoted(name)),
                )
            })?;
            for number in named {
                let before = frames[*number].split.replace(split);
                moved += u64::from(before.is_some_and(|before| {
                    before != split && [before, split].contains(&SceneSplit::Train)
                }));
            }
        }
    }
    if moved > 0 {
        notes.push(format!(
            "{moved} frames are in both lists, of training and of evaluation: they are used for \
             training"
        ));
    }
    Ok(true)
}

/// Data that all frames of a file share.
struct Reader<'a> {
    file: &'a Path,
    root: PathBuf,
    format: SceneFormat,
    document: &'a TransformsFile,
    /// Folder that names of images are relative to.
    base: PathBuf,
    /// Folder that paths of masks are relative to, if not the root.
    masks: Option<PathBuf>,
    notes: Vec<String>,
    own_intrinsics: u64,
}

impl<'a> Reader<'a> {
    fn new(
        file: &'a Path,
        root: PathBuf,
        format: SceneFormat,
        document: &'a TransformsFile,
    ) -> Self {
        Self {
            file,
            base: root.clone(),
            root,
            format,
            document,
            masks: None,
            notes: Vec::new(),
            own_intrinsics: 0,
        }
    }

    fn found(
        mut self,
        frames: Vec<FrameDescription>,
        is_listed: bool,
        document: &TransformsFile,
    ) -> Result<SceneDescription> {
        let mut applied = WorldTransform::default();
        if let Some(matrix) = &document.applied_transform {
            check_matrix(&matrix.0).map_err(|e| self.error("applied_transform", &e))?;
            applied.transform = matrix.0;
        } else if self.format == SceneFormat::Nerfstudio
            && self.root.join("colmap/sparse/0").exists()
        {
            // The rotation that nerfstudio applied to COLMAP's worlds before it recorded it.
            applied.transform = [
                [0.0, 1.0, 0.0, 0.0],
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, -1.0, 0.0],
            ];
        }
        if let Some(scale) = document.applied_scale {
            bounds::check_scale(scale).map_err(|what| self.error("applied_scale", &what))?;
            applied.scale = scale;
        }
        let orientation = match document.orientation_override.as_deref() {
            None => None,
            Some("up") => Some(OrientationMethod::Up),
            Some("vertical") => Some(OrientationMethod::Vertical),
            Some("pca") => Some(OrientationMethod::Pca),
            Some("none") => Some(OrientationMethod::None),
            Some(other) => {
                let what = format!(
                    "{} is unknown: use up, vertical, pca or none",
                    quoted(other)
                );
                return Err(self.error("orientation_override", &what));
            }
        };
        let depth_unit = document.integer_depth_scale;
        if let Some(unit) = depth_unit {
            bounds::check_scale(unit).map_err(|what| self.error("integer_depth_scale", &what))?;
        }
        if self.own_intrinsics > 0 {
            self.notes.push(format!(
                "{} frames have their own intrinsics, and the file has others at the top level: \
                 their own are used (nerfstudio uses those at the top level)",
                self.own_intrinsics
            ));
        }
        let points = document.ply_file_path.as_ref();
        let points = points.filter(|path| !path.is_empty());
        Ok(SceneDescription {
            format: self.format,
            file: self.file.to_owned(),
            points: points.map(|path| PointsFile::Ply(self.root.join(path))),
            root: self.root,
            base: self.base,
            frames,
            before_orientation: None,
            orientation,
            applied,
            scale: None,
            depth_unit,
            is_listed,
            notes: self.notes,
            models: Vec::new(),
        })
    }

    fn error(&self, key: &str, what: &str) -> Error {
        Error::dataset(self.file, format!("{key}: {what}"))
    }

    fn frames(
        &mut self,
        key: &str,
        frames: Option<&[FrameKeys]>,
        base: &Path,
    ) -> Result<Vec<FrameDescription>> {
        let frames = frames.ok_or_else(|| self.error(key, "missing"))?;
        if frames.is_empty() && key == "frames" {
            return Err(self.error(key, "no frames"));
        }
        let mut seen: HashSet<PathBuf> = HashSet::with_capacity(frames.len());
        let mut repeated = DuplicateImages::default();
        let mut found = Vec::with_capacity(frames.len());
        for (number, frame) in frames.iter().enumerate() {
            let at = format!("{key}[{number}]");
            let frame = self.frame(frame, &at, base).map_err(|what| {
                let what = fault_keys::place(&what, &at, &frame.lens, &self.document.lens);
                Error::dataset(self.file, what)
            })?;
            if !seen.insert(frame.original()) {
                repeated.add(&at);
            }
            found.push(frame);
        }
        self.notes.extend(repeated.note());
        Ok(found)
    }

    /// Reads one frame. An error text starts with the key.
    fn frame(
        &mut self,
        keys: &FrameKeys,
        at: &str,
        base: &Path,
    ) -> Result<FrameDescription, String> {
        let file_path = keys.file_path.as_deref().unwrap_or_default();
        if file_path.is_empty() {
            return Err("file_path: missing".into());
        }
        if file_path.contains('\0') {
            return Err("file_path: has a zero byte".into());
        }
        let name = without_dot(file_path);
        let (folder, path) = split_folder(base, Path::new(&name));
        let pose = |key: &str, matrix: Option<&TransformMatrix>| {
            let matrix = matrix.ok_or_else(|| format!("{key}: missing"))?;
            check_matrix(&matrix.0).map_err(|what| format!("{key}: {what}"))?;
            Ok::<_, String>(from_opengl(&matrix.0))
        };
        let top = &self.document.lens;
        let (start, rolling_shutter) = match &keys.transform_matrix_start {
            Some(start) => {
                let start = pose("transform_matrix_start", Some(start))?;
                let end = pose("transform_matrix_end", keys.transform_matrix_end.as_ref())?;
                let timing = keys.lens.rolling_shutter.or(top.rolling_shutter);
                let timing = timing.unwrap_or_default();
                if let Some(value) = timing.iter().find(|value| value.abs() > MOST_TIMING) {
                    return Err(format!(
                        "rolling_shutter: {value:e} is out of range: use -1e6 to 1e6"
                    ));
                }
                (start, Some(RollingShutter { timing, end }))
            }
            None => (
                pose("transform_matrix", keys.transform_matrix.as_ref())?,
                None,
            ),
        };
        let (camera, is_own) = camera_of_frame(&keys.lens, top)?;
        self.own_intrinsics += u64::from(is_own);
        camera
            .check()
            .map_err(|fault| fault_keys::of_camera(&fault, &keys.lens, top))?;
        let masks = self.masks.as_deref().unwrap_or(&self.root);
        let uses_masks = self.document.has_mask != Some(false);
        let mask = keys.mask_path.as_ref().filter(|_| uses_masks);
        let depth = keys.depth_file_path.as_ref().or(keys.depth_path.as_ref());
        if let Some(time) = keys.time {
            bounds::check_time(time).map_err(|what| format!("time: {what}"))?;
        }
        let is_fisheye = matches!(
            camera.lens,
            Lens::Fisheye { .. } | Lens::Fisheye624 { .. } | Lens::ThinPrismFisheye { .. }
        );
        let radius = number(&keys.lens, top, "fisheye_crop_radius").filter(|_| is_fisheye);
        Ok(FrameDescription {
            name,
            at: at.to_owned(),
            number: 0,
            folder,
            path,
            mask: mask.map(|path| masks.join(without_dot(path))),
            depth: depth.map(|path| self.root.join(without_dot(path))),
            declared: camera,
            pose: start,
            time: keys.time,
            split: None,
            rolling_shutter,
            fisheye_crop_radius: radius,
        })
    }
}

/// The folder of a file.
fn folder_of_file(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A path of the file without a leading `./`.
fn without_dot(path: &str) -> String {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path.to_owned()
}

/// Splits a path into the folder of images and the rest. The folder is `images` if that is the
/// first folder of the path, otherwise the one that contains the file. Folders of smaller images
/// are beside it.
pub(super) fn split_folder(base: &Path, path: &Path) -> (PathBuf, PathBuf) {
    let mut parts = path.components();
    if let Some(Component::Normal(first)) = parts.next()
        && first == "images"
        && parts.clone().next().is_some()
    {
        return (base.join(first), parts.as_path().to_owned());
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => {
            (base.join(folder), PathBuf::from(name))
        }
        _ => (base.to_owned(), path.to_owned()),
    }
}

/// Converts from OpenGL's camera, which looks along -z and has y up, to OpenCV's, which looks along
/// z and has y down.
pub(super) fn from_opengl(matrix: &[[f64; 4]; 3]) -> Pose {
    Pose(matrix.map(|[x, y, z, t]| [x, -y, -z, t]))
}

/// # Errors
/// Numbers that are not finite, and rotations that cannot be inverted.
pub(super) fn check_matrix(matrix: &[[f64; 4]; 3]) -> Result<(), String> {
    bounds::check_pose(matrix)?;
    let [a, b, c] = matrix;
    let determinant = a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0]);
    let length = |row: &[f64; 4]| (row[0] * row[0] + row[1] * row[1] + row[2] * row[2]).sqrt();
    let volume = length(a) * length(b) * length(c);
    match determinant.abs() > 1e-6 * volume {
        true => Ok(()),
        false => Err("the rotation is singular: its rows lie in a plane".into()),
    }
}

fn number(frame: &LensKeys, top: &LensKeys, key: &str) -> Option<f64> {
    frame.number(key).or_else(|| top.number(key))
}

/// The camera of a frame, and whether it differs from the one at the top level.
fn camera_of_frame(frame: &LensKeys, top: &LensKeys) -> Result<(CameraDescription, bool), String> {
    let both = |key: &str| number(frame, top, key);
    let size = match (both("w"), both("h")) {
        (None, None) => None,
        (Some(w), Some(h)) => Some((pixels("w", w)?, pixels("h", h)?)),
        (Some(_), None) => return Err("h: missing, but w is present".into()),
        (None, Some(_)) => return Err("w: missing, but h is present".into()),
    };
    let lens = lens(frame, top)?;
    let along = |pixels: &str, degrees: &str, radians: &str| {
        [frame, top].into_iter().find_map(|keys| {
            let fov = || keys.number(degrees).map(f64::to_radians);
            let angle = || {
                fov()
                    .or_else(|| keys.number(radians))
                    .map(FocalLength::Angle)
            };
            keys.number(pixels).map(FocalLength::Pixels).or_else(angle)
        })
    };
    let x = along("fl_x", "x_fov", "camera_angle_x");
    let y = along("fl_y", "y_fov", "camera_angle_y");
    let focal = match (x, y) {
        (None, None) if lens == Lens::Equirectangular => {
            // The whole sphere, with nerfstudio's scale.
            let (w, h) = size.ok_or("w, h: missing, as are fl_x and fl_y")?;
            [f64::from(w) / 2.0, f64::from(h)].map(FocalLength::Pixels)
        }
        (None, None) => return Err("fl_x: missing, as are x_fov and camera_angle_x".into()),
        (x, y) => [x, y].map(|focal| focal.unwrap_or(FocalLength::AsOther)),
    };
    let camera = CameraDescription {
        size,
        focal,
        centre: [both("cx"), both("cy")],
        lens,
    };
    let differs = ["fl_x", "fl_y", "cx", "cy", "w", "h", "k1", "k2"]
        .iter()
        .any(|key| match (frame.number(key), top.number(key)) {
            (Some(own), Some(top)) => own != top,
            _ => false,
        });
    Ok((camera, differs))
}

fn pixels(key: &str, value: f64) -> Result<u32, String> {
    match value {
        1.0..=2_147_483_647.0 => Ok(value as u32),
        _ => Err(format!(
            "{key}: {} is not a valid number of pixels",
            shown_number(value)
        )),
    }
}

fn lens(frame: &LensKeys, top: &LensKeys) -> Result<Lens, String> {
    if frame.has_ftheta || top.has_ftheta {
        return Err("ftheta_p0: F-theta lenses are not supported: undistort the images".into());
    }
    let flag = |key: &str| frame.flag(key) || top.flag(key);
    let named = frame
        .camera_model
        .as_deref()
        .or(top.camera_model.as_deref());
    let model = match named {
        Some(model) => model,
        None if flag("is_fisheye") => "OPENCV_FISHEYE",
        None if flag("equirectangular") || flag("latlong") => "EQUIRECTANGULAR",
        None if flag("orthographic") => "ORTHOPHOTO",
        None => "OPENCV",
    };
    const KEYS: &[&str] = &[
        "k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2", "s1", "s2", "s3", "s4",
    ];
    // All coefficients must come from one place, so that two lenses are never mixed.
    let own = frame.distortion_params.is_some() || frame.has_any(KEYS);
    let keys = if own { frame } else { top };
    let of = |key: &str| keys.number(key).unwrap_or(0.0);
    let list = keys
        .distortion_params
        .as_deref()
        .filter(|list| !list.is_empty());
    let wrong = |list: &[f64], expected: usize| {
        format!(
            "distortion_params: {} numbers, but {model} has {expected}",
            list.len()
        )
    };
    if PERSPECTIVE.contains(&model) {
        let [k1, k2, k3, k4, p1, p2] = match list {
            None => ["k1", "k2", "k3", "k4", "p1", "p2"].map(of),
            Some(list) => list.try_into().map_err(|_| wrong(list, 6))?,
        };
        if of("k5") != 0.0 || of("k6") != 0.0 {
            return Err("k5, k6: this format has no rational lens: undistort the images".into());
        }
        let (k, p) = ([k1, k2, k3, k4], [p1, p2]);
        let none = k == [0.0; 4] && p == [0.0; 2];
        return Ok(if none {
            Lens::Pinhole
        } else {
            Lens::Brown { k, p }
        });
    }
    match model {
        "OPENCV_FISHEYE" => {
            let [k1, k2, k3, k4, p1, p2] = match list {
                None => ["k1", "k2", "k3", "k4", "p1", "p2"].map(of),
                Some(&[k1, k2, k3, k4]) => [k1, k2, k3, k4, 0.0, 0.0],
                Some(list) => list.try_into().map_err(|_| wrong(list, 6))?,
            };
            let k = [k1, k2, k3, k4];
            Ok(match [p1, p2] == [0.0; 2] {
                true => Lens::Fisheye { k },
                false => Lens::ThinPrismFisheye {
                    k,
                    p: [p1, p2],
                    s: [0.0; 2],
                },
            })
        }
        "FISHEYE624" => {
            let all: [f64; 12] = match list {
                None => std::array::from_fn(|at| of(KEYS[at])),
                Some(list) => list.try_into().map_err(|_| wrong(list, 12))?,
            };
            let [k1, k2, k3, k4, k5, k6, p1, p2, s1, s2, s3, s4] = all;
            Ok(Lens::Fisheye624 {
                k: [k1, k2, k3, k4, k5, k6],
                p: [p1, p2],
                s: [s1, s2, s3, s4],
            })
        }
        "EQUIRECTANGULAR" => Ok(Lens::Equirectangular),
        "ORTHOPHOTO" => Ok(Lens::Orthographic),
        other => Err(format!(
            "camera_model: {} is not supported: use one of {}, {OTHER_MODELS}, or undistort the \
             images",
            quoted(other),
            PERSPECTIVE.join(", ")
        )),
    }
}
