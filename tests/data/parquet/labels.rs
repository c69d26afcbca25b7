//! Which columns are read, and the labels from them.

use std::path::Path;

use featherload::Index;
use featherload::index::{ClassList, Label, ParquetLabels, ParquetOptions};
use parquet::file::metadata::KeyValue;

use super::scene::{
    Column, bytes, double, image, int32, int64, note, open, open_with, plain, refused, texts, ways,
    write,
};

fn pictures(rows: usize) -> Column {
    image("image", (0..rows).map(|n| Some(vec![n as u8; 9])).collect())
}

fn classes(index: &Index) -> Vec<i64> {
    let class = |id| match index.label(id) {
        Label::Class(class) => class,
        other => panic!("{other:?}"),
    };
    (0..index.len()).map(class).collect()
}

fn column(name: &str) -> ParquetOptions {
    ParquetOptions {
        labels: ParquetLabels::Column(name.into()),
        ..ParquetOptions::default()
    }
}

#[test]
fn labels_are_numbers_names_or_fractions_however_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let numbers: Vec<i64> = (0..40).map(|n| n * n % 7).collect();
    let names = ["dog", "cat", "eel", "cat", "ant"];
    for (way, properties) in ways() {
        let columns = [
            pictures(40),
            int64("label", numbers.iter().map(|n| Some(*n)).collect()),
            int32("small", numbers.iter().map(|n| *n as i32).collect()),
            texts("name", &names.repeat(8)),
            double("score", numbers.iter().map(|n| *n as f64 / 2.0).collect()),
        ];
        write(&path, &columns, (40, 15), properties);
        assert_eq!(classes(&open(&path).unwrap()), numbers, "{way}");
        let small = open_with(&path, &column("small")).unwrap();
        assert_eq!(classes(&small), numbers, "{way}");
        let named = open_with(&path, &column("name")).unwrap();
        let all: Vec<_> = named.classes().iter().collect();
        assert_eq!(all, ["ant", "cat", "dog", "eel"], "{way}");
        assert_eq!(classes(&named), [2, 1, 3, 1, 0].repeat(8), "{way}");
        let scores = open_with(&path, &column("score")).unwrap();
        let Label::Vector(score) = scores.label(5) else {
            panic!("a vector is due");
        };
        assert_eq!(score.iter().collect::<Vec<_>>(), [2.0], "{way}");
        let none = ParquetOptions {
            labels: ParquetLabels::None,
            ..ParquetOptions::default()
        };
        assert_eq!(open_with(&path, &none).unwrap().label(3), Label::None);
        let message = refused(&path, &column("absent"));
        assert!(
            message.contains("has no column 'absent' (its columns: 'image', 'label'"),
            "{message}"
        );
        assert!(refused(&path, &column("image")).contains("which cannot be a label"));
    }
}

#[test]
fn the_note_of_hugging_face_names_classes_by_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let labels = |of: [i64; 3]| int64("label", of.map(Some).to_vec());
    let noted = |names: &[&str]| plain().set_key_value_metadata(Some(note(names)));
    let zoo = ["wolf", "ant", "cat"];
    write(
        &path,
        &[pictures(3), labels([2, 0, 1])],
        (3, 3),
        noted(&zoo),
    );
    let index = open(&path).unwrap();
    assert_eq!(index.classes().iter().collect::<Vec<_>>(), zoo);
    assert_eq!(classes(&index), [2, 0, 1]);
    let table = ParquetOptions {
        classes: Some(ClassList::new(["ant", "bee", "cat", "wolf"]).unwrap()),
        ..ParquetOptions::default()
    };
    let index = open_with(&path, &table).unwrap();
    assert_eq!(classes(&index), [2, 3, 0]);
    assert_eq!(index.classes().len(), 4);

    let second = dir.path().join("b.parquet");
    write(
        &second,
        &[pictures(3), labels([0; 3])],
        (3, 3),
        noted(&["ant"]),
    );
    let message = refused(dir.path(), &ParquetOptions::default());
    assert!(
        message.contains("b.parquet: names other classes"),
        "{message}"
    );

    write(
        &path,
        &[pictures(3), labels([0, -1, 0])],
        (3, 3),
        noted(&zoo),
    );
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("row 1: label -1 is not one of the 3 classes"),
        "{message}"
    );

    let some = int64("label", vec![Some(1), None, Some(2)]);
    write(&path, &[pictures(3), some], (3, 2), noted(&zoo));
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("row 1: no label in column 'label'"),
        "{message}"
    );
}

