//! Huffman decoding of progressive scans (ITU-T T.81, G.2). Damaged data decode as in `jdphuff.c`.

use super::bits::{CodedBits, extend};
use super::entropy::{CoefficientBlock, EntropyDecoder, MarkerTables, McuBlocks, ScanHeader};
use super::fatal::FatalFault;
use super::source::{ByteSource, DecodeWarning};
use super::tables::{CodedSymbol, SymbolTable, SymbolTables};
use super::zigzag::{NATURAL, places_of_coefficients};

#[derive(Debug, Default)]
pub(super) struct ProgressiveDecoder {
    lookups: SymbolTables,
    bits: CodedBits,
    /// The last DC coefficient of each component in the scan.
    dc: [i32; 4],
    /// Blocks to come whose band has already ended (`EOBRUN`).
    ended: u32,
    /// MCUs until the next restart marker.
    left: u32,
}

impl EntropyDecoder for ProgressiveDecoder {
    fn start(&mut self, tables: &MarkerTables, scan: &ScanHeader) -> Result<(), FatalFault> {
        for &component in scan.components() {
            if scan.first > 0 {
                self.lookups.set_ac(tables, component)?;
            } else if scan.high == 0 {
                self.lookups.set_dc(tables, component)?;
            }
        }
        self.bits = CodedBits::default();
        self.dc = [0; 4];
        self.ended = 0;
        self.left = scan.restart_interval;
        Ok(())
    }

    #[inline(always)]
    fn decode(
        &mut self,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), FatalFault> {
        if scan.restart_interval > 0 {
            if self.left == 0 {
                self.restart(source, scan);
            }
            self.left -= 1;
        }
        if self.bits.is_spent {
            return Ok(());
        }
        let mut bits = self.bits;
        match (scan.first > 0, scan.high > 0) {
            (false, false) => self.first_of_dc(&mut bits, source, scan, mcu)?,
            (false, true) => {
                for number in 0..scan.blocks {
                    let bit = bits.take(1, source) as i16;
                    mcu.block(number)[0] |= bit << scan.low;
                }
            }
            (true, is_refined) => {
                let table = self.lookups.ac(scan.components[0]);
                let block = mcu.block(0);
                self.ended = match is_refined {
                    false => first_of_band(&mut bits, source, scan, table, self.ended, block),
                    true => refine_band(&mut bits, source, scan, table, self.ended, block),
                };
            }
        }
        self.bits = bits;
        Ok(())
    }

    #[inline(always)]
    fn is_out_of_data(&self) -> bool {
        self.bits.is_spent
    }
}

impl ProgressiveDecoder {
    #[cold]
    fn restart(&mut self, source: &mut ByteSource<'_>, scan: &ScanHeader) {
        self.bits.restart(source);
        source.restart();
        self.bits.is_spent &= source.marker != 0;
        self.dc = [0; 4];
        self.ended = 0;
        self.left = scan.restart_interval;
    }

    #[inline(always)]
    fn first_of_dc(
        &mut self,
        bits: &mut CodedBits,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), FatalFault> {
        for number in 0..scan.blocks {
            let member = scan.members[number];
            let table = self.lookups.dc(scan.components[member & 3]);
            let size = table.symbol(bits, source) & 15;
            let difference = extend(bits.take(size, source), size);
            let dc = &mut self.dc[member & 3];
            *dc = dc.checked_add(difference).ok_or(FatalFault::ABSURD_DC)?;
            mcu.block(number)[0] = dc.wrapping_shl(scan.low) as i16;
        }
        Ok(())
    }
}

/// The number of blocks whose band ends here, including this one.
#[inline(always)]
fn end_of_band(bits: &mut CodedBits, source: &mut ByteSource<'_>, run: u32) -> u32 {
    (1 << run) + bits.take(run, source)
}

/// Decodes the first bits of a band of AC coefficients. Returns the number of blocks to come whose
/// band has already ended.
#[inline(always)]
fn first_of_band(
    bits: &mut CodedBits,
    source: &mut ByteSource<'_>,
    scan: &ScanHeader,
    table: &SymbolTable,
    ended: u32,
    block: &mut CoefficientBlock,
) -> u32 {
    if ended > 0 {
        return ended - 1;
    }
    let mut b = *bits;
    let mut k = scan.first;
    let mut to_come = 0;
    while k <= scan.last {
        match table.coefficient(&mut b, source) {
            CodedSymbol::Value { run, value } => {
                k += run;
                block[usize::from(NATURAL[k & 127])] = value.wrapping_shl(scan.low) as i16;
            }
            CodedSymbol::Zeros => k += 15,
            CodedSymbol::End { run } => {
                to_come = end_of_band(&mut b, source, run) - 1;
                break;
            }
        }
        k += 1;
    }
    *bits = b;
    to_come
}

/// Decodes one more bit of a band of AC coefficients. Returns the number of blocks to come whose
/// band has already ended.
#[inline(always)]
fn refine_band(
    bits: &mut CodedBits,
    source: &mut ByteSource<'_>,
    scan: &ScanHeader,
    table: &SymbolTable,
    mut ended: u32,
    block: &mut CoefficientBlock,
) -> u32 {
    let mut b = *bits;
    let (plus, minus) = (1i16 << scan.low, -1i16 << scan.low);
    // Nonzero coefficients, and the rest of the band, as bits in zigzag order.
    let known = places_of_coefficients(block, scan.first, scan.last);
    let mut band = (u64::MAX >> (63 - scan.last)) & (u64::MAX << scan.first);
    // Decodes one more bit of each nonzero coefficient at `places`.
    let refine = |places: u64,
                  block: &mut CoefficientBlock,
                  b: &mut CodedBits,
                  source: &mut ByteSource<'_>| {
        let mut left = places & known;
        while left != 0 {
            b.fill(source);
            let mut count = left.count_ones().min(32);
            let word = b.take(count, source);
            while count > 0 {
                count -= 1;
                let value = &mut block[usize::from(NATURAL[left.trailing_zeros() as usize & 63])];
                let change = if *value >= 0 { plus } else { minus };
                let is_more = word >> count & 1 > 0 && *value & plus == 0;
                *value = value.wrapping_add(if is_more { change } else { 0 });
                left &= left - 1;
            }
        }
    };
    while ended == 0 && band != 0 {
        let symbol = table.symbol(&mut b, source);
        let (run, size) = (symbol >> 4, symbol & 15);
        let mut new = 0;
        if size > 0 {
            if size != 1 {
                source.warn(DecodeWarning::Damage);
            }
            new = if b.take(1, source) > 0 { plus } else { minus };
        } else if run < 15 {
            ended = end_of_band(&mut b, source, run);
            break;
        }
        // The zero that becomes nonzero comes after `run` other zeros.
        let mut zeros = band & !known;
        for _ in 0..run {
            zeros &= zeros.wrapping_sub(1);
        }
        // 0 if the band has too few zeros: then the whole band is refined.
        let place = zeros & zeros.wrapping_neg();
        let before = place.wrapping_sub(1);
        refine(band & before, block, &mut b, source);
        band &= !before & !place;
        if new != 0 {
            let k = match place {
                0 => scan.last + 1,
                _ => place.trailing_zeros() as usize,
            };
            block[usize::from(NATURAL[k & 127])] = new;
        }
    }
    if ended > 0 {
        refine(band, block, &mut b, source);
        ended -= 1;
    }
    *bits = b;
    ended
}
