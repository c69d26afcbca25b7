//! SimpleTuner: `MultiaspectImage.calculate_new_size_by_pixel_area` and
//! `TrainingSample.calculate_target_size`, with `resolution_type: pixel_area` and
//! `crop_aspect: preserve`.
//!
//! SimpleTuner keeps one row for each rounded ratio of a row: that of the first image that it saw. So
//! a row depends on the images before it. Here it is the row of the least ratio, and images do not
//! depend on each other. SimpleTuner has the same rows if images come in the order of their ratios.
//! In any other order a row may differ for a few ratios (hundredths, from 0.25 to 4):
//!
//! | square | step 8 | step 16 | step 32 | step 64 |
//! |---|---|---|---|---|
//! | 512 | 0.42, 0.57 | 0.25, 0.26, 0.33, 0.35 | none | none |
//! | 768 | 0.68 | 0.28, 0.40, 0.43 | 0.27, 0.31 | none |
//! | 1024 | none | 0.42, 0.57 | 0.25, 0.26, 0.33, 0.35 | none |
//!
//! The largest canvas of a model and the options of images for a resize before the crop are not in
//! this rule.

use super::bucket_fit::{BucketFit, rounded};

/// Ratios of width to height are rounded to hundredths, and kept as their number.
#[derive(Debug, Clone, Copy)]
struct TunerSides {
    /// Side of a square of the area, rounded to the step.
    edge: f64,
    step: f64,
}

impl TunerSides {
    fn multiple(self, side: f64) -> f64 {
        (rounded(side / self.step) * self.step).max(self.step)
    }

    /// Width and height of a row for a ratio.
    fn of_ratio(self, hundredths: u64) -> (f64, f64) {
        let root = (hundredths as f64 / 100.0).sqrt();
        (
            self.multiple(self.edge * root),
            self.multiple(self.edge / root),
        )
    }

    fn rounded_ratio(self, hundredths: u64) -> u64 {
        let (w, h) = self.of_ratio(hundredths);
        ratio(w, h)
    }

    /// The least ratio whose row has the same rounded ratio. Wider ratios have wider rows.
    fn first(self, hundredths: u64) -> u64 {
        let wanted = self.rounded_ratio(hundredths);
        let (mut below, mut first) = (0, hundredths);
        while first - below > 1 {
            let middle = below + (first - below) / 2;
            match self.rounded_ratio(middle) < wanted {
                true => below = middle,
                false => first = middle,
            }
        }
        first
    }
}

/// A ratio that rounds to 0 has no row.
pub(super) fn fit((height, width): (u32, u32), area: u64, step: u32) -> BucketFit {
    let none = BucketFit {
        row: (0, 0),
        resized: (0, 0),
    };
    let step = f64::from(step);
    let sides = |edge: f64| TunerSides { edge, step };
    let megapixels = area as f64 / 1e6;
    let edge = sides(1.0).multiple((megapixels * 1e6).sqrt().floor());
    let square = sides(1.0).multiple(usual_area(megapixels).sqrt());
    let (w, h) = (f64::from(width), f64::from(height));
    let hundredths = ratio(w, h);
    if hundredths == 0 {
        return none;
    }
    let (row, resized) = match width == height {
        true => ((edge, edge), (edge, edge)),
        false => {
            let sides = sides(edge);
            let row = sides.of_ratio(sides.first(hundredths));
            (row, covering(w / h, sides.of_ratio(hundredths), row))
        }
    };
    let (row, resized) = match ratio(row.0, row.1) {
        100 if resized.0 < square => ((square, square), (square, square)),
        100 => ((square, square), resized),
        _ => (row, resized),
    };
    let size = |(w, h): (f64, f64)| (h as u32, w as u32);
    BucketFit {
        row: size(row),
        resized: size(resized),
    }
}

/// Width and height of the resized image. `own` is the row of its own ratio.
fn covering(aspect: f64, own: (f64, f64), row: (f64, f64)) -> (f64, f64) {
    let (wide, high) = match own.0 < own.1 {
        true => (own.0, (own.0 / aspect).trunc()),
        false => ((own.1 * aspect).trunc(), own.1),
    };
    let (more_wide, more_high) = (row.0 - wide, row.1 - high);
    if more_wide > 0.0 {
        (row.0, high + (more_wide / aspect).trunc())
    } else if more_high > 0.0 {
        (wide + (more_high * aspect).trunc(), row.1)
    } else {
        (wide, high)
    }
}

/// The area of a square row. SimpleTuner takes these numbers of megapixels for those of usual squares.
fn usual_area(megapixels: f64) -> f64 {
    let usual = [
        (0.25, 512),
        (0.5, 768),
        (1.0, 1024),
        (2.0, 1536),
        (4.0, 2048),
    ];
    let near = usual.iter().find(|(of, _)| (megapixels - of).abs() < 0.05);
    near.map_or(megapixels * 1e6, |(_, side)| f64::from(side * side))
}

/// Python's `round(width / height, 2)`, in hundredths: the nearest to the quotient as it is stored.
fn ratio(width: f64, height: f64) -> u64 {
    let quotient = width / height;
    let below = (quotient * 100.0).floor();
    // Has the sign of the exact difference to the middle, because it is rounded once.
    let over = quotient.mul_add(200.0, -(2.0 * below + 1.0));
    let up = over > 0.0 || (over == 0.0 && below % 2.0 == 1.0);
    below as u64 + u64::from(up)
}
