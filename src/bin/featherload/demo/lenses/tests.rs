//! The scenes as files.

use super::super::manifest::MANIFEST;
use super::super::tests::{digest, files};
use super::*;

/// The same bytes on every machine. Raise FORMAT if they change.
#[test]
fn the_bytes_are_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let summary = write(dir.path(), 7).unwrap();
    let files = files(dir.path());
    let bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!(summary.bytes, (bytes - files[MANIFEST].len()) as u64);
    assert_eq!(summary.written as usize, files.len() - 1);
    assert_eq!(
        format!("{:#034x}", digest(&files)),
        "0xd31ed780b09e6c302a2282d6914e198d"
    );
}

#[test]
fn what_is_there_is_left_and_what_is_missing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(dir.path(), 0).unwrap();
    let whole = files(dir.path());
    let again = write(dir.path(), 0).unwrap();
    assert_eq!((again.written, again.bytes), (0, first.bytes));
    fs::remove_file(dir.path().join("fov/sparse/0/images.bin")).unwrap();
    fs::remove_dir_all(dir.path().join("masks")).unwrap();
    // Six images, four masks, two models.
    assert_eq!(write(dir.path(), 0).unwrap().written, 12);
    assert_eq!(files(dir.path()), whole);
}

#[test]
fn another_set_in_the_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0).unwrap();
    let e = write(dir.path(), 1).unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("--scene --seed 0"),
        "{e}"
    );
    let classes = super::super::tests::args(dir.path());
    let e = super::super::write(&classes).unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("name another DIR"),
        "{e}"
    );
}

#[test]
fn every_scene_is_read_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0).unwrap();
    for set in sets::all(0) {
        let mut options = featherload::scene::SceneOptions::default();
        options.find_depths = true;
        let scene = featherload::Scene::open(dir.path().join(set.name), &options).unwrap();
        assert_eq!(scene.frames.len(), set.views.len(), "{}", set.name);
        for (frame, view) in scene.frames.iter().zip(&set.views) {
            let camera = &scene.cameras[frame.camera as usize];
            assert_eq!(camera.lens, view.camera.lens, "{}", set.name);
            assert_eq!((camera.cx, camera.cy), (view.camera.cx, view.camera.cy));
            assert_eq!(frame.mask.is_some(), view.mask.is_some());
            assert_eq!(frame.depth.is_some(), set.depths);
            assert_eq!(frame.time, view.time);
            let timing = frame.rolling_shutter.map(|shutter| shutter.timing);
            let wanted = view.shutter.map(|shutter| shutter.timing);
            assert_eq!(timing, wanted.map(|[t, u, v]| [t, u, v, 0.0]));
            assert_eq!(frame.fisheye_crop_radius, view.crop_radius);
        }
    }
}

#[test]
fn each_row_of_a_rolling_shutter_is_seen_from_where_the_camera_is_then() {
    let room = TexturedRoom::new(0);
    let set = sets::all(0)
        .into_iter()
        .find(|set| set.name == "rolling-shutter");
    let view = set.unwrap().views[0];
    let shutter = view.shutter.unwrap();
    assert_eq!(shutter.timing, [0.0, 0.0, 1.0]);
    let (shown, row_bytes) = (view.show(&room, 1.0).rgb, 3 * view.camera.width as usize);
    for row in [0, 1, 20, 46] {
        let time = (row as f64 + 0.5) / f64::from(view.camera.height);
        let still = render::RenderView {
            place: view.place.moved(&shutter.motion, time),
            shutter: None,
            ..view
        };
        let still = still.show(&room, 1.0).rgb;
        let same: Vec<usize> = (shown
            .chunks(row_bytes)
            .zip(still.chunks(row_bytes))
            .enumerate())
        .filter(|(_, (a, b))| a == b)
        .map(|(same, _)| same)
        .collect();
        assert_eq!(same, [row]);
    }
}

#[test]
fn some_lenses_leave_corners_without_rays_and_none_leaves_the_middle() {
    let room = TexturedRoom::new(0);
    for set in sets::all(0) {
        let view = &set.views[0];
        let shown = view.show(&room, set.form.depth_unit());
        let black = shown.rgb.chunks_exact(3).filter(|p| **p == [0; 3]).count();
        let part = black as f64 / (shown.rgb.len() / 3) as f64;
        match set.name {
            "radial" | "opencv-fisheye" => assert!((0.01..0.2).contains(&part), "{part}"),
            "fisheye624" | "thin-prism-fisheye" => assert!(part < 0.1, "{part}"),
            _ => assert_eq!(black, 0, "{}", set.name),
        }
    }
}
