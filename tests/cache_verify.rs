//! `cache verify`: one flipped bit anywhere in a cache is named, by file, offset
//! and sample, and nothing else is; and so is all else that can happen to files.
//! `cache info`: what it says is what was built.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use common::{FEATHERLOAD, Picture, Random};
use featherload::Source;
use featherload::cache::{
    self, BuildOptions, Builder, Encoding, Finding, FindingKind, VerifyOptions, VerifyReport,
};
use serde_json::Value;

const SAMPLES: usize = 40;

/// Pictures in three classes, of which one is larger than a read.
fn source() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..SAMPLES {
        let class = dir.path().join(format!("c{}", [0, 0, 1, 2][i % 4]));
        fs::create_dir_all(&class).unwrap();
        let (w, h) = (20 + 7 * (i as u16 % 9), 30 + 5 * (i as u16 % 7));
        let picture = Picture::rgb(w, h, i as u64).encode();
        fs::write(class.join(format!("p{i:02}.jpg")), picture).unwrap();
    }
    let mut large = b"P6 900 700 255\n".to_vec();
    large.extend((0..900 * 700 * 3).map(|i: u32| (i / 7) as u8));
    fs::write(dir.path().join("c1/large.ppm"), large).unwrap();
    dir
}

fn built(source: &Path, options: BuildOptions) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let built = Builder::new(Source::detect(source).unwrap(), dir.path(), options)
        .workers(0)
        .build()
        .unwrap();
    assert!(built.complete && built.shards >= 4, "{built:?}");
    dir
}

/// Some shards of some samples, and one of the large sample alone.
fn small() -> BuildOptions {
    BuildOptions {
        shard_size: 40 << 10,
        ..BuildOptions::default()
    }
}

fn verified(folder: &Path, workers: usize) -> VerifyReport {
    let mut options = VerifyOptions::default();
    options.workers = Some(workers);
    cache::verify(folder, &options, &|_| {}).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A part of a file that one check is of.
#[derive(Debug, Clone)]
struct Unit {
    file: String,
    bytes: Range<u64>,
    kind: FindingKind,
    /// Id and key.
    sample: Option<(u64, String)>,
}

/// All units of a cache, found by other means than ours: tars by the crate `tar`.
fn units(folder: &Path) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    for file in names(folder) {
        let bytes = fs::read(folder.join(&file)).unwrap();
        let mut add = |bytes: Range<u64>, kind, sample| {
            if !bytes.is_empty() {
                let file = file.clone();
                units.push(Unit {
                    file,
                    bytes,
                    kind,
                    sample,
                });
            }
        };
        let len = bytes.len() as u64;
        let whole = match file.rsplit('.').next().unwrap() {
            "json" => FindingKind::Manifest,
            "idx" => FindingKind::Index,
            "fli" => FindingKind::IndexFile,
            "tar" => {
                let mut archive = tar::Archive::new(&bytes[..]);
                for entry in archive.entries().unwrap() {
                    let entry = entry.unwrap();
                    let name = entry.path().unwrap().to_str().unwrap().to_owned();
                    let key = name.split('.').next().unwrap().to_owned();
                    if keys.last() != Some(&key) {
                        keys.push(key.clone());
                    }
                    let sample = Some((keys.len() as u64 - 1, key));
                    let (at, end) = (
                        entry.raw_file_position(),
                        entry.raw_file_position() + entry.size(),
                    );
                    add(
                        entry.raw_header_position()..at,
                        FindingKind::Header,
                        sample.clone(),
                    );
                    add(at..end, FindingKind::Data, sample.clone());
                    add(end..end.next_multiple_of(512), FindingKind::Padding, sample);
                }
                add(len - 1024..len, FindingKind::EndBlocks, None);
                continue;
            }
            other => panic!("a file of {other}"),
        };
        add(0..len, whole, None);
    }
    assert_eq!(keys.len(), SAMPLES + 1);
    units
}

fn flip(path: &Path, at: u64, bit: u32) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
}

