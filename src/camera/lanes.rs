//! Inverts a lens that distorts a plane, for many points at a time.
//!
//! Uses Newton's method with a fixed number of steps. It starts from the distorted point itself,
//! like nerfstudio's `radial_and_tangential_undistort`, or from the solution of a neighbouring
//! point. The loops run over arrays of f64 without branches, so that the compiler vectorises them.
//! This requires that it does not know the number of iterations (otherwise it unrolls them first),
//! and that they contain no calls: a `map` that is not inlined costs more than the lens. The
//! formulas repeat those of `lens`; a test of `unprojector` compares both. Everything is inlined
//! into its callers, which are compiled for several kinds of CPU. Used in every process.

/// Maximum number of points per call: few enough to stay in the CPU cache.
pub const LANES: usize = 32;
pub type LaneValues = [f64; LANES];

/// Squared residual from which one more step is enough. Growth is the determinant of the lens's
/// derivatives. If it is 1 or more, the error of a point after that step is about half the second
/// derivative, times the squared residual, over the cube of the growth: 1e-11 for a second
/// derivative of 20.
const RESIDUAL2: f64 = 1e-12;
/// With less growth, the lens is near its turning point. The scalar method is used there.
const LEAST_GROWTH: f64 = 0.05;
/// More steps would cost every point more than the scalar method costs the few that need them.
const MOST_STEPS: usize = 7;

/// A plane that a lens distorts.
pub trait PlaneDistortion: Clone {
    /// Distorts a point, and returns the derivatives. Must be inlined, or the loops are not
    /// vectorised.
    fn distort(&self, x: f64, y: f64) -> BentPoint;
}

/// A distorted point with its derivatives: `x_y` is the derivative of x by y.
#[derive(Debug)]
pub struct BentPoint {
    x: f64,
    y: f64,
    x_x: f64,
    x_y: f64,
    y_x: f64,
    y_y: f64,
}

/// Inverse of a distorted plane, in as many steps as its points need.
#[derive(Debug, Clone)]
pub struct PlaneInverse<B> {
    plane: B,
    /// Square of the radius or angle where the lens ends.
    limit2: f64,
    steps: usize,
    /// Steps from a point to its neighbour one pixel away.
    steps_beside: usize,
}

/// Points that a lens distorts to given ones.
#[derive(Debug, Clone, Copy)]
pub struct StraightPoints {
    pub x: LaneValues,
    pub y: LaneValues,
    /// Whether each point converged. Points that did not may still have a solution.
    pub found: [bool; LANES],
    /// The distorted points.
    of: [LaneValues; 2],
    /// Derivatives by the distorted points, as of the last step: `by_x` to the right, `by_y` down.
    by_x: [LaneValues; 2],
    by_y: [LaneValues; 2],
}

impl<B: PlaneDistortion> PlaneInverse<B> {
    /// Finds the smallest number of steps for all points in `bent`, which must be invertible, and
    /// for points that are one `pixel` away from them.
    pub fn new(plane: B, limit: f64, bent: &[[f64; 2]], pixel: [f64; 2]) -> Self {
        let mut unbend = Self {
            plane,
            limit2: limit * limit,
            steps: 1,
            steps_beside: 1,
        };
        let lanes = |[x, y]: [f64; 2]| ([x; LANES], [y; LANES]);
        let points: Vec<_> = bent.iter().map(|point| lanes(*point)).collect();
        let enough = |unbend: &Self| {
            points
                .iter()
                .all(|(x, y)| unbend.undistort(x, y, 1).found[0])
        };
        while unbend.steps < MOST_STEPS && !enough(&unbend) {
            unbend.steps += 1;
        }
        let enough = |unbend: &Self| {
            points.iter().all(|(x, y)| {
                let here = unbend.undistort(x, y, 1);
                let right = unbend.beside(&here, &x.map(|x| x + pixel[0]), y, 1);
                let below = unbend.beside(&here, x, &y.map(|y| y + pixel[1]), 1);
                right.found[0] && below.found[0] || !here.found[0]
            })
        };
        while unbend.steps_beside < unbend.steps && !enough(&unbend) {
            unbend.steps_beside += 1;
        }
        unbend
    }

    pub fn steps(&self) -> u32 {
        self.steps as u32
    }

    /// The points that the lens distorts to these.
    #[inline(always)]
    pub fn undistort(&self, bent_x: &LaneValues, bent_y: &LaneValues, n: usize) -> StraightPoints {
        self.newton_steps((bent_x, bent_y), (bent_x, bent_y), self.steps, n)
    }

