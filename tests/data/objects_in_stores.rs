//! Single images in an object store: the stream and the caches are those of a folder with the same
//! files, within little room, through kills; and what changed or is missing is named.
//!
//! The store is a folder here (`file://`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use featherload::cache::{BuildOptions, CacheBuilder, CacheEncoding, CacheResize, OnBadSample};
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::index::{FolderLabels, FolderOptions, ShardLabels, ShardOptions};
use featherload::{Loader, LoaderBuilder, Recipe, Sampler, Source};
use nix::sys::signal::Signal;

use crate::cache::scene::{Files, assert_same as assert_same_files, files_that};
use crate::common::command::{command, object};
use crate::common::processes::{send, wait_for};
use crate::common::rows::{assert_same, stream, take};
use crate::common::{FEATHERLOAD, data};

const SAMPLES: u64 = 120;

struct Scene {
    dir: tempfile::TempDir,
    /// The folder, which is the store too.
    src: PathBuf,
}

fn scene() -> Scene {
    let (images, dir) = (data(8, 15), tempfile::tempdir().unwrap());
    let src = dir.path().join("src");
    fs::rename(images.path(), &src).unwrap();
    // Left out in both places.
    let first = fs::read_dir(&src).unwrap().next().unwrap().unwrap().path();
    fs::write(first.join("notes.txt"), "text").unwrap();
    fs::write(first.join(".hidden.jpg"), "none").unwrap();
    fs::create_dir(src.join("__MACOSX")).unwrap();
    fs::write(src.join("__MACOSX/1.jpg"), "none").unwrap();
    Scene { src, dir }
}

fn run(source: Source, shuffle: bool) -> LoaderBuilder {
    Loader::builder(source)
        .helper(FEATHERLOAD)
        .recipe(Recipe::eval224())
        .batch_size(8)
        .num_workers(2)
        .sampler(match shuffle {
            true => Sampler::Shuffle,
            false => Sampler::Sequential,
        })
}

fn refused(builder: LoaderBuilder) -> String {
    match builder.build() {
        Ok(mut loader) => {
            let failed = loader.epoch().find_map(Result::err);
            failed.expect("no refusal").to_string()
        }
        Err(e) => e.to_string(),
    }
}

impl Scene {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn address(&self) -> String {
        format!("file://{}", self.src.display())
    }

    fn source(&self, limit: Option<u64>, shards: ShardOptions) -> Source {
        let mut options = FetchOptions::default();
        options.dir = Some(self.at("fetched"));
        options.limit = limit;
        options.shards = shards;
        Source::Store(StoreAddress::parse(self.address()).unwrap(), options)
    }

    fn store(&self) -> Source {
        self.source(None, ShardOptions::default())
    }

    fn here(&self) -> Source {
        Source::detect(&self.src).unwrap()
    }

    fn images(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for class in fs::read_dir(&self.src).unwrap() {
            let class = class.unwrap().path();
            let images = fs::read_dir(&class)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            all.extend(images.filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                !class.ends_with("__MACOSX") && !name.starts_with('.') && !name.ends_with(".txt")
            }));
        }
        all.sort();
        all
    }
}

#[test]
fn the_stream_is_that_of_the_folder() {
    let scene = scene();
    for shuffle in [false, true] {
        let want = stream(&mut run(scene.here(), shuffle).build().unwrap(), 2);
        assert_eq!(want.len() as u64, 2 * SAMPLES);
        for workers in [1, 3] {
            let mut loader = run(scene.store(), shuffle)
                .num_workers(workers)
                .build()
                .unwrap();
            assert_eq!(loader.index().classes().len(), 8);
            let left_out = loader.scan_report().unwrap().skipped_total();
            assert_eq!(left_out, 3);
            assert_same(
                &stream(&mut loader, 2),
                &want,
                &format!("{workers} workers"),
            );
        }
    }
    // The folder of fetched objects is used again; a state resumes.
    let mut loader = run(scene.store(), true).build().unwrap();
    let (mut rows, state) = take(&mut loader, 3);
    drop(loader);
    let mut loader = run(scene.store(), true).resume(state).build().unwrap();
    rows.extend(stream(&mut loader, 1));
    assert_eq!(loader.report().unwrap().fetch.unwrap().shards, 0);
    let want = stream(&mut run(scene.here(), true).build().unwrap(), 1);
    assert_same(&rows, &want, "resumed");
}

