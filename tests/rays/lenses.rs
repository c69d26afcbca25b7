//! The colour of a ray is that of the wall which it hits: `demo --scene` through every
//! camera model. What the room looks like stands in the demo's manifest; its formula is
//! written here once more, so that nothing but the files is shared.
//!
//! Every comparison is made with wrong rays too, and has to fail.

use std::collections::HashSet;
use std::path::PathBuf;

use featherload::camera::{CameraOptics, Ray as CameraRay};
use featherload::rays::RaySampler;
use featherload::rays::{RayBatch, RayField, Rays};
use featherload::scene::{Pose, RollingShutter, SceneOptions, SplitBy, WorldTransform};
use featherload::{Camera, Lens, Scene};
use serde_json::Value;

use crate::common::FEATHERLOAD;
use crate::common::command::{featherload, object};

/// Half a level is rounding: of PNGs no more is left.
const PNG: Bound = Bound {
    most: 0.51,
    mean: 0.3,
};
/// A colour and what it shows through are rounded one after the other.
const RGBA: Bound = Bound {
    most: 1.01,
    mean: 0.3,
};
/// What is lost at quality 95.
const JPEG: Bound = Bound {
    most: 8.0,
    mean: 1.0,
};

/// Levels that colours may be off by.
#[derive(Clone, Copy)]
struct Bound {
    most: f64,
    mean: f64,
}

/// The demo's folder, and the numbers of its room.
struct Demo {
    dir: tempfile::TempDir,
    half: [f64; 3],
    waves: [([f64; 3], f64); 3],
    drift: f64,
    scenes: Vec<Value>,
}

/// A ray out of a batch; levels from 0 to 255.
struct Ray {
    image: usize,
    row: u32,
    col: u32,
    color: [f64; 3],
    origin: [f64; 3],
    direction: [f64; 3],
    norm: f64,
    time: Option<f64>,
    valid: bool,
}

/// Rays of a scene, and the scene.
struct Drawn {
    scene: Scene,
    /// Of each of its cameras.
    optics: Vec<CameraOptics>,
    rays: Vec<Ray>,
}

/// How far expected colours are from those of rays, in levels.
struct Differences {
    most: f64,
    mean: f64,
    /// The part of the rays that are farther off than the bound lets.
    over: f64,
}

impl Differences {
    fn holds(&self, bound: Bound) -> bool {
        self.most <= bound.most && self.mean <= bound.mean
    }

    /// Not by a few rays: a tenth of them, or a mean of twice what may be.
    fn fails(&self, bound: Bound) -> bool {
        self.over > 0.1 || self.mean > 2.0 * bound.mean
    }
}

impl std::fmt::Display for Differences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { most, mean, over } = self;
        write!(
            f,
            "most {most:.3}, mean {mean:.3}, {over:.3} over the bound"
        )
    }
}

