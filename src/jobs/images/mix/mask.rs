//! Masks of low frequencies: FMix of Harris et al., "FMix: Enhancing mixed sample data
//! augmentation" (arXiv 2002.12047).
//!
//! Noise is the real part of a spectrum of normal numbers that decrease with a power of the
//! frequency. Its highest values become the mask. Known difference: the authors' code, and
//! PaddleClas' copy, confuse two axes of the spectrum, so that only two frequencies remain along a
//! row. This file follows the paper.
//!
//! The sum over the frequencies is written out, one axis after the other. With the paper's power
//! only few of them count. A fast transform would have to support every length, with the same bits
//! on every CPU.

use crate::jobs::images::mix::draw::normals;
use crate::jobs::images::mix::rows::RowShape;
use crate::order::PositionRandom;
use crate::recipe::MemoryLayout;
use crate::recipe::geometry::UniformSource;

/// Frequencies with an amplitude below this fraction of the largest are left out. With power 3 this
/// moves the edge of a mask by a tenth of a pixel.
const FAINT: f64 = 1e-4;

/// A mask and its work buffers.
#[derive(Debug, Default)]
pub(crate) struct MixMask {
    field: Vec<f32>,
    order: Vec<u32>,
    values: Vec<f32>,
}

/// Bytes for rows of this number of pixels, with at most three channels.
pub(crate) fn bytes(pixels: u64) -> u64 {
    pixels.saturating_mul(4 + 4 + 3 * 4)
}

impl MixMask {
    /// The weight of each element's own value. For planar rows: of one plane, the same for all
    /// planes.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Draws a mask whose mean is `keep` to within a pixel.
    pub(crate) fn draw(
        &mut self,
        keep: f64,
        decay_power: f64,
        max_soft: f64,
        shape: RowShape,
        random: &mut PositionRandom,
    ) {
        let (height, width) = (shape.height, shape.width);
        noise(height, width, decay_power, random, &mut self.field);
        let up = random.next_f64() > 0.5;
        let channels = match shape.layout {
            MemoryLayout::Nchw => 1,
            MemoryLayout::Nhwc => shape.channels,
        };
        self.threshold(keep, max_soft, up, channels);
    }

    /// The highest values of the field become 1, the lowest 0. In between, weights decrease evenly
    /// by rank.
    fn threshold(&mut self, keep: f64, max_soft: f64, up: bool, channels: usize) {
        let field = &self.field;
        let pixels = field.len();
        let part = keep * pixels as f64;
        let middle = if up { part.ceil() } else { part.floor() } as usize;
        let soft = (pixels as f64 * max_soft.min(keep).min(1.0 - keep)) as usize;
        let low = middle.saturating_sub(soft);
        let high = (middle + soft).min(pixels);

        // Ties go to the lower index, so that the order is unique.
        let higher = |a: &u32, b: &u32| {
            let by_value = field[*b as usize].total_cmp(&field[*a as usize]);
            by_value.then(a.cmp(b))
        };
        let order = &mut self.order;
        order.clear();
        order.extend(0..pixels as u32);
        if high < pixels {
            order.select_nth_unstable_by(high, higher);
        }
        if low < high {
            order[..high].select_nth_unstable_by(low, higher);
            order[low..high].sort_unstable_by(higher);
        }
        let values = &mut self.values;
        values.clear();
        values.resize(pixels * channels, 0.0);
        // The divisor that makes the last weight exactly 0.
        let slope = high.saturating_sub(low + 1).max(1) as f64;
        for (rank, place) in order[..high].iter().enumerate() {
            let value = match rank.checked_sub(low) {
                None => 1.0,
                Some(below) => (1.0 - below as f64 / slope) as f32,
            };
            let at = *place as usize * channels;
            values[at..at + channels].fill(value);
        }
    }
}

/// Noise with the period of the row on both axes. Its mean is left out, since it does not affect
/// the order of values.
pub(crate) fn noise(
    height: usize,
    width: usize,
    decay_power: f64,
    random: &mut PositionRandom,
    field: &mut Vec<f32>,
) {
    field.clear();
    field.resize(height * width, 0.0);
    let lowest = 1.0 / height.max(width) as f64;
    let reach = lowest * libm::pow(1.0 / FAINT, 1.0 / decay_power);
    let most = |length: usize| ((reach * length as f64) as usize).min(length / 2);
    let (most_x, most_y) = (most(width), most(height));
    let turns = roots(height);
    let around = roots(width);
    let (mut even, mut odd) = (vec![0f64; height], vec![0f64; height]);
    let (mut cosines, mut sines) = (vec![0f32; width], vec![0f32; width]);
    for kx in 0..=most_x {
        // One of two opposite frequencies: their sum equals a single one.
        let first = if kx == 0 { 1 } else { -(most_y as i64) };
        even.fill(0.0);
        odd.fill(0.0);
        for ky in first..=most_y as i64 {
            let (fx, fy) = (kx as f64 / width as f64, ky as f64 / height as f64);
            let frequency = (fx * fx + fy * fy).sqrt();
            if frequency > reach {
                continue;
            }
            let amplitude = libm::pow(frequency.max(lowest) / lowest, -decay_power);
            let (a, b) = normals(random);
            let (a, b) = (a * amplitude, b * amplitude);
            let step = ky.rem_euclid(height as i64) as usize;
            let mut angle = 0;
            for (even, odd) in even.iter_mut().zip(&mut odd) {
                let (sin, cos) = turns[angle];
                *even += a * cos + b * sin;
                *odd += b * cos - a * sin;
                angle = (angle + step) % height;
            }
        }
        for (x, (cosine, sine)) in cosines.iter_mut().zip(&mut sines).enumerate() {
            let (sin, cos) = around[x * kx % width];
            (*cosine, *sine) = (cos as f32, sin as f32);
        }
        for ((line, even), odd) in field.chunks_exact_mut(width).zip(&even).zip(&odd) {
            let (even, odd) = (*even as f32, *odd as f32);
            for ((value, cosine), sine) in line.iter_mut().zip(&cosines).zip(&sines) {
                *value += even * cosine + odd * sine;
            }
        }
    }
}

/// Sine and cosine of every n-th of a circle.
fn roots(n: usize) -> Vec<(f64, f64)> {
    (0..n)
        .map(|i| libm::sincos(std::f64::consts::TAU * i as f64 / n as f64))
        .collect()
}
