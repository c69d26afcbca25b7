//! Builds that are rejected with a named reason before a byte is written.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use featherload::Source;
use featherload::cache::{BuildOptions, CacheBuilder, CacheResize, OnBadSample};
use featherload::index::ListOptions;

use super::scene::{all_members, assert_same, build, built, copy, files, jpeg, raw};
use crate::common::{FEATHERLOAD, Picture, data};

#[test]
fn changed_sources_and_options_are_refused_by_name_and_force_builds_anew() {
    let src = data(2, 6);
    let dst = tempfile::tempdir().unwrap();
    let resize = Some(CacheResize::Shorter(64));
    build(src.path(), dst.path(), jpeg(90));
    let whole = files(dst.path());
    let refused = |options: BuildOptions, parts: &[&str]| {
        let e = built(src.path(), dst.path(), options).build().unwrap_err();
        assert!(e.is_usage(), "{e}");
        for part in parts.iter().chain(&["`force`"]) {
            assert!(e.to_string().contains(part), "{e} lacks {part}");
        }
        assert_same(&whole, &files(dst.path()), "after a refusal");
    };
    refused(jpeg(80), &["encode was jpeg:90 and is now jpeg:80"]);
    refused(
        BuildOptions {
            resize,
            shuffle: Some(3),
            ..jpeg(90)
        },
        &[
            "resize was none and is now shorter:64",
            "shuffle was none and is now 3",
        ],
    );
    refused(
        BuildOptions {
            shard_size: Some(99_999),
            ..jpeg(90)
        },
        &["shard_size"],
    );
    refused(
        BuildOptions {
            on_error: OnBadSample::Skip,
            ..jpeg(90)
        },
        &["on_error"],
    );
    refused(
        BuildOptions {
            max_pixels: 1 << 20,
            ..jpeg(90)
        },
        &["max_pixels"],
    );

    let picture = src.path().join("class0/000.jpg");
    let was = fs::read(&picture).unwrap();
    fs::write(&picture, Picture::rgb(50, 40, 99).encode()).unwrap();
    refused(jpeg(90), &["files of the source have changed"]);
    fs::write(src.path().join("class0/zzz.jpg"), &was).unwrap();
    refused(jpeg(90), &["the number of samples was 12 and is now 13"]);

    let report = built(src.path(), dst.path(), jpeg(70))
        .force(true)
        .build()
        .unwrap();
    assert!(report.complete && report.kept_samples == 0 && report.samples == 13);
    let fresh = tempfile::tempdir().unwrap();
    build(src.path(), fresh.path(), jpeg(70));
    assert_same(&files(fresh.path()), &files(dst.path()), "forced");
}

#[test]
fn shards_behind_a_missing_first_one_are_not_lost_to_other_options() {
    let src = data(2, 10);
    let dst = tempfile::tempdir().unwrap();
    let small = BuildOptions {
        shard_size: Some(40_000),
        ..copy()
    };
    let ended = built(src.path(), dst.path(), small).build_watched(&mut |p| match p.shards > 1 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    assert!(!ended.unwrap().complete);
    fs::remove_file(dst.path().join("shard-000000.json")).unwrap();
    let left = files(dst.path());
    assert!(left.contains_key("shard-000001.json"), "{:?}", left.keys());
    let other = BuildOptions {
        shuffle: Some(3),
        ..small
    };
    let e = built(src.path(), dst.path(), other).build().unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("shuffle was none"),
        "{e}"
    );
    assert_same(&left, &files(dst.path()), "refused");
}

#[test]
fn a_cache_of_an_earlier_form_is_refused_and_built_anew_by_force() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    build(src.path(), dst.path(), copy());
    let whole = files(dst.path());
    let path = dst.path().join("manifest.json");
    let text = String::from_utf8(whole["manifest.json"].clone()).unwrap();
    assert!(text.contains("\"lost\""), "{text}");
    let earlier = text.replacen("\"version\": 2", "\"version\": 1", 1);
    let (before, rest) = earlier.split_once(",\n    \"lost\"").unwrap();
    let earlier = format!("{before}{}", &rest[rest.find("\n  }").unwrap()..]);
    fs::write(&path, &earlier).unwrap();
    let e = built(src.path(), dst.path(), copy()).build().unwrap_err();
    assert!(e.is_usage(), "{e:?}");
    for part in ["manifest.json", "version 1", "versions 2 to 5", "`force`"] {
        assert!(e.to_string().contains(part), "{e}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), earlier);
    let forced = built(src.path(), dst.path(), copy()).force(true).build();
    assert!(forced.unwrap().complete);
    assert_same(&whole, &files(dst.path()), "forced");
}

#[test]
fn shards_beside_a_manifest_that_is_not_ours_stay_whatever_force_says() {
    let src = data(1, 4);
    let beginning = "{\n  \"format\": \"featherload-cache";
    let manifests = [
        "{\"my\":\"notes\"}",
        "",
        "{\n  \"format\": \"featherload-shard\"",
        beginning,
    ];
    for text in manifests {
        let dst = tempfile::tempdir().unwrap();
        let names = ["shard-000000.tar", "shard-000001.tar", "shard-000002.tar"];
        for name in names.iter().chain(&["index.fli", "shard-000001.json"]) {
            fs::write(dst.path().join(name), "theirs").unwrap();
        }
        fs::write(dst.path().join("manifest.json"), text).unwrap();
        let theirs = files(dst.path());
        for force in [false, true] {
            let e = built(src.path(), dst.path(), copy())
                .force(force)
                .build()
                .unwrap_err();
            assert!(
                e.is_usage() && e.to_string().contains("name another folder"),
                "{text}: {e}"
            );
            assert_same(&theirs, &files(dst.path()), text);
        }
    }
}

#[test]
fn a_cache_is_a_source_and_never_its_own() {
    let src = data(2, 8);
    let dst = tempfile::tempdir().unwrap();
    let (first, second) = (dst.path().join("first"), dst.path().join("second"));
    let shards = build(src.path(), &first, raw()).shards;
    assert!(shards > 1);
    let report = build(&first, &second, raw());
    assert_eq!((report.samples, report.shards), (16, shards));
    let members = |cache: &Path| all_members(cache).into_iter().map(|(_, m)| m);
    for (a, b) in members(&first).zip(members(&second)) {
        assert!(a.data == b.data, "{} {}", a.name, b.name);
        let (id, key) = a.name.split_at(8);
        assert_eq!(b.name, format!("{id}_{id}{key}"));
    }
    let whole = files(&first);
    for force in [false, true] {
        let e = built(&first, &first, copy())
            .force(force)
            .build()
            .unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("inside the source"),
            "{e}"
        );
        assert_same(&whole, &files(&first), "its own source");
    }
}

