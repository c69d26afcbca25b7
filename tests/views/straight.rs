//! Straight images out of bent ones, beside OpenCV's: `tests/goldens/straight.json`, which
//! `scripts/straight_goldens` has made.
//!
//! Every comparison is made with wrong places too, and has to fail.

use std::fs;
use std::path::Path;

use featherload::Camera;
use featherload::views::{View, ViewField, Views, ViewsBuilder};
use image::{GrayImage, Luma, RgbImage};
use serde::Deserialize;

use crate::common::FEATHERLOAD;
use crate::digests;

#[derive(Deserialize)]
struct Goldens {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    keys: serde_json::Map<String, serde_json::Value>,
    image: String,
    size: [usize; 2],
    straight: String,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/straight.json");
    let goldens: Goldens = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    goldens.cases
}

fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().as_chunks::<2>().0.iter();
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

impl Case {
    fn number(&self, key: &str) -> u32 {
        self.keys[key].as_u64().unwrap() as u32
    }

    /// As many images as cases, `copies` of each, and the masks that `mask` makes.
    fn write_all(folder: &Path, copies: usize, mask: Option<&dyn Fn(u32, u32) -> bool>) {
        fs::create_dir(folder.join("images")).unwrap();
        fs::create_dir(folder.join("masks")).unwrap();
        let mut frames = Vec::new();
        for case in cases() {
            for copy in 0..copies {
                let name = format!("{:02}.png", frames.len());
                let (width, height) = (case.number("w"), case.number("h"));
                let image = RgbImage::from_raw(width, height, bytes(&case.image)).unwrap();
                image.save(folder.join("images").join(&name)).unwrap();
                let mut frame = case.keys.clone();
                frame.insert("file_path".into(), format!("images/{name}").into());
                let at = frames.len() as f64;
                let pose = [
                    [1.0, 0.0, 0.0, at],
                    [0.0, 1.0, 0.0, at * at + copy as f64],
                    [0.0, 0.0, 1.0, 0.5 * at],
                    [0.0, 0.0, 0.0, 1.0],
                ];
                frame.insert("transform_matrix".into(), serde_json::json!(pose));
                if let Some(holds) = mask {
                    let mask = GrayImage::from_fn(width, height, |x, y| {
                        Luma([if holds(y, x) { 255 } else { 0 }])
                    });
                    mask.save(folder.join("masks").join(&name)).unwrap();
                    frame.insert("mask_path".into(), format!("masks/{name}").into());
                }
                frames.push(frame);
            }
        }
        let text = serde_json::json!({ "frames": frames }).to_string();
        fs::write(folder.join("transforms.json"), text).unwrap();
    }
}

fn straight(folder: &Path, workers: usize) -> ViewsBuilder {
    let mut scene = featherload::scene::SceneOptions::default();
    scene.split_by = Some(featherload::scene::SplitBy::All);
    let source = featherload::scene::SceneSource::Path(folder.to_owned(), scene);
    let views = Views::builder(source)
        .helper(FEATHERLOAD)
        .num_workers(workers);
    views.undistort(true).shuffle(false)
}

/// The camera of an image as it was taken.
fn bent(views: &Views, image: u64) -> Camera {
    let frames = views
        .scene()
        .frames_of(featherload::scene::SceneSplit::Train);
    let frame = &views.scene().frames[frames[image as usize] as usize];
    views.scene().cameras[frame.camera as usize]
}

/// How many levels two images are apart at most, and by how many pixels moved the second
/// is; where all that OpenCV mixes lies within the bent image.
fn largest_difference(
    view: &View,
    bent: &Camera,
    wanted: &[u8],
    (down, right): (usize, usize),
) -> u8 {
    let straight = bent.undistorted().unwrap();
    let found = view.bytes(ViewField::Image).unwrap().as_chunks::<3>().0;
    let wanted = wanted.as_chunks::<3>().0;
    let (height, width) = (view.height(), view.width());
    assert_eq!(found.len(), wanted.len());
    let mut most = 0;
    let mut compared = 0;
    for row in 0..height - down {
        for col in 0..width - right {
            let [x, y] = straight.source(col as f64 + 0.5, row as f64 + 0.5).unwrap();
            let inside = |at: f64, of: u32| (0.5..=f64::from(of) - 0.5).contains(&at);
            if !(inside(x, bent.width) && inside(y, bent.height)) {
                continue;
            }
            compared += 1;
            let pair = (
                found[row * width + col],
                wanted[(row + down) * width + col + right],
            );
            for (found, wanted) in pair.0.iter().zip(pair.1) {
                most = most.max(found.abs_diff(wanted));
            }
        }
    }
    assert!(compared > height * width * 9 / 10, "{compared} pixels");
    most
}

#[test]
fn straight_images_are_opencvs() {
    let dir = tempfile::tempdir().unwrap();
    Case::write_all(dir.path(), 1, None);
    let mut views = straight(dir.path(), 0).build().unwrap();
    for case in cases() {
        let view = views.next_view().unwrap();
        assert_eq!([view.height(), view.width()], case.size, "{}", case.name);
        let shown = views.cameras()[view.index() as usize];
        assert_eq!([shown.height as usize, shown.width as usize], case.size);
        assert_eq!(shown.lens, featherload::Lens::Pinhole);
        let bent = bent(&views, view.index());
        let wanted = bytes(&case.straight);
        let levels = largest_difference(&view, &bent, &wanted, (0, 0));
        assert!(levels <= 1, "{}: {levels} levels", case.name);
        // One pixel off in either direction is seen.
        for moved in [(0, 1), (1, 0)] {
            let levels = largest_difference(&view, &bent, &wanted, moved);
            assert!(levels > 8, "{}, {moved:?}: {levels} levels", case.name);
        }
    }
}

