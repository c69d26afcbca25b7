//! Compares the operations that change values with other libraries: `tests/goldens/colour.tar`,
//! made by `scripts/make_op_goldens`. Its manifest states the expected pixels of each case, the
//! library, the tolerance and the reason.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rounding::numbers;
use crate::pixels::blur::gaussian_blur;
use crate::pixels::convert::ColorConverter;
use crate::pixels::emit::RowEmitter;
use crate::pixels::erase::erase;
use crate::pixels::normalise::{normalise, normalise_in_place};
use crate::pixels::pixel_view::{PixelView, PixelViewMut, RgbPixel};
use crate::pixels::{grey, jitter};
use crate::recipe::ChannelScaling;
use crate::recipe::geometry::PixelRect;
use crate::recipe::{
    BoxFill, ColorOrder, ColorSpace, DataType, MemoryLayout, OutputFormat, PixelPlacement, Size,
    WhitePoint,
};
use crate::tests_support::golden;

#[derive(Debug, Deserialize)]
struct Case {
    op: String,
    params: Value,
    /// A file of pixels of type `dtype`.
    input: String,
    dtype: DataType,
    height: usize,
    width: usize,
    /// The file of the result, its first byte, and its type.
    expected: String,
    at: usize,
    gives: DataType,
    by: String,
    tolerance: f64,
    #[serde(default)]
    why: Option<String>,
}

/// Pixels with a gap of other values between rows.
#[derive(Debug, Clone, PartialEq)]
struct Picture<T> {
    pixels: Vec<RgbPixel<T>>,
    width: usize,
    height: usize,
}

const GAP: usize = 3;
const BETWEEN: u8 = 171;

impl<T: Copy + From<u8> + PartialEq> Picture<T> {
    fn new(tight: &[RgbPixel<T>], width: usize, height: usize) -> Self {
        let mut pixels = Vec::new();
        for row in tight.chunks(width) {
            pixels.extend_from_slice(row);
            pixels.extend([[T::from(BETWEEN); 3]; GAP]);
        }
        // No gap after the last row.
        pixels.truncate(pixels.len() - GAP);
        Self {
            pixels,
            width,
            height,
        }
    }

