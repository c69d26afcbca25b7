//! Every format decodes as its name states, to the painted image.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use featherload::recipe::{CenterCrop, Resize};
use featherload::{DataType, DecodeMode, Loader, MemoryLayout, Recipe, RowStatus, Source};
use image::{ColorType, DynamicImage, ImageFormat};

use super::*;
use crate::demo::picture::DemoPicture;
use crate::demo::tests::{args, digest, files};
use crate::demo::{DemoKind, scene, write};

const SIDE: u16 = 96;

/// The image of a format, in one size.
fn picture(form: &'static FileEncoding) -> DemoPicture {
    DemoPicture {
        form: Some(form.name),
        coding: form.coding,
        width: 150,
        height: 100,
        quality: 90,
        look: 5,
        key: 6,
    }
}

fn painted() -> Vec<u8> {
    scene::paint(150, 100, 5, 6)
}

fn named(name: &str) -> &'static FileEncoding {
    FORMS.iter().find(|f| f.name == name).unwrap()
}

/// Decodes the bytes with the crate `image`, whatever the name.
fn decoded(form: &'static FileEncoding) -> DynamicImage {
    image::load_from_memory(&picture(form).encode().unwrap()).unwrap()
}

/// Decodes JPEGs with the loader: a square of each, by name.
fn loaded(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let side = u32::from(SIDE);
    let recipe = Recipe::new("square")
        .then(Resize::shorter(side))
        .then(CenterCrop::new(side))
        .with_decode(DecodeMode::Full)
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc);
    let mut loader = Loader::builder(Source::detect(dir).unwrap())
        .recipe(recipe)
        .num_workers(0)
        .batch_size(1)
        .shuffle(false)
        .build()
        .unwrap();
    let mut all = BTreeMap::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        assert_eq!(batch.status()[0], RowStatus::Ok);
        all.insert(
            batch.ids()[0],
            batch.pixels().unwrap().as_slice::<u8>().unwrap().to_vec(),
        );
    }
    let index = loader.index();
    let name = |id: u64| index.path(id).file_name().unwrap().to_owned();
    all.into_iter()
        .map(|(id, pixels)| (name(id).into_string().unwrap(), pixels))
        .collect()
}

fn mean_difference(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let sum: u64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / a.len() as f64
}

#[test]
fn each_form_comes_once_in_a_cycle_and_in_many_classes() {
    let cycle = FORMS.len() as u64;
    for from in [0, cycle] {
        let names: BTreeSet<_> = (from..from + cycle).map(|i| form_of(0, i).name).collect();
        assert_eq!(names.len(), FORMS.len());
    }
    let classes: BTreeSet<_> = (0..20 * cycle)
        .filter(|&i| form_of(0, i).name == "cmyk.jpg")
        .map(|i| i % 8)
        .collect();
    assert!(classes.len() > 5, "{classes:?}");
    let orientations = FORMS.iter().filter_map(|f| match f.coding {
        JpegCoding::Jpeg(JpegOptions::Turned(n)) => Some(n),
        _ => None,
    });
    assert!(orientations.eq(2..=8));
}

#[test]
fn sizes_go_from_tiny_to_4k() {
    let sizes: Vec<_> = (0..370)
        .map(|i| DemoPicture::new(DemoKind::Mixed, 1, i, 0))
        .collect();
    let long = |m: &DemoPicture| m.width.max(m.height);
    assert!(
        sizes
            .iter()
            .all(|m| (8..=3840).contains(&m.width.min(m.height)))
    );
    assert_eq!(sizes.iter().map(long).max(), Some(3840));
    assert!(sizes.iter().map(long).min() < Some(72));
    assert!(sizes.iter().any(|m| m.height == 3840));
}

/// The same bytes on every machine. Raise FORMAT if they change.
#[test]
fn the_bytes_are_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(dir.path());
    (args.kind, args.images) = (DemoKind::Mixed, FORMS.len() as u32);
    let summary = write(&args).unwrap();
    assert_eq!(summary.written, args.images);
    let digest = digest(&files(dir.path()));
    assert_eq!(
        format!("{digest:#034x}"),
        "0x9bc57172f361f60d1326a1a14def9293"
    );
}

