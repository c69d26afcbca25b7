//! Scene layouts that are recognised but not supported, and the programs that convert them.
//!
//! Runs in the consumer. Checks file names, and the first line of tables and XML files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::data::index::IMAGE_EXTENSIONS;
use crate::sys::regular_file;

/// Hint for layouts that no program converts.
const BY_IMAGES: &str =
    "`ns-process-data images --data IMAGES --output-dir OUT` computes the cameras again";

/// Files and folders that together identify a layout, its name, and the hint how to convert it.
const LAYOUTS: [(&[&str], &str, &str); 20] = [
    (&["cameras_sphere.npz"], "IDR", BY_IMAGES),
    (&["cameras.npz"], "IDR", BY_IMAGES),
    (&["cameras_large.npz"], "IDR", BY_IMAGES),
    (
        &["reconstruction.json"],
        "OpenSfM",
        "`opensfm export_colmap DIR` writes a COLMAP model",
    ),
    (
        &["opensfm/reconstruction.json"],
        "OpenDroneMap",
        "`ns-process-data odm --data DIR --output-dir OUT` writes transforms.json",
    ),
    (&["sfm_data.json"], "OpenMVG", OPEN_MVG),
    (&["matches/sfm_data.json"], "OpenMVG", OPEN_MVG),
    (&["reconstruction/sfm_data.json"], "OpenMVG", OPEN_MVG),
    (&["cameras.sfm"], "Meshroom", BY_IMAGES),
    (&["bundle.out"], "Bundler", BY_IMAGES),
    (&["bundle/bundle.out"], "Bundler", BY_IMAGES),
    (&["keyframes/corrected_cameras"], "Polycam", POLYCAM),
    (&["keyframes/cameras"], "Polycam", POLYCAM),
    (&["metadata.json", "rgbd"], "Record3D", RECORD3D),
    (&["metadata.json", "EXR_RGBD"], "Record3D", RECORD3D),
    (&["pose", "intrinsic"], "ScanNet", BY_POSES),
    (&["pose", "intrinsics.txt"], "NSVF", BY_POSES),
    (&["pose", "rgb"], "NSVF", BY_POSES),
    (&["groundtruth.txt", "rgb.txt"], "TUM RGB-D", BY_POSES),
    (&["cams"], "MVSNet (DTU)", BY_IMAGES),
];

const OPEN_MVG: &str =
    "`openMVG_main_openMVG2Colmap -i sfm_data.json -o OUT` writes a COLMAP model";
const POLYCAM: &str =
    "`ns-process-data polycam --data DIR --output-dir OUT` writes transforms.json";
const RECORD3D: &str =
    "`ns-process-data record3d --data DIR --output-dir OUT` writes transforms.json";
const BY_POSES: &str = "write its poses into transforms.json (camera to world, OpenGL's axes)";

/// Folders beside `cams` in MVSNet's scenes.
const MVSNET: [&str; 10] = [
    "images",
    "image",
    "blended_images",
    "rgb",
    "depth",
    "depths",
    "mask",
    "masks",
    "rendered_depth_maps",
    "normals",
];

/// Folders that Record3D writes beside its image folder.
const RECORD3D_FOLDERS: [&str; 3] = ["depth", "conf", "confidence"];

/// A program's export: extension of the file, its start, texts in its first lines, the program, the
/// hint.
type Export = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
);

/// Exports. A single file identifies the layout.
const EXPORTS: [Export; 3] = [
    (
        "xml",
        "",
        &["<document", "<chunk "],
        "Metashape",
        "`ns-process-data metashape --data IMAGES --xml FILE --output-dir OUT` writes \
         transforms.json",
    ),
    (
        "csv",
        "#name",
        &["heading,pitch,roll"],
        "RealityCapture",
        "`ns-process-data realitycapture --data IMAGES --csv FILE --output-dir OUT` writes \
         transforms.json",
    ),
    ("out", "# Bundle file", &[], "Bundler", BY_IMAGES),
];

/// For a folder with cameras in an unsupported format: the format, and how to convert it. `None`
/// for any other folder.
pub(super) fn conversion_hint(root: &Path) -> Option<String> {
    let known = LAYOUTS.iter().find(|(files, ..)| {
        let is_there = |name: &&str| root.join(name).exists();
        // Classes of a data set may have the same names.
        let is_scene = || match **files {
            ["cams"] => holds(&root.join("cams"), "_cam.txt") && !has_class(root, files, &MVSNET),
            ["pose", ..] => holds(&root.join("pose"), ".txt"),
            ["metadata.json", _] => !has_class(root, files, &RECORD3D_FOLDERS),
            _ => true,
        };
        files.iter().all(is_there) && is_scene()
    });
    let (name, file, how) = match known {
        Some((files, name, how)) => (*name, files.join(" and "), *how),
        None => export(root)?,
    };
    Some(format!(
        "a scene of {name} ({file}), which is not supported: {how}. `index --samples` counts its \
         images as samples of a data set"
    ))
}

