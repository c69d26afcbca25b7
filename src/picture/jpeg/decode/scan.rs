//! The loop over the MCUs of a scan. It selects the blocks to decode in full, places their samples,
//! and writes rows of pixels when they are complete.

use std::ops::Range;

use super::bits::BitPosition;
use super::blocks::{BROKEN, BlockPair, BlockTables, PLACES, PairTarget};
use super::frame::{FrameHeader, MAX_BLOCKS, QuantizationTable};
use super::geometry::{McuBlock, SamplePlane, WindowGeometry};
use super::huffman::{AcTable, DcTable};
use super::kernels::DecodeKernels;
use super::request::DecodeRefusal;
use super::rows::OutputRows;
use super::stream::CodedStream;
use super::transform;

/// The Huffman tables of a picture.
#[derive(Debug, Default, Clone)]
pub(super) struct ScanTables {
    pub(super) dc: [DcTable; 2],
    pub(super) ac: [AcTable; 2],
}

/// Blocks of a component that wait for their transform, which takes two at a time.
#[derive(Debug, Clone)]
pub(super) struct PendingBlocks {
    pair: BlockPair,
    /// How many blocks wait, 0 or 1, and the place of the first.
    count: usize,
    first: usize,
    /// The largest end of their coefficients.
    end: u64,
}

impl PendingBlocks {
    pub(super) const NONE: Self = Self {
        pair: BlockPair([0; 256]),
        count: 0,
        first: 0,
        end: 0,
    };

    pub(super) fn clear(&mut self) {
        // A block that failed halfway may have written anywhere.
        self.pair.0.fill(0);
        (self.count, self.end) = (0, 0);
    }

    /// Adds a block in natural order, which belongs at `at`. Transforms two at once.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        kernels: impl DecodeKernels,
        plane: &SamplePlane,
        q: &QuantizationTable,
        block: &[i16; 64],
        at: usize,
        planes: &mut [u8],
    ) {
        let which = self.count & 1;
        let rows = self.pair.0.chunks_exact_mut(16).zip(block.chunks_exact(8));
        for (to, row) in rows {
            to[8 * which..8 * which + 8].copy_from_slice(row);
        }
        self.end = self.end.max(end(block));
        if which == 0 {
            (self.first, self.count) = (at, 1);
        } else {
            self.flush(kernels, plane, q, Some(at), planes);
        }
    }

    /// Transforms the waiting block, if there is one.
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        kernels: impl DecodeKernels,
        plane: &SamplePlane,
        q: &QuantizationTable,
        planes: &mut [u8],
    ) {
        if self.count > 0 {
            self.flush(kernels, plane, q, None, planes);
        }
    }

    /// Transforms the waiting blocks. `second` is the place of the second one.
    #[inline(always)]
    fn flush(
        &mut self,
        kernels: impl DecodeKernels,
        plane: &SamplePlane,
        q: &QuantizationTable,
        second: Option<usize>,
        planes: &mut [u8],
    ) {
        let at = PairTarget {
            first: self.first,
            second,
            pitch: plane.pitch,
        };
        let pair = &mut self.pair;
        if plane.side == 8 {
            kernels.transform8(pair, q, self.end, planes, at);
        } else if plane.side == 4 {
            kernels.transform4(pair, q, planes, at);
        } else {
            kernels.transform2(pair, q, planes, at);
        }
        // Lengths that the compiler knows.
        match self.end {
            0..=1 => pair.0[..16].fill(0),
            2..=10 => pair.0[..64].fill(0),
            _ => pair.0[..128].fill(0),
        }
        (self.count, self.end) = (0, 0);
    }
}

/// An upper bound for the end of a block's coefficients, in the steps that transforms use. The
/// block is in natural order.
#[inline(always)]
fn end(block: &[i16; 64]) -> u64 {
    // Combines a range of coefficients: zero if all are zero.
    let any = |from: usize, to: usize| block[from..to].iter().fold(0, |all, &value| all | value);
    // The first ten of the zigzag order are four, three, two and one of the first rows.
    let behind = any(4, 8) | any(11, 16) | any(18, 24) | any(25, 64);
    if behind != 0 {
        64
    } else if any(1, 4) | any(8, 11) | any(16, 18) | block[24] != 0 {
        10
    } else {
        1
    }
}

/// The inputs and buffers of a decode.
pub(super) struct ScanDecoder<'a> {
    pub(super) frame: &'a FrameHeader,
    pub(super) plan: &'a WindowGeometry,
    pub(super) tables: &'a ScanTables,
    pub(super) waiting: &'a mut [PendingBlocks; 4],
    pub(super) planes: &'a mut [u8],
}

/// The state of a decode between two MCUs.
struct ScanState {
    bits: BitPosition,
    /// The last DC coefficient of each component.
    dc: [i32; 4],
    /// MCUs until the next restart marker.
    left: u32,
}

/// A block that each MCU of a row has.
#[derive(Clone, Copy)]
struct BlockStep<'a> {
    plane: &'a SamplePlane,
    quantization: &'a QuantizationTable,
    /// The MCUs in which it is needed: the first, and their number.
    first: usize,
    count: usize,
    /// Offset in the planes of the first MCU's block, and the distance to the next.
    start: usize,
    stride: usize,
}

