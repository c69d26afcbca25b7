//! Folders of label files.

use std::path::{Path, PathBuf};

use super::super::options::AnnotationOptions;
use super::super::report::{AnnotationFault, AnnotationReport};
use super::*;
use crate::data::index::FolderOptions;

/// A folder with images and labels: `images/train/N.jpg` and `labels/train/N.txt`.
struct YoloFolder(tempfile::TempDir);

impl YoloFolder {
    fn new(labels: &[Option<&str>]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (n, text) in labels.iter().enumerate() {
            folder.write(&format!("images/train/{n}.jpg"), "");
            if let Some(text) = text {
                folder.write(&format!("labels/train/{n}.txt"), text);
            }
        }
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn index(&self) -> Index {
        let images = self.path().join("images/train");
        Index::folder(&images, &FolderOptions::default()).unwrap().0
    }

    fn yaml(&self, text: &str, options: &AnnotationOptions) -> Result<AnnotatedSet> {
        let file = self.write("data.yaml", text);
        read_yaml(&file, "train", options)
    }
}

fn labels(table: &ObjectTable) -> Vec<Vec<u32>> {
    (0..table.samples())
        .map(|id| table.sample(id).labels.to_vec())
        .collect()
}

fn faults(report: &AnnotationReport) -> Vec<(AnnotationFault, u64)> {
    report.wrong.iter().map(|of| (of.fault, of.count)).collect()
}

#[test]
fn the_images_of_a_split_and_their_labels() {
    let folder = YoloFolder::new(&[
        Some("1 .5 .5 .5 .5\n0 .25 .25 .5 .5\n"),
        None,
        Some(""),
        Some("0 .5 .5 .5 .5\n7 .5 .5 .5 .5\n"),
    ]);
    let options = AnnotationOptions::default();
    let list: String = [0, 3, 1]
        .iter()
        .map(|n| format!("./images/train/{n}.jpg\n"))
        .collect();
    folder.write("list.txt", &list);
    let names = "names: [cat, dog]\n";
    for (yaml, want) in [
        (
            "train: images/train\nnames: [cat, dog]\n",
            vec![vec![1, 0], vec![], vec![], vec![0]],
        ),
        (
            "path: images\ntrain: [train]\nnames:\n  1: dog\n  0: cat\n",
            vec![vec![1, 0], vec![], vec![], vec![0]],
        ),
        (
            "path: nowhere\ntrain: ../images/train\nnames: {0: cat, 1: dog}\n",
            vec![vec![1, 0], vec![], vec![], vec![0]],
        ),
        (
            "train: list.txt\nnames: [cat, dog]\n",
            vec![vec![1, 0], vec![0], vec![]],
        ),
    ] {
        let read = folder.yaml(yaml, &options).unwrap();
        assert_eq!(labels(&read.table), want, "{yaml}");
        let got = faults(&read.report);
        assert_eq!(got, [(AnnotationFault::UnknownCategory, 1)], "{yaml}");
        assert_eq!(read.report.images_without_entry, 1);
        let first = &read.report.wrong[0].first[0];
        assert_eq!(first, "train/3.txt: line 2");
        let form = read.table.form();
        assert_eq!((form.boxes, form.shares), (BoxForm::Cxcywh, true));
        let names: Vec<&str> = form.categories.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["cat", "dog"]);
    }
    let strict = AnnotationOptions {
        strict: true,
        ..AnnotationOptions::default()
    };
    let e = folder
        .yaml(&format!("train: images\n{names}"), &strict)
        .unwrap_err();
    assert!(
        e.to_string()
            .contains("3.txt: line 2: of an unknown category"),
        "{e}"
    );
}

