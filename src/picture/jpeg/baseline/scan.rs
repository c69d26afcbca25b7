//! The loop over the MCUs of a scan: which blocks are decoded in full, where their samples go,
//! and when rows of pixels are ready.

use super::Refusal;
use super::blocks::{self, BROKEN, PLACES, Pair};
use super::frame::{Frame, Quantization};
use super::geometry::{Block, Plan, Plane};
use super::huffman::{Ac, Dc};
use super::kernels::{Kernels, Target};
use super::rows::Rows;
use super::stream::{Bits, Stream};
use super::transform;

/// The Huffman tables of a picture.
#[derive(Debug, Default, Clone)]
pub(super) struct Tables {
    pub(super) dc: [Dc; 2],
    pub(super) ac: [Ac; 2],
}

/// Blocks of a component that wait for their transform: two at a time.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pair: Pair,
    /// How many there are, 0 or 1, and where the first goes.
    count: usize,
    first: usize,
    /// The farthest end of their coefficients.
    end: u64,
}

impl Waiting {
    pub(super) const NONE: Self = Self {
        pair: Pair([0; 256]),
        count: 0,
        first: 0,
        end: 0,
    };

    fn clear(&mut self) {
        // Blocks that were left in the middle may have written anywhere.
        self.pair.0.fill(0);
        (self.count, self.end) = (0, 0);
    }

    /// Transforms what waits: `second` is where the second block goes.
    #[inline(always)]
    fn flush(
        &mut self,
        kernels: impl Kernels,
        plane: &Plane,
        q: &Quantization,
        second: Option<usize>,
        planes: &mut [u8],
    ) {
        let at = Target {
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
            transform::pair::<2>(pair, q, planes, at, transform::to2);
        }
        let used = match self.end {
            0..=1 => 16,
            2..=10 => 64,
            _ => 128,
        };
        pair.0[..used].fill(0);
        (self.count, self.end) = (0, 0);
    }
}

/// What a decode works with.
pub(super) struct Scan<'a> {
    pub(super) frame: &'a Frame,
    pub(super) plan: &'a Plan,
    pub(super) tables: &'a Tables,
    pub(super) waiting: &'a mut [Waiting; 4],
    pub(super) planes: &'a mut [u8],
}

/// Where decoding stands between two MCUs.
struct State {
    bits: Bits,
    /// The last DC coefficient of each component.
    dc: [i32; 4],
    /// MCUs up to the next restart marker.
    left: u32,
}

