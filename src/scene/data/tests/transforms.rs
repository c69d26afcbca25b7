//! `transforms.json` and its dialects.

use serde_json::{Value, json};

use super::scenes_on_disk::{Folder, as_is, frame, jpeg, matrix};
use crate::camera::{Camera, Lens};
use crate::scene::data::options::{OrientationMethod, SceneFormat, SceneOptions, SplitBy};
use crate::scene::data::scene::{Pose, Scene, SceneSplit};

fn names(scene: &Scene) -> Vec<&str> {
    scene
        .frames
        .iter()
        .map(|frame| frame.name.as_str())
        .collect()
}

/// Ten frames of 8 x 6 pixels, in no order.
fn ten() -> (Folder, Value) {
    let folder = Folder::new();
    let mut frames = Vec::new();
    for i in [3, 1, 0, 2, 9, 8, 7, 6, 5, 4] {
        folder.picture(&format!("images/{i}.png"), 8, 6);
        frames.push(frame(&format!("./images/{i}.png"), f64::from(i)));
    }
    let top =
        json!({"fl_x": 7.0, "fl_y": 7.5, "cx": 4.0, "cy": 3.0, "w": 8, "h": 6.0, "frames": frames});
    (folder, top)
}

#[test]
fn a_scene_of_nerfstudio_is_read_as_its_parser_does() {
    let (folder, top) = ten();
    folder.json("transforms.json", &top);
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert_eq!(scene.format, SceneFormat::Nerfstudio);
    assert_eq!(
        names(&scene)[..3],
        ["images/0.png", "images/1.png", "images/2.png"]
    );
    let camera = Camera {
        width: 8,
        height: 6,
        fx: 7.0,
        fy: 7.5,
        cx: 4.0,
        cy: 3.0,
        lens: Lens::Pinhole,
    };
    assert_eq!(scene.cameras, [camera]);
    // linspace(0, 9, 9): all but one.
    assert_eq!(
        scene.frames_of(SceneSplit::Train),
        [0, 1, 2, 3, 4, 5, 6, 7, 9]
    );
    assert_eq!(scene.frames_of(SceneSplit::Eval), [8]);
    assert_eq!(scene.frames_of(SceneSplit::Test), [8]);
    // Centred on the mean, x and y -4.5 to 4.5 and -9 to 9, and scaled to 1; up was +y.
    let ends = [0, 9].map(|i| scene.frames[i].pose.centre());
    let near = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near(ends[0], [-0.5, 0.0, -1.0]), "{ends:?}");
    assert!(near(ends[1], [0.5, 0.0, 1.0]), "{ends:?}");
    assert!((scene.to_scene.scale - 1.0 / 9.0).abs() < 1e-12);
}

#[test]
fn without_placement_the_world_is_the_files() {
    let (folder, top) = ten();
    folder.json("transforms.json", &top);
    let scene = folder.open(&as_is()).unwrap();
    // OpenCV's axes: y down, z forward.
    let expected = Pose([
        [1.0, 0.0, 0.0, 2.0],
        [0.0, -1.0, 0.0, 4.0],
        [0.0, 0.0, -1.0, 1.0],
    ]);
    assert_eq!(scene.frames[2].pose, expected);
    let options = SceneOptions {
        scale_factor: 0.5,
        ..as_is()
    };
    let scene = folder.open(&options).unwrap();
    assert_eq!(scene.frames[2].pose.centre(), [1.0, 2.0, 0.5]);
}

#[test]
fn applied_transforms_stand_in_front_of_the_dataparsers() {
    let (folder, mut top) = ten();
    top["applied_transform"] = json!([[0, 1, 0, 5], [1, 0, 0, 0], [0, 0, -1, 0]]);
    top["applied_scale"] = json!(2.0);
    folder.json("transforms.json", &top);
    let options = SceneOptions {
        scale_factor: 3.0,
        ..as_is()
    };
    let (transform, scale) = folder.open(&options).unwrap().dataparser_transforms();
    assert_eq!(scale, 6.0);
    let expected = [
        [0.0, 1.0, 0.0, 5.0],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, 0.0],
    ];
    assert_eq!(transform, expected);
}

