//! Rays of many image points of one camera.
//!
//! Takes a fixed number of Newton's steps for thirty-two points at a time, without branches
//! (`lanes`). Points that have not converged then, or that are close to the end of the lens, use
//! the scalar method (`optics`). So do lenses with a closed formula. All numbers are f64. The
//! results equal those of the scalar method within 1e-9, and differences of neighbouring directions
//! keep their precision.
//!
//! The result of a point depends only on camera and point, not on its neighbours or its position in
//! the slice. Used in every process.

use std::ops::Range;

use super::lanes::{
    self, LANES, LaneValues, PlaneDistortion, PlaneInverse, PolynomialPlane, PrismPlane,
    RationalPlane, StraightPoints,
};
use super::lens::orthographic;
use super::model::{Camera, Lens};
use super::optics::CameraOptics;
use crate::sys::cpu::CpuLevel;

/// A camera, prepared to compute rays of many points.
#[derive(Debug, Clone)]
pub struct CameraUnprojector {
    optics: CameraOptics,
    way: UnprojectMethod,
    /// Whether to use the AVX2 code, which processes twice as many points per instruction.
    wide: bool,
}

#[derive(Debug, Clone)]
enum UnprojectMethod {
    Pinhole(Straightforward<true>),
    Brown(Newton<PolynomialPlane<4, false>, false>),
    Rational(Newton<RationalPlane, false>),
    Fisheye(Newton<PolynomialPlane<4, false>, true>),
    ThinPrism(Newton<PolynomialPlane<4, true>, true>),
    Aria(Aria),
    /// Point by point: a closed formula.
    Plain(Straightforward<false>),
}

/// Output slices for directions, as long as those of the points. Directions are in camera
/// coordinates, with the length of [`Ray::direction`](super::Ray), and zero where `valid` is false.
#[derive(Debug)]
pub struct RayDirections<'a> {
    pub x: &'a mut [f64],
    pub y: &'a mut [f64],
    pub z: &'a mut [f64],
    /// False where the lens cannot be inverted.
    pub valid: &'a mut [bool],
}

/// Output slices for the values of nerfstudio's `RayBundle`, in camera coordinates, as long as
/// those of the points. All are zero where `valid` is false.
#[derive(Debug)]
pub struct RayBundle<'a> {
    /// Of length 1.
    pub directions: RayDirections<'a>,
    /// Like [`PixelFootprint::pixel_area`](super::PixelFootprint).
    pub pixel_area: &'a mut [f64],
    /// Like [`PixelFootprint::directions_norm`](super::PixelFootprint).
    pub directions_norm: &'a mut [f64],
}

impl CameraUnprojector {
    /// Computes the limit of inversion and the number of steps. Takes some microseconds.
    pub fn new(camera: &Camera) -> Self {
        let optics = CameraOptics::new(camera);
        let way = UnprojectMethod::new(&optics);
        Self {
            optics,
            way,
            wide: CpuLevel::detect().is_ok_and(|level| level == CpuLevel::Avx2),
        }
    }

    /// The scalar method of the same camera.
    pub fn optics(&self) -> &CameraOptics {
        &self.optics
    }

    /// Directions through the points `(x[i], y[i])`, in pixels. Rays start at zero, except for
    /// [`Lens::Orthographic`] (see [`origin`](CameraUnprojector::origin)).
    ///
    /// If the slices have different lengths, the shortest counts.
    pub fn directions(&self, x: &[f64], y: &[f64], out: RayDirections<'_>) {
        #[cfg(target_arch = "x86_64")]
        if self.wide && is_x86_feature_detected!("avx2") {
            // SAFETY: the line above has checked that the CPU has AVX2.
            return unsafe { directions_avx2(self, x, y, out) };
        }
        self.directions_here(x, y, out);
    }

