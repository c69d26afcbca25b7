//! Shards on the command line: lists, damage, and what is refused.

use std::fs::{self, File};
use std::path::Path;

use featherload::index::SkipReason;
use featherload::{Index, Source};

use super::scene::{featherload, labelled, options, shard, shards_of, text};
use crate::common::command::object;
use crate::common::data;

#[test]
fn the_command_line_digests_shards_as_the_folder() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    shards_of(folder.path(), tars.path(), 5);
    let digest = |source: &Path, more: &[&str]| {
        let mut args = vec!["bench", source.to_str().unwrap()];
        args.extend([
            "--json",
            "--batch-size",
            "4",
            "--num-workers",
            "2",
            "--digest",
        ]);
        args.extend(more);
        object(&featherload(cache.path(), &args))["digest"].clone()
    };
    let want = digest(folder.path(), &[]);
    assert!(want.is_string());
    assert_eq!(digest(&tars.path().join("part-{000..002}.tar"), &[]), want);
    // The second time the index is kept, in the user's cache.
    let kept = || fs::read_dir(cache.path().join("featherload")).map_or(0, Iterator::count);
    assert_eq!(kept(), 1);
    assert_eq!(digest(&tars.path().join("part-{000..002}.tar"), &[]), want);
    let globbed = tars.path().join("part-*.tar");
    assert_eq!(digest(&globbed, &["--index-dir", "none"]), want);
    assert_eq!(kept(), 1);
    let own = tars.path().join("own");
    let own_text = own.to_str().unwrap();
    assert_eq!(digest(&globbed, &["--index-dir", own_text]), want);
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
    assert_ne!(digest(&globbed, &["--labels", "none"]), want);
    assert_eq!(digest(&globbed, &["--label-field", "cls"]), want);
    assert_eq!(digest(&globbed, &["--label-json", "/of/name"]), want);
}

#[test]
fn a_damaged_tail_warns_with_counts_and_ends_with_0() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 6);
    let pattern = tars.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let out = featherload(cache.path(), &["index", pattern, "--write-idx"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("2 DALI indexes"),
        "{}",
        text(&out.stdout)
    );
    let idx = fs::read_to_string(shards[1].with_extension("idx")).unwrap();
    assert!(idx.starts_with("v1.2 6\njpg 512 "), "{idx}");

    let len = fs::metadata(&shards[1]).unwrap().len();
    let file = File::options().write(true).open(&shards[1]).unwrap();
    file.set_len(len / 2).unwrap();
    drop(file);
    let args = [
        "bench",
        pattern,
        "--json",
        "--batch-size",
        "4",
        "--num-workers",
        "1",
    ];
    // Each time: such an index is not kept.
    for _ in 0..2 {
        let out = featherload(cache.path(), &args);
        object(&out);
        let printed = text(&out.stderr);
        let line = printed
            .lines()
            .find(|line| line.starts_with("warning: "))
            .unwrap_or(&printed);
        assert!(line.contains("part-001.tar: cut off"), "{printed}");
        assert!(line.contains("samples lost"), "{printed}");
    }
    let found = object(&featherload(cache.path(), &["index", pattern, "--json"]));
    let damaged = &found["damaged"][0];
    let lost = damaged["samples_incomplete"].as_u64().unwrap()
        + damaged["samples_missing"].as_u64().unwrap();
    assert_eq!(found["samples"].as_u64().unwrap() + lost, 12);
    assert!(lost > 0 && found["damaged"].as_array().unwrap().len() == 1);
}

