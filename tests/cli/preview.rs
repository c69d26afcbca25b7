//! `preview` shows what is drawn: the part of the original that a box shows is the draw.

use std::fs;
use std::path::{Path, PathBuf};

use image::RgbImage;
use serde_json::Value;

use crate::common::command::{featherload, object, refusal};

/// A picture in which every pixel differs from its neighbours, as a PNG.
fn picture(dir: &Path, name: &str, (width, height): (u32, u32), seed: u32) {
    let file = dir.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let mixed = |by: u32| (x * 31 + y * 57 + seed * 13).wrapping_mul(by) as u8;
        image::Rgb([mixed(3), mixed(7), mixed(11)])
    });
    picture.save(file).unwrap();
}

fn recipe(dir: &Path, ops: &str) -> String {
    let file = dir.join("recipe.yaml");
    fs::write(&file, format!("featherload: 1\nops:\n{ops}")).unwrap();
    file.to_str().unwrap().to_owned()
}

struct Shown {
    picture: RgbImage,
    report: Value,
}

#[track_caller]
fn preview(src: &Path, args: &[&str]) -> Shown {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("preview.png");
    let words = ["preview", src.to_str().unwrap(), "--json", "--out"];
    let words = [&words[..], &[out.to_str().unwrap()], args].concat();
    let report = object(&featherload(&words));
    let picture = image::open(&out).unwrap().to_rgb8();
    assert_eq!(report["width"], picture.width());
    assert_eq!(report["height"], picture.height());
    Shown { picture, report }
}

impl Shown {
    fn samples(&self) -> &[Value] {
        self.report["samples"].as_array().unwrap()
    }

    /// The part of the picture at a place of the report.
    fn part(&self, place: &Value) -> RgbImage {
        let [x, y, w, h] = [0, 1, 2, 3].map(|i| place[i].as_u64().unwrap() as u32);
        image::imageops::crop_imm(&self.picture, x, y, w, h).to_image()
    }
}

/// Places of the corners, which must be whole.
fn corners(draw: &Value) -> [[u32; 2]; 4] {
    let number = |v: &Value| {
        let number = v.as_f64().unwrap();
        assert!((number - number.round()).abs() < 1e-6, "{draw}");
        number.round() as u32
    };
    [0, 1, 2, 3].map(|i| [0, 1].map(|axis| number(&draw["corners"][i][axis])))
}

#[test]
fn a_box_on_the_original_is_what_the_draw_shows() {
    let dir = tempfile::tempdir().unwrap();
    for (i, class) in ["ant", "bee"].iter().enumerate() {
        picture(
            dir.path(),
            &format!("{class}/one.png"),
            (150, 130),
            i as u32,
        );
    }
    let ops = "  - random_crop: {size: 64}\n  - random_horizontal_flip: {p: 0.5}\n  \
               - cast: {dtype: f32}\n";
    let recipe = recipe(dir.path(), ops);
    let args = [
        "--recipe", &recipe, "--rows", "2", "--draws", "1", "--side", "160",
    ];
    let mut mirrored = [0; 2];
    for seed in ["0", "1", "2", "3"] {
        let shown = preview(dir.path(), &[&args[..], &["--seed", seed]].concat());
        assert_eq!(shown.samples().len(), 2);
        for sample in shown.samples() {
            assert_eq!(sample["scale"], 1.0);
            assert_eq!(sample["size"], serde_json::json!([150, 130]));
            let original = shown.part(&sample["original_at"]);
            let draw = shown.part(&sample["draws_at"][0]);
            let (width, height) = draw.dimensions();
            // 64 pixels, twice as large to be seen.
            assert_eq!((width, height), (128, 128));
            let [from, right, far, _] = corners(&sample["draws"][0]);
            let is_mirrored = right[0] < from[0];
            mirrored[usize::from(is_mirrored)] += 1;
            assert_eq!(far[1] - from[1], 64);
            assert_eq!(right[0].abs_diff(from[0]), 64);
            // But for the line of the box itself.
            for (x, y) in (3..61).flat_map(|y| (3..61).map(move |x| (x, y))) {
                let left = match is_mirrored {
                    true => from[0] - 1 - x,
                    false => from[0] + x,
                };
                let wanted = original.get_pixel(left, from[1] + y);
                let got = draw.get_pixel(2 * x, 2 * y);
                for c in 0..3 {
                    assert!(wanted[c].abs_diff(got[c]) <= 1, "{x}, {y}: {sample}");
                }
            }
        }
    }
    assert!(mirrored.iter().all(|n| *n > 0), "{mirrored:?}");
}

