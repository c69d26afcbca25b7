//! `max_scratch` bounds the memory of a decode, for every format. At the smallest limit under which
//! an image loads, at most the limit is allocated.
//!
//! Counted with zero workers: the job runs in this process, and no other thread allocates. Only
//! Rust's allocator is counted; all decoders use it.

use std::fs;
use std::path::Path;

use featherload::{FaultKind, Loader, OnError, Recipe, Source};
use image::{DynamicImage, ImageFormat, RgbImage, Rgba, RgbaImage};

use crate::allocator;
use crate::common::Random;

/// An image with some content.
fn picture(w: u32, h: u32) -> RgbaImage {
    let mut random = Random(9);
    RgbaImage::from_fn(w, h, |x, y| {
        let noise = random.below(12) as u8;
        Rgba([(x / 5) as u8, (y / 7) as u8 ^ noise, noise * 9, 255 - noise])
    })
}

/// Loads `file` once with this limit. Returns the kind of the fault, or the peak of the memory
/// allocated during the run.
fn load(file: &Path, max_scratch: u64) -> Result<usize, FaultKind> {
    let (fault, peak) = allocator::peak(|| fault(file, max_scratch));
    fault.map_or(Ok(peak), Err)
}

fn fault(file: &Path, max_scratch: u64) -> Option<FaultKind> {
    let mut loader = Loader::builder(Source::detect(file.parent().unwrap()).unwrap())
        .recipe(Recipe::eval224())
        .num_workers(0)
        .batch_size(1)
        .on_error(OnError::Skip)
        .max_scratch(max_scratch)
        .build()
        .unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    batch.faults().first().map(|f| f.fault.kind)
}

pub fn no_more_than_the_limit_is_allocated() {
    const SIDE: u32 = 1500;
    let rgba = picture(SIDE, SIDE);
    let rgb: RgbImage = DynamicImage::from(rgba.clone()).to_rgb8();
    let floats = DynamicImage::from(rgba.clone()).to_rgb32f();
    let small: RgbaImage = picture(256, 256);
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut encode = |name: &str, image: DynamicImage, format: ImageFormat| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        files.push((name.into(), bytes.into_inner()));
    };
    encode("rgb.png", rgb.clone().into(), ImageFormat::Png);
    encode("rgba.png", rgba.clone().into(), ImageFormat::Png);
    encode("rgb.webp", rgb.clone().into(), ImageFormat::WebP);
    encode("rgba.webp", rgba.clone().into(), ImageFormat::WebP);
    encode("rgba.gif", rgba.clone().into(), ImageFormat::Gif);
    encode("rgb.bmp", rgb.clone().into(), ImageFormat::Bmp);
    encode("rgb.tiff", rgb.clone().into(), ImageFormat::Tiff);
    encode("rgba.tiff", rgba.clone().into(), ImageFormat::Tiff);
    encode("rgb.ppm", rgb.clone().into(), ImageFormat::Pnm);
    encode("rgb.qoi", rgb.clone().into(), ImageFormat::Qoi);
    encode("rgba.ico", small.into(), ImageFormat::Ico);
    encode("rgb.hdr", floats.clone().into(), ImageFormat::Hdr);
    encode("rgb.exr", floats.into(), ImageFormat::OpenExr);
    let deep = DynamicImage::from(rgba).to_rgba16();
    encode("rgba.ff", deep.into(), ImageFormat::Farbfeld);
    // One row, and an image of a few long rows: rows count, too.
    for (w, h) in [(2_000_000, 1), (300_000, 9)] {
        encode("wide.png", picture(w, h).into(), ImageFormat::Png);
    }

    for (name, bytes) in files {
        let dir = tempfile::tempdir().unwrap();
        // The content decides the format, not the name.
        let file = dir.path().join(format!("{name}.png"));
        fs::write(&file, &bytes).unwrap();
        // Here the whole input is read. Workers map it.
        let (mut refused, mut loads) = (0, 512u64 << 20);
        let warm = load(&file, loads).unwrap_or_else(|kind| panic!("{name}: {kind:?}"));
        // The first limit is mostly large enough: loads that succeed take longest.
        if load(&file, warm as u64).is_ok() {
            loads = warm as u64;
        }
        while loads - refused > 64 << 10 {
            let middle = (loads + refused) / 2;
            match load(&file, middle) {
                Ok(_) => loads = middle,
                Err(kind) => {
                    assert_eq!(kind, FaultKind::TooLarge, "{name} at {middle}");
                    refused = middle;
                }
            }
        }
        let peak = load(&file, loads).unwrap();
        // Besides scratch: the file, its growth, the rows of the resampler, a row of the batch, the
        // loader.
        let beside = 2 * bytes.len() + (5 << 20);
        println!(
            "{name}: {:.1} MiB at a limit of {:.1} MiB ({:.1} without), {:.1} bytes a pixel",
            peak as f64 / 1048576.0,
            loads as f64 / 1048576.0,
            warm as f64 / 1048576.0,
            peak as f64 / f64::from(SIDE * SIDE),
        );
        assert!(
            peak as u64 <= loads + beside as u64,
            "{name}: {peak} bytes at a limit of {loads}"
        );
    }
}
