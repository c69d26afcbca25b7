//! Columns of objects that pyarrow wrote, whole and damaged: scripts/op_goldens/object_columns.py.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::*;
use crate::data::columns::row_value::{RecordContent, RowReader};
use crate::data::columns::stamped_file::StampedFile;
use crate::data::index::{
    ArrowFiles, Index, ParquetOptions, WantedFields, open_arrow_rows, open_parquet_rows,
};
use crate::data::objects::{BoxForm, ObjectTable};
use crate::error::Result;
use crate::tests_support::golden;

fn form() -> CoordinateForm {
    CoordinateForm {
        boxes: BoxForm::Xywh,
        shares: false,
    }
}

/// A data set of one file of goldens.
struct TableFile {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl TableFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self { _dir: dir, path }
    }

    fn index(&self) -> Result<Index> {
        let (files, options) = ([self.path.clone()], ParquetOptions::default());
        match self.path.extension().is_some_and(|end| end == "arrow") {
            true => Index::arrow(&self.arrow(), &options),
            false => Index::parquet(&files, &options),
        }
        .map(|(index, _)| index)
    }

    fn arrow(&self) -> ArrowFiles {
        ArrowFiles {
            data: vec![self.path.clone()],
            ..ArrowFiles::default()
        }
    }

    fn reader(&self, column: &str) -> Result<Box<dyn RowReader>> {
        let wanted = WantedFields {
            column,
            fields: object_fields(false),
            beside: BESIDE,
            classes: CATEGORY_FIELDS,
        };
        let stamps = [StampedFile::of(self.path.clone())?];
        match self.path.extension().is_some_and(|end| end == "arrow") {
            true => open_arrow_rows(&self.arrow(), &stamps, &wanted),
            false => open_parquet_rows(&stamps, &wanted),
        }
    }

    fn read(&self, options: &AnnotationOptions) -> Result<(ObjectTable, AnnotationReport)> {
        let index = self.index()?;
        let mut reader = self.reader("objects")?;
        read_rows(&index, &mut *reader, Some("objects"), form(), None, options)
    }
}

/// An object that pyarrow read: box, label, id, area, crowd.
type ExpectedObject = ([f64; 4], u32, i64, f64, u8);

/// The objects of a row as pyarrow reads them, without those that have no box of four numbers.
fn expected(row: &Json) -> Vec<ExpectedObject> {
    let names = ["ant", "bee", "cat"];
    let count = match row {
        Json::Array(all) => all.len(),
        Json::Object(fields) => fields["bbox"].as_array().unwrap().len(),
        _ => 0,
    };
    let mut objects = Vec::new();
    for at in 0..count {
        let value = |name: &str| match row {
            Json::Array(all) => &all[at][name],
            _ => &row[name][at],
        };
        let sides = value("bbox").as_array();
        let sides: Option<Vec<f64>> = sides.and_then(|all| all.iter().map(Json::as_f64).collect());
        let Some([x, y, w, h]) = sides.map(|all| <[f64; 4]>::try_from(all).unwrap()) else {
            continue;
        };
        if w == 0.0 {
            continue;
        }
        let label = match value("category") {
            Json::String(name) => names.iter().position(|known| known == name).unwrap() as u32,
            number => number.as_u64().unwrap() as u32,
        };
        objects.push((
            [x, y, w, h],
            label,
            value("id").as_i64().unwrap_or(-1),
            value("area").as_f64().unwrap_or(w * h),
            u8::from(value("iscrowd").as_bool().unwrap()),
        ));
    }
    objects
}

