//! The weights of a resize in fixed point, for `u8` pixels.
//!
//! Pure. The CPU resampler and the kernels that resize bytes multiply by these coefficients, so
//! they make the same pixels.

use super::weights::{ResizeFilter, WeightTable, clear_with_capacity};

/// How the weights of a filter become integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeightRounding {
    /// 16 bits. Those of one output pixel sum to exactly 1, so a flat area keeps its level.
    SumToOne,
    /// 16 bits, each rounded on its own: torchvision's resize of tensors
    /// (`_compute_index_ranges_int16_weights` in ATen's `UpSampleKernel.cpp`).
    Torchvision,
    /// 22 fraction bits, each rounded on its own: Pillow's resize (`normalize_coeffs_8bpc` in
    /// `src/libImaging/Resample.c`).
    Pillow,
}

impl WeightRounding {
    /// Products with 16 bits cost half as much, so the most common filter has them: it is within
    /// one level of Pillow, seldom two. Filters that overshoot would be further away.
    fn of(filter: ResizeFilter) -> Self {
        match filter {
            // Labels have one coefficient of 1, which no pass reads.
            ResizeFilter::Triangle
            | ResizeFilter::Nearest
            | ResizeFilter::Labels(_)
            | ResizeFilter::MirroredLabels(_) => Self::SumToOne,
            ResizeFilter::Torchvision(_) => Self::Torchvision,
            ResizeFilter::Area
            | ResizeFilter::Cubic
            | ResizeFilter::SharpCubic
            | ResizeFilter::Lanczos3
            | ResizeFilter::Pillow(_) => Self::Pillow,
        }
    }
}

/// Fraction bits of wide coefficients, and the most of others. 255 x (sum of absolute coefficients)
/// stays within `i32`.
const MOST_PRECISION: u32 = 22;

/// A [`WeightTable`] in fixed point.
///
/// Coefficients are in units of 2^-[`precision`](Self::precision). Those of most filters
/// are wide: they have 22 fraction bits, as in Pillow. Others fit `i16`, with the
/// largest precision (at most 22) at which they do. Zeros at both ends of a row are removed, but
/// starts and ends never decrease from one output pixel to the next.
#[derive(Debug, Default, Clone)]
pub struct FixedTable {
    precision: u32,
    is_wide: bool,
    taps: usize,
    starts: Vec<u32>,
    sizes: Vec<u32>,
    coeffs: Vec<i32>,
    raw: Vec<i32>,
}

/// Never changes a value: larger ones were rejected before (`check_reduction`).
fn narrow(k: i32) -> i32 {
    k.clamp(i32::from(i16::MIN), i32::from(i16::MAX))
}

/// Half away from zero.
fn rounded(weight: f64, unit: f64) -> i32 {
    (weight * unit + if weight < 0.0 { -0.5 } else { 0.5 }) as i32
}

impl FixedTable {
    /// Quantises `table`.
    pub fn fill(&mut self, table: &mut WeightTable) {
        let window = table.window();
        let rounding = table.axis().map_or(WeightRounding::SumToOne, |axis| {
            WeightRounding::of(axis.filter)
        });
        self.is_wide = rounding == WeightRounding::Pillow;
        self.precision = match rounding {
            WeightRounding::Pillow => MOST_PRECISION,
            WeightRounding::Torchvision => precision_of_torchvision(table.largest()),
            WeightRounding::SumToOne => {
                // The maximum that the rounding errors of a row add to its largest coefficient.
                let error = (window as f64 / 2.0 + 1.0).min(4096.0);
                precision_within(table.largest(), f64::from(i16::MAX) - error)
            }
        };
        let one = 1i32 << self.precision;
        let unit = f64::from(one);

        let outputs = table.outputs();
        clear_with_capacity(&mut self.starts, outputs);
        clear_with_capacity(&mut self.sizes, outputs);
        clear_with_capacity(&mut self.raw, outputs * window);
        for o in 0..outputs {
            let (start, row) = table.row(o);
            let at = self.raw.len();
            let mut sum = 0i32;
            let (mut first, mut end) = (row.len() as u32, 0u32);
            let (mut peak, mut peak_value) = (0, 0i32);
            for (i, &w) in (0u32..).zip(row) {
                let k = rounded(w, unit);
                sum += k;
                if k != 0 {
                    first = first.min(i);
                    end = i + 1;
                }
                if k > peak_value {
                    (peak, peak_value) = (i, k);
                }
                self.raw.push(if self.is_wide { k } else { narrow(k) });
            }
            if rounding == WeightRounding::SumToOne && peak_value > 0 {
                self.raw[at + peak as usize] = narrow(peak_value + one - sum);
            }
            self.raw.resize(at + window, 0);
            let start = start as u32;
            self.starts.push(start + first.min(end));
            self.sizes.push(start + end); // the end, for now
        }
        // Starts and ends must not decrease: widen rows where they would.
        for i in 1..self.sizes.len() {
            self.sizes[i] = self.sizes[i].max(self.sizes[i - 1]);
        }
        for i in (1..self.starts.len()).rev() {
            self.starts[i - 1] = self.starts[i - 1].min(self.starts[i]);
        }
        self.taps = 0;
        for (start, end) in self.starts.iter().zip(&mut self.sizes) {
            *end -= *start;
            self.taps = self.taps.max(*end as usize);
        }
        self.taps = self.taps.next_multiple_of(2).max(2);

        clear_with_capacity(&mut self.coeffs, self.taps * outputs);
        self.coeffs.resize(self.taps * outputs, 0);
        for (o, (row, raw)) in self
            .coeffs
            .chunks_exact_mut(self.taps)
            .zip(self.raw.chunks_exact(window))
            .enumerate()
        {
            let skip = self.starts[o] as usize - table.row(o).0;
            let size = self.sizes[o] as usize;
            row[..size].copy_from_slice(&raw[skip..skip + size]);
        }
    }

