//! Tables as SRC: what each command makes of them, what is refused, what they take.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

use crate::common::command::{code, featherload, object, refusal, stderr, stdout};
use crate::common::data;

/// Class folders, and the same samples as a list, as CSV with ids and as lines of JSON.
struct Set {
    dir: tempfile::TempDir,
}

impl Set {
    fn new() -> Self {
        let dir = data(3, 4);
        let (mut list, mut json) = (String::new(), String::new());
        let mut csv = "image_id,note,label\r\n".to_owned();
        for class in 0..3 {
            for i in 0..4 {
                let id = format!("class{class}/{i:03}");
                writeln!(list, "{id}.jpg {class}").unwrap();
                write!(csv, "{id},\"one, \"\"two\"\"\r\n{i}\",{class}\r\n").unwrap();
                let line = json!({"file_name": format!("{id}.jpg"), "meta": {"class": class}});
                writeln!(json, "{line}").unwrap();
            }
        }
        for (name, text) in [("a.txt", list), ("a.csv", csv), ("a.jsonl", json)] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_table_is_the_same_data_set_as_a_list() {
    let set = Set::new();
    let (csv, lines) = (set.at("a.csv"), set.at("a.jsonl"));
    let root = text(set.dir.path());
    let hash = |args: &[&str]| {
        let args = [&["index", "--json", "--no-headers"], args].concat();
        let found = object(&featherload(&args));
        assert_eq!(found["samples"], 12, "{args:?}");
        (found["hash"].clone(), found["columns"].clone())
    };
    let (list, none) = hash(&[text(&set.at("a.txt"))]);
    assert!(none.is_null());
    let ids = ["--path-suffix", ".jpg"];
    let nested = ["--label-column", "/meta/class"];
    let (by_ids, columns) = hash(&[&[text(&csv)][..], &ids].concat());
    assert_eq!(by_ids, list);
    let read = (&columns["path"], &columns["labels"]);
    assert_eq!(read, (&json!("image_id"), &json!(["label"])));
    let available = columns["available"].as_array().unwrap();
    assert!(
        available.contains(&json!({"name": "image_id"})),
        "{columns}"
    );
    let (by_lines, columns) = hash(&[&[text(&lines)][..], &nested].concat());
    assert_eq!(by_lines, list);
    assert_eq!(columns["labels"], json!(["/meta/class"]));
    // A table that lies elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("moved.CSV");
    fs::rename(&csv, &moved).unwrap();
    let (by_src, _) = hash(&[&[root, "--list", text(&moved)][..], &ids].concat());
    let (by_root, _) = hash(&[&[text(&moved), "--root", root][..], &ids].concat());
    assert_eq!((by_src, by_root), (list.clone(), list));
}

#[test]
fn every_command_takes_a_table() {
    let set = Set::new();
    let csv = set.at("a.csv");
    let out = set.at("out.png");
    let cache = set.at("cache");
    for args in [
        &["bench", "--batch-size", "4", "--num-workers", "1"][..],
        &["plan", "--batch-size", "4", "--num-workers", "1"],
        &["preview", "--out", text(&out)],
        &["index"],
    ] {
        let args = [args, &[text(&csv), "--path-suffix", ".jpg"]].concat();
        let out = featherload(&args);
        assert_eq!(code(&out), 0, "{args:?}: {}", stderr(&out));
        if args[0] == "index" {
            let message = stdout(&out);
            let columns = "\ncolumns    paths image_id, labels label\navailable  image_id, ";
            assert!(message.contains(columns), "{message}");
        }
    }
    let built = [
        "cache",
        "build",
        text(&csv),
        text(&cache),
        "--path-suffix",
        ".jpg",
    ];
    let built = featherload(&built);
    assert_eq!(code(&built), 0, "{}", stderr(&built));
    let of_cache = object(&featherload(&[
        "index",
        text(&cache),
        "--json",
        "--no-headers",
    ]));
    assert_eq!(
        (&of_cache["samples"], &of_cache["classes"]),
        (&json!(12), &json!(3))
    );
    // Without a column of labels there are none, and that is said.
    let message = stdout(&featherload(&["index", text(&set.at("a.jsonl"))]));
    assert!(
        message.contains("no labels") && message.contains("labels none"),
        "{message}"
    );
}

#[test]
fn a_separator_makes_a_csv_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("a.csv");
    fs::write(&csv, "a.jpg,3\nb c.jpg,4\n").unwrap();
    let args = ["index", text(&csv), "--json", "--no-headers"];
    let listed = object(&featherload(&[&args[..], &["--delimiter", ","]].concat()));
    assert_eq!(
        (&listed["samples"], &listed["classes"]),
        (&json!(2), &json!(2))
    );
    assert!(listed["columns"].is_null());
    let message = refusal(&featherload(&args));
    let want = "a.csv:1: no column is known to hold paths: name it with `--path-column`; the \
                columns are 'a.jpg', '3'; a file without a header line is a list: give its \
                `--delimiter`";
    assert!(message.contains(want), "{message}");
}

#[test]
fn options_that_mean_nothing_for_a_source_are_refused() {
    let set = Set::new();
    let (csv, list, folder) = (set.at("a.csv"), set.at("a.txt"), set.dir.path());
    for (source, args, want) in [
        (
            &*csv,
            &["--delimiter", ",", "--path-column", "x"][..],
            "`--delimiter` has no effect",
        ),
        (
            &csv,
            &["--boxes", "/"],
            "which is a table: remove the option, or give a list file",
        ),
        (
            &csv,
            &["--label-json", "/a"],
            "which is a table: remove the option, or give tar shards",
        ),
        (
            &list,
            &["--path-column", "x"],
            "which is a list file: remove the option, or give a table",
        ),
        (
            &list,
            &["--label-column", "x"],
            "`--label-column` has no effect",
        ),
        (
            folder,
            &["--path-suffix", ".jpg"],
            "`--path-suffix` has no effect on",
        ),
        (
            folder,
            &["--list", text(&csv), "--root", "/"],
            "both set where the paths",
        ),
        (
            &csv,
            &["--label-column", "note,"],
            "`--label-column` has an empty name",
        ),
        (
            &csv,
            &["--path-column", "no"],
            "a.csv:1: no column 'no': the columns are 'image_id'",
        ),
    ] {
        let args = [&["index", text(source), "--no-headers"][..], args].concat();
        let message = refusal(&featherload(&args));
        assert!(message.contains(want), "{args:?}: {message}");
    }
    let both = [
        "index",
        text(&csv),
        "--labels",
        "none",
        "--label-column",
        "label",
    ];
    assert_eq!(code(&featherload(&both)), 2);
}

/// Records are not held: what a run over the names takes follows from paths and labels,
/// however much else stands in the file.
#[test]
fn reading_takes_twice_the_index_and_one_record() {
    const RECORDS: u64 = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let (csv, lines) = (dir.path().join("a.csv"), dir.path().join("a.jsonl"));
    let caption = "lorem ipsum ".repeat(40);
    let write = |count: u64| {
        let mut csv = BufWriter::new(fs::File::create(&csv).unwrap());
        let mut lines = BufWriter::new(fs::File::create(&lines).unwrap());
        writeln!(csv, "file_name,caption,class").unwrap();
        for i in 0..count {
            let (name, class) = (format!("folder/{i:09}.jpg"), format!("c{}", i % 1000));
            writeln!(csv, "{name},{caption},{class}").unwrap();
            let line = json!({"file_name": name, "caption": caption, "class": class});
            writeln!(lines, "{line}").unwrap();
        }
    };
    // The largest of all children so far, bytes; and the index.
    let most = || {
        let found = [&csv, &lines].map(|file| {
            let args = ["index", text(file), "--no-headers", "--json"];
            object(&featherload(&args))["shared_bytes"]
                .as_u64()
                .unwrap()
        });
        assert_eq!(found[0], found[1]);
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        (usage.max_rss() as u64 * 1024, found[0])
    };
    write(1);
    let (nothing, _) = most();
    write(RECORDS);
    let (all, index) = most();
    assert!(index > RECORDS * 28, "{index}");
    let grown = all - nothing;
    println!(
        "{grown} bytes for an index of {index}, files of {:?}",
        fs::metadata(&csv).unwrap().len()
    );
    assert!(
        grown < 2 * index + (2 << 20),
        "{grown} bytes for an index of {index}"
    );
}
