//! COLMAP models.

use super::scenes_on_disk::{Folder, Model, as_is};
use crate::camera::Lens;
use crate::scene::data::options::{ImageOrder, SceneFormat, SceneOptions, SplitBy};
use crate::scene::data::scene::{Scene, SceneSplit};

/// The names of COLMAP's models by their number.
const NAMES: [&str; 18] = [
    "SIMPLE_PINHOLE",
    "PINHOLE",
    "SIMPLE_RADIAL",
    "RADIAL",
    "OPENCV",
    "OPENCV_FISHEYE",
    "FULL_OPENCV",
    "FOV",
    "SIMPLE_RADIAL_FISHEYE",
    "RADIAL_FISHEYE",
    "THIN_PRISM_FISHEYE",
    "RAD_TAN_THIN_PRISM_FISHEYE",
    "SIMPLE_DIVISION",
    "DIVISION",
    "SIMPLE_FISHEYE",
    "FISHEYE",
    "EUCM",
    "EQUIRECTANGULAR",
];

#[test]
fn a_model_is_read_wherever_it_lies() {
    for place in ["sparse/0", "sparse", "colmap/sparse/0", "."] {
        let folder = Folder::new();
        Model::small().write_at(&folder, place);
        let model = folder.join(place);
        let camera_file = model.join("cameras.bin");
        for path in [folder.path(), &model, &camera_file] {
            let scene = Scene::open(path, &SceneOptions::default()).unwrap();
            assert_eq!(scene.format, SceneFormat::Colmap);
            let names: Vec<&str> = scene.frames.iter().map(|f| f.name.as_str()).collect();
            assert_eq!(names, ["a.png", "b.png", "sub/c.png"]);
            assert_eq!(scene.frames_of(SceneSplit::Eval), [0]);
            assert!(scene.frames[2].image.ends_with("images/sub/c.png"));
        }
    }
}

/// `sorted(im_id_to_image.keys())` of nerfstudio's `ColmapDataParser`.
#[test]
fn images_are_in_the_order_of_gsplat_or_of_nerfstudio() {
    let mut model = Model::small();
    model.images.reverse();
    let (binary, text) = (Folder::new(), Folder::new());
    model.write(&binary);
    model.write_text(&text, &NAMES);
    for folder in [binary, text] {
        let names = |image_order| {
            let options = SceneOptions {
                image_order,
                ..as_is()
            };
            let scene = folder.open(&options).unwrap();
            assert_eq!(scene.frames_of(SceneSplit::Eval), [0]);
            scene.frames.into_iter().map(|f| f.name).collect::<Vec<_>>()
        };
        let by_name = ["a.png", "b.png", "sub/c.png"];
        let by_number = ["sub/c.png", "a.png", "b.png"];
        assert_eq!(names(None), by_name);
        assert_eq!(names(Some(ImageOrder::Name)), by_name);
        assert_eq!(names(Some(ImageOrder::Nerfstudio)), by_number);
    }
}

#[test]
fn binary_and_text_are_the_same_model() {
    let model = Model::small();
    let (binary, text) = (Folder::new(), Folder::new());
    model.write(&binary);
    model.write_text(&text, &NAMES);
    let [a, b] = [&binary, &text].map(|folder| folder.open(&as_is()).unwrap());
    assert_eq!(a.cameras, b.cameras);
    assert_eq!(a.points().unwrap(), b.points().unwrap());
    for (a, b) in a.frames.iter().zip(&b.frames) {
        assert_eq!((&a.name, a.pose, a.split), (&b.name, b.pose, b.split));
    }
    assert!(
        a.notes.is_empty() && b.notes.is_empty(),
        "{:?} {:?}",
        a.notes,
        b.notes
    );
    // Both beside each other.
    model.write_text(&binary, &NAMES);
    binary.write("sparse/0/rigs.bin", "");
    let notes = binary.open(&as_is()).unwrap().notes;
    assert!(notes[0].contains("the binary one is read"), "{notes:?}");
    assert!(notes[1].contains("rigs.bin: not read"), "{notes:?}");
}

