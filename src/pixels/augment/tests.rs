//! Compares Pillow's operations with Pillow's own results: tests/goldens/augment.tar, which
//! scripts/op_goldens/augment.py writes and explains. Every element must be equal, on the canvas,
//! in every stored orientation. tests/goldens/timm_policies.tar has whole policies of timm.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::interpolate::TransformOptions;
use super::{affine, hue, opencv_hsv};
use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::pixels::resample::ImageResampler;
use crate::recipe::{AugmentStep, InterpolationMode, PixelPlacement, Step};
use crate::sys::cpu::CpuLevel;
use crate::tests_support::golden;

#[derive(Deserialize)]
struct Manifest {
    names: Vec<String>,
    far: Far,
    hue_checksums: Vec<Checksum>,
}

#[derive(Deserialize)]
struct Case {
    /// First byte in the files.
    input: usize,
    expected: usize,
    /// Height, width.
    size: (usize, usize),
    steps: Vec<AugmentStep>,
}

#[derive(Deserialize)]
struct Far {
    width: usize,
    steps: Vec<AugmentStep>,
    expected: usize,
}

#[derive(Deserialize)]
struct Checksum {
    by: u8,
    sum: u64,
}

fn json<T: DeserializeOwned>(set: &str, name: &str) -> T {
    serde_json::from_slice(&golden(set, &format!("{name}.json")).unwrap()).unwrap()
}

fn manifest() -> Manifest {
    json("augment", "manifest")
}

fn pixels(set: &str, name: &str, at: usize, count: usize) -> Vec<RgbPixel<u8>> {
    let bytes = golden(set, &format!("{name}.u8")).unwrap();
    bytes[at..][..3 * count].as_chunks().0.to_vec()
}

fn placements() -> impl Iterator<Item = PixelPlacement> {
    (0..8).map(|i| PixelPlacement {
        flip_x: i & 1 != 0,
        flip_y: i & 2 != 0,
        transpose: i & 4 != 0,
    })
}

/// An image stored so that `placement` shows it, with gaps of `gap` pixels between rows and before
/// the first. Returns the buffer, and its stored width and height.
fn stored(
    upright: &[RgbPixel<u8>],
    (width, height): (usize, usize),
    p: PixelPlacement,
    gap: usize,
) -> (Vec<u8>, (usize, usize)) {
    let (w, h) = p.output_size(width, height);
    let mut pixels = vec![[171; 3]; gap + (w + gap) * h];
    for y in 0..height {
        for x in 0..width {
            let (mut sy, mut sx) = if p.transpose { (x, y) } else { (y, x) };
            if p.flip_x {
                sx = w - 1 - sx;
            }
            if p.flip_y {
                sy = h - 1 - sy;
            }
            pixels[gap + sy * (w + gap) + sx] = upright[y * width + x];
        }
    }
    (pixels.into_flattened(), (w, h))
}

/// The image on the canvas, upright.
fn upright(canvas: &PictureCanvas) -> (Vec<RgbPixel<u8>>, (usize, usize)) {
    let (CanvasPixels::Bytes(view), placement) = canvas.pixels() else {
        panic!("not in bytes");
    };
    let shown = OrientedPixels::new(view, placement);
    let mut out = vec![[0; 3]; shown.width * shown.height];
    shown.write_each(&mut out, |pixel, out| *out = pixel);
    (out, (shown.width, shown.height))
}

fn apply(canvas: &mut PictureCanvas, steps: &[AugmentStep]) {
    for step in steps {
        let step = Step::Augment(*step);
        let done = canvas.apply(
            [step].iter(),
            true,
            &mut ImageResampler::new(CpuLevel::Scalar),
        );
        assert_eq!(done, 1);
    }
}