#[test]
fn samples_are_those_of_the_first_epoch_and_their_normalize_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..9 {
        picture(dir.path(), &format!("c{}/{i}.png", i % 3), (64, 64), i);
    }
    let plan = ["plan", dir.path().to_str().unwrap(), "--sample", "3"];
    let planned = object(&featherload(
        &[&plan[..], &["--seed", "4", "--json"]].concat(),
    ));
    let ops = "  - center_crop: {size: 64}\n  - normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, \
               0.3, 0.4]}\n  - cast: {dtype: f32}\n";
    let recipe = recipe(dir.path(), ops);
    let args = [
        "--recipe", &recipe, "--rows", "3", "--draws", "2", "--side", "64",
    ];
    let shown = preview(dir.path(), &[&args[..], &["--seed", "4"]].concat());
    for (sample, row) in shown
        .samples()
        .iter()
        .zip(planned["drawn"].as_array().unwrap())
    {
        assert_eq!((&sample["id"], &sample["path"]), (&row["id"], &row["path"]));
        let id = sample["id"].as_u64().unwrap();
        let class = sample["path"].as_str().unwrap().split('/').rev().nth(1);
        assert_eq!(sample["label"].as_str(), class, "{id}");
        let original = shown.part(&sample["original_at"]);
        for place in sample["draws_at"].as_array().unwrap() {
            let draw = shown.part(place);
            for (x, y) in (4..60).flat_map(|y| (4..60).map(move |x| (x, y))) {
                let (wanted, got) = (original.get_pixel(x, y), draw.get_pixel(x, y));
                assert!((0..3).all(|c| wanted[c].abs_diff(got[c]) <= 1), "{x}, {y}");
            }
        }
    }
    // The same by their ids, in the order that is asked for.
    let ids: Vec<String> = shown
        .samples()
        .iter()
        .map(|s| s["id"].to_string())
        .collect();
    let asked = [ids[2].as_str(), &ids[0]].join(",");
    let args = ["--recipe", &recipe, "--draws", "1", "--ids", &asked];
    let again = preview(dir.path(), &args);
    for (sample, of) in again.samples().iter().zip([2, 0]) {
        assert_eq!(sample["path"], shown.samples()[of]["path"]);
        assert_eq!(sample["label"], shown.samples()[of]["label"]);
    }
}

#[test]
fn a_failed_sample_is_a_plate_with_its_reason_and_the_others_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    picture(dir.path(), "a/good.png", (80, 60), 1);
    fs::write(dir.path().join("a/bad.jpg"), b"\xff\xd8\xff\xe0 no picture").unwrap();
    let recipe = recipe(
        dir.path(),
        "  - random_crop: {size: 70, pad_if_needed: false}\n",
    );
    let shown = preview(
        dir.path(),
        &["--recipe", &recipe, "--rows", "2", "--draws", "1"],
    );
    for sample in shown.samples() {
        let is_bad = sample["path"].as_str().unwrap().ends_with("bad.jpg");
        assert_eq!(sample["fault"].is_string(), is_bad, "{sample}");
        // 60 rows are too few for a crop of 70: the original is shown, the draw failed.
        assert!(sample["draws"][0]["fault"].is_string(), "{sample}");
        let plate = shown.part(&sample["draws_at"][0]);
        assert_eq!(plate.get_pixel(1, 10), &image::Rgb([0x3a, 0x42, 0x4c]));
    }
    let text = String::from_utf8(
        featherload(&[
            "preview",
            dir.path().to_str().unwrap(),
            "--recipe",
            &recipe,
            "--out",
            dir.path().join("out.png").to_str().unwrap(),
        ])
        .stdout,
    )
    .unwrap();
    assert!(
        text.contains("a/bad.jpg") && text.contains("out.png ("),
        "{text}"
    );
}

#[test]
fn mixed_rows_say_of_which_classes_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..4 {
        picture(dir.path(), &format!("c{i}/one.png"), (64, 64), i);
    }
    let file = recipe(dir.path(), "  - center_crop: {size: 64}\n");
    let mixing = "mixing:\n  num_classes: 4\n  ops:\n    - mixup: {alpha: 1.0}\n";
    let text = fs::read_to_string(&file).unwrap() + mixing;
    fs::write(&file, text).unwrap();
    let shown = preview(dir.path(), &["--recipe", &file, "--draws", "3"]);
    let labels = shown.samples().iter().flat_map(|sample| {
        let draws = sample["draws"].as_array().unwrap();
        draws.iter().map(|draw| draw["label"].as_str())
    });
    let labels: Vec<_> = labels.flatten().collect();
    let shares = labels.iter().filter(|label| label.contains(" + "));
    assert!(shares.count() >= 6, "{labels:?}");
}

#[test]
fn an_earlier_preview_is_replaced() {
    let (dir, pictures) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    picture(dir.path(), "a/good.png", (80, 60), 1);
    let out = pictures.path().join("p.png");
    fs::write(&out, b"\x89PNG, an earlier one").unwrap();
    let src = dir.path().to_str().unwrap();
    let args = [
        "preview",
        src,
        "--rows",
        "1",
        "--out",
        out.to_str().unwrap(),
        "--json",
    ];
    object(&featherload(&args));
    assert!(image::open(&out).is_ok());
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    picture(dir.path(), "a/good.png", (80, 60), 1);
    let src = dir.path().to_str().unwrap();
    let output = refusal(&featherload(&["preview", src, "--ids", "7"]));
    assert!(output.contains("no sample 7"), "{output}");
    let output = refusal(&featherload(&["preview", src, "--out", "/nowhere/p.png"]));
    assert!(
        output.contains("--out") && output.contains("/nowhere"),
        "{output}"
    );
    for (flag, value) in [("--batch-size", "8"), ("--on-error", "skip")] {
        let output = refusal(&featherload(&["preview", src, flag, value]));
        assert!(
            output.contains(&format!("{flag} has no effect")),
            "{output}"
        );
    }
    let none: PathBuf = dir.path().join("featherload-preview.png");
    assert!(!none.exists());
}

