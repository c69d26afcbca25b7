//! The known bits of a progressive picture's coefficients (`coef_bits` of libjpeg): missing bits of
//! each coefficient, after the last scan and before it.

use super::entropy::ScanHeader;
use super::fatal::FatalFault;
use super::source::{ByteSource, DecodeWarning};

/// Missing bits of each coefficient in zigzag order; -1 = all.
type Missing = [i8; 64];

/// The largest `Al`: low bits that a scan may leave to later scans.
const MOST_BITS: u32 = 13;

/// The last place in zigzag order whose coefficient is smoothed.
pub(super) const SMOOTHED: usize = 9;

#[derive(Debug)]
pub(super) struct ScanProgression {
    pub(super) now: [Missing; 4],
    /// Before the last scan of each component.
    pub(super) before: [Missing; 4],
}

impl ScanProgression {
    pub(super) const NEW: Self = Self {
        now: [[-1; 64]; 4],
        before: [[0; 64]; 4],
    };

    /// Checks the parameters of scan `number`, and records the bits that it supplies.
    pub(super) fn begin(
        &mut self,
        scan: &ScanHeader,
        number: u32,
        source: &mut ByteSource<'_>,
    ) -> Result<(), FatalFault> {
        let (first, last) = (scan.first, scan.last);
        let is_good = match first {
            0 => last == 0,
            _ => first <= last && last < 64 && scan.count == 1,
        } && (scan.high == 0 || scan.low + 1 == scan.high)
            && scan.low <= MOST_BITS;
        if !is_good {
            let words = format!(
                "Invalid progressive/lossless parameters Ss={first} Se={last} Ah={} Al={}",
                scan.high, scan.low
            );
            return Err(words.into());
        }
        for of in scan.components() {
            let now = &mut self.now[of.component & 3];
            let before = &mut self.before[of.component & 3];
            let mut is_consistent = first == 0 || now[0] >= 0;
            let noted = first.min(1)..=last.max(SMOOTHED);
            match number {
                0..=1 => before[noted].fill(0),
                _ => before[noted.clone()].copy_from_slice(&now[noted]),
            }
            for missing in &mut now[first..=last] {
                is_consistent &= i32::from((*missing).max(0)) == scan.high as i32;
                *missing = scan.low as i8;
            }
            if !is_consistent {
                source.warn(DecodeWarning::Damage);
            }
        }
        Ok(())
    }
}
