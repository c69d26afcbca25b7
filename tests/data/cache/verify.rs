//! `cache verify`: one flipped bit anywhere in a cache is reported with its file, offset and
//! sample, and nothing else is. So is other damage to files.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use featherload::cache::{self, BuildOptions, CacheEncoding, FindingKind, VerifyOptions};

use super::small::{SAMPLES, built, flip, names, small, source, summaries, verified};
use crate::common::Random;

/// A part of a file that one check covers.
#[derive(Debug, Clone)]
struct Unit {
    file: String,
    bytes: Range<u64>,
    kind: FindingKind,
    /// Id and key.
    sample: Option<(u64, String)>,
}

/// All units of a cache, found without our own code: the `tar` crate reads the tars.
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

#[test]
fn one_flipped_bit_is_named_wherever_it_is() {
    let source = source();
    let raw = BuildOptions {
        encode: CacheEncoding::Raw,
        shard_size: Some(100 << 10),
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
            // Tests each kind equally often, whatever its share of the bytes. Tests the cache's
            // manifest as often as a kind: it is one of many.
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
            // If the exact byte can be known, the offset is that byte.
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

/// Every bit of the short files is covered by a checksum.
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
    // A changed version number is damage. Only an intact manifest of another version has an error
    // of its own.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"version\": 2", "\"version\": 3", 1)).unwrap();
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
        options.num_workers = Some(workers);
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
    none.num_workers = Some(0);
    assert!(
        cache::verify(dir.path(), &none, &|_| {})
            .unwrap_err()
            .is_usage()
    );
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

    // Truncated within the data of the first sample: that sample and all after it are reported.
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
    // Truncated in the end blocks: no sample is damaged.
    fs::write(at(tar), &whole[..whole.len() - 512]).unwrap();
    assert_eq!(
        summaries(&check()),
        [(tar.into(), FindingKind::Length, None)]
    );
    fs::write(at(tar), [&whole[..], &[0]].concat()).unwrap();
    assert_eq!(
        summaries(&check()),
        [(tar.into(), FindingKind::Length, None)]
    );
    fs::write(at(tar), b"").unwrap();
    assert!(check().len() > due.len());

    for (_, name) in &kept {
        fs::remove_file(at(name)).unwrap();
        assert_eq!(
            summaries(&check()),
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
    // A whole shard in place of another: it is intact, but not the right one.
    for extension in ["tar", "idx", "json"] {
        fs::copy(
            at(&format!("shard-000002.{extension}")),
            at(&format!("shard-000001.{extension}")),
        )
        .unwrap();
    }
    let json = ("shard-000001.json".to_owned(), FindingKind::Manifest, None);
    assert!(summaries(&check()).contains(&json));
    fs::write(at("shard-000099.tar"), &whole).unwrap();
    assert_eq!(
        summaries(&check()),
        [("shard-000099.tar".into(), FindingKind::Extra, None)]
    );
    fs::write(at("notes.txt"), b"of another").unwrap();
    assert_eq!(summaries(&check()), []);
    fs::remove_file(at("index.fli")).unwrap();
    fs::create_dir(at("index.fli")).unwrap();
    let report = verified(dir.path(), 1);
    assert_eq!(
        summaries(&report.findings),
        [("index.fli".into(), FindingKind::Unreadable, None)]
    );
}

/// Without its manifest, a tar is checked header by header, as far as possible.
#[test]
fn a_tar_whose_manifest_is_damaged_is_still_gone_through() {
    let source = source();
    let dir = built(source.path(), small());
    let (json, tar) = ("shard-000002.json", "shard-000002.tar");
    let all = units(dir.path());
    flip(&dir.path().join(json), 200, 3);
    let manifest = (json.to_owned(), FindingKind::Manifest, None);
    assert_eq!(
        summaries(&verified(dir.path(), 2).findings),
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
        assert!(summaries(&findings).contains(&manifest));
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
    // All tars are, if the cache's manifest is missing too.
    fs::remove_file(dir.path().join("manifest.json")).unwrap();
    let findings = verified(dir.path(), 2).findings;
    let missing = ("manifest.json".to_owned(), FindingKind::Missing, None);
    assert_eq!(summaries(&findings), [missing, manifest]);
}

/// An archive ends in zeros. Zeros in place of samples do not count as its end, whatever is known
/// about the shard.
#[test]
fn a_shard_that_ends_early_or_late_is_told_with_its_manifest_and_without() {
    let source = source();
    let dir = built(source.path(), small());
    let (json, tar) = ("shard-000002.json", "shard-000002.tar");
    let headers = units(dir.path()).into_iter();
    let headers: Vec<u64> = headers
        .filter(|u| u.file == tar && u.kind == FindingKind::Header)
        .map(|u| u.bytes.start)
        .collect();
    let path = dir.path().join(tar);
    let whole = fs::read(&path).unwrap();
    let last = headers[headers.len() - 2] as usize;
    let mut zeroed = whole.clone();
    zeroed[last..].fill(0);
    let longer = |by: usize| [&whole[..], &vec![0; by]].concat();
    let hurts = [
        zeroed,
        longer(512),
        longer(8192),
        longer(3 << 20),
        [&whole[..], &[1]].concat(),
        [&whole[..], &[7; 512]].concat(),
        [&whole[..], &whole[..]].concat(),
    ];
    let check = |what: &str| {
        for (n, hurt) in hurts.iter().enumerate() {
            fs::write(&path, hurt).unwrap();
            let findings = verified(dir.path(), 1).findings;
            let of_tar = findings.iter().any(|f| f.file == Path::new(tar));
            assert!(of_tar, "{what}, {n}: {findings:?}");
        }
        fs::write(&path, &whole).unwrap();
        let findings = verified(dir.path(), 1).findings;
        assert!(findings.iter().all(|f| f.file != Path::new(tar)));
    };
    check("a cache");
    let one = verified(&path, 1);
    assert!(one.is_good() && one.checksums);
    // The cache's manifest has the length of the shard, but not its content.
    flip(&dir.path().join(json), 200, 3);
    check("a damaged manifest");
    fs::remove_file(dir.path().join("manifest.json")).unwrap();
    check("no manifest of the cache");
}
