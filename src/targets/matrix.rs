//! Matrices that map points of one picture to another.
//!
//! Coordinates are continuous: the pixel in column `c` and row `r` covers `c` to `c + 1` and `r` to
//! `r + 1`. Its centre is `(c + 0.5, r + 0.5)`.

/// A 3 x 3 matrix that maps points. It multiplies the column `(x, y, 1)`, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointMatrix(pub [[f64; 3]; 3]);

impl PointMatrix {
    /// Maps each point to itself.
    pub const IDENTITY: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    /// Maps each point to NaN: the picture shows none of them.
    pub const NOWHERE: Self = Self([[f64::NAN; 3]; 3]);

    /// `x' = a x + b y + c`, `y' = d x + e y + f`.
    #[must_use]
    pub fn affine([a, b, c, d, e, f]: [f64; 6]) -> Self {
        Self([[a, b, c], [d, e, f], [0.0, 0.0, 1.0]])
    }

    /// `x' = (a x + b y + c) / (g x + h y + 1)`, `y' = (d x + e y + f) / (g x + h y + 1)`.
    #[must_use]
    pub fn perspective([a, b, c, d, e, f, g, h]: [f64; 8]) -> Self {
        Self([[a, b, c], [d, e, f], [g, h, 1.0]])
    }

    #[must_use]
    pub fn shift(right: f64, down: f64) -> Self {
        Self::affine([1.0, 0.0, right, 0.0, 1.0, down])
    }

    #[must_use]
    pub fn scale(across: f64, down: f64) -> Self {
        Self::affine([across, 0.0, 0.0, 0.0, down, 0.0])
    }

    /// This matrix, then `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let (Self(first), Self(next)) = (self, next);
        Self(std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                (0..3).map(|k| next[row][k] * first[k][column]).sum::<f64>()
            })
        }))
    }

    /// The same map for points whose coordinates are smaller by `by` on both axes.
    #[must_use]
    pub fn with_offset(&self, by: f64) -> Self {
        Self::shift(by, by).then(self).then(&Self::shift(-by, -by))
    }

    /// The point's place. NaN where a perspective has the point at its horizon or behind it.
    #[must_use]
    pub fn map(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [across, down, depth] = self.0.map(|[a, b, c]| a * x + b * y + c);
        match depth > 0.0 {
            true => [across / depth, down / depth],
            false => [f64::NAN; 2],
        }
    }

    /// The determinant: negative if the picture is mirrored.
    #[must_use]
    pub fn determinant(&self) -> f64 {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.0;
        a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)
    }

    /// The factor by which small areas at a point grow: negative if the picture is mirrored.
    #[must_use]
    pub fn area_factor(&self, [x, y]: [f64; 2]) -> f64 {
        let [g, h, i] = self.0[2];
        let depth = g * x + h * y + i;
        self.determinant() / (depth * depth * depth)
    }

    /// The inverse. None if several points share a place, or if a number is not finite.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        let [[a, b, c], [d, e, f], [g, h, i]] = self.0;
        let cofactors = [e * i - f * h, f * g - d * i, d * h - e * g];
        let determinant = self.determinant();
        if determinant == 0.0 || !determinant.is_finite() {
            return None;
        }
        let by = |v: f64| v / determinant;
        let inverse = Self([
            [cofactors[0], c * h - b * i, b * f - c * e].map(by),
            [cofactors[1], a * i - c * g, c * d - a * f].map(by),
            [cofactors[2], b * g - a * h, a * e - b * d].map(by),
        ]);
        let is_finite = inverse.0.iter().flatten().all(|v| v.is_finite());
        is_finite.then_some(inverse)
    }

    /// Whether it maps each point to itself.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        *self == Self::IDENTITY
    }
}

/// The smallest box that holds all points: left, top, right, bottom. NaN if a point is.
#[must_use]
pub fn hull_of(points: impl IntoIterator<Item = [f64; 2]>) -> [f64; 4] {
    let start = [f64::INFINITY, f64::INFINITY, -f64::INFINITY, -f64::INFINITY];
    points.into_iter().fold(start, |hull, [x, y]| {
        if x.is_nan() || y.is_nan() || hull[0].is_nan() {
            return [f64::NAN; 4];
        }
        [
            hull[0].min(x),
            hull[1].min(y),
            hull[2].max(x),
            hull[3].max(y),
        ]
    })
}

/// The corners of a box of left, top, right and bottom, clockwise from the first.
#[must_use]
pub fn corners_of([x0, y0, x1, y1]: [f64; 4]) -> [[f64; 2]; 4] {
    [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
}
