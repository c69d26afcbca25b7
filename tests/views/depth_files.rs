//! Which depths are read, and of which files.

use std::fs;
use std::path::Path;

use featherload::Result;
use featherload::rays::RayField;
use featherload::scene::{Scene, SceneOptions};
use featherload::views::{View, ViewField, ViewsBuilder};
use image::{GrayImage, ImageBuffer, Luma};

use crate::common::scene::{Depths, HEIGHT, IMAGES, WIDTH, Written};
use crate::views;

fn level(row: u32, col: u32) -> u16 {
    (row * 100 + col + 1) as u16
}

/// A scene with a depth beside each image, which its file does not name.
fn unnamed(folder: &str, save: impl Fn(&Path)) -> Written {
    let scene = Written::new();
    fs::create_dir(scene.path().join(folder)).unwrap();
    for image in 0..IMAGES {
        save(&scene.path().join(format!("{folder}/{image:02}.png")));
    }
    scene
}

fn depths(view: &View) -> Vec<f32> {
    let numbers = view
        .bytes(ViewField::Depth)
        .unwrap()
        .as_chunks::<4>()
        .0
        .iter();
    numbers.map(|number| f32::from_ne_bytes(*number)).collect()
}

/// The depths of the first view, in numbers of the file.
fn first(builder: ViewsBuilder) -> Result<Vec<f32>> {
    let mut views = builder.build()?;
    let scale = views.scene().depth_scale();
    let view = views.next_view()?;
    Ok(depths(&view)
        .iter()
        .map(|v| (f64::from(*v) / scale) as f32)
        .collect())
}

fn close(found: &[f32], wanted: &[f32]) -> bool {
    found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs())
}

#[test]
fn depths_that_nobody_asked_for_end_no_run() {
    type Save = fn(&Path);
    let spoils: [Save; 3] = [
        |path| {
            GrayImage::from_pixel(WIDTH, HEIGHT, Luma([200]))
                .save(path)
                .unwrap()
        },
        |path| {
            GrayImage::from_pixel(HEIGHT, WIDTH, Luma([200]))
                .save(path)
                .unwrap()
        },
        |path| fs::write(path, b"no picture").unwrap(),
    ];
    for save in spoils {
        let scene = unnamed("depths", save);
        let mut shown = views(&scene, 1).build().unwrap();
        assert!((0..IMAGES).all(|_| !shown.next_view().unwrap().has(ViewField::Depth)));
        let mut rays = scene.rays(1).build().unwrap();
        assert!(!rays.next_batch().unwrap().has(RayField::Depths));
        let report = rays.scene().report();
        assert_eq!((report.depths, report.found_depths), (0, u64::from(IMAGES)));
        let note = "depths were found by name. They are read if depths are requested";
        assert!(
            report.notes.iter().any(|text| text.contains(note)),
            "{:?}",
            report.notes
        );
    }
}

#[test]
fn depths_that_are_asked_for_are_found_by_the_names_of_images() {
    let picture: Depths = ImageBuffer::from_fn(WIDTH, HEIGHT, |x, y| Luma([level(y, x)]));
    let wanted: Vec<f32> = picture.as_raw().iter().map(|v| f32::from(*v)).collect();
    for folder in ["depths", "depth"] {
        let scene = unnamed(folder, |path| picture.save(path).unwrap());
        assert!(close(
            &first(views(&scene, 1).depths(true)).unwrap(),
            &wanted
        ));
        let mut rays = scene.rays(1).depths(true).build().unwrap();
        assert!(rays.next_batch().unwrap().has(RayField::Depths));
        // A scene that was read before.
        let read = Scene::open(scene.path(), &SceneOptions::default()).unwrap();
        let of_read = featherload::views::Views::builder(read)
            .num_workers(1)
            .depths(true);
        let of_read = of_read.helper(crate::common::FEATHERLOAD);
        assert!(close(&first(of_read).unwrap(), &wanted));
        let mut options = SceneOptions::default();
        options.find_depths = true;
        let read = Scene::open(scene.path(), &options).unwrap();
        assert!(read.frames.iter().all(|frame| frame.depth.is_some()));
        assert!(first(views(&scene, 1).depths(false)).unwrap().is_empty());
    }
}