    /// Allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.sizes.capacity()) * size_of::<u32>()
            + (self.coeffs.capacity() + self.raw.capacity()) * size_of::<i32>()
    }

    /// Fractional bits of the coefficients.
    pub fn precision(&self) -> u32 {
        self.precision
    }

    /// True if coefficients may need more than 16 bits. They have at most 24.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Slots per output pixel: the maximum number of weights, rounded up to an even number.
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// First input pixel of each output pixel; never decreasing.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// `taps` slots for each output pixel. Slots past its size are zero.
    pub fn coeffs(&self) -> &[i32] {
        &self.coeffs
    }

    /// First input pixel, number of input pixels, and all `taps` slots of output pixel `o`.
    pub fn row(&self, o: usize) -> (usize, usize, &[i32]) {
        (
            self.starts[o] as usize,
            self.sizes[o] as usize,
            &self.coeffs[o * self.taps..(o + 1) * self.taps],
        )
    }

    /// The range of input pixels that are read.
    pub fn span(&self) -> std::ops::Range<usize> {
        match (self.starts.first(), self.starts.last(), self.sizes.last()) {
            (Some(&first), Some(&last), Some(&size)) => first as usize..(last + size) as usize,
            _ => 0..0,
        }
    }
}

/// The most fraction bits at which `largest` is not above `limit`.
fn precision_within(largest: f64, limit: f64) -> u32 {
    let mut precision = MOST_PRECISION;
    while precision > 0 && largest * f64::from(1u32 << precision) > limit {
        precision -= 1;
    }
    precision
}

