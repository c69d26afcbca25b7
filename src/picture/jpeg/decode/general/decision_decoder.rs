//! Decodes binary decisions (ITU-T T.81, annex D).

use super::source::ByteSource;

/// State of a decision: an index into [`ESTIMATES`]. Its top bit is the likely outcome.
pub(super) type DecisionState = u8;

/// The state of equally likely outcomes. It never changes.
pub(super) const EVEN: DecisionState = 113;

/// A row of table D.3.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// Probability of the unlikely outcome: `Qe`.
    unlikely: u16,
    /// The state after it. Its top bit is set if the likely outcome changes.
    after_unlikely: DecisionState,
    after_likely: DecisionState,
}

const fn row(
    unlikely: u16,
    after_unlikely: DecisionState,
    after_likely: DecisionState,
    switch: u8,
) -> Estimate {
    Estimate {
        unlikely,
        after_unlikely: after_unlikely | switch << 7,
        after_likely,
    }
}

/// Table D.3, and the row of [`EVEN`] (T.851, table 5).
#[rustfmt::skip]
const ROWS: [Estimate; 114] = [
    row(0x5a1d, 1, 1, 1), row(0x2586, 14, 2, 0), row(0x1114, 16, 3, 0),
    row(0x080b, 18, 4, 0), row(0x03d8, 20, 5, 0), row(0x01da, 23, 6, 0),
    row(0x00e5, 25, 7, 0), row(0x006f, 28, 8, 0), row(0x0036, 30, 9, 0),
    row(0x001a, 33, 10, 0), row(0x000d, 35, 11, 0), row(0x0006, 9, 12, 0),
    row(0x0003, 10, 13, 0), row(0x0001, 12, 13, 0), row(0x5a7f, 15, 15, 1),
    row(0x3f25, 36, 16, 0), row(0x2cf2, 38, 17, 0), row(0x207c, 39, 18, 0),
    row(0x17b9, 40, 19, 0), row(0x1182, 42, 20, 0), row(0x0cef, 43, 21, 0),
    row(0x09a1, 45, 22, 0), row(0x072f, 46, 23, 0), row(0x055c, 48, 24, 0),
    row(0x0406, 49, 25, 0), row(0x0303, 51, 26, 0), row(0x0240, 52, 27, 0),
    row(0x01b1, 54, 28, 0), row(0x0144, 56, 29, 0), row(0x00f5, 57, 30, 0),
    row(0x00b7, 59, 31, 0), row(0x008a, 60, 32, 0), row(0x0068, 62, 33, 0),
    row(0x004e, 63, 34, 0), row(0x003b, 32, 35, 0), row(0x002c, 33, 9, 0),
    row(0x5ae1, 37, 37, 1), row(0x484c, 64, 38, 0), row(0x3a0d, 65, 39, 0),
    row(0x2ef1, 67, 40, 0), row(0x261f, 68, 41, 0), row(0x1f33, 69, 42, 0),
    row(0x19a8, 70, 43, 0), row(0x1518, 72, 44, 0), row(0x1177, 73, 45, 0),
    row(0x0e74, 74, 46, 0), row(0x0bfb, 75, 47, 0), row(0x09f8, 77, 48, 0),
    row(0x0861, 78, 49, 0), row(0x0706, 79, 50, 0), row(0x05cd, 48, 51, 0),
    row(0x04de, 50, 52, 0), row(0x040f, 50, 53, 0), row(0x0363, 51, 54, 0),
    row(0x02d4, 52, 55, 0), row(0x025c, 53, 56, 0), row(0x01f8, 54, 57, 0),
    row(0x01a4, 55, 58, 0), row(0x0160, 56, 59, 0), row(0x0125, 57, 60, 0),
    row(0x00f6, 58, 61, 0), row(0x00cb, 59, 62, 0), row(0x00ab, 61, 63, 0),
    row(0x008f, 61, 32, 0), row(0x5b12, 65, 65, 1), row(0x4d04, 80, 66, 0),
    row(0x412c, 81, 67, 0), row(0x37d8, 82, 68, 0), row(0x2fe8, 83, 69, 0),
    row(0x293c, 84, 70, 0), row(0x2379, 86, 71, 0), row(0x1edf, 87, 72, 0),
    row(0x1aa9, 87, 73, 0), row(0x174e, 72, 74, 0), row(0x1424, 72, 75, 0),
    row(0x119c, 74, 76, 0), row(0x0f6b, 74, 77, 0), row(0x0d51, 75, 78, 0),
    row(0x0bb6, 77, 79, 0), row(0x0a40, 77, 48, 0), row(0x5832, 80, 81, 1),
    row(0x4d1c, 88, 82, 0), row(0x438e, 89, 83, 0), row(0x3bdd, 90, 84, 0),
    row(0x34ee, 91, 85, 0), row(0x2eae, 92, 86, 0), row(0x299a, 93, 87, 0),
    row(0x2516, 86, 71, 0), row(0x5570, 88, 89, 1), row(0x4ca9, 95, 90, 0),
    row(0x44d9, 96, 91, 0), row(0x3e22, 97, 92, 0), row(0x3824, 99, 93, 0),
    row(0x32b4, 99, 94, 0), row(0x2e17, 93, 86, 0), row(0x56a8, 95, 96, 1),
    row(0x4f46, 101, 97, 0), row(0x47e5, 102, 98, 0), row(0x41cf, 103, 99, 0),
    row(0x3c3d, 104, 100, 0), row(0x375e, 99, 93, 0), row(0x5231, 105, 102, 0),
    row(0x4c0f, 106, 103, 0), row(0x4639, 107, 104, 0), row(0x415e, 103, 99, 0),
    row(0x5627, 105, 106, 1), row(0x50e7, 108, 107, 0), row(0x4b85, 109, 103, 0),
    row(0x5597, 110, 109, 0), row(0x504f, 111, 107, 0), row(0x5a10, 110, 111, 1),
    row(0x5522, 112, 109, 0), row(0x59eb, 112, 111, 1), row(0x5a1d, 113, 113, 0),
];