#[test]
fn inverse_depths_are_named_and_not_read_as_lengths() {
    let picture: Depths = ImageBuffer::from_pixel(WIDTH, HEIGHT, Luma([700]));
    let scene = unnamed("depths", |path| picture.save(path).unwrap());
    fs::create_dir_all(scene.path().join("sparse/0")).unwrap();
    fs::write(scene.path().join("sparse/0/depth_params.json"), "{}").unwrap();
    let mut plain = views(&scene, 1).build().unwrap();
    assert!(!plain.next_view().unwrap().has(ViewField::Depth));
    let notes = plain.scene().notes.join(" ");
    assert!(
        notes.contains("inverse depths (depth_params.json)"),
        "{notes}"
    );
    let e = views(&scene, 1)
        .depths(true)
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("depth_params.json") && e.contains("inverse"),
        "{e}"
    );
}

/// `cv2.resize(.., INTER_NEAREST)` of `nerfstudio.data.utils.data_utils`.
#[test]
fn depths_of_another_size_are_resized_as_nerfstudio_does() {
    for (times, per) in [(2, 1), (3, 1), (1, 2)] {
        let (width, height) = (WIDTH * times / per, HEIGHT * times / per);
        let large: Depths = ImageBuffer::from_fn(width, height, |x, y| Luma([level(y, x)]));
        let scene = Written::with_depths(|_| Some(large.clone()));
        let place = |at: u32, of: u32, among: u32| {
            let place = f64::from(at) * (1.0 / (f64::from(of) / f64::from(among)));
            (place.floor() as u32).min(among - 1)
        };
        let pixels = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |col| (row, col)));
        let wanted: Vec<f32> = pixels
            .map(|(row, col)| level(place(row, HEIGHT, height), place(col, WIDTH, width)).into())
            .collect();
        assert!(
            close(&first(views(&scene, 1)).unwrap(), &wanted),
            "{times} / {per}"
        );
    }
}

/// Writes a file of depths.
type Save = Box<dyn Fn(&Path)>;

#[test]
fn floats_and_8_bits_count_as_nerfstudio_counts_them() {
    let metres: Vec<f32> = (0..WIDTH * HEIGHT).map(|at| at as f32 * 0.01).collect();
    let text = format!(
        "{:<117}\n",
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({HEIGHT}, {WIDTH}, 1), }}")
    );
    let mut array = b"\x93NUMPY\x01\0\x76\0".to_vec();
    array.extend(text.as_bytes());
    array.extend(metres.iter().flat_map(|v| v.to_le_bytes()));
    let flat = GrayImage::from_fn(WIDTH, HEIGHT, |x, y| Luma([(x + y) as u8]));
    let grey: Vec<f32> = flat.as_raw().iter().map(|v| f32::from(*v)).collect();
    let saves: [(Save, Vec<f32>); 2] = [
        (
            Box::new(move |path| fs::write(path, &array).unwrap()),
            metres,
        ),
        (Box::new(move |path| flat.save(path).unwrap()), grey),
    ];
    for (save, wanted) in saves {
        let scene = unnamed("depths", save);
        for workers in [0, 2] {
            let found = first(views(&scene, workers).depths(true)).unwrap();
            assert!(close(&found, &wanted), "{workers}");
        }
    }
}

#[test]
fn what_reading_depths_takes_is_counted() {
    let picture: Depths = ImageBuffer::from_pixel(3 * WIDTH, 3 * HEIGHT, Luma([700]));
    let scene = Written::with_depths(|_| Some(picture.clone()));
    let needed = |depths: bool| {
        let shown = views(&scene, 1).depths(depths).memory_limit(1);
        shown.memory_plan_with_refusal().unwrap().0.memory
    };
    let (with, without) = (needed(true), needed(false));
    let file = 9 * u64::from(WIDTH) * u64::from(HEIGHT);
    // Two bytes of each pixel of the file, and four that are kept.
    assert!(with.worker.depth_bytes >= 6 * file);
    assert!(with.store_bytes >= without.store_bytes + u64::from(IMAGES) * 4 * file / 9);
}