#[test]
fn the_orientation_of_the_file_counts_unless_another_is_asked_for() {
    let (folder, mut top) = ten();
    top["orientation_override"] = json!("none");
    folder.json("transforms.json", &top);
    let up = |options: &SceneOptions| folder.open(options).unwrap().to_scene.transform[2][1];
    assert_eq!(up(&SceneOptions::default()), 0.0);
    let options = SceneOptions {
        orientation: Some(OrientationMethod::Up),
        ..SceneOptions::default()
    };
    assert!((up(&options) - 1.0).abs() < 1e-12);
}

#[test]
fn each_camera_model_is_a_lens() {
    let (folder, top) = ten();
    let lens = |more: Value| {
        let mut top = top.clone();
        for (key, value) in more.as_object().unwrap() {
            top[key] = value.clone();
        }
        folder.json("transforms.json", &top);
        let scene = folder.open(&SceneOptions::default());
        scene
            .map(|scene| scene.cameras[0].lens)
            .map_err(|e| e.to_string())
    };
    let twelve = json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let cases = [
        (
            json!({"camera_model": "OPENCV", "k1": 0.1, "k2": 0.2, "k3": 0.3, "k4": 0.4, "p1": 0.5, "p2": 0.6}),
            Lens::Brown {
                k: [0.1, 0.2, 0.3, 0.4],
                p: [0.5, 0.6],
            },
        ),
        // nerfstudio ignores k4 alone.
        (
            json!({"k4": 0.4}),
            Lens::Brown {
                k: [0.0, 0.0, 0.0, 0.4],
                p: [0.0; 2],
            },
        ),
        (
            json!({"camera_model": "PINHOLE", "distortion_params": [1, 2, 3, 4, 5, 6]}),
            Lens::Brown {
                k: [1.0, 2.0, 3.0, 4.0],
                p: [5.0, 6.0],
            },
        ),
        (
            json!({"camera_model": "OPENCV_FISHEYE", "k1": 0.1, "k4": 0.4, "p1": 0.0}),
            Lens::Fisheye {
                k: [0.1, 0.0, 0.0, 0.4],
            },
        ),
        (
            json!({"camera_model": "OPENCV_FISHEYE", "k1": 0.1, "p2": 0.2}),
            Lens::ThinPrismFisheye {
                k: [0.1, 0.0, 0.0, 0.0],
                p: [0.0, 0.2],
                s: [0.0; 2],
            },
        ),
        (
            json!({"is_fisheye": true, "k2": 0.5}),
            Lens::Fisheye {
                k: [0.0, 0.5, 0.0, 0.0],
            },
        ),
        (
            json!({"camera_model": "FISHEYE624", "distortion_params": twelve}),
            Lens::Fisheye624 {
                k: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
                p: [7.0, 8.0],
                s: [9.0, 10.0, 11.0, 12.0],
            },
        ),
        (
            json!({"camera_model": "EQUIRECTANGULAR"}),
            Lens::Equirectangular,
        ),
        (json!({"camera_model": "ORTHOPHOTO"}), Lens::Orthographic),
        (
            json!({"camera_model": "PINHOLE", "k1": null}),
            Lens::Pinhole,
        ),
    ];
    for (more, expected) in cases {
        assert_eq!(lens(more.clone()), Ok(expected), "{more}");
    }
    for (more, expected) in [
        (
            json!({"camera_model": "VR180_L"}),
            "camera_model: \"VR180_L\" is not supported",
        ),
        (
            json!({"distortion_params": [1, 2, 3]}),
            "distortion_params: 3 numbers",
        ),
        (json!({"ftheta_p0": 1}), "ftheta_p0"),
        (json!({"k5": 1}), "k5"),
    ] {
        let e = lens(more).unwrap_err();
        assert!(e.contains(&format!("transforms.json: {expected}")), "{e}");
    }
}

#[test]
fn frames_may_have_intrinsics_of_their_own() {
    let folder = Folder::new();
    let mut frames = Vec::new();
    for i in 0..4 {
        let (w, h) = if i < 2 { (8, 6) } else { (6, 8) };
        folder.picture(&format!("images/{i}.png"), w, h);
        let mut one = frame(&format!("images/{i}.png"), f64::from(i));
        let own =
            json!({"fl_x": 7.0, "fl_y": 7.0, "cx": w / 2, "cy": h / 2, "w": w, "h": h, "k1": 0.1});
        one.as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        frames.push(one);
    }
    folder.json("transforms.json", &json!({ "frames": frames }));
    let scene = folder.open(&SceneOptions::default()).unwrap();
    let cameras: Vec<u32> = scene.frames.iter().map(|frame| frame.camera).collect();
    assert_eq!(cameras, [0, 0, 1, 1]);
    assert_eq!((scene.cameras[1].width, scene.cameras[1].height), (6, 8));
    assert_eq!(
        scene.cameras[0].lens,
        Lens::Brown {
            k: [0.1, 0.0, 0.0, 0.0],
            p: [0.0; 2]
        }
    );
}

