//! Text files beside images, kept as a column of a cache: here and in a store, and changed ones.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use featherload::cache::{BuildOptions, BuildPart, BuildPhase, CacheBuilder, CacheEncoding};
use featherload::fetch::{FetchOptions, StoreAddress};
use featherload::{CaptionRule, Loader, MissingCaption, Source};

use super::scene::{assert_same, files};
use super::small::verified;
use crate::common::command::{command, refusal};
use crate::common::{FEATHERLOAD, data};

const SAMPLES: u64 = 10;

struct Scene {
    dir: tempfile::TempDir,
    images: PathBuf,
}

/// Ten images. All but one have a text.
fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    crate::common::class_folder(&images, 2, 5);
    let scene = Scene { dir, images };
    for id in (0..SAMPLES).filter(|id| *id != 7) {
        fs::write(scene.text(id), format!("tag {id}, b, c\n")).unwrap();
    }
    scene
}

impl Scene {
    fn text(&self, id: u64) -> PathBuf {
        self.images
            .join(format!("class{}/{:03}.txt", id / 5, id % 5))
    }

    fn source(&self) -> Source {
        Source::detect(&self.images).unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn builder(&self, name: &str) -> CacheBuilder {
        let options = BuildOptions {
            encode: CacheEncoding::Copy,
            shard_samples: Some(3),
            ..BuildOptions::default()
        };
        CacheBuilder::new(self.source(), self.at(name), options)
            .helper(FEATHERLOAD)
            .num_workers(0)
            .columns([".txt"])
    }
}

/// The captions of all samples in two epochs.
fn captions(source: Source) -> BTreeMap<(u64, u64), String> {
    let rule = CaptionRule {
        shuffle: true,
        missing: MissingCaption::Empty,
        ..CaptionRule::of_column(".txt")
    };
    let b = Loader::builder(source).helper(FEATHERLOAD).num_workers(0);
    let mut loader = b.captions(rule).batch_size(4).build().unwrap();
    let mut all = BTreeMap::new();
    for _ in 0..2 {
        for batch in loader.epoch() {
            let batch = batch.unwrap();
            assert_eq!(batch.columns().names().count(), 0);
            let of_rows = batch.ids().iter().zip(batch.captions().unwrap());
            all.extend(of_rows.map(|(id, caption)| ((batch.epoch(), *id), caption)));
        }
    }
    all
}

#[test]
fn a_cache_keeps_the_texts_of_its_folder() {
    let scene = scene();
    let want = captions(scene.source());
    assert_eq!(want.len(), 2 * SAMPLES as usize);
    assert_eq!(want[&(0, 7)], "");
    assert!(want[&(0, 3)].contains("tag 3"), "{want:?}");
    let report = scene.builder("cache").build().unwrap();
    assert!(report.complete && report.needed_bytes >= report.bytes);
    assert!(verified(&scene.at("cache"), 1).is_good());
    // Without the source.
    let moved = scene.at("moved");
    let cache = || Source::detect(scene.at("cache")).unwrap();
    fs::rename(&scene.images, &moved).unwrap();
    assert_eq!(captions(cache()), want);
    fs::rename(&moved, &scene.images).unwrap();
    // In shares, and by the command line.
    for number in 0..3 {
        let share = BuildPart::Share { number, of: 3 };
        scene.builder("shares").part(share).build().unwrap();
    }
    let finish = scene.builder("shares").part(BuildPart::Finish);
    finish.build().unwrap();
    assert_same(&files(&scene.at("cache")), &files(&scene.at("shares")), "");
    let (from, to) = (&scene.images, scene.at("command"));
    let words = [
        "cache",
        "build",
        from.to_str().unwrap(),
        to.to_str().unwrap(),
    ];
    let mut build = command(&words);
    build.args(["--shard-samples", "3", "--columns", ".txt"]);
    assert!(build.output().unwrap().status.success());
    assert_same(&files(&scene.at("cache")), &files(&to), "command");
}

/// Values of a store's cache are read with the batch, that of captions as well.
#[test]
fn a_cache_in_a_store_has_captions() {
    let scene = scene();
    let store = scene.at("store");
    fs::create_dir(&store).unwrap();
    let address = format!("file://{}/set", store.display());
    scene.builder("cache").build().unwrap();
    fs::rename(scene.at("cache"), store.join("set")).unwrap();
    let mut options = FetchOptions::default();
    options.dir = Some(scene.at("fetched"));
    let there = Source::Store(StoreAddress::parse(&address).unwrap(), options);
    assert_eq!(captions(there), captions(scene.source()));
}

#[test]
fn other_texts_are_another_source() {
    let scene = scene();
    scene.builder("cache").build().unwrap();
    let again = scene.builder("cache").build().unwrap();
    assert_eq!(again.kept_samples, SAMPLES);
    let refused = || scene.builder("cache").build().unwrap_err().to_string();
    // One more text, one changed, one less.
    fs::write(scene.text(7), "new").unwrap();
    assert!(refused().contains("files of the source have changed"));
    fs::remove_file(scene.text(7)).unwrap();
    assert_eq!(
        scene.builder("cache").build().unwrap().kept_samples,
        SAMPLES
    );
    fs::write(scene.text(2), "changed").unwrap();
    assert!(refused().contains("files of the source have changed"));
    let report = scene.builder("cache").force(true).build().unwrap();
    assert!(report.complete);
    let cache = Source::detect(scene.at("cache")).unwrap();
    assert_eq!(captions(cache)[&(0, 2)], "changed");
    fs::remove_file(scene.text(3)).unwrap();
    assert!(refused().contains("files of the source have changed"));
    // A cache without the column does not know the texts.
    let plain = || scene.builder("plain").columns([""; 0]).build().unwrap();
    plain();
    fs::write(scene.text(3), "back").unwrap();
    assert_eq!(plain().kept_samples, SAMPLES);
}

#[test]
fn a_text_that_changes_during_a_build_ends_it() {
    let scene = scene();
    for (name, part) in [("whole", None), ("share", Some((0, 2)))] {
        let mut build = scene.builder(name);
        if let Some((number, of)) = part {
            build = build.part(BuildPart::Share { number, of });
        }
        let mut is_written = false;
        let e = build.build_watched(&mut |progress| {
            if progress.phase == BuildPhase::Writing && !is_written {
                is_written = true;
                // Clocks of file systems tick every few milliseconds.
                std::thread::sleep(Duration::from_millis(30));
                fs::write(scene.text(1), format!("changed {name}")).unwrap();
            }
            ControlFlow::Continue(())
        });
        let e = e.unwrap_err().to_string();
        assert!(e.contains("changed"), "{e}");
        let manifest = fs::read_to_string(scene.at(name).join("manifest.json"));
        assert!(!manifest.unwrap_or_default().contains("\"complete\": true"));
    }
}

#[test]
fn texts_that_cannot_be_kept_are_named() {
    let scene = scene();
    fs::write(scene.text(4), vec![b'a'; (64 << 10) + 1]).unwrap();
    let e = scene.builder("cache").build().unwrap_err().to_string();
    assert!(
        e.contains("class0/004.txt") && e.contains("longer than"),
        "{e}"
    );
    assert!(!scene.at("cache").exists());
    let other = data(1, 2);
    let to = scene.at("none");
    let words = [other.path(), &*to].map(|path| path.to_str().unwrap().to_owned());
    let mut build = command(&["cache", "build", &words[0], &words[1]]);
    build.args(["--columns", ".txt"]);
    let e = refusal(&build.output().unwrap());
    assert!(e.contains("000.txt") && e.contains("does not exist"), "{e}");
}
