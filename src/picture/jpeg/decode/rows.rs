//! Converts samples of the planes to rows of RGB: enlarging, and colour.

use super::filters;
use super::frame::JpegColors;
use super::geometry::{SamplePlane, UpsampleFilter, WindowGeometry};
use super::kernels::DecodeKernels;
use super::request::JpegWindow;

/// Extra samples after a row, which its reader may touch.
const SLACK: usize = 64;

/// Writes rows of a picture from the planes, from top to bottom.
pub(super) struct OutputRows<'a> {
    pub(super) plan: &'a WindowGeometry,
    pub(super) colour: JpegColors,
    pub(super) window: JpegWindow,
    /// The next row, counted in the picture.
    pub(super) next: usize,
    /// The enlarged rows, one for each component: [`OutputRows::spare`] bytes.
    pub(super) spare: &'a mut [u8],
}

impl OutputRows<'_> {
    /// Bytes of the enlarged rows of a window.
    pub(super) fn spare(window: JpegWindow) -> usize {
        4 * Self::spare_row(window)
    }

    fn spare_row(window: JpegWindow) -> usize {
        (window.w + 2).next_multiple_of(32) + SLACK
    }

    /// Writes all rows of the window that are complete once row `mcu_row` of MCUs is in the planes.
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        kernels: impl DecodeKernels,
        mcu_row: usize,
        planes: &mut [u8],
        out: &mut [u8],
    ) {
        let end_of_window = self.window.y + self.window.h;
        let is_last = mcu_row == self.plan.mcu_rows.1;
        let below = self.plan.blends_down();
        let end = (mcu_row + 1) * self.plan.mcu_height - usize::from(below);
        let end = if is_last {
            end_of_window
        } else {
            end.min(end_of_window)
        };
        for plane in self.plan.planes() {
            if matches!(plane.filter, UpsampleFilter::Across | UpsampleFilter::Both) {
                extend(plane, mcu_row, planes);
            }
        }
        let bytes = self.colour.bytes() * self.window.w;
        while self.next < end {
            let at = (self.next - self.window.y) * bytes;
            let Some(to) = out.get_mut(at..) else { return };
            self.row(kernels, planes, to);
            self.next += 1;
        }
    }

    /// Writes one row at the start of `to`, which extends to the rows below.
    #[inline(always)]
    fn row(&mut self, kernels: impl DecodeKernels, planes: &[u8], to: &mut [u8]) {
        let pixels = self.window.w;
        let mut rows: [&[u8]; 4] = [&[]; 4];
        let len = Self::spare_row(self.window);
        let spares = self.spare.chunks_exact_mut(len);
        for ((plane, row), spare) in self.plan.planes().iter().zip(&mut rows).zip(spares) {
            *row = enlarged(kernels, plane, self.window, self.next, planes, spare);
        }
        let [a, b, c, k] = rows;
        match self.colour {
            JpegColors::Grey => kernels.interleave([a, a, a], pixels, to),
            JpegColors::Rgb => kernels.interleave([a, b, c], pixels, to),
            JpegColors::YCbCr => kernels.ycc_to_rgb([a, b, c], pixels, to),
            JpegColors::Cmyk | JpegColors::Ycck => {
                let to = to.get_mut(..4 * pixels).unwrap_or_default();
                filters::inks([a, b, c, k], self.colour == JpegColors::Ycck, to);
            }
        }
    }
}

/// A component's samples for a row of the picture, from the first pixel of the window on.
#[inline(always)]
fn enlarged<'a>(
    kernels: impl DecodeKernels,
    plane: &SamplePlane,
    window: JpegWindow,
    y: usize,
    planes: &'a [u8],
    spare: &'a mut [u8],
) -> &'a [u8] {
    let row = y / plane.down;
    // The other row of a blend: the one above for the upper of two rows, otherwise the one below.
    let is_below = y % 2 == 1;
    let far = if is_below {
        row + 1
    } else {
        row.saturating_sub(1)
    };
    let far = far.min(plane.height - 1);
    let column = window.x / plane.across;
    let skipped = window.x % plane.across;
    let samples = |row: usize, from: usize| {
        let start = plane.row(row) + from - plane.left();
        planes.get(start..).unwrap_or_default()
    };
    // Begins one sample to the left, which is a margin at the left edge.
    let with_left = |row: usize| {
        let start = plane.row(row) + column - plane.left() - 1;
        planes.get(start..).unwrap_or_default()
    };
    let count = (skipped + window.w).div_ceil(plane.across);
    match plane.filter {
        UpsampleFilter::Repeat if plane.across == 1 => return samples(row, column),
        UpsampleFilter::Repeat => {
            let to = spare.get_mut(..count * plane.across).unwrap_or_default();
            filters::repeat(samples(row, column), plane.across, to);
        }
        UpsampleFilter::Across => kernels.across(with_left(row), count, spare),
        UpsampleFilter::Down => {
            let to = spare.get_mut(..count).unwrap_or_default();
            filters::down(samples(row, column), samples(far, column), is_below, to);
        }
        UpsampleFilter::Both => kernels.both(with_left(row), with_left(far), count, spare),
    }
    spare.get(skipped..).unwrap_or_default()
}

/// Repeats the first and the last sample of each row at the edges of the picture. There, a blend is
/// with the sample itself.
fn extend(plane: &SamplePlane, mcu_row: usize, planes: &mut [u8]) {
    let rows = mcu_row * plane.rows_of_mcu()..(mcu_row + 1) * plane.rows_of_mcu();
    let width = plane.width - plane.left();
    for row in rows {
        let start = plane.row(row);
        let Some(samples) = planes.get_mut(start - 1..start + plane.decoded() + 1) else {
            return;
        };
        if plane.left() == 0 {
            samples[0] = samples[1];
        }
        if width < samples.len() - 1 {
            samples[width + 1] = samples[width];
        }
    }
}
