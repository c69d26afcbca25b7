//! A position in unstuffed data, and the next bits. Reads eight bytes at a time, without a test for
//! the end of the data.

/// Bytes of the buffer that hold data.
pub(super) const DATA: usize = 1 << 13;

/// Extra bytes after them, so that eight can be read at each place.
pub(super) const SLACK: usize = 64;

/// Unstuffed data.
pub(super) type UnstuffedData = [u8; DATA + SLACK];

pub(super) const EMPTY: UnstuffedData = [0; DATA + SLACK];

/// A position in unstuffed data.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitPosition {
    /// The next bits, from the top.
    pub(super) next: u64,
    /// How many of them count: the low six bits.
    pub(super) count: u64,
    /// The byte after the counted bits.
    pub(super) at: usize,
}

impl BitPosition {
    pub(super) fn new(data: &UnstuffedData) -> Self {
        let mut bits = Self {
            next: 0,
            count: 0,
            at: 0,
        };
        bits.fill(data);
        bits
    }

    /// Fills up to 56 bits or more.
    #[inline(always)]
    pub(super) fn fill(&mut self, data: &UnstuffedData) {
        let at = self.at & (DATA - 1);
        let bytes = data[at..].first_chunk::<8>().copied().unwrap_or_default();
        self.next |= u64::from_be_bytes(bytes) >> (self.count & 63);
        self.at += (!self.count >> 3 & 7) as usize;
        self.count |= 56;
    }

    /// Takes bits, which must have been filled.
    #[inline(always)]
    pub(super) fn take(&mut self, bits: u32) {
        self.next = self.next.wrapping_shl(bits);
        self.count = self.count.wrapping_sub(u64::from(bits));
    }

    /// The position before the bits that were taken last. The low six bits of `taken` count them.
    /// Only the position in `data` is used, not the buffered bits.
    #[inline(always)]
    pub(super) fn back(self, taken: u64, data: &UnstuffedData) -> Self {
        let count = self.count.wrapping_add(taken) & 63;
        let position = (8 * self.at).wrapping_sub(count as usize);
        let mut bits = Self {
            next: 0,
            count: 0,
            at: position / 8,
        };
        bits.fill(data);
        bits.take(position as u32 & 7);
        bits
    }

    /// Bits from the start of the buffer to here.
    pub(super) fn position(self) -> usize {
        (8 * self.at).saturating_sub((self.count & 63) as usize)
    }
}
