//! The blocks and rows of each component that a window needs, and their places in the buffer of
//! planes.
//!
//! Pure arithmetic, after libjpeg's `jpeg_calc_output_dimensions` and `jinit_upsampler`. A
//! component is decoded to samples. They are enlarged to the size of the picture by repeating them,
//! or by blending them with their neighbours ("fancy upsampling").

use super::frame::{FrameHeader, MAX_BLOCKS};
use super::request::{DecodeRefusal, JpegWindow};

/// How a component's samples are enlarged to the number of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpsampleFilter {
    /// Repeats each sample, across and down.
    Repeat,
    /// 2 x 1, blended (`h2v1_fancy_upsample`).
    Across,
    /// 1 x 2, blended (`h1v2_fancy_upsample`).
    Down,
    /// 2 x 2, blended (`h2v2_fancy_upsample`).
    Both,
}

/// The samples of a component. The buffer holds one row of MCUs, or two in turns if any component
/// is blended downwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct SamplePlane {
    /// Side of a block after the inverse transform: 1, 2, 4 or 8 samples.
    pub(super) side: usize,
    /// Blocks of the component per MCU, across and down.
    pub(super) h: usize,
    pub(super) v: usize,
    pub(super) quantization: usize,
    /// Size of the component in samples.
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) filter: UpsampleFilter,
    /// Pixels per sample, across and down.
    pub(super) across: usize,
    pub(super) down: usize,
    /// The needed blocks: first and last column, first and last row.
    pub(super) columns: (usize, usize),
    pub(super) rows: (usize, usize),
    /// Offset in the buffer of the first sample in the first needed column.
    pub(super) start: usize,
    pub(super) pitch: usize,
    /// Rows of samples in the buffer.
    pub(super) ring: usize,
}

impl SamplePlane {
    /// Offset of a row of samples in the buffer, at its first needed column.
    pub(super) fn row(&self, row: usize) -> usize {
        self.start + row % self.ring * self.pitch
    }

    /// The column of the first decoded sample.
    pub(super) fn left(&self) -> usize {
        self.columns.0 * self.side
    }

    /// Number of decoded samples in a row.
    pub(super) fn decoded(&self) -> usize {
        (self.columns.1 - self.columns.0 + 1) * self.side
    }

    /// Rows of samples in a row of MCUs.
    pub(super) fn rows_of_mcu(&self) -> usize {
        self.v * self.side
    }
}

/// A block of an MCU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct McuBlock {
    pub(super) component: usize,
    pub(super) dc: usize,
    pub(super) ac: usize,
    /// Its position among the component's blocks in the MCU.
    pub(super) x: usize,
    pub(super) y: usize,
    /// The MCUs of a row in which it is needed: the first, and their number.
    pub(super) first: usize,
    pub(super) count: usize,
}

/// The geometry of one window's decode.
#[derive(Debug)]
pub(super) struct WindowGeometry {
    planes: [SamplePlane; 4],
    count: usize,
    blocks: [McuBlock; MAX_BLOCKS],
    blocks_of_mcu: usize,
    /// Number of MCUs in a row.
    pub(super) mcus: usize,
    /// Number of MCUs in the last row, up to the last one that is needed.
    pub(super) last_mcus: usize,
    /// The first and the last row of MCUs that are needed.
    pub(super) mcu_rows: (usize, usize),
    /// Bytes of the planes.
    pub(super) bytes: usize,
    /// Pixels of a row of MCUs, downwards.
    pub(super) mcu_height: usize,
}

/// Extra samples before each plane and after each row, because rows are read 16 and 32 at a time.
const MARGIN: usize = 64;

const NO_PLANE: SamplePlane = SamplePlane {
    side: 1,
    h: 1,
    v: 1,
    quantization: 0,
    width: 0,
    height: 0,
    filter: UpsampleFilter::Repeat,
    across: 1,
    down: 1,
    columns: (0, 0),
    rows: (0, 0),
    start: 0,
    pitch: 0,
    ring: 1,
};

impl WindowGeometry {
    pub(super) fn planes(&self) -> &[SamplePlane] {
        &self.planes[..self.count]
    }

    pub(super) fn plane(&self, component: usize) -> &SamplePlane {
        &self.planes[component & 3]
    }

    /// The blocks of an MCU, in order.
    pub(super) fn blocks(&self) -> &[McuBlock] {
        &self.blocks[..self.blocks_of_mcu]
    }

