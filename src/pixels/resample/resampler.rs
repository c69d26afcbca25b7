//! The order of the passes, and their memory.

use super::axes::{PIXEL, PixelSource, ResizeAxes, grow, ring_stride, slack};
use super::floats::FloatResampler;
use super::lane_weights::LaneWeights;
use super::nearest::NearestPixels;
use super::passes::{across, down};
use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::recipe::fixed_weights::FixedTable;
use crate::recipe::weights::{AxisGeometry, ResizeFilter, WeightTable, clear_with_capacity};
use crate::sys::cpu::CpuLevel;

/// The passes of a resize, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassOrder {
    /// No pass: every output pixel is the input pixel at the same position.
    Copy,
    Across,
    Down,
    AcrossThenDown,
    DownThenAcross,
    /// Every output pixel is an input pixel, at a position of its own.
    Pick,
}

impl PassOrder {
    pub(super) fn copies_down(self) -> bool {
        matches!(self, Self::Copy | Self::Across)
    }
}

/// Weights of one axis, in both forms.
#[derive(Debug, Default)]
pub(super) struct AxisTables {
    exact: WeightTable,
    pub(super) fixed: FixedTable,
}

impl AxisTables {
    fn prepare(&mut self, axis: AxisGeometry) -> bool {
        let new = self.exact.prepare(axis);
        if new {
            self.fixed.fill(&mut self.exact);
        }
        new
    }

    fn bytes(&self) -> usize {
        self.exact.bytes() + self.fixed.bytes()
    }

    fn starts(&self) -> &[u32] {
        self.fixed.starts()
    }
}

/// Resizes, and owns the memory for it: a warm call allocates nothing.
#[derive(Debug)]
pub struct ImageResampler {
    pub(super) cpu: CpuLevel,
    pub(super) across: AxisTables,
    pub(super) lanes: LaneWeights,
    pub(super) down: AxisTables,
    /// Rows between the passes, plus room for loads after the last.
    pub(super) rows: Vec<u8>,
    /// A copy of a source row at the very end of its slice, with room after it.
    pub(super) last_row: Vec<u8>,
    /// Offsets of the input rows of one output row.
    pub(super) offsets: Vec<usize>,
    /// Memory for float pixels, which use none of the other buffers.
    floats: FloatResampler,
}

impl ImageResampler {
    pub fn new(cpu: CpuLevel) -> Self {
        assert!(cpu.is_supported(), "this CPU has no {}", cpu.name());
        Self {
            cpu,
            across: AxisTables::default(),
            lanes: LaneWeights::default(),
            down: AxisTables::default(),
            rows: Vec::new(),
            last_row: Vec::new(),
            offsets: Vec::new(),
            floats: FloatResampler::default(),
        }
    }

    /// The instruction set, which this CPU has.
    pub(crate) fn cpu(&self) -> CpuLevel {
        self.cpu
    }