#[test]
fn one_flipped_bit_is_named_wherever_it_is() {
    let source = source();
    let raw = BuildOptions {
        encode: Encoding::Raw,
        shard_size: 100 << 10,
        ..BuildOptions::default()
    };
    for options in [small(), raw] {
        let dir = built(source.path(), options);
        let all = units(dir.path());
        let kinds: BTreeSet<FindingKind> = all.iter().map(|u| u.kind).collect();
        assert_eq!(kinds.len(), 7, "{kinds:?}");
        let good = verified(dir.path(), 2);
        assert!(good.is_good(), "{:?}", good.findings);
        let mut random = Random(20);
        let mut seen = BTreeSet::new();
        for n in 0..200 {
            // Each kind as often, whatever part of the bytes it is; and the cache's
            // own manifest, which is one of many.
            let kinds: Vec<_> = kinds.iter().collect();
            let of_kind = all.iter().filter(|u| match n % 8 {
                7 => u.file == "manifest.json",
                kind => u.kind == *kinds[kind],
            });
            let of_kind: Vec<_> = of_kind.collect();
            let unit = of_kind[random.below(of_kind.len() as u64) as usize];
            let at = unit.bytes.start + random.below(unit.bytes.end - unit.bytes.start);
            let (path, bit) = (dir.path().join(&unit.file), random.below(8) as u32);
            flip(&path, at, bit);
            let report = verified(dir.path(), 1 + n % 3);
            flip(&path, at, bit);
            let what = format!("bit {bit} of byte {at} of {unit:?}: {:?}", report.findings);
            let [finding] = &report.findings[..] else {
                panic!("{what}");
            };
            assert_eq!(finding.file, Path::new(&unit.file), "{what}");
            assert_eq!(finding.kind, unit.kind, "{what}");
            assert!(unit.bytes.contains(&finding.offset.unwrap()), "{what}");
            // Where it can be known, it is the byte.
            if matches!(
                unit.kind,
                FindingKind::Header
                    | FindingKind::Padding
                    | FindingKind::EndBlocks
                    | FindingKind::Index
            ) {
                assert_eq!(finding.offset, Some(at), "{what}");
            }
            let sample = finding.sample.as_ref();
            let sample = sample.map(|s| (s.id.unwrap(), s.key.clone()));
            assert_eq!(sample, unit.sample, "{what}");
            seen.insert(unit.file.clone());
        }
        assert!(seen.len() > 8, "{seen:?}");
        assert!(verified(dir.path(), 1).is_good(), "all was put back");
    }
}

/// Every bit of the short files: none is without a part in a checksum.
#[test]
fn every_bit_of_the_cache_manifest_is_noticed() {
    let source = source();
    let dir = built(source.path(), small());
    let path = dir.path().join("manifest.json");
    let len = fs::metadata(&path).unwrap().len();
    for at in 0..len.min(900) {
        flip(&path, at, (at % 8) as u32);
        let report = verified(dir.path(), 1);
        flip(&path, at, (at % 8) as u32);
        assert_eq!(report.found, 1, "{at}: {:?}", report.findings);
        assert_eq!(report.findings[0].kind, FindingKind::Manifest, "{at}");
    }
    // The version is such a bit; that of a later one is an error of its own.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"version\": 1", "\"version\": 3", 1)).unwrap();
    assert_eq!(
        verified(dir.path(), 1).findings[0].kind,
        FindingKind::Manifest
    );
}

#[test]
fn a_good_cache_is_read_once_and_whole_by_any_number_of_threads() {
    let source = source();
    let dir = built(source.path(), small());
    let lengths = names(dir.path()).into_iter();
    let all: u64 = lengths
        .map(|n| fs::metadata(dir.path().join(n)).unwrap().len())
        .sum();
    for workers in [1, 2, 7] {
        let last = std::sync::Mutex::new((0, 0));
        let mut options = VerifyOptions::default();
        options.workers = Some(workers);
        let report = cache::verify(dir.path(), &options, &|p| {
            let mut last = last.lock().unwrap();
            *last = (last.0.max(p.bytes), p.of);
        });
        let report = report.unwrap();
        assert!(report.is_good() && report.complete && report.checksums);
        assert_eq!(report.samples, SAMPLES as u64 + 1);
        assert_eq!(report.bytes, all);
        assert_eq!(last.into_inner().unwrap(), (all, all));
    }
    let mut none = VerifyOptions::default();
    none.workers = Some(0);
    assert!(
        cache::verify(dir.path(), &none, &|_| {})
            .unwrap_err()
            .is_usage()
    );
}