#[test]
fn every_command_that_opens_shards_tells_what_is_lost_and_left_out() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 6);
    shard(&tars.path().join("part-002.tar"), &[]);
    let len = fs::metadata(&shards[1]).unwrap().len();
    let file = File::options().write(true).open(&shards[1]).unwrap();
    file.set_len(len / 2).unwrap();
    drop(file);
    let pattern = tars.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let printed = |args: &[&str]| {
        let out = featherload(cache.path(), args);
        let message = text(&out.stderr);
        assert!(message.contains("warning: "), "{args:?}: {message}");
        assert!(
            message.contains("part-001.tar: cut off"),
            "{args:?}: {message}"
        );
        let left = "left out: 1 x empty shard (such as part-002.tar)";
        assert!(message.contains(left), "{args:?}: {message}");
        out
    };
    printed(&["plan", pattern]);
    let index = object(&featherload(cache.path(), &["index", pattern, "--json"]));
    let ceiling = "--ceiling full --pairs 1 --window 0.05 --num-workers 0";
    for (command, more) in [
        ("plan", "--num-workers 1"),
        ("bench", "--num-workers 0"),
        ("bench", ceiling),
        ("rss", "--num-workers 1 --seconds 0.5"),
    ] {
        let mut args = vec![command, pattern, "--json", "--batch-size", "4"];
        args.extend(more.split(' '));
        let scan = &object(&printed(&args))["scan"];
        assert_eq!(scan["skipped"], 1, "{args:?}: {scan}");
        assert_eq!(scan["left_out"]["empty shard"], 1, "{args:?}");
        for key in ["skipped", "left_out", "examples", "damaged", "other_fields"] {
            assert_eq!(scan[key], index[key], "{args:?}: {key}");
        }
        let damaged = scan["damaged"].as_array().unwrap();
        assert_eq!(damaged.len(), 1, "{args:?}");
        let path = damaged[0]["path"].as_str().unwrap();
        assert!(path.ends_with("part-001.tar"), "{path}");
    }
    let seen = object(&featherload(cache.path(), &["doctor", pattern, "--json"]));
    let findings = seen["findings"].as_array().unwrap();
    let named = |name: &str| {
        let found: Vec<_> = findings.iter().filter(|f| f["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name}: {seen}");
        let word = |key: &str| found[0][key].as_str().unwrap().to_owned();
        (word("verdict"), word("value"), word("meaning"))
    };
    let (verdict, value, _) = named("damaged shard");
    assert_eq!(verdict, "limited");
    assert!(value.contains("part-001.tar: cut off"), "{value}");
    let (verdict, value, meaning) = named("left out");
    assert_eq!((&*verdict, &*value), ("ok", "1 x empty shard"));
    assert!(meaning.contains("part-002.tar"), "{meaning}");
}

#[test]
fn index_counts_classes_that_are_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let shard = dir.path().join("a.tar");
    labelled(&shard, "cls", &["3", "7", "3"]);
    let args = ["index", shard.to_str().unwrap(), "--no-headers"];
    let message = text(&featherload(dir.path(), &args).stdout);
    assert!(
        message.starts_with("3 samples, 2 classes under"),
        "{message}"
    );
    let line = "classes    smallest number 7 (1), largest number 3 (2)";
    assert!(message.lines().any(|l| l == line), "{message}");
    let found = object(&featherload(dir.path(), &[&args[..], &["--json"]].concat()));
    assert_eq!(found["classes"], 2);
    assert_eq!(found["smallest_class"]["number"], 7);
}

#[test]
fn help_and_messages_have_one_list_of_what_src_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let message = |args: &[&str]| {
        let out = featherload(dir.path(), args);
        let message = text(&out.stdout) + &text(&out.stderr);
        // Lines are broken to the terminal's width.
        message.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for args in [
        &["index", "--help"][..],
        &["cache", "build", "--help"],
        &["bench", "--help"],
        &["doctor", "--help"],
        &["bench"],
        &["bench", "/nowhere/at/all"],
    ] {
        let message = message(args);
        assert!(message.contains(Source::KINDS), "{args:?}: {message}");
    }
    assert!(!message(&["index", "--help"]).contains("PaddleClas"));
}

#[test]
fn doctor_finds_a_bad_label_and_looks_at_the_samples_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let shard = dir.path().join("a.tar");
    let doctor = |code: i32| {
        let out = featherload(dir.path(), &["doctor", shard.to_str().unwrap(), "--json"]);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
        let seen: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let findings = seen["findings"].as_array().unwrap().clone();
        let named = move |name: &str| findings.iter().find(|f| f["name"] == name).cloned();
        let samples = named("samples").unwrap();
        assert_eq!(samples["value"], "2, 2 of them opened");
        (named("labels"), seen["broken_promises"].clone())
    };
    labelled(&shard, "cls", &["1", "2"]);
    assert_eq!(doctor(0).0, None);
    // Of another kind than the first; none that can be read.
    for (second, want) in [
        ("cat", "label is a class name"),
        ("", "01.cls: this label is empty"),
    ] {
        labelled(&shard, "cls", &["1", second]);
        let (found, promises) = doctor(1);
        let found = found.unwrap();
        assert_eq!(found["verdict"], "missing");
        assert!(found["value"].as_str().unwrap().contains(want), "{found}");
        assert!(found["meaning"].as_str().unwrap().contains("--labels none"));
        assert_eq!(promises[0], "the labels of the data set can be read");
    }
    // What is no matter of labels is bad input still.
    fs::write(&shard, "no tar").unwrap();
    let out = featherload(dir.path(), &["doctor", shard.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("not a tar archive"));
}

