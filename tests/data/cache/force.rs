//! `--force`: what it replaces, what it keeps, and what it never touches.

use std::fs;

use featherload::Error;
use featherload::cache::BuildOptions;

use super::scene::{assert_same, build, built, copy, files};
use crate::common::data;

#[test]
fn force_takes_the_place_of_a_damaged_manifest_and_of_no_foreign_shards() {
    let src = data(1, 4);
    let dst = tempfile::tempdir().unwrap();
    build(src.path(), dst.path(), copy());
    let whole = files(dst.path());
    let mut text = whole["manifest.json"].clone();
    text[40] ^= 2;
    fs::write(dst.path().join("manifest.json"), text).unwrap();
    let e = built(src.path(), dst.path(), copy()).build().unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("manifest.json"),
        "{e}"
    );
    let report = built(src.path(), dst.path(), copy())
        .force(true)
        .build()
        .unwrap();
    assert!(report.complete);
    assert_same(&whole, &files(dst.path()), "forced");

    fs::remove_file(dst.path().join("manifest.json")).unwrap();
    for force in [false, true] {
        let e = built(src.path(), dst.path(), copy())
            .force(force)
            .build()
            .unwrap_err();
        assert!(e.is_usage() && e.to_string().contains("index.fli"), "{e}");
    }
}

#[test]
fn force_mends_a_cache_whose_bytes_were_flipped() {
    let src = data(2, 20);
    let dst = tempfile::tempdir().unwrap();
    let options = BuildOptions {
        shard_size: Some(40_000),
        ..copy()
    };
    let shards = build(src.path(), dst.path(), options).shards;
    assert!(shards >= 4);
    let whole = files(dst.path());
    let forced = || {
        let forced = built(src.path(), dst.path(), options).force(true).build();
        forced.unwrap().kept_shards
    };
    assert_eq!(forced(), shards, "nothing is hurt");
    for (number, at) in [(2u64, 700), (0, 0), (shards - 1, usize::MAX)] {
        let name = format!("shard-{number:06}.tar");
        let mut bytes = whole[&name].clone();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        fs::write(dst.path().join(&name), bytes).unwrap();
        assert_eq!(build(src.path(), dst.path(), options).kept_shards, shards);
        assert_eq!(forced(), number);
        assert_same(&whole, &files(dst.path()), &name);
    }
}

#[test]
fn a_forced_build_that_is_refused_leaves_the_cache_that_was_there() {
    let src = data(2, 8);
    let dst = tempfile::tempdir().unwrap();
    build(src.path(), dst.path(), copy());
    let whole = files(dst.path());
    // The last sample of all is bad. The survey finds it before anything is removed.
    let other = data(2, 9);
    fs::write(other.path().join("class1/008.jpg"), "no picture").unwrap();
    for workers in [0, 2] {
        let e = built(other.path(), dst.path(), copy())
            .num_workers(workers)
            .force(true)
            .build()
            .unwrap_err();
        assert!(matches!(e, Error::Sample { id: 17, .. }), "{e:?}");
        assert_same(&whole, &files(dst.path()), "a bad picture");
    }
    let mut text = whole["manifest.json"].clone();
    text[40] ^= 2;
    fs::write(dst.path().join("manifest.json"), text).unwrap();
    let damaged = files(dst.path());
    let e = built(other.path(), dst.path(), copy()).force(true).build();
    assert!(e.unwrap_err().is_sample());
    assert_same(&damaged, &files(dst.path()), "of a damaged manifest");
}
