//! Which pixels of one image may be sampled: the columns of a row, and the row's weight.
//!
//! Used in every process. After the draw everything is integer arithmetic, so that every machine
//! returns the same result. Not here: masks (`mask_bits`), tables and draws.

use std::f64::consts::PI;
use std::ops::Range;

use super::mask_bits::MaskView;
use crate::error::{Error, Result};

/// The pixels of one image that may be sampled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplingRegion<'a> {
    pub(crate) shape: RegionShape,
    /// If present, pixels must also be in this mask. For patches: the positions where one fits,
    /// from [`erode`](super::erode).
    pub(crate) mask: Option<MaskView<'a>>,
}

impl<'a> SamplingRegion<'a> {
    /// Every pixel.
    #[cfg(test)]
    pub(crate) const WHOLE: Self = Self {
        shape: RegionShape::Whole,
        mask: None,
    };

    /// The pixels in the mask.
    #[cfg(test)]
    pub(crate) fn masked(mask: MaskView<'a>) -> Self {
        Self {
            mask: Some(mask),
            ..Self::WHOLE
        }
    }
}

/// Pixels that may be sampled because of the lens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RegionShape {
    /// Every pixel.
    Whole,
    /// Pixels with their centre in a disc around the image's middle.
    Disc(CropDisc),
    /// Every pixel of an equirectangular image, weighted by its solid angle: a row's weight is
    /// proportional to the sine of its polar angle.
    Sphere,
}

/// A disc around the middle of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CropDisc {
    /// Square of the diameter, rounded down. In half pixels, squared distances are integers.
    pub(super) limit: u64,
}

/// A diameter larger than every image.
const MAX_LIMIT: u64 = 1 << 62;

impl CropDisc {
    /// A disc of a radius in pixels: nerfstudio's `fisheye_crop_radius`. Its middle is (width / 2,
    /// height / 2). nerfstudio rounds that down, which is half a pixel off for odd sizes.
    pub(crate) fn new(radius: f64) -> Result<Self> {
        if !(radius.is_finite() && radius > 0.0) {
            return Err(Error::config(format!(
                "the crop radius of a fisheye image is {radius}: use pixels, above 0"
            )));
        }
        // The conversion saturates for radii out of range.
        let limit = (4.0 * radius * radius) as u64;
        Ok(Self {
            limit: limit.min(MAX_LIMIT),
        })
    }

    /// Columns of a row with their centres in the disc.
    pub(crate) fn columns(self, width: u32, height: u32, row: u32) -> Range<u32> {
        // In half pixels from the middle: coordinates of centres are odd or even integers.
        let (width, height) = (i64::from(width), i64::from(height));
        let up = (2 * i64::from(row) + 1 - height).unsigned_abs();
        let Some(left) = self.limit.checked_sub(up * up) else {
            return 0..0;
        };
        // At most 2^31 for a limit of 2^62.
        let reach = left.isqrt() as i64;
        let first = (width - 1 - reach + 1).div_euclid(2).max(0);
        let last = (width - 1 + reach).div_euclid(2).min(width - 1);
        match first <= last {
            true => first as u32..last as u32 + 1,
            false => 0..0,
        }
    }
}

/// Unit of sines: they are multiples of 2^-31, up to 2^31.
pub(super) const SINE: u64 = 1 << 31;

impl RegionShape {
    /// Columns of a row where a unit may start, according to the shape alone. `extent` is the
    /// distance of a unit's last row and column from its first.
    pub(super) fn columns(self, size: (u32, u32), extent: u32, row: u32) -> Range<u32> {
        let (width, height) = size;
        let Some(last) = row.checked_add(extent).filter(|&last| last < height) else {
            return 0..0;
        };
        let both = match self {
            Self::Whole | Self::Sphere => 0..width,
            // A disc is convex: if both ends of a span are in it, so is everything between.
            Self::Disc(disc) => {
                let first = disc.columns(width, height, row);
                let last = match extent {
                    0 => first.clone(),
                    _ => disc.columns(width, height, last),
                };
                first.start.max(last.start)..first.end.min(last.end)
            }
        };
        both.start..both.end.saturating_sub(extent).max(both.start)
    }

