//! The whole mixed demo set: every format and form, with its broken files. Bad files have the
//! faults of the set's manifest. Good files load as from the set without them. Under `stop` a bad
//! file ends a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use featherload::{OnError, Recipe, RowStatus};

use crate::common::{FEATHERLOAD, builder};

/// One of each of the 37 forms.
const IMAGES: &str = "37";

fn demo(dir: &Path, broken: bool) {
    let mut command = Command::new(FEATHERLOAD);
    command.args([
        "demo",
        "--kind",
        "mixed",
        "--images",
        IMAGES,
        "--classes",
        "3",
    ]);
    if broken {
        command.arg("--broken");
    }
    let out = command.arg(dir).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

/// The broken files of the manifest: for each file the faults that are allowed.
fn listed(dir: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read(dir.join(".featherload-demo.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let files = manifest["broken"].as_array().unwrap();
    files
        .iter()
        .map(|file| {
            let faults = file["faults"].as_array().unwrap();
            (text(&file["path"]), faults.iter().map(text).collect())
        })
        .collect()
}

/// Rows by path, and faults by path: kind and reason.
type Loaded = (
    BTreeMap<String, Vec<u8>>,
    BTreeMap<String, (String, String)>,
);

fn load(dir: &Path, workers: usize) -> Loaded {
    let mut loader = builder(dir)
        .recipe(Recipe::eval224())
        .num_workers(workers)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let (mut good, mut bad) = (BTreeMap::new(), BTreeMap::new());
    let mut epoch = loader.epoch();
    while let Some(batch) = epoch.next() {
        let batch = batch.unwrap();
        for (row, status) in batch.status().iter().enumerate() {
            let path = epoch.index().relative_path(batch.ids()[row]);
            let pixels = batch.row(row).unwrap().bytes().unwrap();
            match status {
                RowStatus::Ok => {
                    good.insert(path.display().to_string(), pixels.to_vec());
                }
                RowStatus::Failed => assert!(pixels.iter().all(|b| *b == 0)),
                other => panic!("{other:?}"),
            }
        }
        for fault in batch.faults() {
            let path = fault.path.strip_prefix(dir).unwrap();
            let message = (
                fault.fault.kind.name().to_owned(),
                fault.fault.reason.clone(),
            );
            bad.insert(path.display().to_string(), message);
        }
    }
    (good, bad)
}

#[test]
fn what_is_bad_is_named_and_nothing_good_is_lost() {
    let (clean, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    demo(clean.path(), false);
    demo(broken.path(), true);
    let expected = listed(broken.path());
    assert_eq!(expected.len(), 20);

    let (good, none) = load(clean.path(), 0);
    assert_eq!(none, BTreeMap::new(), "no picture of the set is bad");
    assert_eq!(good.len().to_string(), IMAGES);
    for workers in [0, 2] {
        let (still_good, bad) = load(broken.path(), workers);
        assert!(still_good == good, "{workers} workers");
        assert_eq!(
            bad.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        for (path, (kind, reason)) in &bad {
            assert!(expected[path].contains(kind), "{path}: {kind}: {reason}");
            assert!(!reason.is_empty());
        }
    }
}

#[test]
fn the_command_line_skips_with_0_and_stops_with_3_and_the_path() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path(), true);
    let bench = |policy: &str| {
        Command::new(FEATHERLOAD)
            .args([
                "bench",
                "--recipe",
                "eval224",
                "--batch-size",
                "8",
                "--num-workers",
                "2",
            ])
            .args(["--json", "--on-error", policy])
            .arg(dir.path())
            .output()
            .unwrap()
    };
    let skipped = bench("skip");
    assert_eq!(skipped.status.code(), Some(0), "{skipped:?}");
    let report: serde_json::Value = serde_json::from_slice(&skipped.stdout).unwrap();
    assert_eq!(report["failed"], 20);
    assert_eq!(report["skipped"], 20);
    let failures = report["failures"].as_array().unwrap();
    assert!(
        failures
            .iter()
            .all(|f| f["reason"].as_str().is_some_and(|r| !r.is_empty()))
    );

    let replaced = bench("substitute");
    assert_eq!(replaced.status.code(), Some(0), "{replaced:?}");
    let report: serde_json::Value = serde_json::from_slice(&replaced.stdout).unwrap();
    assert_eq!(report["failed"], 20);
    let substituted = report["substituted"].as_u64().unwrap();
    assert_eq!(substituted + report["skipped"].as_u64().unwrap(), 20);

    let stopped = bench("stop");
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    let message = String::from_utf8(stopped.stderr).unwrap();
    let named = listed(dir.path())
        .into_keys()
        .any(|path| message.contains(&path));
    assert!(named, "{message}");
}