fn holds(folder: &Path, suffix: &str) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
}

/// Whether there is a folder with images that the layout does not have.
fn has_class(root: &Path, files: &[&str], beside: &[&str]) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut others = entries.filter(|entry| {
        let name = entry.file_name();
        let is_of_layout = |known: &&str| name == **known;
        !files.iter().any(is_of_layout) && !beside.iter().any(is_of_layout)
    });
    others.any(|entry| {
        let mut inside = std::fs::read_dir(entry.path())
            .into_iter()
            .flatten()
            .flatten();
        inside.any(|file| is_picture(&file.path()))
    })
}

fn is_picture(file: &Path) -> bool {
    let extension = file.extension().unwrap_or_default();
    IMAGE_EXTENSIONS
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// Finds an export of a program: its name, the file, and the hint.
fn export(root: &Path) -> Option<(&'static str, String, &'static str)> {
    let entries = std::fs::read_dir(root).ok()?.flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.iter().find_map(|file| {
        let extension = file.extension()?.to_str()?;
        let mut exports = EXPORTS
            .iter()
            .filter(|(expected, ..)| extension == *expected);
        let head = exports.clone().next().and_then(|_| head(file))?;
        let head = head.trim_start_matches('\u{feff}');
        let (.., name, how) = exports.find(|(_, begin, has, ..)| {
            head.starts_with(begin) && has.iter().all(|text| head.contains(text))
        })?;
        Some((
            *name,
            file.file_name()?.to_string_lossy().into_owned(),
            *how,
        ))
    })
}

fn head(file: &Path) -> Option<String> {
    let (file, _): (File, u64) = regular_file::open(file).ok()?;
    let mut head = Vec::new();
    file.take(1024).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_named_with_what_converts_it() {
        for (file, text, name, how) in [
            ("cameras_sphere.npz", "", "IDR", "ns-process-data images"),
            ("reconstruction.json", "[]", "OpenSfM", "export_colmap"),
            ("sfm_data.json", "{}", "OpenMVG", "openMVG2Colmap"),
            ("out/bundle.out", "", "", ""),
            ("bundle.out", "", "Bundler", "ns-process-data images"),
            (
                "model.out",
                "# Bundle file v0.3\n",
                "Bundler",
                "ns-process-data",
            ),
            (
                "a.xml",
                "<?xml?>\n<document version=\"2\">\n<chunk label=",
                "Metashape",
                "--xml",
            ),
            ("a.xml", "<annotation>", "", ""),
            (
                "a.csv",
                "#name,x,y,alt,heading,pitch,roll,f\n",
                "RealityCapture",
                "--csv",
            ),
            ("a.csv", "path,label\n", "", ""),
            ("keyframes/cameras/1.json", "{}", "Polycam", "polycam"),
            ("cams/00000000_cam.txt", "", "MVSNet", "ns-process-data"),
            ("cams/cat.png", "", "", ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            let message = conversion_hint(folder.path());
            assert_eq!(message.is_none(), name.is_empty(), "{file}: {message:?}");
            let message = message.unwrap_or_default();
            assert!(
                message.contains(name) && message.contains(how),
                "{file}: {message}"
            );
        }
    }

    #[test]
    fn folders_of_classes_are_no_scene() {
        let cases: [(&[(&str, &str)], &str); 7] = [
            (
                &[
                    ("cat/0.png", ""),
                    ("a.csv", "file_name,lat,heading,pitch,roll\n"),
                ],
                "",
            ),
            (
                &[("a.csv", "\u{feff}#name,x,y,alt,heading,pitch,roll\n")],
                "RealityCapture",
            ),
            (&[("cat/0.png", ""), ("notes.xml", "<notes><chunk a=")], ""),
            (
                &[
                    ("rgbd/0.png", ""),
                    ("rgb/0.png", ""),
                    ("metadata.json", "{}"),
                ],
                "",
            ),
            (
                &[
                    ("rgbd/0.jpg", ""),
                    ("depth/0.png", ""),
                    ("metadata.json", "{}"),
                ],
                "Record3D",
            ),
            (&[("cams/a_cam.txt", ""), ("tv/0.png", "")], ""),
            (&[("cams/0_cam.txt", ""), ("images/0.png", "")], "MVSNet"),
        ];
        for (files, name) in cases {
            let folder = tempfile::tempdir().unwrap();
            for (file, text) in files {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let message = conversion_hint(folder.path());
            assert_eq!(message.is_none(), name.is_empty(), "{files:?}: {message:?}");
            assert!(message.unwrap_or_default().contains(name), "{files:?}");
        }
    }
}
