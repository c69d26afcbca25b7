//! The kernels between pixels: the weights of a place's taps, and their sum.

/// Taps of the widest kernel.
pub(super) const MOST: usize = 4;

/// Interpolates the levels beside a place. Sums have Pillow's order.
pub(super) trait InterpolationKernel {
    /// Taps along an axis. The rest of the `MOST` taps is unused.
    const TAPS: usize;
    /// Taps before the pixel left of or above the place.
    const BEFORE: i64 = Self::TAPS as i64 / 2 - 1;

    /// `part`: distance of the place from that pixel, as a part of the distance to the next one.
    fn of(taps: [f64; MOST], part: f64) -> f64;

    /// The same for levels, whose differences are exact in integers.
    fn of_levels(taps: [u8; MOST], part: f64) -> f64;

    /// The level of a result, cut off.
    fn level(v: f64) -> u8;
}

pub(super) struct LinearKernel;

impl InterpolationKernel for LinearKernel {
    const TAPS: usize = 2;

    #[inline(always)]
    fn of([p, q, ..]: [f64; MOST], part: f64) -> f64 {
        p + (q - p) * part
    }

    #[inline(always)]
    fn of_levels([p, q, ..]: [u8; MOST], part: f64) -> f64 {
        let [p, q] = [p, q].map(i32::from);
        f64::from(p) + f64::from(q - p) * part
    }

    #[inline(always)]
    fn level(v: f64) -> u8 {
        // Between the levels of its taps: a product with a part below 1 is not above the difference.
        v as i32 as u8
    }
}

/// Keys' cubic kernel with a = -1.
pub(super) struct CubicKernel;

impl InterpolationKernel for CubicKernel {
    const TAPS: usize = 4;

    #[inline(always)]
    fn of([p, q, r, s]: [f64; MOST], part: f64) -> f64 {
        let first = -p + r;
        let second = 2.0 * (p - q) + r - s;
        let third = -p + q - r + s;
        q + part * (first + part * (second + part * third))
    }

    #[inline(always)]
    fn of_levels(taps: [u8; MOST], part: f64) -> f64 {
        let [p, q, r, s] = taps.map(i32::from);
        let first = f64::from(r - p);
        let second = f64::from(2 * (p - q) + r - s);
        let third = f64::from(q - p - r + s);
        f64::from(q) + part * (first + part * (second + part * third))
    }

    #[inline(always)]
    fn level(v: f64) -> u8 {
        cut(v)
    }
}

/// Calls `of` for each tap of the kernel; unused taps repeat the last.
#[inline(always)]
pub(super) fn taps<K: InterpolationKernel, T>(of: impl Fn(usize) -> T) -> [T; MOST] {
    std::array::from_fn(|tap| of(tap.min(K::TAPS - 1)))
}

/// Truncates and clamps like a cast, but the compiler can vectorise it.
#[inline(always)]
pub(super) fn cut(v: f64) -> u8 {
    // From 2^52 on a double has no fraction, so the addition rounds.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let v = v.clamp(0.0, 255.0);
    let near = v + WHOLE - WHOLE;
    let below = if near > v { near - 1.0 } else { near };
    (below + WHOLE).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_cut_as_by_a_cast() {
        for i in -40..4400 {
            let whole = f64::from(i) / 16.0;
            for v in [whole, whole.next_up(), whole.next_down()] {
                assert_eq!(cut(v), v as u8, "{v}");
            }
        }
        for v in [1e300, -1e300, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            assert_eq!(cut(v), v as u8, "{v}");
        }
    }
}
