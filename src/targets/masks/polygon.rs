//! The pixels of polygons: the rule of pycocotools 2.0.11, equal bit by bit.
//!
//! The outline is walked on a grid of five places a pixel. Each column that it crosses changes
//! between inside and outside there. pycocotools keeps all places and sorts them. Here each crossing
//! toggles a bit, so memory depends on the mask alone: two bits for each pixel.

use super::column_mask::{ColumnMask, MaskCrossings};
use super::run_lengths::RunLengths;
use crate::recipe::Size;
use crate::targets::fault::TargetFault;

/// Places of the grid in a pixel.
const GRID: f64 = 5.0;

/// The largest polygons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolygonLimits {
    /// Points of an object's rings together.
    pub points: usize,
    /// Pixels of an object's outline, outside the picture too.
    pub outline: u64,
    /// The largest absolute value of a coordinate, in pixels of the mask. At most 100,000,000.
    pub coordinate: u32,
}

impl Default for PolygonLimits {
    /// 100,000 points, an outline of 16 million pixels, coordinates up to 1,000,000.
    fn default() -> Self {
        Self {
            points: 100_000,
            outline: 16_000_000,
            coordinate: 1_000_000,
        }
    }
}

/// The size of a mask relative to the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaskScale {
    #[default]
    Full,
    /// Both sides divided by 4, rounded up. Coordinates are divided by 4.
    Quarter,
}

impl MaskScale {
    /// The size of the mask of a picture.
    #[must_use]
    pub fn size(self, picture: Size) -> Size {
        match self {
            Self::Full => picture,
            Self::Quarter => Size {
                height: picture.height.div_ceil(4),
                width: picture.width.div_ceil(4),
            },
        }
    }

    fn factor(self) -> f64 {
        match self {
            Self::Full => 1.0,
            Self::Quarter => 0.25,
        }
    }
}

/// The mask of an object: the pixels inside any of its rings. `picture`: the size of the picture in
/// whose coordinates the points are. Points of the source give the mask of the source. Points that
/// were moved give the mask of the output.
///
/// # Errors
/// If a coordinate is not a number, or beyond a limit. The mask's bits are allocated after these
/// checks.
pub fn mask_of_polygons<'a>(
    rings: impl IntoIterator<Item = &'a [[f64; 2]]>,
    picture: Size,
    scale: MaskScale,
    limits: &PolygonLimits,
) -> Result<RunLengths, TargetFault> {
    let size = scale.size(picture);
    RunLengths::pixels_of(size)?;
    let rings: Vec<&[[f64; 2]]> = rings.into_iter().collect();
    check_points(&rings, scale, limits)?;
    let mut mask = ColumnMask::new(size)?;
    let mut crossings = MaskCrossings::new(size)?;
    let walk = GridWalk {
        factor: scale.factor(),
        size,
    };
    for ring in rings {
        walk.toggle_crossings(ring, &mut crossings);
        crossings.fill(&mut mask);
    }
    Ok(mask.runs())
}

/// Checks points and outline against the limits.
fn check_points(
    rings: &[&[[f64; 2]]],
    scale: MaskScale,
    limits: &PolygonLimits,
) -> Result<(), TargetFault> {
    let fault = |reason: String| Err(TargetFault::new("polygons", reason));
    let points: usize = rings.iter().map(|ring| ring.len()).sum();
    if points > limits.points {
        return fault(format!(
            "have {points} points: an object has at most {}",
            limits.points
        ));
    }
    let most = f64::from(limits.coordinate.min(100_000_000));
    let mut outline = 0.0;
    for ring in rings {
        for (i, point) in ring.iter().enumerate() {
            let here = point.map(|v| v * scale.factor());
            if !here.iter().all(|v| v.abs() <= most) {
                return fault(format!(
                    "have the point ({}, {}): coordinates are numbers from -{most} to {most}",
                    point[0], point[1]
                ));
            }
            let next = ring[(i + 1) % ring.len()].map(|v| v * scale.factor());
            let length = (next[0] - here[0]).abs().max((next[1] - here[1]).abs());
            outline += length + 1.0;
        }
    }
    if outline > limits.outline as f64 {
        return fault(format!(
            "have an outline of {outline:.0} pixels: an object has at most {}",
            limits.outline
        ));
    }
    Ok(())
}

/// A walk along an outline on the grid.
struct GridWalk {
    factor: f64,
    size: Size,
}

impl GridWalk {
    /// Toggles the bit of each column that the outline crosses.
    fn toggle_crossings(&self, ring: &[[f64; 2]], mask: &mut MaskCrossings) {
        // As a conversion to int in C.
        let grid = |v: f64| (GRID * (v * self.factor) + 0.5) as i64;
        let mut before: Option<(i64, i64)> = None;
        for (i, start) in ring.iter().enumerate() {
            let end = ring[(i + 1) % ring.len()];
            let (start, end) = (start.map(grid), end.map(grid));
            walk_edge(start, end, |u, v| {
                if let Some(last) = before.replace((u, v))
                    && last.0 != u
                {
                    self.cross(last, (u, v), mask);
                }
            });
        }
    }

    /// The step between two columns of the grid.
    fn cross(&self, last: (i64, i64), here: (i64, i64), mask: &mut MaskCrossings) {
        let (width, height) = (i64::from(self.size.width), f64::from(self.size.height));
        let column = if here.0 < last.0 { here.0 } else { here.0 - 1 };
        // Centres of pixels are at the third place of five.
        if column < 0 || column % 5 != 2 || column / 5 >= width {
            return;
        }
        let row = here.1.min(last.1) as f64;
        let row = ((row + 0.5) / GRID - 0.5).clamp(0.0, height).ceil();
        mask.toggle(column as u64 / 5 * u64::from(self.size.height) + row as u64);
    }
}

/// Calls `at` with each place of an edge, from its start to its end.
fn walk_edge([xs, ys]: [i64; 2], [xe, ye]: [i64; 2], mut at: impl FnMut(i64, i64)) {
    let (dx, dy) = ((xe - xs).abs(), (ye - ys).abs());
    let is_flat = dx >= dy;
    // The places do not depend on the direction of the edge.
    let is_turned = (is_flat && xs > xe) || (!is_flat && ys > ye);
    let ((xs, ys), (xe, ye)) = match is_turned {
        true => ((xe, ye), (xs, ys)),
        false => ((xs, ys), (xe, ye)),
    };
    let steps = dx.max(dy);
    let slope = match is_flat {
        true => (ye - ys) as f64 / dx as f64,
        false => (xe - xs) as f64 / dy as f64,
    };
    for step in 0..=steps {
        let t = if is_turned { steps - step } else { step };
        let other = |from: i64| (from as f64 + slope * t as f64 + 0.5) as i64;
        match is_flat {
            true => at(t + xs, other(ys)),
            false => at(other(xs), t + ys),
        }
    }
}