#[test]
fn listed_frames_are_for_what_they_are_listed_for() {
    let (folder, mut top) = ten();
    top["train_filenames"] = json!(["images/1.png", "./images/2.png", "images/3.png"]);
    top["val_filenames"] = json!(["images/4.png", "images/3.png"]);
    top["test_filenames"] = json!(["images/5.png", "images/4.png"]);
    folder.json("transforms.json", &top);
    let scene = folder.open(&SceneOptions::default()).unwrap();
    let of = |split| -> Vec<&str> {
        let numbers = scene.frames_of(split);
        numbers
            .iter()
            .map(|i| scene.frames[*i as usize].name.as_str())
            .collect()
    };
    assert_eq!(
        of(SceneSplit::Train),
        ["images/1.png", "images/2.png", "images/3.png"]
    );
    assert_eq!(of(SceneSplit::Eval), ["images/4.png"]);
    assert_eq!(of(SceneSplit::Test), ["images/5.png"]);
    let notes = scene.notes.join("\n");
    assert!(
        notes.contains("1 frames are in both lists, of training and of evaluation"),
        "{notes}"
    );
    assert!(notes.contains("5 frames are in no list"), "{notes}");
    // With another split requested, the lists do not count.
    let options = SceneOptions {
        split_by: Some(SplitBy::Interval(5)),
        ..SceneOptions::default()
    };
    assert_eq!(
        folder.open(&options).unwrap().frames_of(SceneSplit::Eval),
        [0, 5]
    );
    top["val_filenames"] = json!(["images/44.png"]);
    folder.json("transforms.json", &top);
    let e = folder.refused();
    assert!(e.contains("val_filenames names \"images/44.png\""), "{e}");
}

#[test]
fn splits_are_made_by_the_rule_that_was_asked_for() {
    let folder = Folder::new();
    let mut frames = Vec::new();
    for name in ["eval_0", "train_0", "train_1"] {
        folder.picture(&format!("images/{name}.png"), 8, 6);
        frames.push(frame(&format!("images/{name}.png"), 1.0));
    }
    folder.json(
        "transforms.json",
        &json!({"fl_x": 7, "w": 8, "h": 6, "frames": frames}),
    );
    let by = |split| {
        let options = SceneOptions {
            split_by: Some(split),
            ..SceneOptions::default()
        };
        folder.open(&options)
    };
    assert_eq!(
        by(SplitBy::Filename).unwrap().frames_of(SceneSplit::Eval),
        [0]
    );
    let all = by(SplitBy::All).unwrap();
    assert_eq!(all.frames_of(SceneSplit::Train), [0, 1, 2]);
    assert_eq!(all.frames_of(SceneSplit::Eval), [0, 1, 2]);
    for (split, expected) in [
        (SplitBy::Listed, "lists no frames"),
        (SplitBy::Interval(0), "interval is 0"),
        (SplitBy::Fraction(1.5), "fraction is 1.5"),
        (SplitBy::Fraction(f64::NAN), "fraction is NaN"),
    ] {
        let e = by(split).unwrap_err();
        assert_eq!(e.option_name(), Some("split_by"));
        assert!(e.to_string().contains(expected), "{e}");
    }
}

