//! Estimates coefficients that a progressive file does not have yet, from the DC coefficients of
//! the blocks around (`decompress_smooth_data` of libjpeg-turbo, after T.81, K.8).

use super::super::frame::QuantizationTable;
use super::coefficients::{BlockGrid, PictureCoefficients};
use super::entropy::CoefficientBlock;
use super::progression::{SMOOTHED, ScanProgression};

/// Places of the first ten coefficients in natural order.
const PLACES: [usize; SMOOTHED + 1] = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24];

/// Weights of the DC coefficients in five rows of five blocks.
type Weights = [[i8; 5]; 5];

/// Weights of each estimate when no AC coefficient is known.
const FROM_DC: [Weights; SMOOTHED + 1] = [
    [
        [-2, -6, -8, -6, -2],
        [-6, 6, 42, 6, -6],
        [-8, 42, 0, 42, -8],
        [-6, 6, 42, 6, -6],
        [-2, -6, -8, -6, -2],
    ],
    [
        [-1, -1, 0, 1, 1],
        [-3, 13, 0, -13, 3],
        [-3, 38, 0, -38, 3],
        [-3, 13, 0, -13, 3],
        [-1, -1, 0, 1, 1],
    ],
    [
        [-1, -3, -3, -3, -1],
        [-1, 13, 38, 13, -1],
        [0, 0, 0, 0, 0],
        [1, -13, -38, -13, 1],
        [1, 3, 3, 3, 1],
    ],
    [
        [0, 0, 1, 0, 0],
        [0, 2, 7, 2, 0],
        [0, -5, -14, -5, 0],
        [0, 2, 7, 2, 0],
        [0, 0, 1, 0, 0],
    ],
    [
        [-1, 0, 0, 0, 1],
        [0, 9, 0, -9, 0],
        [0, 0, 0, 0, 0],
        [0, -9, 0, 9, 0],
        [1, 0, 0, 0, -1],
    ],
    [
        [0, 0, 0, 0, 0],
        [0, 2, -5, 2, 0],
        [1, 7, -14, 7, 1],
        [0, 2, -5, 2, 0],
        [0, 0, 0, 0, 0],
    ],
    [
        [0, 0, 0, 0, 0],
        [0, 1, 0, -1, 0],
        [0, 2, 0, -2, 0],
        [0, 1, 0, -1, 0],
        [0, 0, 0, 0, 0],
    ],
    [
        [0, 0, 0, 0, 0],
        [0, 1, -3, 1, 0],
        [0, 0, 0, 0, 0],
        [0, -1, 3, -1, 0],
        [0, 0, 0, 0, 0],
    ],
    [
        [0, 0, 0, 0, 0],
        [0, 1, 0, -1, 0],
        [0, -3, 0, 3, 0],
        [0, 1, 0, -1, 0],
        [0, 0, 0, 0, 0],
    ],
    [
        [0, 0, 0, 0, 0],
        [0, 1, 2, 1, 0],
        [0, 0, 0, 0, 0],
        [0, -1, -2, -1, 0],
        [0, 0, 0, 0, 0],
    ],
];

/// Weight of a block's own DC coefficient in its DC estimate. It does not fit an `i8`.
const OWN: i32 = 152;

/// Weights of the first five AC estimates when some AC coefficients are known.
const FROM_ALL: [Weights; 6] = [
    [[0; 5]; 5],
    [[0; 5], [0; 5], [-7, 50, 0, -50, 7], [0; 5], [0; 5]],
    [
        [0, 0, -7, 0, 0],
        [0, 0, 50, 0, 0],
        [0; 5],
        [0, 0, -50, 0, 0],
        [0, 0, 7, 0, 0],
    ],
    [
        [0, 0, -1, 0, 0],
        [0, 0, 13, 0, 0],
        [0, 0, -24, 0, 0],
        [0, 0, 13, 0, 0],
        [0, 0, -1, 0, 0],
    ],
    [
        [0, -1, 0, 1, 0],
        [-1, 10, 0, -10, 1],
        [0; 5],
        [1, -10, 0, 10, -1],
        [0, 1, 0, -1, 0],
    ],
    [[0; 5], [0; 5], [-1, 13, -24, 13, -1], [0; 5], [0; 5]],
];

/// How the blocks of a picture are smoothed.
#[derive(Debug)]
pub(super) struct BlockSmoothing {
    /// Missing bits of the first coefficients of each component.
    now: [[i8; SMOOTHED + 1]; 4],
    /// The same, below the last row of MCUs that the last scan had.
    before: [[i8; SMOOTHED + 1]; 4],
    last_good_row: usize,
    mcu_rows: usize,
}

