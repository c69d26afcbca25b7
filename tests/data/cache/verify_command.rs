//! `cache verify`: the output and the exit codes of the command.

use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use featherload::Source;
use featherload::cache::{self, CacheBuilder, FindingKind, VerifyFinding};
use serde_json::Value;

use super::scene::text;
use super::small::{built, flip, names, object, run, small, source, summaries, verified};
use crate::common::FEATHERLOAD;

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
    let bad = run(&["verify", "--num-workers", "1"], dir.path());
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
    // People and programs get the same name.
    let index = dir.path().join("index.fli");
    flip(&index, 200, 0);
    let both = run(&["verify"], dir.path());
    let words = "index.fli at byte 0: index file:";
    assert!(text(&both).contains(words), "{}", text(&both));
    let json = object(&run(&["verify", "--json"], dir.path()));
    assert_eq!(json["report"]["findings"][0]["kind"], "index_file");
    flip(&index, 200, 0);
    // At most 100 findings are printed, but all are counted.
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
        assert!(text(&out).contains("not a cache"), "{}", text(&out));
        let absent = run(&args, &none.path().join("absent"));
        assert_eq!(absent.status.code(), Some(2), "{}", text(&absent));
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
    // Damages the first image, and no header.
    flip(&tar, 600, 1);
    let out = run(&["verify"], &tar);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    let found = &verified(&tar, 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Data));
    flip(&tar, 600, 1);
    fs::remove_file(&files[1]).unwrap();
    let found = &verified(&tar, 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Missing));
    // For a shard without its manifest, the cache's manifest still has the length.
    fs::remove_file(&files[2]).unwrap();
    let missing =
        |findings: &[VerifyFinding]| findings.iter().all(|f| f.kind == FindingKind::Missing);
    let found = verified(&tar, 1).findings;
    assert!(found.len() == 2 && missing(&found), "{found:?}");
    assert_eq!(run(&["verify"], &tar).status.code(), Some(1));
    assert_eq!(
        summaries(&found),
        summaries(&verified(cache.path(), 1).findings)
    );
    let whole = fs::read(&tar).unwrap();
    fs::write(&tar, &whole[..whole.len() - 512]).unwrap();
    let found = verified(&tar, 1).findings;
    assert!(
        found.iter().any(|f| f.kind == FindingKind::Length),
        "{found:?}"
    );
    fs::write(&tar, &whole).unwrap();
    // Without both manifests, nothing is known about the contents.
    fs::remove_file(cache.path().join("manifest.json")).unwrap();
    let out = run(&["verify"], &tar);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let printed = text(&out);
    assert!(
        printed.contains("headers are good; there are no checksums"),
        "{printed}"
    );
    assert!(!printed.contains(": good"), "{printed}");
    assert_eq!(
        object(&run(&["verify", "--json"], &tar))["good"],
        Value::Null
    );
}

#[test]
fn a_shard_of_another_version_is_refused_as_its_cache_is() {
    let source = source();
    let cache = built(source.path(), small());
    // Manifests as an earlier version wrote them, with other fields too.
    let earlier = |name: &str, field: &str| {
        let path = cache.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        let of_one = text.replacen(&format!("{field}2"), &format!("{field}1"), 1);
        let renamed = of_one.replacen("\"samples\"", "\"records\"", 1);
        assert_ne!(of_one, renamed);
        fs::write(path, renamed).unwrap();
    };
    earlier("shard-000001.json", "\"version\":");
    let tar = cache.path().join("shard-000001.tar");
    // A cache of this version cannot have such a shard.
    for path in [cache.path(), &tar] {
        let out = run(&["verify"], path);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    }
    earlier("manifest.json", "\"version\": ");
    let refused = |path: &Path| {
        let out = run(&["verify"], path);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        assert!(text(&out).contains("of version 1"), "{}", text(&out));
    };
    refused(cache.path());
    refused(&tar);
    // Also without the cache's manifest.
    fs::remove_file(cache.path().join("manifest.json")).unwrap();
    refused(&tar);
}

