//! Huffman tables, as lookups by the next ten bits.

use super::super::huffman::{Codes, Spec};
use super::bits::Bits;
use super::entropy::{InScan, Tables};
use super::fatal::Fatal;
use super::source::{Source, Warning};

const INDEX: u32 = 10;

/// A table of symbols.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Symbol, and from bit 8 the bits of its code. 0 = the code is longer, or there is none.
    short: [u16; 1 << INDEX],
    codes: Codes,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            short: [0; 1 << INDEX],
            codes: Codes::default(),
        }
    }
}

impl Table {
    /// Makes the table of `spec`, unless it is that already.
    fn set(&mut self, spec: &Spec) -> Result<(), Fatal> {
        if self.codes.spec == *spec {
            return Ok(());
        }
        self.codes.spec = Spec::default();
        self.codes.set(spec).map_err(|_| Fatal::BAD_HUFFMAN)?;
        let mut at = 0;
        for (length, symbol) in spec.symbols().take_while(|&(length, _)| length <= INDEX) {
            let end = at + (1 << (INDEX - length));
            let range = self.short.get_mut(at..end).ok_or(Fatal::BAD_HUFFMAN)?;
            range.fill(u16::from(symbol) | (length as u16) << 8);
            at = end;
        }
        self.short[at..].fill(0);
        Ok(())
    }

    /// The next symbol; 0 for no code.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits, source: &mut Source<'_>) -> u32 {
        bits.fill(source);
        let entry = u32::from(self.short[(bits.peek() >> (64 - INDEX)) as usize]);
        if entry == 0 {
            return self.long(bits, source);
        }
        bits.take(entry >> 8, source);
        entry & 255
    }

    #[cold]
    #[inline(never)]
    fn long(&self, bits: &mut Bits, source: &mut Source<'_>) -> u32 {
        match self.codes.long(bits.peek()) {
            Some((length, symbol)) => {
                bits.take(length, source);
                u32::from(symbol)
            }
            None => {
                bits.take(17, source);
                if !bits.is_fast {
                    source.warn(Warning::Damage);
                }
                0
            }
        }
    }
}

/// The tables of a picture.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    dc: [Table; 4],
    ac: [Table; 4],
}

impl Lookups {
    pub(super) fn dc(&self, of: InScan) -> &Table {
        &self.dc[of.dc & 3]
    }

    pub(super) fn ac(&self, of: InScan) -> &Table {
        &self.ac[of.ac & 3]
    }

    /// Makes the table of DC coefficients of a component.
    pub(super) fn set_dc(&mut self, tables: &Tables, of: InScan) -> Result<(), Fatal> {
        let spec = stated(&tables.dc, of.dc)?;
        self.dc[of.dc & 3].set(spec)?;
        match spec.symbols().any(|(_, size)| size > 15) {
            true => Err(Fatal::BAD_HUFFMAN),
            false => Ok(()),
        }
    }

    /// Makes the table of AC coefficients of a component.
    pub(super) fn set_ac(&mut self, tables: &Tables, of: InScan) -> Result<(), Fatal> {
        self.ac[of.ac & 3].set(stated(&tables.ac, of.ac)?)
    }
}

fn stated(specs: &[Option<Spec>; 4], number: usize) -> Result<&Spec, Fatal> {
    let spec = specs.get(number).and_then(Option::as_ref);
    spec.ok_or_else(|| Fatal::from(format!("Huffman table 0x{number:02x} was not defined")))
}
