//! Arithmetic decoding of sequential and progressive scans (ITU-T T.81, F.2.4 and G.2.3). As in
//! `jdarith.c`, invalid data end the decoding up to the next restart.

use super::super::super::standard_tables::ZIGZAG;
use super::decision_decoder::{DecisionDecoder, DecisionState, EVEN};
use super::entropy::{
    ArithmeticConditioning, CoefficientBlock, EntropyDecoder, MarkerTables, McuBlocks, ScanHeader,
};
use super::fatal::FatalFault;
use super::source::{ByteSource, DecodeWarning};

/// States of one table's DC decisions. Each context has four: zero, sign, and a size for each sign.
/// Larger sizes (`X1`) and their bits follow.
type DcBins = [DecisionState; 64];

/// States of one table's AC decisions: three per place, then sizes and bits for low and for high
/// places.
type AcBins = [DecisionState; 256];

/// First states of DC sizes, and of AC sizes at low and high places.
const DC_SIZES: usize = 20;
const LOW_SIZES: usize = 189;
const HIGH_SIZES: usize = 217;

/// Offset from the state of a size to the state of its bits.
const TO_BITS: usize = 14;

#[derive(Debug)]
pub(super) struct ArithmeticDecoder {
    decisions: DecisionDecoder,
    dc_bins: [DcBins; 16],
    ac_bins: [AcBins; 16],
    conditioning: ArithmeticConditioning,
    /// The last DC coefficient of each component in the scan.
    dc: [i32; 4],
    /// First state of each component's next DC difference. The previous difference selects it.
    contexts: [usize; 4],
    /// MCUs until the next restart marker.
    left: u32,
    /// The data are invalid up to the next restart.
    is_damaged: bool,
}

impl Default for ArithmeticDecoder {
    fn default() -> Self {
        Self {
            decisions: DecisionDecoder::default(),
            dc_bins: [[0; 64]; 16],
            ac_bins: [[0; 256]; 16],
            conditioning: ArithmeticConditioning::default(),
            dc: [0; 4],
            contexts: [0; 4],
            left: 0,
            is_damaged: false,
        }
    }
}

/// The coded data are invalid.
struct ArithmeticDamage;

impl EntropyDecoder for ArithmeticDecoder {
    fn start(&mut self, tables: &MarkerTables, scan: &ScanHeader) -> Result<(), FatalFault> {
        self.conditioning = tables.conditioning.clone();
        self.reset(scan);
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
                source.restart();
                self.reset(scan);
            }
            self.left -= 1;
        }
        if !self.is_damaged && self.blocks(source, scan, mcu).is_err() {
            source.warn(DecodeWarning::Damage);
            self.is_damaged = true;
        }
        Ok(())
    }

    fn is_out_of_data(&self) -> bool {
        false
    }
}

impl ArithmeticDecoder {
    /// Resets statistics, DC coefficients and the decoder, at the start of a scan and at a restart.
    fn reset(&mut self, scan: &ScanHeader) {
        for component in scan.components() {
            if !scan.progressive || (scan.first == 0 && scan.high == 0) {
                self.dc_bins[component.dc & 15] = [0; 64];
            }
            if !scan.progressive || scan.first > 0 {
                self.ac_bins[component.ac & 15] = [0; 256];
            }
        }
        self.dc = [0; 4];
        self.contexts = [0; 4];
        self.decisions = DecisionDecoder::default();
        self.is_damaged = false;
        self.left = scan.restart_interval;
    }

    fn blocks(
        &mut self,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), ArithmeticDamage> {
        let mut decisions = self.decisions;
        let result = self.blocks_from(&mut decisions, source, scan, mcu);
        self.decisions = decisions;
        result
    }

    #[inline(always)]
    fn blocks_from(
        &mut self,
        decisions: &mut DecisionDecoder,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), ArithmeticDamage> {
        if scan.progressive && scan.first > 0 {
            let table = scan.components[0].ac & 15;
            let block = mcu.block(0);
            return match scan.high {
                0 => self.band(decisions, source, table, SpectralBand::of(scan), block),
                _ => refine_band(decisions, source, &mut self.ac_bins[table], scan, block),
            };
        }
        for number in 0..scan.blocks {
            let member = scan.members[number] & 3;
            let component = scan.components[member];
            let block = mcu.block(number);
            if scan.progressive && scan.high > 0 {
                let bit = decisions.next(source, &mut { EVEN });
                block[0] |= i16::from(bit) << scan.low;
                continue;
            }
            self.difference(decisions, source, member, component.dc & 15)?;
            let low = if scan.progressive { scan.low } else { 0 };
            block[0] = self.dc[member].wrapping_shl(low) as i16;
            if !scan.progressive {
                let table = component.ac & 15;
                self.band(decisions, source, table, SpectralBand::WHOLE, block)?;
            }
        }
        Ok(())
    }

