//! Divides coefficients with rounding, by multiplication.

/// Divides by 8 times the divisors of a table, because the transform's values are 8 times too
/// large.
#[derive(Debug)]
pub(in crate::picture::jpeg) struct BlockQuantizer {
    /// 2^n / divisor, where n makes it 2^15 to 2^16.
    pub(super) reciprocals: [u16; 64],
    /// Half of the divisor, and 1 more where the reciprocal was rounded down.
    pub(super) corrections: [u16; 64],
    /// 2^(32 - n): a second multiplication instead of a shift.
    pub(super) scales: [u16; 64],
}

impl BlockQuantizer {
    pub(in crate::picture::jpeg) fn new(divisors: &[u8; 64]) -> Self {
        let mut quantizer = Self {
            reciprocals: [0; 64],
            corrections: [0; 64],
            scales: [0; 64],
        };
        for (i, &divisor) in divisors.iter().enumerate() {
            let divisor = 8 * u32::from(divisor);
            let bits = 16 + divisor.ilog2();
            let (quotient, rest) = ((1 << bits) / divisor, (1 << bits) % divisor);
            let (reciprocal, more, bits) = match rest {
                0 => (quotient / 2, 0, bits - 1),
                _ if rest <= divisor / 2 => (quotient, 1, bits),
                _ => (quotient + 1, 0, bits),
            };
            quantizer.reciprocals[i] = reciprocal as u16;
            quantizer.corrections[i] = (divisor / 2 + more) as u16;
            quantizer.scales[i] = (1u32 << (32 - bits)) as u16;
        }
        quantizer
    }

    /// Divides a coefficient at place `at` of its block. Halves round away from zero.
    pub(super) fn divide(&self, value: i16, at: usize) -> i16 {
        let times = |a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16;
        let sum = value.unsigned_abs() + self.corrections[at];
        let quotient = times(times(sum, self.reciprocals[at]), self.scales[at]) as i16;
        if value < 0 { -quotient } else { quotient }
    }
}