/// The table row of each state, with the likely outcome in the top bit of the next states.
static ESTIMATES: [Estimate; 256] = {
    let mut estimates = [ROWS[0]; 256];
    let mut state = 0;
    while state < 256 {
        // No decision has a state outside the table.
        let row = match state & 0x7f {
            known @ ..114 => ROWS[known],
            _ => ROWS[0],
        };
        let likely = state as u8 & 0x80;
        estimates[state] = Estimate {
            unlikely: row.unlikely,
            after_unlikely: row.after_unlikely ^ likely,
            after_likely: row.after_likely ^ likely,
        };
        state += 1;
    }
    estimates
};

/// A position in the coded data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecisionDecoder {
    /// The data above the base of the interval, and `bits` bits more.
    code: u32,
    /// Size of the interval. Below 2^15 it must be enlarged; 0 before the first decision.
    interval: u32,
    bits: u32,
}

impl DecisionDecoder {
    /// Decodes a decision, and updates its state.
    #[inline(always)]
    pub(super) fn next(&mut self, source: &mut ByteSource<'_>, bin: &mut DecisionState) -> bool {
        if self.interval < 0x8000 {
            self.fill(source);
        }
        let estimate = ESTIMATES[usize::from(*bin)];
        let likely = *bin >= 0x80;
        let unlikely = u32::from(estimate.unlikely);
        let rest = self.interval - unlikely;
        let bound = rest << self.bits;
        let is_below = self.code < bound;
        if is_below {
            self.interval = rest;
            if rest >= 0x8000 {
                return likely;
            }
        } else {
            self.code -= bound;
            self.interval = unlikely;
        }
        // The larger part of the interval means the likely outcome.
        if is_below == (rest < unlikely) {
            *bin = estimate.after_unlikely;
            !likely
        } else {
            *bin = estimate.after_likely;
            likely
        }
    }

    /// Enlarges the interval to 2^15 or more.
    fn fill(&mut self, source: &mut ByteSource<'_>) {
        if self.interval == 0 {
            self.code = byte(source) << 8 | byte(source);
            self.interval = 0x1_0000;
            return;
        }
        let shift = self.interval.leading_zeros() - 16;
        self.interval <<= shift;
        while self.bits < shift {
            self.code = self.code << 8 | byte(source);
            self.bits += 8;
        }
        self.bits -= shift;
    }
}

/// The next byte of data, without stuffed bytes. Data end at a marker, and zeros follow.
#[inline(always)]
fn byte(source: &mut ByteSource<'_>) -> u32 {
    if source.marker != 0 {
        return 0;
    }
    let byte = source.byte();
    match byte {
        0xff => after_ff(source),
        _ => u32::from(byte),
    }
}

#[cold]
fn after_ff(source: &mut ByteSource<'_>) -> u32 {
    let mut byte = source.byte();
    while byte == 0xff {
        byte = source.byte();
    }
    match byte {
        0 => 0xff,
        _ => {
            source.marker = byte;
            0
        }
    }
}
