//! Motions against the pixels that the canvas moves: each output pixel of a ramp shows the place
//! that it comes from.

use super::{
    CaseNumbers, LINEAR, affine, crop, elastic, pad, perspective, resize, rotate, size,
    tensor_affine,
};
use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
use crate::pixels::resample::ImageResampler;
use crate::recipe::geometry::rotated_size;
use crate::recipe::{AugmentStep, OpencvFilter, PixelPlacement, RotationStyle, Size, Step};
use crate::sys::cpu::CpuLevel;
use crate::targets::{SampleMotion, StepMotion};

/// Levels of a pixel's width and height. The ramp begins above the fill, which is 0.
const SLOPE: f64 = 6.0;
const FIRST: f64 = 20.0;

/// Red shows the column, green the row.
fn ramp(of: Size) -> Vec<u8> {
    let level = |at: u32| (FIRST + SLOPE * f64::from(at)) as u8;
    let pixels = (0..of.height).flat_map(|y| (0..of.width).map(move |x| [level(x), level(y), 200]));
    pixels.collect::<Vec<_>>().into_flattened()
}

/// The upright pixels after the steps.
fn moved(pixels: &[u8], of: Size, steps: &[Step]) -> (Vec<[u8; 3]>, Size) {
    let mut resampler = ImageResampler::new(CpuLevel::Scalar);
    let mut canvas = PictureCanvas::default();
    let placement = PixelPlacement::default();
    let to = canvas.begin(of.width as usize, of.height as usize, placement);
    to.copy_from_slice(pixels);
    let mut done = 0;
    while done < steps.len() {
        done += canvas.apply(steps[done..].iter(), false, &mut resampler);
    }
    let (CanvasPixels::Bytes(view), placement) = canvas.pixels() else {
        panic!("not in bytes");
    };
    let stored: Vec<Vec<[u8; 3]>> = view.rows().map(<[_]>::to_vec).collect();
    let (width, height) = placement.output_size(view.width, view.height);
    let mut upright = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (mut sy, mut sx) = if placement.transpose { (x, y) } else { (y, x) };
            if placement.flip_x {
                sx = view.width - 1 - sx;
            }
            if placement.flip_y {
                sy = view.height - 1 - sy;
            }
            upright.push(stored[sy][sx]);
        }
    }
    (upright, size(height as u32, width as u32))
}

/// Compares the places that the ramp shows with those of the motion. Returns the compared pixels.
fn compare(of: Size, steps: &[Step], within: f64) -> usize {
    let (pixels, to) = moved(&ramp(of), of, steps);
    let motion = SampleMotion::of(of, steps.iter().enumerate());
    assert_eq!(motion.output(), to, "{steps:?}");
    let path = motion.path();
    let mut compared = 0;
    for (at, pixel) in pixels.iter().enumerate() {
        let (x, y) = (at as u32 % to.width, at as u32 / to.width);
        // A mixture with the fill shows no place.
        if pixel[2] < 199 {
            continue;
        }
        let place = |level: u8| (f64::from(level) - FIRST) / SLOPE + 0.5;
        let source = [place(pixel[0]), place(pixel[1])];
        // Beyond the outer centres the ramp is flat.
        let inside = |v: f64, n: u32| v > 1.1 && v < f64::from(n) - 1.1;
        if !inside(source[0], of.width) || !inside(source[1], of.height) {
            continue;
        }
        // So it is beyond the outer centres of each picture between the steps.
        let mut at = source;
        let shows = motion.steps().iter().all(|step| {
            if let Some(matrix) = step.matrix() {
                at = matrix.map(at);
            }
            inside_by_two(at, step.after)
        });
        if steps.len() > 1 && !shows {
            continue;
        }
        let [gx, gy] = path.map(source);
        let off = (gx - f64::from(x) - 0.5).hypot(gy - f64::from(y) - 0.5);
        assert!(
            off < within,
            "{steps:?} of {of}: pixel ({x}, {y}) shows {source:?}, which goes to ({gx}, {gy})"
        );
        compared += 1;
    }
    compared
}

