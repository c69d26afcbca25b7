//! The coefficients of a whole picture, which files of several scans need.

use super::super::frame::MAX_BLOCKS;
use super::super::job::Refusal;
use super::entropy::{Block, Mcu, Scan};
use super::markers::Markers;

/// The blocks of a component: those of the picture, and some more that fill the last MCUs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grid {
    /// Blocks of an MCU.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Blocks of the picture.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Where the first block stands, and how far it is to the next row.
    start: usize,
    pitch: usize,
}

impl Grid {
    pub(super) fn at(&self, column: usize, row: usize) -> usize {
        self.start + row * self.pitch + column
    }
}

/// The blocks of a picture.
#[derive(Debug, Default)]
pub(super) struct Coefficients {
    pub(super) grids: [Grid; 4],
    pub(super) blocks: Vec<Block>,
    /// MCUs of all components of the picture.
    mcus: usize,
    pub(super) mcu_rows: usize,
}

impl Coefficients {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
    }

    /// Makes room for a picture: all zeros.
    pub(super) fn set(&mut self, markers: &Markers) -> Result<(), Refusal> {
        let (h_max, v_max) = markers.max_factors();
        self.grids = [Grid::default(); 4];
        let mut all = 0;
        for (grid, component) in self.grids.iter_mut().zip(markers.components()) {
            let (h, v) = (component.h, component.v);
            let width = (markers.width * h).div_ceil(8 * h_max);
            let height = (markers.height * v).div_ceil(8 * v_max);
            let pitch = width.next_multiple_of(h);
            *grid = Grid {
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
        room.map_err(|_| Refusal::NoMemory)?;
        self.blocks.resize(all, [0; 64]);
        Ok(())
    }

    /// The MCUs of a scan: how many in a row, how many rows, and how many of those make up a row
    /// of MCUs of the picture.
    pub(super) fn mcus(&self, scan: &Scan) -> (usize, usize, usize) {
        match scan.components() {
            [only] => {
                let grid = self.grids[only.component & 3];
                (grid.width, grid.height, grid.v)
            }
            _ => (self.mcus, self.mcu_rows, 1),
        }
    }

    /// The blocks of the first MCU of a row, and how far it is to those of the next.
    pub(super) fn first_of_row(
        &self,
        scan: &Scan,
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

    pub(super) fn mcu<'a>(&'a mut self, at: &'a [usize; MAX_BLOCKS]) -> Mcu<'a> {
        Mcu {
            coefficients: &mut self.blocks,
            at,
        }
    }
}
