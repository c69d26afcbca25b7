//! The distance of a row's elements from the expected ones, in levels. For tests.
//!
//! Hue cannot be compared by itself: it jumps from 360 to 0, and of a pixel that is
//! nearly grey the last bit of a level turns it anywhere. So `hsv` is compared by
//! the levels that it stands for. From three numbers in their ranges to levels the
//! way back is one to one but for the hue of greys, and it is as well-conditioned as
//! levels are: hue by 1 degree is `s * v * 255 / 60` levels.

use crate::recipe::{ColorSpace, MemoryLayout, OutputFormat};

/// The largest distance of an element of a row in `f32` from the expected one, before it
/// is normalised: levels, and units of the other colour spaces. `space` is the one
/// that the pixels were converted to.
pub(crate) fn largest_distance(
    made: &[f32],
    wanted: &[f32],
    emission: &OutputFormat,
    space: Option<ColorSpace>,
) -> f64 {
    assert_eq!(made.len(), wanted.len());
    let channels = emission.channels();
    let pixels = made.len() / channels;
    let value = |row: &[f32], pixel: usize, c: usize| {
        let element = row[match emission.layout {
            MemoryLayout::Nchw => c * pixels + pixel,
            MemoryLayout::Nhwc => pixel * channels + c,
        }];
        let scaled = f64::from(element) * f64::from(emission.std[c]) + f64::from(emission.mean[c]);
        scaled * f64::from(emission.unit)
    };
    let mut worst = 0.0;
    for pixel in 0..pixels {
        let mut off = 0.0;
        if space == Some(ColorSpace::Hsv) {
            let [made, wanted] = [made, wanted].map(|row| [0, 1, 2].map(|c| value(row, pixel, c)));
            off = hsv_apart(made, wanted);
        } else {
            for c in 0..channels {
                off = farther(off, value(made, pixel, c) - value(wanted, pixel, c));
            }
        }
        worst = farther(worst, off);
    }
    worst
}

/// The larger distance; what is no number is farther than anything.
fn farther(than: f64, off: f64) -> f64 {
    match off.is_nan() {
        true => f64::INFINITY,
        false => than.max(off.abs()),
    }
}

/// Levels between the colours that two pixels in `hsv` stand for; far more than there
/// are where `made` is not in the ranges of `hsv`.
fn hsv_apart(made: [f64; 3], wanted: [f64; 3]) -> f64 {
    let [h, s, v] = made;
    // A channel is at most by a rounding larger than the largest.
    let unit = 0.0..=1.0 + 1e-6;
    if !(0.0..360.0).contains(&h) || !unit.contains(&s) || !unit.contains(&v) {
        return f64::INFINITY;
    }
    let (a, b) = (levels(made), levels(wanted));
    (0..3).fold(0.0, |worst, c| farther(worst, a[c] - b[c]))
}

/// The levels of a pixel in `hsv`: each channel falls from the largest by how far
/// the hue is from it.
fn levels([h, s, v]: [f64; 3]) -> [f64; 3] {
    [0.0, 120.0, 240.0].map(|channel| {
        let around = (h - channel).rem_euclid(360.0);
        let away = around.min(360.0 - around);
        let lacks = (away / 60.0 - 1.0).clamp(0.0, 1.0);
        255.0 * v * (1.0 - s * lacks)
    })
}

#[test]
fn hsv_stands_for_levels_and_is_told_apart_where_they_are() {
    // Corners of the circle, by definition.
    for (hue, want) in [
        (0.0, [255.0, 0.0, 0.0]),
        (60.0, [255.0, 255.0, 0.0]),
        (120.0, [0.0, 255.0, 0.0]),
        (180.0, [0.0, 255.0, 255.0]),
        (240.0, [0.0, 0.0, 255.0]),
        (300.0, [255.0, 0.0, 255.0]),
        (330.0, [255.0, 0.0, 127.5]),
    ] {
        assert_eq!(levels([hue, 1.0, 1.0]), want);
    }
    assert_eq!(levels([77.0, 0.0, 0.5]), [127.5; 3]);
    let distance = |a, b| hsv_apart(a, b);
    // Across the seam, and of nearly grey pixels: the same colour.
    assert!(distance([359.9999, 0.5, 0.8], [0.0001, 0.5, 0.8]) < 2e-3);
    assert!(distance([10.0, 1e-6, 0.8], [200.0, 1e-6, 0.8]) < 1e-3);
    // Others: by a degree, a hundredth, and on the other side of a sector's edge.
    assert!(distance([40.0, 0.5, 0.8], [41.0, 0.5, 0.8]) > 1.6);
    assert!(distance([40.0, 0.5, 0.8], [40.0, 0.51, 0.8]) > 2.0);
    assert!(distance([40.0, 0.5, 0.8], [40.0, 0.5, 0.81]) > 2.5);
    assert!(distance([59.0, 0.5, 0.8], [61.0, 0.5, 0.8]) > 1.6);
    for wrong in [[360.0, 0.5, 0.5], [-0.1, 0.5, 0.5], [1.0, 1.1, 0.5]] {
        assert_eq!(distance(wrong, wrong), f64::INFINITY);
    }
    assert_eq!(
        distance([1.0, 0.5, f64::NAN], [1.0, 0.5, 0.5]),
        f64::INFINITY
    );
}
