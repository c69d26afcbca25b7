//! Converts coefficients to rows of pixels. The blocks that a window needs go through the shared
//! inverse transforms, one row of MCUs at a time.

use super::super::frame::{MAX_BLOCKS, QuantizationTable};
use super::super::geometry::WindowGeometry;
use super::super::kernels::DecodeKernels;
use super::super::rows::OutputRows;
use super::super::scan::PendingBlocks;
use super::super::transform;
use super::coefficients::PictureCoefficients;
use super::entropy::{CoefficientBlock, EntropyDecoder, McuBlocks, ScanHeader};
use super::fatal::FatalFault;
use super::smoothing::BlockSmoothing;
use super::source::ByteSource;

/// The destination of a picture's pixels, and its parameters.
pub(super) struct PaintTarget<'a> {
    pub(super) plan: &'a WindowGeometry,
    /// Of each component.
    pub(super) quantization: &'a [QuantizationTable; 4],
    pub(super) waiting: &'a mut [PendingBlocks; 4],
    pub(super) planes: &'a mut [u8],
    pub(super) rows: OutputRows<'a>,
    pub(super) out: &'a mut [u8],
}

impl PaintTarget<'_> {
    /// Transforms a block of a component if the window needs it.
    #[inline(always)]
    fn block_if_needed(
        &mut self,
        kernels: impl DecodeKernels,
        component: usize,
        (column, row): (usize, usize),
        block: &CoefficientBlock,
    ) {
        let plane = self.plan.plane(component);
        let (columns, rows) = (plane.columns, plane.rows);
        if !(columns.0..=columns.1).contains(&column) || !(rows.0..=rows.1).contains(&row) {
            return;
        }
        self.block(kernels, component, (column, row), block);
    }

    /// Transforms a block of a component. The window needs it.
    #[inline(always)]
    fn block(
        &mut self,
        kernels: impl DecodeKernels,
        component: usize,
        (column, row): (usize, usize),
        block: &CoefficientBlock,
    ) {
        let plane = self.plan.plane(component);
        let columns = plane.columns;
        let at = plane.row(row * plane.side) + (column - columns.0) * plane.side;
        let quantization = &self.quantization[component & 3];
        if plane.side == 1 {
            if let Some(sample) = self.planes.get_mut(at) {
                *sample = transform::to1(block[0], quantization[0]);
            }
            return;
        }
        let waiting = &mut self.waiting[component & 3];
        waiting.push(kernels, plane, quantization, block, at, self.planes);
    }

    /// Transforms the pending blocks, and writes the rows of pixels that are complete.
    #[inline(always)]
    fn end_row(&mut self, kernels: impl DecodeKernels, mcu_row: usize) {
        self.flush(kernels);
        if mcu_row >= self.plan.mcu_rows.0 {
            self.rows.write(kernels, mcu_row, self.planes, self.out);
        }
    }

    #[inline(always)]
    fn flush(&mut self, kernels: impl DecodeKernels) {
        let planes = self.plan.planes().iter().zip(self.quantization);
        for (waiting, (plane, quantization)) in self.waiting.iter_mut().zip(planes) {
            waiting.finish(kernels, plane, quantization, self.planes);
        }
    }

    /// Converts a picture whose coefficients are complete.
    pub(super) fn paint(
        mut self,
        kernels: impl DecodeKernels,
        from: &PictureCoefficients,
        smoothing: Option<&BlockSmoothing>,
    ) {
        let (first, last) = self.plan.mcu_rows;
        for mcu_row in first..=last {
            for (component, plane) in self.plan.planes().iter().enumerate() {
                let grid = from.grids[component];
                let rows = mcu_row * plane.v..(mcu_row + 1) * plane.v;
                for row in rows.start.max(plane.rows.0)..rows.end.min(plane.rows.1 + 1) {
                    for column in plane.columns.0..=plane.columns.1 {
                        let place = (column, row);
                        let smoothed;
                        let block = match smoothing {
                            None => &from.blocks[grid.at(column, row)],
                            Some(smoothing) => {
                                let table = &self.quantization[component];
                                smoothed = smoothing.block(from, component, table, place);
                                &smoothed
                            }
                        };
                        self.block(kernels, component, place, block);
                    }
                    self.flush(kernels);
                }
            }
            self.end_row(kernels, mcu_row);
        }
    }

    /// Decodes the only scan of a picture and converts it, up to the last row that is needed.
    pub(super) fn stream(
        mut self,
        kernels: impl DecodeKernels,
        entropy: &mut impl EntropyDecoder,
        source: &mut ByteSource<'_>,
        scan: &ScanHeader,
    ) -> Result<(), FatalFault> {
        let mut blocks = [[0; 64]; MAX_BLOCKS];
        let at = std::array::from_fn(|number| number);
        for mcu_row in 0..=self.plan.mcu_rows.1 {
            for mcu in 0..self.plan.mcus {
                blocks[..scan.blocks].fill([0; 64]);
                let mut decoded = McuBlocks {
                    coefficients: &mut blocks,
                    at: &at,
                };
                entropy.decode(source, scan, &mut decoded)?;
                // A scan of all components has them in the frame's order: `MarkerState::scan`
                // rejects others.
                for (of, block) in self.plan.blocks().iter().zip(&blocks) {
                    let plane = self.plan.plane(of.component);
                    let place = (mcu * plane.h + of.x, mcu_row * plane.v + of.y);
                    self.block_if_needed(kernels, of.component, place, block);
                }
            }
            self.end_row(kernels, mcu_row);
        }
        Ok(())
    }
}
