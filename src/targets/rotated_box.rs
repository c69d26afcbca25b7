//! Rotated boxes: their formats, and the rules of torchvision for them.
//!
//! Numbers are rounded to single precision after each operation, as in torchvision: comparisons of
//! nearly equal coordinates then decide as there.

use crate::recipe::Size;

/// The numbers of a rotated box, in pixels. Angles are degrees, counter-clockwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotatedFormat {
    /// First corner, width, height, angle.
    Xywhr,
    /// Centre, width, height, angle.
    Cxcywhr,
    /// Four corners, clockwise from the first.
    Xyxyxyxy,
}

/// What clamping does to a rotated box that lies partly outside the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClampingMode {
    /// Nothing. Upright boxes are not clamped either.
    Off,
    /// The smallest box of the same angle around the part inside. Its corners may lie outside.
    #[default]
    Soft,
    /// The largest box of the same angle within the part inside.
    Hard,
}

/// Corner after corner: x, y.
pub(super) type BoxCorners = [f32; 8];

impl RotatedFormat {
    /// The count of numbers of a box.
    #[must_use]
    pub fn numbers(self) -> usize {
        match self {
            Self::Xywhr | Self::Cxcywhr => 5,
            Self::Xyxyxyxy => 8,
        }
    }

    /// The corners of a box in this format. None for another count of numbers.
    pub(super) fn corners(self, values: &[f64]) -> Option<BoxCorners> {
        match self {
            Self::Xyxyxyxy => {
                let values: &[f64; 8] = values.try_into().ok()?;
                Some(values.map(|v| v as f32))
            }
            Self::Xywhr | Self::Cxcywhr => {
                let values: &[f64; 5] = values.try_into().ok()?;
                let [mut x, mut y, w, h, angle] = values.map(|v| v as f32);
                let (cos, sin) = cos_sin(angle);
                if self == Self::Cxcywhr {
                    let (half_w, half_h) = (w / 2.0, h / 2.0);
                    x = x - half_w * cos - half_h * sin;
                    y = y + half_w * sin - half_h * cos;
                }
                Some([
                    x,
                    y,
                    x + w * cos,
                    y - w * sin,
                    x + (w * cos + h * sin),
                    y - (w * sin - h * cos),
                    x + h * sin,
                    y + h * cos,
                ])
            }
        }
    }

    /// A box of these corners in this format.
    pub(super) fn write(self, corners: BoxCorners, to: &mut [f64]) {
        let [x1, y1, x2, y2, x3, y3, ..] = corners;
        let angle = libm::atan2f(y1 - y2, x2 - x1);
        let length = |x: f32, y: f32| (x * x + y * y).sqrt();
        let (w, h) = (length(x2 - x1, y2 - y1), length(x3 - x2, y3 - y2));
        let degrees = angle / std::f32::consts::PI * 180.0;
        match self {
            Self::Xyxyxyxy => to.copy_from_slice(&corners.map(f64::from)),
            Self::Xywhr => to.copy_from_slice(&[x1, y1, w, h, degrees].map(f64::from)),
            Self::Cxcywhr => {
                let (cos, sin) = cos_sin(degrees);
                let (half_w, half_h) = (w / 2.0, h / 2.0);
                let x = x1 + half_w * cos + half_h * sin;
                let y = y1 - half_w * sin + half_h * cos;
                to.copy_from_slice(&[x, y, w, h, degrees].map(f64::from));
            }
        }
    }
}

impl RotatedFormat {
    /// Moves a box: its corners, and the rectangle of what becomes of them. In a mirrored picture,
    /// corners are put back in their clockwise order.
    pub(super) fn move_by(
        self,
        values: &mut [f64],
        mirrored: bool,
        map: impl Fn([f64; 2]) -> [f64; 2],
    ) {
        let Some(mut corners) = self.corners(values) else {
            return;
        };
        for corner in corners.as_chunks_mut::<2>().0 {
            *corner = map(corner.map(f64::from)).map(|v| v as f32);
        }
        if mirrored {
            let [x1, y1, x2, y2, x3, y3, x4, y4] = corners;
            corners = [x2, y2, x1, y1, x4, y4, x3, y3];
        }
        self.write(rectangle_of(corners), values);
    }
}

