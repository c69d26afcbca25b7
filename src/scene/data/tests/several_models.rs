//! Several models of a scene, several descriptions of one.

use serde_json::json;

use super::scenes_on_disk::{Folder, Model, as_is, frame};
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene::{Scene, SceneSplit};

/// `sparse/0` with one image, `sparse/1` with three.
fn two_models() -> Folder {
    let folder = Folder::new();
    let mut first = Model::small();
    first.images.truncate(1);
    first.write_at(&folder, "sparse/0");
    Model::small().write_at(&folder, "sparse/1");
    folder
}

#[test]
fn all_models_are_listed_and_a_larger_one_is_named() {
    let folder = two_models();
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!(scene.frames.len(), 1);
    let models: Vec<_> = (scene.models.iter())
        .map(|m| (m.folder.clone(), m.images, m.is_read))
        .collect();
    let expected = [
        (folder.join("sparse/0"), Some(1), true),
        (folder.join("sparse/1"), Some(3), false),
    ];
    assert_eq!(models, expected);
    let notes = scene.notes.join("\n");
    assert!(
        notes.contains("sparse/0 has 1 images") && notes.contains("sparse/1 has 3"),
        "{notes}"
    );
    let json = serde_json::to_value(scene.report()).unwrap();
    assert_eq!(json["models"][1]["images"], 3);
    // No note with one model, or if the largest is used.
    std::fs::remove_dir_all(folder.join("sparse/0")).unwrap();
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!((scene.frames.len(), scene.models.len()), (3, 1));
    assert!(scene.notes.is_empty(), "{:?}", scene.notes);
}

#[test]
fn any_model_of_a_scene_can_be_named() {
    let folder = two_models();
    Model::small().write_at(&folder, "best model");
    for model in ["sparse/1", "best model", "sparse/1/images.bin"] {
        let scene = Scene::open(folder.join(model), &as_is()).unwrap();
        assert_eq!(
            (scene.frames.len(), scene.root),
            (3, folder.path().to_owned()),
            "{model}"
        );
        assert!(scene.notes.is_empty(), "{:?}", scene.notes);
        let read: Vec<_> = scene.models.iter().filter(|m| m.is_read).collect();
        assert_eq!(read.len(), 1, "{read:?}");
    }
}

#[test]
fn a_model_as_text_of_instant_ngp_and_other_folders_of_images_are_found() {
    for (model, images) in [
        ("colmap_text", "images"),
        ("sparse/0", "rgb"),
        ("sparse", "input"),
    ] {
        let folder = Folder::new();
        Model::small().write_at(&folder, model);
        std::fs::rename(folder.join("images"), folder.join("tmp")).unwrap();
        std::fs::rename(folder.join("tmp"), folder.join(images)).unwrap();
        // A folder without the model's images is not used.
        folder.write("image/other.png", "");
        let scene = folder.open(&as_is()).unwrap();
        assert_eq!(scene.frames.len(), 3);
        assert!(scene.frames[0].image.starts_with(folder.join(images)));
    }
}

#[test]
fn smaller_images_alone_are_read() {
    let folder = Folder::new();
    Model::small().write(&folder);
    std::fs::remove_dir_all(folder.join("images")).unwrap();
    for name in ["a", "b", "sub/c"] {
        folder.picture(&format!("images_8/{name}.png"), 2, 2);
        folder.picture(&format!("images_2/{name}.png"), 4, 3);
    }
    let scene = folder.open(&as_is()).unwrap();
    assert_eq!((scene.frames.len(), scene.downscale_folder), (3, 2));
    assert_eq!((scene.cameras[0].width, scene.cameras[0].fx), (4, 4.5));
}

/// A model of three images, and a `transforms.json` that names these.
fn beside_a_model(names: &[&str]) -> Folder {
    let folder = Folder::new();
    Model::small().write(&folder);
    let frames: Vec<_> = names.iter().map(|name| frame(name, 1.0)).collect();
    folder.json("transforms.json", &json!({"fl_x": 7, "frames": frames}));
    folder
}

#[test]
fn a_transforms_file_hides_no_model_that_has_more_images() {
    let cases: [(&[&str], SceneFormat); 4] = [
        (
            &["images/a.png", "images/b.png", "images/sub/c.png"],
            SceneFormat::Nerfstudio,
        ),
        (
            &["gone/0.png", "gone/1.png", "gone/2.png", "gone/3.png"],
            SceneFormat::Colmap,
        ),
        (&["images/a.png", "images/b.png"], SceneFormat::Colmap),
        (&[], SceneFormat::Colmap),
    ];
    for (names, expected) in cases {
        let folder = beside_a_model(names);
        let scene = folder.open(&SceneOptions::default()).unwrap();
        assert_eq!(
            (scene.format, scene.frames.len()),
            (expected, 3),
            "{names:?}"
        );
        let notes = scene.notes.join("\n");
        let note = match expected {
            SceneFormat::Colmap => "the COLMAP model is used. transforms.json",
            _ => "There is also a COLMAP model",
        };
        assert!(notes.contains(note), "{notes}");
    }
    let options = SceneOptions {
        format: Some(SceneFormat::Nerfstudio),
        ..as_is()
    };
    let folder = beside_a_model(&["images/a.png"]);
    assert_eq!(folder.open(&options).unwrap().frames.len(), 1);
    // A broken model does not change the result of a file that is used.
    folder.write("sparse/0/images.bin", "");
    assert_eq!(folder.open(&as_is()).unwrap().frames.len(), 1);
    // If no description can be read, the error is that of the first.
    folder.write("transforms.json", "{");
    assert!(folder.refused().contains("transforms.json"));
}

#[test]
fn files_of_splits_win_over_one_file_of_the_same_images() {
    let folder = Folder::new();
    for i in 0..4 {
        folder.picture(&format!("images/{i}.png"), 8, 6);
    }
    let frames = |numbers: &[u8]| {
        let frames: Vec<_> = (numbers.iter())
            .map(|i| frame(&format!("images/{i}.png"), f64::from(*i)))
            .collect();
        json!({"fl_x": 7, "frames": frames})
    };
    folder.json("transforms_train.json", &frames(&[0, 1]));
    folder.json("transforms_test.json", &frames(&[2, 3]));
    folder.json("transforms.json", &frames(&[0, 1, 2, 3]));
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert_eq!(scene.format, SceneFormat::Blender);
    assert_eq!(
        (
            scene.frames_of(SceneSplit::Train),
            scene.frames_of(SceneSplit::Test)
        ),
        (vec![0, 1], vec![2, 3])
    );
    assert!(
        scene.notes.join("\n").contains("names the same images"),
        "{:?}",
        scene.notes
    );
    // Other images: the new file has more.
    folder.json("transforms_test.json", &frames(&[2]));
    let scene = folder.open(&SceneOptions::default()).unwrap();
    assert_eq!(scene.format, SceneFormat::Nerfstudio);
}