/// The most fraction bits at which `largest`, rounded, is below 2^15.
fn precision_of_torchvision(largest: f64) -> u32 {
    let fits = |precision: u32| rounded(largest, f64::from(1u32 << precision)) < 1 << 15;
    (1..=MOST_PRECISION)
        .take_while(|&precision| fits(precision))
        .last()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::values::LibraryFilter;
    use crate::recipe::weights::AxisGeometry;

    const FILTERS: [ResizeFilter; 9] = [
        ResizeFilter::Nearest,
        ResizeFilter::Area,
        ResizeFilter::Triangle,
        ResizeFilter::Cubic,
        ResizeFilter::SharpCubic,
        ResizeFilter::Lanczos3,
        ResizeFilter::Pillow(LibraryFilter::Bilinear),
        ResizeFilter::Torchvision(LibraryFilter::Bilinear),
        ResizeFilter::Torchvision(LibraryFilter::Bicubic),
    ];

    /// Source size, interval, and target size of an axis.
    const AXES: [(u32, f64, f64, u32); 10] = [
        (1, 0.0, 1.0, 7),
        (2, 0.0, 2.0, 9),
        (3, 0.2, 2.9, 1),
        (5, 0.0, 5.0, 11),
        (40, 0.0, 40.0, 39),
        (100, 13.7, 90.1, 24),
        (33, 0.0, 33.0, 100),
        (5000, 0.0, 5000.0, 3),
        (9, 4.0, 4.5, 64),
        (3, 0.0, 3.0, 5000),
    ];

    fn cases() -> impl Iterator<Item = AxisGeometry> {
        let of_filter = |filter| {
            AXES.into_iter()
                .flat_map(move |of| [true, false].map(|antialias| (filter, of, antialias)))
        };
        FILTERS.into_iter().flat_map(of_filter).map(
            |(filter, (in_size, in0, in1, out_size), antialias)| AxisGeometry {
                in_size,
                in0,
                in1,
                origin: 0,
                full_size: out_size,
                first: 0,
                out_size,
                filter,
                is_down: false,
                antialias,
            },
        )
    }

    fn table(axis: AxisGeometry) -> WeightTable {
        let mut table = WeightTable::default();
        assert!(table.prepare(axis));
        table
    }

    #[test]
    fn fixed_rows_hold_the_table_and_sum_to_one() {
        let mut fixed = FixedTable::default();
        for axis in cases() {
            let mut exact = table(axis);
            fixed.fill(&mut exact);
            let one = 1i64 << fixed.precision();
            let rounding = WeightRounding::of(axis.filter);
            let half_window = exact.window() as f64 / 2.0;
            // Rounding error of a coefficient, and of the sum of a row.
            let (near, of_sum) = match rounding {
                WeightRounding::SumToOne => (1.0 + half_window, 0),
                _ => (0.5, half_window.ceil() as i64),
            };
            assert_eq!(fixed.taps() % 2, 0);
            assert_eq!(fixed.is_wide(), rounding == WeightRounding::Pillow);
            for o in 0..axis.out_size as usize {
                let (from, weights) = exact.row(o);
                let (start, size, coeffs) = fixed.row(o);
                assert!(start >= from && start + size <= from + weights.len());
                let sum: i64 = coeffs.iter().map(|&k| i64::from(k)).sum();
                assert!((sum - one).abs() <= of_sum, "{axis:?} {o}: {sum}");
                assert!(coeffs[size..].iter().all(|&k| k == 0));
                for (i, w) in weights.iter().enumerate() {
                    let k = (from + i).checked_sub(start).filter(|&k| k < size);
                    let k = k.map_or(0.0, |k| f64::from(coeffs[k]));
                    assert!((w * one as f64 - k).abs() <= near, "{axis:?} {o} {i}");
                }
            }
            for w in fixed.starts().windows(2) {
                assert!(w[0] <= w[1]);
            }
            let ends = fixed.starts.iter().zip(&fixed.sizes);
            assert!(ends.map(|(a, b)| a + b).is_sorted());
            assert!(fixed.span().end <= axis.in_size as usize);
        }
    }

    /// Coefficients have the bits that the passes multiply by, and no sum of levels overflows.
    #[test]
    fn coefficients_have_their_bits_and_sums_fit() {
        let mut fixed = FixedTable::default();
        for axis in cases() {
            fixed.fill(&mut table(axis));
            for o in 0..axis.out_size as usize {
                let coeffs = fixed.row(o).2;
                let bits = if fixed.is_wide() { 23 } else { 15 };
                assert!(coeffs.iter().all(|k| (-(1 << bits)..1 << bits).contains(k)));
                let most: i64 = coeffs.iter().map(|&k| 255 * i64::from(k).abs()).sum();
                let half = 1i64 << fixed.precision() >> 1;
                assert!(most + half <= i64::from(i32::MAX), "{axis:?} {o}: {most}");
            }
        }
    }

    #[test]
    fn a_part_has_the_precision_of_the_whole() {
        let (mut of_all, mut of_part) = (FixedTable::default(), FixedTable::default());
        for whole in cases().filter(|axis| axis.out_size > 5) {
            let (first, out_size) = (whole.full_size - 3, 2);
            let part = AxisGeometry {
                first,
                out_size,
                ..whole
            };
            of_all.fill(&mut table(whole));
            of_part.fill(&mut table(part));
            assert_eq!(of_all.precision(), of_part.precision(), "{whole:?}");
            for o in 0..out_size as usize {
                let (all, part) = (of_all.row(o + first as usize), of_part.row(o));
                let used = |(_, _, coeffs): (usize, usize, &[i32])| {
                    let used = coeffs.iter().copied().filter(|&k| k != 0);
                    used.collect::<Vec<_>>()
                };
                assert_eq!(used(all), used(part), "{whole:?}");
            }
        }
    }

    /// Numbers of `normalize_coeffs_8bpc` and of `_compute_index_ranges_int16_weights`, for 4
    /// pixels that become 2, and 3 that become 4.
    #[test]
    fn coefficients_are_those_of_pillow_and_of_torchvision() {
        let coefficients = |filter, (from, to): (u32, u32), o| {
            let axis = AxisGeometry {
                in_size: from,
                in0: 0.0,
                in1: f64::from(from),
                origin: 0,
                full_size: to,
                first: 0,
                out_size: to,
                filter,
                is_down: false,
                antialias: true,
            };
            let mut fixed = FixedTable::default();
            fixed.fill(&mut table(axis));
            let (start, size, coeffs) = fixed.row(o);
            (fixed.precision(), start, coeffs[..size].to_vec())
        };
        let bicubic = LibraryFilter::Bicubic;
        let of_pillow = ResizeFilter::Pillow(bicubic);
        let of_tensors = ResizeFilter::Torchvision(bicubic);
        let row = vec![1_923_834, 1_923_834, 502_623, -155_987];
        assert_eq!(coefficients(of_pillow, (4, 2), 0), (22, 0, row));
        let row = vec![-294_268, 2_923_065, 1_565_507];
        assert_eq!(coefficients(of_pillow, (3, 4), 2), (22, 0, row));
        let row = vec![30_060, 30_060, 7_853, -2_437];
        assert_eq!(coefficients(of_tensors, (4, 2), 0), (16, 0, row));
        let row = vec![-1_149, 11_418, 6_115];
        assert_eq!(coefficients(of_tensors, (3, 4), 2), (14, 0, row));
    }
}
