//! Box files of a list: how they are read and refused, kept in an index, and what a
//! cache is that is built of them.

use std::fs;
use std::path::{Path, PathBuf};

use featherload::cache::{BuildOptions, CacheBuilder, CacheEncoding, OnBadSample};
use featherload::index::{Index, ListOptions, PixelBox};
use featherload::survey::HeaderSurvey;
use featherload::{Error, Loader, Recipe, Source};

use crate::common::command::{code, featherload, object, refusal, stderr};
use crate::common::{FEATHERLOAD, Picture};

/// Two pictures of 60 x 40, in a list with a blank line, and their boxes.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(scene.at("images/sub")).unwrap();
        fs::create_dir_all(scene.at("boxes/sub")).unwrap();
        for (name, seed) in [("a.jpg", 1), ("sub/b.x.jpg", 2)] {
            let picture = Picture::rgb(60, 40, seed).encode();
            fs::write(scene.at("images").join(name), picture).unwrap();
        }
        fs::write(scene.at("list.txt"), "a.jpg 3\n\nsub/b.x.jpg 4 5\n").unwrap();
        scene.write("a", "1 2 30 40\n");
        scene.write("sub/b", "front\n9 9 9\n5 6 7000 9  \r\n \n");
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(&format!("boxes/{name}.txt")), text).unwrap();
    }

    fn options(&self) -> ListOptions {
        ListOptions {
            root: Some(self.at("images")),
            boxes: Some(self.at("boxes")),
            labels: featherload::index::ListLabels::Second,
            ..ListOptions::default()
        }
    }

    fn index(&self) -> Result<Index, Error> {
        Index::list(&self.at("list.txt"), &self.options()).map(|(index, _)| index)
    }

    fn source(&self) -> Source {
        Source::List(self.at("list.txt"), self.options())
    }
}

fn numbers(found: PixelBox) -> [u32; 4] {
    [found.left, found.top, found.right, found.bottom]
}

#[test]
fn the_last_line_of_a_box_file_is_the_box_of_its_picture() {
    let scene = Scene::new();
    let index = scene.index().unwrap();
    assert!(index.has_boxes());
    assert_eq!(index.pixel_box(0).map(numbers), Some([1, 2, 30, 40]));
    assert_eq!(index.pixel_box(1).map(numbers), Some([5, 6, 7000, 9]));
    assert_eq!(index.pixel_box(2), None);
    // The size of a picture is that of its box.
    let survey = HeaderSurvey::of(&index).unwrap();
    assert_eq!(
        (survey.size(0), survey.size(1)),
        (Some((38, 29)), Some((3, 55)))
    );
    let plain = ListOptions {
        boxes: None,
        ..scene.options()
    };
    let (plain, _) = Index::list(&scene.at("list.txt"), &plain).unwrap();
    assert!(!plain.has_boxes() && plain.pixel_box(0).is_none());
    assert_eq!(HeaderSurvey::of(&plain).unwrap().size(0), Some((40, 60)));
    assert_eq!(index.bytes(), plain.bytes() + 2 * 16);
}

