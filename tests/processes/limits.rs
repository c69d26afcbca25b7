//! `max_scratch` in worker processes, where the kernel holds them to it: what
//! one picture took is no loss of the next, a verdict does not depend on who
//! decodes, and no worker ever was larger than the limit allows.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use featherload::recipe::{CenterCrop, Resize};
use featherload::{DecodeMode, Loader, OnError, Recipe, Source};
use image::{DynamicImage, GrayImage, ImageFormat, Luma};
use jpeg_encoder::{ColorType, Encoder};

use crate::common::FEATHERLOAD;
use crate::common::rows::{Row, rows};

const MIB: u64 = 1 << 20;
/// More than a worker is allowed beside it (128 MiB): two such pictures at once
/// are over the kernel's limit.
const MAX_SCRATCH: u64 = 192 * MIB;

/// A picture of this size that is one slope, as JPEG.
fn jpeg(side: u16, progressive: bool) -> Vec<u8> {
    let n = usize::from(side);
    let pixels: Vec<u8> = (0..n * n).flat_map(|i| [(i / n / 32) as u8; 3]).collect();
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 50);
    encoder.set_progressive(progressive);
    encoder.encode(&pixels, side, side, ColorType::Rgb).unwrap();
    bytes
}

/// A PNG that claims an interlaced picture of this size, with as much data as
/// such a picture may have, and all of it wrong.
fn forged(side: u32) -> Vec<u8> {
    let mut header = [side.to_be_bytes(), side.to_be_bytes()].concat();
    // Depth, colour, compression, filter, interlace.
    header.extend([8, 2, 0, 0, 1]);
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [
        (b"IHDR", &header[..]),
        (b"IDAT", &[0xa5; 200_000]),
        (b"IEND", b""),
    ] {
        bytes.extend((content.len() as u32).to_be_bytes());
        let chunk = [&kind[..], content].concat();
        bytes.extend_from_slice(&chunk);
        bytes.extend(crc32(&chunk).to_be_bytes());
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let grey = GrayImage::from_fn(width, height, |x, y| Luma([(x / 7 + y / 3) as u8]));
    let image = DynamicImage::from(DynamicImage::from(grey).to_rgba8());
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// In this order, one after the other, on one worker.
fn data(dir: &Path) -> u64 {
    let files: [(&str, Vec<u8>); 7] = [
        ("a_forged.png", forged(7_800)),
        ("b_large.jpg", jpeg(7_800, false)),
        ("c_wide.png", encoded(16_000_000, 1, ImageFormat::Png)),
        ("d_large.png", encoded(4_000, 4_000, ImageFormat::Png)),
        ("e_large.tiff", encoded(2_000, 2_000, ImageFormat::Tiff)),
        ("f_scans.jpg", jpeg(3_000, true)),
        ("g_too_large.webp", encoded(4_000, 4_000, ImageFormat::WebP)),
    ];
    for (name, bytes) in &files {
        fs::write(dir.join(name), bytes).unwrap();
    }
    files.iter().map(|(_, b)| b.len() as u64).max().unwrap()
}

/// Rows, faults by path, and the largest size that a worker ever had.
fn load(dir: &Path, workers: usize) -> (Vec<Row>, Vec<String>, Option<u64>) {
    let recipe = Recipe::new("whole")
        .then(Resize::shorter(64))
        .then(CenterCrop::new(64))
        .with_decode(DecodeMode::Full);
    let mut loader = Loader::builder(Source::detect(dir).unwrap())
        .helper(FEATHERLOAD)
        .recipe(recipe)
        .num_workers(workers)
        .batch_size(1)
        .shuffle(false)
        .on_error(OnError::Skip)
        .max_scratch(MAX_SCRATCH)
        .build()
        .unwrap();
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    // Twice: what was kept of the first round is there in the second.
    for _ in 0..2 {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            all.extend(rows(&batch));
            faults.extend(batch.faults().iter().map(|f| {
                let name = f.path.file_name().unwrap().to_str().unwrap();
                format!("{name}: {}: {}", f.fault.kind.name(), f.fault.reason)
            }));
        }
    }
    let report = loader.report().unwrap();
    assert_eq!(report.worker_deaths, 0, "{:?}", report.events);
    let peaks = report.workers.iter().map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        kib * 1024
    });
    (all, faults, peaks.max())
}

#[test]
fn one_picture_costs_the_next_nothing_and_nobody_is_over_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let largest = data(dir.path());
    let (expected, faults, _) = load(dir.path(), 0);
    println!("{faults:#?}");
    for bad in [
        "a_forged.png: corrupt",
        "c_wide.png: too large",
        "g_too_large.webp: too large",
    ] {
        assert_eq!(
            faults.iter().filter(|f| f.starts_with(bad)).count(),
            2,
            "{bad}"
        );
    }
    assert_eq!(faults.len(), 6, "{faults:?}");
    for workers in [1, 2] {
        let (got, theirs, peak) = load(dir.path(), workers);
        assert_eq!(theirs, faults, "{workers} workers");
        assert!(got == expected, "{workers} workers");
        // Kept buffers, working memory, and the maps of file and ring.
        let allowed = MAX_SCRATCH + 128 * MIB + largest + 8 * MIB;
        let peak = peak.unwrap();
        println!("{workers} workers: {} MiB at most", peak / MIB);
        assert!(peak <= allowed, "{peak} bytes, {allowed} allowed");
    }
}
