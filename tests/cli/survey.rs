//! What headers say of a data set: the survey, and `index`, which prints it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use featherload::survey::{FileFormat, HeaderSurvey, SurveyOptions};
use featherload::{FaultKind, Index, LaunchMethod, Loader, Source};
use image::{DynamicImage, ImageFormat};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::command::{featherload, object};
use crate::common::processes::send;
use crate::common::{FEATHERLOAD, Picture};

fn index_of(dir: &Path) -> Index {
    Source::detect(dir).unwrap().open().unwrap().0
}

/// Three classes: pictures of several formats and sizes, and broken ones.
fn data() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for class in ["few", "many", "none"] {
        fs::create_dir(dir.path().join(class)).unwrap();
    }
    let save = |name: &str, height, width, format| {
        let path = dir.path().join("many").join(name);
        DynamicImage::new_rgb8(width, height)
            .save_with_format(path, format)
            .unwrap();
    };
    // Names lie about the content.
    save("a.jpg", 10, 20, ImageFormat::Png);
    save("b.png", 7, 3, ImageFormat::Gif);
    save("c.png", 300, 200, ImageFormat::Bmp);
    save("d.png", 40, 50, ImageFormat::WebP);
    save("e.png", 1, 1, ImageFormat::Tiff);
    let jpeg = Picture::rgb(64, 48, 1).encode();
    fs::write(dir.path().join("few/f.jpg"), &jpeg).unwrap();
    fs::write(dir.path().join("few/g.jpg"), b"no picture").unwrap();
    fs::write(dir.path().join("many/h.jpg"), &jpeg[..30]).unwrap();
    // A name that is no UTF-8 is a name.
    let odd = OsStr::from_bytes(b"many/l\xff.jpg");
    fs::write(dir.path().join(odd), b"").unwrap();
    std::os::unix::fs::symlink("/nowhere", dir.path().join("many/i.jpg")).unwrap();
    nix::unistd::mkfifo(
        &dir.path().join("many/j.jpg"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    dir
}

#[test]
fn arrays_are_pictures_where_they_can_be() {
    let dir = tempfile::tempdir().unwrap();
    for (name, shape) in [
        ("a.npy", "(20, 30, 3)"),
        ("b.npy", "(7, 5)"),
        ("c.npy", "(3, 20, 30)"),
    ] {
        fs::write(dir.path().join(name), crate::common::npy(shape, 1)).unwrap();
    }
    let floats =
        String::from_utf8_lossy(&crate::common::npy("(8, 2)", 1)[..128]).replace("|u1", "<f4");
    let floats = [&b"\x93"[..], &floats.as_bytes()[3..], &[0; 64]].concat();
    fs::write(dir.path().join("d.npy"), floats).unwrap();
    // Beside pictures of a folder arrays may be anything: they are no samples.
    assert!(Source::detect(dir.path()).unwrap().open().is_err());
    let list = dir.path().join("list");
    fs::write(&list, "a.npy 0\nb.npy 1\nc.npy 2\nd.npy 3\n").unwrap();
    let survey = HeaderSurvey::of(&index_of(&list)).unwrap();
    assert_eq!(
        survey.formats.iter().collect::<Vec<_>>(),
        [(&FileFormat::Npy, &2)]
    );
    let faults: Vec<_> = survey.faults.iter().map(|f| (f.kind, &f.reason)).collect();
    for ((kind, reason), words) in faults
        .iter()
        .zip(["'|u1', shape (3, 20, 30)", "'<f4', shape (8, 2)"])
    {
        assert_eq!(*kind, FaultKind::Unsupported);
        assert!(reason.contains(words), "{reason}");
    }
    assert_eq!(faults.len(), 2);
}

#[test]
fn formats_sizes_and_faults_are_found() {
    let dir = data();
    let index = index_of(dir.path());
    let survey = HeaderSurvey::of(&index).unwrap();
    assert_eq!(survey.samples, index.len());
    assert_eq!(survey.readable + survey.unreadable, survey.samples);
    let formats: Vec<(FileFormat, u64)> = survey.formats.iter().map(|(f, n)| (*f, *n)).collect();
    assert_eq!(
        formats,
        [
            (FileFormat::Jpeg, 1),
            (FileFormat::Png, 1),
            (FileFormat::WebP, 1),
            (FileFormat::Gif, 1),
            (FileFormat::Bmp, 1),
            (FileFormat::Tiff, 1),
        ]
    );
    let faults: Vec<(String, FaultKind)> = survey
        .faults
        .iter()
        .map(|f| {
            let name = f.path.file_name().unwrap().to_string_lossy();
            (name.into_owned(), f.kind)
        })
        .collect();
    assert_eq!(
        faults,
        [
            ("g.jpg".to_owned(), FaultKind::Unsupported),
            ("h.jpg".to_owned(), FaultKind::Truncated),
            ("i.jpg".to_owned(), FaultKind::Unreadable),
            ("j.jpg".to_owned(), FaultKind::NotRegular),
            ("l\u{fffd}.jpg".to_owned(), FaultKind::Truncated),
        ]
    );
    for fault in &survey.faults {
        assert_eq!(survey.size(fault.id), None);
        assert_eq!(index.path(fault.id), fault.path);
        assert!(!fault.reason.is_empty());
    }
    let sizes = survey.sizes.as_ref().unwrap();
    assert_eq!((sizes.smallest.height, sizes.smallest.width), (1, 1));
    assert_eq!((sizes.largest.height, sizes.largest.width), (300, 200));
    assert!(index.path(sizes.largest.id).ends_with("many/c.png"));
    let pixels = 10 * 20 + 7 * 3 + 300 * 200 + 40 * 50 + 1 + 64 * 48;
    assert_eq!(sizes.decoded_bytes, 3 * pixels);
}

/// A JPEG whose frame header says so.
fn claiming(height: u16, width: u16) -> Vec<u8> {
    let mut jpeg = Picture::rgb(64, 48, 1).encode();
    let frame = jpeg.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    jpeg
}

#[test]
fn what_is_over_a_limit_is_unreadable_and_has_no_part_in_the_sizes() {
    let dir = data();
    let huge = dir.path().join("many/huge.jpg");
    fs::write(&huge, claiming(60_000, 60_000)).unwrap();
    let index = index_of(dir.path());
    let survey = HeaderSurvey::of(&index).unwrap();
    assert_eq!((survey.readable, survey.unreadable), (6, 6));
    let fault = survey.faults.iter().find(|f| f.path == huge).unwrap();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    assert!(fault.reason.contains("max_pixels = 178956970"), "{fault:?}");
    assert_eq!(survey.size(fault.id), None);
    let largest = survey.sizes.unwrap().largest;
    assert_eq!((largest.height, largest.width), (300, 200));

    let mut options = SurveyOptions {
        max_pixels: u64::MAX,
        ..SurveyOptions::default()
    };
    let survey = HeaderSurvey::with(&index, &options, &|_| ()).unwrap();
    assert_eq!((survey.readable, survey.unreadable), (7, 5));
    assert_eq!(survey.sizes.unwrap().pixels.max, 3_600_000_000);
    options.max_pixels = 300 * 200 - 1;
    let survey = HeaderSurvey::with(&index, &options, &|_| ()).unwrap();
    assert_eq!((survey.readable, survey.unreadable), (5, 7));

    let src = dir.path().to_str().unwrap();
    let report = json(&["index", src]);
    assert_eq!(report["headers"]["fault_kinds"]["too large"], 1);
    let report = json(&["index", src, "--max-pixels", "4000000000"]);
    assert_eq!(report["headers"]["sizes"]["height"]["max"], 60_000);
}

fn json(args: &[&str]) -> Value {
    object(&featherload(&[args, &["--json"]].concat()))
}

#[test]
fn index_prints_what_there_is_and_unreadable_files_are_no_failure() {
    let dir = data();
    let src = dir.path().to_str().unwrap();
    let report = json(&["index", src]);
    assert_eq!(report["samples"], 11);
    assert_eq!(report["classes"], 3);
    assert_eq!(report["smallest_class"]["name"], "none");
    assert_eq!(report["smallest_class"]["samples"], 0);
    assert_eq!(report["largest_class"]["name"], "many");
    assert_eq!(report["largest_class"]["samples"], 9);
    let headers = &report["headers"];
    assert_eq!(headers["readable"], 6);
    assert_eq!(headers["formats"]["jpeg"], 1);
    assert_eq!(headers["formats"]["webp"], 1);
    assert_eq!(headers["fault_kinds"]["truncated"], 2);
    assert_eq!(headers["faults"].as_array().unwrap().len(), 5);
    assert_eq!(headers["faults"][0]["kind"], "unsupported");
    assert_eq!(headers["sizes"]["height"]["max"], 300);

    let text = featherload(&["index", src]);
    assert_eq!(text.status.code(), Some(0));
    let text = String::from_utf8(text.stdout).unwrap();
    for part in [
        "11 samples, 3 classes",
        "classes    smallest none (0), largest many (9)",
        "1 JPEG, 1 PNG",
        "smallest 1 x 1 (many/e.png), largest 200 x 300 (many/c.png)",
        "unreadable 5 of 11 by their headers: a run stops at the first. Use --on-error skip",
        "--on-error substitute",
        "only headers were read",
        "g.jpg: unsupported: ",
    ] {
        assert!(text.contains(part), "{text} lacks {part}");
    }

    // By names alone nothing is opened, so nothing is unreadable.
    let names = json(&["index", src, "--no-headers"]);
    assert_eq!(names["samples"], 11);
    assert_eq!(names["headers"], Value::Null);
    assert_eq!(names["hash"], report["hash"]);
}

#[test]
fn what_a_folder_leaves_out_is_counted_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let hidden = [
        "cat/._1.jpg",
        "cat/.DS_Store",
        "__MACOSX/cat/._1.jpg",
        "cat/a.png/1.jpg",
    ];
    for name in hidden {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, Picture::rgb(64, 48, 1).encode()).unwrap();
    }
    let src = dir.path().to_str().unwrap();
    let report = json(&["index", src]);
    assert_eq!(
        (&report["samples"], &report["classes"]),
        (&1.into(), &1.into())
    );
    let left_out = serde_json::json!({"hidden file": 2, "system folder": 1});
    assert_eq!(
        (&report["left_out"], &report["skipped"]),
        (&left_out, &3.into())
    );
    assert_eq!(report["examples"]["system folder"][0], "__MACOSX");
    let out = featherload(&["index", src]);
    let printed = String::from_utf8(out.stderr).unwrap();
    for line in [
        "left out: 2 x hidden file (such as cat/.DS_Store, cat/._1.jpg)",
        "left out: 1 x system folder (such as __MACOSX)",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
    // Who names a file means it.
    let list = dir.path().join("list.txt");
    fs::write(&list, "cat/._1.jpg 3\ncat/a.png/1.jpg 4\n").unwrap();
    let report = json(&["index", list.to_str().unwrap()]);
    assert_eq!(
        (&report["samples"], &report["skipped"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn a_flat_folder_has_no_labels() {
    let dir = tempfile::tempdir().unwrap();
    image::RgbImage::new(3, 2)
        .save(dir.path().join("a.png"))
        .unwrap();
    let out = featherload(&["index", dir.path().to_str().unwrap()]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with("1 samples, no labels under "), "{text}");
    assert!(text.contains("smallest 3 x 2 (a.png)"), "{text}");
}

#[test]
fn many_unreadable_files_are_counted_and_the_first_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..70 {
        fs::write(dir.path().join(format!("{i:02}.jpg")), b"no picture").unwrap();
    }
    let out = featherload(&["index", dir.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.matches("unsupported: ").count(), 20, "{text}");
    assert!(text.contains("19.jpg") && text.contains("and 50 more (--json lists them)"));
    // Not one has a size, and a run over whole pictures has 64 empty rows.
    let mut loader = Loader::builder(Source::detect(dir.path()).unwrap())
        .recipe(featherload::Recipe::full())
        .on_error(featherload::OnError::Skip)
        .launch(LaunchMethod::Exec)
        .helper(FEATHERLOAD)
        .num_workers(1)
        .build()
        .unwrap();
    let failed: usize = loader.epoch().map(|b| b.unwrap().faults().len()).sum();
    assert_eq!(failed, 70);
}

/// A folder with `transforms.json` is a scene; with `--samples` its images are a data set.
#[test]
fn index_reports_and_draws_a_scene() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("images")).unwrap();
    let mut frames = Vec::new();
    for i in 0..4 {
        if i < 3 {
            let picture = Picture::rgb(64, 48, 1).encode();
            fs::write(path(&format!("images/{i}.jpg")), picture).unwrap();
        }
        frames.push(serde_json::json!({
            "file_path": format!("images/{i}.jpg"),
            "transform_matrix": [[1, 0, 0, i], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        }));
    }
    let top = serde_json::json!({"fl_x": 50, "w": 64, "h": 48, "frames": frames});
    fs::write(path("transforms.json"), top.to_string()).unwrap();
    let (src, svg) = (path(""), path("scene.svg"));
    let report: Value = object(&featherload(&["index", &src, "--json", "--svg", &svg]));
    assert_eq!(report["format"], "nerfstudio");
    assert_eq!(
        (&report["frames"], &report["missing"]),
        (&3.into(), &1.into())
    );
    assert_eq!(report["missing_images"][0]["name"], "images/3.jpg");
    assert_eq!(report["cameras"][0]["fx"], 50.0);
    let drawing = fs::read_to_string(svg).unwrap();
    assert_eq!(drawing.matches("<path ").count(), 6);
    let text = featherload(&["index", &src]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("3 frames ("), "{text}");
    assert!(text.contains("missing    1 images"), "{text}");
    let strict = featherload(&["index", &src, "--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    let samples: Value = object(&featherload(&["index", &src, "--samples", "--json"]));
    assert_eq!(samples["samples"], 3);
}

/// The first process of a container is not ended by a signal that it does not handle.
#[test]
fn a_signal_is_handled_while_names_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("list");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for command in ["index", "plan", "doctor"] {
        let mut run = Command::new(FEATHERLOAD)
            .arg(command)
            .arg(&fifo)
            .spawn()
            .unwrap();
        // Opened when the command opens it.
        let writer = fs::File::options().write(true).open(&fifo).unwrap();
        send(run.id() as i32, Signal::SIGTERM);
        assert_eq!(run.wait().unwrap().code(), Some(128 + 15), "{command}");
        drop(writer);
    }
}

#[test]
fn a_file_that_is_read_is_not_written() {
    let dir = data();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let text = "many/a.jpg 0\nmany/b.png 1\n";
    fs::write(at("list.txt"), text).unwrap();
    std::os::unix::fs::symlink("list.txt", at("link.txt")).unwrap();
    let (list, link) = (at("list.txt"), at("link.txt"));
    for args in [
        ["index", &list, "--save-classes", &list],
        ["index", &list, "--save-classes", &link],
        ["index", &link, "--save", &list],
        ["plan", &list, "--svg", &link],
        ["bench", &link, "--failures", &list],
        ["bench", &list, "--save-state", &list],
        ["preview", &list, "--out", &list],
    ] {
        let output = featherload(&args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains("name another file"), "{args:?}: {message}");
        assert_eq!(
            fs::read_to_string(at("list.txt")).unwrap(),
            text,
            "{args:?}"
        );
    }
}

#[test]
fn objects_of_a_data_set_by_category_and_size() {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    fs::create_dir(&images).unwrap();
    for name in ["a.png", "b.png", "c.png"] {
        let picture = DynamicImage::new_rgb8(200, 200);
        picture
            .save_with_format(images.join(name), ImageFormat::Png)
            .unwrap();
    }
    let boxes = dir.path().join("boxes.csv");
    fs::write(
        &boxes,
        "image_path,xmin,ymin,xmax,ymax,label\na.png,0,0,10,10,bee\na.png,0,0,20,10,ant\n\
         b.png,0,0,50,50,bee\nb.png,0,0,150,150,bee\nb.png,7,0,7,150,bee\nc.png,,,,,\n",
    )
    .unwrap();
    let (images, boxes) = (images.to_str().unwrap(), boxes.to_str().unwrap());
    let args = ["index", images, "--objects", boxes];
    let out = featherload(&args);
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    for line in [
        "objects 4 of 2 categories in 3 images: 1.3 each, at most 2",
        "1 images without objects, such as c.png",
        "sizes small, below 32 x 32 2 50.0% ########################",
        "medium, below 96 x 96 1 25.0% ############",
        "large 1 25.0% ############",
        "categories label objects name",
        "1 3 bee",
        "0 1 ant",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}\n{text}");
    }
    assert!(
        text.contains("1 with a box without width or height: dropped"),
        "{text}"
    );
    let found = json(&args);
    assert_eq!(found["objects"]["objects"], 4);
    assert_eq!(found["objects"]["sizes"]["small"], 2);
    assert_eq!(found["objects"]["first_without_objects"][0], "c.png");
    assert_eq!(found["objects"]["categories"][1]["name"], "bee");
    let found = json(&["index", images]);
    assert_eq!(found["objects"], Value::Null);
}
