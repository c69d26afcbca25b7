//! File names from another system.

use serde_json::json;

use super::scenes_on_disk::{Folder, Model, as_is, frame};
use crate::scene::data::scene::Scene;

/// A scene of one `transforms.json` with these names, and these files.
fn scene_of(names: &[&str], files: &[&str]) -> (Folder, String) {
    let folder = Folder::new();
    for file in files {
        folder.picture(file, 8, 6);
    }
    let frames: Vec<_> = (names.iter().enumerate())
        .map(|(i, name)| frame(name, i as f64))
        .collect();
    folder.json(
        "transforms.json",
        &json!({"fl_x": 7, "w": 8, "h": 6, "frames": frames}),
    );
    let message = match folder.open(&as_is()) {
        Ok(scene) => files_of(&folder, &scene),
        Err(e) => e.to_string(),
    };
    (folder, message)
}

/// The files of the frames by the order of their poses, then notes.
fn files_of(folder: &Folder, scene: &Scene) -> String {
    let mut frames: Vec<_> = scene.frames.iter().collect();
    frames.sort_by(|a, b| a.pose.centre()[0].total_cmp(&b.pose.centre()[0]));
    let file = |path: &std::path::Path| {
        path.strip_prefix(folder.path())
            .unwrap()
            .display()
            .to_string()
    };
    let files: Vec<String> = frames.iter().map(|f| file(&f.image)).collect();
    format!("{} | {}", files.join(" "), scene.notes.join(" | "))
}

#[test]
fn a_name_of_another_system_finds_its_file() {
    let cases: [(&[&str], &[&str], &str, &str); 10] = [
        (
            &["images\\0.png", ".\\images\\1.png"],
            &["images/0.png", "images/1.png"],
            "images/0.png images/1.png",
            "backslashes: 2, first \"images\\\\0.png\"",
        ),
        (
            &[
                "C:\\Users\\me\\data\\images\\0.png",
                "C:/Users/me/data/images/1.png",
            ],
            &["images/0.png", "images/1.png"],
            "images/0.png images/1.png",
            "another machine, matched by their last parts: 2",
        ),
        (
            &[
                "/home/me/data/images/0.png",
                "/home/me/data/images/sub/0.png",
            ],
            &["images/0.png", "images/sub/0.png"],
            "images/0.png images/sub/0.png",
            "another machine, matched by their last parts: 2",
        ),
        (
            &["/home/me/images/0.png"],
            &["0.png"],
            "0.png",
            "matched by their last parts: 1",
        ),
        // The folder of images has another name on that machine.
        (
            &["/home/me/frames/0.png", "/home/me/frames/sub/0.png"],
            &["images/0.png", "images/sub/0.png"],
            "images/0.png images/sub/0.png",
            "matched by their last parts: 2",
        ),
        (
            &["images/0.jpg", "images/1.PNG"],
            &["images/0.JPG", "images/1.png"],
            "images/0.JPG images/1.png",
            "differ from their files in case or Unicode form: 2",
        ),
        (
            &["images/Co\u{301}pia.png"],
            &["images/C\u{f3}pia.png"],
            "images/C\u{f3}pia.png",
            "differ from their files in case or Unicode form: 1",
        ),
        (
            &["images/C\u{f3}pia.png"],
            &["Images/Co\u{301}pia.PNG"],
            "Images/Co\u{301}pia.PNG",
            "differ from their files in case or Unicode form: 1",
        ),
        (
            &["./images/0"],
            &["images/0.PNG"],
            "images/0.PNG",
            "differ from their files in case or Unicode form: 1",
        ),
        // An existing file is never searched elsewhere.
        (
            &["images/a.png", "images/A.png", "images\\a.png"],
            &["images/a.png", "images/A.png", "images\\a.png"],
            "images/a.png images/A.png images\\a.png",
            "",
        ),
    ];
    for (names, files, expected, note) in cases {
        let (_folder, message) = scene_of(names, files);
        let (found, notes) = message.split_once(" | ").unwrap_or((&message, ""));
        assert_eq!(found, expected, "{message}");
        assert!(
            notes.contains(note) && notes.is_empty() == note.is_empty(),
            "{message}"
        );
    }
}

#[test]
fn a_name_that_could_be_two_files_is_refused() {
    let (_folder, message) = scene_of(&["images/a.png"], &["images/A.png", "images/a.PNG"]);
    assert!(
        message.contains("frames[0]: \"a.png\" is not in"),
        "{message}"
    );
    assert!(
        message.contains("A.png") && message.contains("a.PNG"),
        "{message}"
    );
    let (_folder, message) = scene_of(&["/a/cam0/0.png", "/a/cam1/0.png"], &["0.png"]);
    assert!(
        message.contains("frames[1]: \"/a/cam0/0.png\" and \"/a/cam1/0.png\" both mean"),
        "{message}"
    );
    let (_folder, message) = scene_of(&["images/A.png", "images/a.png"], &["images/a.png"]);
    assert!(message.contains("both mean"), "{message}");
    // A relative name must match with more than the file's name.
    let (_folder, message) = scene_of(&["cam0/0.png"], &["0.png"]);
    assert!(message.contains("1 of 1 images are missing"), "{message}");
}