    /// Decodes a DC difference and adds it to the last DC coefficient (figures F.19, F.21 to F.24).
    #[inline(always)]
    fn difference(
        &mut self,
        decisions: &mut DecisionDecoder,
        source: &mut ByteSource<'_>,
        member: usize,
        table: usize,
    ) -> Result<(), ArithmeticDamage> {
        let bins = &mut self.dc_bins[table];
        let context = &mut self.contexts[member];
        let mut at = *context;
        if !decisions.next(source, &mut bins[at & 63]) {
            *context = 0;
            return Ok(());
        }
        let is_negative = decisions.next(source, &mut bins[(at + 1) & 63]);
        at += 2 + usize::from(is_negative);
        let mut size = i32::from(decisions.next(source, &mut bins[at & 63]));
        if size > 0 {
            at = DC_SIZES;
            while decisions.next(source, &mut bins[at & 63]) {
                size = larger(size)?;
                at += 1;
            }
        }
        // The class of the difference (none, small, large) selects the states of the next one.
        let sign = 4 * usize::from(is_negative);
        let limit = |exponent: u8| (1 << exponent) >> 1;
        *context = if size < limit(self.conditioning.dc_lower[table]) {
            0
        } else if size > limit(self.conditioning.dc_upper[table]) {
            12 + sign
        } else {
            4 + sign
        };
        let value = value(decisions, source, size, &mut bins[(at + TO_BITS) & 63]);
        let difference = if is_negative { -value } else { value };
        self.dc[member] = (self.dc[member] + difference) & 0xffff;
        Ok(())
    }

    /// Decodes the coefficients of a band, or their first bits (figure F.20).
    #[inline(always)]
    fn band(
        &mut self,
        decisions: &mut DecisionDecoder,
        source: &mut ByteSource<'_>,
        table: usize,
        band: SpectralBand,
        block: &mut CoefficientBlock,
    ) -> Result<(), ArithmeticDamage> {
        let bins = &mut self.ac_bins[table];
        let low_places = usize::from(self.conditioning.ac[table]);
        let mut k = band.first;
        while k <= band.last {
            if decisions.next(source, &mut bins[of_place(k)]) {
                break;
            }
            while !decisions.next(source, &mut bins[of_place(k) + 1]) {
                k += 1;
                if k > band.last {
                    return Err(ArithmeticDamage);
                }
            }
            let is_negative = decisions.next(source, &mut { EVEN });
            let mut at = of_place(k) + 2;
            let mut size = i32::from(decisions.next(source, &mut bins[at]));
            if size > 0 && decisions.next(source, &mut bins[at]) {
                size = 2;
                at = match k <= low_places {
                    true => LOW_SIZES,
                    false => HIGH_SIZES,
                };
                while decisions.next(source, &mut bins[at & 255]) {
                    size = larger(size)?;
                    at += 1;
                }
            }
            let value = value(decisions, source, size, &mut bins[(at + TO_BITS) & 255]);
            let value = if is_negative { -value } else { value };
            block[usize::from(ZIGZAG[k & 63])] = value.wrapping_shl(band.low) as i16;
            k += 1;
        }
        Ok(())
    }
}

/// A range of places in zigzag order, and the number of low bits that later scans code.
#[derive(Debug, Clone, Copy)]
struct SpectralBand {
    first: usize,
    last: usize,
    low: u32,
}

impl SpectralBand {
    /// The AC band of a sequential scan, whatever its header states.
    const WHOLE: Self = Self {
        first: 1,
        last: 63,
        low: 0,
    };

    fn of(scan: &ScanHeader) -> Self {
        Self {
            first: scan.first,
            last: scan.last,
            low: scan.low,
        }
    }
}

/// The first of the three states of a place, 1 to 63.
#[inline(always)]
fn of_place(k: usize) -> usize {
    3 * ((k & 63).wrapping_sub(1) & 63)
}

/// Doubles a size, up to 2^14.
#[inline(always)]
fn larger(size: i32) -> Result<i32, ArithmeticDamage> {
    match size {
        0x4000.. => Err(ArithmeticDamage),
        _ => Ok(2 * size),
    }
}

/// Decodes an absolute value, whose size (0 or a power of two) is known. Its lower bits follow.
#[inline(always)]
fn value(
    decisions: &mut DecisionDecoder,
    source: &mut ByteSource<'_>,
    size: i32,
    bin: &mut DecisionState,
) -> i32 {
    let mut value = size;
    let mut bit = size >> 1;
    while bit > 0 {
        if decisions.next(source, bin) {
            value |= bit;
        }
        bit >>= 1;
    }
    value + 1
}

/// Decodes one more bit of each AC coefficient in a band (figure G.10).
fn refine_band(
    decisions: &mut DecisionDecoder,
    source: &mut ByteSource<'_>,
    bins: &mut AcBins,
    scan: &ScanHeader,
    block: &mut CoefficientBlock,
) -> Result<(), ArithmeticDamage> {
    let (plus, minus) = (1i16 << scan.low, -1i16 << scan.low);
    let place = |k: usize| usize::from(ZIGZAG[k & 63]);
    // The block may end only after its last nonzero coefficient.
    let known = (1..=scan.last).rev().find(|&k| block[place(k)] != 0);
    let mut k = scan.first;
    while k <= scan.last {
        if known.is_none_or(|known| k > known) && decisions.next(source, &mut bins[of_place(k)]) {
            break;
        }
        loop {
            let value = &mut block[place(k)];
            if *value != 0 {
                if decisions.next(source, &mut bins[of_place(k) + 2]) {
                    let more = if *value < 0 { minus } else { plus };
                    *value = value.wrapping_add(more);
                }
                break;
            }
            if decisions.next(source, &mut bins[of_place(k) + 1]) {
                let is_negative = decisions.next(source, &mut { EVEN });
                *value = if is_negative { minus } else { plus };
                break;
            }
            k += 1;
            if k > scan.last {
                return Err(ArithmeticDamage);
            }
        }
        k += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
