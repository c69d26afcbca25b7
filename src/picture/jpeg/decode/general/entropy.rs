//! Common parts of the coefficient decoders: the header of a scan, the blocks of an MCU, and the
//! trait.

use super::super::frame::{MAX_BLOCKS, QuantizationTable};
use super::super::huffman::HuffmanSpec;
use super::fatal::FatalFault;
use super::source::ByteSource;

/// The coefficients of a block in natural order, not dequantized.
pub(super) type CoefficientBlock = [i16; 64];

/// The tables in force, from the markers read so far.
#[derive(Debug, Default)]
pub(super) struct MarkerTables {
    pub(super) quantization: [Option<QuantizationTable>; 4],
    pub(super) dc: [Option<HuffmanSpec>; 4],
    pub(super) ac: [Option<HuffmanSpec>; 4],
    pub(super) conditioning: ArithmeticConditioning,
    /// MCUs between two restart markers; 0 = no markers.
    pub(super) restart_interval: u32,
}

/// Parameters of arithmetic coding from DAC: `L` and `U` of DC tables and `Kx` of AC tables.
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
    /// Its index in the frame, 0 to 3.
    pub(super) component: usize,
    /// Numbers of its tables, 0 to 15.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

/// The header of a scan, and the blocks of its MCUs.
#[derive(Debug, Default)]
pub(super) struct ScanHeader {
    pub(super) progressive: bool,
    pub(super) components: [ScanComponent; 4],
    /// Number of components, 1 to 4.
    pub(super) count: usize,
    /// `Ss`, `Se`, `Ah` and `Al`. Those of a progressive scan are checked before it begins.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) high: u32,
    pub(super) low: u32,
    /// For each block of an MCU, the index of its component in `components`.
    pub(super) members: [usize; MAX_BLOCKS],
    pub(super) blocks: usize,
    /// MCUs between two restart markers; 0 = no markers.
    pub(super) restart_interval: u32,
}

impl ScanHeader {
    pub(super) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.count.min(4)]
    }
}

/// The blocks of an MCU. They hold the coefficients of earlier scans; zeros at first.
pub(super) struct McuBlocks<'a> {
    pub(super) coefficients: &'a mut [CoefficientBlock],
    /// Index of each block in `coefficients`.
    pub(super) at: &'a [usize; MAX_BLOCKS],
}

impl McuBlocks<'_> {
    #[inline(always)]
    pub(super) fn block(&mut self, number: usize) -> &mut CoefficientBlock {
        &mut self.coefficients[self.at[number]]
    }
}

/// A decoder of coefficients.
pub(super) trait EntropyDecoder {
    /// Prepares for a scan.
    fn start(&mut self, tables: &MarkerTables, scan: &ScanHeader) -> Result<(), FatalFault>;

    /// Decodes the next MCU, after a restart if one is due. Damage raises a warning in `source`.
    /// Coefficients after it keep their values.
    fn decode(
        &mut self,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
        mcu: &mut McuBlocks<'_>,
    ) -> Result<(), FatalFault>;

    /// Whether the data have ended before the next restart, so that blocks keep their values
    /// (`insufficient_data`). Always false for arithmetic coding.
    fn is_out_of_data(&self) -> bool;
}
