//! Real folder trees: links, odd names, empty folders.

use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::stat::Mode;
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::data::index::folder::*;
use crate::data::index::{Index, Label};

/// Makes the named files, and folders for names that end in a slash.
fn tree(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        make(dir.path(), name.as_bytes());
    }
    dir
}

fn make(root: &Path, name: &[u8]) {
    let path = root.join(OsStr::from_bytes(name));
    if name.ends_with(b"/") {
        fs::create_dir_all(path).unwrap();
    } else {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

fn labelled(dir: &TempDir) -> Result<(Index, ScanReport)> {
    Index::folder(dir.path(), &FolderOptions::default())
}

fn unlabelled(dir: &TempDir) -> Result<(Index, ScanReport)> {
    let options = FolderOptions {
        labels: FolderLabels::None,
        ..FolderOptions::default()
    };
    Index::folder(dir.path(), &options)
}

fn mapped(dir: &TempDir, classes: &[&str]) -> Result<(Index, ScanReport)> {
    let options = FolderOptions {
        classes: Some(ClassList::new(classes).unwrap()),
        ..FolderOptions::default()
    };
    Index::folder(dir.path(), &options)
}

fn paths(index: &Index) -> Vec<String> {
    (0..index.len())
        .map(|id| shown_path(index.relative_path(id)))
        .collect()
}

fn shown_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn labels(index: &Index) -> Vec<i64> {
    (0..index.len())
        .map(|id| match index.label(id) {
            Label::Class(class) => class,
            other => panic!("{other:?} where a class is due"),
        })
        .collect()
}

fn error(result: Result<(Index, ScanReport)>) -> String {
    let e = result.unwrap_err();
    assert!(e.is_usage(), "{e}");
    e.to_string()
}

fn fifo(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap();
}

#[test]
fn class_folders_give_classes_by_name_and_samples_by_path() {
    let dir = tree(&[
        "cat/2.jpg",
        "cat/10.jpg",
        "ant/z/1.PNG",
        "ant/b.webp",
        "Zoo/x.Tiff",
    ]);
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        [
            "Zoo/x.Tiff",
            "ant/b.webp",
            "ant/z/1.PNG",
            "cat/10.jpg",
            "cat/2.jpg"
        ]
    );
    assert_eq!(labels(&index), [0, 1, 1, 2, 2]);
    assert_eq!(
        index.classes(),
        &ClassList::new(["Zoo", "ant", "cat"]).unwrap()
    );
    assert_eq!(report.samples, 5);
    assert_eq!(report.skipped_total(), 0);
    assert_eq!(index.root(), dir.path());
    assert_eq!(index.label_width(), 1);
}

#[test]
fn class_numbers_follow_names_where_paths_sort_otherwise() {
    let dir = tree(&["a/1.jpg", "a-b/2.jpg", "a.b/3.jpg", "a0/4.jpg"]);
    let (index, _) = labelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        ["a-b/2.jpg", "a.b/3.jpg", "a/1.jpg", "a0/4.jpg"]
    );
    assert_eq!(labels(&index), [1, 2, 0, 3]);
    for (name, number) in [("a", 0), ("a-b", 1), ("a.b", 2), ("a0", 3)] {
        assert_eq!(index.classes().get(name), Some(number));
    }
}

#[test]
fn a_flat_folder_is_class_minus_one() {
    let dir = tree(&["b.jpg", "a.JPG", "notes.txt"]);
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(paths(&index), ["a.JPG", "b.jpg"]);
    assert_eq!(labels(&index), [-1, -1]);
    assert!(index.classes().is_empty());
    assert_eq!(report.skipped[&SkipReason::NotAnImageName].count, 1);
}

#[test]
fn without_labels_every_image_is_taken_in_the_order_of_its_path() {
    let dir = tree(&["b/1.jpg", "b.jpg", "b0.jpg", "a.png", "b-c/d/2.gif", "c/"]);
    let (index, report) = unlabelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        ["a.png", "b-c/d/2.gif", "b.jpg", "b/1.jpg", "b0.jpg"]
    );
    assert_eq!(index.label(0), Label::None);
    assert_eq!(index.label_width(), 0);
    assert!(index.classes().is_empty() && report.empty_classes.is_empty());
}