#[test]
fn instant_ngps_dialect_is_read() {
    let folder = Folder::new();
    folder.picture("images/b.png", 8, 6);
    folder.picture("images/a.jpg", 8, 6);
    folder.picture("images/dynamic_mask_b.png", 8, 6);
    folder.picture("depth/b.png", 8, 6);
    let top = json!({
        "camera_angle_x": 1.0, "y_fov": 60.0, "rolling_shutter": [0.1, 0.0, 0.8, 0.0],
        "integer_depth_scale": 0.25, "enable_depth_loading": true, "aabb_scale": 4,
        "frames": [
            {"file_path": "images/b", "transform_matrix_start": matrix(1.0, 0.0, 0.0),
             "transform_matrix_end": matrix(2.0, 0.0, 0.0), "depth_path": "depth/b.png", "sharpness": 3.0},
            {"file_path": "images/a", "transform_matrix": matrix(3.0, 0.0, 0.0)},
        ],
    });
    folder.json("transforms.json", &top);
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert_eq!(scene.format, SceneFormat::InstantNgp);
    // As in the file: order and world.
    assert_eq!(names(&scene), ["images/b", "images/a"]);
    let [b, a] = &scene.frames[..] else { panic!() };
    assert!(a.image.ends_with("images/a.jpg") && b.image.ends_with("images/b.png"));
    assert_eq!(b.mask, Some(folder.join("images/dynamic_mask_b.png")));
    assert_eq!((&a.mask, &a.depth), (&None, &None));
    assert_eq!(b.depth, Some(folder.join("depth/b.png")));
    assert_eq!(scene.depth_unit, 0.25);
    let shutter = b.rolling_shutter.unwrap();
    assert_eq!(shutter.timing, [0.1, 0.0, 0.8, 0.0]);
    assert_eq!((b.pose.centre()[0], shutter.end.centre()[0]), (1.0, 2.0));
    let camera = scene.cameras[0];
    assert!((camera.fx - 4.0 / 0.5f64.tan()).abs() < 1e-12);
    assert!((camera.fy - 3.0 / 30f64.to_radians().tan()).abs() < 1e-12);
    assert_eq!((camera.cx, camera.cy), (4.0, 3.0));
}

/// nerfstudio's parser of instant-ngp's files ignores `fl_y` (its l. 215).
#[test]
fn the_focal_length_along_y_is_not_lost() {
    let (folder, mut top) = ten();
    top["camera_angle_x"] = json!(1.0);
    folder.json("transforms.json", &top);
    let options = SceneOptions {
        format: Some(SceneFormat::InstantNgp),
        ..SceneOptions::default()
    };
    let scene = folder.open(&options).unwrap();
    assert_eq!((scene.cameras[0].fx, scene.cameras[0].fy), (7.0, 7.5));
    for (key, expected) in [("fl_x", 7.5), ("fl_y", 7.0)] {
        let mut top = top.clone();
        top.as_object_mut().unwrap().remove(key);
        top.as_object_mut().unwrap().remove("camera_angle_x");
        folder.json("transforms.json", &top);
        let camera = folder.open(&options).unwrap().cameras[0];
        assert_eq!((camera.fx, camera.fy), (expected, expected));
    }
}

#[test]
fn a_blender_scene_has_its_splits_in_files() {
    let folder = Folder::new();
    let angle: f64 = 0.8;
    for (split, count) in [("train", 3), ("val", 1), ("test", 2)] {
        let mut frames = Vec::new();
        for i in (0..count).rev() {
            folder.picture(&format!("{split}/r_{i}.png"), 10, 10);
            let mut frame = frame(&format!("./{split}/r_{i}"), f64::from(i));
            frame["time"] = json!(f64::from(i) / 4.0);
            frames.push(frame);
        }
        let top = json!({"camera_angle_x": angle, "frames": frames});
        folder.json(&format!("transforms_{split}.json"), &top);
    }
    for path in [
        folder.path().to_owned(),
        folder.join("transforms_train.json"),
    ] {
        let scene = Scene::open(&path, &SceneOptions::default()).unwrap();
        assert_eq!(scene.format, SceneFormat::Blender);
        let expected = [
            "train/r_2",
            "train/r_1",
            "train/r_0",
            "val/r_0",
            "test/r_1",
            "test/r_0",
        ];
        assert_eq!(names(&scene), expected);
        assert_eq!(scene.frames_of(SceneSplit::Train), [0, 1, 2]);
        assert_eq!(scene.frames_of(SceneSplit::Eval), [3]);
        assert_eq!(scene.frames_of(SceneSplit::Test), [4, 5]);
        assert_eq!(scene.frames[1].time, Some(0.25));
        // Neither centred nor scaled.
        assert_eq!(scene.frames[0].pose.centre(), [2.0, 4.0, 1.0]);
        let focal = 5.0 / (angle / 2.0).tan();
        assert_eq!((scene.cameras[0].fx, scene.cameras[0].fy), (focal, focal));
        assert_eq!(scene.cameras.len(), 1);
    }
    std::fs::remove_file(folder.join("transforms_val.json")).unwrap();
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert!(scene.notes.contains(&"no transforms_val.json".to_owned()));
}