/// File, kind, and which sample.
fn told(findings: &[Finding]) -> Vec<(String, FindingKind, Option<u64>)> {
    let told = |f: &Finding| {
        let id = f.sample.as_ref().and_then(|s| s.id);
        (f.file.display().to_string(), f.kind, id)
    };
    findings.iter().map(told).collect()
}

#[test]
fn files_that_are_cut_long_missing_swapped_or_too_many_are_told() {
    let source = source();
    let dir = built(source.path(), small());
    let at = |name: &str| dir.path().join(name);
    let kept: Vec<_> = names(dir.path())
        .into_iter()
        .map(|name| (fs::read(at(&name)).unwrap(), name))
        .collect();
    let restore = || {
        for name in names(dir.path()) {
            fs::remove_file(at(&name)).unwrap();
        }
        for (bytes, name) in &kept {
            fs::write(at(name), bytes).unwrap();
        }
    };
    let check = || {
        let report = verified(dir.path(), 2);
        restore();
        report.findings
    };
    let tar = "shard-000001.tar";
    let first = units(dir.path());
    let first: Vec<_> = first.iter().filter(|u| u.file == tar).collect();
    let (id, key) = first[0].sample.clone().unwrap();
    let whole = fs::read(at(tar)).unwrap();

    // Cut within the first sample's data: it and all behind it are named.
    fs::write(at(tar), &whole[..600]).unwrap();
    let findings = check();
    let lost: BTreeSet<u64> = findings
        .iter()
        .filter_map(|f| f.sample.as_ref()?.id)
        .collect();
    let due: BTreeSet<u64> = first
        .iter()
        .filter_map(|u| Some(u.sample.as_ref()?.0))
        .collect();
    assert_eq!(lost, due);
    assert!(
        findings
            .iter()
            .all(|f| f.kind == FindingKind::Length && f.file == Path::new(tar))
    );
    assert!(findings.iter().any(|f| {
        f.sample
            .as_ref()
            .is_some_and(|s| s.id == Some(id) && s.key == key)
    }));
    assert!(
        findings
            .iter()
            .any(|f| f.sample.is_none() && f.offset == Some(600))
    );
    // In the end blocks: no sample is hurt.
    fs::write(at(tar), &whole[..whole.len() - 512]).unwrap();
    assert_eq!(told(&check()), [(tar.into(), FindingKind::Length, None)]);
    fs::write(at(tar), [&whole[..], &[0]].concat()).unwrap();
    assert_eq!(told(&check()), [(tar.into(), FindingKind::Length, None)]);
    fs::write(at(tar), b"").unwrap();
    assert!(check().len() > due.len());

    for (_, name) in &kept {
        fs::remove_file(at(name)).unwrap();
        assert_eq!(
            told(&check()),
            [(name.clone(), FindingKind::Missing, None)],
            "{name}"
        );
    }
    for name in kept
        .iter()
        .map(|(_, name)| name)
        .filter(|n| n.starts_with("shard"))
    {
        let extension = name.split_once('.').unwrap().1;
        let other = format!(
            "shard-{:06}.{extension}",
            if name.contains("000002") { 1 } else { 2 }
        );
        let (a, b) = (fs::read(at(name)).unwrap(), fs::read(at(&other)).unwrap());
        fs::write(at(name), b).unwrap();
        fs::write(at(&other), a).unwrap();
        let files: BTreeSet<_> = check()
            .into_iter()
            .map(|f| f.file.display().to_string())
            .collect();
        assert!(
            files.contains(name) && files.contains(&other),
            "{name}: {files:?}"
        );
    }
    // A whole shard in the place of another: each is good, and not that one.
    for extension in ["tar", "idx", "json"] {
        fs::copy(
            at(&format!("shard-000002.{extension}")),
            at(&format!("shard-000001.{extension}")),
        )
        .unwrap();
    }
    let json = ("shard-000001.json".to_owned(), FindingKind::Manifest, None);
    assert!(told(&check()).contains(&json));
    fs::write(at("shard-000099.tar"), &whole).unwrap();
    assert_eq!(
        told(&check()),
        [("shard-000099.tar".into(), FindingKind::Extra, None)]
    );
    fs::write(at("notes.txt"), b"of another").unwrap();
    assert_eq!(told(&check()), []);
    fs::remove_file(at("index.fli")).unwrap();
    fs::create_dir(at("index.fli")).unwrap();
    let report = verified(dir.path(), 1);
    assert_eq!(
        told(&report.findings),
        [("index.fli".into(), FindingKind::Unreadable, None)]
    );
}