impl Scan<'_> {
    /// Decodes up to the last row that is needed, and writes the rows of the window to `out`.
    #[inline(always)]
    pub(super) fn run(
        mut self,
        kernels: impl Kernels,
        stream: &mut Stream<'_>,
        bits: Bits,
        rows: &mut Rows<'_>,
        out: &mut [u8],
    ) -> Result<(), Refusal> {
        let (first, last) = self.plan.mcu_rows;
        let mut state = State {
            bits,
            dc: [0; 4],
            left: self.frame.restart_interval,
        };
        for waiting in self.waiting.iter_mut() {
            waiting.clear();
        }
        for _ in 0..first {
            self.skip_row(kernels, stream, &mut state)?;
        }
        for row in first..=last {
            let mcus = if row == last {
                self.plan.last_mcus
            } else {
                self.plan.mcus
            };
            self.row(kernels, stream, &mut state, row, mcus)?;
            rows.write(kernels, row, self.planes, out);
        }
        Ok(())
    }

    /// Unstuffs more where that is needed, and steps over a restart marker.
    #[inline(always)]
    fn begin(
        &self,
        kernels: impl Kernels,
        stream: &mut Stream<'_>,
        state: &mut State,
    ) -> Result<(), Refusal> {
        if state.bits.at > stream.limit {
            state.bits = stream.more(kernels, state.bits)?;
        }
        if self.frame.restart_interval > 0 {
            if state.left == 0 {
                state.bits = stream.restart(kernels, state.bits)?;
                state.left = self.frame.restart_interval;
                state.dc = [0; 4];
            }
            state.left -= 1;
        }
        Ok(())
    }

    /// A row of MCUs of which nothing is needed.
    #[inline(always)]
    fn skip_row(
        &self,
        kernels: impl Kernels,
        stream: &mut Stream<'_>,
        state: &mut State,
    ) -> Result<(), Refusal> {
        for _ in 0..self.plan.mcus {
            self.begin(kernels, stream, state)?;
            for block in self.plan.blocks() {
                let (dc, ac) = self.tables(block);
                let difference = blocks::difference(&mut state.bits, stream.data, dc);
                let sum = &mut state.dc[block.component & 3];
                *sum = sum.wrapping_add(difference.ok_or(Refusal::Damaged)?);
                if blocks::skip(&mut state.bits, stream.data, ac) >= BROKEN {
                    return Err(Refusal::Damaged);
                }
            }
        }
        stream.check(state.bits)
    }

    #[inline(always)]
    fn tables(&self, block: &Block) -> (&Dc, &Ac) {
        (&self.tables.dc[block.dc & 1], &self.tables.ac[block.ac & 1])
    }

    /// A row of MCUs of which so many are decoded.
    #[inline(always)]
    fn row(
        &mut self,
        kernels: impl Kernels,
        stream: &mut Stream<'_>,
        state: &mut State,
        row: usize,
        mcus: usize,
    ) -> Result<(), Refusal> {
        // Of each block of an MCU: in how many it is needed, and where that of the first goes.
        let mut places = [(0, 0); super::frame::MAX_BLOCKS];
        for (place, block) in places.iter_mut().zip(self.plan.blocks()) {
            let plane = &self.plan.planes()[block.component];
            let y = row * plane.v + block.y;
            let x = block.first * plane.h + block.x;
            if (plane.rows.0..=plane.rows.1).contains(&y) && block.count > 0 {
                let column = (x - plane.columns.0) * plane.side;
                *place = (block.count, plane.row(y * plane.side) + column);
            }
        }
        for mcu in 0..mcus {
            self.begin(kernels, stream, state)?;
            for (block, &(count, start)) in self.plan.blocks().iter().zip(&places) {
                let (dc, ac) = (&self.tables.dc[block.dc & 1], &self.tables.ac[block.ac & 1]);
                let difference = blocks::difference(&mut state.bits, stream.data, dc);
                let sum = &mut state.dc[block.component & 3];
                *sum = sum.wrapping_add(difference.ok_or(Refusal::Damaged)?);
                let value = *sum as i16;
                let nth = mcu.wrapping_sub(block.first);
                if nth >= count {
                    if blocks::skip(&mut state.bits, stream.data, ac) >= BROKEN {
                        return Err(Refusal::Damaged);
                    }
                    continue;
                }
                let plane = &self.plan.planes()[block.component];
                let q = &self.frame.quantization[plane.quantization & 3];
                let at = start + nth * plane.h * plane.side;
                if plane.side == 1 {
                    if blocks::skip(&mut state.bits, stream.data, ac) >= BROKEN {
                        return Err(Refusal::Damaged);
                    }
                    if let Some(sample) = self.planes.get_mut(at) {
                        *sample = transform::to1(value, q[0]);
                    }
                    continue;
                }
                let waiting = &mut self.waiting[block.component & 3];
                let which = waiting.count & 1;
                let to = &mut waiting.pair.0;
                to[8 * which] = value;
                let places = &PLACES[which];
                let end = blocks::coefficients(&mut state.bits, stream.data, ac, places, to);
                if end >= BROKEN {
                    return Err(Refusal::Damaged);
                }
                waiting.end = waiting.end.max(end);
                if which == 0 {
                    waiting.first = at;
                    waiting.count = 1;
                } else {
                    waiting.flush(kernels, plane, q, Some(at), self.planes);
                }
            }
        }
        stream.check(state.bits)?;
        for (waiting, plane) in self.waiting.iter_mut().zip(self.plan.planes()) {
            if waiting.count > 0 {
                let q = &self.frame.quantization[plane.quantization & 3];
                waiting.flush(kernels, plane, q, None, self.planes);
            }
        }
        Ok(())
    }
}
