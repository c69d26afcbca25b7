//! Files of tools that are not valid JSON or COLMAP: NaN, numbers in quotes, byte order marks, text
//! models without lines of points.

use serde_json::{Value, json};

use super::scenes_on_disk::{Folder, Model, as_is, frame};
use crate::scene::data::scene::SceneSplit;

/// The names of COLMAP's models by their number.
const NAMES: [&str; 5] = ["", "", "", "", "OPENCV"];

/// Two frames.
fn good(folder: &Folder) -> Value {
    folder.picture("images/0.png", 8, 6);
    folder.picture("images/1.png", 8, 6);
    json!({"fl_x": 7, "fl_y": 7, "cx": 4, "cy": 3, "w": 8, "h": 6,
        "frames": [frame("images/0.png", 1.0), frame("images/1.png", 2.0)]})
}

#[test]
fn nan_in_keys_that_nobody_reads_is_stepped_over() {
    let folder = Folder::new();
    let mut top = good(&folder);
    top["error"] = json!("@");
    top["frames"][1]["sharpness"] = json!(["@", {"a": "@"}]);
    let text = top.to_string();
    for word in ["NaN", "Infinity", "-Infinity", "nan", "-inf"] {
        folder.write("transforms.json", text.replace("\"@\"", word));
        assert_eq!(folder.open(&as_is()).unwrap().frames.len(), 2, "{word}");
    }
    let text = good(&folder).to_string();
    for (before, key) in [
        ("\"fl_x\":7", "fl_x"),
        ("\"frames\":[{", "frames: [0]: time"),
        ("\"frames\":[{", "frames: [0]: mask_path"),
    ] {
        let word = match key.rsplit_once(": ") {
            None => "\"fl_x\":NaN".to_owned(),
            Some((_, key)) => format!("{before}\"{key}\":NaN,"),
        };
        folder.write("transforms.json", text.replacen(before, &word, 1));
        let e = folder.refused();
        assert!(
            e.contains(key) && e.contains("NaN and Infinity are not JSON"),
            "{e}"
        );
    }
}

#[test]
fn numbers_in_quotes_are_numbers() {
    let folder = Folder::new();
    let top = good(&folder);
    folder.json("transforms.json", &top);
    let expected = folder.open(&as_is()).unwrap();
    let quote = |value: &Value| json!(value.to_string());
    let mut quoted = top;
    for key in ["fl_x", "fl_y", "cx", "cy", "w", "h"] {
        quoted[key] = quote(&quoted[key]);
    }
    for row in quoted["frames"][0]["transform_matrix"]
        .as_array_mut()
        .unwrap()
    {
        row[3] = quote(&row[3]);
    }
    folder.json("transforms.json", &quoted);
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(
        (scene.cameras, scene.frames),
        (expected.cameras, expected.frames)
    );
}

#[test]
fn a_last_row_may_be_off_by_what_rounding_leaves() {
    for (row, is_read) in [
        (json!([0, 0, 0, 0.9999999999]), true),
        (json!([-0.0, 0.0, 1e-17, 1.0]), true),
        (json!([1e-4, 0, 0, 1.0009]), true),
        (json!([0, 0, 0, 1.01]), false),
        (json!([0.5, 0, 0, 1]), false),
    ] {
        let folder = Folder::new();
        let mut top = good(&folder);
        folder.json("transforms.json", &top);
        let expected = folder.open(&as_is()).unwrap().frames;
        top["frames"][1]["transform_matrix"][3] = row.clone();
        folder.json("transforms.json", &top);
        match is_read {
            true => assert_eq!(folder.open(&as_is()).unwrap().frames, expected, "{row}"),
            false => assert!(folder.refused().contains("the last row is"), "{row}"),
        }
    }
}

/// Like nerfstudio's parsers and COLMAP.
#[test]
fn frames_of_the_same_image_are_all_kept_and_counted() {
    let folder = Folder::new();
    let mut top = good(&folder);
    top["frames"]
        .as_array_mut()
        .unwrap()
        .push(frame("./images/0.png", 3.0));
    top["train_filenames"] = json!(["images/0.png"]);
    top["val_filenames"] = json!(["images/1.png"]);
    folder.json("transforms.json", &top);
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.frames_of(SceneSplit::Train), [0, 1]);
    let places: Vec<f64> = scene.frames.iter().map(|f| f.pose.centre()[0]).collect();
    assert_eq!(places, [1.0, 3.0, 2.0]);
    let notes = scene.notes.join("\n");
    assert!(
        notes.contains("image of an earlier frame: 1, first at frames[2]"),
        "{notes}"
    );

    let folder = Folder::new();
    let mut model = Model::small();
    model.images[1].3 = "b.png".into();
    model.write(&folder);
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.frames.len(), 3);
    assert!(
        scene.notes.join("\n").contains("first at image 1 of 3"),
        "{:?}",
        scene.notes
    );
}