#[test]
fn a_pattern_needs_no_names() {
    let folder = YoloFolder::new(&[Some("2 .5 .5 .5 .5\n"), Some("0 .1 .1 .2 .1 .2 .2\n")]);
    let pattern = PathPattern::parse("../../labels/train/{stem}.txt").unwrap();
    let options = AnnotationOptions::default();
    let form = YoloForm::default();
    let (table, report) = read_yolo(&folder.index(), &pattern, &form, &options).unwrap();
    assert_eq!(labels(&table), [[2], [0]]);
    let names: Vec<&str> = report.categories.iter().map(|of| &*of.name).collect();
    assert_eq!(names, ["0", "1", "2"]);
    let (table, _) = {
        let yaml = folder.write("data.yaml", "names: [a, b, c]");
        read_yaml_for(&yaml, &folder.index(), &options).unwrap()
    };
    assert_eq!(labels(&table), [[2], [0]]);
    let absent = PathPattern::parse("../../label/{stem}.txt").unwrap();
    let e = read_yolo(&folder.index(), &absent, &form, &options).unwrap_err();
    assert!(e.to_string().contains("the first one would be"), "{e}");
}

#[test]
fn few_label_files_are_enough_and_none_is_an_error() {
    // Images around the places that a probe of every few images would look at.
    let folder = YoloFolder::new(&[None; 300]);
    let pattern = PathPattern::parse("../../labels/train/{stem}.txt").unwrap();
    let (options, form) = (AnnotationOptions::default(), YoloForm::default());
    let yaml = folder.write("data.yaml", "train: images/train\nnames: [a, b, c]");
    let read = || read_yolo(&folder.index(), &pattern, &form, &options);
    // No folder, a folder of other files, and a file in its place.
    for step in 0..3 {
        match step {
            0 => {}
            1 => {
                folder.write("labels/train/x.txt", "0 .5 .5 .5 .5");
            }
            _ => {
                std::fs::remove_dir_all(folder.path().join("labels")).unwrap();
                folder.write("labels/train", "");
            }
        }
        let e = read().unwrap_err().to_string();
        let first = folder.path().join("labels/train/0.txt");
        for part in [
            "none of the 300 images",
            "'../../labels/train/{stem}.txt'",
            first.to_str().unwrap(),
        ] {
            assert!(e.contains(part), "{e}");
        }
        let e = read_yaml(&yaml, "train", &options).unwrap_err().to_string();
        for part in ["images/NAME -> labels/NAME.txt", first.to_str().unwrap()] {
            assert!(e.contains(part), "{e}");
        }
    }
    std::fs::remove_file(folder.path().join("labels/train")).unwrap();
    folder.write("labels/train/7.txt", "2 .5 .5 .5 .5\n");
    folder.write("labels/train/8.txt", "");
    let (table, report) = read().unwrap();
    let index = folder.index();
    let with: Vec<PathBuf> = (0..300)
        .filter(|id| table.count(*id) > 0)
        .map(|id| index.relative_path(id).to_owned())
        .collect();
    assert_eq!(with, [Path::new("7.jpg")]);
    assert_eq!(
        (report.images_without_entry, report.images_without_objects),
        (298, 299)
    );
    let read = read_yaml(&yaml, "train", &options).unwrap();
    assert_eq!(
        (read.table.objects(), read.report.images_without_entry),
        (1, 298)
    );
}

#[test]
fn samples_without_paths_have_no_label_files() {
    let folder = YoloFolder::new(&[Some("0 .5 .5 .5 .5")]);
    let yaml = folder.write("data.yaml", "train: images/train\nnames: [a]");
    let mut items = crate::data::index::MemoryItems::new().unwrap();
    items
        .push(b"image", crate::data::index::ItemLabel::None)
        .unwrap();
    let index = Index::memory_items(items).unwrap();
    let e = read_yaml_for(&yaml, &index, &AnnotationOptions::default());
    let e = e.unwrap_err().to_string();
    assert!(e.contains("these images are not files of their own"), "{e}");
}