    /// Bytes of rows and tables.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.rows.capacity()
            + self.last_row.capacity()
            + self.across.bytes()
            + self.lanes.bytes()
            + self.down.bytes()
            + self.offsets.capacity() * size_of::<usize>()
            + self.floats.scratch_bytes()
    }

    /// Frees rows and tables.
    pub(crate) fn free_buffers(&mut self) {
        *self = Self::new(self.cpu);
    }

    /// Fills `dst`, RGB without gaps, from the available pixels. The filter may read pixels outside
    /// the interval, up to the edges of the image.
    pub fn resample(&mut self, src: PixelSource, axes: ResizeAxes, dst: &mut [u8]) {
        src.check();
        let dst_row = axes.size().0 * PIXEL;
        let passes = self.prepare((src.width, src.height), axes, dst);
        let (x0, y0) = (axes.x.copies_from() * PIXEL, axes.y.copies_from());
        match passes {
            PassOrder::Copy => {
                for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
                    let at = (y0 + o) * src.stride + x0;
                    dst.copy_from_slice(&src.pixels[at..at + dst_row]);
                }
            }
            PassOrder::Across => {
                for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
                    self.across_source(&src, y0 + o, dst);
                }
            }
            PassOrder::Down => {
                for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
                    self.set_row_offsets(o, |y| y * src.stride + x0);
                    down(
                        self.cpu,
                        &self.down.fixed,
                        o,
                        src.pixels,
                        &self.offsets,
                        dst,
                    );
                }
            }
            PassOrder::DownThenAcross => self.down_then_across(&src, dst, dst_row),
            PassOrder::AcrossThenDown => self.across_then_down(&src, dst, dst_row),
            PassOrder::Pick => {
                let (x, y) = self.picks(axes);
                let row = |y| src.pixels[y * src.stride..].as_chunks::<PIXEL>().0;
                x.rows_by(y, row, dst.as_chunks_mut::<PIXEL>().0);
            }
        }
    }

    /// Like [`Self::resample`], for float pixels. See `FloatResampler::resample`.
    pub fn resample_floats(
        &mut self,
        src: PixelView<'_, f32>,
        axes: ResizeAxes,
        dst: &mut [RgbPixel<f32>],
    ) {
        self.floats.resample(src, axes, dst);
    }

    /// The input pixels of the output, for [`PassOrder::Pick`].
    pub(super) fn picks(
        &self,
        ResizeAxes { x, y }: ResizeAxes,
    ) -> (NearestPixels<'_>, NearestPixels<'_>) {
        let picks = |axis: AxisGeometry, tables| match axis.is_identity() {
            true => NearestPixels::From(axis.copies_from(), axis.out_size as usize),
            false => NearestPixels::Each(AxisTables::starts(tables)),
        };
        (picks(x, &self.across), picks(y, &self.down))
    }

    /// Builds the tables for this resize of `size` (width, height) available pixels.
    pub(super) fn prepare(
        &mut self,
        size: (usize, usize),
        axes: ResizeAxes,
        dst: &[u8],
    ) -> PassOrder {
        let (width, height) = axes.size();
        assert_eq!(
            dst.len(),
            width * height * PIXEL,
            "the output does not hold {height} x {width} pixels"
        );
        let ResizeAxes { x, y } = axes;
        let (copy_across, copy_down) = (x.is_identity(), y.is_identity());
        let picks = axes.pick();
        if !copy_across && self.across.prepare(x) && self.cpu != CpuLevel::Scalar {
            self.lanes.fill(&self.across.fixed);
        }
        if !copy_down {
            self.down.prepare(y);
        }
        // The paths load memory as the tables direct.
        let end = |axis: AxisGeometry, copies: bool, tables: &AxisTables| match copies {
            true => axis.copies_from() + axis.out_size as usize,
            false => tables.fixed.span().end,
        };
        assert!(
            end(x, copy_across, &self.across) <= size.0 && end(y, copy_down, &self.down) <= size.1,
            "{} x {} pixels at hand are too few for {axes:?}",
            size.1,
            size.0
        );
        match (copy_across, copy_down) {
            (true, true) => PassOrder::Copy,
            _ if picks => PassOrder::Pick,
            (false, true) => PassOrder::Across,
            (true, false) => PassOrder::Down,
            (false, false) if down_first(&x, &y) => PassOrder::DownThenAcross,
            (false, false) => PassOrder::AcrossThenDown,
        }
    }

    fn across_then_down(&mut self, src: &PixelSource, dst: &mut [u8], dst_row: usize) {
        let stride = ring_stride(dst_row / PIXEL);
        let slots = self.down.fixed.taps();
        let mut ring = std::mem::take(&mut self.rows);
        grow(&mut ring, stride * slots);
        let mut next = 0;
        for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
            let (start, size, _) = self.down.fixed.row(o);
            // Rows from `start` on are in the ring or still to be read.
            for y in next.max(start)..start + size {
                let at = y % slots * stride;
                self.across_source(src, y, &mut ring[at..at + dst_row]);
            }
            next = next.max(start + size);
            self.set_row_offsets(o, |y| y % slots * stride);
            down(self.cpu, &self.down.fixed, o, &ring, &self.offsets, dst);
        }
        self.rows = ring;
    }

    fn down_then_across(&mut self, src: &PixelSource, dst: &mut [u8], dst_row: usize) {
        let columns = self.across.fixed.span();
        let (from, to) = (columns.start * PIXEL, columns.end * PIXEL);
        let mut row = std::mem::take(&mut self.rows);
        grow(&mut row, to + slack(self.across.fixed.taps()));
        for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
            self.set_row_offsets(o, |y| y * src.stride + from);
            down(
                self.cpu,
                &self.down.fixed,
                o,
                src.pixels,
                &self.offsets,
                &mut row[from..to],
            );
            across(self.cpu, &self.across.fixed, &self.lanes, &row, dst);
        }
        self.rows = row;
    }

    /// Runs the pass across on source row `y`.
    fn across_source(&mut self, src: &PixelSource, y: usize, dst: &mut [u8]) {
        let at = y * src.stride;
        let row = &src.pixels[at..];
        let table = &self.across.fixed;
        let needed = table.span().end * PIXEL + slack(table.taps());
        if row.len() >= needed {
            across(self.cpu, table, &self.lanes, row, dst);
        } else {
            // The paths load whole registers, which needs room after the row.
            grow(&mut self.last_row, needed);
            let bytes = src.width * PIXEL;
            self.last_row[..bytes].copy_from_slice(&row[..bytes]);
            across(self.cpu, table, &self.lanes, &self.last_row, dst);
        }
    }

    /// Sets `offsets` to the rows of output row `o`: one for each of an even number of taps. An odd
    /// count repeats the last.
    pub(super) fn set_row_offsets(&mut self, o: usize, at: impl Fn(usize) -> usize) {
        let (start, size, _) = self.down.fixed.row(o);
        clear_with_capacity(&mut self.offsets, self.down.fixed.taps());
        self.offsets.extend((start..start + size).map(&at));
        if size % 2 == 1 {
            self.offsets.push(at(start + size - 1));
        }
    }
}

