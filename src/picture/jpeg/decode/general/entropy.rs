//! What the decoders of coefficients have in common: the header of a scan, the blocks of an MCU,
//! and the calls.

use super::super::frame::{MAX_BLOCKS, QuantizationTable};
use super::super::huffman::HuffmanSpec;
use super::fatal::FatalFault;
use super::source::ByteSource;

/// Coefficients of a block in natural order, not dequantized.
pub(super) type CoefficientBlock = [i16; 64];

/// The tables that are in force, as the markers up to here state them.
#[derive(Debug, Default)]
pub(super) struct MarkerTables {
    pub(super) quantization: [Option<QuantizationTable>; 4],
    pub(super) dc: [Option<HuffmanSpec>; 4],
    pub(super) ac: [Option<HuffmanSpec>; 4],
    pub(super) conditioning: ArithmeticConditioning,
    /// MCUs between two restart markers; 0 = there are none.
    pub(super) restart_interval: u32,
}

/// What DAC states for arithmetic coding: `L` and `U` of DC tables and `Kx` of AC tables.
#[derive(Debug, Clone)]
pub(super) struct ArithmeticConditioning {
    pub(super) dc_lower: [u8; 16],
    pub(super) dc_upper: [u8; 16],
    pub(super) ac: [u8; 16],
}

impl Default for ArithmeticConditioning {
    fn default() -> Self {
        Self {
            dc_lower: [0; 16],
            dc_upper: [1; 16],
            ac: [5; 16],
        }
    }
}

/// A component of a scan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScanComponent {
    /// Its number in the frame, 0 to 3.
    pub(super) component: usize,
    /// Numbers of its tables, 0 to 15.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// The header of a scan, and what an MCU of it is.
#[derive(Debug, Default)]
pub(super) struct ScanHeader {
    pub(super) progressive: bool,
    pub(super) components: [ScanComponent; 4],
    /// How many components it has, 1 to 4.
    pub(super) count: usize,
    /// `Ss`, `Se`, `Ah` and `Al`. Of a progressive scan they are checked before it begins.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) high: u32,
    pub(super) low: u32,
    /// Of each block of an MCU: which of `components` it belongs to.
    pub(super) members: [usize; MAX_BLOCKS],
    pub(super) blocks: usize,
    /// MCUs between two restart markers; 0 = there are none.
    pub(super) restart_interval: u32,
}

impl ScanHeader {
    pub(super) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.count.min(4)]
    }
}

/// The blocks of an MCU. They hold what earlier scans left; zeros at first.
pub(super) struct McuBlocks<'a> {
    pub(super) coefficients: &'a mut [CoefficientBlock],
    /// Where each block stands among them.
    pub(super) at: &'a [usize; MAX_BLOCKS],
}

impl McuBlocks<'_> {
    /// A block of the MCU, by its number.
    #[inline(always)]
    pub(super) fn block(&mut self, number: usize) -> &mut CoefficientBlock {
        &mut self.coefficients[self.at[number]]
    }
}

/// A decoder of coefficients.
pub(super) trait EntropyDecoder {
    /// Gets ready for a scan.
    fn start(&mut self, tables: &MarkerTables, scan: &ScanHeader) -> Result<(), FatalFault>;

    /// Decodes the next MCU, with the restart that may be due before it. Damage is a warning of
    /// `source`, and leaves blocks as they are.
    fn decode(
        &mut self,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), FatalFault>;

    /// Whether the data are over, up to the next restart: blocks stay as they are
    /// (`insufficient_data`). Never so of arithmetic coding.
    fn is_out_of_data(&self) -> bool;
}
