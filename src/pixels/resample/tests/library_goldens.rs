//! Compares resizes with those of Pillow and torchvision, byte by byte: tests/goldens/resizes.tar,
//! which scripts/op_goldens/resizes.py writes and explains.

use serde::Deserialize;

use super::{levels, noise};
use crate::pixels::resample::axes::PIXEL;
use crate::pixels::resample::{
    FractionalBox, ImageResampler, PixelSource, ResizeAxes, ResizeTarget,
};
use crate::recipe::values::LibraryFilter;
use crate::recipe::weights::ResizeFilter;
use crate::tests_support::golden;

#[derive(Debug, Deserialize)]
struct ResizeCase {
    filter: String,
    /// Height and width.
    from: (usize, usize),
    to: (usize, usize),
    at: usize,
}

impl ResizeCase {
    fn pixels(&self, number: usize) -> Vec<u8> {
        let mut pixels = noise(PIXEL * self.from.0 * self.from.1, number as u64);
        if number.is_multiple_of(2) {
            pixels
                .iter_mut()
                .for_each(|level| *level = 255 * (*level >> 7));
        }
        pixels
    }

    fn filter(&self) -> ResizeFilter {
        let library = match self.filter.strip_prefix("tensor_") {
            Some(_) => ResizeFilter::Torchvision,
            None => ResizeFilter::Pillow,
        };
        library(match self.filter.trim_start_matches("tensor_") {
            "bilinear" => LibraryFilter::Bilinear,
            "bicubic" => LibraryFilter::Bicubic,
            "lanczos" => LibraryFilter::Lanczos,
            other => panic!("no filter {other}"),
        })
    }
}

/// Rows become columns.
fn transposed(pixels: &[u8], (height, width): (usize, usize)) -> Vec<u8> {
    let pixels = pixels.as_chunks::<PIXEL>().0;
    let places = (0..width).flat_map(|x| (0..height).map(move |y| y * width + x));
    places.flat_map(|at| pixels[at]).collect()
}

#[test]
fn resizes_equal_those_of_pillow_and_torchvision() {
    let cases = golden("resizes", "cases.json").unwrap();
    let cases: Vec<ResizeCase> = serde_json::from_slice(&cases).unwrap();
    let results = golden("resizes", "results.bin").unwrap();
    assert!(cases.len() >= 400);
    for (number, case) in cases.iter().enumerate() {
        let pixels = case.pixels(number);
        let (from, to) = (case.from, case.to);
        let wanted = &results[case.at..][..PIXEL * to.0 * to.1];
        let target = |(height, width)| ResizeTarget {
            width,
            height,
            filter: case.filter(),
            antialias: true,
        };
        let axes = |(height, width), to| {
            ResizeAxes::new(
                (width, height),
                FractionalBox::whole(width, height),
                target(to),
            )
        };
        let mut found = vec![0; wanted.len()];
        for cpu in levels() {
            let source = PixelSource::tight(&pixels, from.1, from.0);
            ImageResampler::new(cpu).resample(source, axes(from, to), &mut found);
            assert!(found == wanted, "{number} {case:?} {}", cpu.name());

            // Stored on its side, as a camera that was turned does.
            let turned = |(height, width)| (width, height);
            let mut axes = axes(turned(from), turned(to));
            (axes.x.is_down, axes.y.is_down) = (true, false);
            let stored = transposed(&pixels, from);
            let source = PixelSource::tight(&stored, from.0, from.1);
            ImageResampler::new(cpu).resample(source, axes, &mut found);
            let upright = transposed(&found, turned(to));
            assert!(upright == wanted, "{number} {case:?} {} turned", cpu.name());
        }
    }
}