#[test]
fn images_beside_class_folders_are_an_error_with_a_way_out() {
    let dir = tree(&["cat/1.jpg", "z.jpg", "stray.jpg"]);
    let e = error(labelled(&dir));
    assert!(e.contains("\"stray.jpg\" beside \"cat\""), "{e}");
    assert!(e.contains("`labels: none`"), "{e}");
    assert_eq!(unlabelled(&dir).unwrap().0.len(), 3);
}

#[test]
fn an_empty_class_keeps_its_number_and_is_reported() {
    let dir = tree(&["a/1.jpg", "b/", "c/readme", "d/4.jpg"]);
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(labels(&index), [0, 3]);
    assert_eq!(index.classes().len(), 4);
    assert_eq!(report.empty_classes, ["b", "c"]);
}

#[test]
fn a_class_table_gives_the_numbers() {
    let dir = tree(&["a/1.jpg", "b/2.jpg"]);
    let (index, _) = mapped(&dir, &["b", "nobody", "a"]).unwrap();
    assert_eq!(paths(&index), ["a/1.jpg", "b/2.jpg"]);
    assert_eq!(labels(&index), [2, 0]);
    assert_eq!(index.classes().len(), 3);
    let e = error(mapped(&dir, &["b", "c"]));
    assert!(e.contains("/a: this class folder is not in"), "{e}");
}

#[test]
fn a_class_table_without_a_use_is_an_error() {
    let dir = tree(&["1.jpg"]);
    let e = error(mapped(&dir, &["a"]));
    assert!(e.contains("no class folders"), "{e}");
    let options = FolderOptions {
        labels: FolderLabels::None,
        classes: Some(ClassList::new(["a"]).unwrap()),
    };
    let e = error(Index::folder(dir.path(), &options));
    assert!(e.contains("`labels: none`"), "{e}");
}

#[test]
fn what_is_no_sample_is_counted_with_examples() {
    let dir = tree(&[
        "a/1.jpg",
        "a/.DS_Store",
        "a/b/5.txt",
        "a/4.txt",
        "a/1.txt",
        "a/2.txt",
        ".git/x.jpg",
        "a/.thumbs/y.jpg",
        "Thumbs.db",
        "a/jpg",
        // Files of featherload itself are skipped.
        ".featherload-demo.json",
        "a/.featherload-cache/x.jpg",
    ]);
    symlink("nowhere", dir.path().join("a/gone")).unwrap();
    symlink("1.txt", dir.path().join("a/link.txt")).unwrap();
    fifo(&dir.path().join("a/pipe"));
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(paths(&index), ["a/1.jpg"]);
    assert_eq!(index.classes().len(), 1);
    let count = |reason| report.skipped[&reason].count;
    assert_eq!(count(SkipReason::NotAnImageName), 8);
    assert_eq!(count(SkipReason::Hidden), 1);
    assert_eq!(count(SkipReason::HiddenFolder), 2);
    assert_eq!(count(SkipReason::DanglingLink), 1);
    assert_eq!(report.skipped_total(), 12);
    let examples = &report.skipped[&SkipReason::NotAnImageName].examples;
    let first: Vec<_> = ["Thumbs.db", "a/1.txt", "a/2.txt"]
        .map(PathBuf::from)
        .into();
    assert_eq!(examples, &first);
}

#[test]
fn whatever_has_an_image_name_and_is_no_folder_is_a_sample() {
    let dir = tree(&["a/1.jpg", "other/5.jpg"]);
    fifo(&dir.path().join("a/pipe.jpg"));
    symlink("nowhere", dir.path().join("a/gone.jpg")).unwrap();
    symlink("1.jpg", dir.path().join("a/link.png")).unwrap();
    symlink("loop.jpg", dir.path().join("a/loop.jpg")).unwrap();
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        [
            "a/1.jpg",
            "a/gone.jpg",
            "a/link.png",
            "a/loop.jpg",
            "a/pipe.jpg",
            "other/5.jpg"
        ]
    );
    assert_eq!(report.skipped_total(), 0);
}