#[test]
fn a_file_that_is_no_tar_is_refused_with_what_to_give() {
    let source = source();
    let cache = built(source.path(), small());
    let names = ["manifest.json", "index.fli", "shard-000001.idx"];
    for name in names.iter().chain(&["shard-000001.json"]) {
        let out = run(&["verify"], &cache.path().join(name));
        assert_eq!(out.status.code(), Some(2), "{name}: {}", text(&out));
        assert!(text(&out).contains("not a tar archive"), "{}", text(&out));
        assert!(text(&out).contains("give the cache's folder"));
        assert!(!text(&out).contains("DAMAGED"), "{}", text(&out));
    }
    let dir = tempfile::tempdir().unwrap();
    let compressed = [&b"\x1f\x8b\x08"[..], &[7; 3000]].concat();
    for name in ["x.tgz", "shard-000001.tar"] {
        let tgz = dir.path().join(name);
        fs::write(&tgz, &compressed).unwrap();
        let path = tgz.to_str().unwrap();
        let out = run(&["verify"], &tgz);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        // The same text as from a command that reads it.
        let index = Command::new(FEATHERLOAD).args(["index", path]).output();
        let index = text(&index.unwrap());
        assert!(index.contains("compressed by gzip"), "{index}");
        assert!(text(&out).contains(index.trim_end()), "{}", text(&out));
    }
    let absent = run(&["verify"], &dir.path().join("absent"));
    assert_eq!(absent.status.code(), Some(2), "{}", text(&absent));
    assert!(text(&absent).contains("no such file or folder"));

    // A tar beside its manifest counts as a shard, whatever is left of it.
    let tar = cache.path().join("shard-000001.tar");
    flip(&tar, 5, 1);
    let found = verified(&tar, 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Header));
    fs::write(&tar, &compressed).unwrap();
    for is_gone in [false, true] {
        if is_gone {
            fs::remove_file(tar.with_extension("json")).unwrap();
        }
        let out = run(&["verify"], &tar);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out));
        assert!(text(&out).contains("DAMAGED"), "{}", text(&out));
    }
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
        summaries(&report.findings),
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
            summaries(&findings),
            [("train-0.tar".into(), kind, None)],
            "{len}"
        );
    }
}

#[test]
fn shards_of_others_that_are_called_as_ours_are_theirs() {
    let source = source();
    let cache = built(source.path(), small());
    let dir = tempfile::tempdir().unwrap();
    let stats = "{\"format\":\"webdataset\",\"samples\":9,\"bytes\":4096}";
    for stem in [
        "shard-000000",
        "shard-20240131",
        "shard-18446744073709551615",
    ] {
        let tar = dir.path().join(stem).with_extension("tar");
        fs::copy(cache.path().join("shard-000001.tar"), &tar).unwrap();
        fs::write(tar.with_extension("json"), stats).unwrap();
        for path in [dir.path(), &tar] {
            let out = run(&["verify"], path);
            assert_eq!(out.status.code(), Some(0), "{}", text(&out));
            let words = "headers are good; there are no checksums";
            assert!(text(&out).contains(words), "{}", text(&out));
        }
    }
    // A saved index beside foreign tars does not make them a cache.
    let (tars, index) = (dir.path().join("*.tar"), dir.path().join("index.fli"));
    let saved = Command::new(FEATHERLOAD)
        .arg("index")
        .args([&tars, Path::new("--save"), &index])
        .output();
    assert!(index.exists(), "{}", text(&saved.unwrap()));
    let report = verified(dir.path(), 2);
    assert!(report.is_good() && !report.checksums && report.shards == 3);
    assert_eq!(
        report.bytes,
        3 * fs::metadata(cache.path().join("shard-000001.tar"))
            .unwrap()
            .len()
    );
}

/// A number in a name does not decide how many shards are looked for.
#[test]
fn without_a_manifest_the_shards_that_are_there_are_checked_and_gaps_told() {
    let source = source();
    let cache = built(source.path(), small());
    let at = |name: &str| cache.path().join(name);
    let report = verified(cache.path(), 1);
    for extension in ["tar", "idx", "json"] {
        fs::remove_file(at("shard-000001").with_extension(extension)).unwrap();
    }
    fs::remove_file(at("manifest.json")).unwrap();
    let missing = |name: &str| (name.to_owned(), FindingKind::Missing, None);
    let found = verified(cache.path(), 2);
    let lost = [missing("manifest.json"), missing("shard-000001.tar")];
    assert_eq!(summaries(&found.findings), lost);
    assert_eq!(found.shards, report.shards - 1);
    for number in [20_240_131, u64::MAX] {
        let stray = at(&format!("shard-{number}.tar"));
        fs::copy(at("shard-000000.tar"), &stray).unwrap();
        let found = verified(cache.path(), 2);
        let gap = missing(&format!("shard-{:06}.tar", report.shards));
        assert_eq!(found.found, 5, "{:?}", found.findings);
        assert!(
            summaries(&found.findings).contains(&gap),
            "{:?}",
            found.findings
        );
        assert_eq!(found.shards, report.shards);
        fs::remove_file(&stray).unwrap();
    }
}

