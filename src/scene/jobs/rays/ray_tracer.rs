//! Computes rays from pixels: through the lens, then into the world.
//!
//! Runs in workers, and in the consumer with zero workers. Computes the values of nerfstudio's
//! `RayBundle` in f64 and writes them as f32. Not here: colours, the choice of pixels, lens
//! formulas.

use crate::camera::{CameraUnprojector, RayBundle, RayDirections};
use crate::scene::data::Pose;
use crate::scene::draw::ScenePixel;
use crate::scene::jobs::rays::fields::RayArrays;
use crate::scene::jobs::shared::frames::StoredFrames;

/// Prepared cameras, and reused memory for some rays.
#[derive(Debug)]
pub(super) struct RayTracer {
    lenses: Vec<CameraUnprojector>,
    /// The current rays, grouped by camera.
    order: Vec<u32>,
    points: [Vec<f64>; 2],
    /// In camera coordinates, of length 1.
    directions: [Vec<f64>; 3],
    areas: Vec<f64>,
    norms: Vec<f64>,
    valid: Vec<bool>,
}

impl RayTracer {
    pub(super) fn new(frames: &StoredFrames) -> Self {
        Self {
            lenses: frames.cameras.iter().map(CameraUnprojector::new).collect(),
            order: Vec::new(),
            points: Default::default(),
            directions: Default::default(),
            areas: Vec::new(),
            norms: Vec::new(),
            valid: Vec::new(),
        }
    }

    /// Writes everything except colours of the rays through `pixels`, to the array entries from
    /// `first` on. `exposure_time` is the time of a ray within the exposure of a rolling shutter, 0
    /// to 1. Skips pixels of images that do not exist; no draw returns such a pixel.
    pub(super) fn trace(
        &mut self,
        frames: &StoredFrames,
        pixels: &[ScenePixel],
        exposure_time: impl Fn(u32) -> f64,
        arrays: &mut RayArrays<'_>,
        first: usize,
    ) {
        let camera_of = |ray: u32| {
            let image = pixels[ray as usize].image as usize;
            frames.frames.get(image).map_or(u32::MAX, |f| f.camera)
        };
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..pixels.len() as u32);
        if self.lenses.len() > 1 {
            order.sort_unstable_by_key(|&ray| (camera_of(ray), ray));
        }
        for rays in order.chunk_by(|&a, &b| camera_of(a) == camera_of(b)) {
            let camera = rays.first().map_or(u32::MAX, |&ray| camera_of(ray)) as usize;
            if camera < self.lenses.len() {
                self.unproject_pixels(camera, rays, pixels);
                self.transform_to_world(
                    camera,
                    frames,
                    (rays, pixels),
                    &exposure_time,
                    (arrays, first),
                );
            }
        }
        self.order = order;
    }

    fn unproject_pixels(&mut self, camera: usize, rays: &[u32], pixels: &[ScenePixel]) {
        let centres = rays.iter().map(|&ray| pixels[ray as usize]);
        let [x, y] = &mut self.points;
        x.clear();
        x.extend(centres.clone().map(|pixel| f64::from(pixel.col) + 0.5));
        y.clear();
        y.extend(centres.map(|pixel| f64::from(pixel.row) + 0.5));
        for numbers in self.directions.iter_mut() {
            numbers.resize(rays.len(), 0.0);
        }
        self.areas.resize(rays.len(), 0.0);
        self.norms.resize(rays.len(), 0.0);
        self.valid.resize(rays.len(), false);
        let [to_x, to_y, to_z] = &mut self.directions;
        let out = RayBundle {
            directions: RayDirections {
                x: to_x,
                y: to_y,
                z: to_z,
                valid: &mut self.valid,
            },
            pixel_area: &mut self.areas,
            directions_norm: &mut self.norms,
        };
        self.lenses[camera].bundle(x, y, out);
    }

    fn transform_to_world(
        &self,
        camera: usize,
        frames: &StoredFrames,
        (rays, pixels): (&[u32], &[ScenePixel]),
        exposure_time: &impl Fn(u32) -> f64,
        (arrays, first): (&mut RayArrays<'_>, usize),
    ) {
        let lens = &self.lenses[camera];
        let image = lens.optics().camera();
        let (width, height) = (f64::from(image.width), f64::from(image.height));
        let [x, y, z] = &self.directions;
        for (i, &ray) in rays.iter().enumerate() {
            let pixel = &pixels[ray as usize];
            let to = first + ray as usize;
            let frame = &frames.frames[pixel.image as usize];
            arrays.indices[to] = [
                i64::from(pixel.image),
                i64::from(pixel.row),
                i64::from(pixel.col),
            ];
            if let Some(time) = arrays.times.get_mut(to) {
                *time = frame.time;
            }
            arrays.valid[to] = u8::from(self.valid[i]);
            // All of these are zero where the lens defines no ray.
            arrays.areas[to] = self.areas[i] as f32;
            let at = [self.points[0][i], self.points[1][i]];
            let pose = match &frame.rolling_shutter {
                None => frame.pose,
                Some(shutter) => {
                    let blur = if shutter.timing[3] == 0.0 {
                        0.0
                    } else {
                        exposure_time(ray)
                    };
                    shutter.pose_at(&frame.pose, (at[0] / width, at[1] / height), blur)
                }
            };
            let ([dx, dy, dz], length) = direction(&pose, [x[i], y[i], z[i]]);
            arrays.directions[to] = [dx as f32, dy as f32, dz as f32];
            arrays.norms[to] = (self.norms[i] * length) as f32;
            let [mut from_x, mut from_y, mut from_z] = match self.valid[i] {
                true => pose.centre(),
                false => [0.0; 3],
            };
            let beside = lens.origin(at[0], at[1]);
            if self.valid[i] && beside != [0.0; 3] {
                let [bx, by, bz] = rotated(&pose, beside);
                (from_x, from_y, from_z) = (from_x + bx, from_y + by, from_z + bz);
            }
            arrays.origins[to] = [from_x as f32, from_y as f32, from_z as f32];
        }
    }
}

/// Largest deviation of a squared length that counts as 1.
const EXACT: f64 = 1e-6;

/// Rotates a direction and normalises it. Also returns its length before: a pose that is not a
/// rotation stretches directions, and nerfstudio normalises them again.
#[inline]
fn direction(pose: &Pose, direction: [f64; 3]) -> ([f64; 3], f64) {
    let [x, y, z] = rotated(pose, direction);
    let square = x * x + y * y + z * z;
    // Zero if the lens defines no direction.
    if (square - 1.0).abs() <= EXACT || square == 0.0 {
        return ([x, y, z], 1.0);
    }
    let length = square.sqrt();
    ([x / length, y / length, z / length], length)
}

/// Without closures: this runs for every ray, and a closure that is not inlined costs more than the
/// whole computation.
#[inline]
fn rotated(pose: &Pose, [x, y, z]: [f64; 3]) -> [f64; 3] {
    let [a, b, c] = &pose.0;
    [
        a[0] * x + a[1] * y + a[2] * z,
        b[0] * x + b[1] * y + b[2] * z,
        c[0] * x + c[1] * y + c[2] * z,
    ]
}
