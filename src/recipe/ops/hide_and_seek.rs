//! Sets cells of a grid to zero (Singh and Lee 2017), as in PaddleClas.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, probability};
use crate::recipe::step::BoxFill;
use crate::recipe::tensor::MemoryLayout;

described! {
    example: "hide_and_seek: {grids: [0, 16, 32, 44, 56], p: 0.5}";

    /// Draws one of `grids` as the side of cells, and sets each cell to zero with probability `p`
    /// (Singh and Lee 2017): level 0, or the value 0 after `normalize`. As PaddleClas'
    /// `HideAndSeek`, which counts cells of the width along the height, so some cells of non-square
    /// images are never hidden. With `layout: nhwc` it treats height x width x 3 as 3 x height x
    /// width, as PaddleClas does there: it hides the first 3 columns or nothing.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct HideAndSeek {
        /// Sides of cells, all with the same probability; 0 hides nothing. 1 to 16 values of 8
        /// pixels or more.
        pub grids: Vec<u32> = vec![0, 16, 32, 44, 56],
        /// The probability of each cell, 0 to 1.
        pub p: f64 = 0.5,
        /// The layout of the array in PaddleClas at this place.
        #[serde(skip_serializing_if = "is_nchw")]
        pub layout: MemoryLayout = MemoryLayout::Nchw,
    }
}

const MOST_GRIDS: usize = 16;
/// What it treats as the width in a layout of height x width x channels.
const CHANNELS: u32 = 3;
/// Smaller cells would need tens of thousands of steps.
const LEAST_CELL: u32 = 8;
/// The maximum number of cells per image. Each hidden cell is a step of about 100 bytes.
const MOST_CELLS: u64 = 65_536;

impl Operation for HideAndSeek {
    const PARTS: &'static [OperationPart] = &[OperationPart::Erase];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_color("value", [0.0; 3])?;
        probability(self.p)?;
        if !(1..=MOST_GRIDS).contains(&self.grids.len()) {
            return Err(format!(
                "grids has {} values: use 1 to {MOST_GRIDS}",
                self.grids.len()
            ));
        }
        let fits = |cell: u32| cell == 0 || (LEAST_CELL..=MAX_SIDE).contains(&cell);
        match self.grids.iter().find(|cell| !fits(**cell)) {
            Some(cell) => Err(format!(
                "grids has {cell}: use 0, or {LEAST_CELL} to {MAX_SIDE} pixels"
            )),
            None => Ok(()),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        let last = self.grids.len().saturating_sub(1) as u32;
        let at = on.random.next_up_to(last) as usize;
        let cell = self.grids.get(at).copied().unwrap_or(0);
        if cell == 0 {
            return Ok((height, width));
        }
        let erase = |rect| Step::Erase {
            rect,
            with: BoxFill::Value([0.0; 3]),
            grey: on.known.is_grey(),
        };
        if self.layout == MemoryLayout::Nhwc {
            // `img[:, 0:3, 0:cell]`: columns in all three channels. Other cells lie outside.
            if on.random.next_f64() < self.p || self.p >= 1.0 {
                on.steps.push(erase(PixelRect {
                    width: width.min(CHANNELS),
                    ..PixelRect::whole((height, width))
                }));
            }
            return Ok((height, width));
        }
        let cells = u64::from(height.div_ceil(cell)) * u64::from(width.div_ceil(cell));
        if cells > MOST_CELLS {
            return Err(FaultKind::TooLarge.fault(format!(
                "hide_and_seek cuts {width} x {height} into {cells} cells of {cell}, and \
                     takes at most {MOST_CELLS}: resize before it, or remove small grids"
            )));
        }
        // `img[:, x:x_end, y:y_end]`: x counts along the height.
        for top in (0..width).step_by(cell as usize) {
            for left in (0..height).step_by(cell as usize) {
                let hides = on.random.next_f64() < self.p || self.p >= 1.0;
                let bottom = (top + cell).min(width).min(height);
                let right = (left + cell).min(height).min(width);
                if !hides || bottom <= top || right <= left {
                    continue;
                }
                on.steps.push(erase(PixelRect {
                    left,
                    top,
                    width: right - left,
                    height: bottom - top,
                }));
            }
        }
        Ok((height, width))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.push_erase(known, size)
    }
}

fn is_nchw(layout: &MemoryLayout) -> bool {
    *layout == MemoryLayout::Nchw
}
