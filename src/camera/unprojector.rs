//! Rays of many image points of one camera.
//!
//! A fixed number of Newton's steps for eight points at a time, without branches
//! (`lanes`). What has not converged then, or lies close to where the lens ends, goes the
//! plain way (`optics`), as do lenses whose formula needs no steps. All numbers are f64: the
//! answers are those of the plain way to 1e-9, and differences of neighbouring directions
//! keep their digits.
//!
//! A point's answer follows from camera and point alone: not from its neighbours, nor from
//! its place in the slice. In every process.

use std::ops::Range;

use super::lanes::{self, LANES, Lane, Polynomial, Prism, Quotient, Unbend};
use super::lens::orthographic;
use super::model::{Camera, Lens};
use super::optics::Optics;
use crate::sys::cpu::CpuLevel;

/// A camera, prepared for rays of many points.
#[derive(Debug, Clone)]
pub struct Unprojector {
    optics: Optics,
    way: Way,
    /// Whether the loops take the code for AVX2: twice as many points an instruction.
    wide: bool,
}

#[derive(Debug, Clone)]
enum Way {
    Pinhole,
    Brown(Unbend<Polynomial<4, false>>),
    Rational(Unbend<Quotient>),
    Fisheye(Unbend<Polynomial<4, false>>),
    ThinPrism(Unbend<Polynomial<4, true>>),
    Aria(Unbend<Prism>, Unbend<Polynomial<6, false>>),
    /// Point by point: a formula without rounds.
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

/// Where rays are written as nerfstudio's `RayBundle` has them, but in the camera: slices as
/// long as those of the points. All zero where `valid` is false.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// Of length 1.
    pub directions: Directions<'a>,
    /// As [`Footprint::pixel_area`](super::Footprint).
    pub pixel_area: &'a mut [f64],
    /// As [`Footprint::directions_norm`](super::Footprint).
    pub directions_norm: &'a mut [f64],
}

