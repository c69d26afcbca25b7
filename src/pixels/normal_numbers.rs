//! Normal numbers with mean 0 and deviation 1, by Box and Muller, many at a time.
//!
//! Radius and angle take 32 bits each: no number exceeds 6.7. Logarithm and cosine repeat the
//! operations of the `libm` crate, restricted to the ranges used here and without branches. So a
//! compiler can vectorise them, and the bits equal libm's.

use std::f32::consts::TAU;
use std::f64::consts::FRAC_PI_2;

/// Numbers computed at a time.
pub(super) const MOST: usize = 96;

/// One number from each of `bits`.
pub(super) fn normals(bits: &[u64; MOST]) -> [f32; MOST] {
    const STEP: f32 = 1.0 / 4_294_967_296.0;
    let mut out = [0.0; MOST];
    for (out, bits) in out.iter_mut().zip(bits) {
        // Above 0, where the logarithm is infinite, and at most 1.
        let radius = (float((bits >> 32) as u32) + 0.5) * STEP;
        let angle = float(*bits as u32) * STEP;
        *out = (-2.0 * ln(radius)).sqrt() * cos(TAU * angle);
    }
    out
}

/// Equals a cast, which has no vector instruction. Both parts are exact, so their sum is rounded
/// once.
#[inline(always)]
fn float(v: u32) -> f32 {
    let [high, low] = [v >> 16, v & 0xffff].map(|part| part as i32 as f32);
    high * 65_536.0 + low
}

/// `libm::logf`, for 2^-126 to 1.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const LN2: [f32; 2] = [6.931_381e-1, 9.058_001e-6];
    const LG: [f32; 4] = [0.666_666_6, 0.400_009_72, 0.284_987_87, 0.242_790_79];
    /// Half the square root of 2: lower bound of the reduced argument.
    const LEAST: u32 = 0x3f35_04f3;
    const ONE: u32 = 0x3f80_0000;
    let bits = x.to_bits() + (ONE - LEAST);
    let twos = ((bits >> 23) as i32 - 127) as f32;
    let f = f32::from_bits((bits & 0x007f_ffff) + LEAST) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let odd = w * (LG[1] + w * LG[3]);
    let even = z * (LG[0] + w * LG[2]);
    let half = 0.5 * f * f;
    s * (half + (even + odd)) + twos * LN2[1] - half + f + twos * LN2[0]
}

/// `libm::cosf`, for 0 to a full turn.
#[inline(always)]
fn cos(x: f32) -> f32 {
    // The odd eighths of a turn at which the quarter changes, truncated as in libm.
    const FROM: [u32; 4] = [0x3f49_0fda, 0x4016_cbe3, 0x407b_53d1, 0x40af_eddf];
    let bits = x.to_bits() as i32;
    let quarters: i32 = FROM.map(|from| i32::from(bits > from as i32)).iter().sum();
    let rest = f64::from(x) - f64::from(quarters) * FRAC_PI_2;
    let z = rest * rest;
    let w = z * z;
    let cosine = {
        const C: [f64; 4] = [
            -0.499_999_997_251_031,
            0.041_666_623_323_739_06,
            -0.001_388_676_377_460_993,
            0.000_024_390_448_796_277_41,
        ];
        (((1.0 + z * C[0]) + w * C[1]) + (w * z) * (C[2] + z * C[3])) as f32
    };
    let sine = {
        const S: [f64; 4] = [
            -0.166_666_666_416_265_24,
            0.008_333_329_385_889_463,
            -0.000_198_393_348_360_966_32,
            0.000_002_718_311_493_989_822,
        ];
        let s = z * rest;
        ((rest + s * (S[0] + z * S[1])) + s * w * (S[2] + z * S[3])) as f32
    };
    let of_quarter = if quarters & 1 == 1 { sine } else { cosine };
    // Negative from the first quarter to the third.
    let sign = ((quarters + 1) as u32 & 2) << 30;
    f32::from_bits(of_quarter.to_bits() ^ sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same with libm.
    fn plain(bits: u64) -> f32 {
        const STEP: f32 = 1.0 / 4_294_967_296.0;
        let radius = ((bits >> 32) as f32 + 0.5) * STEP;
        let angle = (bits as u32) as f32 * STEP;
        (-2.0 * libm::logf(radius)).sqrt() * libm::cosf(TAU * angle)
    }

    #[test]
    fn numbers_are_libms_to_the_bit() {
        let ends = [0, 1, 2, u32::MAX - 1, u32::MAX, 1 << 31, 1 << 20];
        // An odd step through the whole range, so that radius and angle take all sizes.
        let many = (0..=u32::MAX).step_by(2 * 1009 + 1);
        // Around each power of two, where the logarithm's exponent changes.
        let about = (0..32).flat_map(|i| [(1u32 << i).wrapping_sub(1), 1 << i, (1 << i) + 1]);
        let all: Vec<u32> = ends.into_iter().chain(about).chain(many).collect();
        let pairs = all.iter().zip(all.iter().rev());
        let bits: Vec<u64> = pairs
            .map(|(a, b)| u64::from(*a) << 32 | u64::from(*b))
            .collect();
        for bits in bits.as_chunks::<MOST>().0 {
            for (got, bits) in normals(bits).iter().zip(bits) {
                assert_eq!(got.to_bits(), plain(*bits).to_bits(), "{bits:x}");
            }
        }
    }

    #[test]
    fn the_cosine_turns_where_libms_does() {
        for i in 0..=8u8 {
            let eighth = f32::from(i) * (TAU / 8.0);
            for off in -2000..=2000 {
                let x = f32::from_bits((eighth.to_bits() as i32).saturating_add(off).max(0) as u32);
                if x <= TAU {
                    assert_eq!(cos(x).to_bits(), libm::cosf(x).to_bits(), "{x}");
                }
            }
        }
    }
}