/// All crops of each draw, each with the box that it shows.
#[test]
fn crops_are_shown_one_after_another() {
    let dir = tempfile::tempdir().unwrap();
    picture(dir.path(), "set/ant/one.png", (90, 70), 3);
    let file = dir.path().join("crops.yaml");
    let text = "featherload: 1\ncrops:\n  - ops:\n      - random_crop: {size: 40}\n      - cast: \
                {dtype: f32}\n  - count: 2\n    ops:\n      - random_crop: {size: 20}\n      - \
                normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4]}\n      - cast: {dtype: \
                f32}\n";
    fs::write(&file, text).unwrap();
    let recipe = file.to_str().unwrap();
    let args = [
        "--recipe", recipe, "--rows", "1", "--draws", "2", "--side", "90",
    ];
    let shown = preview(&dir.path().join("set"), &args);
    let [sample] = shown.samples() else {
        panic!("{}", shown.report);
    };
    let original = shown.part(&sample["original_at"]);
    let draws = sample["draws"].as_array().unwrap();
    let crops: Vec<_> = draws.iter().map(|draw| draw["crop"].as_u64()).collect();
    assert_eq!(crops, [0, 1, 2, 0, 1, 2].map(Some));
    // The second draw has a line of its own, below the first.
    let at = |number: usize, axis: usize| sample["draws_at"][number][axis].as_u64().unwrap();
    assert!(at(3, 1) > at(0, 1) + 40 && at(3, 0) == at(0, 0));
    assert_eq!((at(1, 1), at(4, 0)), (at(0, 1), at(1, 0)));
    let mut places = std::collections::BTreeSet::new();
    for (number, draw) in draws.iter().enumerate() {
        let side = if number % 3 == 0 { 40 } else { 20 };
        let [from, right, far, _] = corners(draw);
        assert_eq!([right[0] - from[0], far[1] - from[1]], [side, side]);
        places.insert(from);
        let picture = shown.part(&sample["draws_at"][number]);
        let times = 90 / side;
        assert_eq!(picture.dimensions(), (side * times, side * times));
        // The lines of all boxes hide a part.
        let same = (0..side).flat_map(|y| (0..side).map(move |x| (x, y)));
        let same = same.filter(|(x, y)| {
            let wanted = original.get_pixel(from[0] + x, from[1] + y);
            let got = picture.get_pixel(x * times, y * times);
            (0..3).all(|c| wanted[c].abs_diff(got[c]) <= 1)
        });
        assert!(same.count() as u32 > side * side / 3, "{draw}");
    }
    assert!(places.len() > 3, "{places:?}");
}

/// A raster has a picture of its own after its draw: depths by a ramp, pairs as the image.
#[test]
fn rasters_are_shown_after_their_draw() {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    picture(&images, "one.png", (64, 64), 1);
    fs::create_dir(dir.path().join("right")).unwrap();
    fs::copy(images.join("one.png"), dir.path().join("right/one.png")).unwrap();
    fs::create_dir(dir.path().join("depth")).unwrap();
    // Not measured at the top, and farther to the right.
    let depth = image::ImageBuffer::from_fn(64, 64, |x, y| {
        image::Luma([if y < 32 { 0u16 } else { 1000 + 10 * x as u16 }])
    });
    depth.save(dir.path().join("depth/one.png")).unwrap();
    let ops = "  - center_crop: {size: 64}\n  - random_horizontal_flip: {p: 1}\n  \
               - cast: {dtype: f32}\n";
    let recipe = recipe(dir.path(), ops);
    let pair = r#"right={"files": "../right/{name}", "kind": "image"}"#;
    let args = [
        "--recipe", &recipe, "--rows", "1", "--draws", "2", "--side", "64",
    ];
    let rasters = ["--raster", "depth=../depth/{stem}.png", "--raster", pair];
    let shown = preview(&images, &[&args[..], &rasters].concat());
    let sample = &shown.samples()[0];
    let draws = sample["draws"].as_array().unwrap();
    let names: Vec<_> = draws.iter().map(|draw| draw["raster"].as_str()).collect();
    let of_draw = [None, Some("depth"), Some("right")];
    assert_eq!(names, [of_draw, of_draw].concat());
    for first in [0, 3] {
        let part = |at: usize| shown.part(&sample["draws_at"][first + at]);
        assert!(part(0) == part(2));
        let ramp = part(1);
        assert_eq!(ramp.dimensions(), (64, 64));
        // The flip has the farthest at the left.
        assert_eq!(ramp.get_pixel(0, 40).0, [253, 231, 37]);
        assert_eq!(ramp.get_pixel(63, 40).0, [68, 1, 84]);
        assert_eq!(ramp.get_pixel(20, 10).0, [48, 48, 48]);
    }
}