/// `datasets` marks label columns as features. Otherwise common names identify them.
#[test]
fn a_column_of_labels_is_found_by_the_note_or_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let labels = |name| int64(name, vec![Some(1), Some(0)]);
    let class = |names: &[&str]| {
        let of = names.iter().map(|name| {
            let feature = serde_json::json!({"names": ["cat", "dog"], "_type": "ClassLabel"});
            ((*name).to_owned(), feature)
        });
        let features: serde_json::Map<_, _> = of.collect();
        // Python writes a missing number as NaN, which is not valid JSON.
        let note = serde_json::json!({"info": {"features": features}}).to_string();
        let note = note.replacen('{', "{\"size\": NaN, ", 1);
        plain().set_key_value_metadata(Some(vec![KeyValue::new("huggingface".to_owned(), note)]))
    };
    for name in ["labels", "fine_label", "cls", "Label", "LABELS", "breed"] {
        write(&path, &[pictures(2), labels(name)], (2, 2), class(&[name]));
        let index = open(&path).unwrap();
        assert_eq!(classes(&index), [1, 0], "{name}");
        assert_eq!(
            index.classes().iter().collect::<Vec<_>>(),
            ["cat", "dog"],
            "{name}"
        );
    }
    for name in ["labels", "fine_label", "cls", "Label", "Target"] {
        write(&path, &[pictures(2), labels(name)], (2, 2), plain());
        assert_eq!(classes(&open(&path).unwrap()), [1, 0], "{name}");
    }
    let two = ["fine_label", "coarse_label"];
    let columns = || [pictures(2), labels(two[0]), labels(two[1])];
    for properties in [plain(), class(&two), class(&["breed"])] {
        write(&path, &columns(), (2, 2), properties);
        let message = refused(&path, &ParquetOptions::default());
        let want = "several columns may be the label: 'fine_label', 'coarse_label': name one with \
                    `label_column`";
        assert!(message.contains(want), "{message}");
    }
    // A column with classes wins over another; a plain name wins over both.
    write(&path, &columns(), (2, 2), class(&two[1..]));
    let files = Index::expand_parquet(&path).unwrap();
    let (_, report) = Index::parquet(&files, &ParquetOptions::default()).unwrap();
    assert_eq!(report.columns.unwrap().labels, ["coarse_label"]);
    write(
        &path,
        &[pictures(2), labels("cls"), labels("label")],
        (2, 2),
        class(&["cls"]),
    );
    let (_, report) = Index::parquet(&files, &ParquetOptions::default()).unwrap();
    assert_eq!(report.columns.unwrap().labels, ["label"]);
}

#[test]
fn the_column_of_pictures_is_found_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let raw = |name| bytes(name, vec![vec![1; 4], vec![2; 5]]);
    write(
        &path,
        &[texts("id", &["a", "b"]), raw("data")],
        (2, 2),
        plain(),
    );
    assert_eq!(open(&path).unwrap().len(), 2);

    for name in ["photo", "Image", "IMG", "pixel_values"] {
        write(&path, &[raw("mask"), raw(name)], (2, 2), plain());
        assert_eq!(open(&path).unwrap().len(), 2, "{name}");
    }
    write(&path, &[raw("left"), raw("right")], (2, 2), plain());
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("may be images ('left', 'right')"),
        "{message}"
    );
    let named = |name: &str| ParquetOptions {
        image_column: Some(name.into()),
        ..ParquetOptions::default()
    };
    assert_eq!(open_with(&path, &named("right")).unwrap().len(), 2);
    assert!(refused(&path, &named("up")).contains("has no column 'up'"));

    write(
        &path,
        &[texts("image", &["a.jpg", "b.jpg"])],
        (2, 2),
        plain(),
    );
    for options in [ParquetOptions::default(), named("image")] {
        let index = open_with(&path, &options).unwrap();
        assert_eq!(index.relative_path(1), Path::new("b.jpg"));
    }
    // In pages of any kind, over row groups.
    let urls: Vec<String> = (0..50)
        .map(|n| format!("https://h/{}.jpg", n % 7))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    for (_, way) in ways() {
        write(
            &path,
            &[texts("caption", &urls), texts("URL", &urls)],
            (50, 20),
            way,
        );
        let index = open(&path).unwrap();
        assert_eq!(index.len(), 50);
        for (id, url) in (0..).zip(&urls) {
            assert_eq!(index.relative_path(id), Path::new(url));
        }
    }
    write(&path, &[texts("url", &["a.jpg", ""])], (2, 2), plain());
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("row 1: column 'url' has no path"),
        "{message}"
    );
    write(&path, &[image("image", vec![None, None])], (2, 2), plain());
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("has paths in the structs of column 'image'"),
        "{message}"
    );
    write(&path, &[int32("label", vec![1, 2])], (2, 2), plain());
    let message = refused(&path, &ParquetOptions::default());
    assert!(message.contains("has no image column"), "{message}");
    assert!(refused(&path, &named("label")).contains("neither bytes nor paths"));
}

#[test]
fn files_without_rows_are_left_out_and_files_of_other_labels_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(&at("a.parquet"), &[pictures(0)], (0, 1), plain());
    assert!(refused(dir.path(), &ParquetOptions::default()).contains("no rows"));
    let labelled = |n| [pictures(n), int32("label", vec![1; n])];
    write(&at("b.parquet"), &labelled(3), (3, 3), plain());
    let files = Index::expand_parquet(dir.path()).unwrap();
    let (index, report) = Index::parquet(&files, &ParquetOptions::default()).unwrap();
    assert_eq!((index.len(), report.skipped_total()), (3, 1));
    let columns = report.columns.unwrap().to_string();
    assert_eq!(columns, "images image, labels label");
    let named = [pictures(1), texts("label", &["x"])];
    write(&at("c.parquet"), &named, (1, 1), plain());
    let message = refused(dir.path(), &ParquetOptions::default());
    let want = "c.parquet: its labels are class names, but the first file has whole";
    assert!(message.contains(want), "{message}");
}
