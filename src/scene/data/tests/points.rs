//! Point clouds of PLY files.

use serde_json::json;

use super::scenes_on_disk::{Folder, as_is, frame};
use crate::scene::data::options::SceneOptions;
use crate::scene::data::ply;

fn header(format: &str, count: u64, properties: &[&str]) -> Vec<u8> {
    let mut text = format!("ply\nformat {format} 1.0\ncomment of nobody\nelement vertex {count}\n");
    for property in properties {
        text += &format!("property {property}\n");
    }
    (text + "element face 0\nproperty list uchar int vertex_indices\nend_header\n").into_bytes()
}

const PLACE: [&str; 3] = ["double x", "float y", "short z"];
const COLOUR: [&str; 3] = ["uchar red", "ushort green", "float blue"];

#[test]
fn binary_and_ascii_points_of_any_type_are_read() {
    let folder = Folder::new();
    let properties = [&PLACE[..], &["float nx"], &COLOUR].concat();
    let mut binary = header("binary_little_endian", 2, &properties);
    for (x, y, z) in [(1.5f64, -2.0f32, 3i16), (0.25, 8.0, -4)] {
        binary.extend(x.to_le_bytes());
        binary.extend(y.to_le_bytes());
        binary.extend(z.to_le_bytes());
        binary.extend(9f32.to_le_bytes());
        binary.push(200);
        binary.extend(0x8001u16.to_le_bytes());
        binary.extend(0.5f32.to_le_bytes());
    }
    let mut ascii = header("ascii", 2, &properties);
    ascii.extend(b"1.5 -2 3 9 200 32769 0.5\r\n\n0.25 8e0 -4 9 200 32769 0.5");
    for bytes in [binary, ascii] {
        let path = folder.write("points.ply", bytes);
        let points = ply::read(&path).unwrap();
        assert_eq!(points.xyz, [[1.5, -2.0, 3.0], [0.25, 8.0, -4.0]]);
        assert_eq!(points.rgb, [[200, 128, 127]; 2]);
    }
}

#[test]
fn points_of_a_transforms_file_move_with_the_poses() {
    let folder = Folder::new();
    folder.picture("images/0.png", 8, 6);
    folder.picture("images/1.png", 8, 6);
    let mut ply = header("ascii", 1, &PLACE);
    ply.extend(b"2 4 1\n");
    folder.write("sparse_pc.ply", ply);
    let top = json!({"fl_x": 7, "w": 8, "h": 6, "ply_file_path": "sparse_pc.ply",
        "frames": [frame("images/0.png", 1.0), frame("images/1.png", 2.0)]});
    folder.json("transforms.json", &top);
    for options in [as_is(), SceneOptions::default()] {
        let scene = folder.open(&options).unwrap();
        let points = scene.points().unwrap().unwrap();
        // The place of the second camera.
        let centre = scene.frames[1].pose.centre().map(|v| v as f32);
        assert_eq!(points.xyz, [centre]);
        assert!(points.rgb.is_empty());
    }
    std::fs::remove_file(folder.join("sparse_pc.ply")).unwrap();
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.points().unwrap(), None);
    let missing = scene.missing.points.unwrap();
    assert!(missing.ends_with("sparse_pc.ply"), "{missing:?}");
}

#[test]
fn bad_clouds_are_refused_and_none_is_believed() {
    let folder = Folder::new();
    let read = |bytes: &[u8]| ply::read(&folder.write("bad.ply", bytes));
    let all = |format, count| header(format, count, &PLACE);
    let mut not_a_number = all("ascii", 1);
    not_a_number.extend(b"1 nan 2\n");
    let mut word = all("ascii", 1);
    word.extend(b"1 x 2\n");
    let mut short = all("ascii", 2);
    short.extend(b"1.00 2.00 3.00\n4.00 5.00\n");
    for (bytes, expected) in [
        (b"PLY\n".to_vec(), "its first line is not"),
        (b"".to_vec(), "its first line is not"),
        (all("binary_big_endian", 0), "binary_big_endian"),
        (all("binary_little_endian", 1 << 60), "holds at most 0"),
        (all("ascii", 1 << 60), "holds at most 0"),
        (all("ascii", 0)[..40].to_vec(), "no end_header"),
        (header("ascii", 0, &["float x", "float y"]), "no property z"),
        (header("ascii", 0, &["vector x"]), "unknown type"),
        (header("ascii", 0, &["list uchar int x"]), "a list"),
        (not_a_number, "point 0: its coordinates"),
        (word, "\"x\" is not a number"),
        (short, "point 1: 2 numbers"),
    ] {
        let e = read(&bytes).unwrap_err();
        assert!(e.is_dataset(), "{e}");
        let e = e.to_string();
        assert!(e.contains("bad.ply: ") && e.contains(expected), "{e}");
    }
    // A truncated file is never read as if it were whole.
    let mut whole = all("binary_little_endian", 2);
    whole.extend([0; 28]);
    assert_eq!(read(&whole).unwrap().xyz.len(), 2);
    for end in 0..whole.len() {
        assert!(read(&whole[..end]).is_err(), "{end}");
    }
}
