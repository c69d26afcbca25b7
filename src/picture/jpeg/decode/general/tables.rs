//! Huffman tables, as lookups by the next ten bits.

use super::super::huffman::{CodesByLength, HuffmanSpec};
use super::bits::{CodedBits, extend};
use super::entropy::{MarkerTables, ScanComponent};
use super::fatal::FatalFault;
use super::source::{ByteSource, DecodeWarning};

const INDEX: u32 = 10;

/// A table of symbols.
#[derive(Debug, Clone)]
pub(super) struct SymbolTable {
    /// Symbol, and from bit 8 the length of its code. 0 = the code is longer, or invalid.
    short: [u16; 1 << INDEX],
    /// AC coefficients whose code and value fit the index: bits to take, from bit 8 the zeros
    /// before it, from bit 16 its value. 0 = use `short`.
    whole: [u32; 1 << INDEX],
    codes: CodesByLength,
}

/// A symbol of AC coefficients, with its value.
pub(super) enum CodedSymbol {
    /// A coefficient after `run` zeros.
    Value { run: usize, value: i32 },
    /// 16 zeros.
    Zeros,
    /// The end of the block. In progressive scans `run` more bits count the blocks that end.
    End { run: u32 },
}

impl CodedSymbol {
    /// Interprets a symbol. `take` returns the bits of its value.
    #[inline(always)]
    pub(super) fn of(symbol: u32, take: impl FnOnce(u32) -> u32) -> Self {
        let (run, size) = (symbol >> 4, symbol & 15);
        match (run, size) {
            (15, 0) => Self::Zeros,
            (_, 0) => Self::End { run },
            _ => Self::Value {
                run: run as usize,
                value: extend(take(size), size),
            },
        }
    }
}

impl Default for SymbolTable {
    fn default() -> Self {
        Self {
            short: [0; 1 << INDEX],
            whole: [0; 1 << INDEX],
            codes: CodesByLength::default(),
        }
    }
}

impl SymbolTable {
    /// Builds the table of `spec`, unless this is its table already.
    fn set(&mut self, spec: &HuffmanSpec) -> Result<(), FatalFault> {
        if self.codes.are_of(spec) {
            return Ok(());
        }
        self.codes.set(spec).map_err(|_| FatalFault::BAD_HUFFMAN)?;
        let mut at = 0;
        for (length, symbol) in spec.symbols().take_while(|&(length, _)| length <= INDEX) {
            let end = at + (1 << (INDEX - length));
            let range = self.short.get_mut(at..end).ok_or(FatalFault::BAD_HUFFMAN)?;
            range.fill(u16::from(symbol) | (length as u16) << 8);
            at = end;
        }
        self.short[at..].fill(0);
        self.whole.fill(0);
        for (bits, (entry, whole)) in (0u32..).zip(self.short.iter().zip(&mut self.whole)) {
            let (length, run, size) = (
                u32::from(entry >> 8),
                u32::from(entry >> 4 & 15),
                u32::from(entry & 15),
            );
            if length > 0 && size > 0 && length + size <= INDEX {
                let value = bits >> (INDEX - length - size) & ((1 << size) - 1);
                let value = extend(value, size) as u16;
                *whole = (length + size) | run << 8 | u32::from(value) << 16;
            }
        }
        self.codes.finish();
        Ok(())
    }

    /// The next AC coefficient.
    #[inline(always)]
    pub(super) fn coefficient(
        &self,
        bits: &mut CodedBits,
        source: &mut ByteSource<'_>,
    ) -> CodedSymbol {
        bits.fill(source);
        let entry = self.whole[(bits.peek() >> (64 - INDEX)) as usize];
        if entry != 0 {
            bits.take(entry & 255, source);
            return CodedSymbol::Value {
                run: entry as usize >> 8 & 15,
                value: entry as i32 >> 16,
            };
        }
        let symbol = self.symbol(bits, source);
        CodedSymbol::of(symbol, |size| bits.take(size, source))
    }