/// Cosine and sine of an angle in degrees.
pub(super) fn cos_sin(degrees: f32) -> (f32, f32) {
    let angle = degrees * std::f32::consts::PI / 180.0;
    (libm::cosf(angle), libm::sinf(angle))
}

/// The rectangle that torchvision makes of a parallelogram: two opposite corners stay.
pub(super) fn rectangle_of(corners: BoxCorners) -> BoxCorners {
    let [x1, y1, x2, y2, x3, y3, x4, y4] = corners;
    let (cx, cy) = ((x1 + x3) / 2.0, (y1 + y3) / 2.0);
    let length = |x: f32, y: f32| (x * x + y * y).sqrt();
    let (wp, hp) = (length(x2 - x1, y2 - y1), length(x4 - x1, y4 - y1));
    let r12 = libm::atan2f(y1 - y2, x2 - x1);
    let r14 = libm::atan2f(y1 - y4, x4 - x1);
    let between = r12 - r14;
    let sign = if between > std::f32::consts::FRAC_PI_2 {
        -1.0
    } else {
        1.0
    };
    let (cos, sin) = (libm::cosf(between), libm::sinf(between));
    let w = if wp < hp {
        wp * sin
    } else {
        wp + hp * cos * sign
    };
    let h = if wp > hp {
        hp * sin
    } else {
        hp + wp * cos * sign
    };
    let angle = if hp > wp {
        r14 + std::f32::consts::FRAC_PI_2
    } else {
        r12
    };
    let (cos, sin) = (libm::cosf(angle), libm::sinf(angle));
    let (wc, ws) = (w / 2.0 * cos, w / 2.0 * sin);
    let (hc, hs) = (h / 2.0 * cos, h / 2.0 * sin);
    [
        cx - wc - hs,
        cy - hc + ws,
        cx + wc - hs,
        cy - hc - ws,
        cx + wc + hs,
        cy + hc - ws,
        cx - wc + hs,
        cy + hc + ws,
    ]
}

/// A rotated box clamped to the picture, by torchvision's rules.
pub(super) fn clamp_corners(corners: BoxCorners, size: Size, mode: ClampingMode) -> BoxCorners {
    if mode == ClampingMode::Off {
        return corners;
    }
    let (mut width, mut height) = (size.width as f32, size.height as f32);
    let (mut clamped, mut original) = (corners, corners);
    // Clamps at the left edge, then turns the picture, once for each edge.
    for _ in 0..4 {
        let first = leftmost(&clamped);
        let from = |corners: &BoxCorners, start: usize| -> BoxCorners {
            std::array::from_fn(|i| corners[(i + 2 * start) % 8])
        };
        let ordered = from(&clamped, first);
        let ordered_original = from(&original, first);
        let edge = clamp_at_left(ordered, ordered_original, (width, height), mode);
        // torchvision gathers with the same indices again, and not with their inverse.
        clamped = from(&edge, first);
        original = from(&ordered_original, first);
        for corners in [&mut clamped, &mut original] {
            for corner in corners.as_chunks_mut::<2>().0 {
                *corner = [corner[1], width - corner[0]];
            }
        }
        (width, height) = (height, width);
    }
    clamped
}

/// The corner that torchvision takes as the first: the leftmost, then the topmost.
fn leftmost(corners: &BoxCorners) -> usize {
    let most = |axis: usize| {
        let values = corners.iter().skip(axis).step_by(2);
        values.fold(0.0f32, |most, v| most.max(v.abs()))
    };
    let (x_most, y_most) = (most(0), most(1));
    let rank =
        |corner: usize| corners[2 * corner + 1] / y_most + (corners[2 * corner] / x_most) * 100.0;
    // As torch's `min`: the first of equal ones, and NaN is the least.
    (0..4).fold(0, |best, corner| {
        let (least, this) = (rank(best), rank(corner));
        let is_less = this < least || (this.is_nan() && !least.is_nan());
        if is_less { corner } else { best }
    })
}

