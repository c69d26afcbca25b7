//! Samples with boxes: a box is the picture to all that follows, so the stream is
//! that of pictures which were cut before.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use featherload::index::ListOptions;
use featherload::recipe::{Cast, ColorJitter, RandomHorizontalFlip, RandomResizedCrop, Resize};
use featherload::{
    DataType, DecodeMode, FaultKind, Index, Loader, LoaderBuilder, MemoryLayout, OnError, Recipe,
    ReorderMode, RowStatus, Source,
};
use image::{ImageFormat, RgbImage};

use crate::common::rows::{assert_same, stream};
use crate::common::{FEATHERLOAD, Picture, Random, npy};

/// Height, width and pixels.
type Pixels = (usize, usize, Vec<u8>);

fn encoded((height, width, rgb): &Pixels, format: ImageFormat) -> Vec<u8> {
    let image = RgbImage::from_raw(*width as u32, *height as u32, rgb.clone()).unwrap();
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, format).unwrap();
    out.into_inner()
}

fn noise(height: usize, width: usize, seed: u64) -> Pixels {
    let mut random = Random(seed);
    let rgb = (0..3 * height * width).map(|_| random.next() as u8);
    (height, width, rgb.collect())
}

/// The same JPEG with this EXIF orientation.
fn turned(jpeg: &[u8], tag: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([tag, 0, 0, 0, 0, 0, 0, 0]);
    let length = (exif.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, 0xe1], &length, &exif, &jpeg[2..]].concat()
}

/// Rows y0 to y1 and columns x0 to x1, as numpy slices them.
fn crop((height, width, rgb): &Pixels, [x0, y0, x1, y1]: [usize; 4]) -> Pixels {
    let (x1, y1) = (x1.min(*width), y1.min(*height));
    let rows = (y0..y1).flat_map(|y| &rgb[3 * (y * width + x0)..3 * (y * width + x1)]);
    (y1 - y0, x1 - x0, rows.copied().collect())
}

/// What a picture is called, its file, and its box.
type Boxed = (&'static str, Vec<u8>, [usize; 4]);

/// Of each way to pixels one, and boxes that reach beyond the picture.
fn upright_files() -> Vec<Boxed> {
    let jpeg = |seed| Picture::rgb(171, 130, seed);
    let progressive = Picture {
        progressive: true,
        ..jpeg(3)
    };
    let grey = Picture {
        grey: true,
        ..jpeg(4)
    };
    vec![
        (
            "png.x.png",
            encoded(&noise(90, 70, 1), ImageFormat::Png),
            [7, 13, 61, 80],
        ),
        (
            "bmp.bmp",
            encoded(&noise(90, 70, 2), ImageFormat::Bmp),
            [0, 1, 70, 90],
        ),
        ("raw.npy", npy("(90, 70, 3)", 5), [9, 8, 50, 77]),
        ("greys.npy", npy("(90, 70)", 6), [1, 2, 64, 71]),
        ("sub/jpeg.jpg", jpeg(2).encode(), [35, 21, 160, 119]),
        ("sub/all.jpg", jpeg(7).encode(), [0, 0, 171, 130]),
        ("progressive.jpg", progressive.encode(), [1, 0, 99, 130]),
        ("grey.jpg", grey.encode(), [50, 50, 151, 129]),
        (
            "beyond.jpg",
            jpeg(5).encode(),
            [60, 20, 5000, 4_294_967_295],
        ),
        (
            "over.png",
            encoded(&noise(40, 90, 9), ImageFormat::Png),
            [10, 3, 91, 41],
        ),
    ]
}

fn turned_files() -> Vec<Boxed> {
    const NAMES: [&str; 7] = ["t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    let files = NAMES.into_iter().zip(2u8..).map(|(name, tag)| {
        let jpeg = Picture::rgb(171, 130, u64::from(tag)).encode();
        // Upright they are 171 x 130 from tag 5 on.
        (name, turned(&jpeg, tag), [11, 29, 124, 5000])
    });
    files.collect()
}

/// Writes pictures, their box files and a list.
fn scene(dir: &Path, files: &[Boxed]) -> PathBuf {
    let mut list = String::new();
    for (at, (name, bytes, [x0, y0, x1, y1])) in files.iter().enumerate() {
        let write = |path: PathBuf, bytes: &[u8]| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write(dir.join("images").join(name), bytes);
        let stem = name.split('.').next().unwrap();
        let text = format!("1\n{x0} {y0} 3 4\n{x0} {y0}\t{x1} {y1}\n");
        let path = dir.join("boxes").join(format!("{stem}.txt"));
        assert!(!path.exists(), "{name} would share its box");
        write(path, text.as_bytes());
        list += &format!("{name} {at}\n");
    }
    let path = dir.join("list.txt");
    fs::write(&path, list).unwrap();
    path
}