    /// [`directions`](CameraUnprojector::directions), inlined into code for one kind of CPU.
    #[inline(always)]
    fn directions_here(&self, x: &[f64], y: &[f64], out: RayDirections<'_>) {
        match &self.way {
            UnprojectMethod::Pinhole(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::Brown(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::Rational(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::Fisheye(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::ThinPrism(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::Aria(way) => self.directions_by(way, x, y, out),
            UnprojectMethod::Plain(way) => self.directions_by(way, x, y, out),
        }
    }

    #[inline(always)]
    fn directions_by(&self, way: &impl Inverse, x: &[f64], y: &[f64], mut out: RayDirections<'_>) {
        for here in pieces(x.len().min(y.len()).min(out.len())) {
            let (x, y) = (piece_of(x, &here), piece_of(y, &here));
            let n = padded_len(here.len());
            let (bent_x, bent_y) = self.to_image_plane(&x, &y, n);
            let found = way.found(&bent_x, &bent_y, n);
            let (directions, valid) = self.completed(&found, &x, &y, here.len());
            out.write(here, &directions, &valid);
        }
    }

    /// Like [`directions`](CameraUnprojector::directions), with directions of length 1 and the
    /// footprint of each pixel. Takes twice the work.
    pub fn bundle(&self, x: &[f64], y: &[f64], out: RayBundle<'_>) {
        #[cfg(target_arch = "x86_64")]
        if self.wide && is_x86_feature_detected!("avx2") {
            // SAFETY: the line above has checked that the CPU has AVX2.
            return unsafe { bundle_avx2(self, x, y, out) };
        }
        self.bundle_here(x, y, out);
    }

    /// [`bundle`](CameraUnprojector::bundle), inlined into code for one kind of CPU.
    #[inline(always)]
    fn bundle_here(&self, x: &[f64], y: &[f64], out: RayBundle<'_>) {
        match &self.way {
            UnprojectMethod::Pinhole(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::Brown(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::Rational(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::Fisheye(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::ThinPrism(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::Aria(way) => self.bundle_by(way, x, y, out),
            UnprojectMethod::Plain(way) => self.bundle_by(way, x, y, out),
        }
    }

    #[inline(always)]
    fn bundle_by(&self, way: &impl Inverse, x: &[f64], y: &[f64], mut out: RayBundle<'_>) {
        let longest = out.pixel_area.len().min(out.directions_norm.len());
        let count = x.len().min(y.len()).min(out.directions.len()).min(longest);
        for here in pieces(count) {
            let (x, y) = (piece_of(x, &here), piece_of(y, &here));
            let size = here.len();
            let n = padded_len(size);
            let (bent_x, bent_y) = self.to_image_plane(&x, &y, n);
            let (right_x, below_y) = self.to_image_plane(&one_more(&x), &one_more(&y), n);
            let middle = way.found(&bent_x, &bent_y, n);
            let right = way.beside(&middle, &right_x, &bent_y, n);
            let below = way.beside(&middle, &bent_x, &below_y, n);
            let (mut directions, valid) = self.completed(&middle, &x, &y, size);
            let mut norm = self.directions_norm(&directions, n);
            normalise(&mut directions, n);
            let (mut to_right, mut to_below) = (right.directions, below.directions);
            normalise(&mut to_right, n);
            normalise(&mut to_below, n);
            let mut area = area(&directions, &to_right, &to_below, n);
            for i in 0..size {
                if !valid[i] {
                    (area[i], norm[i]) = (0.0, 0.0);
                    directions.iter_mut().for_each(|lane| lane[i] = 0.0);
                } else if !(right.is[i] && below.is[i]) {
                    let footprint = self.optics.footprint(x[i], y[i]);
                    area[i] = footprint.map_or(0.0, |footprint| footprint.pixel_area);
                }
            }
            out.pixel_area[here.clone()].copy_from_slice(&area[..size]);
            out.directions_norm[here.clone()].copy_from_slice(&norm[..size]);
            out.directions.write(here, &directions, &valid);
        }
    }

    /// Number of Newton's steps for the points of this camera: those of its plane, and those of the
    /// part of [`Lens::Fisheye624`] after its polynomial.
    pub(crate) fn steps(&self) -> [u32; 2] {
        match &self.way {
            UnprojectMethod::Pinhole(_) | UnprojectMethod::Plain(_) => [0, 0],
            UnprojectMethod::Brown(Newton(unbend)) => [unbend.steps(), 0],
            UnprojectMethod::Fisheye(Newton(unbend)) => [unbend.steps(), 0],
            UnprojectMethod::Rational(Newton(unbend)) => [unbend.steps(), 0],
            UnprojectMethod::ThinPrism(Newton(unbend)) => [unbend.steps(), 0],
            UnprojectMethod::Aria(Aria { prism, radial }) => [radial.steps(), prism.steps()],
        }
    }

    /// Start of the ray through `(x, y)`, in camera coordinates.
    pub fn origin(&self, x: f64, y: f64) -> [f64; 3] {
        match self.optics.camera().lens {
            Lens::Orthographic => orthographic::origin(self.optics.to_image_plane(x, y)),
            _ => [0.0; 3],
        }
    }

    /// Completes the first `size` points: those that did not converge use the scalar method.
    #[inline(always)]
    fn completed<P>(
        &self,
        found: &LaneDirections<P>,
        x: &LaneValues,
        y: &LaneValues,
        size: usize,
    ) -> ([LaneValues; 3], [bool; LANES]) {
        let (mut directions, mut valid) = (found.directions, found.is);
        for i in 0..size {
            if !found.is[i] {
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
    fn directions_norm(&self, [x, y, z]: &[LaneValues; 3], n: usize) -> LaneValues {
        let mut norm = [0.0; LANES];
        for i in 0..n {
            norm[i] = self.optics.directions_norm([x[i], y[i], z[i]]);
        }
        norm
    }

    #[inline(always)]
    fn to_image_plane(&self, x: &LaneValues, y: &LaneValues, n: usize) -> (LaneValues, LaneValues) {
        let Camera { fx, fy, cx, cy, .. } = *self.optics.camera();
        let (mut bent_x, mut bent_y) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..n {
            bent_x[i] = (x[i] - cx) / fx;
            bent_y[i] = (y[i] - cy) / fy;
        }
        (bent_x, bent_y)
    }
}

/// The same operations in the same order, never fused, so the result is the same on every CPU.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn bundle_avx2(lens: &CameraUnprojector, x: &[f64], y: &[f64], out: RayBundle<'_>) {
    lens.bundle_here(x, y, out);
}

/// Like [`bundle_avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn directions_avx2(lens: &CameraUnprojector, x: &[f64], y: &[f64], out: RayDirections<'_>) {
    lens.directions_here(x, y, out);
}

impl RayDirections<'_> {
    fn len(&self) -> usize {
        let shorter = self.x.len().min(self.y.len());
        shorter.min(self.z.len()).min(self.valid.len())
    }

    #[inline(always)]
    fn write(&mut self, here: Range<usize>, [x, y, z]: &[LaneValues; 3], valid: &[bool; LANES]) {
        let size = here.len();
        self.x[here.clone()].copy_from_slice(&x[..size]);
        self.y[here.clone()].copy_from_slice(&y[..size]);
        self.z[here.clone()].copy_from_slice(&z[..size]);
        self.valid[here].copy_from_slice(&valid[..size]);
    }
}

/// Splits `0..count` into ranges of [`LANES`]; the last may be shorter.
fn pieces(count: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..count).step_by(LANES);
    starts.map(move |start| start..count.min(start + LANES))
}

/// Rounds up to full vectors of four. The value must be unknown at compile time: loops of known
/// length are unrolled before they are vectorised.
#[inline(always)]
fn padded_len(size: usize) -> usize {
    size.next_multiple_of(4).min(LANES)
}

/// Zeros after the last point. Their results are dropped.
#[inline(always)]
fn piece_of(values: &[f64], here: &Range<usize>) -> LaneValues {
    let mut lane = [0.0; LANES];
    lane[..here.len()].copy_from_slice(&values[here.clone()]);
    lane
}

#[inline(always)]
fn normalise([x, y, z]: &mut [LaneValues; 3], n: usize) {
    for i in 0..n {
        let scale = 1.0 / (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]).sqrt();
        x[i] *= scale;
        y[i] *= scale;
        z[i] *= scale;
    }
}

/// Square of the distance between the ends of two directions.
#[inline(always)]
fn apart2(one: &[LaneValues; 3], other: &[LaneValues; 3], n: usize) -> LaneValues {
    let mut sum = [0.0; LANES];
    for i in 0..n {
        let [x, y, z] = [
            one[0][i] - other[0][i],
            one[1][i] - other[1][i],
            one[2][i] - other[2][i],
        ];
        sum[i] = x * x + y * y + z * z;
    }
    sum
}

#[inline(always)]
fn one_more(values: &LaneValues) -> LaneValues {
    let mut more = *values;
    for value in &mut more {
        *value += 1.0;
    }
    more
}

#[inline(always)]
fn area(
    here: &[LaneValues; 3],
    right: &[LaneValues; 3],
    below: &[LaneValues; 3],
    n: usize,
) -> LaneValues {
    let (across, down) = (apart2(here, right, n), apart2(here, below, n));
    let mut area = [0.0; LANES];
    for i in 0..n {
        area[i] = (across[i] * down[i]).sqrt();
    }
    area
}

/// Computes directions from distorted points.
trait Inverse {
    /// Intermediate result of a point, to start from at a nearby point.
    type Place;

    fn found(
        &self,
        bent_x: &LaneValues,
        bent_y: &LaneValues,
        n: usize,
    ) -> LaneDirections<Self::Place>;

    /// For points close to those of `here`, which saves steps.
    #[inline(always)]
    fn beside(
        &self,
        _: &LaneDirections<Self::Place>,
        bent_x: &LaneValues,
        bent_y: &LaneValues,
        n: usize,
    ) -> LaneDirections<Self::Place> {
        self.found(bent_x, bent_y, n)
    }
}

/// Directions, and whether they converged.
#[derive(Debug)]
struct LaneDirections<P> {
    directions: [LaneValues; 3],
    is: [bool; LANES],
    place: P,
}

/// No distortion. Without `FOUND` no result counts: each point uses the scalar method.
#[derive(Debug, Clone)]
struct Straightforward<const FOUND: bool>;

impl<const FOUND: bool> Inverse for Straightforward<FOUND> {
    type Place = ();

    #[inline(always)]
    fn found(&self, x: &LaneValues, y: &LaneValues, n: usize) -> LaneDirections<()> {
        let mut is = [false; LANES];
        for i in 0..n {
            is[i] = FOUND & x[i].is_finite() & y[i].is_finite();
        }
        LaneDirections {
            directions: forward(*x, *y),
            is,
            place: (),
        }
    }
}

/// Inverts the distortion of the plane at distance 1, or of angles if `ANGLES`.
#[derive(Debug, Clone)]
struct Newton<B, const ANGLES: bool>(PlaneInverse<B>);

impl<B: PlaneDistortion, const ANGLES: bool> Newton<B, ANGLES> {
    #[inline(always)]
    fn at(place: StraightPoints, n: usize) -> LaneDirections<StraightPoints> {
        LaneDirections {
            directions: match ANGLES {
                true => lanes::rays(&place.x, &place.y, n),
                false => forward(place.x, place.y),
            },
            is: place.found,
            place,
        }
    }
}

impl<B: PlaneDistortion, const ANGLES: bool> Inverse for Newton<B, ANGLES> {
    type Place = StraightPoints;

    #[inline(always)]
    fn found(&self, x: &LaneValues, y: &LaneValues, n: usize) -> LaneDirections<StraightPoints> {
        Self::at(self.0.undistort(x, y, n), n)
    }

    #[inline(always)]
    fn beside(
        &self,
        here: &LaneDirections<StraightPoints>,
        x: &LaneValues,
        y: &LaneValues,
        n: usize,
    ) -> LaneDirections<StraightPoints> {
        Self::at(self.0.beside(&here.place, x, y, n), n)
    }
}

/// Inverts a polynomial of angles followed by a distorted plane.
#[derive(Debug, Clone)]
struct Aria {
    prism: PlaneInverse<PrismPlane>,
    radial: PlaneInverse<PolynomialPlane<6, false>>,
}

impl Inverse for Aria {
    type Place = [StraightPoints; 2];

    #[inline(always)]
    fn found(
        &self,
        x: &LaneValues,
        y: &LaneValues,
        n: usize,
    ) -> LaneDirections<[StraightPoints; 2]> {
        let first = self.prism.undistort(x, y, n);
        by_both([first, self.radial.undistort(&first.x, &first.y, n)], n)
    }

    #[inline(always)]
    fn beside(
        &self,
        here: &LaneDirections<[StraightPoints; 2]>,
        x: &LaneValues,
        y: &LaneValues,
        n: usize,
    ) -> LaneDirections<[StraightPoints; 2]> {
        let first = self.prism.beside(&here.place[0], x, y, n);
        let second = self.radial.beside(&here.place[1], &first.x, &first.y, n);
        by_both([first, second], n)
    }
}

#[inline(always)]
fn by_both(place: [StraightPoints; 2], n: usize) -> LaneDirections<[StraightPoints; 2]> {
    let [first, second] = &place;
    let mut is = first.found;
    for (is, second) in is.iter_mut().zip(&second.found) {
        *is &= second;
    }
    LaneDirections {
        directions: lanes::rays(&second.x, &second.y, n),
        is,
        place,
    }
}

impl UnprojectMethod {
    fn new(optics: &CameraOptics) -> Self {
        let limit = optics.limits().radius;
        let samples = samples(optics);
        let none = [0.0; 2];
        let pixel = [1.0 / optics.camera().fx, 1.0 / optics.camera().fy];
        let polynomial = |k, p| {
            let plane = PolynomialPlane { k, p, s: none };
            PlaneInverse::new(plane, limit, &samples, pixel)
        };
        match optics.camera().lens {
            Lens::Pinhole => Self::Pinhole(Straightforward),
            Lens::Brown { k, p } => Self::Brown(Newton(polynomial(k, p))),
            Lens::Fisheye { k } => Self::Fisheye(Newton(polynomial(k, none))),
            Lens::ThinPrismFisheye { k, p, s } => {
                let plane = PolynomialPlane { k, p, s };
                Self::ThinPrism(Newton(PlaneInverse::new(plane, limit, &samples, pixel)))
            }
            Lens::Rational { k, p } => {
                let [k1, k2, k3, k4, k5, k6] = k;
                let (above, below) = ([k1, k2, k3], [k4, k5, k6]);
                let plane = RationalPlane { above, below, p };
                Self::Rational(Newton(PlaneInverse::new(plane, limit, &samples, pixel)))
            }
            Lens::Fisheye624 { k, p, s } => {
                let prism = PlaneInverse::new(PrismPlane { p, s }, f64::INFINITY, &samples, pixel);
                let straightened: Vec<[f64; 2]> = samples
                    .iter()
                    .map(|[x, y]| prism.undistort(&[*x; LANES], &[*y; LANES], 1))
                    .map(|found| [found.x[0], found.y[0]])
                    .collect();
                let plane = PolynomialPlane {
                    k,
                    p: none,
                    s: none,
                };
                let radial = PlaneInverse::new(plane, limit, &straightened, pixel);
                Self::Aria(Aria { prism, radial })
            }
            Lens::Fov { .. } | Lens::Equirectangular | Lens::Orthographic => {
                Self::Plain(Straightforward)
            }
        }
    }
}

#[inline(always)]
fn forward(x: LaneValues, y: LaneValues) -> [LaneValues; 3] {
    [x, y, [1.0; LANES]]
}

/// Points of the image that have rays, without a unit: corners, edges and between.
fn samples(optics: &CameraOptics) -> Vec<[f64; 2]> {
    let camera = optics.camera();
    let (width, height) = (f64::from(camera.width), f64::from(camera.height));
    let part = |i: usize| i as f64 / (SAMPLES - 1) as f64;
    let points = (0..SAMPLES * SAMPLES).map(|i| (part(i % SAMPLES), part(i / SAMPLES)));
    points
        .map(|(x, y)| (x * width, y * height))
        .filter(|(x, y)| optics.unproject(*x, *y).is_some())
        .map(|(x, y)| optics.to_image_plane(x, y))
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

    fn rows(
        points: &[(f64, f64)],
        write: impl Fn(&[f64], &[f64], RayBundle<'_>),
    ) -> Vec<Option<Row>> {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let mut out: [Vec<f64>; 5] = std::array::from_fn(|_| vec![0.0; points.len()]);
        let mut valid = vec![true; points.len()];
        let [to_x, to_y, to_z, pixel_area, directions_norm] = &mut out;
        let directions = RayDirections {
            x: to_x,
            y: to_y,
            z: to_z,
            valid: &mut valid,
        };
        let bundle = RayBundle {
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

    fn all(unprojector: &CameraUnprojector, points: &[(f64, f64)]) -> Vec<Option<[f64; 3]>> {
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
            let unprojector = CameraUnprojector::new(&camera);
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
            let mut unprojector = CameraUnprojector::new(&camera);
            let size = (f64::from(camera.width), f64::from(camera.height));
            let points: Vec<_> = points.iter().map(|(x, y)| (x * size.0, y * size.1)).collect();
            let of = |unprojector: &CameraUnprojector| {
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
            let unprojector = CameraUnprojector::new(&camera);
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
            let unprojector = CameraUnprojector::new(&camera);
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
            let given = all(&CameraUnprojector::new(&camera), &points);
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
        let unprojector = CameraUnprojector::new(&camera);
        assert_eq!(unprojector.origin(60.0, 40.0), [1.0, -0.5, 0.0]);
        assert_eq!(all(&unprojector, &[(60.0, 40.0)]), [Some([0.0, 0.0, 1.0])]);
    }
}
