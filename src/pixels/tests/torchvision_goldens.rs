//! Compares torchvision's transforms of Pillow images with torchvision's own results for the same
//! parameters: tests/goldens/torchvision_ops.tar and torchvision_colour.tar, which the scripts of
//! these names in scripts/op_goldens write and explain.
//!
//! Operations run as in a recipe, from their text form, on the canvas, in every stored orientation.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;

use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
use crate::pixels::oriented_pixels::OrientedPixels;
use crate::pixels::pixel_view::RgbPixel;
use crate::pixels::resample::ImageResampler;
use crate::recipe::DrawnPicture;
use crate::recipe::random::RandomStreams;
use crate::recipe::{Op, PixelPlacement, Recipe, ReorderMode, Resize, SampleProgram, Step};
use crate::sys::cpu::CpuLevel;
use crate::tests_support::golden;

/// Height, width.
type Sides = (u32, u32);

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    op: Op,
    numbers: Vec<f64>,
    size: Sides,
    becomes: Sides,
    /// First byte in the files.
    input: usize,
    expected: usize,
    /// Largest difference of an element, in levels.
    #[serde(default)]
    most: u8,
    /// Share of the elements that may differ.
    #[serde(default)]
    share: f64,
}

/// Returns listed numbers for all draws.
struct Listed(RefCell<VecDeque<f64>>);

impl RandomStreams for Listed {
    fn number(&self, _: u32, _: u32) -> f64 {
        let mut numbers = self.0.borrow_mut();
        numbers
            .pop_front()
            .expect("more numbers than torchvision draws")
    }
}

/// The steps that a case's numbers draw.
fn steps(case: &Case) -> Vec<Step> {
    let (height, width) = case.becomes;
    let recipe = Recipe::new("golden")
        .then(case.op.clone())
        // Changes nothing, but gives all rows one size.
        .then(Resize::exact(height, width))
        .with_reorder(ReorderMode::Off);
    let program = SampleProgram::compile(&recipe).unwrap();
    let random = Listed(RefCell::new(case.numbers.iter().copied().collect()));
    let mut steps = Vec::new();
    program
        .steps(&DrawnPicture::of_size(case.size), &random, &mut steps)
        .unwrap();
    let left = random.0.borrow().len();
    assert_eq!(left, 0, "numbers that are not drawn: {:?}", case.op);
    steps.into_iter().map(|s| s.step).collect()
}

/// An image stored so that `placement` shows it: pixels, width and height.
fn stored(
    upright: &[RgbPixel<u8>],
    (height, width): Sides,
    p: PixelPlacement,
) -> (Vec<u8>, usize, usize) {
    let (width, height) = (width as usize, height as usize);
    let (w, h) = p.output_size(width, height);
    let mut pixels = vec![[171; 3]; w * h];
    for y in 0..height {
        for x in 0..width {
            let (mut sy, mut sx) = if p.transpose { (x, y) } else { (y, x) };
            if p.flip_x {
                sx = w - 1 - sx;
            }
            if p.flip_y {
                sy = h - 1 - sy;
            }
            pixels[sy * w + sx] = upright[y * width + x];
        }
    }
    (pixels.into_flattened(), w, h)
}

/// Compares every case of a set. Returns the names of its operations.
fn compare(set: &str) -> BTreeSet<&'static str> {
    let file = |name: &str| golden(set, name).unwrap();
    let manifest: Manifest = serde_json::from_slice(&file("manifest.json")).unwrap();
    let pixels = file("pixels.u8");
    let picture = |at: usize, (h, w): Sides| -> &[RgbPixel<u8>] {
        let bytes = 3 * h as usize * w as usize;
        pixels[at..][..bytes].as_chunks().0
    };
    let mut resampler = ImageResampler::new(CpuLevel::Scalar);
    let mut canvas = PictureCanvas::default();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for case in &manifest.cases {
        seen.insert(case.op.name());
        let steps = steps(case);
        let want = picture(case.expected, case.becomes);
        for i in 0..8 {
            let placement = PixelPlacement {
                flip_x: i & 1 != 0,
                flip_y: i & 2 != 0,
                transpose: i & 4 != 0,
            };
            let (raw, w, h) = stored(picture(case.input, case.size), case.size, placement);
            canvas.begin(w, h, placement).copy_from_slice(&raw);
            for step in &steps {
                canvas.apply([step].into_iter(), false, &mut resampler);
            }
            let (CanvasPixels::Bytes(view), placement) = canvas.pixels() else {
                panic!("not in bytes");
            };
            let shown = OrientedPixels::new(view, placement);
            assert_eq!((shown.height as u32, shown.width as u32), case.becomes);
            let mut got = vec![[0; 3]; shown.width * shown.height];
            shown.write_each(&mut got, |pixel, out| *out = pixel);
            let pairs = got.as_flattened().iter().zip(want.as_flattened());
            let off: Vec<u8> = pairs.map(|(a, b)| a.abs_diff(*b)).collect();
            let most = off.iter().copied().max().unwrap_or(0);
            let other = off.iter().filter(|off| **off > 0).count();
            if most > case.most || other as f64 > case.share * off.len() as f64 {
                let op = serde_json::to_string(&case.op).unwrap();
                wrong.push(format!(
                    "{other} of {} by up to {most}: {:?} {placement:?} {op} {:?}",
                    off.len(),
                    case.size,
                    case.numbers
                ));
            }
        }
    }
    let shown = &wrong[..wrong.len().min(40)];
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        shown.join("\n")
    );
    seen
}

#[test]
fn every_element_is_torchvisions_however_the_picture_is_stored() {
    let seen = compare("torchvision_ops");
    let all = BTreeSet::from([
        "elastic_transform",
        "random_adjust_sharpness",
        "random_affine",
        "random_apply",
        "random_autocontrast",
        "random_choice",
        "random_equalize",
        "random_invert",
        "random_order",
        "random_perspective",
        "random_posterize",
        "random_solarize",
        "random_zoom_out",
    ]);
    assert_eq!(seen, all);
}

/// Also Pillow's blur, and the operations that torchvision has for tensors only.
#[test]
fn every_element_of_the_colour_set_is_torchvisions() {
    let seen = compare("torchvision_colour");
    let all = BTreeSet::from([
        "gaussian_noise",
        "jpeg",
        "pillow_gaussian_blur",
        "random_channel_permutation",
        "random_photometric_distort",
        "torchvision_aug_mix",
    ]);
    assert_eq!(seen, all);
}