fn inside_by_two([x, y]: [f64; 2], of: Size) -> bool {
    let inside = |v: f64, n: u32| v > 2.0 && v < f64::from(n) - 2.0;
    inside(x, of.width) && inside(y, of.height)
}

const SIZES: [(u32, u32); 4] = [(23, 31), (32, 17), (29, 29), (16, 24)];

/// Half a level is a twelfth of a pixel, and a picture may be enlarged.
const CLOSE: f64 = 0.3;

#[test]
fn every_step_moves_points_as_pixels() {
    for (h, w) in SIZES {
        let of = size(h, w);
        let turned = |degrees: f64| {
            let (w, h) = rotated_size(w, h, degrees);
            size(h, w)
        };
        let mut steps = vec![
            crop(3, 5, w - 7, h - 6),
            pad(3, 1, 2, 4),
            resize(h * 2 - 1, w + 3),
            resize(h - 4, w - 2),
            Step::Mirror,
            Step::UpsideDown,
            affine([0.9, 0.2, 1.5, -0.15, 1.1, 2.25]),
            tensor_affine([0.9, 0.2, 1.5, -0.15, 1.1, 2.25]),
            perspective([0.9, 0.1, 1.0, 0.05, 0.95, 0.5, 0.004, -0.003]),
            elastic(5, [30.0, 20.0], [4.0, 4.0]),
            elastic(6, [0.0, 0.0], [4.0, 4.0]),
        ];
        steps.extend((1..4).map(Step::Turn));
        for degrees in [0.0, 12.5, -33.0, 90.0, 180.0, 270.0, 141.7] {
            steps.push(rotate(degrees, of, RotationStyle::Tensor));
            steps.push(rotate(degrees, turned(degrees), RotationStyle::Tensor));
            steps.push(rotate(degrees, of, RotationStyle::Opencv));
            steps.push(Step::Augment(AugmentStep::Rotate {
                degrees,
                interpolation: LINEAR,
                fill: [0; 3],
            }));
        }
        for filter in [OpencvFilter::Linear, OpencvFilter::Cubic] {
            let to = size(h + 9, w * 2 - 5);
            steps.push(Step::Augment(AugmentStep::Resample { size: to, filter }));
        }
        for step in steps {
            let compared = compare(of, &[step], CLOSE);
            assert!(compared > 40, "{step:?} of {of}: {compared}");
        }
    }
}

#[test]
fn half_a_pixel_would_be_found() {
    let of = size(23, 31);
    // The same rotation in the other library's convention.
    let (pixels, _) = moved(&ramp(of), of, &[rotate(30.0, of, RotationStyle::Opencv)]);
    let wrong = StepMotion::of(0, &rotate(30.0, of, RotationStyle::Tensor), of);
    let matrix = wrong.matrix().unwrap();
    let mut most = 0.0f64;
    for (at, pixel) in pixels.iter().enumerate() {
        let (x, y) = (at as u32 % of.width, at as u32 / of.width);
        let source = [pixel[0], pixel[1]].map(|v| (f64::from(v) - FIRST) / SLOPE + 0.5);
        if pixel[2] == 200 && source.iter().all(|v| *v > 2.0) {
            let [gx, gy] = matrix.map(source);
            most = most.max((gx - f64::from(x) - 0.5).hypot(gy - f64::from(y) - 0.5));
        }
    }
    assert!(most > CLOSE, "{most}");
}

#[test]
fn chains_of_steps_move_points_as_pixels() {
    let mut numbers = CaseNumbers::new(3);
    let mut compared = 0;
    for _ in 0..300 {
        let of = size(numbers.whole(19, 33), numbers.whole(19, 33));
        let mut at = of;
        let mut steps = Vec::new();
        for _ in 0..numbers.whole(2, 4) {
            let (w, h) = (at.width, at.height);
            let step = match numbers.whole(0, 7) {
                0 => {
                    let (cw, ch) = (numbers.whole(w - 5, w), numbers.whole(h - 5, h));
                    crop(numbers.whole(0, w - cw), numbers.whole(0, h - ch), cw, ch)
                }
                1 => pad(numbers.whole(0, 3), numbers.whole(0, 3), 1, 2),
                2 => resize(h + numbers.whole(0, 6), w + numbers.whole(0, 6)),
                3 => Step::Mirror,
                4 => Step::UpsideDown,
                5 => Step::Turn(numbers.whole(1, 3) as u8),
                6 => rotate(numbers.between(-20.0, 20.0), at, RotationStyle::Tensor),
                _ => affine([1.05, 0.1, numbers.between(-2.0, 2.0), -0.1, 1.02, 1.0]),
            };
            steps.push(step);
            at = StepMotion::of(0, &step, at).after;
        }
        // Each step rounds to whole levels, and mixes pixels.
        compared += compare(of, &steps, 0.6);
    }
    assert!(compared > 20_000, "{compared}");
}