fn options(dir: &Path, has_boxes: bool) -> ListOptions {
    ListOptions {
        root: Some(dir.join("images")),
        boxes: has_boxes.then(|| dir.join("boxes")),
        ..ListOptions::default()
    }
}

fn loader(source: Source) -> LoaderBuilder {
    let builder = Loader::builder(source).helper(FEATHERLOAD);
    builder.batch_size(4).seed(11)
}

fn boxed(dir: &Path) -> LoaderBuilder {
    loader(Source::List(dir.join("list.txt"), options(dir, true)))
}

/// Whole pictures, by their ids.
fn pictures(builder: LoaderBuilder, workers: usize) -> Vec<Pixels> {
    let builder = builder.recipe(Recipe::full()).num_workers(workers);
    let mut loader = builder.build().unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in batch.rows() {
            let (height, width) = row.size();
            let pixels = row.as_slice::<u8>().unwrap().to_vec();
            all.push((row.id(), (height, width, pixels)));
        }
    }
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, picture)| picture).collect()
}

/// What is due of each picture: its whole, cut.
fn expected_crops(dir: &Path, files: &[Boxed]) -> Vec<Pixels> {
    let plain = Source::List(dir.join("list.txt"), options(dir, false));
    let whole = pictures(loader(plain), 0);
    assert_eq!(whole.len(), files.len());
    let cut = whole.iter().zip(files).map(|(of, (.., at))| crop(of, *at));
    cut.collect()
}

#[test]
fn a_box_is_the_picture_to_the_pixel() {
    let dir = tempfile::tempdir().unwrap();
    let files = [upright_files(), turned_files()].concat();
    scene(dir.path(), &files);
    let want = expected_crops(dir.path(), &files);
    for workers in [0, 2] {
        let got = pictures(boxed(dir.path()), workers);
        for ((got, want), (name, ..)) in got.iter().zip(&want).zip(&files) {
            assert_eq!((got.0, got.1), (want.0, want.1), "{name}");
            assert!(got.2 == want.2, "{name}, {workers} workers");
        }
        assert_eq!(got.len(), want.len());
    }
    // One row and one slot are as large as the box; and a run fits what was said.
    let forecast = boxed(dir.path())
        .recipe(Recipe::full())
        .memory_plan(3)
        .unwrap();
    let largest = want.iter().map(|(h, w, _)| 3 * h * w).max().unwrap() as u64;
    assert!(forecast.memory.slot_bytes <= 4 * (largest + 64) + 4096);
    let message = forecast.largest.unwrap();
    let sizes: Vec<_> = want
        .iter()
        .map(|(h, w, _)| (*h as u32, *w as u32))
        .collect();
    assert!(
        sizes.contains(&(message.height, message.width)),
        "{message:?}"
    );
}

/// Operations draw on the box's size, and resizes see nothing outside of it.
#[test]
fn the_stream_is_that_of_pictures_which_were_cut_before() {
    let dir = tempfile::tempdir().unwrap();
    let files = upright_files();
    scene(dir.path(), &files);
    let before = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for (id, picture) in expected_crops(dir.path(), &files).iter().enumerate() {
        let png = encoded(picture, ImageFormat::Png);
        fs::write(before.path().join(format!("{id}.png")), png).unwrap();
        list += &format!("{id}.png {id}\n");
    }
    let listed = before.path().join("list.txt");
    fs::write(&listed, list).unwrap();
    let shape = Recipe::new("any")
        .then(ColorJitter::default())
        .then(RandomResizedCrop::new(48))
        .then(RandomHorizontalFlip::default());
    let shorter = Recipe::new("shorter")
        .then(Resize::exact(40, 50))
        .then(Cast {
            dtype: DataType::F32,
        });
    for recipe in [
        Recipe::train224().with_decode(DecodeMode::Full),
        Recipe::eval224().with_decode(DecodeMode::Full),
        shape.clone().with_reorder(ReorderMode::Off),
        shape.with_reorder(ReorderMode::Exact),
        shorter.with_decode(DecodeMode::Full),
    ] {
        let cut = Source::List(listed.clone(), ListOptions::default());
        let builder = loader(cut).recipe(recipe.clone()).num_workers(0);
        let want = stream(&mut builder.build().unwrap(), 2);
        for workers in [0, 2] {
            let builder = boxed(dir.path()).recipe(recipe.clone());
            let mut loader = builder.num_workers(workers).build().unwrap();
            let what = format!("{}, {workers} workers", recipe.name);
            assert_same(&stream(&mut loader, 2), &want, &what);
        }
    }
}

