//! The set as files: reproducible, resumable, and harmless to other files.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;

use clap::Parser;
use twox_hash::XxHash3_128;

use super::files::write_whole;
use super::manifest::MANIFEST;
use super::*;

pub(super) fn args(dir: &Path) -> DemoArgs {
    DemoArgs {
        dir: dir.to_owned(),
        kind: DemoKind::Photos,
        images: 6,
        classes: 4,
        seed: 7,
        broken: false,
        scene: false,
        json: false,
    }
}

/// Every file under a folder, by its relative path.
pub(super) fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                all.insert(name, fs::read(path).unwrap());
            }
        }
    }
    all
}

pub(super) fn digest(files: &BTreeMap<String, Vec<u8>>) -> u128 {
    let mut hasher = XxHash3_128::new();
    for (name, bytes) in files {
        hasher.write(&(name.len() as u64).to_le_bytes());
        hasher.write(name.as_bytes());
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    }
    hasher.finish_128()
}

/// The same bytes on every machine. Raise FORMAT if they change.
#[test]
fn the_bytes_are_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let summary = write(&args(dir.path())).unwrap();
    let files = files(dir.path());
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            MANIFEST,
            "class_00/0000.jpg",
            "class_00/0001.jpg",
            "class_01/0000.jpg",
            "class_01/0001.jpg",
            "class_02/0000.jpg",
            "class_03/0000.jpg",
        ]
    );
    let bytes: usize = files.values().map(Vec::len).sum();
    let manifest = files[MANIFEST].len();
    assert_eq!(summary.bytes, (bytes - manifest) as u64);
    assert_eq!(summary.written, 6);
    assert_eq!(
        format!("{:#034x}", digest(&files)),
        "0xd287e99f1afa5ac5b0585b2f38b927e5"
    );
}

#[test]
fn a_complete_set_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(&args(dir.path())).unwrap();
    let path = dir.path().join("class_01/0001.jpg");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let again = write(&args(dir.path())).unwrap();
    assert_eq!(again.written, 0);
    assert_eq!((again.bytes, again.pixels), (first.bytes, first.pixels));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert!(
        again.to_string().ends_with("all 6 already there"),
        "{again}"
    );
}

#[test]
fn a_set_broken_off_is_completed() {
    let dir = tempfile::tempdir().unwrap();
    write(&args(dir.path())).unwrap();
    let whole = files(dir.path());
    let at = |name: &str| dir.path().join(name);
    fs::remove_file(at("class_00/0001.jpg")).unwrap();
    fs::write(
        at("class_00/.0001.jpg.part"),
        &whole["class_00/0001.jpg"][..99],
    )
    .unwrap();
    fs::write(at("class_02/0000.jpg"), "").unwrap();
    fs::remove_dir_all(at("class_03")).unwrap();
    let summary = write(&args(dir.path())).unwrap();
    assert_eq!(summary.written, 3);
    assert_eq!(files(dir.path()), whole);
    assert!(
        summary
            .to_string()
            .ends_with("3 written now, 3 already there")
    );
}

#[test]
fn a_manifest_left_empty_by_a_kill_is_filled() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(MANIFEST), "").unwrap();
    assert_eq!(write(&args(dir.path())).unwrap().written, 6);
    assert_eq!(write(&args(dir.path())).unwrap().written, 0);
}

#[test]
fn a_set_with_its_manifest_in_sight_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    write(&args(dir.path())).unwrap();
    let whole = files(dir.path());
    let former = dir.path().join("featherload-demo.json");
    fs::rename(dir.path().join(MANIFEST), former).unwrap();
    assert_eq!(write(&args(dir.path())).unwrap().written, 0);
    assert_eq!(files(dir.path()), whole);
}

#[test]
fn a_scan_of_the_set_has_nothing_to_report() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(dir.path());
    (args.kind, args.broken) = (DemoKind::Mixed, true);
    let summary = write(&args).unwrap();
    let source = featherload::Source::detect(dir.path()).unwrap();
    let (index, scan) = source.open().unwrap();
    let scan = scan.unwrap();
    assert_eq!(index.len(), 6 + summary.broken as u64);
    assert_eq!(scan.skipped_total(), 0, "{scan:?}");
}

