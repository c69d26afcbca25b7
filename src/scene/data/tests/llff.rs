//! `poses_bounds.npy`.

use super::scenes_on_disk::{Folder, as_is};
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene::SceneSplit;

/// Two images of 8 x 6, focal length 7; depths from 1.5 on.
const ROWS: [[f64; 17]; 2] = [
    [
        0.6, 0.0, 0.8, 1.0, 6.0, -0.8, 0.0, 0.6, 2.0, 8.0, 0.0, -1.0, 0.0, 3.0, 7.0, 1.5, 9.0,
    ],
    [
        0.0, 1.0, 0.0, -1.0, 6.0, 1.0, 0.0, 0.0, 0.5, 8.0, 0.0, 0.0, -1.0, 0.25, 7.0, 2.0, 12.0,
    ],
];

/// As `numpy.save` writes them.
fn array(rows: &[[f64; 17]], descr: &str, by_columns: bool) -> Vec<u8> {
    let order = if by_columns { "True" } else { "False" };
    let text = format!(
        "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}, 17), }}\n",
        rows.len()
    );
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    let mut push = |value: f64| match descr {
        "<f4" => bytes.extend((value as f32).to_le_bytes()),
        _ => bytes.extend(value.to_le_bytes()),
    };
    match by_columns {
        true => (0..17).for_each(|column| rows.iter().for_each(|row| push(row[column]))),
        false => rows.iter().flatten().copied().for_each(push),
    }
    bytes
}

/// The matrices of bmild/nerf's `load_llff_data` before it recentres, with NumPy.
#[test]
fn poses_are_those_of_nerfs_reference_code() {
    let expected = [
        [
            [0.0, -0.6, 0.8, 0.8888888888888888],
            [0.0, 0.8, 0.6, 1.7777777777777777],
            [-1.0, 0.0, 0.0, 2.6666666666666665],
        ],
        [
            [1.0, 0.0, 0.0, -0.8888888888888888],
            [0.0, -1.0, 0.0, 0.4444444444444444],
            [0.0, 0.0, -1.0, 0.2222222222222222],
        ],
    ];
    for (descr, by_columns) in [("<f8", false), ("<f8", true), ("<f4", false)] {
        let folder = Folder::new();
        folder.picture("images/b.png", 8, 6);
        folder.picture("images/a.JPG", 8, 6);
        folder.write("images/notes.txt", "no picture");
        folder.write("poses_bounds.npy", array(&ROWS, descr, by_columns));
        let scene = folder.open(&SceneOptions::default()).unwrap();
        assert_eq!(scene.format, SceneFormat::Llff);
        let names: Vec<&str> = scene.frames.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a.JPG", "b.png"]);
        assert_eq!(scene.frames_of(SceneSplit::Eval), [0]);
        let camera = scene.cameras[0];
        assert_eq!(
            [camera.fx, camera.fy, camera.cx, camera.cy],
            [7.0, 7.0, 4.0, 3.0]
        );
        for (frame, expected) in scene.frames.iter().zip(expected) {
            // OpenGL's axes.
            let pose = frame.pose.0.map(|[x, y, z, t]| [x, -y, -z, t]);
            for (value, expected) in pose.iter().flatten().zip(expected.iter().flatten()) {
                assert!((value - expected).abs() < 1e-6, "{pose:?}");
            }
        }
        let as_is = folder.open(&as_is()).unwrap();
        assert_eq!(as_is.frames[0].pose.centre(), [1.0, 2.0, 3.0]);
    }
}

#[test]
fn smaller_images_stand_for_the_originals() {
    let folder = Folder::new();
    folder.picture("images_4/0.png", 4, 3);
    folder.picture("images_4/1.png", 4, 3);
    folder.write("poses_bounds.npy", array(&ROWS, "<f8", false));
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.downscale_folder, 4);
    assert_eq!((scene.cameras[0].width, scene.cameras[0].fx), (4, 3.5));
}

#[test]
fn what_is_wrong_with_an_array_is_named() {
    let mut nan = ROWS;
    nan[1][3] = f64::NAN;
    let mut flat = ROWS;
    flat[0][..15].fill(1.0);
    let good = array(&ROWS, "<f8", false);
    let three = [ROWS[0], ROWS[1], ROWS[0]];
    for (bytes, expected) in [
        (
            array(&three, "<f8", false),
            "has 3 poses, and images has 2 images",
        ),
        (array(&nan, "<f8", false), "row 1 of 2: NaN is not a number"),
        (
            array(&flat, "<f8", false),
            "row 0 of 2: the rotation is singular",
        ),
        (good[..good.len() - 1].to_vec(), "cut off"),
        (b"PK\x03\x04".to_vec(), "not an array of NumPy's"),
        (array(&ROWS, "<i8", false), "numbers of type"),
        (array(&[], "<f8", false), "its shape is not N x 17"),
    ] {
        let folder = Folder::new();
        folder.picture("images/0.png", 8, 6);
        folder.picture("images/1.png", 8, 6);
        folder.write("poses_bounds.npy", bytes);
        let e = folder.refused();
        assert!(e.contains(expected), "{expected}: {e}");
    }
}