#[test]
fn a_bad_box_file_is_named_with_its_line_and_what_to_do() {
    let scene = Scene::new();
    let message = || {
        let e = scene.index().unwrap_err();
        assert!(e.is_usage(), "{e}");
        (e.to_string(), e.path().unwrap().to_owned(), e.line())
    };
    for (text, line, says) in [
        ("", None, "no box in this file: write `x0 y0 x1 y1`"),
        ("\n \n", None, "no box in this file"),
        ("1 2 3 4\n1 2 3\n", Some(2), "3 numbers, but a box has four"),
        ("1 2 3 4.5", Some(1), "'4.5' in a box is not a whole number"),
        ("1 2 x 4\n", Some(1), "'x' in a box"),
        ("1 -2 3 4\n", Some(1), "-2 in a box is negative"),
        ("3 2 3 4\n", Some(1), "x0 and x1 are 3 and 3"),
        ("1 4 3 2\n", Some(1), "y0 and y1 are 4 and 2"),
    ] {
        scene.write("sub/b", text);
        let (what, path, at) = message();
        assert_eq!((path, at), (scene.at("boxes/sub/b.txt"), line), "{what}");
        assert!(what.contains(says), "{says}: {what}");
    }
    fs::write(scene.at("boxes/sub/b.txt"), vec![b' '; (1 << 20) + 1]).unwrap();
    assert!(
        message()
            .0
            .contains("longer than the limit of 1048576 bytes"),
        "{}",
        message().0
    );
    // What is missing is told by the line of the list.
    fs::remove_file(scene.at("boxes/sub/b.txt")).unwrap();
    let (what, path, line) = message();
    assert_eq!((path, line), (scene.at("list.txt"), Some(3)), "{what}");
    assert!(
        what.contains("boxes/sub/b.txt is missing: write it"),
        "{what}"
    );
    fs::create_dir(scene.at("boxes/sub/b.txt")).unwrap();
    assert!(
        message().0.contains("list.txt:3: the box file"),
        "{}",
        message().0
    );
    fs::remove_dir_all(scene.at("boxes")).unwrap();
    assert!(
        message()
            .0
            .contains("no such folder of box files: check `boxes`")
    );
}

/// Of many bad ones the first, whichever thread came first.
#[test]
fn the_first_bad_box_is_told() {
    let scene = Scene::new();
    let mut list = String::new();
    for i in 0..700 {
        list += &format!("p{i}.jpg 1\n");
        if ![321, 322, 650].contains(&i) {
            scene.write(&format!("p{i}"), &format!("0 {i} 1 {}", i + 1));
        }
    }
    fs::write(scene.at("list.txt"), list).unwrap();
    let e = scene.index().unwrap_err();
    assert_eq!(e.line(), Some(322), "{e}");
    for i in [321, 322, 650] {
        scene.write(&format!("p{i}"), &format!("0 {i} 1 {}", i + 1));
    }
    let index = scene.index().unwrap();
    for id in 0..700 {
        let found = numbers(index.pixel_box(id).unwrap());
        assert_eq!(found, [0, id as u32, 1, id as u32 + 1]);
    }
}

#[test]
fn a_saved_index_keeps_its_boxes_and_any_change_is_refused() {
    let scene = Scene::new();
    let index = scene.index().unwrap();
    let file = scene.at("index.fli");
    index.save(&file).unwrap();
    fs::remove_dir_all(scene.at("boxes")).unwrap();
    let again = Index::load(&file).unwrap();
    assert_eq!(again.hash(), index.hash());
    for id in 0..3 {
        assert_eq!(again.pixel_box(id), index.pixel_box(id));
    }
    let good = fs::read(&file).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&file, &bad).unwrap();
        assert!(Index::load(&file).unwrap_err().is_usage(), "{at}");
    }
    let mut pixels = Vec::new();
    fs::write(&file, &good).unwrap();
    for source in [Source::Saved(file), Source::from(index)] {
        pixels.push(rows(source));
    }
    assert!(pixels[0] == pixels[1] && pixels[0][0].0 == (38, 29));
}

type Row = ((usize, usize), Vec<u8>);

