//! Broken files exist, have the listed defects, and disturb no other file.

use std::collections::{BTreeMap, BTreeSet};

use featherload::{Loader, OnError, Recipe, Source};

use super::*;
use crate::demo::tests::{args, digest, files};
use crate::demo::{DemoArgs, DemoKind, write};

fn broken_args(dir: &Path) -> DemoArgs {
    DemoArgs {
        broken: true,
        ..args(dir)
    }
}

fn listed() -> Vec<BrokenFile> {
    super::files(4).into_iter().map(|b| b.listed).collect()
}

#[test]
fn the_pictures_are_the_same_with_and_without() {
    for kind in [DemoKind::Photos, DemoKind::Mixed] {
        let (plain, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let with = |args: DemoArgs| DemoArgs { kind, ..args };
        write(&with(args(plain.path()))).unwrap();
        let summary = write(&with(broken_args(broken.path()))).unwrap();
        assert_eq!(summary.broken, listed().len());
        assert!(summary.to_string().ends_with("20 broken files beside them"));
        for file in listed() {
            let path = broken.path().join(&file.path);
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                fs::remove_dir(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        let pictures = |dir: &Path| {
            let mut files = files(dir);
            files.retain(|name, _| name.starts_with("class_"));
            files
        };
        assert_eq!(pictures(plain.path()), pictures(broken.path()));
    }
}

#[test]
fn the_manifest_lists_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    write(&broken_args(dir.path())).unwrap();
    let text = fs::read(dir.path().join(".featherload-demo.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let listed = manifest["broken"].as_array().unwrap();
    assert_eq!(listed.len(), 20);
    let paths: BTreeSet<&str> = listed
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths.len(), 20);
    let mut found = BTreeSet::new();
    for class in fs::read_dir(dir.path()).unwrap() {
        let class = class.unwrap();
        if !class.file_type().unwrap().is_dir() {
            continue;
        }
        for entry in fs::read_dir(class.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.contains("broken") {
                found.insert(format!("{}/{name}", class.file_name().display()));
            }
        }
    }
    assert!(found.iter().eq(paths.iter()), "{found:?}");
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions();
    assert_eq!(mode("class_03/broken_no_permission.jpg").mode() & 0o777, 0);
}

#[test]
fn each_fails_as_listed() {
    let dir = tempfile::tempdir().unwrap();
    write(&broken_args(dir.path())).unwrap();
    let mut loader = Loader::builder(Source::detect(dir.path()).unwrap())
        .recipe(Recipe::eval224())
        .num_workers(0)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let mut faults = BTreeMap::new();
    for batch in loader.epoch() {
        for fault in batch.unwrap().faults() {
            let path = fault.path.strip_prefix(dir.path()).unwrap();
            let path = path.to_str().unwrap().to_owned();
            faults.insert(path, fault.fault.kind.name().to_owned());
        }
    }
    let mut expected = 0;
    for file in listed() {
        expected += 1;
        let fault = faults
            .get(&file.path)
            .unwrap_or_else(|| panic!("{} is loaded", file.path));
        assert!(file.faults.contains(fault), "{}: {fault}", file.path);
    }
    assert_eq!(faults.len(), expected, "{faults:?}");
}

#[test]
fn huge_headers_are_right_in_themselves() {
    let png = Damage::HugePng.bytes(0).unwrap();
    let reader = png::Decoder::new(io::Cursor::new(png)).read_info().unwrap();
    assert_eq!(
        (reader.info().width, reader.info().height),
        (60_000, 60_000)
    );
    let cut = Damage::CutJpeg(3).bytes(0).unwrap();
    let whole = Damage::HugeJpeg.bytes(0).unwrap();
    assert_eq!(cut.len(), whole.len() * 3 / 10);
}

/// The same bytes on every machine. Raise FORMAT if they change.
#[test]
fn the_bytes_are_pinned() {
    let files = super::files(4)
        .iter()
        .map(|file| (file.listed.path.clone(), file.damage.bytes(7).unwrap()))
        .collect();
    assert_eq!(
        format!("{:#034x}", digest(&files)),
        "0x4ff2cf91cd0aeb58b7d6e8a226c22713"
    );
}

#[test]
fn what_is_there_is_left_and_what_is_missing_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    write(&broken_args(dir.path())).unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in [
        "class_00/broken_fifo.jpg",
        "class_01/broken_dangling_link.jpg",
        "class_01/broken_empty.jpg",
        "class_02/broken_link_to_itself.jpg",
        "class_03/broken_no_permission.jpg",
    ] {
        fs::remove_file(at(name)).unwrap();
    }
    write(&broken_args(dir.path())).unwrap();
    write(&broken_args(dir.path())).unwrap();
    for file in listed() {
        assert!(at(&file.path).symlink_metadata().is_ok(), "{}", file.path);
    }

    let private = at("class_03/broken_no_permission.jpg");
    fs::set_permissions(&private, Permissions::from_mode(0o644)).unwrap();
    write(&broken_args(dir.path())).unwrap();
    assert_eq!(
        fs::metadata(&private).unwrap().permissions().mode() & 0o777,
        0
    );

    let fifo = at("class_00/broken_fifo.jpg");
    fs::remove_file(&fifo).unwrap();
    fs::write(&fifo, "mine").unwrap();
    let e = write(&broken_args(dir.path())).unwrap_err();
    assert!(e.to_string().contains("broken_fifo.jpg"), "{e}");
    assert_eq!(fs::read(&fifo).unwrap(), b"mine");
}

#[test]
fn one_class_holds_them_all() {
    let dir = tempfile::tempdir().unwrap();
    let args = DemoArgs {
        classes: 1,
        ..broken_args(dir.path())
    };
    write(&args).unwrap();
    let count = fs::read_dir(dir.path().join("class_00")).unwrap().count();
    assert_eq!(count, 26);
}