/// torchvision's `ImageFolder(root).samples` is the same list, in the order of its classes.
#[test]
fn a_folder_named_like_a_picture_is_a_folder() {
    let store = tree(&["far.png"]);
    let dir = tree(&[
        "a/1.png",
        "a/folder.png/inner.png",
        "a/folder.png/deep.JPG/2.jpg",
        "b.jpg/3.jpg",
        "b.jpg/empty.gif/",
    ]);
    symlink(store.path(), dir.path().join("a/linked.jpeg")).unwrap();
    symlink("..", dir.path().join("a/up.bmp")).unwrap();
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        [
            "a/1.png",
            "a/folder.png/deep.JPG/2.jpg",
            "a/folder.png/inner.png",
            "a/linked.jpeg/far.png",
            "b.jpg/3.jpg"
        ]
    );
    assert_eq!(labels(&index), [0, 0, 0, 0, 1]);
    assert_eq!(index.classes(), &ClassList::new(["a", "b.jpg"]).unwrap());
    assert_eq!(report.skipped[&SkipReason::LinkLoop].count, 1);
    assert_eq!(report.skipped_total(), 1);
    assert_eq!(unlabelled(&dir).unwrap().0.len(), 5);
    // A sandbox knows links that lead out of the data set.
    let far = fs::canonicalize(store.path()).unwrap();
    assert!(
        index.sandbox_roots().contains(&far),
        "{:?}",
        index.sandbox_roots()
    );
}

#[test]
fn hidden_names_and_folders_of_systems_are_no_samples_and_no_classes() {
    let dir = tree(&[
        "a/1.jpg",
        "a/._1.jpg",
        "a/.2.jpg",
        "a/.DS_Store",
        "a/.ipynb_checkpoints/1-checkpoint.jpg",
        "a/.hidden.png/1.jpg",
        "a/@eaDir/1.jpg/SYNOPHOTO_THUMB_XL.jpg",
        "b/._only.jpg",
        "__MACOSX/a/._1.jpg",
        "__MACOSX/a/2.jpg",
        "lost+found/",
        "$RECYCLE.BIN/3.jpg",
        ".Trash-1000/4.jpg",
        "a/Thumbs.db",
        "a/desktop.ini",
    ]);
    symlink("1.jpg", dir.path().join("a/.link.jpg")).unwrap();
    symlink("nowhere", dir.path().join("a/.gone")).unwrap();
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(
        (paths(&index), labels(&index)),
        (vec!["a/1.jpg".into()], vec![0])
    );
    assert_eq!(index.classes(), &ClassList::new(["a", "b"]).unwrap());
    assert_eq!(report.empty_classes, ["b"]);
    let left_out = |reason| {
        let skipped = &report.skipped[&reason];
        let examples = skipped.examples.iter().map(|path| shown_path(path));
        (skipped.count, examples.collect::<Vec<_>>())
    };
    let strings = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        left_out(SkipReason::Hidden),
        (6, strings(&["a/.2.jpg", "a/.DS_Store", "a/._1.jpg"]))
    );
    assert_eq!(
        left_out(SkipReason::HiddenFolder),
        (
            3,
            strings(&[".Trash-1000", "a/.hidden.png", "a/.ipynb_checkpoints"])
        )
    );
    assert_eq!(
        left_out(SkipReason::SystemFolder),
        (4, strings(&["$RECYCLE.BIN", "__MACOSX", "a/@eaDir"]))
    );
    assert_eq!(report.skipped_total(), 15);
    assert_eq!(unlabelled(&dir).unwrap().0.len(), 1);
    // They do not turn a flat folder into class folders.
    let flat = tree(&["1.jpg", "._1.jpg", "__MACOSX/._1.jpg", ".thumbnails/1.jpg"]);
    assert_eq!(labels(&labelled(&flat).unwrap().0), [-1]);
    // If there is nothing else, the error names them.
    let e = error(labelled(&tree(&["a/._1.jpg", "__MACOSX/._1.jpg"])));
    assert!(e.contains("hidden file: 1, such as \"a/._1.jpg\""), "{e}");
    assert!(e.contains("system folder: 1, such as \"__MACOSX\""), "{e}");
}