#[test]
fn a_cache_within_its_source_and_options_that_cannot_work_are_refused() {
    let src = data(1, 2);
    let e = built(src.path(), &src.path().join("class0/cache"), copy())
        .build()
        .unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("inside the source"),
        "{e}"
    );
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        resize: Some(CacheResize::Longer(9)),
        ..copy()
    };
    let e = built(src.path(), dst.path(), options).build().unwrap_err();
    assert!(e.is_usage() && e.to_string().contains("copy keeps"), "{e}");
    assert!(files(dst.path()).is_empty());
}

/// Paths and `file://` addresses of source and cache, in all combinations.
#[test]
fn a_cache_is_never_built_into_its_source_whatever_both_are_called() {
    let src = data(1, 8);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let cache = dir.path().join("c2");
    build(src.path(), &cache, copy());
    std::os::unix::fs::symlink("c2", dir.path().join("link")).unwrap();
    let whole = files(&cache);
    let sources = [
        at("c2"),
        at("link/"),
        format!("file://{}", at("c2")),
        format!("FILE://localhost{}/", at("c%32")),
        format!("file://{}", at("link")),
    ];
    let same = [
        "c2",
        "c2/",
        "link",
        "none/../c2",
        "c2/new",
        "link/new/deeper",
    ];
    let mut places: Vec<String> = same.iter().map(|name| at(name)).collect();
    places.extend(same.iter().map(|name| format!("file://{}", at(name))));
    places.extend(["FILE://", "file://localhost"].map(|begin| begin.to_owned() + &at("c%32")));
    for (source, place) in sources
        .iter()
        .flat_map(|s| places.iter().map(move |p| (s, p)))
    {
        for force in [false, true] {
            let builder = CacheBuilder::new(Source::detect(source).unwrap(), place, copy())
                .force(force)
                .num_workers(0)
                .helper(FEATHERLOAD);
            let e = builder.build().unwrap_err();
            let is_refused = ["inside the source", "where shards of the source lie"]
                .iter()
                .any(|words| e.to_string().contains(words));
            assert!(e.is_usage() && is_refused, "{source} to {place}: {e}");
        }
    }
    assert_same(&whole, &files(&cache), "the source");
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing else was made: {names:?}");
}

#[test]
fn a_cache_is_not_built_beside_the_files_of_a_list_or_of_shards() {
    let src = data(1, 4);
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list.txt");
    fs::write(&list, "class0/000.jpg 0\nclass0/001.jpg 0\n").unwrap();
    let options = ListOptions {
        root: Some(src.path().to_owned()),
        ..ListOptions::default()
    };
    let class = src.path().join("class0");
    let before = files(&class);
    for place in [
        class.display().to_string(),
        format!("file://{}", class.display()),
    ] {
        let source = Source::List(list.clone(), options.clone());
        let builder = CacheBuilder::new(source, &place, copy())
            .num_workers(0)
            .helper(FEATHERLOAD);
        let e = builder.build().unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("beside them"),
            "{place}: {e}"
        );
    }
    assert_same(&before, &files(&class), "the pictures");

    // The source names a link to a shard. The build would replace the link's target.
    let tars = dir.path().join("tars");
    build(src.path(), &tars, copy());
    let linked = dir.path().join("linked.tar");
    std::os::unix::fs::symlink(tars.join("shard-000000.tar"), &linked).unwrap();
    let before = files(&tars);
    for force in [false, true] {
        let source = Source::detect(&linked).unwrap();
        let builder = CacheBuilder::new(source, &tars, copy())
            .num_workers(0)
            .force(force);
        let e = builder.build().unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("shard of the source"),
            "{e}"
        );
    }
    assert_same(&before, &files(&tars), "the shards");

    // The same for shards in a folder that is addressed as a store.
    let links = dir.path().join("links");
    fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink(
        tars.join("shard-000000.tar"),
        links.join("shard-000000.tar"),
    )
    .unwrap();
    for names in ["", "/shard-{000000..000000}.tar"] {
        for place in [
            tars.display().to_string(),
            format!("file://{}", tars.display()),
        ] {
            let source = format!("file://{}{names}", links.display());
            let builder = CacheBuilder::new(Source::detect(source).unwrap(), &place, copy());
            let e = builder.num_workers(0).force(true).build().unwrap_err();
            assert!(
                e.is_usage() && e.to_string().contains("where shards of the source lie"),
                "{names} into {place}: {e}"
            );
        }
    }
    assert_same(&before, &files(&tars), "the shards");
}

#[test]
fn a_build_that_is_refused_leaves_no_folder() {
    let src = data(1, 2);
    fs::write(src.path().join("class0/bad.jpg"), "no picture").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let e = built(src.path(), &dir.path().join("a/b"), copy()).build();
    assert!(e.unwrap_err().is_sample());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
