//! Folders of smaller images, masks and depths, and images that are missing.

use serde_json::json;

use super::scenes_on_disk::{Folder, Model, as_is, frame};
use crate::scene::data::options::SceneOptions;

fn with_factor(factor: u32) -> SceneOptions {
    SceneOptions {
        downscale_folder: Some(factor),
        ..as_is()
    }
}

/// Three frames of 3300 x 8, of which `images_2` has two and `images_4` all.
fn large(folder: &Folder) {
    let mut frames = Vec::new();
    for i in 0..3 {
        folder.picture(&format!("images/{i}.png"), 3300, 8);
        folder.picture(&format!("images_4/{i}.png"), 825, 2);
        let mut frame = frame(&format!("images/{i}.png"), f64::from(i));
        if i > 0 {
            frame["mask_path"] = json!(format!("masks/{i}.png"));
            frame["depth_file_path"] = json!(format!("depths/{i}.png"));
            folder.picture(&format!("masks/{i}.png"), 3300, 8);
            folder.picture(&format!("depths/{i}.png"), 3300, 8);
        }
        frames.push(frame);
    }
    let top = json!({"fl_x": 4000, "fl_y": 4000, "cx": 1650, "cy": 4, "w": 3300, "h": 8, "frames": frames});
    folder.json("transforms.json", &top);
}

#[test]
fn smaller_images_are_chosen_as_nerfstudio_does() {
    let folder = Folder::new();
    large(&folder);
    // images_2 does not exist, so images_4 is not used.
    assert_eq!(folder.open(&as_is()).unwrap().downscale_folder, 1);
    for i in 0..2 {
        folder.picture(&format!("images_2/{i}.png"), 1650, 4);
    }
    let scene = folder.open(&as_is()).unwrap();
    // 1650 is still over 1600.
    assert_eq!(scene.downscale_folder, 4);
    assert_eq!((scene.cameras[0].width, scene.cameras[0].fx), (825, 1000.0));
    assert_eq!(scene.cameras[0].cx, 412.5);
    assert!(scene.frames[0].image.ends_with("images_4/0.png"));
    assert_eq!(folder.open(&with_factor(1)).unwrap().cameras[0].width, 3300);
    let half = folder.open(&with_factor(2)).unwrap();
    assert_eq!((half.frames.len(), half.report().missing.images), (2, 1));
    let e = folder.open(&with_factor(8)).unwrap_err().to_string();
    assert!(
        e.contains("images_8") && e.contains("downscale_folder is 8"),
        "{e}"
    );
    assert!(folder.open(&with_factor(0)).unwrap_err().is_config());
}

#[test]
fn masks_and_depths_are_of_the_same_folder_or_say_that_they_are_not() {
    let folder = Folder::new();
    large(&folder);
    folder.picture("masks_4/1.png", 825, 2);
    folder.picture("depths_4/2.png", 825, 2);
    let scene = folder.open(&with_factor(4)).unwrap();
    let of = |i: usize| {
        let frame = &scene.frames[i];
        let relative = |path: &Option<std::path::PathBuf>| {
            let path = path
                .as_ref()
                .map(|path| path.strip_prefix(folder.path()).unwrap());
            path.map(|path| path.to_str().unwrap().to_owned())
                .unwrap_or_default()
        };
        (
            (relative(&frame.mask), frame.mask_is_full_size),
            (relative(&frame.depth), frame.depth_is_full_size),
        )
    };
    assert_eq!(of(0), ((String::new(), false), (String::new(), false)));
    assert_eq!(
        of(1),
        (
            ("masks_4/1.png".into(), false),
            ("depths/1.png".into(), true)
        )
    );
    assert_eq!(
        of(2),
        (
            ("masks/2.png".into(), true),
            ("depths_4/2.png".into(), false)
        )
    );
    let report = scene.report();
    assert_eq!((report.masks, report.full_size_masks), (2, 1));
    assert_eq!((report.depths, report.full_size_depths), (2, 1));
    let originals = folder.open(&with_factor(1)).unwrap();
    assert!(
        originals
            .frames
            .iter()
            .all(|f| !f.mask_is_full_size && !f.depth_is_full_size)
    );
}

