//! The plain form against bilinear values in doubles, and AVX2 against the plain form.

use super::*;

const FILL: RgbPixel<u8> = [114, 3, 250];

/// Sizes of images: width and height, with edges everywhere, with whole groups inside, and
/// with more columns than are computed together.
const SIZES: [(usize, usize); 9] = [
    (1, 1),
    (2, 1),
    (1, 5),
    (3, 2),
    (8, 9),
    (23, 17),
    (131, 40),
    (300, 37),
    (1100, 5),
];

/// Zooms, shifts, turns and shears, whole places, mirrors, and places that are nowhere.
fn matrices((width, height): (usize, usize)) -> Vec<[f64; 6]> {
    let (w, h) = (width as f64, height as f64);
    let mut all = vec![
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 3.0, 0.0, 1.0, -2.0],
        [-1.0, 0.0, w, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, -1.0, h],
        [0.0, 1.0, 0.0, -1.0, 0.0, h],
        [1.0, 1e-9, 0.2, 0.0, 1.0, 0.3],
        [0.0, 0.0, w / 2.0, 0.0, 0.0, h / 2.0],
        [1e300, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, f64::NAN, 0.0, 1.0, 0.0],
        [f64::INFINITY, 0.0, 0.0, 0.0, f64::NEG_INFINITY, 0.0],
        [1.0, 0.0, 65_535.0, 0.0, 1.0, -65_537.0],
    ];
    for zoom in [0.03, 0.5, 0.777, 1.31, 1.999, 2.2, 9.7] {
        for turn in [0.0, 0.001, -0.4, 2.9] {
            for shift in [0.0, 0.41, -7.3] {
                let (a, d) = (zoom * f64::cos(turn), zoom * f64::sin(turn));
                let (c, f) = (w * (1.0 - a) / 2.0 + shift, h * (1.0 - a) / 2.0 - shift);
                all.push([a, d + turn / 50.0, c, -d, a, f]);
            }
        }
    }
    all
}

/// An image within a larger one, whose pixels nothing may read.
fn pixels((width, height): (usize, usize), stride: usize) -> Vec<RgbPixel<u8>> {
    let level = |n: usize| (n.wrapping_mul(2_654_435_761) >> 7) as u8;
    let mut pixels: Vec<_> = (0..stride * height)
        .map(|n| [level(3 * n), level(3 * n + 1), level(3 * n + 2)])
        .collect();
    pixels.truncate(stride * (height - 1) + width);
    pixels
}

fn view(
    pixels: &[RgbPixel<u8>],
    (width, height): (usize, usize),
    stride: usize,
) -> PixelView<'_, u8> {
    PixelView {
        pixels,
        width,
        height,
        stride,
    }
}

fn made(src: PixelView<'_, u8>, matrix: [f64; 6], shown: PixelRect, cpu: CpuLevel) -> Vec<u8> {
    let mut out = vec![[9; 3]; src.width * src.height];
    let settings = WarpSettings {
        matrix,
        fill: FILL,
        shown,
        cpu,
    };
    affine(src, settings, &mut out);
    out.into_flattened()
}

fn whole(src: PixelView<'_, u8>) -> PixelRect {
    PixelRect::whole((src.height as u32, src.width as u32))
}

/// Levels in doubles: pixels outside have the fill.
fn exact(src: PixelView<'_, u8>, [a, b, c, d, e, f]: [f64; 6], (x, y): (usize, usize)) -> [f64; 3] {
    let (x, y) = (x as f64 + 0.5, y as f64 + 0.5);
    let (right, down) = (a * x + b * y + c - 0.5, d * x + e * y + f - 0.5);
    let tap = |x: f64, y: f64| {
        let is_inside = x >= 0.0 && y >= 0.0 && x < src.width as f64 && y < src.height as f64;
        let pixel = match is_inside {
            true => src.pixels[y as usize * src.stride + x as usize],
            false => FILL,
        };
        pixel.map(f64::from)
    };
    let (left, top) = (right.floor(), down.floor());
    let (u, v) = (right - left, down - top);
    std::array::from_fn(|c| {
        let line = |y| tap(left, y)[c] * (1.0 - u) + tap(left + 1.0, y)[c] * u;
        line(top) * (1.0 - v) + line(top + 1.0) * v
    })
}

#[test]
fn levels_are_those_of_doubles_but_for_rounding() {
    for size in SIZES {
        let stride = size.0 + 5;
        let pixels = pixels(size, stride);
        let src = view(&pixels, size, stride);
        let finite = |m: &[f64; 6]| m.iter().all(|v| v.abs() < 1e6);
        for matrix in matrices(size).into_iter().filter(finite) {
            let got = made(src, matrix, whole(src), CpuLevel::Scalar);
            for (n, got) in got.as_chunks::<3>().0.iter().enumerate() {
                let want = exact(src, matrix, (n % size.0, n / size.0));
                for (got, want) in got.iter().zip(want) {
                    let off = (f64::from(*got) - want).abs();
                    // Half a level, and 2^-16 of a pixel along each axis.
                    assert!(off < 0.53, "{size:?}, {matrix:?}: {n}: {got}, not {want}");
                }
            }
        }
    }
}

#[test]
fn places_that_are_nowhere_show_the_fill() {
    let size = (23, 17);
    let pixels = pixels(size, 23);
    let src = view(&pixels, size, 23);
    for matrix in matrices(size) {
        if matrix.iter().all(|v| v.abs() < 1e6) {
            continue;
        }
        for cpu in [CpuLevel::Scalar, CpuLevel::best()] {
            let got = made(src, matrix, whole(src), cpu);
            let is_fill = |pixel: &RgbPixel<u8>| *pixel == FILL;
            let shown = got
                .as_chunks::<3>()
                .0
                .iter()
                .filter(|p| !is_fill(p))
                .count();
            // The first column of the huge zoom starts at -0.5, and has no number beyond it.
            assert_eq!(shown, 0, "{matrix:?}");
        }
    }
}

#[test]
fn every_instruction_set_makes_the_same_pixels() {
    let mut turned = 0;
    for size in SIZES {
        let stride = size.0 + size.1 % 3;
        let pixels = pixels(size, stride);
        let src = view(&pixels, size, stride);
        let (w, h) = (size.0 as u32, size.1 as u32);
        let part = PixelRect {
            left: w / 7,
            top: h / 5,
            width: w - w / 4,
            height: h - h / 2,
        };
        for matrix in matrices(size) {
            for shown in [whole(src), part] {
                let want = made(src, matrix, shown, CpuLevel::Scalar);
                let got = made(src, matrix, shown, CpuLevel::best());
                assert!(got == want, "{size:?}, {matrix:?}, {shown:?}");
                turned += usize::from(want.iter().any(|v| *v != 9));
            }
        }
    }
    assert!(turned > 1000, "{turned}");
}