/// A folder whose manifests are all damaged still counts as a cache.
#[test]
fn a_cache_is_told_from_tars_of_others_by_what_is_left_of_it() {
    let source = source();
    let cache = built(source.path(), small());
    let tar = cache.path().join("shard-000001.tar");
    // Damages the beginning, by which it would be recognised.
    flip(&tar.with_extension("json"), 12, 1);
    let json = ("shard-000001.json".to_owned(), FindingKind::Manifest, None);
    for path in [cache.path(), &tar] {
        let report = verified(path, 1);
        assert!(report.checksums, "{}", path.display());
        assert_eq!(summaries(&report.findings), std::slice::from_ref(&json));
    }
    for name in names(cache.path()) {
        if name.ends_with("json") {
            fs::remove_file(cache.path().join(name)).unwrap();
        }
    }
    // Recognised by its index alone.
    let report = verified(cache.path(), 1);
    assert!(report.checksums && !report.is_good());
    fs::remove_file(cache.path().join("index.fli")).unwrap();
    assert!(!verified(cache.path(), 1).checksums);
}

#[test]
fn a_tar_of_any_name_is_gone_through() {
    let source = source();
    let cache = built(source.path(), small());
    let dir = tempfile::tempdir().unwrap();
    let add = |name: &OsStr| {
        let tar = dir.path().join(name);
        fs::copy(cache.path().join("shard-000001.tar"), &tar).unwrap();
        tar
    };
    let no_text = add(OsStr::from_bytes(b"\xff.tar"));
    let samples = verified(dir.path(), 1).samples;
    assert!(samples > 0, "alone");
    add(OsStr::new("a.TAR"));
    let report = verified(dir.path(), 1);
    assert!(report.is_good() && !report.checksums);
    assert_eq!((report.shards, report.samples), (2, 2 * samples));
    flip(&no_text, 5, 1);
    let found = verified(dir.path(), 1).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Header));
    assert_eq!(found[0].file, OsStr::from_bytes(b"\xff.tar"));
    let out = run(&["verify"], dir.path());
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
}

#[test]
fn of_a_build_that_goes_on_the_complete_shards_are_checked() {
    let source = source();
    let dir = tempfile::tempdir().unwrap();
    let builder = CacheBuilder::new(Source::detect(source.path()).unwrap(), dir.path(), small());
    let ended = builder
        .num_workers(0)
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
    // For a job that checks the exit code, this is not a cache to train on.
    let out = run(&["verify"], dir.path());
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    let words = "NOT COMPLETE: the shards that are there are good; run the build again";
    assert!(text(&out).contains(words), "{}", text(&out));
    let json = run(&["verify", "--json"], dir.path());
    assert_eq!(json.status.code(), Some(1));
    assert_eq!(object(&json)["good"], false);
    assert_eq!(object(&json)["report"]["complete"], false);
    flip(&dir.path().join("shard-000001.tar"), 700, 0);
    assert_eq!(verified(dir.path(), 2).findings[0].kind, FindingKind::Data);
    let out = run(&["verify"], dir.path());
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    for words in ["DAMAGED: 1 finding", "NOT COMPLETE"] {
        assert!(text(&out).contains(words), "{}", text(&out));
    }
    assert!(!text(&out).contains("are good"), "{}", text(&out));
    let info = cache::info(dir.path()).unwrap();
    assert!(!info.complete && info.samples == report.samples && info.classes.is_empty());
    let out = run(&["info"], dir.path());
    assert!(text(&out).contains("NOT COMPLETE"), "{}", text(&out));
}