fn files() -> serde_json::Map<String, Json> {
    let text = golden("object_columns", "expected.json").unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn objects_are_those_that_pyarrow_reads() {
    let files = files();
    assert_eq!(files.len(), 9);
    for (name, rows) in files {
        let file = TableFile::new(&name, &golden("object_columns", &name).unwrap());
        let (table, report) = file.read(&AnnotationOptions::default()).unwrap();
        let rows = rows.as_array().unwrap();
        assert_eq!(table.samples(), rows.len() as u64, "{name}");
        let mut objects = 0;
        for (id, row) in (0..).zip(rows) {
            let want = expected(row);
            let sample = table.sample(id);
            let got: Vec<ExpectedObject> = (0..sample.len())
                .map(|at| {
                    (
                        sample.numbers[at],
                        sample.labels[at],
                        sample.ids[at],
                        sample.areas[at],
                        sample.crowds[at],
                    )
                })
                .collect();
            assert_eq!(got, want, "{name} row {id}");
            assert_eq!(table.image_id(id), 1000 + id as i64, "{name}");
            objects += want.len() as u64;
        }
        assert_eq!(report.objects, objects);
        let counted: u64 = report.categories.iter().map(|of| of.objects).sum();
        assert_eq!(counted, objects, "{name}");
        let categories = table.form().categories.iter();
        let categories: Vec<(i64, &str)> = categories.map(|of| (of.id, &*of.name)).collect();
        assert_eq!(categories, [(0, "ant"), (1, "bee"), (2, "cat")], "{name}");
        // In Parquet a missing list and an empty one are read alike.
        let is_known = name.ends_with("arrow");
        let missing = rows.iter().filter(|row| row.is_null()).count();
        assert_eq!(
            (missing, report.images_without_entry),
            (1, u64::from(is_known)),
            "{name}"
        );
        let kinds: Vec<AnnotationFault> = report.wrong.iter().map(|of| of.fault).collect();
        assert!(!kinds.is_empty(), "{name}");
        let first = &report.wrong[0].first[0];
        assert!(first.contains(&name) && first.contains("row "), "{first}");
        let strict = AnnotationOptions {
            strict: true,
            ..AnnotationOptions::default()
        };
        let e = file.read(&strict).unwrap_err().to_string();
        assert!(e.contains(&name) && e.contains(", object "), "{e}");
    }
}

#[test]
fn a_row_of_very_many_objects_is_an_error() {
    let bytes = golden("object_columns", "many.parquet").unwrap();
    assert!(bytes.len() < 4096);
    let file = TableFile::new("many.parquet", &bytes);
    let e = file
        .read(&AnnotationOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("many.parquet: row 0, column '/objects/category'"),
        "{e}"
    );
    assert!(e.contains("more than 4194304 values"), "{e}");
}

#[test]
fn other_columns_are_errors() {
    for name in ["lists.parquet", "structs.arrow"] {
        let file = TableFile::new(name, &golden("object_columns", name).unwrap());
        let e = file.reader("boxes").err().unwrap().to_string();
        assert!(e.contains("has no column 'boxes' with bbox"), "{e}");
        assert!(e.contains("objects") && e.contains(name), "{e}");
        let (index, mut reader) = (file.index().unwrap(), file.reader("objects").unwrap());
        let names = ["a".to_owned()];
        let options = AnnotationOptions::default();
        let read = read_rows(
            &index,
            &mut *reader,
            Some("objects"),
            form(),
            Some(&names),
            &options,
        );
        let e = read.unwrap_err().to_string();
        assert!(e.contains("remove `names`"), "{e}");
    }
}

/// Whatever the bytes are, there are objects or an error that names the file.
#[test]
fn damaged_files_are_errors() {
    for name in [
        "lists.parquet",
        "lists-v2.parquet",
        "structs-names.parquet",
        "lists.arrow",
        "structs-names.arrow",
    ] {
        let whole = golden("object_columns", name).unwrap();
        let check = |bytes: &[u8]| {
            let file = TableFile::new(name, bytes);
            let index = TableFile::new(name, &whole).index().unwrap();
            let read = file.reader("objects").and_then(|mut reader| {
                let options = AnnotationOptions::default();
                read_rows(
                    &index,
                    &mut *reader,
                    Some("objects"),
                    form(),
                    None,
                    &options,
                )
            });
            if let Err(e) = read {
                let e = e.to_string();
                assert!(e.contains(name) || e.contains("fewer rows"), "{e}");
            }
        };
        let step = whole.len() / 40;
        for end in (0..whole.len()).step_by(step) {
            check(&whole[..end]);
        }
        for at in (0..whole.len()).step_by(step / 4) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            check(&bytes);
        }
    }
}

#[test]
fn a_file_that_changed_gives_no_objects() {
    for name in ["lists.parquet", "lists.arrow"] {
        let bytes = golden("object_columns", name).unwrap();
        let file = TableFile::new(name, &bytes);
        let (index, mut reader) = (file.index().unwrap(), file.reader("objects").unwrap());
        std::thread::sleep(std::time::Duration::from_millis(30));
        std::fs::write(&file.path, &bytes).unwrap();
        let options = AnnotationOptions::default();
        let read = read_rows(
            &index,
            &mut *reader,
            Some("objects"),
            form(),
            None,
            &options,
        );
        let e = read.unwrap_err().to_string();
        assert!(e.contains("changed after its data set was opened"), "{e}");
    }
}

#[test]
fn json_without_objects_and_with_wrong_ones() {
    let options = AnnotationOptions::default();
    let file = Path::new("a.tar");
    let read = |texts: &[&str], key| {
        let mut objects = RowObjects::new(key, form(), None, &options).unwrap();
        for (n, text) in texts.iter().enumerate() {
            let content = match *text {
                "" => RecordContent::Missing,
                text => RecordContent::Json(text.into()),
            };
            objects.push(content, (file, &format!("row {n}"))).unwrap();
        }
        objects.finish(file, "boxes")
    };
    let good = r#"{"bbox": [1, 2, 3, 4], "category_id": 3}"#;
    let (table, report) = read(
        &[
            &format!("[{good}]"),
            &format!(r#"{{"annotations": [{good}, {good}], "width": 9, "height": 8}}"#),
            r#"{"objects": {"bbox": [[1, 2, 3, 4]], "label": ["x"]}, "caption": {}}"#,
            r#"{"boxes": [[1, 2, 3, 4]], "labels": [5], "image_id": 77}"#,
            r#"{"caption": "none"}"#,
            "",
            "[1",
            r#"{"annotations": []}"#,
        ],
        None,
    )
    .unwrap();
    let counts: Vec<usize> = (0..8).map(|id| table.count(id)).collect();
    assert_eq!(counts, [1, 2, 1, 1, 0, 0, 0, 0]);
    assert_eq!(
        (report.images_without_entry, report.images_without_objects),
        (2, 4)
    );
    assert_eq!(
        (table.stated_size(1), table.image_id(3)),
        (Some((8, 9)), 77)
    );
    assert_eq!(report.wrong[0].first, ["a.tar: row 6"]);
    assert_eq!(report.count(AnnotationFault::Damaged), 1);
    let e = read(&["", "{}"], None).unwrap_err().to_string();
    assert!(e.contains("a.tar: none of the 2 images has boxes"), "{e}");
    let e = read(&["[1, 2]"], None).unwrap_err().to_string();
    assert!(e.contains("none of the annotations can be used"), "{e}");
    let (table, _) = read(&[&format!(r#"{{"o": [{good}]}}"#)], Some("o")).unwrap();
    assert_eq!(table.objects(), 1);
    let mut objects = RowObjects::new(None, form(), None, &options).unwrap();
    let long = vec![b' '; (16 << 20) + 1];
    let long = RecordContent::Json(long);
    let e = objects.push(long, (file, "row 0")).unwrap_err().to_string();
    assert!(
        e.contains("a.tar: row 0: has more than 16777216 bytes"),
        "{e}"
    );
}