/// A dot in a black picture, moved with the nearest pixel, is where its centre goes.
#[test]
fn a_dot_goes_where_the_motion_says() {
    let of = size(21, 27);
    let nearest = |step: Step| match step {
        Step::Rotate {
            degrees,
            size,
            fill,
            style,
            ..
        } => Step::Rotate {
            degrees,
            interpolation: crate::recipe::InterpolationMode::Nearest,
            size,
            fill,
            style,
        },
        step => step,
    };
    let mut seen = 0;
    for degrees in [0.0, 7.0, -20.0, 45.0, 90.0] {
        for style in [RotationStyle::Tensor, RotationStyle::Opencv] {
            let steps = [
                nearest(rotate(degrees, of, style)),
                Step::Mirror,
                crop(2, 1, 20, 18),
            ];
            for (x, y) in [(13, 10), (9, 8), (15, 13), (11, 12)] {
                let mut pixels = vec![0; 21 * 27 * 3];
                pixels[3 * (y * 27 + x)..][..3].fill(255);
                let (out, to) = moved(&pixels, of, &steps);
                let dots: Vec<(f64, f64)> = (0..out.len())
                    .filter(|at| out[*at] == [255; 3])
                    .map(|at| {
                        let (x, y) = (at % to.width as usize, at / to.width as usize);
                        (x as f64 + 0.5, y as f64 + 0.5)
                    })
                    .collect();
                let motion = SampleMotion::of(of, steps.iter().enumerate());
                let [gx, gy] = motion.path().map([x as f64 + 0.5, y as f64 + 0.5]);
                for (dx, dy) in dots {
                    // A pixel shows the dot if its centre's source lies within it.
                    let off = (dx - gx).hypot(dy - gy);
                    assert!(
                        off < 0.75,
                        "{degrees} {style:?}: ({dx}, {dy}), ({gx}, {gy})"
                    );
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn copies_that_are_mixed_move_no_objects() {
    let of = size(20, 30);
    let steps = [
        Step::Mirror,
        Step::Augment(AugmentStep::Keep),
        affine([1.0, 0.0, 4.0, 0.0, 1.0, 0.0]),
        Step::Augment(AugmentStep::Add { weight: 0.5 }),
        Step::UpsideDown,
        Step::Augment(AugmentStep::Add { weight: 0.5 }),
        Step::Augment(AugmentStep::Blend { by: 0.5 }),
        crop(1, 0, 20, 20),
    ];
    let motion = SampleMotion::of(of, steps.iter().enumerate());
    assert_eq!(motion.path().map([3.0, 5.0]), [26.0, 5.0]);
    assert!(motion.is_mirrored());
    assert_eq!(motion.mirrors(), 1);
}

#[test]
fn places_that_no_output_shows_are_not_numbers() {
    let of = size(20, 30);
    // A zoom of 0 has no inverse.
    let infinite = affine([f64::INFINITY, 0.0, 0.0, 0.0, f64::INFINITY, 0.0]);
    for step in [affine([0.0; 6]), infinite, affine([f64::NAN; 6])] {
        let motion = SampleMotion::of(of, [(0, &step)]);
        assert!(motion.path().map([3.0, 5.0])[0].is_nan(), "{step:?}");
    }
    // The horizon of this perspective is a line of the source.
    let step = perspective([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.1, 0.0]);
    let matrix = *StepMotion::of(0, &step, of).matrix().unwrap();
    assert!(matrix.map([2.0, 5.0])[0].is_finite());
    assert!(matrix.map([11.0, 5.0])[0].is_nan());
}
