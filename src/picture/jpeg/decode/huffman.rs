//! Huffman tables (ITU-T T.81, Annex C and F.2.2), as lookups by the next bits of the stream.
//!
//! | table | indexed by | content of an entry |
//! |---|---|---|
//! | [`DcTable`] | 9 bits | a code and the length of its difference |
//! | [`AcTable::pairs`] | 10 bits | up to two coefficients and the end of the block |
//! | [`AcTable::lengths`] | 11 bits | all symbols that the bits hold, without values |
//!
//! Codes longer than the index are found by their 16 bits ([`CodesByLength::long`]).

use super::request::DecodeRefusal;

/// A table as in DHT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HuffmanSpec {
    /// Number of codes with 1 to 16 bits.
    counts: [u8; 16],
    /// The symbols in order of their codes; zeros after them.
    symbols: [u8; 256],
}

impl Default for HuffmanSpec {
    fn default() -> Self {
        Self {
            counts: [0; 16],
            symbols: [0; 256],
        }
    }
}

impl HuffmanSpec {
    /// Reads the symbols that `counts` announces from `rest`. Returns the bytes after them.
    pub(super) fn read<'a>(&mut self, counts: &[u8], rest: &'a [u8]) -> Option<&'a [u8]> {
        let codes = counts.iter().map(|&n| usize::from(n)).sum::<usize>();
        let (symbols, behind) = rest.split_at_checked(codes)?;
        self.counts = *counts.first_chunk::<16>()?;
        let (own, zeros) = self.symbols.split_at_mut_checked(codes)?;
        own.copy_from_slice(symbols);
        zeros.fill(0);
        Some(behind)
    }

    pub(super) fn of(counts: [u8; 16], symbols: [u8; 256]) -> Self {
        Self { counts, symbols }
    }

    /// The counts and the symbols.
    pub(super) fn parts(&self) -> (&[u8; 16], &[u8; 256]) {
        (&self.counts, &self.symbols)
    }

    /// Whether [`DcTable::set`] accepts it.
    pub(super) fn is_dc(&self) -> bool {
        self.is_code() && self.symbols().all(|(_, size)| size <= 15)
    }

    /// Whether [`AcTable::set`] accepts it.
    pub(super) fn is_ac(&self) -> bool {
        self.is_code() && self.symbols().all(|symbol| symbol != (1, 0xF0))
    }

    /// Whether there are at most 256 codes, which do not overlap, and none is all ones.
    fn is_code(&self) -> bool {
        let codes: usize = self.counts.iter().map(|&n| usize::from(n)).sum();
        let mut code = 0u32;
        let mut lengths = (1u32..).zip(self.counts);
        codes <= 256
            && lengths.all(|(length, n)| {
                code += u32::from(n);
                let is_right = n == 0 || code < 1 << length;
                code <<= 1;
                is_right
            })
    }

    /// The lengths of codes and their symbols, in order of the codes.
    pub(super) fn symbols(&self) -> impl Iterator<Item = (u32, u8)> {
        let lengths = (1u32..)
            .zip(self.counts)
            .flat_map(|(length, n)| std::iter::repeat_n(length, usize::from(n)));
        lengths.zip(self.symbols)
    }

    fn symbol(&self, index: i32) -> u8 {
        self.symbols[index as usize & 255]
    }
}

/// The codes of a table by length (T.81, Figure F.15).
#[derive(Debug, Default, Clone)]
pub(super) struct CodesByLength {
    /// For each length, the 16 bits just above its last code.
    above: [u32; 16],
    /// For each length, the index of a symbol minus its code.
    offset: [i32; 16],
    spec: HuffmanSpec,
    /// Whether these codes, and the lookups of the table that holds them, are those of `spec`. A
    /// file may have any table, so no `spec` can mean "no table yet".
    is_made: bool,
}

impl CodesByLength {
    /// Whether the complete table of `spec` has been built.
    pub(super) fn are_of(&self, spec: &HuffmanSpec) -> bool {
        self.is_made && self.spec == *spec
    }

    /// Marks the table as complete.
    pub(super) fn finish(&mut self) {
        self.is_made = true;
    }

