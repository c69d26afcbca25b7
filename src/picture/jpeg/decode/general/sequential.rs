//! Huffman decoding of sequential scans (ITU-T T.81, F.2.2). Damaged data decode as in `jdhuff.c`.

use super::bits::{CodedBits, extend};
use super::entropy::{EntropyDecoder, MarkerTables, McuBlocks, ScanHeader};
use super::fatal::FatalFault;
use super::read_ahead::ReadAhead;
use super::source::ByteSource;
use super::tables::{BitSource, CodedSymbol, SymbolTables};
use super::zigzag::NATURAL;

#[derive(Debug, Default)]
pub(super) struct SequentialDecoder {
    lookups: SymbolTables,
    bits: CodedBits,
    /// Replaces `bits` where it matters how far libjpeg-turbo reads ahead.
    ahead: Option<ReadAhead>,
    /// No MCU of the scan has been decoded yet.
    is_new: bool,
    /// The last DC coefficient of each component in the scan.
    dc: [i32; 4],
    /// MCUs until the next restart marker.
    left: u32,
}

impl EntropyDecoder for SequentialDecoder {
    fn start(&mut self, tables: &MarkerTables, scan: &ScanHeader) -> Result<(), FatalFault> {
        for &component in scan.components() {
            self.lookups.set_dc(tables, component)?;
            self.lookups.set_ac(tables, component)?;
        }
        self.bits = CodedBits::default();
        self.dc = [0; 4];
        self.left = scan.restart_interval;
        self.ahead = None;
        self.is_new = true;
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
                self.bits.restart(source);
                source.restart();
                self.bits.is_spent &= source.marker != 0;
                self.dc = [0; 4];
                self.left = scan.restart_interval;
            }
            self.left -= 1;
        }
        if std::mem::take(&mut self.is_new)
            && scan.restart_interval == 0
            && source.has_odd_stuffing()
        {
            self.ahead = Some(ReadAhead::default());
        }
        if self.is_out_of_data() {
            return Ok(());
        }
        if let Some(mut ahead) = self.ahead {
            if let Some(mut fast) = ahead.fast(source, scan) {
                let (dc, at) = (self.dc, source.at);
                self.blocks(&mut fast, source, scan, mcu);
                if let Some(ahead) = fast.slow() {
                    self.ahead = Some(ahead);
                    return Ok(());
                }
                // Decodes again, over the coefficients already there.
                (self.dc, source.at) = (dc, at);
            }
            self.blocks(&mut ahead, source, scan, mcu);
            self.ahead = Some(ahead);
            return Ok(());
        }
        let mut bits = self.bits;
        self.blocks(&mut bits, source, scan, mcu);
        self.bits = bits;
        Ok(())
    }

    fn is_out_of_data(&self) -> bool {
        self.bits.is_spent || self.ahead.is_some_and(ReadAhead::is_spent)
    }
}

impl SequentialDecoder {
    #[inline(always)]
    fn blocks(
        &mut self,
        reader: &mut impl BitSource,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) {
        // A copy can stay in registers.
        let mut bits = *reader;
        for number in 0..scan.blocks {
            let member = scan.members[number];
            let component = scan.components[member & 3];
            let block = mcu.block(number);
            let size = bits.symbol(self.lookups.dc(component), source) & 15;
            let difference = extend(bits.value(size, source), size);
            let dc = &mut self.dc[member & 3];
            *dc = dc.wrapping_add(difference);
            block[0] = *dc as i16;
            let table = self.lookups.ac(component);
            let mut k = 1;
            while k < 64 {
                match bits.coefficient(table, source) {
                    CodedSymbol::Value { run, value } => {
                        k += run;
                        block[usize::from(NATURAL[k & 127])] = value as i16;
                    }
                    CodedSymbol::Zeros => k += 15,
                    CodedSymbol::End { .. } => break,
                }
                k += 1;
            }
        }
        *reader = bits;
    }
}
