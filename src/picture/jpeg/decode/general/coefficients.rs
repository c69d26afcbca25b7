//! The coefficients of a whole picture, for files of several scans.

use super::super::frame::MAX_BLOCKS;
use super::super::request::DecodeRefusal;
use super::entropy::{CoefficientBlock, McuBlocks, ScanHeader};
use super::markers::MarkerState;

/// A component's blocks: those of the picture, and padding that completes the last MCUs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlockGrid {
    /// Blocks per MCU, across and down.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Blocks of the picture, across and down.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Index of the first block, and blocks from row to row.
    start: usize,
    pitch: usize,
}

impl BlockGrid {
    pub(super) fn at(&self, column: usize, row: usize) -> usize {
        self.start + row * self.pitch + column
    }
}

#[derive(Debug, Default)]
pub(super) struct PictureCoefficients {
    pub(super) grids: [BlockGrid; 4],
    pub(super) blocks: Vec<CoefficientBlock>,
    /// MCUs of the picture: across, in scans of several components; rows.
    mcus: usize,
    pub(super) mcu_rows: usize,
}

impl PictureCoefficients {
    /// Bytes of allocated memory.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<CoefficientBlock>()
    }

    /// Allocates the blocks of a picture, all zero.
    pub(super) fn set(&mut self, markers: &MarkerState) -> Result<(), DecodeRefusal> {
        let (h_max, v_max) = markers.max_factors();
        self.grids = [BlockGrid::default(); 4];
        let mut all = 0;
        for (grid, component) in self.grids.iter_mut().zip(markers.components()) {
            let (h, v) = (component.h, component.v);
            let width = (markers.width * h).div_ceil(8 * h_max);
            let height = (markers.height * v).div_ceil(8 * v_max);
            let pitch = width.next_multiple_of(h);
            *grid = BlockGrid {
                h,
                v,
                width,
                height,
                start: all,
                pitch,
            };
            all += pitch * height.next_multiple_of(v);
        }
        self.mcus = markers.width.div_ceil(8 * h_max);
        self.mcu_rows = markers.height.div_ceil(8 * v_max);
        self.blocks.clear();
        let room = self.blocks.try_reserve_exact(all);
        room.map_err(|_| DecodeRefusal::NoMemory)?;
        self.blocks.resize(all, [0; 64]);
        Ok(())
    }

    /// The MCUs of a scan: MCUs per row, rows, and how many of these rows make up a row of MCUs of
    /// the picture.
    pub(super) fn mcus(&self, scan: &ScanHeader) -> (usize, usize, usize) {
        match scan.components() {
            [only] => {
                let grid = self.grids[only.component & 3];
                (grid.width, grid.height, grid.v)
            }
            _ => (self.mcus, self.mcu_rows, 1),
        }
    }

    /// Indices of the blocks in a row's first MCU, and the step of each to the next MCU.
    pub(super) fn first_of_row(
        &self,
        scan: &ScanHeader,
        row: usize,
    ) -> ([usize; MAX_BLOCKS], [usize; MAX_BLOCKS]) {
        let (mut at, mut steps) = ([0; MAX_BLOCKS], [0; MAX_BLOCKS]);
        if let [only] = scan.components() {
            at[0] = self.grids[only.component & 3].at(0, row);
            steps[0] = 1;
            return (at, steps);
        }
        let mut number = 0;
        for of in scan.components() {
            let grid = self.grids[of.component & 3];
            for y in 0..grid.v {
                for x in 0..grid.h {
                    if let (Some(at), Some(step)) = (at.get_mut(number), steps.get_mut(number)) {
                        (*at, *step) = (grid.at(x, row * grid.v + y), grid.h);
                    }
                    number += 1;
                }
            }
        }
        (at, steps)
    }

    pub(super) fn mcu<'a>(&'a mut self, at: &'a [usize; MAX_BLOCKS]) -> McuBlocks<'a> {
        McuBlocks {
            coefficients: &mut self.blocks,
            at,
        }
    }
}
