//! Labels: of `cls`, of JSON, by a table, numbers and names.

use std::fs::{self, File};
use std::path::Path;
use std::slice;
use std::time::{Duration, SystemTime};

use featherload::index::{ClassList, KeepIndex, Label, ShardLabels, ShardOptions};
use featherload::{BatchLabels, Index, Source};

use super::scene::{
    classes, featherload, json_of, labelled, loader_over, options, shard, shards_of, text,
};
use crate::common::data;

#[test]
fn labels_come_from_json_as_classes_and_as_vectors() {
    let folder = data(3, 2);
    let tars = tempfile::tempdir().unwrap();
    let shards = shards_of(folder.path(), tars.path(), 4);
    let batch = |pointer: &str| {
        let labels = ShardLabels::Json {
            field: "json".into(),
            pointer: pointer.into(),
        };
        let options = ShardOptions {
            labels,
            ..options()
        };
        let mut loader = loader_over(Source::Shards(shards.clone(), options))
            .num_workers(1)
            .build()
            .unwrap();
        loader.epoch().next().unwrap().unwrap()
    };
    let by_name = batch("/of/name");
    let ids: Vec<i64> = by_name.ids().iter().map(|id| *id as i64 / 2).collect();
    assert_eq!(by_name.labels(), &BatchLabels::Classes(ids));
    let by_number = batch("/of/v");
    let BatchLabels::Vectors { width, values } = by_number.labels() else {
        panic!("vectors are due");
    };
    let want = by_number
        .ids()
        .iter()
        .flat_map(|id| [(*id / 2) as f32, 0.5]);
    assert_eq!((*width, values), (2, &want.collect::<Vec<_>>()));
}

#[test]
fn a_class_table_numbers_the_names_of_all_shards_alike() {
    let dir = tempfile::tempdir().unwrap();
    let val = dir.path().join("val.tar");
    shard(
        &val,
        &[
            ("1.jpg", ""),
            ("1.cls", "cat"),
            ("1.json", "{\"of\":\"dog\"}"),
            ("1.txt", "7"),
        ],
    );
    let table = ClassList::new(["zebra", "cat", "ant", "dog"]).unwrap();
    let json = ShardLabels::Json {
        field: "json".into(),
        pointer: "/of".into(),
    };
    // One folder: what is kept without the table is not taken for it.
    let keep = KeepIndex::In(dir.path().join("kept"));
    let read = |labels: &ShardLabels, classes: Option<ClassList>| {
        let options = ShardOptions {
            image_field: None,
            labels: labels.clone(),
            classes,
            keep: keep.clone(),
        };
        Index::from_shards(slice::from_ref(&val), &options).map(|(index, _)| index)
    };
    for (labels, with_table) in [(ShardLabels::Auto, 1), (json, 3)] {
        for _ in 0..2 {
            assert_eq!(classes(&read(&labels, None).unwrap()), [0]);
            let index = read(&labels, Some(table.clone())).unwrap();
            assert_eq!(classes(&index), [with_table]);
            assert_eq!(index.classes(), &table);
        }
    }
    let lacking = ClassList::new(["zebra", "dog"]).unwrap();
    let e = read(&ShardLabels::Auto, Some(lacking)).unwrap_err();
    assert!(e.is_usage());
    let e = e.to_string();
    assert!(
        e.contains("val.tar/1.jpg: its class 'cat' is not in the class table"),
        "{e}"
    );
    let e = read(&ShardLabels::Field("txt".into()), Some(table.clone())).unwrap_err();
    assert!(
        e.to_string().contains("the labels here are a class number"),
        "{e}"
    );
    let e = read(&ShardLabels::None, Some(table)).unwrap_err();
    assert!(e.to_string().contains("no effect without labels"), "{e}");

    let file = dir.path().join("classes.txt");
    fs::write(&file, "zebra\ncat\n").unwrap();
    let mut args = vec!["index", val.to_str().unwrap(), "--no-headers", "--json"];
    args.extend(["--classes", file.to_str().unwrap()]);
    let found = json_of(dir.path(), &args);
    assert_eq!(found["classes"], 2);
    assert_eq!(found["largest_class"]["number"], 1, "{found}");
    fs::write(&file, "zebra\n").unwrap();
    let out = featherload(dir.path(), &args);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("'cat' is not in the class table"));
}

#[test]
fn whole_numbers_among_fractions_are_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
    let in_json = ShardLabels::Json {
        field: "json".into(),
        pointer: String::new(),
    };
    for (field, labels) in [("cls", ShardLabels::Auto), ("json", in_json)] {
        labelled(&a, field, &["1", "2"]);
        let options = ShardOptions {
            labels,
            ..options()
        };
        let read = || Index::from_shards(&[a.clone(), b.clone()], &options);
        // All whole they are classes, and a fraction in another shard makes all
        // of them numbers.
        labelled(&b, field, &["3", "-4"]);
        assert_eq!(classes(&read().unwrap().0), [1, 2, 3, -4]);
        for (of_b, want) in [
            (["0.5", "-4"], [1.0, 2.0, 0.5, -4.0]),
            (["3.0", "4"], [1.0, 2.0, 3.0, 4.0]),
        ] {
            labelled(&b, field, &of_b);
            let (index, _) = read().unwrap();
            assert_eq!(index.label_width(), 1);
            let number = |id| match index.label(id) {
                Label::Vector(v) => v.iter().next().unwrap(),
                other => panic!("{other:?}"),
            };
            assert_eq!((0..4).map(number).collect::<Vec<_>>(), want);
        }
    }
    labelled(&a, "cls", &["1", "0.5"]);
    labelled(&b, "cls", &["cat"]);
    let e = Index::from_shards(&[a, b], &options()).unwrap_err();
    assert!(
        e.to_string().contains("label is a class name, and those"),
        "{e}"
    );
}

#[test]
fn an_index_of_a_former_shard_gives_no_label_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let read = || {
        let (index, report) = Index::from_shards(slice::from_ref(&path), &options()).unwrap();
        assert!(report.damaged.is_empty());
        classes(&index)
    };
    let set_time = |path: &Path, seconds: u64| {
        let file = File::options().write(true).open(path).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        file.set_modified(time).unwrap();
    };
    labelled(&path, "cls", &["3", "7", "5"]);
    let idx = Index::write_dali_indexes(slice::from_ref(&path)).unwrap();
    // The same layout, and the shard's time is that of its source: older.
    labelled(&path, "cls", &["3", "12", "5"]);
    set_time(&path, 1_000_000);
    set_time(&idx[0], 1_007_200);
    assert_eq!(read(), [3, 12, 5]);
}