#[test]
fn links_to_folders_are_entered_and_loops_are_not() {
    let store = tree(&["x/1.jpg", "y/2.jpg"]);
    let dir = tree(&["a/0.jpg", "a/deep/er/3.jpg"]);
    let at = |name: &str| dir.path().join(name);
    symlink(store.path().join("x"), at("linked")).unwrap();
    symlink(store.path(), at("a/store")).unwrap();
    symlink(".", at("a/self")).unwrap();
    symlink("..", at("a/up")).unwrap();
    symlink("../..", at("a/deep/er/up")).unwrap();
    symlink(dir.path().parent().unwrap(), at("outer")).unwrap();
    symlink("ring", at("ring")).unwrap();
    symlink(dir.path(), store.path().join("y/back")).unwrap();
    let (index, report) = labelled(&dir).unwrap();
    assert_eq!(
        paths(&index),
        [
            "a/0.jpg",
            "a/deep/er/3.jpg",
            "a/store/x/1.jpg",
            "a/store/y/2.jpg",
            "linked/1.jpg"
        ]
    );
    assert_eq!(labels(&index), [0, 0, 0, 0, 1]);
    assert_eq!(report.skipped[&SkipReason::LinkLoop].count, 6);
    assert_eq!(report.skipped_total(), 6);
}

#[test]
fn two_links_to_a_folder_are_two_classes_and_folders_of_links_end() {
    let store = tree(&["x/1.jpg", "x/deep/2.jpg"]);
    let dir = tree(&["a/0.jpg"]);
    let at = |name: &str| dir.path().join(name);
    symlink(store.path().join("x"), at("b")).unwrap();
    symlink(store.path().join("x"), at("c")).unwrap();
    let (index, _) = labelled(&dir).unwrap();
    assert_eq!(labels(&index), [0, 1, 1, 2, 2]);
    // 2^29 folders by their paths, 30 real folders.
    for number in 0..30 {
        std::fs::create_dir(store.path().join(number.to_string())).unwrap();
        for link in ["l", "m"].iter().filter(|_| number < 29) {
            let to = format!("../{}", number + 1);
            symlink(to, store.path().join(number.to_string()).join(link)).unwrap();
        }
    }
    symlink(store.path().join("0"), at("d")).unwrap();
    let refused = labelled(&dir).unwrap_err();
    assert!(refused.is_dataset() && refused.path() == Some(dir.path()));
    let e = refused.to_string();
    for due in ["more than 50000 folders", "\"d\" and \"d/", "remove links"] {
        assert!(e.contains(due), "{e}");
    }
}

#[test]
fn a_root_behind_a_link_is_as_good() {
    let dir = tree(&["data/a/1.jpg"]);
    symlink("..", dir.path().join("data/a/up")).unwrap();
    symlink("data", dir.path().join("link")).unwrap();
    let root = dir.path().join("link");
    let (index, report) = Index::folder(&root, &FolderOptions::default()).unwrap();
    assert_eq!(index.path(0), root.join("a/1.jpg"));
    assert_eq!(report.skipped[&SkipReason::LinkLoop].count, 1);
}

#[test]
fn names_need_not_be_text() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        &b"\xff\xfe/\x80.jpg"[..],
        b"a\nb/c d.jpg",
        b"\xc3\xa9/1.jpg",
    ] {
        make(dir.path(), name);
    }
    let (index, _) = labelled(&dir).unwrap();
    let found: Vec<_> = (0..3)
        .map(|id| index.relative_path(id).as_os_str().as_bytes())
        .collect();
    assert_eq!(
        found,
        [
            &b"a\nb/c d.jpg"[..],
            b"\xc3\xa9/1.jpg",
            b"\xff\xfe/\x80.jpg"
        ]
    );
    assert_eq!(index.classes().get(OsStr::from_bytes(b"\xff\xfe")), Some(2));
    assert!(index.path(2).exists());
}

#[test]
fn a_folder_that_is_none_is_named() {
    let dir = tree(&["file"]);
    for (path, want) in [
        (dir.path().join("none"), "none: no such folder"),
        (dir.path().join("file"), "file: is not a folder"),
        (PathBuf::new(), "empty name"),
    ] {
        let e = error(Index::folder(&path, &FolderOptions::default()));
        assert!(e.contains(want), "{e}");
    }
}

#[test]
fn no_images_is_an_error_that_says_what_was_there() {
    let e = error(labelled(&tree(&[])));
    assert!(e.contains("no images found; samples are files"), "{e}");
    let e = error(labelled(&tree(&["a/x.heic", "b/"])));
    assert!(
        e.contains("no image extension: 1, such as \"a/x.heic\""),
        "{e}"
    );
    assert!(e.contains("jpg, jpeg"), "{e}");
    assert!(error(unlabelled(&tree(&["a/"]))).contains("no images found"));
}