#[test]
fn every_worker_straightens_alike_with_maps_that_are_kept_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let holds = |row: u32, col: u32| !(row / 4 + col / 5).is_multiple_of(3);
    Case::write_all(dir.path(), 3, Some(&holds));
    let wanted = digests(&mut straight(dir.path(), 0).build().unwrap(), 30);
    for workers in [1, 2, 8] {
        let mut views = straight(dir.path(), workers).build().unwrap();
        assert!(digests(&mut views, 30) == wanted, "{workers} workers");
    }
    // Three images of a camera show the same; alone no map is kept for it.
    let alone = tempfile::tempdir().unwrap();
    Case::write_all(alone.path(), 1, Some(&holds));
    let mut many = straight(dir.path(), 1).build().unwrap();
    let mut one = straight(alone.path(), 1).build().unwrap();
    for _ in cases() {
        let one = one.next_view().unwrap();
        for _ in 0..3 {
            let of_many = many.next_view().unwrap();
            for field in ViewField::ALL {
                assert!(of_many.bytes(field).unwrap() == one.bytes(field).unwrap());
            }
        }
    }
}

#[test]
fn a_mask_is_straightened_as_its_image_is() {
    let dir = tempfile::tempdir().unwrap();
    // Two edges.
    let holds = |row: u32, col: u32| row > 20 && col < 30;
    Case::write_all(dir.path(), 1, Some(&holds));
    let mut views = straight(dir.path(), 1).build().unwrap();
    for case in cases() {
        let view = views.next_view().unwrap();
        let camera = bent(&views, view.index());
        let straight = camera.undistorted().unwrap();
        let found = view.bytes(ViewField::Mask).unwrap();
        let mut moved = 0;
        for (at, found) in found.iter().enumerate() {
            let (row, col) = (at / view.width(), at % view.width());
            let [x, y] = straight.source(col as f64 + 0.5, row as f64 + 0.5).unwrap();
            // Of four pixels, or fewer, that are mixed; where a place is near a middle the
            // numbers of places decide.
            let (left, up) = ((x - 0.5).floor(), (y - 0.5).floor());
            let close = |at: f64| (at - 0.5 - (at - 0.5).round()).abs() < 1e-3;
            if close(x) || close(y) {
                continue;
            }
            let is_in = |x: f64, y: f64| {
                let inside = x >= 0.0 && y >= 0.0;
                let inside = inside && x < f64::from(camera.width) && y < f64::from(camera.height);
                inside && holds(y as u32, x as u32)
            };
            let four = [
                (left, up),
                (left + 1.0, up),
                (left, up + 1.0),
                (left + 1.0, up + 1.0),
            ];
            let wanted = four.iter().all(|(x, y)| is_in(*x, *y));
            assert_eq!(*found, u8::from(wanted), "{}: {row} {col}", case.name);
            moved += usize::from(holds(row as u32, col as u32) != wanted);
        }
        // A mask that is not straightened would differ.
        assert!(moved > 10, "{}: {moved} pixels", case.name);
    }
}

#[test]
fn straight_floats_are_not_rounded() {
    let dir = tempfile::tempdir().unwrap();
    Case::write_all(dir.path(), 1, None);
    let mut levels = straight(dir.path(), 0).build().unwrap();
    let mut floats = straight(dir.path(), 1).float(true).build().unwrap();
    let mut between = 0;
    for _ in cases() {
        let (a, b) = (levels.next_view().unwrap(), floats.next_view().unwrap());
        let found = b.bytes(ViewField::Image).unwrap().as_chunks::<4>().0;
        for (level, found) in a.bytes(ViewField::Image).unwrap().iter().zip(found) {
            let value = f32::from_ne_bytes(*found) * 255.0;
            assert!(
                (value - f32::from(*level)).abs() <= 0.5001,
                "{value} {level}"
            );
            between += usize::from((value - value.round()).abs() > 0.01);
        }
    }
    assert!(between > 1000);
}

#[test]
fn a_lens_that_cannot_be_straightened_is_named_with_its_image() {
    let dir = tempfile::tempdir().unwrap();
    Case::write_all(dir.path(), 1, None);
    let file = dir.path().join("transforms.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("OPENCV_FISHEYE", "EQUIRECTANGULAR", 1)).unwrap();
    let e = straight(dir.path(), 0).build().unwrap_err();
    let text = e.to_string();
    assert!(e.is_usage() && text.contains("images/03.png"), "{text}");
    assert!(
        text.contains("equirectangular") && text.contains("Remove `undistort`"),
        "{text}"
    );
    // Not asked for, it is shown.
    let mut views = straight(dir.path(), 0).undistort(false).build().unwrap();
    views.go_to(3);
    assert_eq!(views.next_view().unwrap().index(), 3);
}