impl Unprojector {
    /// Some microseconds: how far the lens can be inverted, and in how many steps.
    pub fn new(camera: &Camera) -> Self {
        let optics = Optics::new(camera);
        let way = Way::new(&optics);
        Self {
            optics,
            way,
            wide: CpuLevel::detect().is_ok_and(|level| level == CpuLevel::Avx2),
        }
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
        #[cfg(target_arch = "x86_64")]
        if self.wide && is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2: it was asked in the line above.
            return unsafe { directions_avx2(self, x, y, out) };
        }
        self.directions_here(x, y, out);
    }

    /// [`directions`](Unprojector::directions), inlined into code for some kind of CPU.
    #[inline(always)]
    fn directions_here(&self, x: &[f64], y: &[f64], mut out: Directions<'_>) {
        for here in eights(x.len().min(y.len()).min(out.len())) {
            let (x, y) = (eight_of(x, &here), eight_of(y, &here));
            let (directions, valid) = self.eight(&x, &y, here.len());
            out.write(here, &directions, &valid);
        }
    }

    /// As [`directions`](Unprojector::directions), of length 1, and how much of the world each
    /// pixel sees: three times the work.
    pub fn bundle(&self, x: &[f64], y: &[f64], out: Bundle<'_>) {
        #[cfg(target_arch = "x86_64")]
        if self.wide && is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2: it was asked in the line above.
            return unsafe { bundle_avx2(self, x, y, out) };
        }
        self.bundle_here(x, y, out);
    }

    /// [`bundle`](Unprojector::bundle), inlined into code for some kind of CPU.
    #[inline(always)]
    fn bundle_here(&self, x: &[f64], y: &[f64], mut out: Bundle<'_>) {
        let longest = out.pixel_area.len().min(out.directions_norm.len());
        let count = x.len().min(y.len()).min(out.directions.len()).min(longest);
        for here in eights(count) {
            let (x, y) = (eight_of(x, &here), eight_of(y, &here));
            let size = here.len();
            let (mut directions, valid) = self.eight(&x, &y, size);
            let (mut right, right_valid) = self.eight(&x.map(|x| x + 1.0), &y, size);
            let (mut below, below_valid) = self.eight(&x, &y.map(|y| y + 1.0), size);
            let mut norm = self.directions_norm(&directions);
            for rays in [&mut directions, &mut right, &mut below] {
                normalise(rays);
            }
            let mut area = area(&directions, &right, &below);
            for i in 0..size {
                if !valid[i] {
                    (area[i], norm[i]) = (0.0, 0.0);
                    directions.iter_mut().for_each(|lane| lane[i] = 0.0);
                } else if !(right_valid[i] && below_valid[i]) {
                    let footprint = self.optics.footprint(x[i], y[i]);
                    area[i] = footprint.map_or(0.0, |footprint| footprint.pixel_area);
                }
            }
            out.pixel_area[here.clone()].copy_from_slice(&area[..size]);
            out.directions_norm[here.clone()].copy_from_slice(&norm[..size]);
            out.directions.write(here, &directions, &valid);
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
    #[inline(always)]
    fn eight(&self, x: &Lane, y: &Lane, size: usize) -> ([Lane; 3], [bool; LANES]) {
        let (bent_x, bent_y) = self.without_unit(x, y);
        let (mut directions, found) = match &self.way {
            Way::Pinhole => {
                let finite = |i: usize| bent_x[i].is_finite() & bent_y[i].is_finite();
                (forward(bent_x, bent_y), std::array::from_fn(finite))
            }
            Way::Brown(unbend) => {
                let (x, y, found) = unbend.unbend(&bent_x, &bent_y);
                (forward(x, y), found)
            }
            Way::Rational(unbend) => {
                let (x, y, found) = unbend.unbend(&bent_x, &bent_y);
                (forward(x, y), found)
            }
            Way::Fisheye(unbend) => {
                let (x, y, found) = unbend.unbend(&bent_x, &bent_y);
                (lanes::rays(&x, &y), found)
            }
            Way::ThinPrism(unbend) => {
                let (x, y, found) = unbend.unbend(&bent_x, &bent_y);
                (lanes::rays(&x, &y), found)
            }
            Way::Aria(prism, radial) => {
                let (x, y, first) = prism.unbend(&bent_x, &bent_y);
                let (x, y, second) = radial.unbend(&x, &y);
                let both = std::array::from_fn(|i| first[i] & second[i]);
                (lanes::rays(&x, &y), both)
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

    #[inline(always)]
    fn directions_norm(&self, [x, y, z]: &[Lane; 3]) -> Lane {
        std::array::from_fn(|i| self.optics.directions_norm([x[i], y[i], z[i]]))
    }

    #[inline(always)]
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

/// The same operations in the same order, never fused: the bits are those of every other CPU.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn bundle_avx2(lens: &Unprojector, x: &[f64], y: &[f64], out: Bundle<'_>) {
    lens.bundle_here(x, y, out);
}

/// As [`bundle_avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn directions_avx2(lens: &Unprojector, x: &[f64], y: &[f64], out: Directions<'_>) {
    lens.directions_here(x, y, out);
}

impl Directions<'_> {
    fn len(&self) -> usize {
        let shorter = self.x.len().min(self.y.len());
        shorter.min(self.z.len()).min(self.valid.len())
    }

    #[inline(always)]
    fn write(&mut self, here: Range<usize>, [x, y, z]: &[Lane; 3], valid: &[bool; LANES]) {
        let size = here.len();
        self.x[here.clone()].copy_from_slice(&x[..size]);
        self.y[here.clone()].copy_from_slice(&y[..size]);
        self.z[here.clone()].copy_from_slice(&z[..size]);
        self.valid[here].copy_from_slice(&valid[..size]);
    }
}

/// `0..count` in pieces of eight; the last may be shorter.
fn eights(count: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..count).step_by(LANES);
    starts.map(move |start| start..count.min(start + LANES))
}

/// Behind the last point zeros, whose answers are dropped.
#[inline(always)]
fn eight_of(values: &[f64], here: &Range<usize>) -> Lane {
    let mut lane = [0.0; LANES];
    lane[..here.len()].copy_from_slice(&values[here.clone()]);
    lane
}

#[inline(always)]
fn normalise([x, y, z]: &mut [Lane; 3]) {
    for i in 0..LANES {
        let scale = 1.0 / (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]).sqrt();
        x[i] *= scale;
        y[i] *= scale;
        z[i] *= scale;
    }
}

#[inline(always)]
fn area(here: &[Lane; 3], right: &[Lane; 3], below: &[Lane; 3]) -> Lane {
    let apart = |other: &[Lane; 3], i: usize| {
        let [x, y, z] = [0, 1, 2].map(|axis| here[axis][i] - other[axis][i]);
        x * x + y * y + z * z
    };
    std::array::from_fn(|i| (apart(right, i) * apart(below, i)).sqrt())
}

