//! Rays of many image points of one camera.
//!
//! A fixed number of Newton's steps for eight points at a time, without branches
//! (`lanes`). What has not converged then, or lies close to where the lens ends, goes the
//! plain way (`optics`), as do the lenses that have no fast one. All numbers are f64: the
//! answers are those of the plain way to 1e-9, and differences of neighbouring directions
//! keep their digits.
//!
//! A point's answer follows from camera and point alone: not from its neighbours, nor from
//! its place in the slice. In every process.

use super::lanes::{self, Bending, LANES, Lane};
use super::lens::orthographic;
use super::model::{Camera, Lens};
use super::optics::Optics;

/// A camera, prepared for rays of many points.
#[derive(Debug, Clone)]
pub struct Unprojector {
    optics: Optics,
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    Pinhole,
    /// Bends the plane: `z = 1`.
    Plane(Bending),
    /// Bends the angles.
    Angles(Bending),
    /// Point by point: these lenses are rarer, or have a short formula.
    Plain,
}

/// Where directions are written: slices as long as those of the points. Directions are in the
/// camera, of the length that [`Ray::direction`](super::Ray) has, and zero where `valid` is
/// false.
#[derive(Debug)]
pub struct Directions<'a> {
    pub x: &'a mut [f64],
    pub y: &'a mut [f64],
    pub z: &'a mut [f64],
    /// False where the lens cannot be inverted.
    pub valid: &'a mut [bool],
}

impl Unprojector {
    /// Some microseconds: how far the lens can be inverted, and in how many steps.
    pub fn new(camera: &Camera) -> Self {
        let optics = Optics::new(camera);
        let bending = |k, p, s| {
            let mut bending = Bending::new(k, p, s, optics.limits().radius);
            bending.choose_steps(&samples(&optics));
            bending
        };
        let none = [0.0; 2];
        let way = match camera.lens {
            Lens::Pinhole => Way::Pinhole,
            Lens::Brown { k, p } => Way::Plane(bending(k, p, none)),
            Lens::Fisheye { k } => Way::Angles(bending(k, none, none)),
            Lens::ThinPrismFisheye { k, p, s } => Way::Angles(bending(k, p, s)),
            _ => Way::Plain,
        };
        Self { optics, way }
    }

    /// The plain way, with the same camera.
    pub fn optics(&self) -> &Optics {
        &self.optics
    }

    /// The directions through the points `(x[i], y[i])`, in pixels. Rays start at zero, but for
    /// [`Lens::Orthographic`] (see [`origin`](Unprojector::origin)).
    ///
    /// Slices of unequal lengths: as many points as the shortest has.
    pub fn directions(&self, x: &[f64], y: &[f64], out: Directions<'_>) {
        let lengths = [x.len(), y.len(), out.x.len(), out.y.len(), out.z.len()];
        let count = lengths.into_iter().fold(out.valid.len(), usize::min);
        for start in (0..count).step_by(LANES) {
            let here = start..count.min(start + LANES);
            let size = here.len();
            // Behind the last point zeros, whose answers are dropped.
            let (mut pixel_x, mut pixel_y) = ([0.0; LANES], [0.0; LANES]);
            pixel_x[..size].copy_from_slice(&x[here.clone()]);
            pixel_y[..size].copy_from_slice(&y[here.clone()]);
            let ([dx, dy, dz], valid) = self.eight(&pixel_x, &pixel_y, size);
            out.x[here.clone()].copy_from_slice(&dx[..size]);
            out.y[here.clone()].copy_from_slice(&dy[..size]);
            out.z[here.clone()].copy_from_slice(&dz[..size]);
            out.valid[here].copy_from_slice(&valid[..size]);
        }
    }

    /// Where the ray through `(x, y)` starts, in the camera.
    pub fn origin(&self, x: f64, y: f64) -> [f64; 3] {
        match self.optics.camera().lens {
            Lens::Orthographic => orthographic::origin(self.optics.without_unit(x, y)),
            _ => [0.0; 3],
        }
    }

    /// Of the eight the first `size` matter.
    fn eight(&self, x: &Lane, y: &Lane, size: usize) -> ([Lane; 3], [bool; LANES]) {
        let (bent_x, bent_y) = self.without_unit(x, y);
        let (mut directions, found) = match &self.way {
            Way::Pinhole => {
                let finite = |i: usize| bent_x[i].is_finite() & bent_y[i].is_finite();
                let found = std::array::from_fn(finite);
                ([bent_x, bent_y, [1.0; LANES]], found)
            }
            Way::Plane(bending) => {
                let (x, y, found) = bending.unbend(&bent_x, &bent_y);
                ([x, y, [1.0; LANES]], found)
            }
            Way::Angles(bending) => {
                let (x, y, found) = bending.unbend(&bent_x, &bent_y);
                let (x, y, z) = lanes::rays(&x, &y);
                ([x, y, z], found)
            }
            Way::Plain => ([[0.0; LANES]; 3], [false; LANES]),
        };
        let mut valid = found;
        for i in 0..size {
            if !found[i] {
                let ray = self.optics.unproject(x[i], y[i]);
                valid[i] = ray.is_some();
                let direction = ray.map_or([0.0; 3], |ray| ray.direction);
                for (lane, value) in directions.iter_mut().zip(direction) {
                    lane[i] = value;
                }
            }
        }
        (directions, valid)
    }