#[test]
fn a_shard_cut_in_front_of_a_label_costs_one_sample() {
    let folder = data(2, 6);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 6);
    let pattern = tars.path().join("*.tar");
    let pattern = pattern.to_str().unwrap();
    let bytes = fs::read(&shards[1]).unwrap();
    // The header of the last label: the next one is of `json`.
    let name = b".cls\0";
    let at = bytes.windows(5).rposition(|bytes| bytes == name).unwrap() / 512 * 512;
    fs::write(&shards[1], &bytes[..at]).unwrap();
    for args in [&["index"][..], &["plan"], &["bench", "--num-workers", "1"]] {
        let out = featherload(cache.path(), &[&args[..1], &[pattern], &args[1..]].concat());
        let printed = text(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {printed}");
        assert!(
            printed.contains("part-001.tar: ends at byte"),
            "{args:?}: {printed}"
        );
        assert!(
            printed.contains("; at least 1 samples lost"),
            "{args:?}: {printed}"
        );
    }
    let found = object(&featherload(cache.path(), &["index", pattern, "--json"]));
    assert_eq!(
        (
            &found["samples"],
            &found["damaged"][0]["samples_incomplete"]
        ),
        (&11.into(), &1.into())
    );
}

#[test]
fn a_tail_of_zeros_is_said_by_index_bench_and_verify() {
    let folder = data(1, 4);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 4);
    let len = fs::metadata(&shards[0]).unwrap().len();
    let file = File::options().write(true).open(&shards[0]).unwrap();
    file.set_len(len + (1 << 20)).unwrap();
    drop(file);
    let path = shards[0].to_str().unwrap();
    let tars = tars.path().to_str().unwrap();
    for (args, code) in [
        (&["index", path, "--no-headers"][..], 0),
        (&["bench", path, "--num-workers", "1"], 0),
        (&["cache", "verify", tars], 1),
    ] {
        let out = featherload(cache.path(), args);
        let printed = text(&out.stderr) + &text(&out.stdout);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {printed}");
        assert!(
            printed.contains("bytes after it are zero"),
            "{args:?}: {printed}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_named_with_exit_code_2() {
    let folder = data(1, 2);
    let tars = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 2);
    let refused = |source: &Path, more: &[&str]| {
        let mut args = vec!["index", source.to_str().unwrap()];
        args.extend(more);
        let out = featherload(cache.path(), &args);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let two = tars.path().join("part-{000,007}.tar");
    assert!(refused(&two, &[]).contains("part-007.tar: no such shard"));
    assert!(refused(&tars.path().join("x-*.tar"), &[]).contains("x-*.tar: no file"));
    let hint = format!("to read them give '{}/*.tar'", tars.path().display());
    assert!(refused(tars.path(), &[]).trim_end().ends_with(&hint));
    assert!(refused(&shards[0], &["--root", "/"]).contains("`--root` has no effect"));
    assert!(
        refused(folder.path(), &["--index-dir", "none"]).contains("`--index-dir` has no effect")
    );
    assert!(
        refused(folder.path(), &["--label-json", "/a"]).contains("`--label-json` has no effect")
    );
    assert!(refused(folder.path(), &["--write-idx"]).contains("--write-idx needs tar shards"));
    assert!(refused(&shards[0], &["--label-field", "txt"]).contains("a field 'txt'"));
    assert!(refused(&shards[0], &["--label-json", "json:a"]).contains("'a' is not a JSON pointer"));
}

#[test]
fn addresses_are_refused_and_files_that_look_like_them_open() {
    let dir = tempfile::tempdir().unwrap();
    let index = |source: &str| {
        std::process::Command::new(crate::common::FEATHERLOAD)
            .args(["index", source, "--no-headers"])
            .env("XDG_CACHE_HOME", dir.path().join("kept"))
            .current_dir(dir.path())
            .output()
            .unwrap()
    };
    for (source, want) in [
        (
            "ftp://x/a.tar",
            "is an address, and tar shards are read from local files: download them",
        ),
        (
            "s3://bucket/*.tar",
            "s3://bucket/*.tar: has * or [ in it, and a store is not searched",
        ),
        (
            "s3://bucket/{a,b}.tar.gz",
            "s3://bucket/a.tar.gz: names no plain tar",
        ),
        (
            "s3://{a,b}/x.tar",
            "s3://{a,b}/x.tar: names shards in several buckets",
        ),
        (
            "s3://b/{a,a}.tar",
            "s3://b/{a,a}.tar: names s3://b/a.tar twice",
        ),
        (
            "pipe:curl -s http://x/a.tar | cat",
            "is a command, and featherload reads local files",
        ),
        ("a.tar::b.tar", "name several shards by braces or a glob"),
    ] {
        let out = index(source);
        let printed = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{printed}");
        assert!(printed.contains(want), "{source}: {printed}");
        let cwd = dir.path().to_str().unwrap();
        assert!(!printed.contains(cwd), "{source}: {printed}");
    }
    for (name, source) in [
        ("a:b.tar", "a:b.tar"),
        ("a::b.tar", "a::b.tar"),
        ("s3:1.tar", "s3:{1..1}.tar"),
        ("s4:1.tar", "s4:*.tar"),
    ] {
        labelled(&dir.path().join(name), "cls", &["1"]);
        let out = index(source);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    }
}

#[test]
fn a_compressed_shard_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8], want: &str| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let out = featherload(dir.path(), &["index", path.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
        let printed = std::str::from_utf8(&out.stderr).unwrap();
        assert!(printed.contains(want), "{printed}");
        assert!(
            printed.trim_end().chars().all(|c| !c.is_control()),
            "{printed:?}"
        );
    };
    let gzip = b"\x1f\x8b\x08\x00\x1b[31m \xff\x07\n";
    let want = "is compressed by gzip: unpack it to a plain tar, since samples are read in place";
    refused("x.tar.gz", gzip, want);
    refused("x.tgz", gzip, want);
    refused(
        "x.tar.zst",
        b"\x28\xb5\x2f\xfd\xff\x1b[31m \x07",
        "compressed by zstd",
    );
    // By its content, whatever its name; and no byte of it reaches the terminal.
    refused(
        "x.bin",
        gzip,
        ": is compressed by gzip: unpack it, and give the folder",
    );
    // What begins like nothing that is known is a list.
    refused(
        "y.bin",
        b"\x1b[31m \xff\x07\n",
        ":1: label '\\xff\\u{7}' is not a whole number",
    );
}

