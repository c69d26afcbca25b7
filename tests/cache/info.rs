//! `cache info`: what it says is what was built.

use std::fs;

use featherload::cache::{self, BuildOptions};

use crate::scene::text;
use crate::small::{built, flip, names, object, run, small, source};

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
    // Each file of the source and a digit of its class.
    let mut sizes: Vec<u64> = ["c0", "c1", "c2"]
        .iter()
        .flat_map(|c| fs::read_dir(source.path().join(c)).unwrap())
        .map(|e| e.unwrap().metadata().unwrap().len() + 1)
        .collect();
    sizes.sort_unstable();
    let said = info.sample_bytes.unwrap();
    assert_eq!(
        (said.least, said.median, said.most),
        (sizes[0], sizes[20], sizes[40])
    );
    let mean = sizes.iter().sum::<u64>() as f64 / 41.0;
    assert!((said.mean - mean).abs() < 1e-6);
    let reading = info.reading.unwrap();
    assert_eq!((reading.samples, reading.bytes), (41, sizes.iter().sum()));
    assert!(reading.seconds > 0.0 && reading.samples_per_s > 0.0);

    let out = object(&run(&["info", "--json"], dir.path()));
    assert_eq!(out["info"]["classes"][1]["samples"], 11);
    let said = run(&["info"], dir.path());
    for words in [
        "41 samples",
        "encode copy",
        "shuffled by seed 9",
        "largest c0 (20)",
        "page cache",
    ] {
        assert!(text(&said).contains(words), "{words}: {}", text(&said));
    }
    flip(&dir.path().join("manifest.json"), 300, 1);
    let damaged = cache::info(dir.path()).unwrap_err();
    assert!(damaged.is_usage() && damaged.to_string().contains("manifest.json"));
}
