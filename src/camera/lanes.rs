//! Eight points at a time through a lens that `lens::brown` or `lens::fisheye` describes.
//!
//! Loops over arrays of eight f64 without branches: the compiler makes vector code of them.
//! The formulas are those of `lens::plane`, written once more for this; a test holds the
//! two together. In every process.

/// How many points go together.
pub const LANES: usize = 8;
pub type Lane = [f64; LANES];

/// Newton's method with a fixed number of steps from the bent point itself, as nerfstudio's
/// `radial_and_tangential_undistort` has it.
#[derive(Debug, Clone)]
pub struct Bending {
    k: [f64; 4],
    p: [f64; 2],
    s: [f64; 2],
    /// The square of the radius or angle where the lens ends.
    limit2: f64,
    steps: usize,
}

/// A residual that is good enough. The direction is then right to this over
/// [`LEAST_GROWTH`]: 1e-9.
const RESIDUAL: f64 = 2e-11;
/// Where the lens grows less it is about to turn round: the plain way looks closer.
const LEAST_GROWTH: f64 = 0.02;
/// More steps cost everybody more than the plain way costs the few that need them.
const MOST_STEPS: usize = 6;

impl Bending {
    pub fn new(k: [f64; 4], p: [f64; 2], s: [f64; 2], limit: f64) -> Self {
        Self {
            k,
            p,
            s,
            limit2: limit * limit,
            steps: MOST_STEPS,
        }
    }

    /// Takes as few steps as all of `bent`, points that can be straightened, need.
    pub fn choose_steps(&mut self, bent: &[[f64; 2]]) {
        let done = |steps: usize| {
            let tried = Self {
                steps,
                ..self.clone()
            };
            bent.iter().all(|[x, y]| {
                let (_, _, good) = tried.unbend(&[*x; LANES], &[*y; LANES]);
                good[0]
            })
        };
        self.steps = (0..MOST_STEPS).find(|n| done(*n)).unwrap_or(MOST_STEPS);
    }

    /// The points that the lens bends to these, and whether they are found. Those that are
    /// not may have an answer all the same.
    pub fn unbend(&self, bent_x: &Lane, bent_y: &Lane) -> (Lane, Lane, [bool; LANES]) {
        // Without the prism's terms a sixth of the work falls away.
        if self.s == [0.0; 2] {
            self.unbend_as::<false>(bent_x, bent_y)
        } else {
            self.unbend_as::<true>(bent_x, bent_y)
        }
    }

    fn unbend_as<const PRISM: bool>(
        &self,
        bent_x: &Lane,
        bent_y: &Lane,
    ) -> (Lane, Lane, [bool; LANES]) {
        let (mut x, mut y) = (*bent_x, *bent_y);
        for _ in 0..self.steps {
            for i in 0..LANES {
                let at = self.bend::<PRISM>(x[i], y[i]);
                let (left_x, left_y) = (bent_x[i] - at.x, bent_y[i] - at.y);
                let scale = 1.0 / (at.x_x * at.y_y - at.x_y * at.y_x);
                x[i] += (at.y_y * left_x - at.x_y * left_y) * scale;
                y[i] += (at.x_x * left_y - at.y_x * left_x) * scale;
            }
        }
        let mut good = [false; LANES];
        for i in 0..LANES {
            let at = self.bend::<PRISM>(x[i], y[i]);
            let (left_x, left_y) = (bent_x[i] - at.x, bent_y[i] - at.y);
            let growth = at.x_x * at.y_y - at.x_y * at.y_x;
            let r2 = x[i] * x[i] + y[i] * y[i];
            // Not a number is false in each of them.
            good[i] = (left_x * left_x + left_y * left_y <= RESIDUAL * RESIDUAL)
                & (growth > LEAST_GROWTH)
                & (r2 < self.limit2);
        }
        (x, y, good)
    }

    #[inline(always)]
    fn bend<const PRISM: bool>(&self, x: f64, y: f64) -> Bent {
        let ([k1, k2, k3, k4], [p1, p2], [s1, s2]) = (self.k, self.p, self.s);
        let (xx, yy, xy) = (x * x, y * y, x * y);
        let r2 = xx + yy;
        let d = 1.0 + r2 * (k1 + r2 * (k2 + r2 * (k3 + r2 * k4)));
        let twice = 2.0 * (k1 + r2 * (2.0 * k2 + r2 * (3.0 * k3 + r2 * (4.0 * k4))));
        let (p1x, p1y, p2x, p2y) = (2.0 * p1 * x, 2.0 * p1 * y, 2.0 * p2 * x, 2.0 * p2 * y);
        let across = twice * xy + p1x + p2y;
        let mut bent = Bent {
            x: x * d + p1y * x + p2 * (r2 + 2.0 * xx),
            y: y * d + p2x * y + p1 * (r2 + 2.0 * yy),
            x_x: d + twice * xx + p1y + 3.0 * p2x,
            x_y: across,
            y_x: across,
            y_y: d + twice * yy + p2x + 3.0 * p1y,
        };
        if PRISM {
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

/// A bent point, and its derivatives: `x_y` is that of x by y.
struct Bent {
    x: f64,
    y: f64,
    x_x: f64,
    x_y: f64,
    y_x: f64,
    y_y: f64,
}

/// The rays of length 1 with these angles, of less than pi. Within 4e-15 of
/// `lens::from_angles`, whose sines are calls.
pub fn rays(x: &Lane, y: &Lane) -> (Lane, Lane, Lane) {
    let (mut dx, mut dy, mut dz) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for i in 0..LANES {
        let square = x[i] * x[i] + y[i] * y[i];
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (s, c) in SINE.iter().zip(&COSINE).rev() {
            sine = sine * square + s;
            cosine = cosine * square + c;
        }
        (dx[i], dy[i], dz[i]) = (x[i] * sine, y[i] * sine, cosine);
    }
    (dx, dy, dz)
}

/// `sin t / t` and `cos t` in `t2`: Taylor's series. Up to pi the first term left out is
/// below 1e-17.
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
        for i in 0..2000 {
            let theta = std::f64::consts::PI * f64::from(i) / 2000.0;
            let (x, y) = (theta * 0.6, theta * -0.8);
            let (dx, dy, dz) = rays(&[x; LANES], &[y; LANES]);
            let [wx, wy, wz] = from_angles([x, y]);
            let error = (dx[7] - wx).abs().max((dy[7] - wy).abs());
            assert!(error.max((dz[7] - wz).abs()) < 4e-15, "{theta}: {error}");
        }
    }

    #[test]
    fn a_weak_lens_takes_few_steps_and_none_takes_none() {
        let k = [0.0578421, -0.0805099, 0.0, 0.0];
        let mut fox = Bending::new(k, [-0.000980296, 0.00015575], [0.0; 2], 1.5);
        fox.choose_steps(&[[0.4, 0.7], [-0.4, -0.7], [0.0, 0.1]]);
        assert!((2..=4).contains(&fox.steps), "{}", fox.steps);
        let mut pinhole = Bending::new([0.0; 4], [0.0; 2], [0.0; 2], 9.0);
        pinhole.choose_steps(&[[0.4, 0.7]]);
        assert_eq!(pinhole.steps, 0);
    }
}
