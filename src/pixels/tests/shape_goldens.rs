//! Compares the operations that change an image's shape with other libraries:
//! tests/goldens/geometry.tar, which scripts/op_goldens/geometry.py writes and explains.
//!
//! Every case runs, pixel by pixel. Bytes run on every path that this CPU has. An operation or mode
//! without a case fails the test.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::pixels::level::ChannelLevel;
use crate::pixels::pad::pad;
use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::pixels::resample::{ImageResampler, PixelSource, ResizeAxes, ResizeTarget};
use crate::pixels::rotate::rotate;
use crate::recipe::geometry::FractionalBox;
use crate::recipe::geometry::PixelRect;
use crate::recipe::geometry::rotated_size;
use crate::recipe::weights::ResizeFilter;
use crate::recipe::{InterpolationMode, Padding, PaddingMode, PixelPlacement};
use crate::sys::cpu::CpuLevel;
use crate::tests_support::golden;

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(flatten)]
    op: Op,
    input: Input,
    expected: String,
    dtype: Kind,
    height: usize,
    width: usize,
    by: String,
    tolerance: f64,
    /// Share of the elements that may differ at all.
    #[serde(default = "one")]
    share: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct Input {
    file: String,
    height: usize,
    width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    U8,
    F32,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", content = "params", rename_all = "snake_case")]
enum Op {
    Resize(To),
    ResizeThenCrop(To),
    Crop(Part),
    CenterCrop(Size),
    Pad {
        padding: Padding,
        mode: PaddingMode,
        fill: [f32; 3],
    },
    Rotate {
        degrees: f64,
        interpolation: InterpolationMode,
        expand: bool,
        fill: [f32; 3],
    },
    HorizontalFlip {},
    VerticalFlip {},
    Rotate90 {
        times: u8,
    },
}

#[derive(Debug, Deserialize)]
struct To {
    height: usize,
    width: usize,
    interpolation: InterpolationMode,
    antialias: bool,
    crop: Option<Part>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Part {
    top: u32,
    left: u32,
    height: u32,
    width: u32,
}

#[derive(Debug, Deserialize)]
struct Size {
    height: u32,
    width: u32,
}

/// The feature that a case covers, with its name in `required`.
fn name(case: &Case) -> String {
    let kind = case.dtype;
    match &case.op {
        Op::Resize(to) => format!("resize {:?} {} {kind:?}", to.interpolation, to.antialias),
        Op::ResizeThenCrop(to) => {
            format!("resize then crop {:?} {}", to.interpolation, to.antialias)
        }
        Op::Crop(_) => "crop".into(),
        Op::CenterCrop(_) => "center crop".into(),
        Op::Pad { mode, .. } => format!("pad {mode:?} {kind:?}"),
        Op::Rotate {
            interpolation,
            expand,
            ..
        } => format!("rotate {interpolation:?} {expand} {kind:?}"),
        Op::HorizontalFlip {} => "horizontal flip".into(),
        Op::VerticalFlip {} => "vertical flip".into(),
        Op::Rotate90 { times } => format!("rotate90 {times}"),
    }
}

/// All values of an enum: the match fails to compile when one is added.
fn interpolations() -> Vec<InterpolationMode> {
    let after = |i| match i {
        InterpolationMode::Nearest => Some(InterpolationMode::Bilinear),
        InterpolationMode::Bilinear => Some(InterpolationMode::Bicubic),
        InterpolationMode::Bicubic => Some(InterpolationMode::Lanczos),
        InterpolationMode::Lanczos => Some(InterpolationMode::Area),
        InterpolationMode::Area
        | InterpolationMode::Labels(_)
        | InterpolationMode::Pillow(_)
        | InterpolationMode::Torchvision(_) => None,
    };
    std::iter::successors(Some(InterpolationMode::Nearest), |&i| after(i)).collect()
}

fn modes() -> Vec<PaddingMode> {
    let after = |m| match m {
        PaddingMode::Constant => Some(PaddingMode::Edge),
        PaddingMode::Edge => Some(PaddingMode::Reflect),
        PaddingMode::Reflect => None,
    };
    std::iter::successors(Some(PaddingMode::Constant), |&m| after(m)).collect()
}

fn required() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["crop", "center crop", "horizontal flip", "vertical flip"]
        .into_iter()
        .map(String::from)
        .collect();
    names.extend((1..4).map(|times| format!("rotate90 {times}")));
    for yes in [true, false] {
        for i in interpolations() {
            names.insert(format!("resize then crop {i:?} {yes}"));
            for kind in [Kind::U8, Kind::F32] {
                names.insert(format!("resize {i:?} {yes} {kind:?}"));
            }
        }
        for i in [InterpolationMode::Nearest, InterpolationMode::Bilinear] {
            for kind in [Kind::U8, Kind::F32] {
                names.insert(format!("rotate {i:?} {yes} {kind:?}"));
            }
        }
    }
    for mode in modes() {
        for kind in [Kind::U8, Kind::F32] {
            names.insert(format!("pad {mode:?} {kind:?}"));
        }
    }
    names
}

/// A type of element, as stored in the files.
trait Element: ChannelLevel + Default + PartialEq + std::fmt::Debug {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    /// A resize of a part of an image, on every path. The available pixels start at `origin`.
    fn resize(part: PixelView<'_, Self>, axes: ResizeAxes, out: &mut [RgbPixel<Self>], case: &str);
}

impl Element for u8 {
    const SIZE: usize = 1;

    fn read(bytes: &[u8]) -> Self {
        bytes[0]
    }

    fn resize(part: PixelView<'_, Self>, axes: ResizeAxes, out: &mut [RgbPixel<Self>], case: &str) {
        let source = PixelSource {
            pixels: part.pixels.as_flattened(),
            width: part.width,
            height: part.height,
            stride: part.stride * 3,
        };
        let mut first: Option<Vec<u8>> = None;
        for level in CpuLevel::ALL.into_iter().filter(|l| l.is_supported()) {
            let mut dst = vec![7; out.len() * 3];
            ImageResampler::new(level).resample(source, axes, &mut dst);
            let scalar = first.get_or_insert_with(|| dst.clone());
            assert!(*scalar == dst, "{case}: {} differs", level.name());
        }
        out.as_flattened_mut().copy_from_slice(&first.unwrap());
    }
}

impl Element for f32 {
    const SIZE: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().unwrap())
    }

    fn resize(part: PixelView<'_, Self>, axes: ResizeAxes, out: &mut [RgbPixel<Self>], _: &str) {
        ImageResampler::new(CpuLevel::Scalar).resample_floats(part, axes, out);
    }
}