/// Without its manifest a tar is gone through by its headers, as far as it goes.
#[test]
fn a_tar_whose_manifest_is_damaged_is_still_gone_through() {
    let source = source();
    let dir = built(source.path(), small());
    let (json, tar) = ("shard-000002.json", "shard-000002.tar");
    let all = units(dir.path());
    flip(&dir.path().join(json), 200, 3);
    let manifest = (json.to_owned(), FindingKind::Manifest, None);
    assert_eq!(
        told(&verified(dir.path(), 2).findings),
        std::slice::from_ref(&manifest)
    );
    let mut kinds = BTreeSet::new();
    let mut random = Random(4);
    for unit in all
        .iter()
        .filter(|u| u.file == tar && u.kind != FindingKind::Data)
    {
        let at = unit.bytes.start + random.below(unit.bytes.end - unit.bytes.start);
        flip(&dir.path().join(tar), at, 2);
        let findings = verified(dir.path(), 2).findings;
        flip(&dir.path().join(tar), at, 2);
        assert!(told(&findings).contains(&manifest));
        let hurt: Vec<_> = findings
            .iter()
            .filter(|f| f.file == Path::new(tar))
            .collect();
        assert!(!hurt.is_empty(), "{at} in {unit:?}");
        let near = unit.bytes.start.saturating_sub(1024)..unit.bytes.end;
        assert!(
            hurt.iter().any(|f| near.contains(&f.offset.unwrap())),
            "{unit:?}: {hurt:?}"
        );
        kinds.insert(unit.kind);
    }
    assert_eq!(kinds.len(), 3);
    // And so are all of them without the cache's manifest.
    fs::remove_file(dir.path().join("manifest.json")).unwrap();
    let findings = verified(dir.path(), 2).findings;
    let missing = ("manifest.json".to_owned(), FindingKind::Missing, None);
    assert_eq!(told(&findings), [missing, manifest]);
}

fn run(args: &[&str], path: &Path) -> Output {
    let path = path.to_str().unwrap();
    Command::new(FEATHERLOAD)
        .args(["cache", args[0], path])
        .args(&args[1..])
        .output()
        .unwrap()
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&[&out.stdout[..], &out.stderr].concat()).into_owned()
}

fn object(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(out)))
}

#[test]
fn the_command_says_what_is_hurt_and_exits_by_it() {
    let source = source();
    let dir = built(source.path(), small());
    let good = run(&["verify"], dir.path());
    assert_eq!(good.status.code(), Some(0), "{}", text(&good));
    assert!(text(&good).contains("good; 41 samples"), "{}", text(&good));
    assert_eq!(
        object(&run(&["verify", "--json"], dir.path()))["good"],
        true
    );

    flip(&dir.path().join("shard-000001.tar"), 700, 0);
    let bad = run(&["verify", "--workers", "1"], dir.path());
    assert_eq!(bad.status.code(), Some(1), "{}", text(&bad));
    for words in [
        "shard-000001.tar at byte 512: data:",
        "DAMAGED: 1 finding",
        "(sample ",
    ] {
        assert!(text(&bad).contains(words), "{words}: {}", text(&bad));
    }
    let report = object(&run(&["verify", "--json"], dir.path()));
    assert_eq!(report["good"], false);
    assert_eq!(report["report"]["findings"][0]["kind"], "data");
    // At most 100 are printed, and all counted.
    fs::write(dir.path().join("shard-000001.tar"), b"").unwrap();
    for i in 0..120 {
        fs::write(dir.path().join(format!("shard-{:06}.idx", 500 + i)), b"").unwrap();
    }
    let many = run(&["verify"], dir.path());
    let lines = text(&many)
        .lines()
        .filter(|l| l.starts_with("shard-"))
        .count();
    assert_eq!(lines, 100, "{}", text(&many));
    assert!(text(&many).contains("more findings"), "{}", text(&many));

    let none = tempfile::tempdir().unwrap();
    for args in [["verify"], ["info"]] {
        let out = run(&args, none.path());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        assert!(text(&out).contains("no cache"), "{}", text(&out));
        let absent = run(&args, &none.path().join("absent"));
        assert_ne!(absent.status.code(), Some(0));
    }
    fs::write(
        none.path().join("manifest.json"),
        "{\"short_name\": \"a page\"}",
    )
    .unwrap();
    assert_eq!(run(&["verify"], none.path()).status.code(), Some(2));
}

