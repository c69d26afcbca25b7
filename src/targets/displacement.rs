//! Where an elastic deformation takes points.
//!
//! The pixels' rule gives the source of each output pixel: its own place plus a displacement. So
//! points go the other way, through the inverse, which is found by repetition.

use crate::pixels::elastic::{DisplacementField, each_place};
use crate::recipe::Size;

/// The displacement of each output pixel: its source minus its own place, to the right and down, in
/// pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct DisplacementMap {
    size: Size,
    by: Vec<[f32; 2]>,
}

/// Repetitions of the inverse. Each shrinks the error by the steepness of the field.
const MOST_REPETITIONS: usize = 50;
/// The error at which they end, in pixels.
const EXACT: f64 = 1e-9;

impl DisplacementMap {
    /// Bytes of the map of a picture of this size.
    #[must_use]
    pub fn bytes(size: Size) -> u64 {
        u64::from(size.height) * u64::from(size.width) * size_of::<[f32; 2]>() as u64
    }

    /// The map of the step `elastic` with these numbers, as the pixels are moved.
    pub(super) fn of_noise(size: Size, key: u64, alpha: [f64; 2], sigma: [f64; 2]) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let mut by = Vec::with_capacity(width * height);
        let field = DisplacementField { key, alpha, sigma };
        each_place((width, height), field, &mut Vec::new(), |sx, sy| {
            let (x, y) = (by.len() % width, by.len() / width);
            by.push([sx - x as f32, sy - y as f32]);
        });
        Self { size, by }
    }

    /// The map with these displacements, row by row. None if their number is not that of the
    /// pixels.
    #[must_use]
    pub fn new(size: Size, by: Vec<[f32; 2]>) -> Option<Self> {
        let pixels = u64::from(size.height) * u64::from(size.width);
        (by.len() as u64 == pixels).then_some(Self { size, by })
    }

    /// The displacement of the pixel in this column and row. Beyond an edge it is that of the edge.
    #[must_use]
    pub fn at_pixel(&self, column: i64, row: i64) -> [f64; 2] {
        let inside = |at: i64, n: u32| at.clamp(0, i64::from(n).max(1) - 1) as usize;
        let (x, y) = (
            inside(column, self.size.width),
            inside(row, self.size.height),
        );
        let at = y * self.size.width as usize + x;
        self.by.get(at).map_or([0.0; 2], |by| by.map(f64::from))
    }

    /// The source of an output point: interpolated between the centres of four pixels.
    #[must_use]
    pub fn source_of(&self, point: [f64; 2]) -> [f64; 2] {
        let [x, y] = point.map(|v| v - 0.5);
        let (left, top) = (x.floor(), y.floor());
        let (right, down) = (x - left, y - top);
        let (column, row) = (left as i64, top as i64);
        let at =
            |dx: i64, dy: i64| self.at_pixel(column.saturating_add(dx), row.saturating_add(dy));
        let [a, b, c, d] = [at(0, 0), at(1, 0), at(0, 1), at(1, 1)];
        std::array::from_fn(|axis| {
            let above = a[axis] + (b[axis] - a[axis]) * right;
            let below = c[axis] + (d[axis] - c[axis]) * right;
            point[axis] + above + (below - above) * down
        })
    }

    /// The output point that shows a source point. If the field folds the picture, one of several.
    #[must_use]
    pub fn output_of(&self, source: [f64; 2]) -> [f64; 2] {
        if !source.iter().all(|v| v.is_finite()) {
            return [f64::NAN; 2];
        }
        let mut at = source;
        for _ in 0..MOST_REPETITIONS {
            let reached = self.source_of(at);
            let off = [source[0] - reached[0], source[1] - reached[1]];
            at = [at[0] + off[0], at[1] + off[1]];
            if off[0].abs().max(off[1].abs()) < EXACT {
                break;
            }
        }
        at
    }
}