impl BlockSmoothing {
    /// `None` if nothing is missing, or too little is known (`smoothing_ok`). `last_good_row`
    /// counts rows of MCUs.
    pub(super) fn new(
        progression: &ScanProgression,
        quantization: &[Option<QuantizationTable>],
        scans: u32,
        last_good_row: usize,
        mcu_rows: usize,
    ) -> Option<Self> {
        let first = |missing: &[i8; 64]| std::array::from_fn(|i| missing[i]);
        let mut smoothing = Self {
            now: progression.now.each_ref().map(first),
            before: progression.before.each_ref().map(first),
            last_good_row,
            mcu_rows,
        };
        if scans <= 1 {
            smoothing.before = [[-1; SMOOTHED + 1]; 4];
        }
        let mut is_useful = false;
        for (table, now) in quantization.iter().zip(&smoothing.now) {
            let table = table.as_ref()?;
            if PLACES.iter().any(|&place| table[place] == 0) || now[0] < 0 {
                return None;
            }
            is_useful |= now[1..].iter().any(|&missing| missing != 0);
        }
        is_useful.then_some(smoothing)
    }

    /// A block of a component, with estimates of its missing coefficients.
    pub(super) fn block(
        &self,
        from: &PictureCoefficients,
        component: usize,
        quantization: &QuantizationTable,
        (column, row): (usize, usize),
    ) -> CoefficientBlock {
        let grid = from.grids[component & 3];
        let mcu_row = row / grid.v;
        let missing = match mcu_row > self.last_good_row {
            true => &self.before[component & 3],
            false => &self.now[component & 3],
        };
        let dc = self.around(from, &grid, (column, row));
        let mut block = from.blocks[grid.at(column, row)];
        let has_no_ac = missing[1..].iter().all(|&missing| missing == -1);
        let weights: &[Weights] = if has_no_ac { &FROM_DC } else { &FROM_ALL };
        // libjpeg's `quantval` is an unsigned 16-bit number.
        let factor = |place: usize| i64::from(quantization[place] as u16);
        let own = factor(0);
        for (number, weights) in weights.iter().enumerate().skip(1) {
            let (place, missing) = (PLACES[number], missing[number]);
            if missing == 0 || block[place] != 0 {
                continue;
            }
            let sum = own * i64::from(weigh(&dc, weights));
            let mut estimate = divide(sum.abs(), factor(place));
            if missing > 0 {
                estimate = estimate.min((1 << missing) - 1);
            }
            block[place] = signed(estimate, sum);
        }
        if has_no_ac {
            let sum = own * i64::from(weigh(&dc, &FROM_DC[0]) + OWN * i32::from(dc[2][2]));
            block[0] = signed(divide(sum.abs(), own), sum);
        }
        block
    }

    /// The DC coefficients of a block and of the blocks around it. At the picture's edges the last
    /// ones are repeated.
    fn around(
        &self,
        from: &PictureCoefficients,
        grid: &BlockGrid,
        (column, row): (usize, usize),
    ) -> [[i16; 5]; 5] {
        let mcu_row = row / grid.v;
        // Rows of blocks in this row of MCUs: the last one may have fewer. libjpeg-turbo counts as
        // if all rows of MCUs had as many.
        let rows = match mcu_row + 1 < self.mcu_rows {
            true => grid.v,
            false => match grid.height % grid.v {
                0 => grid.v,
                rest => rest,
            },
        };
        let number = mcu_row * rows + row % grid.v;
        let last = rows * self.mcu_rows - 1;
        let above = row - usize::from(number > 0);
        let below = row + usize::from(number < last);
        let rows = [
            above - usize::from(number > 1),
            above,
            row,
            below,
            below + usize::from(number + 1 < last),
        ];
        let columns = [
            column.saturating_sub(2),
            column.saturating_sub(1),
            column,
            (column + 1).min(grid.width - 1),
            (column + 2).min(grid.width - 1),
        ];
        rows.map(|row| columns.map(|column| from.blocks[grid.at(column, row)][0]))
    }
}

fn weigh(dc: &[[i16; 5]; 5], weights: &Weights) -> i32 {
    let pairs = dc.as_flattened().iter().zip(weights.as_flattened());
    pairs
        .map(|(&dc, &weight)| i32::from(dc) * i32::from(weight))
        .sum()
}

/// Divides a sum, whose weights add up to 256, by a factor. Rounds, and wraps to 32 bits.
fn divide(sum: i64, factor: i64) -> i32 {
    (((factor << 7) + sum) / (factor << 8)) as i32
}

fn signed(estimate: i32, sum: i64) -> i16 {
    match sum < 0 {
        true => estimate.wrapping_neg() as i16,
        false => estimate as i16,
    }
}
