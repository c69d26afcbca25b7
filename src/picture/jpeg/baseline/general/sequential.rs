//! Huffman decoding of sequential scans (ITU-T T.81, F.2.2), as `jdhuff.c` decodes damaged ones.

use super::bits::{Bits, extend};
use super::entropy::{Entropy, Mcu, Scan, Tables};
use super::fatal::Fatal;
use super::source::Source;
use super::tables::Lookups;
use super::zigzag::NATURAL;

/// Of an MCU this many bytes a block must be left in the file for `decode_mcu_fast`.
const FAST_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Sequential {
    lookups: Lookups,
    bits: Bits,
    /// The last DC coefficient of each component of the scan.
    dc: [i32; 4],
    /// MCUs up to the next restart marker.
    left: u32,
}

impl Entropy for Sequential {
    fn start(&mut self, tables: &Tables, scan: &Scan) -> Result<(), Fatal> {
        for &component in scan.components() {
            self.lookups.set_dc(tables, component)?;
            self.lookups.set_ac(tables, component)?;
        }
        self.bits = Bits::default();
        self.dc = [0; 4];
        self.left = scan.restart_interval;
        Ok(())
    }

    fn decode(
        &mut self,
        source: &mut Source<'_>,
        scan: &Scan,
        mcu: &mut Mcu<'_>,
    ) -> Result<(), Fatal> {
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
        if self.bits.is_spent {
            return Ok(());
        }
        // What libjpeg-turbo decodes fast up to a marker it decodes again, over what it wrote.
        let is_fast = scan.restart_interval == 0
            && source.marker == 0
            && source.left() >= FAST_BYTES * scan.blocks;
        if is_fast {
            let (bits, dc, at) = (self.bits, self.dc, source.at);
            self.bits.is_fast = true;
            self.blocks(source, scan, mcu);
            self.bits.is_fast = false;
            if !self.bits.met_end {
                return Ok(());
            }
            (self.bits, self.dc, source.at) = (bits, dc, at);
        }
        self.blocks(source, scan, mcu);
        Ok(())
    }

    fn is_out_of_data(&self) -> bool {
        self.bits.is_spent
    }
}

impl Sequential {
    fn blocks(&mut self, source: &mut Source<'_>, scan: &Scan, mcu: &mut Mcu<'_>) {
        let mut bits = self.bits;
        for number in 0..scan.blocks {
            let member = scan.members[number];
            let component = scan.components[member & 3];
            let block = mcu.block(number);
            let size = self.lookups.dc(component).symbol(&mut bits, source) & 15;
            let difference = extend(bits.take(size, source), size);
            let dc = &mut self.dc[member & 3];
            *dc = dc.wrapping_add(difference);
            block[0] = *dc as i16;
            let table = self.lookups.ac(component);
            let mut k = 1;
            while k < 64 {
                let symbol = table.symbol(&mut bits, source);
                let (run, size) = (symbol as usize >> 4, symbol & 15);
                if size > 0 {
                    k += run;
                    let value = extend(bits.take(size, source), size);
                    block[usize::from(NATURAL[k & 127])] = value as i16;
                } else if run < 15 {
                    break;
                } else {
                    k += 15;
                }
                k += 1;
            }
        }
        self.bits = bits;
    }
}
