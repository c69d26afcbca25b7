//! Summary numbers of the sizes of all samples.
//!
//! Has no side effects. The results are exact: all sizes are read. Sorting needs 8 bytes for each
//! size.

use serde::Serialize;

use crate::data::sample_sizes::SampleSizes;

/// The upright size of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PictureSize {
    /// Id of the sample.
    pub id: u64,
    /// Pixels.
    pub height: u32,
    /// Pixels.
    pub width: u32,
}

/// Quantiles of a number over all images. The field that holds them defines the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SizeQuantiles {
    /// The smallest value.
    pub min: u64,
    pub p1: u64,
    pub p10: u64,
    pub p25: u64,
    /// The 50% quantile.
    pub median: u64,
    pub p75: u64,
    pub p90: u64,
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

/// Statistics over all images with a readable header.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeStatistics {
    /// The image with the fewest pixels. Ties go to the lowest id.
    pub smallest: PictureSize,
    /// The image with the most pixels. Ties go to the lowest id.
    pub largest: PictureSize,
    /// Millions of pixels.
    pub mean_megapixels: f64,
    /// Millions of pixels.
    pub median_megapixels: f64,
    /// Pixels.
    pub height: SizeQuantiles,
    /// Pixels.
    pub width: SizeQuantiles,
    /// Height x width, pixels.
    pub pixels: SizeQuantiles,
    /// Bytes of all images as RGB with 8 bits: height x width x 3.
    pub decoded_bytes: u128,
}

impl SizeStatistics {
    /// `None` if no sample has a size.
    pub(crate) fn of(sizes: &SampleSizes) -> Option<Self> {
        let pictures = || {
            (0..).zip(sizes.iter()).filter_map(|(id, size)| {
                size.map(|(height, width)| PictureSize { id, height, width })
            })
        };
        let pixels = |p: &PictureSize| u64::from(p.height) * u64::from(p.width);
        let smallest = pictures().min_by_key(|p| (pixels(p), p.id))?;
        let largest = pictures().min_by_key(|p| (std::cmp::Reverse(pixels(p)), p.id))?;
        let count = pictures().count();
        let sum: u128 = pictures().map(|p| u128::from(pixels(&p))).sum();
        let mut values = Vec::with_capacity(count);
        let mut quantiles = |value: &dyn Fn(&PictureSize) -> u64| {
            values.clear();
            values.extend(pictures().map(|p| value(&p)));
            SizeQuantiles::of(&mut values)
        };
        let of_pixels = quantiles(&pixels)?;
        Some(Self {
            smallest,
            largest,
            mean_megapixels: sum as f64 / count as f64 * 1e-6,
            median_megapixels: of_pixels.median as f64 * 1e-6,
            height: quantiles(&|p| u64::from(p.height))?,
            width: quantiles(&|p| u64::from(p.width))?,
            pixels: of_pixels,
            decoded_bytes: 3 * sum,
        })
    }
}

impl SizeQuantiles {
    /// Quantiles by the nearest rank, so each is one of `values`. Sorts `values`.
    fn of(values: &mut [u64]) -> Option<Self> {
        values.sort_unstable();
        let last = values.len().checked_sub(1)?;
        let at = |percent: usize| {
            let rank = (values.len() as u128 * percent as u128).div_ceil(100) as usize;
            values[rank.saturating_sub(1).min(last)]
        };
        Some(Self {
            min: at(0),
            p1: at(1),
            p10: at(10),
            p25: at(25),
            median: at(50),
            p75: at(75),
            p90: at(90),
            p99: at(99),
            max: at(100),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_sizes_by_hand() {
        let sizes = SampleSizes::seal(&[[2, 5], [0, 0], [10, 10], [1, 10], [30, 1]]).unwrap();
        let s = SizeStatistics::of(&sizes).unwrap();
        assert_eq!((s.smallest.id, s.largest.id), (0, 2));
        assert_eq!((s.largest.height, s.largest.width), (10, 10));
        assert_eq!(s.decoded_bytes, 3 * (10 + 100 + 10 + 30));
        assert!((s.mean_megapixels - 37.5e-6).abs() < 1e-12);
        assert_eq!((s.pixels.min, s.pixels.median, s.pixels.max), (10, 10, 100));
        assert_eq!((s.height.p25, s.height.p75, s.height.p90), (1, 10, 30));
        assert_eq!((s.width.min, s.width.median, s.width.max), (1, 5, 10));
        assert!(SizeStatistics::of(&SampleSizes::seal(&[[0, 0]]).unwrap()).is_none());
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let q = SizeQuantiles::of(&mut values).unwrap();
        assert_eq!((q.min, q.p1, q.p10, q.p25), (1, 10, 100, 250));
        assert_eq!(
            (q.median, q.p75, q.p90, q.p99, q.max),
            (500, 750, 900, 990, 1000)
        );
        assert_eq!(SizeQuantiles::of(&mut []), None);
        let one = SizeQuantiles::of(&mut [7]).unwrap();
        assert_eq!((one.min, one.median, one.max), (7, 7, 7));
    }
}