    /// Computes the geometry. `block` is the side of a luma block: 8 for the full size, and 4, 2, 1
    /// for a half, a quarter and an eighth.
    pub(super) fn new(
        frame: &FrameHeader,
        block: usize,
        window: JpegWindow,
    ) -> Result<Self, DecodeRefusal> {
        let components = frame.components();
        let h_max = components.iter().map(|c| c.h).max().unwrap_or(1);
        let v_max = components.iter().map(|c| c.v).max().unwrap_or(1);
        let mut plan = Self {
            planes: [NO_PLANE; 4],
            count: components.len(),
            blocks: [McuBlock::default(); MAX_BLOCKS],
            blocks_of_mcu: 0,
            mcus: frame.width.div_ceil(8 * h_max),
            last_mcus: 0,
            mcu_rows: (usize::MAX, 0),
            bytes: 0,
            mcu_height: v_max * block,
        };
        for (number, component) in components.iter().enumerate() {
            // Where possible, chroma is enlarged by its inverse transform.
            let mut side = block;
            while side < 8
                && (h_max * block).is_multiple_of(component.h * side * 2)
                && (v_max * block).is_multiple_of(component.v * side * 2)
            {
                side *= 2;
            }
            let (h, v) = (component.h * side / block, component.v * side / block);
            if !h_max.is_multiple_of(h) || !v_max.is_multiple_of(v) {
                return Err(DecodeRefusal::Unsupported);
            }
            let samples =
                |size: usize, factor: usize, max: usize| (size * factor * side).div_ceil(max * 8);
            let plane = SamplePlane {
                side,
                h: component.h,
                v: component.v,
                quantization: component.quantization,
                width: samples(frame.width, component.h, h_max),
                height: samples(frame.height, component.v, v_max),
                across: h_max / h,
                down: v_max / v,
                ..NO_PLANE
            };
            plan.planes[number] = plan.needed(plane, block, window);
            for y in 0..component.v {
                for x in 0..component.h {
                    let (left, right) = plan.planes[number].columns;
                    let first = left.saturating_sub(x).div_ceil(component.h);
                    let end = (right + component.h - x) / component.h;
                    // There may be more blocks if no scan holds all components.
                    let Some(block) = plan.blocks.get_mut(plan.blocks_of_mcu) else {
                        continue;
                    };
                    *block = McuBlock {
                        component: number,
                        dc: component.dc,
                        ac: component.ac,
                        x,
                        y,
                        first,
                        count: end.saturating_sub(first),
                    };
                    plan.blocks_of_mcu += 1;
                }
            }
        }
        plan.place();
        Ok(plan)
    }

    /// Whether a row of pixels needs the row of samples below its own.
    pub(super) fn blends_down(&self) -> bool {
        let mut planes = self.planes().iter();
        planes.any(|plane| matches!(plane.filter, UpsampleFilter::Down | UpsampleFilter::Both))
    }

    /// Assigns each plane its part of the buffer.
    fn place(&mut self) {
        let turns = if self.blends_down() { 2 } else { 1 };
        for plane in &mut self.planes[..self.count] {
            plane.ring = turns * plane.rows_of_mcu();
            plane.pitch = (plane.decoded() + MARGIN).next_multiple_of(32);
            plane.start = self.bytes + MARGIN;
            self.bytes = plane.start + plane.ring * plane.pitch + MARGIN;
        }
    }

    /// Finds a component's filter and its needed blocks.
    fn needed(&mut self, mut plane: SamplePlane, block: usize, window: JpegWindow) -> SamplePlane {
        plane.filter = match (plane.across, plane.down) {
            // With one sample per block there is no blending.
            _ if block == 1 => UpsampleFilter::Repeat,
            (1, 2) => UpsampleFilter::Down,
            (2, 1) if plane.width > 2 => UpsampleFilter::Across,
            (2, 2) if plane.width > 2 => UpsampleFilter::Both,
            _ => UpsampleFilter::Repeat,
        };
        let needed = |blends: bool, start: usize, len: usize, factor: usize, size: usize| {
            let last = start + len - 1;
            let (first, last) = match blends {
                true => (start.saturating_sub(1) / 2, last.div_ceil(2).min(size - 1)),
                false => (start / factor, last / factor),
            };
            (first / plane.side, last / plane.side)
        };
        let blends_across = matches!(plane.filter, UpsampleFilter::Across | UpsampleFilter::Both);
        let blends_down = matches!(plane.filter, UpsampleFilter::Down | UpsampleFilter::Both);
        plane.columns = needed(blends_across, window.x, window.w, plane.across, plane.width);
        plane.rows = needed(blends_down, window.y, window.h, plane.down, plane.height);
        self.last_mcus = self.last_mcus.max(plane.columns.1 / plane.h + 1);
        let (first, last) = self.mcu_rows;
        self.mcu_rows = (
            first.min(plane.rows.0 / plane.v),
            last.max(plane.rows.1 / plane.v),
        );
        plane
    }
}