impl ScanDecoder<'_> {
    /// Decodes up to the last row that is needed, and writes the rows of the window to `out`.
    #[inline(always)]
    pub(super) fn run(
        self,
        kernels: impl DecodeKernels,
        stream: &mut CodedStream<'_>,
        bits: BitPosition,
        rows: &mut OutputRows<'_>,
        out: &mut [u8],
    ) -> Result<(), DecodeRefusal> {
        let Self {
            frame,
            plan,
            tables,
            waiting,
            planes,
        } = self;
        let (first, last) = plan.mcu_rows;
        let mut state = ScanState {
            bits,
            dc: [0; 4],
            left: frame.restart_interval,
        };
        for waiting in waiting.iter_mut() {
            waiting.clear();
        }
        // Only as many as the plan has blocks are used.
        let blocks: [McuBlock; MAX_BLOCKS] =
            std::array::from_fn(|i| plan.blocks().get(i).copied().unwrap_or_default());
        let codes = blocks.map(|block| BlockTables {
            component: block.component,
            dc: &tables.dc[block.dc & 1],
            ac: &tables.ac[block.ac & 1],
        });
        for row in 0..=last {
            let steps: [BlockStep<'_>; MAX_BLOCKS] =
                std::array::from_fn(|i| BlockStep::new(frame, plan, blocks[i], row));
            let needed = steps.iter().filter(|step| step.count > 0);
            let needed = needed.fold((usize::MAX, 0), |(first, end), step| {
                (first.min(step.first), end.max(step.first + step.count))
            });
            let mcus = McuRow {
                codes: &codes[..plan.blocks().len()],
                steps: &steps[..plan.blocks().len()],
                mcus: match row == last {
                    true => plan.last_mcus,
                    false => plan.mcus,
                },
                needed: needed.0..needed.1,
                interval: frame.restart_interval,
            };
            mcus.decode(kernels, stream, &mut state, waiting, planes)?;
            for (waiting, plane) in waiting.iter_mut().zip(plan.planes()) {
                let q = &frame.quantization[plane.quantization & 3];
                waiting.finish(kernels, plane, q, planes);
            }
            if row >= first {
                rows.write(kernels, row, planes, out);
            }
        }
        Ok(())
    }
}

impl<'a> BlockStep<'a> {
    fn new(frame: &'a FrameHeader, plan: &'a WindowGeometry, block: McuBlock, row: usize) -> Self {
        let plane = plan.plane(block.component);
        let mut step = Self {
            plane,
            quantization: &frame.quantization[plane.quantization & 3],
            first: block.first,
            count: 0,
            start: 0,
            stride: plane.h * plane.side,
        };
        let y = row * plane.v + block.y;
        if (plane.rows.0..=plane.rows.1).contains(&y) && block.count > 0 {
            let column = block.first * plane.h + block.x - plane.columns.0;
            step.count = block.count;
            step.start = plane.row(y * plane.side) + column * plane.side;
        }
        step
    }
}

/// A row of MCUs.
struct McuRow<'a> {
    /// For each block of an MCU.
    codes: &'a [BlockTables<'a>],
    steps: &'a [BlockStep<'a>],
    /// The MCUs of which some block is needed.
    needed: Range<usize>,
    /// The number of MCUs to decode.
    mcus: usize,
    /// MCUs between two restart markers; 0 = no markers.
    interval: u32,
}

impl McuRow<'_> {
    #[inline(always)]
    fn decode(
        &self,
        kernels: impl DecodeKernels,
        stream: &mut CodedStream<'_>,
        state: &mut ScanState,
        waiting: &mut [PendingBlocks; 4],
        planes: &mut [u8],
    ) -> Result<(), DecodeRefusal> {
        let mut bits = state.bits;
        for mcu in 0..self.mcus {
            if bits.at > stream.limit {
                bits = stream.more(kernels, bits)?;
            }
            if self.interval > 0 {
                if state.left == 0 {
                    bits = stream.restart(kernels, bits)?;
                    state.left = self.interval;
                    state.dc = [0; 4];
                }
                state.left -= 1;
            }
            if !self.needed.contains(&mcu) {
                if !kernels.decode_dc(&mut bits, stream.data, self.codes, &mut state.dc) {
                    return Err(DecodeRefusal::Damaged);
                }
                continue;
            }
            for (step, codes) in self.steps.iter().zip(self.codes) {
                let nth = mcu.wrapping_sub(step.first);
                let is_needed = nth < step.count;
                // Meaningless for a block that is not needed.
                let at = step.start.wrapping_add(nth.wrapping_mul(step.stride));
                if !is_needed || step.plane.side == 1 {
                    let codes = std::slice::from_ref(codes);
                    if !kernels.decode_dc(&mut bits, stream.data, codes, &mut state.dc) {
                        return Err(DecodeRefusal::Damaged);
                    }
                    if is_needed {
                        let sample = planes.get_mut(at).ok_or(DecodeRefusal::Damaged)?;
                        let dc = state.dc[codes[0].component & 3] as i16;
                        *sample = transform::to1(dc, step.quantization[0]);
                    }
                    continue;
                }
                let sum = &mut state.dc[codes.component & 3];
                let waiting = &mut waiting[codes.component & 3];
                let which = waiting.count & 1;
                let to = &mut waiting.pair.0;
                let (difference, end) =
                    kernels.decode(&mut bits, stream.data, *codes, &PLACES[which], to);
                if end >= BROKEN {
                    return Err(DecodeRefusal::Damaged);
                }
                *sum = sum.wrapping_add(difference);
                to[8 * which] = *sum as i16;
                waiting.end = waiting.end.max(end);
                if which == 0 {
                    waiting.first = at;
                    waiting.count = 1;
                } else {
                    waiting.flush(kernels, step.plane, step.quantization, Some(at), planes);
                }
            }
        }
        state.bits = bits;
        stream.check(bits)
    }
}