/// Slope and intercept of the line from each corner to the next.
fn lines_of(corners: &BoxCorners) -> ([f32; 4], [f32; 4]) {
    let slopes: [f32; 4] = std::array::from_fn(|i| {
        let next = (i + 1) % 4;
        (corners[2 * next + 1] - corners[2 * i + 1]) / (corners[2 * next] - corners[2 * i])
    });
    let intercepts = std::array::from_fn(|i| corners[2 * i + 1] - slopes[i] * corners[2 * i]);
    (slopes, intercepts)
}

/// torch's `clamp`: the upper bound wins, and NaN anywhere gives NaN.
fn clamp(v: f32, low: f32, high: f32) -> f32 {
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return f32::NAN;
    }
    v.max(low).min(high)
}

/// torch's `max` and `min` of four: NaN wins.
fn extreme(values: [f32; 4], is_more: impl Fn(f32, f32) -> bool) -> f32 {
    values.into_iter().fold(values[0], |best, v| {
        if best.is_nan() {
            best
        } else if v.is_nan() || is_more(v, best) {
            v
        } else {
            best
        }
    })
}

/// The intercepts of the clamped box's sides.
fn clamped_intercepts(
    corners: &BoxCorners,
    original: &BoxCorners,
    (width, height): (f32, f32),
    mode: ClampingMode,
) -> [f32; 4] {
    let ([a1, a2, a3, a4], [mut b1, mut b2, mut b3, mut b4]) = lines_of(corners);
    let (_, [b1m, b2m, b3m, b4m]) = lines_of(original);
    b1 = clamp(clamp(b2, b1, b3), 0.0, height);
    b4 = clamp(clamp(b3, b2, b4), 0.0, height);
    if mode == ClampingMode::Hard {
        b1 = f32::midpoint(b1, b4);
        b4 = b1;
        let candidates = [
            b1 * a2 / a1,
            b3 * a2 / a3,
            (a1 - a2) * width + b1,
            (a3 - a2) * width + b3,
        ];
        b2 = clamp(extreme(candidates, |v, best| v > best), -f32::INFINITY, b2);
        let candidates = [
            height * (1.0 - a3 / a4) + b4 * a3 / a4,
            height * (1.0 - a3 / a2) + b2 * a3 / a2,
            (a2 - a3) * width + b2,
            (a4 - a3) * width + b4,
        ];
        b3 = clamp(extreme(candidates, |v, best| v < best), b3, f32::INFINITY);
    }
    [
        clamp(b1, b1m, b3m),
        clamp(b2, b2m, b4m),
        clamp(b3, b1m, b3m),
        clamp(b4, b2m, b4m),
    ]
}

/// torch's `isclose`.
fn is_close(a: f32, b: f32) -> bool {
    a == b || (b.is_finite() && f64::from((a - b).abs()) <= 1e-8 + (1e-5 * f64::from(b)).abs())
}

/// Clamps a box, whose first corner is the leftmost, at the left edge.
fn clamp_at_left(
    corners: BoxCorners,
    original: BoxCorners,
    size: (f32, f32),
    mode: ClampingMode,
) -> BoxCorners {
    let (a, _) = lines_of(&corners);
    let [x1, y1, x2, y2, x3, y3, x4, y4] = corners;
    let b = clamped_intercepts(&corners, &original, size, mode);
    let mut crossing = [0.0; 8];
    for i in 0..4 {
        let before = (i + 3) % 4;
        let x = -(b[i] - b[before]) / (a[i] - a[before]);
        crossing[2 * i] = x;
        crossing[2 * i + 1] = a[i] * x + b[i];
    }
    let mut out = corners;
    if x1 < 0.0 && !crossing.iter().any(|v| v.is_nan()) {
        out = crossing;
    }
    let is_upright = is_close(y1, y2) || is_close(y3, y4);
    if is_upright {
        out = corners;
        out[0] = out[0].max(0.0);
        out[6] = out[6].max(0.0);
    }
    let is_outside = x1 <= 0.0 && x2 <= 0.0 && x3 <= 0.0 && x4 <= 0.0;
    let is_flat = is_close(y1, y4) || is_close(y2, y3) || (is_upright && is_close(x1, x2));
    if is_outside || is_flat {
        out = [0.0; 8];
    }
    out
}