#[test]
fn a_manifest_of_another_program_blocks_nothing_and_errors_name_objects() {
    let scene = scene();
    let path = &scene.images()[7];
    fs::write(scene.src.join("manifest.json"), "{\"name\": \"an app\"}").unwrap();
    fs::write(path, "no image").unwrap();
    let e = refused(run(scene.store(), false));
    let name = format!("file://{}", path.display());
    assert!(e.contains(&name) && !e.contains(".tar"), "{e}");
}

#[test]
fn labels_may_be_absent() {
    let scene = scene();
    let none = ShardOptions {
        labels: ShardLabels::None,
        ..ShardOptions::default()
    };
    let folder = FolderOptions {
        labels: FolderLabels::None,
        ..FolderOptions::default()
    };
    let here = Source::Folder(scene.src.clone(), folder);
    let want = stream(&mut run(here, false).build().unwrap(), 1);
    let got = stream(
        &mut run(scene.source(None, none), false).build().unwrap(),
        1,
    );
    assert_same(&got, &want, "without labels");
}

/// Names of which one begins another, with characters that sort before and after a slash.
#[test]
fn the_order_is_that_of_the_folder() {
    let scene = scene();
    let bytes = fs::read(&scene.images()[0]).unwrap();
    for class in [
        "cat",
        "cat-big",
        "cat big",
        "cat.old",
        "cat0",
        "cat%20x",
        "\u{e9}t\u{e9}",
    ] {
        fs::create_dir(scene.src.join(class)).unwrap();
        for name in ["1.jpg", "a-b.jpg", "a b.jpg", "a%2F.jpg"] {
            fs::write(scene.src.join(class).join(name), &bytes).unwrap();
        }
    }
    let paths = |source| {
        let loader = run(source, false).build().unwrap();
        let index = loader.index();
        let all = 0..index.len();
        all.map(|id| index.relative_path(id).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(scene.store()), paths(scene.here()));
    let want = stream(&mut run(scene.here(), false).build().unwrap(), 1);
    let got = stream(&mut run(scene.store(), false).build().unwrap(), 1);
    assert_same(&got, &want, "names that begin alike");
    // Other objects change neither folder nor packs.
    fs::write(scene.src.join("cat/log.txt"), "text").unwrap();
    let mut loader = run(scene.store(), false).build().unwrap();
    assert_same(&stream(&mut loader, 1), &want, "beside a text");
    assert_eq!(loader.report().unwrap().fetch.unwrap().shards, 0);
    drop(loader);
    // Images beside folders, without labels.
    for name in ["0.jpg", "zz.jpg"] {
        fs::write(scene.src.join(name), &bytes).unwrap();
    }
    let folder = FolderOptions {
        labels: FolderLabels::None,
        ..FolderOptions::default()
    };
    let none = ShardOptions {
        labels: ShardLabels::None,
        ..ShardOptions::default()
    };
    let here = Source::Folder(scene.src.clone(), folder);
    assert_eq!(paths(scene.source(None, none)), paths(here));
}

#[test]
fn listings_are_made_anew_and_mistakes_are_named() {
    let scene = scene();
    let images = scene.images();
    let mut loader = run(scene.store(), false).num_workers(1).build().unwrap();
    assert!(loader.epoch().next().unwrap().is_ok());
    drop(loader);
    let victim = &images[40];
    let bytes = fs::read(victim).unwrap();
    fs::remove_file(victim).unwrap();
    // Without it the listing has one sample less, and nothing is mixed with the former packs.
    let mut loader = run(scene.store(), false).build().unwrap();
    assert_eq!(stream(&mut loader, 1).len() as u64, SAMPLES - 1);
    drop(loader);
    fs::write(victim, &bytes).unwrap();
    let mut loader = run(scene.store(), false).build().unwrap();
    assert_eq!(stream(&mut loader, 1).len() as u64, SAMPLES);
    // Images beside class folders, an empty store, options of tars.
    drop(loader);
    fs::write(scene.src.join("stray.jpg"), &bytes).unwrap();
    let e = refused(run(scene.store(), false));
    assert!(e.contains("images lie beside class folders"), "{e}");
    fs::remove_file(scene.src.join("stray.jpg")).unwrap();
    let field = ShardOptions {
        labels: ShardLabels::Field("cls".to_owned()),
        ..ShardOptions::default()
    };
    let e = refused(run(scene.source(None, field), false));
    assert!(
        e.contains("remove the options that name fields of tars"),
        "{e}"
    );
    fs::create_dir(scene.at("empty")).unwrap();
    let nothing = format!("file://{}", scene.at("empty").display());
    let nothing = StoreAddress::parse(nothing).unwrap();
    let mut options = FetchOptions::default();
    options.dir = Some(scene.at("fetched"));
    let e = refused(run(Source::Store(nothing, options), false));
    assert!(e.contains("nor images: check the address"), "{e}");
}

fn build_options() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Jpeg { quality: 90 },
        resize: Some(CacheResize::Shorter(24)),
        shard_samples: Some(10),
        ..BuildOptions::default()
    }
}

