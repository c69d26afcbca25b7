//! OpenCV's `resize` of bytes, with each of its filters. It does not antialias, except `INTER_AREA`
//! where both sides shrink.
//!
//! OpenCV rounds weights to 11 bits. These are not rounded, so results may differ by one level.

use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::recipe::OpencvFilter;

/// Fills `out`, which is tight, upright and of this width and height.
pub(crate) fn resize(
    src: &OrientedPixels<'_, u8>,
    (width, height): (usize, usize),
    filter: OpencvFilter,
    out: &mut [RgbPixel<u8>],
) {
    let shrinks = width <= src.width && height <= src.height;
    let across = OpencvAxis::new(src.width, width, filter, shrinks);
    let down = OpencvAxis::new(src.height, height, filter, shrinks);
    for (y, row) in out.chunks_exact_mut(width.max(1)).enumerate() {
        let rows = down.taps(y);
        for (x, to) in row.iter_mut().enumerate() {
            let columns = across.taps(x);
            let mut sum = [0.0f32; 3];
            for j in 0..rows.count {
                for i in 0..columns.count {
                    let weight = rows.weight(j) * columns.weight(i);
                    let pixel = src.pixel(
                        across.inside(columns.first + i as i64),
                        down.inside(rows.first + j as i64),
                    );
                    for (sum, level) in sum.iter_mut().zip(pixel) {
                        *sum += weight * f32::from(level);
                    }
                }
            }
            // Filters with negative weights can exceed 0 to 255; the cast clamps.
            *to = sum.map(|v| (v + 0.5).floor() as u8);
        }
    }
}

/// One axis: pixels of the source and of the result.
struct OpencvAxis {
    from: usize,
    /// Source pixels per result pixel.
    scale: f64,
    inverse: f64,
    filter: OpencvFilter,
    shrinks: bool,
}

/// How a result pixel is computed from source pixels.
struct Taps {
    first: i64,
    count: usize,
    weights: TapWeights,
}

enum TapWeights {
    Few([f32; 8]),
    /// The overlap of each source pixel with the interval `from` to `to`, divided by its length.
    Overlap {
        first: f64,
        from: f64,
        to: f64,
    },
}

impl OpencvAxis {
    fn new(from: usize, to: usize, filter: OpencvFilter, shrinks: bool) -> Self {
        let inverse = to as f64 / from as f64;
        Self {
            from,
            scale: 1.0 / inverse,
            inverse,
            filter,
            shrinks,
        }
    }

    /// The pixel at a place. Places beyond an edge use the edge.
    fn inside(&self, at: i64) -> usize {
        at.clamp(0, self.from as i64 - 1) as usize
    }

    fn taps(&self, at: usize) -> Taps {
        let at = at as f64;
        match self.filter {
            OpencvFilter::Nearest => few((at * self.scale).floor(), &[1.0]),
            OpencvFilter::Area if self.shrinks => {
                let from = at * self.scale;
                let to = (from + self.scale).min(self.from as f64);
                let (first, end) = (from.floor(), to.ceil());
                Taps {
                    first: first as i64,
                    count: (end - first) as usize,
                    weights: TapWeights::Overlap { first, from, to },
                }
            }
            // As OpenCV enlarges with `INTER_AREA`.
            OpencvFilter::Area => {
                let first = (at * self.scale).floor();
                let part = ((at + 1.0) - (first + 1.0) * self.inverse) as f32;
                let part = if part <= 0.0 {
                    0.0
                } else {
                    part - part.floor()
                };
                self.linear(first, part)
            }
            filter => {
                let place = ((at + 0.5) * self.scale - 0.5) as f32;
                let (first, part) = (f64::from(place.floor()), place - place.floor());
                match filter {
                    OpencvFilter::Cubic => few(first - 1.0, &cubic(part)),
                    OpencvFilter::Lanczos4 => few(first - 3.0, &lanczos4(part)),
                    _ => self.linear(first, part),
                }
            }
        }
    }

    fn linear(&self, first: f64, part: f32) -> Taps {
        match first {
            _ if first < 0.0 => few(0.0, &[1.0]),
            _ if first + 1.0 >= self.from as f64 => few(self.from as f64 - 1.0, &[1.0]),
            _ => few(first, &[1.0 - part, part]),
        }
    }
}

impl Taps {
    fn weight(&self, i: usize) -> f32 {
        match self.weights {
            TapWeights::Few(weights) => weights[i],
            TapWeights::Overlap { first, from, to } => {
                let left = first + i as f64;
                let part = (left + 1.0).min(to) - left.max(from);
                (part / (to - from)) as f32
            }
        }
    }
}