#[test]
fn a_shard_of_a_cache_is_checked_by_the_manifest_beside_it() {
    let source = source();
    let cache = built(source.path(), small());
    let tar = cache.path().join("shard-000001.tar");
    let out = run(&["verify"], &tar);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains(": good;"), "{}", text(&out));
    let report = verified(&tar, 2);
    assert!(report.is_good() && report.checksums && report.shards == 1);
    let files = ["tar", "idx", "json"].map(|e| tar.with_extension(e));
    let bytes = files.iter().map(|f| fs::metadata(f).unwrap().len());
    assert_eq!(report.bytes, bytes.sum::<u64>());
    // In the first picture, and in nothing that a header has.
    flip(&tar, 600, 1);
    let out = run(&["verify"], &tar);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    let found = &verified(&tar, 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Data));
    flip(&tar, 600, 1);
    fs::remove_file(&files[1]).unwrap();
    let found = &verified(&tar, 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Missing));
    // Without the manifest nothing is known of the contents.
    fs::remove_file(&files[2]).unwrap();
    let out = run(&["verify"], &tar);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let told = text(&out);
    assert!(
        told.contains("headers are good; there are no checksums"),
        "{told}"
    );
    assert!(!told.contains(": good"), "{told}");
    assert_eq!(
        object(&run(&["verify", "--json"], &tar))["good"],
        Value::Null
    );
}

#[test]
fn tars_of_others_are_gone_through_and_the_lack_of_checksums_is_said() {
    let source = source();
    let cache = built(source.path(), small());
    let dir = tempfile::tempdir().unwrap();
    let tar = dir.path().join("train-0.tar");
    fs::copy(cache.path().join("shard-000001.tar"), &tar).unwrap();
    fs::write(dir.path().join("manifest.json"), "of a page").unwrap();
    for path in [dir.path(), &tar] {
        let out = run(&["verify"], path);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        assert!(
            text(&out).contains("no checksums to compare contents with"),
            "{}",
            text(&out)
        );
    }
    flip(&tar, 5, 1);
    let report = verified(dir.path(), 1);
    assert!(!report.checksums);
    assert_eq!(
        told(&report.findings),
        [("train-0.tar".into(), FindingKind::Header, None)]
    );
    assert_eq!(report.findings[0].offset, Some(0));
    flip(&tar, 5, 1);
    let bytes = fs::read(&tar).unwrap();
    let ends = bytes.len() - 1024;
    for (len, kind) in [
        (600, FindingKind::Length),
        (300, FindingKind::Length),
        (ends, FindingKind::EndBlocks),
    ] {
        fs::write(&tar, &bytes[..len]).unwrap();
        let findings = verified(dir.path(), 1).findings;
        assert_eq!(
            told(&findings),
            [("train-0.tar".into(), kind, None)],
            "{len}"
        );
    }
}

#[test]
fn of_a_build_that_goes_on_the_complete_shards_are_checked() {
    let source = source();
    let dir = tempfile::tempdir().unwrap();
    let builder = Builder::new(Source::detect(source.path()).unwrap(), dir.path(), small());
    let ended = builder
        .workers(0)
        .build_watched(&mut |progress| match progress.shards {
            0..2 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
    assert!(!ended.unwrap().complete);
    fs::write(dir.path().join("shard-000077.tar"), b"begun").unwrap();
    let report = verified(dir.path(), 2);
    assert!(
        report.is_good() && !report.complete,
        "{:?}",
        report.findings
    );
    assert!(report.shards >= 2 && report.samples > 0);
    flip(&dir.path().join("shard-000001.tar"), 700, 0);
    assert_eq!(verified(dir.path(), 2).findings[0].kind, FindingKind::Data);
    let info = cache::info(dir.path()).unwrap();
    assert!(!info.complete && info.samples == report.samples && info.classes.is_empty());
    let out = run(&["info"], dir.path());
    assert!(text(&out).contains("NOT COMPLETE"), "{}", text(&out));
}

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