#[test]
fn masks_and_depths_are_found_by_any_of_their_names() {
    let folder = Folder::new();
    Model::small().write(&folder);
    folder.picture("masks/a.png", 8, 6);
    folder.picture("masks/sub/c.png.png", 8, 6);
    folder.picture("depths/b.png", 8, 6);
    let options = SceneOptions {
        find_depths: true,
        ..as_is()
    };
    let scene = folder.open(&options).unwrap();
    let masks: Vec<bool> = scene.frames.iter().map(|f| f.mask.is_some()).collect();
    assert_eq!(masks, [true, false, true]);
    assert!(
        scene.frames[2]
            .mask
            .as_ref()
            .unwrap()
            .ends_with("masks/sub/c.png.png")
    );
    assert!(
        scene.frames[1]
            .depth
            .as_ref()
            .unwrap()
            .ends_with("depths/b.png")
    );
    assert!(
        scene
            .notes
            .iter()
            .any(|note| note.contains("2 masks were found by name"))
    );
    let options = SceneOptions {
        find_masks: false,
        ..as_is()
    };
    let scene = folder.open(&options).unwrap();
    assert!(
        scene
            .frames
            .iter()
            .all(|f| f.mask.is_none() && f.depth.is_none())
    );
}

#[test]
fn colmaps_smaller_images_may_have_another_extension() {
    let folder = Folder::new();
    let mut model = Model::small();
    for image in &mut model.images {
        image.3 = image.3.replace(".png", ".JPG");
    }
    model.write(&folder);
    for name in ["a", "b", "sub/c"] {
        folder.picture(&format!("images_2/{name}.png"), 4, 3);
    }
    let scene = folder.open(&with_factor(2)).unwrap();
    assert!(scene.frames[2].image.ends_with("images_2/sub/c.png"));
    assert_eq!((scene.cameras[0].width, scene.cameras[0].fx), (4, 4.5));
}

#[test]
fn missing_and_unreadable_images_are_counted_and_named_or_refused() {
    let folder = Folder::new();
    let mut frames = Vec::new();
    for i in 0..40 {
        if i % 2 == 0 {
            folder.picture(&format!("images/{i:02}.png"), 8, 6);
        }
        frames.push(frame(&format!("images/{i:02}.png"), f64::from(i)));
    }
    folder.write("images/01.png", "no picture");
    std::fs::create_dir(folder.join("images/03.png")).unwrap();
    std::os::unix::fs::symlink("05.png", folder.join("images/05.png")).unwrap();
    frames[6]["mask_path"] = json!("masks/06.png");
    frames[8]["depth_file_path"] = json!("depths/08.png");
    let top = json!({"fl_x": 7, "w": 8, "h": 6, "frames": frames});
    folder.json("transforms.json", &top);
    let scene = folder.open(&as_is()).unwrap();
    let report = scene.report();
    assert_eq!((report.frames, report.missing.images), (19, 21));
    assert_eq!(report.missing.named.len(), 10);
    let reasons: Vec<&str> = report
        .missing
        .named
        .iter()
        .map(|m| m.reason.as_str())
        .collect();
    assert_eq!(report.missing.named[3].name, "images/06.png");
    for (reason, expected) in reasons.iter().zip([
        "format",
        "a folder",
        "symbolic links",
        "its mask is missing",
        "no such file",
    ]) {
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!((report.missing.masks, report.missing.depths), (1, 1));
    // Frames keep the split and position that they have when all exist.
    assert_eq!(scene.frames[0].name, "images/00.png");
    let options = SceneOptions {
        strict: true,
        ..as_is()
    };
    let e = folder.open(&options).unwrap_err().to_string();
    assert!(
        e.contains("21 of 40 images are missing") && e.contains("images/01.png"),
        "{e}"
    );
    for i in 0..40 {
        let _ = std::fs::remove_file(folder.join(&format!("images/{i:02}.png")));
    }
    let e = folder.refused();
    assert!(e.contains("40 of 40 images are missing"), "{e}");
}

#[test]
fn sizes_that_are_not_given_are_the_images() {
    let folder = Folder::new();
    folder.picture("images/0.png", 3300, 8);
    folder.picture("images_2/0.png", 1650, 4);
    let mut top =
        json!({"fl_x": 4000, "camera_model": "PINHOLE", "frames": [frame("images/0.png", 1.0)]});
    folder.json("transforms.json", &top);
    let camera = folder.open(&with_factor(1)).unwrap().cameras[0];
    assert_eq!((camera.width, camera.cx, camera.fy), (3300, 1650.0, 4000.0));
    let e = folder.open(&with_factor(2)).unwrap_err().to_string();
    assert!(e.contains("w and h are missing"), "{e}");
    top["w"] = json!(3300);
    folder.json("transforms.json", &top);
    let e = folder.refused();
    assert!(e.contains("frames[0].h: missing, but w is present"), "{e}");
}