impl Demo {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap().to_owned();
        object(&featherload(&["demo", "--scene", &path, "--json"]));
        let manifest = std::fs::read(dir.path().join(".featherload-demo.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let room = &manifest["room"];
        let three = |value: &Value| [0, 1, 2].map(|i| value[i].as_f64().unwrap());
        Self {
            dir,
            half: three(&room["half"]),
            waves: [0, 1, 2].map(|i| {
                let wave = &room["waves"][i];
                (three(&wave["turns"]), wave["phase"].as_f64().unwrap())
            }),
            drift: room["drift"].as_f64().unwrap(),
            scenes: manifest["scenes"].as_array().unwrap().clone(),
        }
    }

    fn path(&self, scene: &str) -> PathBuf {
        self.dir.path().join(scene)
    }

    /// Every frame trains; the world is turned, moved and scaled, as is the default.
    fn open(&self, scene: &str) -> Scene {
        let mut options = SceneOptions::default();
        options.split_by = Some(SplitBy::All);
        options.find_depths = true;
        Scene::open(self.path(scene), &options).unwrap()
    }

    fn draw(&self, scene: &str, workers: usize) -> Drawn {
        let mut rays = Rays::builder(self.open(scene))
            .helper(FEATHERLOAD)
            .num_workers(workers)
            .rays(8000)
            .joining(0)
            .build()
            .unwrap();
        let mut all = Vec::new();
        for _ in 0..3 {
            all.extend(read(&rays.next_batch().unwrap()));
        }
        let scene = self.open(scene);
        Drawn {
            optics: scene.cameras.iter().map(CameraOptics::new).collect(),
            scene,
            rays: all,
        }
    }

    /// How far it is to the wall, in lengths of `direction`; both in the room.
    fn reach(&self, origin: [f64; 3], direction: [f64; 3]) -> f64 {
        let walls = (0..3).map(|axis| match direction[axis] {
            0.0 => f64::INFINITY,
            along => (self.half[axis] * along.signum() - origin[axis]) / along,
        });
        walls.fold(f64::INFINITY, f64::min)
    }

    /// The levels, not rounded, at the end of a ray.
    fn color(&self, origin: [f64; 3], direction: [f64; 3], time: f64) -> [f64; 3] {
        let reach = self.reach(origin, direction);
        let hit = [0, 1, 2].map(|axis| origin[axis] + reach * direction[axis]);
        assert!((0..3).all(|axis| hit[axis].abs() < self.half[axis] + 1e-5));
        let wave = |(turns, phase): ([f64; 3], f64)| dot(turns, hit) + phase + self.drift * time;
        self.waves.map(|w| 127.5 + 120.0 * wave(w).sin())
    }

    /// That of a ray of a batch, by the batch's own origin and direction.
    fn color_of(&self, scene: &Scene, ray: &Ray) -> [f64; 3] {
        let (origin, direction) = in_room(&scene.to_scene, ray.origin, ray.direction);
        self.color(origin, direction, ray.time.unwrap_or(0.0))
    }

    /// That which a camera sees at the image point (x, y) of the ray's frame; none where
    /// the lens has no ray.
    fn color_at(
        &self,
        scene: &Scene,
        ray: &Ray,
        optics: &CameraOptics,
        at: [f64; 2],
    ) -> Option<[f64; 3]> {
        let seen = optics.unproject(at[0], at[1])?;
        let (frame, camera) = (&scene.frames[ray.image], optics.camera());
        let pose = match &frame.rolling_shutter {
            None => frame.pose,
            Some(shutter) => {
                let (width, height) = (f64::from(camera.width), f64::from(camera.height));
                shutter.pose_at(&frame.pose, (at[0] / width, at[1] / height), 0.0)
            }
        };
        let (origin, direction) = through(&pose, seen);
        let (origin, direction) = in_room(&scene.to_scene, origin, direction);
        Some(self.color(origin, direction, ray.time.unwrap_or(0.0)))
    }
}

impl Drawn {
    /// The colours of all valid rays beside those that `expected` says; where it says
    /// none, nothing is compared.
    fn against(&self, bound: Bound, expected: impl Fn(&Ray) -> Option<[f64; 3]>) -> Differences {
        let (mut most, mut sum, mut over, mut count) = (0.0f64, 0.0, 0u32, 0u32);
        for ray in self.rays.iter().filter(|ray| ray.valid) {
            let Some(wanted) = expected(ray) else {
                continue;
            };
            let off = [0, 1, 2].map(|channel| (ray.color[channel] - wanted[channel]).abs());
            let worst = off.into_iter().fold(0.0, f64::max);
            most = most.max(worst);
            sum += off.iter().sum::<f64>() / 3.0;
            over += u32::from(worst > bound.most);
            count += 1;
        }
        assert!(count as usize > self.rays.len() / 2, "{count} compared");
        Differences {
            most,
            mean: sum / f64::from(count),
            over: f64::from(over) / f64::from(count),
        }
    }

