//! Arrow files that pyarrow wrote, whole and damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::data::columns::column_set::OpenColumns;
use crate::data::columns::stamped_file::StampedFile;
use crate::data::columns::values::ColumnValues;
use crate::data::index::parquet::{ParquetLabels, ParquetOptions};
use crate::data::index::{Index, Label};
use crate::error::Result;

const COLUMNS: [&str; 7] = ["note", "kind", "score", "tags", "boxes", "words", "flag"];

/// A seed of the fuzzer, without its first byte.
fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/arrow");
    std::fs::read(folder.join(name)).unwrap().split_off(1)
}

fn read(path: &Path, options: &ParquetOptions) -> Result<Index> {
    let files = expand(path)?;
    open(&files, options).map(|(index, _)| index)
}

fn columns(path: &Path, index: Index) -> Result<Arc<OpenColumns>> {
    let names: Vec<String> = COLUMNS.iter().map(|name| (*name).to_owned()).collect();
    let files = expand(path)?;
    let all = files.data.iter().chain(&files.indices).cloned();
    let readers = open_columns(&files, &StampedFile::of_all(all)?, &names)?;
    Ok(OpenColumns::new(readers, Arc::new(index)).unwrap())
}

/// The bytes of each image, as the index places them.
fn pictures(path: &Path, index: &Index) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let place = |id| {
        let range = index.part(id).unwrap().range();
        bytes[range.start as usize..range.end as usize].to_vec()
    };
    (0..index.len()).map(place).collect()
}

#[test]
fn images_labels_and_columns_are_those_that_were_written() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["stream", "file"] {
        let path = dir.path().join(format!("{name}.arrow"));
        std::fs::write(&path, golden(name)).unwrap();
        let index = read(&path, &ParquetOptions::default()).unwrap();
        assert_eq!(
            pictures(&path, &index),
            [&b"picture 0"[..], b"", b"picture 2!", b"", b"p4"]
        );
        let labels: Vec<Label<'_>> = (0..5).map(|id| index.label(id)).collect();
        assert_eq!(labels, [2, 0, 1, 2, 1].map(Label::Class));
        assert_eq!(index.classes().iter().next().unwrap(), "ant");
        assert_eq!(index.relative_path(4), Path::new("row-4"));

        let open = columns(&path, index).unwrap();
        let kinds: Vec<String> = open.names().map(|(_, kind)| kind.to_string()).collect();
        assert_eq!(
            kinds,
            [
                "text",
                "int64",
                "float32",
                "lists of int16",
                "lists of 2 x float32",
                "lists of text",
                "bool"
            ]
        );
        // Out of order, across record batches, with a row of padding.
        let rows = || [Some(4), Some(1), None, Some(2)].into_iter();
        let of = |name: &str| open.read(name, rows()).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("note"),
            ColumnValues::Text(vec![some("four"), None, some(""), some("two é")])
        );
        assert_eq!(
            of("words"),
            ColumnValues::TextLists(vec![
                vec![some("c"), some("d")],
                vec![],
                vec![],
                vec![some("b"), None]
            ])
        );
        let ColumnValues::Numbers {
            values,
            width: None,
        } = of("score")
        else {
            panic!("no numbers");
        };
        let score: Vec<f64> = values.to_f64().collect();
        assert!(score[0] == 4.25 && score[1].is_nan() && score[2..] == [0.0, 2.0]);
        let ColumnValues::Numbers { values, .. } = of("flag") else {
            panic!("no numbers");
        };
        assert_eq!(values.to_i64().unwrap(), [0, 0, 0, 1]);
        let ragged = |name: &str| match of(name) {
            ColumnValues::Ragged {
                values, offsets, ..
            } => (values.to_f64().collect::<Vec<_>>(), offsets),
            other => panic!("{other:?}"),
        };
        assert_eq!(ragged("tags"), (vec![4.0, 5.0, 6.0], vec![0, 3, 3, 3, 3]));
        assert_eq!(
            ragged("boxes"),
            (vec![7.0, 8.0, 3.0, 4.0, 5.0, 6.0], vec![0, 1, 1, 1, 3])
        );
        let e = open.read("kind", [Some(5)].into_iter()).unwrap_err();
        assert!(e.to_string().contains("has no row 5"), "{e}");
    }
}

#[test]
fn views_and_names_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("views.feather");
    std::fs::write(&path, golden("views")).unwrap();
    let index = read(&path, &ParquetOptions::default()).unwrap();
    assert_eq!(pictures(&path, &index), [&[b'x'; 20][..], b"short", b""]);
    let labels: Vec<Label<'_>> = (0..3).map(|id| index.label(id)).collect();
    assert_eq!(labels, [1, 0, 1].map(Label::Class));
}

#[test]
fn an_order_beside_the_files_is_the_order_of_the_samples() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a.arrow", "b.arrow"].map(|name| dir.path().join(name));
    for name in &names {
        std::fs::write(name, golden("stream")).unwrap();
    }
    // The column of whole numbers of the file itself serves as an order: 2, 0, 1, 2, 1.
    let mut files = ArrowFiles {
        data: names.to_vec(),
        indices: Vec::new(),
    };
    let (all, _) = open(&files, &ParquetOptions::default()).unwrap();
    assert_eq!(all.len(), 10);
    files.indices = vec![names[0].clone()];
    let e = open(&files, &ParquetOptions::default()).unwrap_err();
    assert!(e.to_string().contains("no column 'indices'"), "{e}");
}

/// Nothing may panic, whatever a file claims; what is accepted lies within the file.
fn check(path: &PathBuf, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    for labels in [ParquetLabels::Auto, ParquetLabels::None] {
        let options = ParquetOptions {
            labels,
            ..ParquetOptions::default()
        };
        let Ok(index) = read(path, &options) else {
            continue;
        };
        assert!(!index.is_empty());
        pictures(path, &index);
        let Ok(open) = columns(path, index) else {
            continue;
        };
        for name in COLUMNS {
            for row in [0, 1, 2, 4, 5, u64::MAX] {
                // An error of a damaged value is as good as the value.
                drop(open.read(name, [Some(row)].into_iter()));
            }
        }
    }
}

#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.arrow");
    for name in ["stream", "file", "views"] {
        let whole = golden(name);
        for cut in (0..whole.len()).step_by(7) {
            check(&path, &whole[..cut]);
        }
        for at in (0..whole.len()).step_by(4) {
            let mut changed = whole.clone();
            changed[at] ^= [0xff, 0x01, 0x80][at / 4 % 3];
            check(&path, &changed);
        }
    }
}