fn read<T: Element>(file: &str, height: usize, width: usize) -> Vec<RgbPixel<T>> {
    let bytes = golden("geometry", file).unwrap();
    assert_eq!(bytes.len(), height * width * 3 * T::SIZE, "{file}");
    let elements: Vec<T> = bytes.chunks_exact(T::SIZE).map(T::read).collect();
    elements.as_chunks::<3>().0.to_vec()
}

/// Resizes only the part of `src` that `axes` needs.
fn resize<T: Element>(src: PixelView<'_, T>, mut axes: ResizeAxes, case: &str) -> Vec<RgbPixel<T>> {
    let (columns, rows) = (axes.x.reads(), axes.y.reads());
    (axes.x.origin, axes.y.origin) = (columns.start, rows.start);
    let mut at_hand = Vec::new();
    for y in rows.clone() {
        at_hand.extend(&src.row(y as usize)[columns.start as usize..columns.end as usize]);
    }
    let part = PixelView::tight(&at_hand, columns.len(), rows.len());
    let mut out = vec![[T::default(); 3]; (axes.x.out_size * axes.y.out_size) as usize];
    T::resize(part, axes, &mut out, case);
    out
}

fn axes<T>(src: PixelView<'_, T>, to: &To) -> ResizeAxes {
    let (filter, antialias) = ResizeFilter::of(to.interpolation, to.antialias);
    let target = ResizeTarget {
        width: to.width,
        height: to.height,
        filter,
        antialias,
    };
    let size = (src.width, src.height);
    ResizeAxes::new(size, FractionalBox::whole(src.width, src.height), target)
}

fn cut(axes: &mut ResizeAxes, part: Part) {
    (axes.x.first, axes.x.out_size) = (part.left, part.width);
    (axes.y.first, axes.y.out_size) = (part.top, part.height);
}

/// A crop is a resize to the same size, cropped.
fn crop<T: Element>(src: PixelView<'_, T>, part: Part, case: &str) -> Vec<RgbPixel<T>> {
    let mut axes = axes(
        src,
        &To {
            height: src.height,
            width: src.width,
            interpolation: InterpolationMode::Bicubic,
            antialias: true,
            crop: None,
        },
    );
    cut(&mut axes, part);
    resize(src, axes, case)
}