    /// Sets the codes of `spec`.
    ///
    /// # Errors
    /// `Unsupported` where libjpeg fails: codes that overlap, or a code of only ones.
    pub(super) fn set(&mut self, spec: &HuffmanSpec) -> Result<(), DecodeRefusal> {
        self.is_made = false;
        let (mut code, mut codes) = (0u32, 0);
        for (i, &n) in spec.counts.iter().enumerate() {
            let length = i as u32 + 1;
            self.offset[i] = codes - code as i32;
            code += u32::from(n);
            codes += i32::from(n);
            if n > 0 && code >= 1 << length {
                return Err(DecodeRefusal::Unsupported);
            }
            self.above[i] = code << (16 - length);
            code <<= 1;
        }
        self.spec.clone_from(spec);
        Ok(())
    }

    /// Length and symbol of the code at the top of `bits`; `None` for an invalid code.
    #[cold]
    #[inline(never)]
    pub(super) fn long(&self, bits: u64) -> Option<(u32, u8)> {
        let next = (bits >> 48) as u32;
        let i = self.above.iter().position(|&above| next < above)?;
        let code = (next >> (15 - i)) as i32;
        Some((i as u32 + 1, self.spec.symbol(code + self.offset[i])))
    }
}

const DC_BITS: u32 = 9;

/// The table of DC differences.
#[derive(Debug, Clone)]
pub(super) struct DcTable {
    /// Bits of code and difference; from bit 8 bits of the code; from bit 16 63 minus the bits of
    /// the difference. 0 = the code is longer, or invalid.
    entries: [u32; 1 << DC_BITS],
    codes: CodesByLength,
}

impl Default for DcTable {
    fn default() -> Self {
        Self {
            entries: [0; 1 << DC_BITS],
            codes: CodesByLength::default(),
        }
    }
}

impl DcTable {
    /// Builds the table of `spec`, unless this is its table already.
    pub(super) fn set(&mut self, spec: &HuffmanSpec) -> Result<(), DecodeRefusal> {
        if self.codes.are_of(spec) {
            return Ok(());
        }
        if spec.symbols().any(|(_, size)| size > 15) {
            return Err(DecodeRefusal::Unsupported);
        }
        self.codes.set(spec)?;
        let mut at = 0;
        for (length, size) in spec.symbols().take_while(|&(length, _)| length <= DC_BITS) {
            let end = at + (1 << (DC_BITS - length));
            let range = self.entries.get_mut(at..end);
            range
                .ok_or(DecodeRefusal::Unsupported)?
                .fill(dc_entry(length, size));
            at = end;
        }
        self.entries[at..].fill(0);
        self.codes.finish();
        Ok(())
    }

    #[inline(always)]
    pub(super) fn entry(&self, bits: u64) -> u32 {
        self.entries[(bits >> (64 - DC_BITS)) as usize]
    }

    /// The entry of a code that [`Self::entry`] does not have. Reads 16 bits of `bits`.
    #[cold]
    pub(super) fn long(&self, bits: u64) -> Option<u32> {
        let (length, size) = self.codes.long(bits)?;
        Some(dc_entry(length, size.min(15)))
    }
}

fn dc_entry(length: u32, size: u8) -> u32 {
    let size = u32::from(size);
    (length + size) | length << 8 | (63 - size) << 16
}

pub(super) const PAIR_BITS: u32 = 10;
const SKIP_BITS: u32 = 11;

/// Maximum bits that one lookup takes: after two of them 12 of 56 are left, enough for the next
/// index.
const MOST_BITS: u32 = 22;

/// Maximum bits of a value in an entry. Baseline values have at most 10 (T.81, F.1.2.2).
const MOST_OF_VALUE: u32 = 11;

/// Steps of entries: with the end of the block, with that end alone, and by hand.
pub(super) const END: u64 = 128;
pub(super) const END_ALONE: u64 = 256;
const BY_HAND: u64 = 400;

/// The same in [`AcTable::lengths`].
const LENGTH_BY_HAND: u16 = 255 << 8;

/// The table of AC coefficients.
#[derive(Debug, Clone)]
pub(super) struct AcTable {
    /// See [`PairEntry`].
    pub(super) pairs: [PairEntry; 1 << PAIR_BITS],
    /// Bits to take; from bit 8 coefficients to go, plus [`END`] for the end of the block; 255 = by
    /// hand.
    pub(super) lengths: [u16; 1 << SKIP_BITS],
    /// Bits of the code; from bit 8 those of the value; from bit 16 the zeros before it. 0 =
    /// longer.
    single: [u32; 1 << PAIR_BITS],
    /// Tables of fewer bits, from which `lengths` is built.
    shorter: [u16; 1 << SKIP_BITS],
    codes: CodesByLength,
    /// Whether `pairs` and `lengths` are built. If not, all their entries are "by hand".
    has_lookups: bool,
}

