//! Reads a scene: its format, then cameras, poses and splits.
//!
//! Runs in the consumer.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use crate::camera::{Camera, Lens};
use crate::error::{Error, Result};
use crate::scene::data::bounds;
use crate::scene::data::description_files::{self, DescriptionFile};
use crate::scene::data::images::{self, FrameFiles};
use crate::scene::data::missing_files::{MissingFiles, UnreadImage};
use crate::scene::data::options::{
    CenterMethod, ImageOrder, OrientationMethod, SceneFormat, SceneOptions, SplitBy,
};
use crate::scene::data::scene::{Frame, Pose, RollingShutter, Scene, WorldTransform};
use crate::scene::data::scene_description::SceneDescription;
use crate::scene::data::{split, unsupported_layouts, world_orientation};

impl Scene {
    /// Reads the scene at `path`. It may be a folder with `transforms.json`, with
    /// `transforms_train.json`, with `dslr/` of ScanNet++, with a COLMAP model (`sparse/0`,
    /// `sparse`, `colmap/sparse/0`, `colmap_text`), or with `poses_bounds.npy`. It may also be a
    /// transforms file, or a model's folder such as `sparse/1`. Opens every image and reads its
    /// header.
    ///
    /// By default, poses are oriented, centred and scaled as nerfstudio's parser of the format
    /// does. With `none`, `none` and no automatic scale they stay in the file's world. A COLMAP
    /// world that is oriented is first turned so that -y is up, as in nerfstudio. One that is not
    /// oriented keeps COLMAP's axes, as in gsplat.
    ///
    /// # Errors
    /// A file that is missing, truncated or contradictory, with the key; images of another shape
    /// than the file states; with [`SceneOptions::strict`] also a missing image.
    pub fn open(path: impl AsRef<Path>, options: &SceneOptions) -> Result<Self> {
        open(path.as_ref(), options)
    }

    /// The format of the scene at `path`, from the names of its files; `None` if it is not a scene.
    /// Reads no file.
    pub fn detect(path: impl AsRef<Path>) -> Option<SceneFormat> {
        description_files::find_descriptions(path.as_ref())
            .first()
            .map(DescriptionFile::format)
    }

    /// For a folder with cameras in an unsupported format, such as OpenSfM's: the format, and how
    /// to convert it.
    pub fn conversion(path: impl AsRef<Path>) -> Option<String> {
        unsupported_layouts::conversion_hint(path.as_ref())
    }
}

fn open(path: &Path, options: &SceneOptions) -> Result<Scene> {
    check(options)?;
    if let Err(e) = path.metadata() {
        return Err(match e.kind() {
            std::io::ErrorKind::NotFound => Error::dataset(path, "no such file or folder"),
            _ => Error::dataset(path, e.to_string()),
        });
    }
    let mut found = description_files::read(path, options)?;
    sort_frames(&mut found, options.image_order);
    let split_by = mark_splits(&mut found, options)?;
    let to_scene = placement(&mut found, options)?;
    let (files, factor) = images::find(&found, options)?;
    assemble(found, files, factor, to_scene, split_by, options)
}

fn check(options: &SceneOptions) -> Result<()> {
    let numbers = [
        ("scale_factor", Some(options.scale_factor)),
        ("depth_unit", options.depth_unit),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            bounds::check_scale(value)
                .map_err(|what| Error::option(name, format!("`{name}`: {what}")))?;
        }
    }
    Ok(())
}

/// Sorts frames by [`ImageOrder`].
fn sort_frames(found: &mut SceneDescription, order: Option<ImageOrder>) {
    let is_colmap = found.format == SceneFormat::Colmap;
    let order = order.unwrap_or(match is_colmap {
        true => ImageOrder::Name,
        false => ImageOrder::Nerfstudio,
    });
    match (order, found.format) {
        (
            ImageOrder::Nerfstudio,
            SceneFormat::Blender | SceneFormat::InstantNgp | SceneFormat::Llff,
        ) => {}
        (ImageOrder::Nerfstudio, SceneFormat::Colmap) => {
            found.frames.sort_by_key(|frame| frame.number);
        }
        (ImageOrder::Name, SceneFormat::Colmap) => found.frames.sort_by(|a, b| a.name.cmp(&b.name)),
        _ => found.frames.sort_by_cached_key(|frame| frame.original()),
    }
}