    /// The points that the lens distorts to these, starting from the solutions `here` of nearby
    /// points.
    #[inline(always)]
    pub fn beside(
        &self,
        here: &StraightPoints,
        bent_x: &LaneValues,
        bent_y: &LaneValues,
        n: usize,
    ) -> StraightPoints {
        let n = n.min(LANES);
        let (mut x, mut y) = (here.x, here.y);
        for i in 0..n {
            let (right, down) = (bent_x[i] - here.of[0][i], bent_y[i] - here.of[1][i]);
            x[i] += here.by_x[0][i] * right + here.by_y[0][i] * down;
            y[i] += here.by_x[1][i] * right + here.by_y[1][i] * down;
        }
        self.newton_steps((&x, &y), (bent_x, bent_y), self.steps_beside, n)
    }

    #[inline(always)]
    fn newton_steps(
        &self,
        (from_x, from_y): (&LaneValues, &LaneValues),
        (bent_x, bent_y): (&LaneValues, &LaneValues),
        steps: usize,
        n: usize,
    ) -> StraightPoints {
        let n = n.min(LANES);
        let mut at = StraightPoints {
            x: *from_x,
            y: *from_y,
            found: [false; LANES],
            of: [*bent_x, *bent_y],
            by_x: [[0.0; LANES]; 2],
            by_y: [[0.0; LANES]; 2],
        };
        let (mut left2, mut growth) = ([f64::INFINITY; LANES], [0.0; LANES]);
        for _ in 0..steps {
            for i in 0..n {
                let bent = self.plane.distort(at.x[i], at.y[i]);
                let (left_x, left_y) = (bent_x[i] - bent.x, bent_y[i] - bent.y);
                left2[i] = left_x * left_x + left_y * left_y;
                growth[i] = bent.x_x * bent.y_y - bent.x_y * bent.y_x;
                let scale = 1.0 / growth[i];
                at.by_x[0][i] = bent.y_y * scale;
                at.by_x[1][i] = -bent.y_x * scale;
                at.by_y[0][i] = -bent.x_y * scale;
                at.by_y[1][i] = bent.x_x * scale;
                at.x[i] += at.by_x[0][i] * left_x + at.by_y[0][i] * left_y;
                at.y[i] += at.by_x[1][i] * left_x + at.by_y[1][i] * left_y;
            }
        }
        for i in 0..n {
            let r2 = at.x[i] * at.x[i] + at.y[i] * at.y[i];
            let least = growth[i].min(1.0);
            // NaN makes each condition false.
            at.found[i] = (left2[i] <= RESIDUAL2 * least * least * least)
                & (growth[i] > LEAST_GROWTH)
                & (r2 < self.limit2);
        }
        at
    }
}

/// A radial polynomial of `N` terms, and tangential terms. Thin-prism terms if `PRISM`; they take a
/// sixth of the time.
#[derive(Debug, Clone)]
pub struct PolynomialPlane<const N: usize, const PRISM: bool> {
    pub k: [f64; N],
    pub p: [f64; 2],
    pub s: [f64; 2],
}

impl<const N: usize, const PRISM: bool> PlaneDistortion for PolynomialPlane<N, PRISM> {
    #[inline(always)]
    fn distort(&self, x: f64, y: f64) -> BentPoint {
        let r2 = x * x + y * y;
        let (d, by_r2) = series(&self.k, r2);
        let mut bent = tangential(x, y, d, by_r2, self.p);
        if PRISM {
            let [s1, s2] = self.s;
            bent.x += s1 * r2;
            bent.y += s2 * r2;
            bent.x_x += 2.0 * s1 * x;
            bent.x_y += 2.0 * s1 * y;
            bent.y_x += 2.0 * s2 * x;
            bent.y_y += 2.0 * s2 * y;
        }
        bent
    }
}

/// OpenCV's rational lens.
#[derive(Debug, Clone)]
pub struct RationalPlane {
    pub above: [f64; 3],
    pub below: [f64; 3],
    pub p: [f64; 2],
}

impl PlaneDistortion for RationalPlane {
    #[inline(always)]
    fn distort(&self, x: f64, y: f64) -> BentPoint {
        let r2 = x * x + y * y;
        let (above, above_by_r2) = series(&self.above, r2);
        let (below, below_by_r2) = series(&self.below, r2);
        let d = above / below;
        let by_r2 = (above_by_r2 - d * below_by_r2) / below;
        tangential(x, y, d, by_r2, self.p)
    }
}

/// The second part of Aria's fisheye lens, after its polynomial. `p` is in Aria's order: the first
/// value belongs to x.
#[derive(Debug, Clone)]
pub struct PrismPlane {
    pub p: [f64; 2],
    pub s: [f64; 4],
}