/// instant-ngp writes names relative to the folder where it was started.
#[test]
fn a_relative_name_may_begin_before_the_scene() {
    let folder = Folder::new();
    folder.picture("fox/images/0.png", 8, 6);
    let top = json!({"fl_x": 7, "frames": [frame("data/nerf/fox/images/0.png", 0.0)]});
    folder.json("fox/transforms.json", &top);
    let scene = Scene::open(folder.join("fox"), &as_is()).unwrap();
    assert_eq!(scene.frames[0].image, folder.join("fox/images/0.png"));
    let notes = scene.notes.join("\n");
    assert!(notes.contains("matched by their last parts: 1"), "{notes}");
}

#[test]
fn images_of_another_folder_are_never_taken() {
    for name in [
        "test/images/0.png",
        "old/images/0.png",
        "test\\images\\0.png",
    ] {
        let (_folder, message) = scene_of(&[name], &["images/0.png"]);
        assert!(
            message.contains("1 of 1 images are missing"),
            "{name}: {message}"
        );
    }
    // Two folders have such an image.
    let files = ["images/0.png", "rgb/0.png"];
    let (_folder, message) = scene_of(&["/home/me/frames_of_mine/0.png"], &files);
    assert!(message.contains("1 of 1 images are missing"), "{message}");
}

#[test]
fn an_image_is_never_its_own_mask_or_depth() {
    let files = ["cam1/0.png", "cam1/1.png", "masks/cam1/0.png"];
    for (mask, depth, expected) in [
        ("masks/cam1/1.png", "masks/cam1/0.png", (1, 0)),
        ("/old/scene/masks/cam1/1.png", "masks/cam1/0.png", (1, 0)),
        ("/old/scene/segments/cam1/1.png", "masks/cam1/0.png", (1, 0)),
        ("/old/scene/masks/cam1/0.png", "depths/cam1/1.png", (0, 1)),
        ("masks/cam1/0.png", "/old/scene/depths/cam1/1.png", (0, 1)),
        ("masks/cam1/0.png", "/old/cam1/1.png", (0, 1)),
    ] {
        let folder = Folder::new();
        for file in files {
            folder.picture(file, 8, 6);
        }
        let mut frames = [frame("cam1/0.png", 0.0), frame("cam1/1.png", 1.0)];
        frames[1]["mask_path"] = json!(mask);
        frames[1]["depth_file_path"] = json!(depth);
        folder.json("transforms.json", &json!({"fl_x": 7, "frames": frames}));
        let scene = folder.open(&as_is()).unwrap();
        let missing = (scene.missing.masks, scene.missing.depths);
        assert_eq!(missing, expected, "{mask} {depth}");
    }
}

#[test]
fn masks_depths_points_and_lists_follow_the_same_rule() {
    let folder = Folder::new();
    for file in ["images/0.png", "images/1.png", "masks/0.PNG", "depth/0.png"] {
        folder.picture(file, 8, 6);
    }
    folder.write("cloud.ply", "ply\n");
    let mut frames = [frame("images\\0.png", 0.0), frame("images\\1.png", 1.0)];
    frames[0]["mask_path"] = json!("masks\\0.png");
    frames[0]["depth_file_path"] = json!("D:\\scene\\depth\\0.png");
    let top = json!({"fl_x": 7, "w": 8, "h": 6, "frames": frames, "ply_file_path": ".\\cloud.ply",
        "train_filenames": ["images/0.png"], "val_filenames": ["images\\1.png"]});
    folder.json("transforms.json", &top);
    let scene = folder.open(&as_is()).unwrap();
    let first = &scene.frames[0];
    assert_eq!(first.mask, Some(folder.join("masks/0.PNG")));
    assert_eq!(first.depth, Some(folder.join("depth/0.png")));
    assert!(scene.report().has_points && scene.missing.points.is_none());
    assert_eq!(
        scene.frames_of(crate::scene::data::scene::SceneSplit::Eval),
        [1]
    );
}

#[test]
fn names_of_a_model_find_their_files() {
    let folder = Folder::new();
    let mut model = Model::small();
    model.write_images(&folder);
    for (image, name) in model
        .images
        .iter_mut()
        .zip(["B.PNG", "images/a.png", "sub\\c.png"])
    {
        image.3 = name.into();
    }
    folder.write("sparse/0/cameras.bin", model.cameras_bin());
    folder.write("sparse/0/images.bin", model.images_bin());
    let scene = folder.open(&as_is()).unwrap();
    let images: Vec<_> = scene.frames.iter().map(|f| f.image.clone()).collect();
    assert_eq!(
        images,
        ["b", "a", "sub/c"].map(|n| folder.join(&format!("images/{n}.png")))
    );
    // A model without points3D returns a note.
    assert_eq!(
        scene.missing.points,
        Some(folder.join("sparse/0/points3D.bin"))
    );
    assert_eq!(scene.points().unwrap(), None);
}

#[test]
fn a_missing_point_cloud_costs_only_the_points() {
    let folder = Folder::new();
    folder.picture("images/0.png", 8, 6);
    let top =
        json!({"fl_x": 7, "ply_file_path": "gone.ply", "frames": [frame("images/0.png", 0.0)]});
    folder.json("transforms.json", &top);
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.points().unwrap(), None);
    let report = scene.report();
    assert!(!report.has_points);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["missing_points"], json!(folder.join("gone.ply")));
    assert_eq!(
        (&json["missing"], &json["missing_masks"]),
        (&json!(0), &json!(0))
    );
    assert!(scene.missing.lines()[0].contains("gone.ply"));
}