/// Whole pictures in the order of their ids.
fn rows(source: Source) -> Vec<Row> {
    let builder = Loader::builder(source).recipe(Recipe::full());
    let mut loader = builder.num_workers(0).batch_size(1).build().unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let row = batch.row(0).unwrap();
        all.push((row.id(), (row.size(), row.bytes().unwrap().to_vec())));
    }
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn a_cache_has_the_boxes_or_is_refused() {
    let scene = Scene::new();
    let built = |encode, to: &Path| {
        let options = BuildOptions {
            encode,
            ..BuildOptions::default()
        };
        let builder = CacheBuilder::new(scene.source(), to, options);
        builder.helper(FEATHERLOAD).num_workers(2).build()
    };
    let want = rows(scene.source());
    let (raw, jpeg) = (scene.at("raw"), scene.at("jpeg"));
    built(CacheEncoding::Raw, &raw).unwrap();
    assert!(rows(Source::Cache(raw.clone())) == want);
    built(CacheEncoding::Jpeg { quality: 95 }, &jpeg).unwrap();
    let sizes: Vec<_> = rows(Source::Cache(jpeg)).iter().map(|r| r.0).collect();
    assert_eq!(sizes, [(38, 29), (3, 55)]);
    let copy = scene.at("copy");
    let e = built(CacheEncoding::Copy, &copy).unwrap_err();
    assert!(e.is_config() && e.to_string().contains("`boxes`"), "{e}");
    assert!(!copy.exists());
    // Other boxes are another source.
    scene.write("a", "1 2 30 39");
    let e = built(CacheEncoding::Raw, &raw).unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("source"), "{e}");
}

#[test]
fn a_box_outside_of_its_picture_is_left_out_of_a_cache_for_good() {
    let scene = Scene::new();
    scene.write("a", "60 0 61 9");
    let options = BuildOptions {
        encode: CacheEncoding::Raw,
        ..BuildOptions::default()
    };
    let builder = |options, to| {
        let builder = CacheBuilder::new(scene.source(), scene.at(to), options);
        builder.helper(FEATHERLOAD).num_workers(0)
    };
    let e = builder(options, "stops").build().unwrap_err();
    assert!(e.is_sample() && e.to_string().contains("60 0 61 9"), "{e}");
    let skip = BuildOptions {
        on_error: OnBadSample::Skip,
        ..options
    };
    let report = builder(skip, "skips").build().unwrap();
    assert_eq!((report.complete, report.samples), (true, 1));
}

#[test]
fn the_command_line_takes_boxes_for_lists_alone() {
    let scene = Scene::new();
    let path = |name: &str| scene.at(name).to_str().unwrap().to_owned();
    let (list, images, boxes) = (path("list.txt"), path("images"), path("boxes"));
    fs::write(&list, "a.jpg 3\nsub/b.x.jpg 4\n").unwrap();
    let given = ["--list", &list, &images, "--boxes", &boxes];
    let found = object(&featherload(&[&["index", "--json"], &given[..]].concat()));
    let largest = &found["headers"]["sizes"]["largest"];
    assert_eq!(largest["height"], 38, "{found}");
    let digest = |more: &[&str]| {
        let run = [
            "bench",
            "--json",
            "--digest",
            "--recipe",
            "full",
            "--num-workers",
            "1",
        ];
        let out = object(&featherload(&[&run[..], more].concat()));
        out["digest"].as_str().unwrap().to_owned()
    };
    let with = digest(&given);
    assert_ne!(with, digest(&given[..3]));
    let kept = path("kept.fli");
    object(&featherload(
        &[&["index", "--json", "--save", &kept], &given[..]].concat(),
    ));
    assert_eq!(digest(&[&kept]), with);
    let plan = featherload(&[&["plan", "--json", "--recipe", "full"], &given[..]].concat());
    assert_eq!(object(&plan)["largest"]["width"], 29);
    let message = refusal(&featherload(&["index", &images, "--boxes", &boxes]));
    assert!(message.contains("`--boxes` has no effect"), "{message}");
    let message = refusal(&featherload(&["index", &kept, "--boxes", &boxes]));
    assert!(message.contains("which is a saved index"), "{message}");
    fs::remove_file(scene.at("boxes/a.txt")).unwrap();
    let out = featherload(&[&["index"], &given[..]].concat());
    assert_eq!(code(&out), 2);
    assert!(
        stderr(&out).contains("list.txt:1: the box file"),
        "{}",
        stderr(&out)
    );
    assert!(stderr(&out).contains("or `--boxes`"), "{}", stderr(&out));
}