#[test]
fn a_scene_of_scannet_has_its_own_folders() {
    let folder = Folder::new();
    let frame_of = |name: &str| {
        folder.picture(&format!("dslr/resized_images/{name}.JPG"), 8, 6);
        folder.picture(&format!("dslr/resized_anon_masks/{name}.png"), 8, 6);
        let mut frame = frame(&format!("{name}.JPG"), 1.0);
        frame["mask_path"] = json!(format!("{name}.png"));
        frame
    };
    let (frames, test) = ([frame_of("b"), frame_of("c")], [frame_of("a")]);
    let top = json!({"fl_x": 7, "fl_y": 7, "cx": 4, "cy": 3, "w": 8, "h": 6, "k1": 0.1,
        "camera_model": "OPENCV_FISHEYE", "frames": frames, "test_frames": test});
    let file = folder.json("dslr/nerfstudio/transforms.json", &top);
    for path in [folder.path().to_owned(), folder.join("dslr"), file] {
        let scene = Scene::open(&path, &SceneOptions::default()).unwrap();
        assert_eq!(scene.format, SceneFormat::ScannetPp);
        assert_eq!(names(&scene), ["a.JPG", "b.JPG", "c.JPG"]);
        assert_eq!(scene.frames_of(SceneSplit::Eval), [0]);
        assert_eq!(
            scene.frames[0].mask,
            Some(folder.join("dslr/resized_anon_masks/a.png"))
        );
    }
}

#[test]
fn a_crop_radius_is_in_pixels_of_the_image() {
    let folder = Folder::new();
    folder.picture("images/0.png", 4, 3);
    let mut top = json!({"fl_x": 7, "w": 8, "h": 6, "fisheye_crop_radius": 3.0,
        "frames": [frame("images/0.png", 1.0)]});
    folder.json("transforms.json", &top);
    let radius = || folder.open(&as_is()).unwrap().frames[0].fisheye_crop_radius;
    assert_eq!(radius(), None);
    top["camera_model"] = json!("OPENCV_FISHEYE");
    folder.json("transforms.json", &top);
    assert_eq!(radius(), Some(1.5));
    // With tangential distortion it is one all the same.
    top["p1"] = json!(0.001);
    folder.json("transforms.json", &top);
    assert_eq!(radius(), Some(1.5));
}

#[test]
fn images_of_another_size_scale_the_camera_and_of_another_shape_are_refused() {
    let folder = Folder::new();
    let top = json!({"fl_x": 1000, "fl_y": 1001, "cx": 2473, "cy": 1643, "w": 4946, "h": 3286,
        "frames": [frame("images/0.jpg", 1.0)]});
    folder.json("transforms.json", &top);
    // As Mip-NeRF 360's images_4: rounded up on both sides.
    folder.write("images/0.jpg", jpeg(1237, 822, 1));
    let camera = folder.open(&as_is()).unwrap().cameras[0];
    assert_eq!((camera.width, camera.height), (1237, 822));
    assert!((camera.fx - 1000.0 * 1237.0 / 4946.0).abs() < 1e-9);
    assert!((camera.cy - 1643.0 * 822.0 / 3286.0).abs() < 1e-9);
    folder.write("images/0.jpg", jpeg(1237, 830, 1));
    let e = folder.refused();
    assert!(
        e.contains("transforms.json: frames[0]") && e.contains("images/0.jpg"),
        "{e}"
    );
    assert!(
        e.contains("4946 x 3286") && e.contains("1237 x 830") && !e.contains("EXIF"),
        "{e}"
    );
    // Upright it would fit; as stored it does not.
    folder.write("images/0.jpg", jpeg(3286, 4946, 6));
    let e = folder.refused();
    assert!(e.contains("EXIF orientation turns it by 90 degrees"), "{e}");
    // As stored it fits: the EXIF orientation is noted.
    folder.write("images/0.jpg", jpeg(4946, 3286, 6));
    let notes = folder.open(&as_is()).unwrap().notes.join("\n");
    assert!(
        notes.contains("1 images have an EXIF turn of 90 degrees"),
        "{notes}"
    );
}