    fn view(&self) -> PixelView<'_, T> {
        PixelView {
            pixels: &self.pixels,
            width: self.width,
            height: self.height,
            stride: self.width + GAP,
        }
    }

    fn view_mut(&mut self) -> PixelViewMut<'_, T> {
        PixelViewMut {
            pixels: &mut self.pixels,
            width: self.width,
            height: self.height,
            stride: self.width + GAP,
        }
    }

    fn tight(&self) -> Vec<RgbPixel<T>> {
        self.view().rows().flatten().copied().collect()
    }

    /// The result of an operation on the whole image, in place.
    fn changed(mut self, change: impl FnOnce(PixelViewMut<'_, T>)) -> Vec<RgbPixel<T>> {
        change(self.view_mut());
        let between = self.pixels.chunks(self.width + GAP);
        let untouched = between
            .flat_map(|row| &row[self.width..])
            .all(|p| *p == [T::from(BETWEEN); 3]);
        assert!(untouched, "pixels between the rows have changed");
        self.tight()
    }

    /// The result of an operation that writes rows without gaps elsewhere.
    fn made<U: Copy + From<u8>>(
        &self,
        make: impl FnOnce(PixelView<'_, T>, &mut [RgbPixel<U>]),
    ) -> Vec<RgbPixel<U>> {
        let mut out = vec![[U::from(BETWEEN); 3]; self.width * self.height];
        make(self.view(), &mut out);
        out
    }
}

#[derive(Debug, Clone)]
enum Input {
    U8(Picture<u8>),
    F32(Picture<f32>),
}

/// Runs the same expression for both types.
macro_rules! either {
    ($input:expr, $picture:ident => $result:expr) => {
        match $input {
            Input::U8($picture) => elements($result),
            Input::F32($picture) => elements($result),
        }
    };
}

fn elements<T: Copy + Into<f64>>(pixels: Vec<RgbPixel<T>>) -> Vec<f64> {
    pixels.as_flattened().iter().map(|&v| v.into()).collect()
}

/// Computes the elements of the result from parameters and an image.
type Run = fn(&Case, Input) -> Vec<f64>;

/// Each operation, with its name in the manifest.
const OPS: &[(&str, Run)] = &[
    ("brightness", |case, input| {
        let factor = case.param("factor");
        either!(input, p => p.changed(|v| jitter::brightness(v, factor)))
    }),
    ("contrast", |case, input| {
        let factor = case.param("factor");
        either!(input, p => p.changed(|v| jitter::contrast(v, factor)))
    }),
    ("saturation", |case, input| {
        let factor = case.param("factor");
        either!(input, p => p.changed(|v| jitter::saturation(v, factor)))
    }),
    ("hue", |case, input| {
        let factor = case.param("factor");
        either!(input, p => p.changed(|v| jitter::hue(v, factor)))
    }),
    (
        "grayscale",
        |_, input| either!(input, p => p.changed(grey::grayscale)),
    ),
    ("luma", |case, input| match input {
        Input::U8(p) => elements(p.changed(grey::luma)),
        Input::F32(_) => panic!("{case:?}: knows u8 only"),
    }),
    ("gaussian_blur", |case, input| {
        let (kernel, sigma): (Size, f64) = (case.param("kernel"), case.param("sigma"));
        let mut scratch = Vec::new();
        either!(input, p => p.made(|v, out| {
            gaussian_blur(v, kernel, sigma, out, &mut scratch);
        }))
    }),
    ("erase", |case, input| {
        let [left, top, width, height] = case.param("rect");
        let rect = PixelRect {
            left,
            top,
            width,
            height,
        };
        let value = BoxFill::Value(case.param("value"));
        either!(input, p => p.changed(|v| erase(v, rect, PixelPlacement::default(), value, false)))
    }),
    ("normalize", |case, input| {
        let scaling = ChannelScaling {
            unit: case.param("unit"),
            mean: case.param("mean"),
            std: case.param("std"),
        };
        match input {
            Input::U8(p) => elements(p.made(|v, out| normalise(v, scaling, out))),
            Input::F32(p) => elements(p.changed(|v| normalise_in_place(v, scaling))),
        }
    }),
    ("convert", |case, input| {
        let to: ColorSpace = case.param("to");
        let white = match case.params.get("white_point") {
            Some(_) => case.param("white_point"),
            None => WhitePoint::default(),
        };
        let converter = ColorConverter::new();
        let made = either!(&input, p => p.made(|v, out| converter.convert(v, to, white, out)));
        if let Input::F32(p) = input {
            let changed = elements(p.changed(|v| converter.convert_in_place(v, to, white)));
            assert_eq!(changed, made, "in place");
        }
        made
    }),
    ("emit", |case, input| {
        let emitter = RowEmitter::new(OutputFormat {
            zero_channels: 0,
            patches: None,
            unit: case.param("unit"),
            mean: case.param("mean"),
            std: case.param("std"),
            dtype: case.param("dtype"),
            layout: case.param::<MemoryLayout>("layout"),
            order: case.param::<ColorOrder>("order"),
        });
        let placement = PixelPlacement {
            flip_x: case.param("mirrored"),
            ..PixelPlacement::default()
        };
        let mut out = vec![0; emitter.row_bytes(case.width, case.height)];
        match input {
            Input::U8(p) => emitter.emit_rows(p.view(), placement, &mut out),
            Input::F32(p) => emitter.emit_floats(p.view(), placement, &mut out),
        }
        numbers(&out, case.gives)
    }),
];

/// Operations that depend on a position or orientation, so that mirroring changes them.
const HAVE_SIDES: [&str; 2] = ["erase", "emit"];

fn file(name: &str) -> Vec<u8> {
    golden("colour", name).unwrap()
}

impl Case {
    fn param<T: DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_value(self.params[name].clone())
            .unwrap_or_else(|e| panic!("{name} of {self:?}: {e}"))
    }

    fn input(&self) -> Input {
        let bytes = file(&self.input);
        let (width, height) = (self.width, self.height);
        assert_eq!(bytes.len(), 3 * width * height * self.dtype.size());
        match self.dtype {
            DataType::U8 => Input::U8(Picture::new(bytes.as_chunks().0, width, height)),
            DataType::F32 => {
                let values = bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
                let values: Vec<f32> = values.collect();
                Input::F32(Picture::new(values.as_chunks().0, width, height))
            }
            DataType::F16 | DataType::Bf16 => panic!("{self:?}: no such pixels"),
        }
    }

    /// Reads `count` elements: the next case follows in the file.
    fn expected(&self, count: usize) -> Vec<f64> {
        let bytes = file(&self.expected);
        let bytes = &bytes[self.at..][..count * self.gives.size()];
        numbers(bytes, self.gives)
    }

    fn run(&self, input: Input) -> Vec<f64> {
        let op = OPS.iter().find(|(name, _)| *name == self.op);
        let (_, run) = op.unwrap_or_else(|| panic!("no operation '{}'", self.op));
        run(self, input)
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&file("manifest.json")).unwrap()
}

#[test]
fn every_case_comes_out_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let got = case.run(case.input());
        let expected = case.expected(got.len());
        let worst = (got.iter().zip(&expected).enumerate())
            .map(|(i, (got, want))| ((got - want).abs(), i))
            // `total_cmp` orders NaN last.
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let (difference, at) = worst.unwrap();
        if difference.is_nan() || difference > case.tolerance {
            wrong.push(format!(
                "element {at}: {}, not {}: {case:?}",
                got[at], expected[at]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_operation_has_cases_and_every_tolerance_a_reason() {
    let mut of_op: BTreeMap<_, usize> = OPS.iter().map(|(name, _)| (*name, 0)).collect();
    let cases = cases();
    for case in &cases {
        *of_op.entry(case.op.as_str()).or_default() += 1;
        assert!(!case.by.is_empty(), "{case:?}");
        let exact = case.tolerance == 0.0;
        assert!(exact || case.why.is_some(), "without a reason: {case:?}");
    }
    assert!(of_op.values().all(|n| *n > 0), "without a case: {of_op:?}");
}

/// An image may be mirrored before an operation or after it, with equal bits. So flips can be
/// deferred to the end of the recipe.
#[test]
fn a_mirrored_picture_becomes_the_mirrored_result() {
    fn turned<T: Copy + From<u8> + PartialEq>(p: &Picture<T>) -> Picture<T> {
        let mut tight = p.tight();
        tight.reverse();
        Picture::new(&tight, p.width, p.height)
    }
    for case in cases() {
        if HAVE_SIDES.contains(&case.op.as_str()) {
            continue;
        }
        let input = case.input();
        let other = match &input {
            Input::U8(p) => Input::U8(turned(p)),
            Input::F32(p) => Input::F32(turned(p)),
        };
        let mut got = case.run(other);
        got.as_chunks_mut::<3>().0.reverse();
        assert!(got == case.run(input), "{case:?}");
    }
}
