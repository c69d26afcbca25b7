//! Places of objects, from the text of an option to the table.

use std::path::{Path, PathBuf};

use super::*;

/// A folder for a test.
struct PlaceFolder(tempfile::TempDir);

impl PlaceFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn open(source: &Path, option: &str) -> Result<(Index, OpenedObjects)> {
    let options: ObjectOptions = option.parse()?;
    let source = Source::detect(source)?;
    let columns = options.column_source(&source)?;
    if let Some(found) = options.open_with_images(&source)? {
        return Ok(found);
    }
    let (index, _) = source.open()?;
    let objects = options.open(&index, columns)?;
    Ok((index, objects))
}

fn counts(objects: &OpenedObjects) -> Vec<usize> {
    let table = &objects.table;
    (0..table.samples()).map(|id| table.count(id)).collect()
}

#[test]
fn lines_of_json_have_columns_of_objects() {
    let folder = PlaceFolder::new();
    let table = folder.write(
        "metadata.jsonl",
        r#"{"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4], [0, 0, 1, 1]], "categories": [1, 0]}, "image_id": 9}

{"file_name": "b.jpg", "objects": {"bbox": [], "categories": []}}
{"file_name": "c.jpg", "objects": {"bbox": [[1, 2, NaN, 4], [5, 5, 2, 2]], "categories": [1, 1]}}
"#,
    );
    let (index, objects) = open(&table, r#"{"column": "objects"}"#).unwrap();
    assert_eq!((index.len(), counts(&objects)), (3, vec![2, 0, 1]));
    let sample = objects.table.sample(0);
    assert_eq!(
        (sample.numbers[0], sample.labels),
        ([1.0, 2.0, 3.0, 4.0], &[1, 0][..])
    );
    assert_eq!(objects.table.image_id(0), 9);
    assert_eq!(objects.table.form().boxes, BoxForm::Xywh);
    let report = objects.report.unwrap();
    assert!(report.wrong[0].first[0].ends_with("metadata.jsonl: line 4, object 1"));
    let text = r#"{"column": "objects", "box_format": "xyxy", "names": ["x", "y"]}"#;
    let (_, objects) = open(&table, text).unwrap();
    assert_eq!(objects.table.form().boxes, BoxForm::Xyxy);
    assert_eq!(objects.table.form().categories[1].name, "y");
    // By corners, boxes end before they begin, except one.
    assert_eq!(counts(&objects), [2, 0, 0]);
    let e = open(&table, r#"{"column": "boxes"}"#)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("none of the 3 images has objects at 'boxes'"),
        "{e}"
    );
    let csv = folder.write("t.csv", "path,objects\na.jpg,1\n");
    let e = open(&csv, r#"{"column": "objects"}"#)
        .unwrap_err()
        .to_string();
    assert!(e.contains("write lines of JSON (.jsonl)"), "{e}");
}

#[test]
fn tars_have_json_beside_images() {
    let folder = PlaceFolder::new();
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    };
    for (key, json) in [
        (
            "0001",
            r#"{"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 3}], "width": 50, "height": 40}"#,
        ),
        ("0002", r#"{"annotations": []}"#),
        (
            "0003",
            r#"{"boxes": [[1, 2, 3, 4], [1, 1, 2, 2]], "labels": [7, 3]}"#,
        ),
        ("0004", ""),
    ] {
        add(&format!("{key}.jpg"), "image");
        if !json.is_empty() {
            add(&format!("{key}.json"), json);
        }
    }
    let tar = folder.write("a.tar", tar.into_inner().unwrap());
    let (index, objects) = open(&tar, r#"{"member": "json"}"#).unwrap();
    assert_eq!((index.len(), counts(&objects)), (4, vec![1, 0, 2, 0]));
    assert_eq!(objects.table.stated_size(0), Some((40, 50)));
    let categories = objects.table.form().categories.iter();
    let ids: Vec<i64> = categories.map(|of| of.id).collect();
    assert_eq!(ids, [3, 7]);
    let report = objects.report.unwrap();
    assert_eq!(
        (report.images_without_entry, report.images_without_objects),
        (1, 2)
    );
    let text = r#"{"member": "json", "column": "annotations"}"#;
    let (_, objects) = open(&tar, text).unwrap();
    assert_eq!(counts(&objects), [1, 0, 0, 0]);
    let e = open(&tar, r#"{"member": "txt"}"#).unwrap_err().to_string();
    assert!(e.contains("none of the 4 images has boxes"), "{e}");
    let e = open(&tar, r#"{"column": "objects"}"#)
        .unwrap_err()
        .to_string();
    assert!(e.contains("`member` for JSON in tar shards"), "{e}");
}

#[test]
fn places_and_their_options() {
    let folder = PlaceFolder::new();
    let images = folder
        .write("images/a.jpg", "")
        .parent()
        .unwrap()
        .to_owned();
    let boxes = folder.write(
        "boxes.csv",
        "path,xmin,ymin,xmax,ymax,label\na.jpg,1,2,3,4,x\n",
    );
    let boxes = boxes.to_str().unwrap();
    let (index, objects) = open(&images, boxes).unwrap();
    assert_eq!((index.len(), counts(&objects)), (1, vec![1]));
    for (option, what) in [
        (r#"{"files": "a.json", "column": "o"}"#, "two places"),
        (r#"{"column": "o", "obb": true}"#, "for YOLO's files"),
        (
            r#"{"member": "json", "split": "train"}"#,
            "for YOLO's files",
        ),
        (
            r#"{"files": "a.json", "normalized": true}"#,
            "`box_format` and `normalized` are for",
        ),
        (
            r#"{"box_format": "xyxy"}"#,
            "`box_format` and `normalized` are for",
        ),
        (r#"{"column": "o"}"#, "this data set is none of them"),
        (r#"{"member": "json"}"#, "these images are in none"),
        (r#"{"box_format": "ltrb"}"#, "ltrb"),
        (r#"{"columns": "o"}"#, "columns"),
        (r#"{"strict": true}"#, "or `column` or `member`"),
    ] {
        let e = open(&images, option).unwrap_err().to_string();
        assert!(e.contains(what), "{option}: {e}");
    }
}