/// At 1/2 and less a box begins within a pixel; it comes close to the same cut before.
#[test]
fn a_box_is_decoded_smaller_where_the_recipe_allows_it() {
    let dir = tempfile::tempdir().unwrap();
    let side = 901;
    let image = RgbImage::from_fn(side, side, |x, y| {
        let wave = |v: u32, by: f32| (128.0 + 110.0 * (v as f32 / by).sin()) as u8;
        image::Rgb([wave(x, 37.0), wave(y, 43.0), wave(x + y, 53.0)])
    });
    let mut jpeg = Vec::new();
    let color = jpeg_encoder::ColorType::Rgb;
    jpeg_encoder::Encoder::new(&mut jpeg, 95)
        .encode(&image, side as u16, side as u16, color)
        .unwrap();
    let files = [
        ("a.jpg", jpeg.clone(), [13, 27, 771, 850]),
        ("b.jpg", turned(&jpeg, 6), [131, 5, 890, 666]),
    ];
    scene(dir.path(), &files);
    let make = |mode, workers| {
        let recipe = Recipe::new("small")
            .then(Resize::exact(60, 70))
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc)
            .with_decode(mode);
        let builder = boxed(dir.path()).recipe(recipe).num_workers(workers);
        let mut loader = builder.build().unwrap();
        let batch = loader.epoch().next().unwrap().unwrap();
        let mut rows: Vec<(u64, Vec<u8>)> = batch
            .rows()
            .map(|row| (row.id(), row.as_slice::<u8>().unwrap().to_vec()))
            .collect();
        rows.sort();
        rows
    };
    let full = make(DecodeMode::Full, 0);
    let scaled = make(DecodeMode::Scaled, 0);
    assert!(scaled == make(DecodeMode::Scaled, 2) && scaled != full);
    for ((_, full), (_, scaled)) in full.iter().zip(&scaled) {
        let far = full.iter().zip(scaled).map(|(a, b)| a.abs_diff(*b));
        let mean = far.clone().map(f64::from).sum::<f64>() / full.len() as f64;
        // A pixel of the row further on differs by some 30.
        let most = far.max().unwrap();
        assert!(mean < 1.0 && most <= 8, "{mean} {most}");
    }
}

#[test]
fn a_box_outside_of_its_picture_is_a_failed_sample_that_names_both() {
    let dir = tempfile::tempdir().unwrap();
    let jpeg = Picture::rgb(60, 40, 1).encode();
    let files = [
        ("good.jpg", jpeg.clone(), [0, 0, 9, 9]),
        // Upright it is 60 x 40.
        ("flat.jpg", turned(&jpeg, 6), [40, 0, 50, 9]),
        (
            "low.png",
            encoded(&noise(30, 50, 1), ImageFormat::Png),
            [0, 30, 9, 31],
        ),
    ];
    scene(dir.path(), &files);
    for recipe in [Recipe::eval224(), Recipe::full()] {
        for workers in [0, 2] {
            let builder = boxed(dir.path())
                .recipe(recipe.clone())
                .num_workers(workers);
            let mut loader = builder.on_error(OnError::Skip).build().unwrap();
            let batch = loader.epoch().next().unwrap().unwrap();
            let good = batch.status().iter().filter(|s| **s == RowStatus::Ok);
            assert_eq!((good.count(), batch.faults().len()), (1, 2));
            for (id, box_and_size) in [(1, ["40 0 50 9", "40 x 60"]), (2, ["0 30 9 31", "50 x 30"])]
            {
                let fault = batch.faults().iter().find(|f| f.id == id).unwrap();
                let fault = &fault.fault;
                assert_eq!(fault.kind, FaultKind::TooSmall, "{fault:?}");
                for part in box_and_size {
                    assert!(fault.reason.contains(part), "{fault:?} lacks {part}");
                }
            }
        }
    }
}

/// A run is resumed over the same boxes alone.
#[test]
fn boxes_are_part_of_what_a_state_belongs_to() {
    let dir = tempfile::tempdir().unwrap();
    let files = [("a.jpg", Picture::rgb(60, 40, 1).encode(), [0, 0, 9, 9])];
    scene(dir.path(), &files);
    let list = dir.path().join("list.txt");
    let hash = |has_boxes| {
        let options = options(dir.path(), has_boxes);
        Index::list(&list, &options).unwrap().0.hash()
    };
    let with = hash(true);
    assert_eq!(with, hash(true));
    assert_ne!(with, hash(false));
    fs::write(dir.path().join("boxes/a.txt"), "0 0 9 8").unwrap();
    assert_ne!(with, hash(true));
}