/// Sets the split of every frame. Returns the rule.
fn mark_splits(found: &mut SceneDescription, options: &SceneOptions) -> Result<SplitBy> {
    let default = match found.format {
        _ if found.is_listed => SplitBy::Listed,
        SceneFormat::Colmap | SceneFormat::Llff => SplitBy::Interval(8),
        _ => SplitBy::Fraction(0.9),
    };
    let by = options.split_by.unwrap_or(default);
    if by == SplitBy::Listed && !found.is_listed {
        return Err(Error::option(
            "split_by",
            format!(
                "split is listed, but {} lists no frames for training and evaluation: use another \
                 split",
                found.file.display()
            ),
        ));
    }
    if by != SplitBy::Listed && found.is_listed {
        let what = "the scene lists frames for training and evaluation. The requested split \
                    replaces that list";
        found.notes.push(what.into());
    }
    split::mark(&mut found.frames, by).map_err(|what| Error::option("split_by", what))?;
    Ok(by)
}

/// The transform from the file's world to the scene's.
fn placement(found: &mut SceneDescription, options: &SceneOptions) -> Result<WorldTransform> {
    let format = found.format;
    let is_scaled = !matches!(format, SceneFormat::Blender | SceneFormat::InstantNgp);
    let keeps = !is_scaled || format == SceneFormat::Llff;
    let orientation = options.orientation.or(found.orientation);
    let orientation = orientation.unwrap_or(match keeps {
        true => OrientationMethod::None,
        false => OrientationMethod::Up,
    });
    let center = options.center.unwrap_or(match keeps {
        true => CenterMethod::None,
        false => CenterMethod::Poses,
    });
    let mut to_scene = WorldTransform::default();
    if let Some(before) = found.before_orientation
        && orientation != OrientationMethod::None
    {
        to_scene.transform = before;
    }
    let poses: Vec<_> = (found.frames.iter())
        .map(|frame| to_scene.pose(&frame.pose))
        .collect();
    let oriented = WorldTransform {
        transform: world_orientation::orient_and_center(&poses, orientation, center)
            .map_err(|what| Error::option("orientation", what))?,
        scale: 1.0,
    };
    to_scene.transform = oriented.after(&to_scene.transform);
    if options.auto_scale.unwrap_or(is_scaled) {
        let largest = world_orientation::largest(poses.iter().map(|pose| oriented.pose(pose)));
        let scale = found.scale.unwrap_or(1.0 / largest);
        match bounds::check_scale(scale).is_ok() {
            true => to_scene.scale = scale,
            false => found.notes.push(
                "all cameras are at or near the origin, so the scene cannot be scaled: remove the \
                 scaling"
                    .into(),
            ),
        }
    }
    to_scene.scale *= options.scale_factor;
    bounds::check_scale(to_scene.scale).map_err(|what| {
        let what = format!("the scale of the scene, with `scale_factor`: {what}");
        Error::option("scale_factor", what)
    })?;
    Ok(to_scene)
}