/// True if the pass down goes first. `x` and `y` are across and down in memory.
///
/// - Filters that follow a library have its order, in the upright image. torchvision begins with
///   the rows. Pillow 13 begins with the columns if the height is reduced by more than twice as
///   many pixels as the width.
/// - Other filters that overshoot are clipped between the passes, which makes the order visible.
///   They begin with the rows of the upright image, as Pillow 12 and torchvision do.
/// - A pass down costs about half as much per weight as a pass across, so strong reductions by
///   other filters begin with it. They have so many weights that rounding between the passes
///   hardly matters (mean 0.1 level).
/// - Filters that read only some pixels go across first. Otherwise the pass down would compute
///   columns that are not read.
pub(crate) fn down_first(x: &AxisGeometry, y: &AxisGeometry) -> bool {
    const STRONG: f64 = 3.0;
    debug_assert_ne!(x.is_down, y.is_down, "two axes of one direction");
    let (across, down) = if x.is_down { (y, x) } else { (x, y) };
    match x.filter {
        ResizeFilter::Pillow(_) => columns_first(across, down) != x.is_down,
        ResizeFilter::Torchvision(_) => x.is_down,
        filter if filter.overshoots() => x.is_down,
        _ => {
            let fits = |axis: &AxisGeometry| axis.gathers() && axis.scale() >= STRONG;
            fits(x) && fits(y)
        }
    }
}

/// True if Pillow 13 resizes the columns of an upright image before its rows. It compares sizes of
/// images, also if only a box of one is resized.
fn columns_first(across: &AxisGeometry, down: &AxisGeometry) -> bool {
    let removed = |axis: &AxisGeometry| i64::from(axis.in_size) - i64::from(axis.full_size);
    removed(down) > 0 && removed(down) > 2 * removed(across)
}