impl Default for AcTable {
    fn default() -> Self {
        Self {
            pairs: [PairEntry::default(); 1 << PAIR_BITS],
            lengths: [0; 1 << SKIP_BITS],
            single: [0; 1 << PAIR_BITS],
            shorter: [0; 1 << SKIP_BITS],
            codes: CodesByLength::default(),
            has_lookups: false,
        }
    }
}

/// An entry of [`AcTable::pairs`]: up to two coefficients. The entry holds the value of the first.
/// The last one's value comes from the stream.
///
/// | bits | content |
/// |---|---|
/// | `step`, 0 to 7 | bits of the stream to take |
/// | 8 to 15 | bits before the last value |
/// | 16 to 21 | 64 minus the bits of the last value, 1 to 11 |
/// | 23 to 31 | places to go; the last value belongs just before the new place |
/// | `values`, 0 to 15 | the first value |
/// | 16 to 20 | places to the one after the first value |
/// | 21 to 31 | mask of the last value's bits, which is subtracted if it begins with 0 |
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PairEntry {
    pub(super) step: u32,
    pub(super) values: u32,
}

impl PairEntry {
    const BY_HAND: Self = Self::new(0, 0, 1, (0, 0), BY_HAND);

    const fn new(taken: u32, shift: u32, size: u32, first: (u32, i32), go: u64) -> Self {
        Self {
            step: taken | shift << 8 | ((64 - size) & 63) << 16 | (go as u32) << 23,
            values: first.1 as u16 as u32 | (first.0 + 1) << 16 | ((1 << size) - 1) << 21,
        }
    }
}

impl AcTable {
    /// Builds the tables of `spec`, unless they are complete. With `few` bytes of coded data it
    /// builds no lookups of several symbols, because they take longer than decoding by hand. It
    /// builds them if the previous file had the same table.
    pub(super) fn set(&mut self, spec: &HuffmanSpec, few: bool) -> Result<(), DecodeRefusal> {
        let is_made = self.codes.are_of(spec);
        if is_made && self.has_lookups {
            return Ok(());
        }
        if !is_made {
            self.set_single(spec)?;
        }
        // Stays false until they are complete.
        self.has_lookups = false;
        let with_lookups = is_made || !few;
        if with_lookups {
            for i in 0..self.pairs.len() {
                self.pairs[i] = self.pair_at(i as u32);
            }
            self.set_lengths(spec)?;
        } else {
            self.pairs.fill(PairEntry::BY_HAND);
            self.lengths.fill(LENGTH_BY_HAND);
        }
        self.has_lookups = with_lookups;
        self.codes.finish();
        Ok(())
    }

    fn set_single(&mut self, spec: &HuffmanSpec) -> Result<(), DecodeRefusal> {
        // A code of one bit for 16 zeros: one index could hold too many of them for `places`.
        if spec.symbols().any(|symbol| symbol == (1, 0xF0)) {
            return Err(DecodeRefusal::Unsupported);
        }
        self.codes.set(spec)?;
        let mut at = 0;
        for (length, symbol) in spec
            .symbols()
            .take_while(|&(length, _)| length <= PAIR_BITS)
        {
            let end = at + (1 << (PAIR_BITS - length));
            let (size, run) = (u32::from(symbol & 15), u32::from(symbol >> 4));
            let range = self
                .single
                .get_mut(at..end)
                .ok_or(DecodeRefusal::Unsupported)?;
            range.fill(length | size << 8 | run << 16);
            at = end;
        }
        self.single[at..].fill(0);
        Ok(())
    }

    /// The symbol at the top of these 10 bits: bits of the code, bits of the value, zeros before
    /// it.
    fn single(&self, bits: u32) -> (u32, u32, u32) {
        let entry = self.single[bits as usize & ((1 << PAIR_BITS) - 1)];
        (entry & 255, entry >> 8 & 255, entry >> 16)
    }