fn assemble(
    mut found: SceneDescription,
    files: Vec<Result<FrameFiles, UnreadImage>>,
    factor: u32,
    to_scene: WorldTransform,
    split_by: SplitBy,
    options: &SceneOptions,
) -> Result<Scene> {
    let mut cameras = Cameras::default();
    let mut frames = Vec::with_capacity(files.len());
    let mut missing = MissingFiles::default();
    let (mut unlisted, mut turned, mut found_masks, mut inverted) = (0u64, 0u64, 0u64, 0u64);
    let (mut scaled, mut skewed, mut found_depths) = (0u64, 0u64, 0u64);
    let total = found.frames.len();
    for (frame, files) in found.frames.into_iter().zip(files) {
        let files = match files {
            Ok(files) => files,
            Err(image) => {
                missing.add(image);
                continue;
            }
        };
        let camera = frame
            .declared
            .camera(files.size, files.is_turned, factor == 1)
            .map_err(|what| {
                Error::dataset(
                    &found.file,
                    format!("{} ({}): {what}", frame.at, files.image.display()),
                )
            })?;
        let wrong = |what: String| {
            let what = format!("{} ({}), in the scene: {what}", frame.at, frame.name);
            Error::dataset(&found.file, what)
        };
        let camera = scaled_camera(camera, to_scene.scale);
        camera.check().map_err(|fault| wrong(fault.to_string()))?;
        let Some(split) = frame.split else {
            unlisted += 1;
            continue;
        };
        missing.depths += u64::from(files.names_missing_depth);
        found_depths += u64::from(files.found_depth.is_some());
        turned += u64::from(files.is_turned);
        found_masks += u64::from(files.mask_was_found);
        inverted += u64::from(files.mask_is_inverted);
        let radius = frame.fisheye_crop_radius.map(|radius| {
            let declared = frame.declared.size.map_or(files.size.0, |(w, _)| w);
            radius * f64::from(files.size.0) / f64::from(declared)
        });
        let placed = |pose: &Pose| {
            let (pose, scale) = to_scene.pose(pose).without_scale();
            bounds::check_pose(&pose.0).map_err(&wrong)?;
            Ok::<_, Error>((pose, scale))
        };
        let (pose, scale) = placed(&frame.pose)?;
        let rolling_shutter = match frame.rolling_shutter {
            Some(shutter) => Some(RollingShutter {
                end: placed(&shutter.end)?.0,
                ..shutter
            }),
            None => None,
        };
        scaled += u64::from((scale - 1.0).abs() > 1e-3);
        skewed += u64::from(!pose.is_rotation());
        frames.push(Frame {
            name: frame.name,
            image: files.image,
            mask: files.mask,
            depth: files.depth,
            found_depth: files.found_depth,
            mask_is_full_size: files.mask_is_full_size,
            mask_is_inverted: files.mask_is_inverted,
            depth_is_full_size: files.depth_is_full_size,
            camera: cameras.number(camera),
            pose,
            time: frame.time,
            split,
            rolling_shutter,
            fisheye_crop_radius: radius,
        });
    }
    refuse_unread(
        &missing,
        total,
        frames.is_empty() && unlisted == 0,
        options,
        &found.file,
    )?;
    if frames.is_empty() {
        let what = "no frame is listed for training or evaluation";
        return Err(Error::dataset(found.file, what));
    }
    let inverse_depths = images::inverse_depths(&found.root);
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            found.notes.push(format!("{count} {what}"));
        }
    };
    note(unlisted, "frames are in no list, so they are left out");
    note(
        turned,
        "images have an EXIF turn of 90 degrees, which scenes ignore: pixels are read as stored",
    );
    note(
        found_masks,
        "masks were found by name. The scene's file names none",
    );
    note(
        inverted,
        "masks are instant-ngp's dynamic_mask_*: nonzero pixels are masked out",
    );
    note(
        scaled,
        "poses have a scale in their rotation. It is removed: axes have length 1",
    );
    note(
        skewed,
        "poses are not rotations: they mirror, skew or stretch. They are used unchanged, and \
         directions of rays have length 1",
    );
    note(
        found_depths,
        match (&inverse_depths, options.find_depths) {
            (Some(_), _) => "inverse depths (depth_params.json) were found. They are not supported",
            (None, false) => "depths were found by name. They are read if depths are requested",
            (None, true) => "depths were found by name. The scene's file names none",
        },
    );
    if let Some(points) = found.points.take_if(|points| !points.path().exists()) {
        missing.points = Some(points.path().to_owned());
    }
    Ok(Scene {
        root: found.root,
        format: found.format,
        cameras: cameras.all,
        frames,
        to_scene,
        applied: found.applied,
        depth_unit: options.depth_unit.or(found.depth_unit).unwrap_or(1e-3),
        downscale_folder: factor,
        evaluates_all: split_by == SplitBy::All,
        notes: found.notes,
        models: found.models,
        inverse_depths,
        missing,
        points_file: found.points,
    })
}

/// Converts a camera from the file's world to the scene's: distances between parallel rays are
/// scaled too. (nerfstudio scales poses, but not these distances.)
fn scaled_camera(camera: Camera, scale: f64) -> Camera {
    match camera.lens {
        Lens::Orthographic => Camera {
            fx: camera.fx / scale,
            fy: camera.fy / scale,
            ..camera
        },
        _ => camera,
    }
}

fn refuse_unread(
    missing: &MissingFiles,
    total: usize,
    is_all: bool,
    options: &SceneOptions,
    file: &Path,
) -> Result<()> {
    let Some(first) = missing.named.first() else {
        return Ok(());
    };
    if !options.strict && !is_all {
        return Ok(());
    }
    Err(Error::dataset(
        file,
        format!(
            "{} of {total} images are missing or cannot be read. The first is {}: {}",
            missing.images,
            first.path.display(),
            first.reason
        ),
    ))
}

/// Cameras without duplicates.
#[derive(Default)]
struct Cameras {
    all: Vec<Camera>,
    by_hash: HashMap<u64, Vec<u32>>,
}

impl Cameras {
    fn number(&mut self, camera: Camera) -> u32 {
        let mut hasher = DefaultHasher::new();
        (camera.width, camera.height).hash(&mut hasher);
        for value in [camera.fx, camera.fy, camera.cx, camera.cy] {
            value.to_bits().hash(&mut hasher);
        }
        format!("{:?}", camera.lens).hash(&mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        let known = alike
            .iter()
            .find(|number| self.all.get(**number as usize) == Some(&camera));
        if let Some(number) = known {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(camera);
        alike.push(number);
        number
    }
}