/// Every command that takes a folder reports the damage, and not that images are missing.
#[test]
fn a_cache_whose_manifest_is_damaged_is_named_as_one() {
    let dir = tree(&["shard-000000.tar", "shard-000000.json", "manifest.json"]);
    let put = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
    put(
        "shard-000000.json",
        b"{\"format\":\"featherload-shard\",\"version\":2",
    );
    let named = |what: &str| {
        let e = error(labelled(&dir));
        assert!(e.contains("manifest.json") && e.contains(what), "{e}");
        assert!(!e.contains("no images"), "{e}");
    };
    named("damaged, or not the manifest of a cache");
    let manifest = dir.path().join("manifest.json");
    fs::File::options()
        .write(true)
        .open(&manifest)
        .unwrap()
        .set_len(600 << 20)
        .unwrap();
    named("too long: it has 600 MiB");
    fs::remove_file(&manifest).unwrap();
    named("is missing");
    // A file of another program may have such a name.
    put("shard-000000.json", b"{}");
    put("manifest.json", b"{}");
    assert!(error(labelled(&dir)).contains("no images found"));
}

#[test]
fn a_folder_that_cannot_be_read_is_an_error_that_names_it() {
    let dir = tree(&["a/1.jpg", "b/secret/2.jpg"]);
    let secret = dir.path().join("b/secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if nix::unistd::geteuid().is_root() {
        eprintln!("NOT CHECKED: root may read every folder, so no error can be provoked");
    } else {
        let e = error(labelled(&dir));
        assert!(e.contains("b/secret: permission denied"), "{e}");
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).unwrap();
    let e = unreadable(&secret, ErrorKind::PermissionDenied.into());
    assert!(e.is_usage() && e.to_string().contains("chmod"), "{e}");
}

#[test]
fn of_several_failures_the_first_folder_is_named() {
    let dir = tree(&["a/1.jpg"]);
    let names: Vec<Vec<u8>> = (0..40)
        .map(|i| {
            if i % 10 == 3 {
                format!("{i}")
            } else {
                "a".into()
            }
            .into_bytes()
        })
        .collect();
    for _ in 0..20 {
        let e = scan_folders(
            dir.path(),
            &names,
            &HashSet::new(),
            &Vec::new(),
            &mut LinkTargets::default(),
        )
        .err()
        .unwrap();
        assert!(e.to_string().contains("/3: disappeared"), "{e}");
    }
}

#[test]
fn too_deep_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut deep = b"d/".repeat(MAX_DEPTH);
    deep.extend(b"1.jpg");
    make(dir.path(), &deep);
    assert_eq!(labelled(&dir).unwrap().0.len(), 1);
    deep.truncate(2 * MAX_DEPTH);
    deep.extend(b"e/");
    make(dir.path(), &deep);
    assert!(error(labelled(&dir)).contains("over 128 folders deep"));
}

/// Names that sort differently with and without a slash after them.
fn name() -> impl Strategy<Value = String> {
    let letter = proptest::sample::select(vec!['a', 'b', 'B', '-', '.', '0', ' ', '\u{e9}']);
    vec(letter, 0..3).prop_map(|tail| std::iter::once('k').chain(tail).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With many folders (threads) and few folders, in any order of creation, the samples are those
    /// of a plain sort.
    #[test]
    fn the_order_is_that_of_the_paths_bytes(
        names in vec((name(), proptest::option::of(name()), name()), 1..40)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut expected: Vec<String> = names
            .iter()
            .map(|(class, folder, name)| match folder {
                Some(folder) => format!("{class}/{folder}/{name}.jpg"),
                None => format!("{class}/{name}.jpg"),
            })
            .collect();
        for name in &expected {
            make(dir.path(), name.as_bytes());
        }
        expected.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        expected.dedup();
        let (index, _) = labelled(&dir).unwrap();
        prop_assert_eq!(&paths(&index), &expected);
        let (plain, _) = unlabelled(&dir).unwrap();
        prop_assert_eq!(&paths(&plain), &expected);
        for (path, label) in expected.iter().zip(labels(&index)) {
            let class = path.split('/').next().unwrap();
            prop_assert_eq!(index.classes().get(class), Some(label));
        }
        let (again, _) = labelled(&dir).unwrap();
        prop_assert_eq!(again.hash(), index.hash());
    }
}