#[test]
fn a_pose_leads_from_the_camera_to_colmaps_world() {
    let folder = Folder::new();
    Model::small().write(&folder);
    let scene = folder.open(&as_is()).unwrap();
    // R = 1, t = (1, 2, 3): the centre is -t.
    assert_eq!(scene.frames[1].pose.centre(), [-1.0, -2.0, -3.0]);
    assert_eq!(scene.frames[1].pose.axis(2), [0.0, 0.0, 1.0]);
    // A quarter turn about z: the camera's x is the world's -y.
    let near = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(near(scene.frames[0].pose.axis(0), [0.0, -1.0, 0.0]));
    assert!(near(scene.frames[0].pose.centre(), [-0.5, 0.0, 0.0]));
}

/// nerfstudio's parser turns COLMAP's world before it orients it.
#[test]
fn an_oriented_world_is_turned_first() {
    let folder = Folder::new();
    let mut model = Model::small();
    // All upright in COLMAP's sense: y down.
    for image in &mut model.images {
        image.0 = [1.0, 0.0, 0.0, 0.0];
    }
    model.write(&folder);
    let scene = folder.open(&SceneOptions::default()).unwrap();
    let expected = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]];
    for (row, expected) in scene.to_scene.transform.iter().zip(expected) {
        assert!(
            row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9),
            "{row:?}"
        );
    }
    let centres = scene.frames.iter().map(|f| f.pose.centre());
    let largest = centres.flatten().map(f64::abs).fold(0.0, f64::max);
    assert!((largest - 1.0).abs() < 1e-12);
}

