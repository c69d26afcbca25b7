//! Common interface of the two channel types, which both hold levels.

/// The type of a channel.
pub(crate) trait ChannelLevel: Copy {
    fn level(self) -> f32;

    /// Like a cast in torch: `u8` truncates, `f32` is unchanged.
    fn truncated(level: f32) -> Self;

    /// Like torch's `round` (halves to even) and a cast: `u8` is rounded and clamped, `f32` is
    /// unchanged.
    fn rounded(level: f32) -> Self;
}

impl ChannelLevel for u8 {
    #[inline(always)]
    fn level(self) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn truncated(level: f32) -> Self {
        level as Self
    }

    #[inline(always)]
    fn rounded(level: f32) -> Self {
        // Between 2^23 and 2^24 a float has no fraction, so the addition rounds. std's function is
        // a call without SSE4.1.
        const WHOLE: f32 = 8_388_608.0;
        (level.clamp(0.0, 255.0) + WHOLE - WHOLE) as Self
    }
}

impl ChannelLevel for f32 {
    #[inline(always)]
    fn level(self) -> f32 {
        self
    }

    #[inline(always)]
    fn truncated(level: f32) -> Self {
        level
    }

    #[inline(always)]
    fn rounded(level: f32) -> Self {
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_u8_is_rounded_to_the_even_side_and_held_to_its_range() {
        for i in -40..4400 {
            // Multiples of 1/16, including halves.
            let v = i as f32 / 16.0;
            let want = v.round_ties_even().clamp(0.0, 255.0) as u8;
            assert_eq!(u8::rounded(v), want, "{v}");
        }
        let halves = [(0.5, 0), (1.5, 2), (2.5, 2), (254.5, 254)];
        for (v, want) in halves {
            assert_eq!(u8::rounded(v), want, "{v}");
        }
        for (v, want) in [(1e30, 255), (-1e30, 0), (f32::NAN, 0), (f32::INFINITY, 255)] {
            assert_eq!(u8::rounded(v), want, "{v}");
            assert_eq!(u8::truncated(v), want, "{v}");
        }
        assert_eq!(u8::truncated(7.999), 7);
        assert_eq!(f32::rounded(-3.25), -3.25);
    }
}