#[test]
fn lossless_forms_keep_every_pixel() {
    for name in [
        "png-inside.jpg",
        "rgb.png",
        "rgba.png",
        "rgb16.png",
        "interlaced.png",
        "rgb.webp",
        "rgba.webp",
        "rgb.bmp",
        "rgb.tiff",
        "rgb.ppm",
        "rgb.qoi",
    ] {
        let image = decoded(named(name));
        let pixels = match &image {
            // The high byte is the painted one.
            DynamicImage::ImageRgb16(deep) => {
                deep.as_raw().iter().map(|v| (v >> 8) as u8).collect()
            }
            // Alpha hides colours and does not change them.
            other => other.to_rgb8().into_raw(),
        };
        assert_eq!((image.width(), image.height()), (150, 100), "{name}");
        assert!(pixels == painted(), "{name}");
    }
    for name in ["palette.gif", "palette.png"] {
        let pixels = decoded(named(name)).to_rgb8().into_raw();
        // The steps of the palette are 51 apart.
        let off = mean_difference(&pixels, &painted());
        assert!((1.0..20.0).contains(&off), "{name}: {off}");
    }
}

#[test]
fn content_is_what_the_form_says_whatever_the_name() {
    for form in &FORMS {
        let bytes = picture(form).encode().unwrap();
        let format = image::guess_format(&bytes).unwrap();
        let expected = match form.coding {
            JpegCoding::Jpeg(_) => ImageFormat::Jpeg,
            JpegCoding::Png(_) => ImageFormat::Png,
            JpegCoding::Lossless(_) => ImageFormat::from_path(form.name).unwrap(),
        };
        assert_eq!(format, expected, "{}", form.name);
    }
    for (name, color) in [
        ("rgb.png", ColorType::Rgb8),
        ("rgb16.png", ColorType::Rgb16),
        ("rgba.png", ColorType::Rgba8),
        ("grey.png", ColorType::L8),
        ("grey16.png", ColorType::L16),
        ("grey-alpha.png", ColorType::La8),
        ("palette.png", ColorType::Rgb8),
        ("palette-alpha.png", ColorType::Rgba8),
        ("rgba.webp", ColorType::Rgba8),
    ] {
        assert_eq!(decoded(named(name)).color(), color, "{name}");
    }
    for (name, kind, interlaced) in [
        ("palette.png", 3, 0),
        ("palette-alpha.png", 3, 0),
        ("interlaced.png", 2, 1),
        ("rgb.png", 2, 0),
    ] {
        let bytes = picture(named(name)).encode().unwrap();
        assert_eq!((bytes[25], bytes[28]), (kind, interlaced), "{name}");
    }
}

#[test]
fn alpha_goes_from_clear_to_opaque() {
    for name in ["rgba.png", "grey-alpha.png", "rgba.webp"] {
        let image = decoded(named(name)).to_rgba8();
        assert_eq!(image.get_pixel(0, 0)[3], 0, "{name}");
        assert_eq!(image.get_pixel(75, 50)[3], 255, "{name}");
        let between = image.pixels().filter(|p| (1..255).contains(&p[3]));
        assert!(between.count() > 1000, "{name}");
    }
    let palette = decoded(named("palette-alpha.png")).to_rgba8();
    assert_eq!(palette.get_pixel(0, 0)[3], 0);
    assert_eq!(palette.get_pixel(75, 50)[3], 255);
}

#[test]
fn every_jpeg_is_loaded_as_the_picture_that_was_painted() {
    let dir = tempfile::tempdir().unwrap();
    let forms = || {
        FORMS
            .iter()
            .filter(|f| matches!(f.coding, JpegCoding::Jpeg(_)))
    };
    for form in forms() {
        fs::write(dir.path().join(form.name), picture(form).encode().unwrap()).unwrap();
    }
    let rows = loaded(dir.path());
    assert_eq!(rows.len(), forms().count());
    let upright = &rows["444.jpg"];
    for form in forms() {
        let row = &rows[form.name];
        if form.coding == JpegCoding::Jpeg(JpegOptions::Grey) {
            assert!(row.chunks(3).all(|p| p[0] == p[1] && p[1] == p[2]));
            continue;
        }
        let off = mean_difference(row, upright);
        assert!(off < 6.0, "{}: {off}", form.name);
    }
    // An image with another orientation would differ far more.
    let mut turned = upright.clone();
    turned.reverse();
    assert!(mean_difference(&turned, upright) > 20.0);
}
