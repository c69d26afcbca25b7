//! The same resize for an image that arrives row by row, top to bottom, and is never stored as a
//! whole. PNG and similar formats use it.
//!
//! A window with as many rows as the filter is high replaces the image. Order of passes, weights
//! and sums are those of [`ImageResampler::resample`], so the pixels are equal.

use super::axes::{PIXEL, ResizeAxes, grow, slack};
use super::passes::{across, down};
use super::resampler::{ImageResampler, PassOrder};

/// An image as rows of packed RGB.
pub(crate) trait RowSource {
    type Fault;

    /// Row `y`, all columns. Rows are requested in increasing order, each at most once.
    fn row(&mut self, y: usize) -> Result<&[u8], Self::Fault>;
}

impl ImageResampler {
    /// Fills `dst` from `size` (width, height) available pixels; see [`ImageResampler::resample`].
    ///
    /// # Errors
    /// The first error of `rows`. `dst` then holds arbitrary bytes.
    pub(crate) fn resample_rows<R: RowSource>(
        &mut self,
        rows: &mut R,
        size: (usize, usize),
        axes: ResizeAxes,
        dst: &mut [u8],
    ) -> Result<(), R::Fault> {
        let passes = self.prepare(size, axes, dst);
        let (src_row, dst_row) = (size.0 * PIXEL, axes.size().0 * PIXEL);
        let (x0, y0) = (axes.x.copies_from() * PIXEL, axes.y.copies_from());
        if passes == PassOrder::Pick {
            let (x, y) = self.picks(axes);
            let mut last = None;
            for (o, done) in (0..axes.size().1).map(|o| (o, o * dst_row)) {
                let from = y.at(o);
                if last.replace(from) == Some(from) {
                    // When enlarging, the same row again: it must not be requested twice.
                    dst.copy_within(done - dst_row..done, done);
                } else {
                    let row = rows.row(from)?[..src_row].as_chunks().0;
                    x.across(row, dst[done..done + dst_row].as_chunks_mut().0);
                }
            }
            return Ok(());
        }
        if passes.copies_down() {
            for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
                let row = rows.row(y0 + o)?;
                match passes {
                    PassOrder::Copy => dst.copy_from_slice(&row[x0..x0 + dst_row]),
                    _ => self.across_row(&row[..src_row], dst),
                }
            }
            return Ok(());
        }
        // A row of the window: after the pass across, or the source row.
        let (kept, from, to) = match passes {
            PassOrder::AcrossThenDown => (dst_row, 0, 0),
            PassOrder::DownThenAcross => {
                let columns = self.across.fixed.span();
                (src_row, columns.start * PIXEL, columns.end * PIXEL)
            }
            _ => (src_row, x0, 0),
        };
        let stride = kept.next_multiple_of(32);
        let slots = self.down.fixed.taps();
        let mut window = std::mem::take(&mut self.rows);
        grow(&mut window, stride * slots);
        if passes == PassOrder::DownThenAcross {
            grow(&mut self.last_row, to + slack(self.across.fixed.taps()));
        }
        let mut next = 0;
        for (o, dst) in dst.chunks_exact_mut(dst_row).enumerate() {
            let (start, count, _) = self.down.fixed.row(o);
            // Rows from `start` on are in the window or still to be read.
            for y in next.max(start)..start + count {
                let at = y % slots * stride;
                let to = &mut window[at..at + kept];
                let row = &rows.row(y)?[..src_row];
                match passes {
                    PassOrder::AcrossThenDown => self.across_row(row, to),
                    _ => to.copy_from_slice(row),
                }
            }
            next = next.max(start + count);
            self.set_row_offsets(o, |y| y % slots * stride + from);
            let table = &self.down.fixed;
            if passes == PassOrder::DownThenAcross {
                let row = &mut self.last_row[from..to];
                down(self.cpu, table, o, &window, &self.offsets, row);
                let table = &self.across.fixed;
                across(self.cpu, table, &self.lanes, &self.last_row, dst);
            } else {
                down(self.cpu, table, o, &window, &self.offsets, dst);
            }
        }
        self.rows = window;
        Ok(())
    }

    /// Runs the pass across on a row without room after it.
    fn across_row(&mut self, row: &[u8], dst: &mut [u8]) {
        let table = &self.across.fixed;
        grow(
            &mut self.last_row,
            row.len()
                .max(table.span().end * PIXEL + slack(table.taps())),
        );
        self.last_row[..row.len()].copy_from_slice(row);
        across(self.cpu, table, &self.lanes, &self.last_row, dst);
    }
}
