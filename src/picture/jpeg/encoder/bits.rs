//! Packs bits of coded data into bytes, with a zero byte after each 0xff.

/// Writes bytes to a slice. Past its end it only counts them, and `finish` returns `None`.
#[derive(Debug)]
pub(super) struct ByteOutput<'a> {
    to: &'a mut [u8],
    count: usize,
}

impl<'a> ByteOutput<'a> {
    pub(super) fn new(to: &'a mut [u8]) -> Self {
        Self { to, count: 0 }
    }

    /// The number of bytes written; `None` if the slice was too short.
    pub(super) fn finish(self) -> Option<usize> {
        (self.count <= self.to.len()).then_some(self.count)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        let end = self.count + bytes.len();
        if let Some(to) = self.to.get_mut(self.count..end) {
            to.copy_from_slice(bytes);
        }
        self.count = end;
    }

    #[cold]
    fn put_stuffed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.put(&[byte]);
            if byte == 0xff {
                self.put(&[0]);
            }
        }
    }

    /// Writes eight bytes of coded data.
    #[inline(always)]
    fn put_word(&mut self, word: u64) {
        const HIGH: u64 = 0x8080_8080_8080_8080;
        const LOW: u64 = 0x0101_0101_0101_0101;
        // A carry from a byte below can make this true without need, but never false in error.
        let may_have_ff = word & HIGH & !word.wrapping_add(LOW) != 0;
        let room = self.to.get_mut(self.count..).unwrap_or_default();
        match room.first_chunk_mut() {
            Some(to) if !may_have_ff => {
                *to = word.to_be_bytes();
                self.count += 8;
            }
            _ => self.put_stuffed(&word.to_be_bytes()),
        }
    }
}

/// Bits that do not fill a word yet, the oldest on top.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitWriter {
    word: u64,
    free: u32,
}

impl BitWriter {
    pub(super) const NONE: Self = Self { word: 0, free: 64 };

    /// Adds 1 to 31 bits.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u32, count: u32, out: &mut ByteOutput<'_>) {
        let bits = u64::from(bits);
        if count < self.free {
            self.word = self.word << count | bits;
            self.free -= count;
        } else {
            // The rest of the bits begins the next word. Older bits above them are shifted out
            // before that word is written.
            let rest = count - self.free;
            out.put_word(self.word << self.free | bits >> rest);
            self.word = bits;
            self.free = 64 - rest;
        }
    }

    /// Writes the remaining bits, filled to a whole byte with ones.
    pub(super) fn finish(mut self, out: &mut ByteOutput<'_>) {
        let fill = self.free % 8;
        if fill > 0 {
            self.word = self.word << fill | ((1 << fill) - 1);
            self.free -= fill;
        }
        if self.free < 64 {
            let bytes = (self.word << self.free).to_be_bytes();
            let count = (64 - self.free) / 8;
            out.put_stuffed(&bytes[..count as usize]);
        }
    }
}
