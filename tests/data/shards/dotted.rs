//! Tars whose fields have dots give what the same tars without them give: by every command, in a
//! cache and in an object store.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::scene::{append, featherload, json_of, shards_of, text};
use crate::common::command::object;
use crate::common::data;

/// Writes the shards again with each member called as `rename` says; without a name it is dropped.
fn renamed(shards: &[std::path::PathBuf], into: &Path, rename: &dyn Fn(&str) -> Vec<String>) {
    for path in shards {
        let to = into.join(path.file_name().unwrap());
        let mut tar = tar::Builder::new(fs::File::create(to).unwrap());
        let mut from = tar::Archive::new(fs::File::open(path).unwrap());
        for entry in from.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            for name in rename(&name) {
                append(&mut tar, &name, &bytes);
            }
        }
        tar.finish().unwrap();
    }
}

struct Scene {
    _folder: tempfile::TempDir,
    _tars: tempfile::TempDir,
    kept: tempfile::TempDir,
    plain: String,
    /// One picture a sample, and a label.
    single: String,
    /// Two pictures.
    double: String,
}

fn scene() -> Scene {
    let folder = data(3, 6);
    let tars = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = tars.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let (plain, single, double) = (at("plain"), at("single"), at("double"));
    let shards = shards_of(folder.path(), &plain, 5);
    let dotted = |name: &str, picture: &[&str]| -> Vec<String> {
        let (key, field) = name.rsplit_once('.').unwrap();
        match field {
            "jpg" => picture.iter().map(|p| format!("{key}.{p}")).collect(),
            "cls" => vec![format!("{key}.label.cls")],
            _ => Vec::new(),
        }
    };
    renamed(&shards, &single, &|name| dotted(name, &["image.jpg"]));
    renamed(&shards, &double, &|name| {
        dotted(name, &["input.JPG", "target.jpg"])
    });
    let pattern = |folder: &Path| folder.join("*.tar").to_str().unwrap().to_owned();
    Scene {
        plain: pattern(&plain),
        single: pattern(&single),
        double: pattern(&double),
        kept: tempfile::tempdir().unwrap(),
        _folder: folder,
        _tars: tars,
    }
}

impl Scene {
    fn digest(&self, source: &str, more: &[&str]) -> Value {
        let mut args = vec![
            "bench",
            source,
            "--json",
            "--batch-size",
            "4",
            "--num-workers",
            "2",
        ];
        args.push("--digest");
        args.extend(more);
        let digest = json_of(self.kept.path(), &args)["digest"].clone();
        assert!(digest.is_string());
        digest
    }

    fn refused(&self, args: &[&str]) -> String {
        let out = featherload(self.kept.path(), args);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        text(&out.stderr)
    }
}

#[test]
fn the_stream_is_that_of_fields_without_dots() {
    let scene = scene();
    let want = scene.digest(&scene.plain, &[]);
    assert_eq!(scene.digest(&scene.single, &[]), want);
    let args = ["--image-field", "input.jpg"];
    assert_eq!(scene.digest(&scene.double, &args), want);
    // The index that is kept is of one field.
    assert!(
        scene
            .refused(&["plan", &scene.double])
            .contains("--image-field input.jpg")
    );
    assert_eq!(
        scene.digest(&scene.double, &["--image-field", "target.jpg"]),
        want
    );
    let index = json_of(
        scene.kept.path(),
        &[
            "index",
            &scene.double,
            "--image-field",
            "target.jpg",
            "--json",
        ],
    );
    assert_eq!(
        (&index["samples"], &index["classes"]),
        (&18.into(), &3.into())
    );
    assert_eq!(index["headers"]["formats"]["jpeg"], 18);
    assert_eq!(index["other_fields"], serde_json::json!({"input.jpg": 18}));
}

#[test]
fn a_cache_takes_the_named_field() {
    let scene = scene();
    let want = scene.digest(&scene.plain, &[]);
    let dst = scene.kept.path().join("cache");
    let dst = dst.to_str().unwrap();
    let build = [
        "cache",
        "build",
        &scene.double,
        dst,
        "--image-field",
        "input.jpg",
    ];
    let out = featherload(scene.kept.path(), &build);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(scene.digest(dst, &[]), want);
    let e = scene.refused(&["index", dst, "--image-field", "input.jpg"]);
    assert!(e.contains("`--image-field` has no effect"), "{e}");
}

#[test]
fn tars_in_a_store_have_an_index_for_each_named_field() {
    let scene = scene();
    let want = scene.digest(&scene.plain, &["--sampler", "sequential"]);
    let prefix = |pattern: &str| format!("file://{}", pattern.strip_suffix("/*.tar").unwrap());
    let fetched = scene.kept.path().join("fetched");
    let there = ["--fetch-dir", fetched.to_str().unwrap()];
    let (single, double) = (prefix(&scene.single), prefix(&scene.double));
    for (address, field) in [
        (&single, &[][..]),
        (&double, &["--image-field", "input.jpg"]),
        (&double, &["--image-field", "target.jpg"]),
    ] {
        let index = [&["index", address, "--share", "--json"], &there[..], field].concat();
        let index = object(&featherload(scene.kept.path(), &index));
        assert_eq!(index["samples"], 18);
        let args = [&["--sampler", "sequential"], &there[..], field].concat();
        assert_eq!(scene.digest(address, &args), want, "{address} {field:?}");
    }
    let e = scene.refused(&[&["index", &double], &there[..]].concat());
    assert!(
        e.contains("images are in several fields: input.jpg (18 samples)"),
        "{e}"
    );
    assert!(e.contains(&double) && !e.contains("fetched/"), "{e}");
    // A shared index is found by its options.
    let shared = fs::read_dir(double.strip_prefix("file://").unwrap()).unwrap();
    let shared = shared.filter(|e| e.as_ref().unwrap().path().extension().unwrap() == "fli");
    assert_eq!(shared.count(), 2);
}