impl PlaneDistortion for PrismPlane {
    #[inline(always)]
    fn distort(&self, x: f64, y: f64) -> BentPoint {
        let ([p0, p1], [s0, s1, s2, s3]) = (self.p, self.s);
        let r2 = x * x + y * y;
        let mut bent = tangential(x, y, 1.0, 0.0, [p1, p0]);
        bent.x += r2 * (s0 + s1 * r2);
        bent.y += r2 * (s2 + s3 * r2);
        let (x_r2, y_r2) = (2.0 * (s0 + 2.0 * s1 * r2), 2.0 * (s2 + 2.0 * s3 * r2));
        bent.x_x += x_r2 * x;
        bent.x_y += x_r2 * y;
        bent.y_x += y_r2 * x;
        bent.y_y += y_r2 * y;
        bent
    }
}

/// `1 + k1 s + k2 s2 + ...`, and its derivative.
#[inline(always)]
fn series<const N: usize>(k: &[f64; N], s: f64) -> (f64, f64) {
    let (mut sum, mut slope) = (0.0, 0.0);
    for i in (0..N).rev() {
        slope = slope * s + (i + 1) as f64 * k[i];
        sum = sum * s + k[i];
    }
    (1.0 + sum * s, slope)
}

#[inline(always)]
fn tangential(x: f64, y: f64, d: f64, by_r2: f64, [p1, p2]: [f64; 2]) -> BentPoint {
    let (xx, yy, xy) = (x * x, y * y, x * y);
    let r2 = xx + yy;
    let twice = 2.0 * by_r2;
    let (p1x, p1y, p2x, p2y) = (2.0 * p1 * x, 2.0 * p1 * y, 2.0 * p2 * x, 2.0 * p2 * y);
    let across = twice * xy + p1x + p2y;
    BentPoint {
        x: x * d + p1y * x + p2 * (r2 + 2.0 * xx),
        y: y * d + p2x * y + p1 * (r2 + 2.0 * yy),
        x_x: d + twice * xx + p1y + 3.0 * p2x,
        x_y: across,
        y_x: across,
        y_y: d + twice * yy + p2x + 3.0 * p1y,
    }
}

/// Unit directions with these angles, of at most pi. Within 4e-15 of `lens::from_angles`, which
/// calls functions for sines.
#[inline(always)]
pub fn rays(x: &LaneValues, y: &LaneValues, n: usize) -> [LaneValues; 3] {
    let n = n.min(LANES);
    let (mut dx, mut dy, mut dz) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for i in 0..n {
        let square = x[i] * x[i] + y[i] * y[i];
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (s, c) in SINE.iter().zip(&COSINE).rev() {
            sine = sine * square + s;
            cosine = cosine * square + c;
        }
        (dx[i], dy[i], dz[i]) = (x[i] * sine, y[i] * sine, cosine);
    }
    [dx, dy, dz]
}

/// Taylor series of `sin t / t` and `cos t` in `t2`. Up to pi, the first omitted term is below
/// 1e-17.
const TERMS: usize = 15;
const SINE: [f64; TERMS] = taylor(1.0);
const COSINE: [f64; TERMS] = taylor(0.0);

const fn taylor(mut factor: f64) -> [f64; TERMS] {
    let mut terms = [1.0; TERMS];
    let mut i = 1;
    while i < TERMS {
        terms[i] = -terms[i - 1] / ((factor + 1.0) * (factor + 2.0));
        factor += 2.0;
        i += 1;
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::lens::from_angles;

    #[test]
    fn rays_are_those_of_the_library_s_sines() {
        for i in 0..=2000 {
            let theta = std::f64::consts::PI * f64::from(i) / 2000.0;
            let (x, y) = (theta * 0.6, theta * -0.8);
            let [dx, dy, dz] = rays(&[x; LANES], &[y; LANES], 8);
            let [wx, wy, wz] = from_angles([x, y]);
            let error = (dx[7] - wx).abs().max((dy[7] - wy).abs());
            assert!(error.max((dz[7] - wz).abs()) < 4e-15, "{theta}: {error}");
        }
    }

    #[test]
    fn a_weak_lens_takes_few_steps_and_none_takes_one() {
        let weak = PolynomialPlane::<4, false> {
            k: [0.0578421, -0.0805099, 0.0, 0.0],
            p: [-0.000980296, 0.00015575],
            s: [0.0; 2],
        };
        let points = [[0.4, 0.7], [-0.4, -0.7], [0.0, 0.1]];
        let weak = PlaneInverse::new(weak, 1.5, &points, [1e-3; 2]);
        assert!((2..=4).contains(&weak.steps), "{}", weak.steps);
        assert_eq!(weak.steps_beside, 1);
        let none = PolynomialPlane::<1, false> {
            k: [0.0],
            p: [0.0; 2],
            s: [0.0; 2],
        };
        assert_eq!(
            PlaneInverse::new(none, 9.0, &[[0.4, 0.7]], [0.1; 2]).steps,
            1
        );
    }
}
