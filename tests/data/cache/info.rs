//! `cache info`: its output matches the cache that was built.

use std::fs;
use std::path::Path;

use featherload::Source;
use featherload::cache::{self, BuildOptions, CacheBuilder};

use super::scene::{assert_same, files, text};
use super::small::{built, flip, names, object, run, small, source};

#[test]
fn info_says_what_was_built() {
    let source = source();
    let options = BuildOptions {
        shuffle: Some(9),
        ..small()
    };
    let dir = built(source.path(), options);
    let info = cache::info(dir.path()).unwrap();
    assert!(info.complete);
    assert_eq!(
        (info.samples, info.source_samples, info.skipped),
        (41, 41, 0)
    );
    assert_eq!((info.encode.as_str(), info.shuffle), ("copy", Some(9)));
    assert_eq!((info.shard_size, info.label_width), (40 << 10, 1));
    let files = names(dir.path());
    let length = |name: &String| fs::metadata(dir.path().join(name)).unwrap().len();
    assert_eq!(info.bytes, files.iter().map(length).sum::<u64>());
    let tars: Vec<_> = files.iter().filter(|n| n.ends_with(".tar")).collect();
    assert_eq!(info.shards, tars.len() as u64);
    assert_eq!(info.tar_bytes, tars.into_iter().map(length).sum::<u64>());
    let counts: Vec<_> = info
        .classes
        .iter()
        .map(|c| (c.name.as_deref().unwrap(), c.samples))
        .collect();
    assert_eq!(counts, [("c0", 20), ("c1", 11), ("c2", 10)]);
    assert_eq!(info.smallest_class.unwrap().samples, 10);
    assert_eq!(info.largest_class.unwrap().number, 0);
    // Each file of the source, and one digit for its class.
    let mut sizes: Vec<u64> = ["c0", "c1", "c2"]
        .iter()
        .flat_map(|c| fs::read_dir(source.path().join(c)).unwrap())
        .map(|e| e.unwrap().metadata().unwrap().len() + 1)
        .collect();
    sizes.sort_unstable();
    let message = info.sample_bytes.unwrap();
    assert_eq!(
        (message.least, message.median, message.most),
        (sizes[0], sizes[20], sizes[40])
    );
    let mean = sizes.iter().sum::<u64>() as f64 / 41.0;
    assert!((message.mean - mean).abs() < 1e-6);
    let reading = info.reading.unwrap();
    assert_eq!((reading.samples, reading.bytes), (41, sizes.iter().sum()));
    assert!(reading.seconds > 0.0 && reading.samples_per_s > 0.0);

    let out = object(&run(&["info", "--json"], dir.path()));
    assert_eq!(out["info"]["classes"][1]["samples"], 11);
    let message = run(&["info"], dir.path());
    for words in [
        "41 samples",
        "encode copy",
        "shuffled by seed 9",
        "largest c0 (20)",
        "page cache",
    ] {
        assert!(
            text(&message).contains(words),
            "{words}: {}",
            text(&message)
        );
    }
    flip(&dir.path().join("manifest.json"), 300, 1);
    let damaged = cache::info(dir.path()).unwrap_err();
    assert!(damaged.is_usage() && damaged.to_string().contains("manifest.json"));
}

/// The error states the repair, and the repair works.
#[test]
fn a_cache_that_lacks_a_shard_is_refused_with_what_mends_it() {
    let source = source();
    let dir = built(source.path(), small());
    let whole = files(dir.path());
    let folder = dir.path().to_str().unwrap();
    type Hurt = fn(&Path);
    let cut: Hurt = |tar| {
        let file = fs::File::options().write(true).open(tar).unwrap();
        file.set_len(700).unwrap();
    };
    let removed: Hurt = |path| fs::remove_file(path).unwrap();
    let flipped: Hurt = |path| flip(path, 200, 3);
    // The last shard too: reading samples may have ended before it.
    let last = format!("shard-{:06}", whole.len() as u64 / 3 - 1);
    let hurts: [(&str, &str, Hurt, &str); 5] = [
        (
            "shard-000001",
            "json",
            removed,
            "shard-000001.json is missing",
        ),
        (
            "shard-000001",
            "json",
            flipped,
            "shard-000001.json is damaged",
        ),
        (
            "shard-000001",
            "tar",
            removed,
            "shard-000001.tar is missing",
        ),
        (&last, "tar", removed, ".tar is missing"),
        (&last, "tar", cut, ".tar has 700 bytes"),
    ];
    for (shard, extension, hurt, words) in hurts {
        hurt(&dir.path().join(shard).with_extension(extension));
        let out = run(&["info"], dir.path());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        for words in [folder, shard, words, "cache verify", "cache build"] {
            assert!(text(&out).contains(words), "{words}: {}", text(&out));
        }
        let again = CacheBuilder::new(Source::detect(source.path()).unwrap(), dir.path(), small());
        assert!(again.num_workers(0).build().unwrap().complete);
        assert_same(&whole, &files(dir.path()), words);
        assert_eq!(cache::info(dir.path()).unwrap().samples, 41);
    }
}

#[test]
fn of_a_link_whose_target_is_away_the_build_and_info_say_the_same() {
    let source = source();
    let dir = built(source.path(), small());
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["shard-000001.tar", "shard-000001.json", "manifest.json"] {
        let (file, away) = (dir.path().join(name), elsewhere.path().join("away"));
        fs::rename(&file, elsewhere.path().join("aside")).unwrap();
        std::os::unix::fs::symlink(&away, &file).unwrap();
        let out = run(&["info"], dir.path());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        let detected = Source::detect(source.path()).unwrap();
        let build = CacheBuilder::new(detected, dir.path(), small())
            .num_workers(0)
            .build();
        let e = build.unwrap_err();
        assert!(e.is_usage(), "{e:?}");
        for words in [name, "a link to", "away", "mount its disk"] {
            assert!(text(&out).contains(words), "{words}: {}", text(&out));
            assert!(e.to_string().contains(words), "{words}: {e}");
        }
        fs::rename(elsewhere.path().join("aside"), &file).unwrap();
        assert_eq!(cache::info(dir.path()).unwrap().samples, 41);
    }
}

#[test]
fn what_is_no_cache_is_refused_with_what_to_give() {
    let source = source();
    let dir = built(source.path(), small());
    let tar = dir.path().join("shard-000001.tar");
    let out = run(&["info"], &tar);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    for words in [
        "is not a cache",
        "a cache is a folder",
        "use `featherload index`",
    ] {
        assert!(text(&out).contains(words), "{words}: {}", text(&out));
    }
    let tars = tempfile::tempdir().unwrap();
    fs::copy(&tar, tars.path().join("train-0.tar")).unwrap();
    let out = run(&["info"], tars.path());
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    for words in ["it has no manifest.json", "use `featherload index`"] {
        assert!(text(&out).contains(words), "{words}: {}", text(&out));
    }
}