    fn without_unit(&self, x: &Lane, y: &Lane) -> (Lane, Lane) {
        let Camera { fx, fy, cx, cy, .. } = *self.optics.camera();
        let (mut bent_x, mut bent_y) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..LANES {
            bent_x[i] = (x[i] - cx) / fx;
            bent_y[i] = (y[i] - cy) / fy;
        }
        (bent_x, bent_y)
    }
}

/// Points of the image that have rays, without their unit: corners, edges and between.
fn samples(optics: &Optics) -> Vec<[f64; 2]> {
    let camera = optics.camera();
    let (width, height) = (f64::from(camera.width), f64::from(camera.height));
    let part = |i: usize| i as f64 / (SAMPLES - 1) as f64;
    let points = (0..SAMPLES * SAMPLES).map(|i| (part(i % SAMPLES), part(i / SAMPLES)));
    points
        .map(|(x, y)| (x * width, y * height))
        .filter(|(x, y)| optics.unproject(*x, *y).is_some())
        .map(|(x, y)| optics.without_unit(x, y))
        .collect()
}

const SAMPLES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::optics::tests::camera;
    use proptest::prelude::*;

    /// Directions and validity of points, and how many there are.
    fn all(unprojector: &Unprojector, points: &[(f64, f64)]) -> Vec<Option<[f64; 3]>> {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let mut out = vec![vec![7.0; points.len()]; 3];
        let mut valid = vec![true; points.len()];
        let [dx, dy, dz] = &mut out[..] else {
            unreachable!()
        };
        let (x, y) = (&x[..], &y[..]);
        let (to_x, to_y, to_z) = (&mut dx[..], &mut dy[..], &mut dz[..]);
        let directions = Directions {
            x: to_x,
            y: to_y,
            z: to_z,
            valid: &mut valid,
        };
        unprojector.directions(x, y, directions);
        let each = (0..points.len()).map(|i| {
            let direction = [out[0][i], out[1][i], out[2][i]];
            assert!(valid[i] || direction == [0.0; 3]);
            valid[i].then_some(direction)
        });
        each.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_fast_way_is_the_plain_way(
            camera in camera(),
            points in prop::collection::vec((-0.3..1.3f64, -0.3..1.3f64), 1..60),
        ) {
            let unprojector = Unprojector::new(&camera);
            let size = (f64::from(camera.width), f64::from(camera.height));
            let points: Vec<_> = points.iter().map(|(x, y)| (x * size.0, y * size.1)).collect();
            let given = all(&unprojector, &points);
            for ((x, y), given) in points.iter().zip(&given) {
                let plain = camera.unproject(*x, *y);
                prop_assert_eq!(plain.is_some(), given.is_some(), "{} {}", x, y);
                let (Some(plain), Some(given)) = (plain, *given) else { continue };
                let given = crate::camera::Ray { origin: [0.0; 3], direction: given }.unit();
                for (given, plain) in given.into_iter().zip(plain.unit()) {
                    prop_assert!((given - plain).abs() < 1e-9, "{} {}: {} {}", x, y, given, plain);
                }
            }
        }

        #[test]
        fn a_direction_does_not_depend_on_its_place(
            camera in camera(),
            points in prop::collection::vec((-0.3..1.3f64, -0.3..1.3f64), 1..30),
        ) {
            let unprojector = Unprojector::new(&camera);
            let size = (f64::from(camera.width), f64::from(camera.height));
            let points: Vec<_> = points.iter().map(|(x, y)| (x * size.0, y * size.1)).collect();
            let together = all(&unprojector, &points);
            for (point, together) in points.iter().zip(together) {
                prop_assert_eq!(all(&unprojector, &[*point])[0], together);
            }
        }
    }

    #[test]
    fn what_is_no_number_is_not_valid_and_spoils_nobody_else() {
        let k = [0.05, -0.08, 0.0, 0.0];
        for lens in [
            Lens::Pinhole,
            Lens::Brown { k, p: [1e-3; 2] },
            Lens::Fisheye { k },
            Lens::Equirectangular,
        ] {
            let camera = Camera {
                width: 100,
                height: 100,
                fx: 90.0,
                fy: 90.0,
                cx: 50.0,
                cy: 50.0,
                lens,
            };
            let points = [(50.0, 50.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)];
            let given = all(&Unprojector::new(&camera), &points);
            let [x, y, z] = given[0].unwrap();
            assert!(x.abs() + y.abs() + (z - 1.0).abs() < 1e-12, "{lens:?}");
            assert_eq!(given[1..], [None, None], "{lens:?}");
        }
    }

    #[test]
    fn parallel_rays_start_where_they_are_seen() {
        let camera = Camera {
            width: 100,
            height: 100,
            fx: 10.0,
            fy: 20.0,
            cx: 50.0,
            cy: 50.0,
            lens: Lens::Orthographic,
        };
        let unprojector = Unprojector::new(&camera);
        assert_eq!(unprojector.origin(60.0, 40.0), [1.0, -0.5, 0.0]);
        assert_eq!(all(&unprojector, &[(60.0, 40.0)]), [Some([0.0, 0.0, 1.0])]);
    }
}