#[test]
fn empty_shards_are_named_and_hidden_ones_not_found() {
    let dir = tempfile::tempdir().unwrap();
    labelled(&dir.path().join("a.tar"), "cls", &["1"]);
    shard(&dir.path().join("b.tar"), &[]);
    shard(&dir.path().join("c.tar"), &[]);
    fs::copy(dir.path().join("a.tar"), dir.path().join(".a.tar")).unwrap();
    let pattern = dir.path().join("*.tar");
    let paths = Index::expand_shards(&[&pattern]).unwrap();
    assert_eq!(paths.len(), 3);
    let spelled_out = Index::expand_shards(&[dir.path().join(".a*")]).unwrap();
    assert_eq!(spelled_out, [dir.path().join(".a.tar")]);
    let deep = Index::expand_shards(&[dir.path().join("**/*.tar")]).unwrap();
    assert_eq!(deep, paths);
    let (index, report) = Index::from_shards(&paths, &options()).unwrap();
    assert_eq!((index.len(), index.shards()), (1, 3));
    let empty = &report.skipped[&SkipReason::EmptyShard];
    assert_eq!((empty.count, report.skipped_total()), (2, 2));
    assert_eq!(empty.examples, [Path::new("b.tar"), Path::new("c.tar")]);
    // Each time, also of the index that is kept.
    for _ in 0..2 {
        let args = ["index", pattern.to_str().unwrap(), "--no-headers"];
        let out = featherload(dir.path(), &args);
        assert_eq!(out.status.code(), Some(0));
        let printed = text(&out.stderr);
        assert!(
            printed.contains("left out: 2 x empty shard (such as b.tar, c.tar)"),
            "{printed}"
        );
    }
    let e = Index::from_shards(&paths[1..], &options()).unwrap_err();
    assert!(
        e.is_usage() && e.to_string().contains("empty shard: 2"),
        "{e}"
    );
}