impl Way {
    fn new(optics: &Optics) -> Self {
        let limit = optics.limits().radius;
        let samples = samples(optics);
        let none = [0.0; 2];
        let polynomial = |k, p| {
            let plane = Polynomial { k, p, s: none };
            Unbend::new(plane, limit, &samples)
        };
        match optics.camera().lens {
            Lens::Pinhole => Self::Pinhole,
            Lens::Brown { k, p } => Self::Brown(polynomial(k, p)),
            Lens::Fisheye { k } => Self::Fisheye(polynomial(k, none)),
            Lens::ThinPrismFisheye { k, p, s } => {
                Self::ThinPrism(Unbend::new(Polynomial { k, p, s }, limit, &samples))
            }
            Lens::Rational { k, p } => {
                let [k1, k2, k3, k4, k5, k6] = k;
                let (above, below) = ([k1, k2, k3], [k4, k5, k6]);
                Self::Rational(Unbend::new(Quotient { above, below, p }, limit, &samples))
            }
            Lens::Fisheye624 { k, p, s } => {
                let prism = Unbend::new(Prism { p, s }, f64::INFINITY, &samples);
                let straightened: Vec<[f64; 2]> = samples
                    .iter()
                    .map(|[x, y]| prism.unbend(&[*x; LANES], &[*y; LANES]))
                    .map(|(x, y, _)| [x[0], y[0]])
                    .collect();
                let plane = Polynomial {
                    k,
                    p: none,
                    s: none,
                };
                Self::Aria(prism, Unbend::new(plane, limit, &straightened))
            }
            Lens::Fov { .. } | Lens::Equirectangular | Lens::Orthographic => Self::Plain,
        }
    }
}

#[inline(always)]
fn forward(x: Lane, y: Lane) -> [Lane; 3] {
    [x, y, [1.0; LANES]]
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

    /// Directions, pixel areas and norms.
    type Row = [f64; 5];

    fn rows(points: &[(f64, f64)], write: impl Fn(&[f64], &[f64], Bundle<'_>)) -> Vec<Option<Row>> {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let mut out: [Vec<f64>; 5] = std::array::from_fn(|_| vec![0.0; points.len()]);
        let mut valid = vec![true; points.len()];
        let [to_x, to_y, to_z, pixel_area, directions_norm] = &mut out;
        let directions = Directions {
            x: to_x,
            y: to_y,
            z: to_z,
            valid: &mut valid,
        };
        let bundle = Bundle {
            directions,
            pixel_area,
            directions_norm,
        };
        write(&x, &y, bundle);
        let row = |i: usize| std::array::from_fn(|column| out[column][i]);
        let each = (0..points.len()).map(|i| {
            assert!(valid[i] || row(i) == [0.0; 5]);
            valid[i].then(|| row(i))
        });
        each.collect()
    }

    fn all(unprojector: &Unprojector, points: &[(f64, f64)]) -> Vec<Option<[f64; 3]>> {
        let rows = rows(points, |x, y, out| {
            unprojector.directions(x, y, out.directions);
        });
        let directions = rows
            .into_iter()
            .map(|row| row.map(|[x, y, z, ..]| [x, y, z]));
        directions.collect()
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
        fn every_kind_of_cpu_gives_the_same_bits(
            camera in camera(),
            points in prop::collection::vec((-0.3..1.3f64, -0.3..1.3f64), 1..60),
        ) {
            let mut unprojector = Unprojector::new(&camera);
            let size = (f64::from(camera.width), f64::from(camera.height));
            let points: Vec<_> = points.iter().map(|(x, y)| (x * size.0, y * size.1)).collect();
            let of = |unprojector: &Unprojector| {
                let rows = rows(&points, |x, y, out| unprojector.bundle(x, y, out));
                let bits = rows.into_iter().map(|row| row.map(|row| row.map(f64::to_bits)));
                bits.collect::<Vec<_>>()
            };
            let here = of(&unprojector);
            unprojector.wide = false;
            prop_assert_eq!(here, of(&unprojector));
        }

        #[test]
        fn bundles_are_the_footprints_of_the_plain_way(
            camera in camera(),
            points in prop::collection::vec((-0.1..1.1f64, -0.1..1.1f64), 1..40),
        ) {
            let unprojector = Unprojector::new(&camera);
            let size = (f64::from(camera.width), f64::from(camera.height));
            let points: Vec<_> = points.iter().map(|(x, y)| (x * size.0, y * size.1)).collect();
            let given = rows(&points, |x, y, out| unprojector.bundle(x, y, out));
            for ((x, y), given) in points.iter().zip(given) {
                let plain = unprojector.optics().footprint(*x, *y);
                prop_assert_eq!(plain.is_some(), given.is_some(), "{} {}", x, y);
                let (Some(plain), Some([dx, dy, dz, area, norm])) = (plain, given) else {
                    continue;
                };
                let ray = camera.unproject(*x, *y).map(|ray| ray.unit());
                for (given, plain) in [dx, dy, dz].into_iter().zip(ray.unwrap_or_default()) {
                    prop_assert!((given - plain).abs() < 1e-9);
                }
                // Two directions of 1e-9 each, over the distance to the next pixel's.
                let doubt = 4e-9 * plain.pixel_area.sqrt().max(1e-9);
                prop_assert!((area - plain.pixel_area).abs() < doubt,
                    "{} {}: {} {}", x, y, area, plain.pixel_area);
                prop_assert!((norm / plain.directions_norm - 1.0).abs() < 1e-6);
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