/// The tars, their indexes and their manifests.
fn shards(folder: &Path) -> Files {
    files_that(folder, |name| name.starts_with("shard-"))
}

#[test]
fn caches_have_the_bytes_of_a_build_from_the_folder() {
    let scene = scene();
    // A broken image is left out in both places.
    fs::write(&scene.images()[7], "no image").unwrap();
    for (number, shuffle) in [None, Some(3)].into_iter().enumerate() {
        let options = BuildOptions {
            shuffle,
            on_error: OnBadSample::Skip,
            ..build_options()
        };
        let build = |source, dst: &str| {
            let dst = scene.at(&format!("{dst}-{number}"));
            let builder = CacheBuilder::new(source, &dst, options).helper(FEATHERLOAD);
            let report = builder.num_workers(2).build().unwrap();
            assert!(report.complete);
            assert_eq!((report.samples, report.skipped), (SAMPLES - 1, 1));
            shards(&dst)
        };
        let want = build(scene.here(), "want");
        assert_eq!(want.len(), 3 * 12);
        assert_same_files(&build(scene.store(), "got"), &want, "of objects");
    }
}

#[test]
fn a_killed_build_continues() {
    let scene = scene();
    let want = scene.at("want");
    let here = CacheBuilder::new(scene.here(), &want, build_options()).helper(FEATHERLOAD);
    assert!(here.build().unwrap().complete);
    let (dst, fetched) = (scene.at("got"), scene.at("fetched"));
    let address = scene.address();
    let args = [
        "cache",
        "build",
        &address,
        dst.to_str().unwrap(),
        "--fetch-dir",
        fetched.to_str().unwrap(),
        "--encode",
        "jpeg:90",
        "--resize",
        "shorter:24",
        "--shard-samples",
        "10",
        "--num-workers",
        "1",
    ];
    for kill in [true, true, false] {
        let mut child = command(&args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if kill {
            let before = shards(&dst_or_empty(&dst)).len();
            wait_for(Duration::from_secs(60), || {
                let has_more = shards(&dst_or_empty(&dst)).len() > before;
                (has_more || child.try_wait().unwrap().is_some()).then_some(())
            });
            send(child.id() as i32, Signal::SIGKILL);
        }
        let status = child.wait().unwrap();
        assert!(kill || status.success(), "{status}");
    }
    assert_same_files(&shards(&dst), &shards(&want), "after kills");
}

/// A folder that may not exist yet.
fn dst_or_empty(dst: &Path) -> PathBuf {
    fs::create_dir_all(dst).unwrap();
    dst.to_owned()
}

#[test]
fn the_command_line_reads_them() {
    let scene = scene();
    let (address, fetched) = (scene.address(), scene.at("fetched"));
    let fetched = fetched.to_str().unwrap();
    let out = command(&["index", &address, "--fetch-dir", fetched, "--json"])
        .output()
        .unwrap();
    let report = object(&out);
    assert_eq!(report["samples"], SAMPLES);
    assert_eq!(report["classes"], 8);
    let out = command(&["index", &address, "--fetch-dir", fetched, "--share"])
        .output()
        .unwrap();
    let e = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success() && e.contains("is not of tar shards in an object store"),
        "{e}"
    );
}