fn placed<T: Element>(src: PixelView<'_, T>, placement: PixelPlacement) -> Vec<RgbPixel<T>> {
    let (width, height) = placement.output_size(src.width, src.height);
    let stored = (src.width as u32, src.height as u32);
    let mut out = Vec::new();
    for top in 0..height as u32 {
        for left in 0..width as u32 {
            let pixel = PixelRect {
                left,
                top,
                width: 1,
                height: 1,
            };
            let at = placement.to_stored(pixel, stored);
            out.push(src.row(at.top as usize)[at.left as usize]);
        }
    }
    out
}

fn run<T: Element>(case: &Case, src: PixelView<'_, T>, title: &str) -> Vec<RgbPixel<T>> {
    let upright = PixelPlacement::default();
    match &case.op {
        Op::Resize(to) => resize(src, axes(src, to), title),
        Op::ResizeThenCrop(to) => {
            let mut axes = axes(src, to);
            cut(&mut axes, to.crop.unwrap());
            resize(src, axes, title)
        }
        Op::Crop(part) => crop(src, *part, title),
        Op::CenterCrop(size) => {
            let offset =
                |n: usize, out: u32| (f64::from(n as u32 - out) / 2.0).round_ties_even() as u32;
            let part = Part {
                top: offset(src.height, size.height),
                left: offset(src.width, size.width),
                height: size.height,
                width: size.width,
            };
            crop(src, part, title)
        }
        Op::Pad {
            padding,
            mode,
            fill,
        } => {
            let mut out = vec![[T::default(); 3]; case.height * case.width];
            pad(src, *padding, *mode, fill.map(T::rounded), &mut out);
            out
        }
        Op::Rotate {
            degrees,
            interpolation,
            expand,
            fill,
        } => {
            let size = (src.width as u32, src.height as u32);
            let (width, height) = match expand {
                true => rotated_size(size.0, size.1, *degrees),
                false => size,
            };
            let size = (width as usize, height as usize);
            assert_eq!(size, (case.width, case.height), "{title}");
            let mut out = vec![[T::default(); 3]; size.0 * size.1];
            let how = *interpolation;
            rotate(src, upright, *degrees, how, size, *fill, &mut out);
            out
        }
        Op::HorizontalFlip {} => placed(src, upright.mirrored()),
        Op::VerticalFlip {} => placed(src, upright.upside_down()),
        Op::Rotate90 { times } => placed(src, upright.turned(*times)),
    }
}

/// The worst deviation of a case.
fn check<T: Element>(case: &Case) -> Result<(), String> {
    let title = format!("{:?} of {}, by {}", case.op, case.input.file, case.by);
    let input = read::<T>(&case.input.file, case.input.height, case.input.width);
    let src = PixelView::tight(&input, case.input.width, case.input.height);
    let out = run(case, src, &title);
    let expected = read::<T>(&case.expected, case.height, case.width);
    assert_eq!(out.len(), expected.len(), "{title}");
    let (mut worst, mut differ) = ((0.0, 0), 0);
    let pairs = out.as_flattened().iter().zip(expected.as_flattened());
    for (i, (a, b)) in pairs.enumerate() {
        let apart = f64::from((a.level() - b.level()).abs());
        if apart > 0.0 {
            differ += 1;
        }
        if apart > worst.0 || apart.is_nan() {
            worst = (apart, i);
        }
    }
    let elements = expected.len() * 3;
    let (row, column) = (worst.1 / 3 / case.width, worst.1 / 3 % case.width);
    if worst.0.is_nan() || worst.0 > case.tolerance {
        let (a, b) = (
            out.as_flattened()[worst.1],
            expected.as_flattened()[worst.1],
        );
        return Err(format!(
            "{title}: {a:?} is not {b:?} at row {row}, column {column}; {differ} of {elements}"
        ));
    }
    if f64::from(differ) > (case.share * elements as f64).ceil() {
        return Err(format!("{title}: {differ} of {elements} elements differ"));
    }
    Ok(())
}

#[test]
fn every_case_has_the_pixels_of_the_other_library() {
    let text = golden("geometry", "manifest.json").unwrap();
    let manifest: Manifest = serde_json::from_slice(&text).unwrap();
    let seen: BTreeSet<String> = manifest.cases.iter().map(name).collect();
    let missing: Vec<_> = required().difference(&seen).cloned().collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let wrong: Vec<_> = manifest
        .cases
        .iter()
        .filter_map(|case| match case.dtype {
            Kind::U8 => check::<u8>(case).err(),
            Kind::F32 => check::<f32>(case).err(),
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