/// Every case of a set, in every stored orientation. Returns the names of its steps.
fn compare(set: &str, names: &[String]) -> BTreeSet<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let mut canvas = PictureCanvas::default();
    let cases = names.iter().flat_map(|name| {
        let cases: Vec<Case> = json(set, name);
        cases.into_iter().map(move |case| (name, case))
    });
    for (name, case) in cases {
        let size = (case.size.1, case.size.0);
        let input = pixels(set, "in", case.input, size.0 * size.1);
        let want = pixels(set, name, case.expected, size.0 * size.1);
        for step in &case.steps {
            let text = serde_json::to_string(step).unwrap();
            let name = text.split('"').nth(1).unwrap().to_owned();
            let how = match step {
                AugmentStep::Affine { interpolation, .. }
                | AugmentStep::Rotate { interpolation, .. } => {
                    format!(" {interpolation:?}")
                }
                _ => String::new(),
            };
            seen.insert(format!("{name}{how}"));
        }
        for placement in placements() {
            for gap in [0, 3] {
                let (mut buffer, at) = stored(&input, size, placement, gap);
                canvas.adopt_buffer(&mut buffer, (gap, at.0 + gap), at, placement);
                apply(&mut canvas, &case.steps);
                let (got, is) = upright(&canvas);
                canvas.return_buffer(&mut buffer);
                if got != want || is != size {
                    let other = got.iter().zip(&want).filter(|(a, b)| a != b).count();
                    wrong.push(format!(
                        "{other} pixels of {size:?}, {placement:?}: {:?}",
                        case.steps
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    seen
}

#[test]
fn whole_policies_of_timm_have_its_pixels() {
    let seen = compare("timm_policies", &["policies".to_owned()]);
    for name in ["add_single", "mix_in", "total", "blend_total"] {
        assert!(seen.contains(name), "without a case: {name}");
    }
}

#[test]
fn every_element_is_pillows_however_the_picture_is_stored() {
    let seen = compare("augment", &manifest().names);
    let names = [
        "add",
        "affine Bicubic",
        "affine Bilinear",
        "affine Nearest",
        "auto_contrast",
        "blend",
        "brightness",
        "color",
        "contrast",
        "equalize",
        "fill",
        "hue",
        "invert",
        "keep",
        "posterize",
        "rotate Bicubic",
        "rotate Bilinear",
        "rotate Nearest",
        "sharpness",
        "solarize",
        "solarize_add",
    ];
    let missing: Vec<_> = names.iter().filter(|n| !seen.contains(**n)).collect();
    assert!(missing.is_empty(), "without a case: {missing:?}");
}

#[test]
fn places_that_fixed_point_does_not_reach_are_pillows() {
    let far = manifest().far;
    let colour = |x: usize| [x % 251, x / 251, x % 7].map(|v| v as u8);
    let row: Vec<_> = (0..far.width).map(colour).collect();
    let below = row.iter().map(|p| p.map(|v| 255 - v));
    let both: Vec<_> = row.iter().copied().chain(below).collect();
    let shown = OrientedPixels::new(
        PixelView::tight(&both, far.width, 2),
        PixelPlacement::default(),
    );
    let [
        AugmentStep::Affine {
            matrix,
            interpolation: InterpolationMode::Nearest,
            fill,
            ..
        },
    ] = far.steps[..]
    else {
        panic!("another step");
    };
    let mut out = vec![[1; 3]; 2 * far.width];
    let options = TransformOptions::whole(&shown, InterpolationMode::Nearest, fill);
    affine::affine(&shown, matrix, options, &mut out);
    const SEEN: usize = 64;
    let want = pixels("augment", "far", far.expected, 2 * SEEN);
    assert!(want.iter().any(|p| *p != fill) && want.contains(&fill));
    for (row, want) in out.chunks(far.width).zip(want.chunks(SEEN)) {
        assert_eq!(&row[far.width - SEEN..], want);
    }
}

#[test]
fn the_hue_of_every_colour_is_pillows() {
    const WIDE: usize = 1 << 12;
    for Checksum { by, sum } in manifest().hue_checksums {
        let mut got = 0u64;
        for first in (0..1 << 24).step_by(WIDE) {
            let colour = |i: u64| [i >> 16, i >> 8, i].map(|v| v as u8);
            let mut row: Vec<_> = (first..first + WIDE as u64).map(colour).collect();
            let view = PixelViewMut {
                pixels: &mut row,
                width: WIDE,
                height: 1,
                stride: WIDE,
            };
            hue::shift(view, by);
            for (i, [r, g, b]) in (first..).zip(row.iter().map(|p| p.map(u64::from))) {
                let odd = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                got = got.wrapping_add((r << 16 | g << 8 | b).wrapping_mul(odd));
            }
        }
        assert_eq!(got, sum, "shifted by {by}");
    }
}

#[derive(Deserialize)]
struct HsvCases {
    cases: Vec<HsvCase>,
}

#[derive(Deserialize)]
struct HsvCase {
    gains: [f64; 3],
    before: Vec<u8>,
    after: Vec<u8>,
}

/// tests/goldens/detection_draws.tar, which scripts/op_goldens/detection_draws.py writes.
#[test]
fn changes_of_hsv_are_opencvs() {
    let file = golden("detection_draws", "hsv.json").unwrap();
    let all: HsvCases = serde_json::from_slice(&file).unwrap();
    assert!(all.cases.len() >= 12);
    for case in all.cases {
        let mut pixels = case.before.clone();
        let (rows, _) = pixels.as_chunks_mut::<3>();
        let width = rows.len();
        let view = PixelViewMut {
            pixels: rows,
            width,
            height: 1,
            stride: width,
        };
        opencv_hsv::change(view, case.gains, CpuLevel::Scalar);
        let off = (0..pixels.len()).find(|i| pixels[*i] != case.after[*i]);
        assert_eq!(
            off,
            None,
            "gains {:?}: {:?}",
            case.gains,
            off.map(|i| {
                let at = i / 3 * 3;
                (
                    &case.before[at..at + 3],
                    &pixels[at..at + 3],
                    &case.after[at..at + 3],
                )
            })
        );
    }
}
