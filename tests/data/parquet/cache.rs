//! Caches of Parquet files, and the output of the command line for both.

use featherload::Source;

use super::scene::{image, int64, note, photos, plain, ways, write};
use crate::cache::scene::{build, copy};
use crate::common::rows::{assert_same, stream};
use crate::common::{Picture, builder, data};
use crate::shards::scene::{featherload, json_of, loader_over, text};

#[test]
fn a_cache_has_the_pictures_and_labels_of_the_files() {
    let folder = data(3, 7);
    let (pictures, labels) = photos(folder.path());
    let want = stream(
        &mut builder(folder.path()).num_workers(0).build().unwrap(),
        1,
    );
    for (way, properties) in ways() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let columns = [
            image("image", pictures.clone()),
            int64("label", labels.clone()),
        ];
        write(&path, &columns, (21, 8), properties);
        let cache = dir.path().join("cache");
        let report = build(&path, &cache, copy());
        assert_eq!(report.samples, 21, "{way}");
        let source = Source::Cache(cache);
        let rows = stream(&mut loader_over(source).num_workers(2).build().unwrap(), 1);
        assert_same(&rows, &want, way);
    }
}

#[test]
fn the_command_line_reads_counts_and_digests_them() {
    let dir = tempfile::tempdir().unwrap();
    let folder = data(2, 5);
    let (pictures, labels) = photos(folder.path());
    let columns = || {
        [
            image("picture", pictures.clone()),
            int64("label", labels.clone()),
        ]
    };
    let digest = |source: &str, workers: &str| {
        let recipe = ["--recipe", "train224", "--batch-size", "4", "--epochs", "1"];
        let how = ["--num-workers", workers, "--digest", "--json"];
        let args = [&["bench", source][..], &recipe, &how].concat();
        let json = json_of(dir.path(), &args);
        json["digest"].clone()
    };
    let want = digest(folder.path().to_str().unwrap(), "0");
    assert!(!want.is_null());
    let at = dir.path().join("a.parquet");
    let path = at.to_str().unwrap();
    for (way, properties) in ways() {
        let properties = properties.set_key_value_metadata(Some(note(&["one", "two"])));
        write(&at, &columns(), (10, 4), properties);
        for workers in ["0", "2"] {
            assert_eq!(digest(path, workers), want, "{way}");
        }
    }
    let out = featherload(dir.path(), &["index", path]);
    let message = text(&out.stdout);
    assert!(
        message.contains("columns    images picture, labels label"),
        "{message}"
    );
    let json = json_of(dir.path(), &["index", path, "--json"]);
    assert_eq!(json["samples"], 10, "{json}");
    assert_eq!(json["columns"]["image"], "picture", "{json}");
    let doctor = featherload(dir.path(), &["doctor", path]);
    assert!(
        text(&doctor.stdout).contains("10, 10 of them opened"),
        "{}",
        text(&doctor.stdout)
    );
}

#[test]
fn options_that_say_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("a.parquet");
    let picture = Picture::rgb(32, 32, 1).encode();
    write(&at, &[image("image", vec![Some(picture)])], (1, 1), plain());
    let message = |args: &[&str]| {
        let out = featherload(dir.path(), &[&["index"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let path = at.to_str().unwrap();
    for option in ["--root", "--path-suffix", "--label-field", "--delimiter"] {
        let message = message(&[path, option, "x"]);
        assert!(
            message.contains(&format!("`{option}` has no effect on")),
            "{message}"
        );
    }
    let other = message(&[path, "--path-column", "x"]);
    assert!(other.contains("has no column 'x'"), "{other}");
    let folder = data(1, 1);
    let message = message(&[folder.path().to_str().unwrap(), "--image-column", "x"]);
    assert!(
        message.contains("`--image-column` has no effect on"),
        "{message}"
    );
}