    /// The next symbol; 0 for an invalid code.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut CodedBits, source: &mut ByteSource<'_>) -> u32 {
        bits.fill(source);
        let entry = u32::from(self.short[(bits.peek() >> (64 - INDEX)) as usize]);
        if entry == 0 {
            return self.long(bits, source);
        }
        bits.take(entry >> 8, source);
        entry & 255
    }

    /// Length and symbol of the code at the top of `bits`; 17 and 0 for an invalid code.
    pub(super) fn code(&self, bits: u64) -> (u32, u32) {
        match self.codes.long(bits) {
            Some((length, symbol)) => (length, u32::from(symbol)),
            None => (17, 0),
        }
    }

    #[cold]
    #[inline(never)]
    fn long(&self, bits: &mut CodedBits, source: &mut ByteSource<'_>) -> u32 {
        let (length, symbol) = self.code(bits.peek());
        if length > 16 {
            source.warn(DecodeWarning::Damage);
        }
        bits.take(length, source);
        symbol
    }
}

/// A source of coded bits.
pub(super) trait BitSource: Copy {
    /// The next symbol of a table; 0 for an invalid code.
    fn symbol(&mut self, table: &SymbolTable, source: &mut ByteSource<'_>) -> u32;

    /// Takes the bits of a value, up to 15.
    fn value(&mut self, bits: u32, source: &mut ByteSource<'_>) -> u32;

    /// The next AC coefficient.
    #[inline(always)]
    fn coefficient(&mut self, table: &SymbolTable, source: &mut ByteSource<'_>) -> CodedSymbol {
        let symbol = self.symbol(table, source);
        CodedSymbol::of(symbol, |bits| self.value(bits, source))
    }
}

impl BitSource for CodedBits {
    #[inline(always)]
    fn symbol(&mut self, table: &SymbolTable, source: &mut ByteSource<'_>) -> u32 {
        table.symbol(self, source)
    }

    #[inline(always)]
    fn value(&mut self, bits: u32, source: &mut ByteSource<'_>) -> u32 {
        self.take(bits, source)
    }

    #[inline(always)]
    fn coefficient(&mut self, table: &SymbolTable, source: &mut ByteSource<'_>) -> CodedSymbol {
        table.coefficient(self, source)
    }
}

/// The tables of a picture.
#[derive(Debug, Default)]
pub(super) struct SymbolTables {
    dc: [SymbolTable; 4],
    ac: [SymbolTable; 4],
}

impl SymbolTables {
    pub(super) fn dc(&self, of: ScanComponent) -> &SymbolTable {
        &self.dc[of.dc & 3]
    }

    pub(super) fn ac(&self, of: ScanComponent) -> &SymbolTable {
        &self.ac[of.ac & 3]
    }

    /// Builds the DC table of a component.
    pub(super) fn set_dc(
        &mut self,
        tables: &MarkerTables,
        of: ScanComponent,
    ) -> Result<(), FatalFault> {
        let spec = stated(&tables.dc, of.dc)?;
        self.dc[of.dc & 3].set(spec)?;
        match spec.symbols().any(|(_, size)| size > 15) {
            true => Err(FatalFault::BAD_HUFFMAN),
            false => Ok(()),
        }
    }

    /// Builds the AC table of a component.
    pub(super) fn set_ac(
        &mut self,
        tables: &MarkerTables,
        of: ScanComponent,
    ) -> Result<(), FatalFault> {
        self.ac[of.ac & 3].set(stated(&tables.ac, of.ac)?)
    }
}

fn stated(specs: &[Option<HuffmanSpec>; 4], number: usize) -> Result<&HuffmanSpec, FatalFault> {
    let spec = specs.get(number).and_then(Option::as_ref);
    spec.ok_or_else(|| FatalFault::from(format!("Huffman table 0x{number:02x} was not defined")))
}