#[test]
fn points_move_with_the_poses() {
    let folder = Folder::new();
    Model::small().write(&folder);
    let points = folder.open(&as_is()).unwrap().points().unwrap().unwrap();
    assert_eq!(points.xyz, [[1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]]);
    assert_eq!(points.rgb, [[10, 20, 30], [255, 0, 1]]);
    let scene = folder.open(&SceneOptions::default()).unwrap();
    let moved = scene.points().unwrap().unwrap();
    // As far from a camera as before, in the new unit.
    let distance = |a: [f64; 3], b: [f32; 3]| {
        let squares = a.iter().zip(b).map(|(a, b)| (a - f64::from(b)).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let before = distance([-1.0, -2.0, -3.0], points.xyz[0]);
    let after = distance(scene.frames[1].pose.centre(), moved.xyz[0]);
    assert!((after - before * scene.to_scene.scale).abs() < 1e-6);
    std::fs::remove_file(folder.join("sparse/0/points3D.bin")).unwrap();
    assert_eq!(folder.open(&as_is()).unwrap().points().unwrap(), None);
}

#[test]
fn each_camera_model_is_a_lens() {
    let fisheye = |k| Lens::Fisheye { k };
    // Parameters count from 1.
    let cases: [(i32, usize, Option<Lens>); 18] = [
        (0, 3, Some(Lens::Pinhole)),
        (1, 4, Some(Lens::Pinhole)),
        (
            2,
            4,
            Some(Lens::Brown {
                k: [4.0, 0.0, 0.0, 0.0],
                p: [0.0; 2],
            }),
        ),
        (
            3,
            5,
            Some(Lens::Brown {
                k: [4.0, 5.0, 0.0, 0.0],
                p: [0.0; 2],
            }),
        ),
        (
            4,
            8,
            Some(Lens::Brown {
                k: [5.0, 6.0, 0.0, 0.0],
                p: [7.0, 8.0],
            }),
        ),
        (5, 8, Some(fisheye([5.0, 6.0, 7.0, 8.0]))),
        (
            6,
            12,
            Some(Lens::Rational {
                k: [5.0, 6.0, 9.0, 10.0, 11.0, 12.0],
                p: [7.0, 8.0],
            }),
        ),
        (7, 5, Some(Lens::Fov { omega: 0.5 })),
        (8, 4, Some(fisheye([4.0, 0.0, 0.0, 0.0]))),
        (9, 5, Some(fisheye([4.0, 5.0, 0.0, 0.0]))),
        (
            10,
            12,
            Some(Lens::ThinPrismFisheye {
                k: [5.0, 6.0, 9.0, 10.0],
                p: [7.0, 8.0],
                s: [11.0, 12.0],
            }),
        ),
        (
            11,
            16,
            Some(Lens::Fisheye624 {
                k: [5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
                p: [11.0, 12.0],
                s: [13.0, 14.0, 15.0, 16.0],
            }),
        ),
        (12, 4, None),
        (13, 5, None),
        (14, 3, Some(fisheye([0.0; 4]))),
        (15, 4, Some(fisheye([0.0; 4]))),
        (16, 6, None),
        (17, 2, Some(Lens::Equirectangular)),
    ];
    for (number, count, expected) in cases {
        let folder = Folder::new();
        let mut model = Model::small();
        let mut values: Vec<f64> = (1..=count).map(|i| i as f64).collect();
        if number == 7 {
            // An angle.
            values[4] = 0.5;
        }
        model.cameras = vec![(1, number, 8, 6, values)];
        model.write(&folder);
        let name = NAMES[number as usize];
        match expected {
            Some(lens) => {
                let camera = folder.open(&as_is()).unwrap().cameras[0];
                assert_eq!(camera.lens, lens, "{name}");
                let one_focal = matches!(number, 0 | 2 | 3 | 8 | 9 | 14);
                let expected = match number {
                    17 => [4.0, 6.0, 4.0, 3.0],
                    _ if one_focal => [1.0, 1.0, 2.0, 3.0],
                    _ => [1.0, 2.0, 3.0, 4.0],
                };
                assert_eq!(
                    [camera.fx, camera.fy, camera.cx, camera.cy],
                    expected,
                    "{name}"
                );
            }
            None => {
                let e = folder.refused();
                assert!(
                    e.contains("cameras.bin: camera 1") && e.contains(name),
                    "{e}"
                );
                assert!(e.contains("undistort"), "{e}");
            }
        }
        // The text has the same.
        let text = Folder::new();
        model.write_text(&text, &NAMES);
        assert_eq!(text.open(&as_is()).is_ok(), expected.is_some(), "{name}");
    }
}

#[test]
fn lists_of_a_scene_say_what_is_for_what() {
    let folder = Folder::new();
    Model::small().write(&folder);
    folder.write("train_list.txt", "b.png\nsub/c.png\n");
    folder.write("test_list.txt", "a.png\n");
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert_eq!(scene.frames_of(SceneSplit::Train), [1, 2]);
    assert_eq!(scene.frames_of(SceneSplit::Test), [0]);
    folder.write("test_list.txt", "a.png\nd.png\n");
    let e = folder.refused();
    assert!(
        e.contains("test_list.txt:2: \"d.png\" is not an image of the model"),
        "{e}"
    );
    let options = SceneOptions {
        split_by: Some(SplitBy::Interval(2)),
        ..SceneOptions::default()
    };
    std::fs::remove_file(folder.join("test_list.txt")).unwrap();
    assert_eq!(
        folder.open(&options).unwrap().frames_of(SceneSplit::Eval),
        [0, 2]
    );
}

#[test]
fn names_of_a_text_model_may_have_blanks_and_points_may_be_long() {
    let folder = Folder::new();
    let mut model = Model::small();
    model.images[0].3 = "a b.png".into();
    model.images[0].4 = 200_000;
    model.write_text(&folder, &NAMES);
    let scene = folder.open(&as_is()).unwrap();
    let names: Vec<&str> = scene.frames.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["a b.png", "a.png", "sub/c.png"]);
    let text = std::fs::read_to_string(folder.join("sparse/0/images.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    folder.write("sparse/0/images.txt", lines[..lines.len() - 2].join("\n"));
    let notes = folder.open(&as_is()).unwrap().notes;
    assert!(
        notes[0].contains("announces 3 images and has 2"),
        "{notes:?}"
    );
}