    /// Weight of a pixel of a row, as an integer from 1. `extent` as for `columns`: the middle of a
    /// patch counts.
    pub(super) fn row_weight(self, height: u32, extent: u32, row: u32) -> u64 {
        if self != Self::Sphere {
            return 1;
        }
        // In half rows from the top. Beyond the image's end a sine is negative and counts as 1.
        let middle = 2 * u64::from(row) + u64::from(extent) + 1;
        let sine = libm::sin(PI * middle as f64 / (2.0 * f64::from(height)));
        ((sine * SINE as f64).round() as u64).clamp(1, SINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disc_has_the_pixels_whose_centres_are_within_its_radius() {
        for (width, height) in [(1u32, 1u32), (7, 5), (8, 6), (64, 63), (33, 90), (90, 33)] {
            for radius in [0.4, 0.5, 1.0, 2.5, 16.0, 31.5, 33.3, 47.9, 48.0, 1e3, 1e300] {
                let shape = RegionShape::Disc(CropDisc::new(radius).unwrap());
                for row in 0..height {
                    let columns = shape.columns((width, height), 0, row);
                    let inside = |col: u32| {
                        let x = f64::from(col) + 0.5 - f64::from(width) / 2.0;
                        let y = f64::from(row) + 0.5 - f64::from(height) / 2.0;
                        x * x + y * y <= radius * radius
                    };
                    let got: Vec<u32> = columns.collect();
                    let want: Vec<u32> = (0..width).filter(|&c| inside(c)).collect();
                    assert_eq!(got, want, "{width} x {height}, {radius}, row {row}");
                }
            }
        }
    }

    #[test]
    fn a_patch_in_a_disc_has_all_its_corners_in_it() {
        let (size, disc) = ((41, 37), RegionShape::Disc(CropDisc::new(17.0).unwrap()));
        let inside = |row, col| disc.columns(size, 0, row).contains(&col);
        for extent in [0u32, 1, 4, 9, 20, 30, 40] {
            for (row, col) in (0..size.1).flat_map(|r| (0..size.0).map(move |c| (r, c))) {
                let all = (0..=extent).all(|y| (0..=extent).all(|x| inside(row + y, col + x)));
                let got = disc.columns(size, extent, row).contains(&col);
                assert_eq!(got, all, "{extent} at {row}, {col}");
            }
        }
    }

    #[test]
    fn a_radius_that_is_none_is_refused() {
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(CropDisc::new(wrong).unwrap_err().is_config());
        }
    }

    #[test]
    fn rows_of_a_sphere_weigh_their_sine() {
        for height in [1, 2, 3, 64, 65, 4096, u32::MAX] {
            let weight = |row| RegionShape::Sphere.row_weight(height, 0, row);
            let rows = [0, 1, 2, height / 4, height / 2, height - 1];
            for row in rows.into_iter().filter(|&r| r < height) {
                let angle = PI * (f64::from(row) + 0.5) / f64::from(height);
                let want = angle.sin() * SINE as f64;
                assert!(
                    (weight(row) as f64 - want).abs() <= 1.0,
                    "{row} of {height}"
                );
                assert_eq!(weight(row), weight(height - 1 - row));
            }
        }
        // A patch of 3 rows counts by the one in its middle.
        let middle = RegionShape::Sphere.row_weight(100, 0, 11);
        assert_eq!(RegionShape::Sphere.row_weight(100, 2, 10), middle);
        assert_eq!(RegionShape::Whole.row_weight(100, 2, 10), 1);
    }

    #[test]
    fn numbers_out_of_range_give_nothing() {
        for shape in [
            RegionShape::Whole,
            RegionShape::Sphere,
            RegionShape::Disc(CropDisc { limit: u64::MAX }),
            RegionShape::Disc(CropDisc { limit: 0 }),
        ] {
            for row in [0, 5, 6, u32::MAX] {
                for extent in [6, u32::MAX] {
                    assert!(shape.columns((9, 6), extent, row).is_empty());
                }
                assert!(shape.row_weight(0, u32::MAX, row) >= 1);
                let _ = shape.columns((u32::MAX, u32::MAX), 0, row);
            }
            assert!(shape.columns((9, 6), 0, 6).is_empty());
            assert!(shape.columns((0, 0), 0, 0).is_empty());
        }
    }
}