#[test]
fn utf16_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let text = good(&folder).to_string();
    let utf16: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    folder.write("transforms.json", &utf16);
    let e = folder.refused();
    assert!(
        e.contains("UTF-16") && e.contains("save it as UTF-8"),
        "{e}"
    );
    let folder = Folder::new();
    Model::small().write_text(&folder, &NAMES);
    folder.write("sparse/0/images.txt", utf16);
    let e = folder.refused();
    assert!(e.contains("images.txt:1: UTF-16: save it as UTF-8"), "{e}");
}

/// Changes the text of a model and reads it.
fn changed(change: &dyn Fn(&str) -> String) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    Model::small().write_text(&folder, &NAMES);
    for name in ["cameras", "images", "points3D"] {
        let path = format!("sparse/0/{name}.txt");
        let text = std::fs::read_to_string(folder.join(&path)).unwrap();
        folder.write(&path, change(&text));
    }
    let notes = match folder.open(&as_is()) {
        Ok(scene) => {
            let expected = Folder::new();
            Model::small().write(&expected);
            let expected = expected.open(&as_is()).unwrap();
            let poses = |scene: &crate::scene::data::Scene| -> Vec<_> {
                scene
                    .frames
                    .iter()
                    .map(|f| (f.name.clone(), f.pose))
                    .collect()
            };
            assert_eq!(poses(&scene), poses(&expected));
            assert_eq!(scene.points().unwrap(), expected.points().unwrap());
            scene.notes
        }
        Err(e) => vec![e.to_string()],
    };
    (folder, notes)
}

#[test]
fn a_text_model_of_any_editor_is_read() {
    let plain: [&dyn Fn(&str) -> String; 6] = [
        &|text| format!("\u{feff}{text}"),
        &|text| format!("\n{text}"),
        &|text| format!("\u{feff}\r\n{}", text.replace('\n', "\r\n")),
        &|text| text.replace(".png\n", ".png  \t\n"),
        &|text| format!("{text}\n\n"),
        &|text| text.replace("# Image list\n", "# Image list\n\n#\n"),
    ];
    for (number, change) in plain.into_iter().enumerate() {
        let (_folder, notes) = changed(change);
        assert!(notes.is_empty(), "{number}: {notes:?}");
    }
}

#[test]
fn a_text_model_without_lines_of_points_keeps_all_images() {
    let without_empty = |text: &str| -> String {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    };
    // One of the three images has no 2D points: its empty line is removed.
    let (_folder, notes) = changed(&without_empty);
    assert!(
        notes[0].contains("1 images have no line of 2D points"),
        "{notes:?}"
    );
    // All second lines are removed, and the header.
    let (_folder, notes) = changed(&|text| {
        let lines = text.lines().filter(|line| {
            let is_points = line.split(' ').all(|word| word.parse::<f64>().is_ok());
            !line.starts_with('#') && !(text.contains("Image") && (is_points || line.is_empty()))
        });
        lines.map(|line| format!("{line}\n")).collect()
    });
    assert!(
        notes[0].contains("2 images have no line of 2D points"),
        "{notes:?}"
    );
    // Comments may be anywhere.
    let (_folder, notes) = changed(&|text| match text.contains("Image list") {
        true => text.replace(".png\n", ".png\n# edited\n"),
        false => text.to_owned(),
    });
    assert!(notes.is_empty(), "{notes:?}");
    // A line that is neither is rejected.
    let (_folder, notes) = changed(&|text| text.replace("1.5 2.5 0 1.5 2.5 1", "1.5 2.5 0 1.5"));
    assert!(
        notes[0].contains("neither the 2D points of \"b.png\" nor an image"),
        "{notes:?}"
    );
}

#[test]
fn images_with_one_id_are_refused_as_colmap_does() {
    let (_folder, notes) = changed(&|text| match text.contains("Image list") {
        true => text.replace("\n2 ", "\n1 "),
        false => text.to_owned(),
    });
    assert!(notes[0].contains("IMAGE_ID: a second image 1"), "{notes:?}");
    let folder = Folder::new();
    let model = Model::small();
    model.write(&folder);
    let mut bytes = model.images_bin();
    let second = 8 + 64 + "b.png\0".len() + 8 + 2 * 24;
    bytes[second] = 1;
    folder.write("sparse/0/images.bin", bytes);
    let e = folder.refused();
    assert!(
        e.contains("image 1 of 3: a second image with the id 1"),
        "{e}"
    );
}

#[test]
fn names_of_a_list_may_begin_with_a_hash() {
    let folder = Folder::new();
    let mut model = Model::small();
    model.images[0].3 = "#b.png".into();
    model.write(&folder);
    folder.write("train_list.txt", "\u{feff}#b.png\r\nsub\\c.png\r\n");
    folder.write("test_list.txt", "a.png");
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.frames.len(), 3);
    assert_eq!(scene.frames_of(SceneSplit::Train), [0, 2]);
    assert_eq!(scene.frames_of(SceneSplit::Test), [1]);
}