    fn pair_at(&self, bits: u32) -> PairEntry {
        let (length, size, run) = self.single(bits);
        if length == 0 || size == 0 && run > 0 {
            return PairEntry::BY_HAND;
        }
        if size == 0 {
            return PairEntry::new(length, 0, 1, (0, 0), END_ALONE);
        }
        let taken = length + size;
        if taken > MOST_BITS || size > MOST_OF_VALUE {
            return PairEntry::BY_HAND;
        }
        // Adds the end of the block to an entry, if the bits hold its code, too.
        let with_end = |mut entry: PairEntry, taken: u32| {
            if taken < PAIR_BITS {
                let (length, size, run) = self.single(bits << taken);
                if length > 0 && (size, run) == (0, 0) && taken + length <= PAIR_BITS {
                    entry.step += length + ((END as u32) << 23);
                }
            }
            entry
        };
        let one = PairEntry::new(taken, length, size, (0, 0), u64::from(run) + 1);
        if taken >= PAIR_BITS {
            return one;
        }
        let (next, next_size, next_run) = self.single(bits << taken);
        if next == 0 || taken + next > PAIR_BITS || next_size == 0 {
            return with_end(one, taken);
        }
        let all = taken + next + next_size;
        if all > MOST_BITS || next_size > MOST_OF_VALUE {
            return one;
        }
        let value = (bits >> (PAIR_BITS - taken) & ((1 << size) - 1)) as i32;
        let value = if value < 1 << (size - 1) {
            value - (1 << size) + 1
        } else {
            value
        };
        let go = u64::from(run + next_run) + 2;
        with_end(
            PairEntry::new(all, taken + next, next_size, (run, value), go),
            all,
        )
    }

    /// Builds the tables of 1 to 11 bits, each from the shorter ones.
    fn set_lengths(&mut self, spec: &HuffmanSpec) -> Result<(), DecodeRefusal> {
        // The table of n bits begins at 2^n. The table of 0 bits has one entry: nothing more fits.
        self.shorter[1] = 0;
        for bits in 1..SKIP_BITS {
            let (shorter, own) = self.shorter.split_at_mut(1 << bits);
            fill_lengths(spec, bits, &mut own[..1 << bits], shorter, 0)?;
        }
        fill_lengths(
            spec,
            SKIP_BITS,
            &mut self.lengths,
            &self.shorter,
            LENGTH_BY_HAND,
        )
    }

    #[inline(always)]
    pub(super) fn pair(&self, bits: u64) -> PairEntry {
        self.pairs[(bits >> (64 - PAIR_BITS)) as usize]
    }

    #[inline(always)]
    pub(super) fn length(&self, bits: u64) -> u64 {
        u64::from(self.lengths[(bits >> (64 - SKIP_BITS)) as usize])
    }

    /// The symbol at the top of `bits`, of which 16 are read: bits of its code, bits of its value,
    /// zeros before it. `None` for an invalid code.
    pub(super) fn symbol(&self, bits: u64) -> Option<(u32, u32, u32)> {
        let (length, size, run) = self.single((bits >> (64 - PAIR_BITS)) as u32);
        if length > 0 {
            return Some((length, size, run));
        }
        let (length, symbol) = self.codes.long(bits)?;
        Some((length, u32::from(symbol & 15), u32::from(symbol >> 4)))
    }
}

/// Fills the table of `bits` bits. After a symbol comes the entry for the remaining bits, from one
/// of the `shorter` tables. `none` is the entry where there is no symbol.
fn fill_lengths(
    spec: &HuffmanSpec,
    bits: u32,
    own: &mut [u16],
    shorter: &[u16],
    none: u16,
) -> Result<(), DecodeRefusal> {
    let mut at = 0;
    for (length, symbol) in spec.symbols().take_while(|&(length, _)| length <= bits) {
        let (size, run) = (u32::from(symbol & 15), u16::from(symbol >> 4));
        let left = bits - length;
        let range = own.get_mut(at..at + (1 << left));
        let range = range.ok_or(DecodeRefusal::Unsupported)?;
        at += 1 << left;
        let entry = (length + size) as u16 | (run + 1) << 8;
        if size == 0 && run != 15 {
            range.fill(length as u16 | (END as u16) << 8);
        } else if length + size > MOST_BITS {
            range.fill(none);
        } else if size >= left {
            range.fill(entry);
        } else {
            // The entries repeat for each value of the symbol: they are built once, and copied.
            let mut done = 1 << (left - size);
            let following = &shorter[done..2 * done];
            for (to, next) in range.iter_mut().zip(following) {
                *to = next + entry;
            }
            while done < range.len() {
                range.copy_within(..done, done);
                done *= 2;
            }
        }
    }
    own[at..].fill(none);
    Ok(())
}