#[test]
fn keypoints_and_their_swap_come_from_the_yaml() {
    let folder = YoloFolder::new(&[Some("0 .5 .5 .5 .5 .25 .5 2 .75 .5 1\n")]);
    let options = AnnotationOptions::default();
    let yaml = |more: &str| format!("train: images/train\nnames: [p]\nkpt_shape: [2, 3]\n{more}");
    let read = folder.yaml(&yaml("flip_idx: [1, 0]\n"), &options).unwrap();
    assert_eq!(read.table.form().keypoint_swap, [1, 0]);
    assert_eq!(
        read.table.sample(0).keypoints,
        [[0.25, 0.5, 2.0], [0.75, 0.5, 1.0]]
    );
    let read = folder
        .yaml(&yaml("kpt_names: {0: [left_eye, right_eye]}\n"), &options)
        .unwrap();
    assert_eq!(read.table.form().keypoint_swap, [1, 0]);
    let without = AnnotationOptions {
        keypoints: false,
        ..AnnotationOptions::default()
    };
    let read = folder.yaml(&yaml(""), &without).unwrap();
    assert_eq!((read.table.form().keypoints, read.table.objects()), (0, 1));
    for (more, what) in [
        ("flip_idx: [0]\n", "'flip_idx' must name"),
        ("flip_idx: [1, 1]\n", "'flip_idx' must name"),
        ("flip_idx: [1, 9]\n", "'flip_idx' must name"),
        ("kpt_shape: [2, 3]\n", "twice"),
    ] {
        let e = folder.yaml(&yaml(more), &options).unwrap_err().to_string();
        assert!(e.contains(what) && e.contains("data.yaml"), "{e}");
    }
}

#[test]
fn rotated_boxes_are_an_option() {
    let folder = YoloFolder::new(&[Some("0 .25 .25 .75 .25 .75 1 .25 1\n")]);
    let mut options = AnnotationOptions::default();
    let yaml = "train: images/train\nnames: [a]\n";
    let read = folder.yaml(yaml, &options).unwrap();
    assert_eq!(
        (read.table.form().shapes, read.table.form().rotated),
        (true, None)
    );
    options.rotated = true;
    let read = folder.yaml(yaml, &options).unwrap();
    assert_eq!(read.table.form().rotated, Some(RotatedForm::Corners));
    assert!(!read.table.form().shapes);
    let corners = [0.25, 0.25, 0.75, 0.25, 0.75, 1.0, 0.25, 1.0];
    assert_eq!(read.table.sample(0).rotated, corners);
}

#[test]
fn wrong_yamls_are_named() {
    let folder = YoloFolder::new(&[Some("0 120 200 50 40\n")]);
    let options = AnnotationOptions::default();
    for (yaml, what) in [
        ("train: images", "has no 'names'"),
        ("train: images\nnames: cat", "'names' is no list of names"),
        (
            "train: images\nnames: {0: a, 2: b}",
            "'names' is no list of names",
        ),
        ("names: [a]", "has no 'train'"),
        ("train: [[a]]\nnames: [a]", "an entry that is no path"),
        (
            "train: image\nnames: [a]",
            "image does not exist: correct 'path'",
        ),
        ("train: [\nnames: [a]", "not YAML"),
        (
            "train: images\nnames: [a]\nkpt_shape: [0, 3]",
            "'kpt_shape' must be",
        ),
        (
            "train: images\nnames: [a]\nkpt_shape: [2, 4]",
            "'kpt_shape' must be",
        ),
        (
            "train: images\nnames: [a]",
            "none of the annotations can be used: 1 with a box outside of the picture",
        ),
    ] {
        let e = folder.yaml(yaml, &options).unwrap_err().to_string();
        assert!(e.contains(what), "{yaml}: {e}");
    }
}

#[test]
fn the_last_folder_of_images_is_that_of_labels() {
    for (image, want) in [
        ("/a/images/images/b/1.x.jpg", "/a/images/labels/b/1.x.txt"),
        ("/a/img/1.jpg", "/a/img/1.txt"),
        ("/a/images/1", "/a/labels/1.txt"),
    ] {
        assert_eq!(label_path(Path::new(image)), Path::new(want));
    }
}