    fn optics(&self, ray: &Ray) -> &CameraOptics {
        &self.optics[self.scene.frames[ray.image].camera as usize]
    }
}

/// The rays of a batch.
fn read(batch: &RayBatch) -> Vec<Ray> {
    let floats = |field| batch.floats(field).unwrap();
    let three = |field, ray: usize| {
        let all = floats(field);
        [0, 1, 2].map(|axis| f64::from(all[3 * ray + axis]))
    };
    let valid = batch.valid().unwrap();
    let rays = batch.indices().unwrap().iter().enumerate();
    rays.map(|(i, index)| Ray {
        image: index[0] as usize,
        row: index[1] as u32,
        col: index[2] as u32,
        color: three(RayField::Colors, i).map(|part| 255.0 * part),
        origin: three(RayField::Origins, i),
        direction: three(RayField::Directions, i),
        norm: f64::from(floats(RayField::DirectionNorms)[i]),
        time: floats(RayField::Times).get(i).map(|time| f64::from(*time)),
        valid: valid[i] == 1,
    })
    .collect()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// A ray of the scene in the file's world, in which the room stands.
fn in_room(
    to_scene: &WorldTransform,
    origin: [f64; 3],
    direction: [f64; 3],
) -> ([f64; 3], [f64; 3]) {
    let rows = to_scene.transform;
    let back = |v: [f64; 3]| [0, 1, 2].map(|i| dot(rows.map(|row| row[i]), v));
    let from = [0, 1, 2].map(|axis| origin[axis] / to_scene.scale - rows[axis][3]);
    (back(from), back(direction))
}

/// A ray of a camera in the scene.
fn through(pose: &Pose, ray: CameraRay) -> ([f64; 3], [f64; 3]) {
    let turned = |v: [f64; 3]| pose.0.map(|[a, b, c, _]| dot([a, b, c], v));
    let beside = turned(ray.origin);
    let centre = pose.centre();
    let origin = [0, 1, 2].map(|axis| centre[axis] + beside[axis]);
    (origin, turned(ray.unit()))
}

fn numbers(lens: &mut Lens) -> Vec<&mut f64> {
    match lens {
        Lens::Brown { k, p } => k.iter_mut().chain(p).collect(),
        Lens::Rational { k, p } => k.iter_mut().chain(p).collect(),
        Lens::Fisheye { k } => k.iter_mut().collect(),
        Lens::Fisheye624 { k, p, s } => k.iter_mut().chain(p).chain(s).collect(),
        Lens::ThinPrismFisheye { k, p, s } => k.iter_mut().chain(p).chain(s).collect(),
        Lens::Fov { omega } => vec![omega],
        Lens::Pinhole | Lens::Equirectangular | Lens::Orthographic => Vec::new(),
    }
}

/// The camera without one of its coefficients, for each that it has.
fn without_one(camera: &Camera) -> Vec<CameraOptics> {
    let count = numbers(&mut camera.lens.clone()).len();
    let mut all = Vec::new();
    for number in 0..count {
        let mut less = *camera;
        let mut values = numbers(&mut less.lens);
        if *values[number] != 0.0 {
            *values[number] = 0.0;
            all.push(CameraOptics::new(&less));
        }
    }
    all
}

/// A scene for each camera model, and how many coefficients the model has there.
const MODELS: [(&str, usize); 10] = [
    ("pinhole", 0),
    ("radial", 2),
    ("opencv", 6),
    ("full-opencv", 8),
    ("opencv-fisheye", 4),
    ("fisheye624", 12),
    ("thin-prism-fisheye", 8),
    ("fov", 1),
    ("equirectangular", 0),
    ("orthophoto", 0),
];

/// The others: a scene for each thing that a scene may have, and how far colours may be off.
const KINDS: [(&str, Bound); 8] = [
    ("jpeg", JPEG),
    ("rgba", RGBA),
    ("own-intrinsics", PNG),
    ("masks", PNG),
    ("time", PNG),
    ("many", PNG),
    ("rolling-shutter", PNG),
    ("crop-radius", PNG),
];

#[test]
fn no_scene_of_the_demo_is_left_out_here() {
    let demo = Demo::new();
    let made = demo
        .scenes
        .iter()
        .map(|scene| scene["path"].as_str().unwrap());
    let models = MODELS.iter().map(|(name, _)| *name);
    assert!(made.eq(models.chain(KINDS.iter().map(|(name, _)| *name))));
}

#[test]
fn through_every_lens_a_ray_has_the_colour_of_the_wall_that_it_hits() {
    let demo = Demo::new();
    for (name, coefficients) in MODELS {
        let [drawn, by_workers] = [0, 2].map(|workers| demo.draw(name, workers));
        for drawn in [&drawn, &by_workers] {
            let right = drawn.against(PNG, |ray| Some(demo.color_of(&drawn.scene, ray)));
            assert!(right.holds(PNG), "{name}: {right}");
        }
        // Through another camera, or past the middle of the pixel.
        let wrong = |what: &str, other: Option<&CameraOptics>, at: fn(f64, f64) -> [f64; 2]| {
            let found = drawn.against(PNG, |ray| {
                let optics = other.unwrap_or(drawn.optics(ray));
                let at = at(f64::from(ray.col) + 0.5, f64::from(ray.row) + 0.5);
                demo.color_at(&drawn.scene, ray, optics, at)
            });
            assert!(found.fails(PNG), "{name}, {what}: {found}");
        };
        wrong("half a pixel to the right", None, |x, y| [x + 0.5, y]);
        wrong("half a pixel up", None, |x, y| [x, y - 0.5]);
        wrong("row for column", None, |x, y| [y, x]);
        let less = without_one(&drawn.scene.cameras[0]);
        assert_eq!(less.len(), coefficients, "{name}");
        for less in less {
            let what = format!("{:?}", less.camera().lens);
            wrong(&what, Some(&less), |x, y| [x, y]);
        }
    }
}

#[test]
fn colours_hold_for_every_kind_of_image_and_frame() {
    let demo = Demo::new();
    for (name, bound) in KINDS {
        for workers in [0, 2] {
            let drawn = demo.draw(name, workers);
            let frames = &drawn.scene.frames;
            let alphas: Vec<_> = match name {
                "rgba" => (frames.iter())
                    .map(|frame| image::open(&frame.image).unwrap().to_rgba8())
                    .collect(),
                _ => Vec::new(),
            };
            // White shows through.
            let shown = |ray: &Ray, color: [f64; 3]| match alphas.get(ray.image) {
                Some(image) => {
                    let part = f64::from(image.get_pixel(ray.col, ray.row)[3]) / 255.0;
                    color.map(|level| part * level + (1.0 - part) * 255.0)
                }
                None => color,
            };
            let right = drawn.against(bound, |ray| {
                Some(shown(ray, demo.color_of(&drawn.scene, ray)))
            });
            assert!(right.holds(bound), "{name}, {workers} workers: {right}");
            assert!(drawn.rays.iter().all(|ray| ray.valid), "{name}");

            let wrong = |what: &str, other: Option<&CameraOptics>, x: f64, y: f64| {
                let found = drawn.against(bound, |ray| {
                    let optics = other.unwrap_or(drawn.optics(ray));
                    let at = [f64::from(ray.col) + x, f64::from(ray.row) + y];
                    let color = demo.color_at(&drawn.scene, ray, optics, at)?;
                    Some(shown(ray, color))
                });
                assert!(found.fails(bound), "{name}, {what}: {found}");
            };
            wrong("half a pixel to the right", None, 1.0, 0.5);
            wrong("half a pixel up", None, 0.5, 0.0);
            match name {
                "own-intrinsics" => {
                    assert!(drawn.optics.len() > 4);
                    wrong("all by one camera", drawn.optics.first(), 0.5, 0.5);
                }
                "time" => {
                    let still = drawn.against(bound, |ray| {
                        let still = Ray { time: None, ..*ray };
                        Some(demo.color_of(&drawn.scene, &still))
                    });
                    assert!(still.fails(bound), "{still}");
                    for ray in &drawn.rays {
                        let time = frames[ray.image].time.unwrap() as f32;
                        assert_eq!(ray.time, Some(f64::from(time)));
                    }
                }
                _ => assert!(drawn.rays.iter().all(|ray| ray.time.is_none())),
            }
        }
    }
}

#[test]
fn pixels_that_the_lens_has_no_ray_for_are_not_valid_and_say_nothing() {
    let demo = Demo::new();
    for (name, least) in [("radial", 500), ("opencv-fisheye", 500), ("fisheye624", 20)] {
        let drawn = demo.draw(name, 2);
        let mut left_out = 0;
        for ray in &drawn.rays {
            let (x, y) = (f64::from(ray.col) + 0.5, f64::from(ray.row) + 0.5);
            let seen = drawn.optics(ray).unproject(x, y);
            // The demo leaves such pixels black, and has no other black ones.
            assert_eq!(ray.valid, seen.is_some(), "{name}, ({x}, {y})");
            assert_eq!(ray.valid, ray.color != [0.0; 3], "{name}, ({x}, {y})");
            if !ray.valid {
                left_out += 1;
                assert_eq!((ray.origin, ray.direction), ([0.0; 3], [0.0; 3]));
                assert_eq!(ray.norm, 0.0);
            }
        }
        assert!(left_out > least, "{name}: {left_out}");
    }
}

#[test]
fn a_rolling_shutter_is_seen_from_where_the_camera_was() {
    let demo = Demo::new();
    let drawn = demo.draw("rolling-shutter", 0);
    let wrong = |what: &str, change: fn(&mut Pose, &mut RollingShutter)| {
        let mut scene = drawn.scene.clone();
        for frame in &mut scene.frames {
            if let Some(shutter) = &mut frame.rolling_shutter {
                change(&mut frame.pose, shutter);
            }
        }
        let found = drawn.against(PNG, |ray| {
            let at = [f64::from(ray.col) + 0.5, f64::from(ray.row) + 0.5];
            demo.color_at(&scene, ray, drawn.optics(ray), at)
        });
        assert!(found.fails(PNG), "{what}: {found}");
    };
    wrong("at its start", |_, shutter| shutter.timing = [0.0; 4]);
    wrong("at its end", |_, shutter| {
        shutter.timing = [1.0, 0.0, 0.0, 0.0];
    });
    wrong("columns for rows", |_, shutter| shutter.timing.swap(1, 2));
    wrong("upside down", |_, shutter| {
        let [begin, u, v, blur] = shutter.timing;
        shutter.timing = [begin + v, u, -v, blur];
    });
    wrong("start for end", |start, shutter| {
        std::mem::swap(start, &mut shutter.end);
    });
    wrong("turned alone", |start, shutter| {
        for (row, from) in shutter.end.0.iter_mut().zip(start.0) {
            row[3] = from[3];
        }
    });
    wrong("moved alone", |start, shutter| {
        let to = shutter.end.centre();
        shutter.end = *start;
        for (row, to) in shutter.end.0.iter_mut().zip(to) {
            row[3] = to;
        }
    });
}

#[test]
fn rays_of_a_fisheye_come_from_all_within_its_crop_radius_and_from_nowhere_else() {
    let demo = Demo::new();
    let text = std::fs::read(demo.path("crop-radius").join("transforms.json")).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    let radius = text["fisheye_crop_radius"].as_f64().unwrap();
    let drawn = demo.draw("crop-radius", 2);
    let image = image::open(&drawn.scene.frames[0].image).unwrap().to_rgb8();
    let middle = [image.width(), image.height()].map(|side| f64::from(side) / 2.0);
    let within: HashSet<(u32, u32)> = (image.enumerate_pixels())
        .filter(|(x, y, pixel)| {
            let (x, y) = (f64::from(*x) + 0.5, f64::from(*y) + 0.5);
            let is_within = (x - middle[0]).hypot(y - middle[1]) <= radius;
            // The demo has this colour beyond the radius, and nowhere else.
            assert_eq!(is_within, pixel.0 != [255, 0, 255], "({x}, {y})");
            is_within
        })
        .map(|(x, y, _)| (y, x))
        .collect();
    let found: HashSet<_> = drawn.rays.iter().map(|ray| (ray.row, ray.col)).collect();
    assert!(found.is_subset(&within));
    assert!(found.len() * 100 > within.len() * 99, "{}", found.len());
}

#[test]
fn depths_times_the_norms_end_at_the_wall() {
    let demo = Demo::new();
    for name in [
        "opencv",
        "opencv-fisheye",
        "thin-prism-fisheye",
        "rolling-shutter",
    ] {
        let drawn = demo.draw(name, 0);
        let scene = &drawn.scene;
        let described = demo.scenes.iter().find(|scene| scene["path"] == name);
        let unit = described.unwrap()["depth_unit"].as_f64().unwrap();
        assert_eq!(scene.depth_unit, unit);
        let depths: Vec<_> = (scene.frames.iter())
            .map(|frame| image::open(frame.depth.as_ref().unwrap()).unwrap())
            .map(|depth| depth.as_luma16().unwrap().clone())
            .collect();
        // Of the room's units: along the ray, by its own depth or that of a neighbour.
        let off = |ray: &Ray, columns: u32, norm: f64| {
            let (origin, direction) = in_room(&scene.to_scene, ray.origin, ray.direction);
            let col = (ray.col + columns).min(depths[ray.image].width() - 1);
            let depth = unit * f64::from(depths[ray.image].get_pixel(col, ray.row)[0]);
            (depth - demo.reach(origin, direction) / norm).abs()
        };
        let valid = || drawn.rays.iter().filter(|ray| ray.valid);
        let most = valid().map(|ray| off(ray, 0, ray.norm)).fold(0.0, f64::max);
        assert!(most < 0.51 * unit && most < 1e-3, "{name}: {most}");
        let wrong = |off: &dyn Fn(&Ray) -> f64| valid().filter(|ray| off(ray) > 1e-3).count();
        let all = valid().count();
        let beside = wrong(&|ray| off(ray, 1, ray.norm));
        let twice = wrong(&|ray| off(ray, 0, 2.0 * ray.norm));
        assert!(
            beside > all / 2 && twice == all,
            "{name}: {beside}, {twice}"
        );
        // Perspective lenses have depths along the axis, others along the ray.
        let along = wrong(&|ray| off(ray, 0, 1.0));
        match name {
            "opencv" | "rolling-shutter" => assert!(along > all * 9 / 10, "{along} of {all}"),
            _ => assert_eq!(along, 0, "{name}"),
        }
    }
}

#[test]
fn rays_stay_within_masks_and_a_mask_of_one_pixel_has_its_ray() {
    let demo = Demo::new();
    for (workers, sampler) in [
        (0, RaySampler::Uniform),
        (2, RaySampler::Uniform),
        (2, RaySampler::ByImage),
    ] {
        let scene = demo.open("masks");
        let masks: Vec<_> = (scene.frames.iter())
            .map(|frame| frame.mask.as_ref())
            .map(|mask| mask.map(|path| image::open(path).unwrap().to_luma8()))
            .collect();
        let mut rays = Rays::builder(scene)
            .helper(FEATHERLOAD)
            .num_workers(workers)
            .rays(30_000)
            .sampler(sampler)
            .joining(0)
            .build()
            .unwrap();
        let mut counts = [0u32; 6];
        for ray in read(&rays.next_batch().unwrap()) {
            counts[ray.image] += 1;
            if let Some(mask) = &masks[ray.image] {
                let level = mask.get_pixel(ray.col, ray.row)[0];
                assert_eq!(level, 255, "image {}: {}, {}", ray.image, ray.row, ray.col);
            }
        }
        // One pixel, and none: the others have 1,400 or more.
        assert!(counts[1] > 0 && counts[2] == 0, "{counts:?}");
        match sampler {
            RaySampler::ByImage => assert!(counts.iter().filter(|n| **n > 5_000).count() == 5),
            _ => assert!(counts[1] < 30 && counts[3] < counts[0], "{counts:?}"),
        }
    }
}

#[test]
fn small_batches_of_300_images_sample_all_of_them_evenly() {
    let demo = Demo::new();
    for workers in [0, 2] {
        let mut rays = Rays::builder(demo.open("many"))
            .helper(FEATHERLOAD)
            .num_workers(workers)
            .rays(128)
            .joining(0)
            .build()
            .unwrap();
        let mut counts = [0u32; 300];
        for _ in 0..500 {
            let batch = rays.next_batch().unwrap();
            for index in batch.indices().unwrap() {
                counts[index[0] as usize] += 1;
            }
        }
        let never = counts.iter().filter(|n| **n == 0).count();
        let wanted_value = 128.0 * 500.0 / 300.0;
        let parts = counts.map(|n| (f64::from(n) - wanted_value).powi(2) / wanted_value);
        let chi: f64 = parts.iter().sum();
        assert_eq!(never, 0);
        // Of 299 degrees of freedom: 299 in the mean, with a deviation of 24.5.
        assert!(chi < 299.0 + 4.0 * 24.5, "{chi}");
    }
}
