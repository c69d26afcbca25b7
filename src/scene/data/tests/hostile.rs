//! Invalid scenes: each is an error that names file and key, and none panics.

use serde_json::{Value, json};

use super::scenes_on_disk::{Folder, Model, as_is, frame, matrix};
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene::Scene;

/// A change that makes a scene invalid, and a part of the error.
type Case<'a, T> = (&'a dyn Fn(&mut T), &'a str);

/// Two frames, whose file is changed by `change` before it is written.
fn refused(change: impl Fn(&mut Value)) -> String {
    let folder = Folder::new();
    let mut top = good(&folder);
    change(&mut top);
    folder.json("transforms.json", &top);
    folder.refused()
}

fn good(folder: &Folder) -> Value {
    folder.picture("images/0.png", 8, 6);
    folder.picture("images/1.png", 8, 6);
    json!({"fl_x": 7, "fl_y": 7, "cx": 4, "cy": 3, "w": 8, "h": 6,
        "frames": [frame("images/0.png", 1.0), frame("images/1.png", 2.0)]})
}

#[test]
fn errors_name_file_and_key() {
    let cases: [Case<'_, Value>; 20] = [
        (
            &|t| t["frames"][1] = json!({"transform_matrix": matrix(0.0, 0.0, 0.0)}),
            "frames: [1]: file_path: missing",
        ),
        (&|t| t["frames"] = json!([]), "frames: no frames"),
        (&|t| t["frames"] = json!("x"), "frames: invalid type"),
        (
            &|t| drop(t.as_object_mut().unwrap().remove("frames")),
            "frames: missing",
        ),
        (
            &|t| t["frames"][1]["file_path"] = json!(""),
            "frames[1].file_path: missing",
        ),
        (
            &|t| t["frames"][1]["file_path"] = json!(7),
            "frames: [1]: file_path: invalid type",
        ),
        (
            &|t| t["frames"][1]["file_path"] = json!("a\0b"),
            "frames[1].file_path: has a zero byte",
        ),
        (
            &|t| t["frames"][1]["transform_matrix"] = Value::Null,
            "frames: [1]: transform_matrix: missing",
        ),
        (
            &|t| t["frames"][1]["transform_matrix"][0] = json!([1, 2, 3]),
            "frames: [1]: transform_matrix: invalid length",
        ),
        (
            &|t| t["frames"][1]["transform_matrix"][3][3] = json!(2),
            "transform_matrix: the last row is",
        ),
        (
            &|t| {
                t["frames"][1]["transform_matrix"] =
                    json!([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 2, 5]])
            },
            "frames[1].transform_matrix: the rotation is singular",
        ),
        (
            &|t| {
                t["frames"][1]["transform_matrix"] =
                    json!([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
            },
            "frames[1].transform_matrix: an axis is shorter",
        ),
        (
            &|t| t["frames"][1]["transform_matrix_start"] = matrix(0.0, 0.0, 0.0),
            "frames[1].transform_matrix_end: missing",
        ),
        (&|t| t["fl_x"] = json!("7px"), "fl_x: invalid value"),
        (&|t| t["fl_x"] = json!(0), "json: fl_x is 0"),
        (
            &|t| t["w"] = json!(-8),
            "json: w: -8 is not a valid number of pixels",
        ),
        (&|t| t["h"] = json!(1e300), "json: h: 1e300 is not"),
        (
            &|t| t["camera_model"] = json!("LENSBABY"),
            "json: camera_model: \"LENSBABY\"",
        ),
        (
            &|t| t["orientation_override"] = json!("down"),
            "orientation_override: \"down\"",
        ),
        (
            &|t| t["applied_scale"] = json!(0),
            "applied_scale: 0.0 is out of range",
        ),
    ];
    for (change, expected) in cases {
        let e = refused(change);
        assert!(e.contains("transforms.json"), "{e}");
        assert!(e.contains(expected), "{expected}: {e}");
    }
}

/// Python writes NaN and Infinity, which JSON does not have.
#[test]
fn numbers_that_are_none_are_named() {
    let folder = Folder::new();
    let text = serde_json::to_string_pretty(&good(&folder)).unwrap();
    for (number, expected) in [
        ("NaN", "NaN and Infinity are not JSON"),
        ("-Infinity", "NaN and Infinity are not JSON"),
        ("Infinity", "NaN and Infinity are not JSON"),
        ("1e999", "number out of range"),
    ] {
        let (before, after) = text.rsplit_once("2.0").unwrap();
        folder.write("transforms.json", format!("{before}{number}{after}"));
        let e = folder.refused();
        assert!(e.contains("frames: [1]: transform_matrix"), "{e}");
        assert!(
            e.contains(expected) && e.contains("transforms.json:"),
            "{e}"
        );
    }
    let mut model = Model::small();
    model.images[2].1[1] = f64::NAN;
    let folder = Folder::new();
    model.write(&folder);
    let e = folder.refused();
    assert!(
        e.contains("images.bin: image 2 of 3 (\"sub/c.png\"): NaN in its pose"),
        "{e}"
    );
}

#[test]
fn a_transforms_file_that_is_cut_off_is_an_error() {
    let folder = Folder::new();
    let mut top = good(&folder);
    top["frames"][0]["mask_path"] = json!("images/1.png");
    let text = serde_json::to_vec_pretty(&top).unwrap();
    for end in (0..text.len()).step_by(7) {
        folder.write("transforms.json", &text[..end]);
        let e = folder.refused();
        assert!(
            e.contains("transforms.json") && e.contains("cut off"),
            "{end}: {e}"
        );
    }
    folder.write("transforms.json", text);
    folder.open(&as_is()).unwrap();
}

#[test]
fn a_model_that_is_cut_off_is_an_error() {
    let model = Model::small();
    let folder = Folder::new();
    model.write(&folder);
    for (name, bytes) in [
        ("cameras.bin", model.cameras_bin()),
        ("images.bin", model.images_bin()),
        ("points3D.bin", model.points_bin()),
    ] {
        let path = format!("sparse/0/{name}");
        for end in 0..bytes.len() {
            folder.write(&path, &bytes[..end]);
            let e = match folder.open(&as_is()) {
                Err(e) => e,
                Ok(scene) => {
                    assert_eq!(name, "points3D.bin");
                    scene.points().unwrap_err()
                }
            };
            assert!(e.is_dataset(), "{e}");
            assert!(e.to_string().contains(name), "{end}: {e}");
        }
        folder.write(&path, &bytes);
    }
    folder.open(&as_is()).unwrap();
}

#[test]
fn a_text_model_that_is_cut_anywhere_does_not_panic() {
    let folder = Folder::new();
    let names = ["", "", "", "", "OPENCV"];
    Model::small().write_text(&folder, &names);
    for name in ["cameras.txt", "images.txt", "points3D.txt"] {
        let path = format!("sparse/0/{name}");
        let text = std::fs::read(folder.join(&path)).unwrap();
        for end in 0..text.len() {
            folder.write(&path, &text[..end]);
            if let Ok(scene) = folder.open(&as_is()) {
                let _ = scene.points();
            }
        }
        folder.write(&path, text);
    }
}

#[test]
fn counts_are_not_believed() {
    let folder = Folder::new();
    let model = Model::small();
    model.write(&folder);
    for (name, mut bytes) in [
        ("cameras.bin", model.cameras_bin()),
        ("images.bin", model.images_bin()),
        ("points3D.bin", model.points_bin()),
    ] {
        let good = bytes.clone();
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        folder.write(&format!("sparse/0/{name}"), bytes);
        let e = match folder.open(&as_is()) {
            Err(e) => e,
            Ok(scene) => scene.points().unwrap_err(),
        };
        assert!(e.to_string().contains(&format!("{}", u64::MAX)), "{e}");
        folder.write(&format!("sparse/0/{name}"), good);
    }
    // The 2D points of the last image.
    let mut model = model;
    model.images[2].4 = 0;
    let mut bytes = model.images_bin();
    let at = bytes.len() - 8;
    bytes[at..].copy_from_slice(&(u64::MAX / 24).to_le_bytes());
    folder.write("sparse/0/images.bin", bytes);
    let e = folder.refused();
    let expected =
        "768614336404564650 2D points of image 2 of 3, but the 0 bytes left hold at most 0";
    assert!(e.contains(expected), "{e}");
    let mut bytes = model.images_bin();
    bytes[at..].copy_from_slice(&(1u64 << 63).to_le_bytes());
    folder.write("sparse/0/images.bin", bytes);
    let e = folder.refused();
    let expected = "9223372036854775808 2D points of image 2 of 3, but the 0 bytes left";
    assert!(e.contains(expected), "{e}");
}

#[test]
fn a_model_that_contradicts_itself_is_an_error() {
    let refused = |change: &dyn Fn(&mut Model)| {
        let folder = Folder::new();
        let mut model = Model::small();
        change(&mut model);
        model.write(&folder);
        folder.refused()
    };
    let cases: [Case<'_, Model>; 7] = [
        (
            &|m| m.images[1].2 = 9,
            "images.bin: image 1 of 3 (\"a.png\"): camera 9 is not in the model",
        ),
        (&|m| m.images[1].0 = [0.0; 4], "not a rotation"),
        (&|m| m.images.clear(), "no images"),
        (
            &|m| m.cameras[0].1 = 99,
            "camera 0 of 1 (id 1): COLMAP camera model 99 is unknown",
        ),
        (
            &|m| m.cameras[0].4[0] = f64::NAN,
            "camera 1 (OPENCV): fx is NaN",
        ),
        (
            &|m| m.cameras[0].4[5] = f64::INFINITY,
            "camera 1 (OPENCV): k2 is inf",
        ),
        (
            &|m| m.cameras.push(m.cameras[0].clone()),
            "a second camera with the id 1",
        ),
    ];
    for (change, expected) in cases {
        let e = refused(change);
        assert!(e.contains(expected), "{expected}: {e}");
    }
}

#[test]
fn a_file_that_is_too_long_is_refused_with_the_number() {
    let folder = Folder::new();
    let file = std::fs::File::create(folder.join("transforms.json")).unwrap();
    file.set_len(10 << 30).unwrap();
    let e = folder.refused();
    assert!(
        e.contains("it has 10 GiB") && e.contains("max_json_bytes (256 MiB)"),
        "{e}"
    );
}

#[test]
fn a_hole_in_a_transforms_file_is_not_read() {
    let folder = Folder::new();
    let path = folder.write("transforms.json", "{\"frames\": [\n");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(256 << 20).unwrap();
    let e = folder.refused();
    assert!(e.contains("transforms.json: is not text"), "{e}");
    assert!(e.contains("zero byte at offset 13"), "{e}");
}

#[test]
fn deep_nesting_is_refused_or_stepped_over() {
    let folder = Folder::new();
    let deep = "[".repeat(1_000_000);
    for text in [
        format!("{{\"frames\": [{{\"transform_matrix\": {deep}"),
        format!("{{\"unknown\": {deep}"),
        deep,
    ] {
        folder.write("transforms.json", text);
        folder.refused();
    }
}

#[test]
fn what_is_no_scene_is_said_so() {
    let folder = Folder::new();
    let e = folder.refused();
    assert!(
        e.contains("no scene here: use a folder with transforms.json"),
        "{e}"
    );
    assert_eq!(Scene::detect(folder.path()), None);
    let e = Scene::open(folder.join("nowhere"), &as_is()).unwrap_err();
    assert!(
        e.is_dataset() && e.to_string().contains("no such file"),
        "{e}"
    );
    std::os::unix::fs::symlink("loop", folder.join("loop")).unwrap();
    let e = Scene::open(folder.join("loop"), &as_is()).unwrap_err();
    assert!(
        e.is_dataset() && e.to_string().contains("symbolic links"),
        "{e}"
    );
    // A folder of this name, and a FIFO, which must not block.
    std::fs::create_dir(folder.join("transforms.json")).unwrap();
    let e = folder.refused();
    assert!(e.contains("transforms.json: not a regular file"), "{e}");
    std::fs::remove_dir(folder.join("transforms.json")).unwrap();
    nix::unistd::mkfifo(
        &folder.join("transforms.json"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    assert!(folder.refused().contains("not a regular file"));
    for format in [
        SceneFormat::Nerfstudio,
        SceneFormat::InstantNgp,
        SceneFormat::Blender,
        SceneFormat::ScannetPp,
        SceneFormat::Colmap,
    ] {
        let empty = Folder::new();
        let options = SceneOptions {
            format: Some(format),
            ..as_is()
        };
        let e = empty.open(&options).unwrap_err();
        assert!(e.is_dataset(), "{format}: {e}");
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let top = good(&folder);
    folder.json("transforms.json", &top);
    for (options, name) in [
        (
            SceneOptions {
                scale_factor: 0.0,
                ..as_is()
            },
            "scale_factor",
        ),
        (
            SceneOptions {
                scale_factor: f64::NAN,
                ..as_is()
            },
            "scale_factor",
        ),
        (
            SceneOptions {
                depth_unit: Some(-1.0),
                ..as_is()
            },
            "depth_unit",
        ),
    ] {
        assert_eq!(folder.open(&options).unwrap_err().option_name(), Some(name));
    }
}

/// Rays are float32: numbers that do not fit are rejected with their key.
#[test]
fn numbers_beyond_float32_are_refused_with_their_key() {
    let whole = |key: &'static str, value: f64| move |t: &mut Value| t[key] = json!(value);
    for (key, value, expected) in [
        ("fl_x", 1e308, "json: fl_x is 1e308: use a number"),
        (
            "fl_x",
            1e-300,
            "json: fl_x is 1e-300: use a focal length above 0",
        ),
        (
            "fl_y",
            5e-324,
            "json: fl_y is 5e-324: use a focal length above 0",
        ),
        (
            "cx",
            -1e200,
            "json: cx is -1e200: use a number from -1e12 to 1e12",
        ),
        ("k1", 1e300, "json: k1 is 1e300: use a number"),
        (
            "applied_scale",
            1e300,
            "applied_scale: 1e300 is out of range",
        ),
        (
            "applied_scale",
            1e-300,
            "applied_scale: 1e-300 is out of range",
        ),
        (
            "integer_depth_scale",
            1e39,
            "integer_depth_scale: 1e39 is out of range",
        ),
    ] {
        let e = refused(whole(key, value));
        assert!(e.contains(expected), "{key} {value}: {e}");
    }
    let cases: [Case<'_, Value>; 5] = [
        (
            &|t| t["frames"][1]["time"] = json!(1e308),
            "frames[1].time: 1e308 is not a time",
        ),
        (
            &|t| t["frames"][1]["transform_matrix"][1][3] = json!(-1e200),
            "frames[1].transform_matrix: -1e200 is too large for a pose",
        ),
        (
            &|t| {
                let tiny = json!([[1e-200, 0, 0, 1], [0, 1e-200, 0, 1], [0, 0, 1e-200, 1]]);
                t["frames"][1]["transform_matrix"] = tiny;
            },
            "frames[1].transform_matrix: an axis is shorter than 1e-18",
        ),
        (
            &|t| {
                t["frames"][1]["transform_matrix_start"] = matrix(0.0, 0.0, 0.0);
                t["frames"][1]["transform_matrix_end"] = matrix(0.0, 0.0, 0.0);
                t["rolling_shutter"] = json!([0, 1e300, 0, 0]);
            },
            "json: rolling_shutter: 1e300 is out of range",
        ),
        (
            &|t| {
                (t["camera_model"], t["applied_scale"]) = (json!("ORTHOPHOTO"), json!(1));
                (t["fl_x"], t["fl_y"]) = (json!(1e12), json!(1e12));
                for (number, place) in [0.0, 1e10].into_iter().enumerate() {
                    t["frames"][number]["transform_matrix"][0][3] = json!(place);
                }
            },
            "in the scene: fx is ",
        ),
    ];
    for (change, expected) in cases {
        let e = refused(change);
        assert!(e.contains(expected), "{expected}: {e}");
    }
}

#[test]
fn a_point_beyond_float32_is_refused() {
    let mut model = Model::small();
    model.points[1].0[2] = 1e39;
    let folder = Folder::new();
    model.write(&folder);
    let scene = folder.open(&as_is()).unwrap();
    let e = scene.points().unwrap_err().to_string();
    assert!(e.contains("do not fit float32"), "{e}");
}

/// The key as in the file, and its place: a frame's own key is in the frame.
#[test]
fn a_fault_of_a_camera_names_the_key_that_the_file_has() {
    let cases: [Case<'_, Value>; 7] = [
        (
            &|t| t["frames"][1]["fl_x"] = json!(1e308),
            "json: frames[1].fl_x is 1e308",
        ),
        (
            &|t| {
                (t["fl_x"], t["fl_y"]) = (Value::Null, Value::Null);
                t["x_fov"] = json!(1e300);
            },
            "json: x_fov is 1e300 degrees: use 0 to 180, or give fl_x",
        ),
        (
            &|t| {
                (t["fl_x"], t["fl_y"]) = (Value::Null, Value::Null);
                t["camera_angle_x"] = json!(1e-300);
            },
            "json: camera_angle_x gives fx, which is ",
        ),
        (
            &|t| t["distortion_params"] = json!([0, 0, 0, 0, 1e300, 0]),
            "json: distortion_params (p1) is 1e300",
        ),
        (
            &|t| {
                t["camera_model"] = json!("FISHEYE624");
                t["k1"] = json!(1e300);
            },
            "json: k1 is 1e300",
        ),
        (
            &|t| t["camera_model"] = json!("x".repeat(500)),
            "json: camera_model: \"xxx",
        ),
        (
            &|t| t["fl_x"] = json!("1".repeat(500)),
            "fl_x: invalid value: string \"111",
        ),
    ];
    for (change, expected) in cases {
        let e = refused(change);
        assert!(e.contains(expected) && e.len() < 700, "{expected}: {e}");
    }
}

#[test]
fn infinity_in_the_place_of_a_list_is_named_as_such() {
    let folder = Folder::new();
    let text = good(&folder).to_string();
    let text = text.replacen('{', "{\"rolling_shutter\":Infinity,", 1);
    std::fs::write(folder.path().join("transforms.json"), text).unwrap();
    let e = folder.refused();
    let expected = "rolling_shutter: NaN and Infinity are not JSON";
    assert!(e.contains(expected) && !e.contains("u{7f}"), "{e}");
}