fn few(first: f64, weights: &[f32]) -> Taps {
    let mut all = [0.0; 8];
    all[..weights.len()].copy_from_slice(weights);
    Taps {
        first: first as i64,
        count: weights.len(),
        weights: TapWeights::Few(all),
    }
}

/// Cubic convolution with a = -0.75.
fn cubic(x: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let first = ((A * (x + 1.0) - 5.0 * A) * (x + 1.0) + 8.0 * A) * (x + 1.0) - 4.0 * A;
    let second = ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let y = 1.0 - x;
    let third = ((A + 2.0) * y - (A + 3.0)) * y * y + 1.0;
    [first, second, third, 1.0 - first - second - third]
}

/// Lanczos: a sinc windowed by a sinc, four lobes.
fn lanczos4(x: f32) -> [f32; 8] {
    let sinc = |v: f64| match v.abs() < 1e-6 {
        true => 1.0,
        false => (std::f64::consts::PI * v).sin() / (std::f64::consts::PI * v),
    };
    let at = |i: usize| f64::from(x) + 3.0 - i as f64;
    let all: [f64; 8] = std::array::from_fn(|i| sinc(at(i)) * sinc(at(i) / 4.0));
    let sum: f64 = all.iter().sum();
    all.map(|v: f64| (v / sum) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixels::pixel_view::PixelView;
    use crate::recipe::PixelPlacement;

    /// The input is 6 wide and 5 high, with levels `37 i % 251`. OpenCV 4 resizes it to 3 x 3
    /// pixels, and that to 6 x 5 again.
    const GOLDENS: [(OpencvFilter, [u8; 9], [u8; 30]); 5] = [
        (
            OpencvFilter::Nearest,
            [0, 74, 148, 222, 45, 119, 164, 238, 61],
            [
                0, 0, 74, 74, 148, 148, 0, 0, 74, 74, 148, 148, 222, 222, 45, 45, 119, 119, 222,
                222, 45, 45, 119, 119, 164, 164, 238, 238, 61, 61,
            ],
        ),
        (
            OpencvFilter::Linear,
            [51, 83, 157, 212, 35, 109, 163, 195, 60],
            [
                51, 59, 75, 101, 138, 157, 115, 102, 77, 82, 119, 138, 212, 168, 79, 54, 91, 109,
                183, 170, 144, 118, 92, 80, 163, 171, 187, 161, 94, 60,
            ],
        ),
        (
            OpencvFilter::Area,
            [57, 81, 155, 186, 60, 109, 165, 189, 62],
            [
                57, 57, 81, 81, 155, 155, 100, 100, 74, 74, 140, 140, 186, 186, 60, 60, 109, 109,
                172, 172, 146, 146, 78, 78, 165, 165, 189, 189, 62, 62,
            ],
        ),
        (
            OpencvFilter::Cubic,
            [39, 86, 162, 232, 11, 112, 156, 220, 45],
            [
                13, 34, 69, 118, 153, 175, 128, 98, 48, 58, 121, 159, 255, 178, 50, 11, 81, 123,
                206, 187, 155, 112, 80, 60, 139, 176, 241, 204, 87, 17,
            ],
        ),
        (
            OpencvFilter::Lanczos4,
            [32, 97, 163, 238, 5, 108, 148, 231, 45],
            [
                0, 28, 85, 137, 162, 168, 134, 95, 44, 54, 119, 164, 255, 181, 44, 1, 71, 129, 208,
                193, 158, 112, 75, 58, 109, 173, 253, 223, 96, 11,
            ],
        ),
    ];

    fn resized(
        pixels: &[RgbPixel<u8>],
        from: (usize, usize),
        to: (usize, usize),
        filter: OpencvFilter,
    ) -> Vec<RgbPixel<u8>> {
        let view = PixelView {
            pixels,
            width: from.0,
            height: from.1,
            stride: from.0,
        };
        let mut out = vec![[0; 3]; to.0 * to.1];
        let picture = OrientedPixels::new(view, PixelPlacement::default());
        resize(&picture, to, filter, &mut out);
        out
    }

    #[test]
    fn every_filter_is_opencvs_within_a_level() {
        let picture: Vec<RgbPixel<u8>> = (0..30u32).map(|i| [(37 * i % 251) as u8; 3]).collect();
        for (filter, small, large) in GOLDENS {
            let close = |made: &[RgbPixel<u8>], want: &[u8]| {
                for (made, want) in made.iter().zip(want) {
                    assert!(
                        made[0].abs_diff(*want) <= 1 && made[1] == made[2],
                        "{filter:?} {made:?} {want}"
                    );
                }
            };
            close(&resized(&picture, (6, 5), (3, 3), filter), &small);
            let small: Vec<RgbPixel<u8>> = small.iter().map(|v| [*v; 3]).collect();
            close(&resized(&small, (3, 3), (6, 5), filter), &large);
        }
    }
}
