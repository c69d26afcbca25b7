//! The loop over MCUs.

use super::bits::{BitWriter, ByteOutput};
use super::blocks::ZigzagBlock;
use super::kernels::EncodeKernels;
use super::quantizer::BlockQuantizer;
use super::samples::{McuPixels, McuSamples, SIDE, repeat_chroma, repeat_edges};
use super::tables::CODES;
use super::transform::QuantizedPair;

/// A picture in tight RGB, with its quantizers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanEncoder<'a> {
    pub(super) rgb: &'a [u8],
    pub(super) height: usize,
    pub(super) width: usize,
    /// Of luma and of chroma.
    pub(super) quantizers: &'a [BlockQuantizer; 2],
}

impl ScanEncoder<'_> {
    #[inline(always)]
    pub(super) fn run<K: EncodeKernels>(self, kernels: K, out: &mut ByteOutput<'_>) {
        let mut bits = BitWriter::NONE;
        // DC of the last block of each component.
        let mut last = [0; 3];
        let mut samples: McuSamples = [[[0; SIDE]; 8]; 3];
        let mut blocks = [const { QuantizedPair::ZERO }; 3];
        let mut edge = [0; 3 * SIDE * SIDE];
        let pitch = 3 * self.width;
        for y in (0..self.height).step_by(SIDE) {
            let rows = (self.height - y).min(SIDE);
            for x in (0..self.width).step_by(SIDE) {
                let columns = (self.width - x).min(SIDE);
                let start = y * pitch + 3 * x;
                let mut pixels = McuPixels {
                    rgb: self.rgb,
                    start,
                    pitch,
                };
                let is_whole = rows == SIDE && columns == SIDE;
                if !is_whole {
                    repeat_edges(pixels, (rows, columns), &mut edge);
                    pixels = McuPixels {
                        rgb: &edge,
                        start: 0,
                        pitch: 3 * SIDE,
                    };
                }
                kernels.samples(pixels, &mut samples);
                if !is_whole {
                    repeat_chroma(&mut samples, rows);
                }
                let [luma, chroma] = self.quantizers;
                for (i, q) in [luma, luma, chroma].into_iter().enumerate() {
                    kernels.transform(&samples[i], q, &mut blocks[i]);
                }
                if !is_whole {
                    empty_outside(&mut blocks, rows > 8, columns > 8);
                }
                for (i, block) in (0..).zip(&blocks) {
                    for which in 0..2 {
                        let component = if i < 2 { 0 } else { 1 + which };
                        let block = ZigzagBlock {
                            values: &block.values[which],
                            nonzero: block.nonzero[which],
                            last: last[component],
                            codes: &CODES[component.min(1)],
                        };
                        bits = kernels.encode(block, bits, out);
                        last[component] = block.values[0];
                    }
                }
            }
        }
        bits.finish(out);
    }
}

/// Gives luma blocks without a pixel of the picture the DC of the block before, and no AC.
fn empty_outside(blocks: &mut [QuantizedPair; 3], has_lower: bool, has_right: bool) {
    let mut before = blocks[0].values[0][0];
    for (i, block) in blocks[..2].iter_mut().enumerate() {
        for which in 0..2 {
            if (i == 1 && !has_lower) || (which == 1 && !has_right) {
                block.values[which] = [0; 64];
                block.values[which][0] = before;
                block.nonzero[which] = 0;
            }
            before = block.values[which][0];
        }
    }
}