#[test]
fn anything_else_in_the_folder_is_refused_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes.txt"), "mine").unwrap();
    let e = write(&args(&foreign)).unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("not empty"), "{e}");
    assert_eq!(files(&foreign).len(), 1);

    let other = dir.path().join("other");
    write(&args(&other)).unwrap();
    let before = files(&other);
    for change in [
        |a: &mut DemoArgs| a.images = 7,
        |a: &mut DemoArgs| a.classes = 3,
        |a: &mut DemoArgs| a.seed = 8,
        |a: &mut DemoArgs| a.kind = DemoKind::Mixed,
        |a: &mut DemoArgs| a.broken = true,
    ] {
        let mut changed = args(&other);
        change(&mut changed);
        let e = write(&changed).unwrap_err();
        assert!(e.is_usage() && e.to_string().contains("--seed 7"), "{e}");
    }
    fs::write(other.join(MANIFEST), "{}").unwrap();
    assert!(write(&args(&other)).unwrap_err().is_usage());
    fs::write(other.join(MANIFEST), &before[MANIFEST]).unwrap();
    assert_eq!(files(&other), before);
}

#[test]
fn two_writers_at_once_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(&args(dir.path())).unwrap();
    let held = File::open(dir.path().join(MANIFEST)).unwrap();
    held.lock().unwrap();
    let e = write(&args(dir.path())).unwrap_err();
    assert!(e.to_string().contains("another process"), "{e}");
    drop(held);
    assert_eq!(write(&args(dir.path())).unwrap().written, 0);
}

#[test]
fn seeds_and_classes_give_other_pictures() {
    let jpeg = |seed, i, class| {
        DemoPicture::new(DemoKind::Photos, seed, i, class)
            .encode()
            .unwrap()
    };
    let one = jpeg(7, 3, 3);
    assert_eq!(one, jpeg(7, 3, 3));
    for other in [jpeg(8, 3, 3), jpeg(7, 4, 3), jpeg(7, 3, 2)] {
        assert_ne!(one, other);
    }
}

#[test]
fn paths_that_cannot_be_written_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let e = write(&args(&file.join("under"))).unwrap_err();
    assert!(e.to_string().contains("file/under: Not a directory"), "{e}");

    // A link in the place of an image is neither followed nor replaced.
    let set = dir.path().join("set");
    write(&args(&set)).unwrap();
    let place = set.join("class_01/0000.jpg");
    fs::remove_file(&place).unwrap();
    symlink(&file, &place).unwrap();
    let e = write(&args(&set)).unwrap_err();
    assert!(e.to_string().contains("class_01/0000.jpg"), "{e}");
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn a_full_disk_is_named_and_leaves_no_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0000.jpg");
    let part = dir.path().join(".0000.jpg.part");
    // Writing to this device fails as writing to a full disk does.
    symlink("/dev/full", &part).unwrap();
    let e = write_whole(&path, b"picture").unwrap_err();
    assert!(
        e.to_string().contains(".0000.jpg.part: No space left"),
        "{e}"
    );
    assert_eq!(files(dir.path()).len(), 0);
}

#[test]
fn arguments_are_checked() {
    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        demo: DemoArgs,
    }
    let read = |line: &str| Cli::try_parse_from(line.split(' '));
    let demo = read("demo out").unwrap().demo;
    assert_eq!((demo.images, demo.classes, demo.seed), (256, 8, 0));
    assert!(read("demo out --images 0").is_err());
    assert!(read("demo out --classes 0").is_err());
    assert!(read("demo").is_err());
    assert_eq!((demo.kind, demo.broken), (DemoKind::Photos, false));
    let mixed = read("demo out --kind mixed --broken").unwrap().demo;
    assert_eq!((mixed.kind, mixed.broken), (DemoKind::Mixed, true));
    assert!(read("demo out --kind none").is_err());
    assert!(read("demo --scene out --seed 3").unwrap().demo.scene);
    for other in ["--kind large", "--images 3", "--classes 2", "--broken"] {
        assert!(read(&format!("demo --scene out {other}")).is_err());
    }
    let demo = read("demo out --images 4 --classes 5").unwrap().demo;
    assert!(
        write(&demo)
            .unwrap_err()
            .to_string()
            .contains("--classes 5")
    );
}
