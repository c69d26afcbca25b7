//! Arrow files that pyarrow wrote, whole and damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::data::arrow::ArrowFile;
use crate::data::columns::column_set::{OpenColumns, unpacked_bytes};
use crate::data::columns::kept_buffers::MOST_KEPT;
use crate::data::columns::stamped_file::StampedFile;
use crate::data::columns::values::ColumnValues;
use crate::data::index::arrow::files::{ROW_BYTES, RowBudget};
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
    Ok(OpenColumns::new(readers, names.len(), Arc::new(index)).unwrap())
}

/// The bytes of each image, as the index places them.
fn pictures(index: &Index) -> Vec<Vec<u8>> {
    let place = |id| {
        let bytes = std::fs::read(index.file(id)).unwrap();
        let part = index.part(id).unwrap();
        let range = part.range();
        let range = range.start as usize..range.end as usize;
        let Some(page) = index.page(part.shard) else {
            return bytes[range].to_vec();
        };
        let mut unpacked = Vec::new();
        let packed = &bytes[page.at as usize..(page.at + page.packed) as usize];
        match page.unpack(packed, &mut unpacked) {
            Ok(()) => unpacked[range].to_vec(),
            // A worker gives this fault. Tests of whole files compare the bytes.
            Err(fault) => fault.reason.into_bytes(),
        }
    };
    (0..index.len()).map(place).collect()
}

#[test]
fn images_labels_and_columns_are_those_that_were_written() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["stream", "file", "lz4", "zstd"] {
        let path = dir.path().join(format!("{name}.arrow"));
        std::fs::write(&path, golden(name)).unwrap();
        let index = read(&path, &ParquetOptions::default()).unwrap();
        assert_eq!(
            pictures(&index),
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
    assert_eq!(pictures(&index), [&[b'x'; 20][..], b"short", b""]);
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

#[test]
fn an_order_of_compressed_files_is_the_order_of_the_samples() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["lz4", "stream", "zstd"].map(|name| {
        let path = dir.path().join(format!("{name}.arrow"));
        std::fs::write(&path, golden(name)).unwrap();
        path
    });
    let order = dir.path().join("indices.arrow");
    std::fs::write(&order, golden("order")).unwrap();
    let files = ArrowFiles {
        data: names.to_vec(),
        indices: vec![order],
    };
    let (index, _) = open(&files, &ParquetOptions::default()).unwrap();
    // The order is 14, 0, 7, 4, 12.
    let names: Vec<_> = (0..5)
        .map(|id| index.relative_path(id).to_owned())
        .collect();
    let rows = ["row-4", "row-0", "row-2", "row-4", "row-2"];
    assert_eq!(names, rows.map(|row| Path::new(row).to_owned()));
    let want = [
        &b"p4"[..],
        b"picture 0",
        b"picture 2!",
        b"p4",
        b"picture 2!",
    ];
    assert_eq!(pictures(&index), want);
}

#[test]
fn lengths_that_lie_and_large_buffers_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.arrow");
    for name in ["lz4", "zstd"] {
        let whole = golden(name);
        std::fs::write(&path, &whole).unwrap();
        let index = read(&path, &ParquetOptions::default()).unwrap();
        let page = index.page(index.part(0).unwrap().shard).unwrap();
        assert!(index.largest_page() >= page.unpacked);
        // The length that the buffer of images begins with.
        let at = page.at as usize - 8;
        let with = |length: i64| {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
            std::fs::write(&path, bytes).unwrap();
            read(&path, &ParquetOptions::default())
        };
        for length in [1 << 30, i64::MAX] {
            let e = with(length).unwrap_err().to_string();
            assert!(e.contains("chunksize"), "{e}");
        }
        for length in [-2, i64::MIN, 0, 5] {
            let e = with(length).unwrap_err().to_string();
            assert!(e.contains("is damaged"), "{e}");
        }
        // The buffer is longer than its images, so the scan does not notice.
        let mut last = Vec::new();
        for length in [page.unpacked - 1, page.unpacked + 1] {
            last = pictures(&with(length as i64).unwrap());
            for picture in &last[..3] {
                let fault = String::from_utf8(picture.clone()).unwrap();
                assert!(fault.contains("cannot be unpacked"), "{fault}");
            }
        }
        // The other record batch is whole.
        assert_eq!(last[4], b"p4");
    }
}

/// `empty` has empty bytes with a path, then an image, then neither.
#[test]
fn empty_bytes_are_bytes_whatever_the_compression() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["empty", "empty-lz4", "empty-zstd"] {
        let path = dir.path().join(format!("{name}.arrow"));
        std::fs::write(&path, golden(name)).unwrap();
        let index = read(&path, &ParquetOptions::default()).unwrap();
        assert_eq!(pictures(&index), [&b""[..], b"picture", b""], "{name}");
        // `alone` has a path without bytes in row 1, after an image.
        std::fs::write(&path, golden(&name.replace("empty", "alone"))).unwrap();
        let e = read(&path, &ParquetOptions::default()).unwrap_err();
        let e = e.to_string();
        assert!(
            e.contains("row 1: column 'image' has a path and no bytes"),
            "{e}"
        );
    }
}

#[test]
fn columns_share_one_budget_that_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let most = |name: &str, columns: &[&str]| {
        let path = dir.path().join(format!("{name}.arrow"));
        std::fs::write(&path, golden(name)).unwrap();
        let files = expand(&path).unwrap();
        let stamps = StampedFile::of_all(files.data.iter().cloned()).unwrap();
        let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        unpacked_bytes(&open_columns(&files, &stamps, &names).unwrap())
    };
    assert_eq!(most("file", &COLUMNS), 0);
    for name in ["lz4", "zstd"] {
        let one = most(name, &["note"]);
        let both = most(name, &["note", "words"]);
        // The values of both, and one decoder.
        assert!(one > 0 && both > one && both < one + 4096, "{one} {both}");
        assert!(most(name, &COLUMNS) < MOST_KEPT);
    }
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
        pictures(&index);
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
    for name in ["stream", "file", "views", "lz4", "zstd"] {
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

/// Files are counted together: their rows are in memory at one time.
#[test]
fn rows_of_all_files_are_compared_with_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.arrow");
    std::fs::write(&path, golden("lz4")).unwrap();
    let file = ArrowFile::read(&path).unwrap();
    let rows = RowBudget::new(Some(20 * ROW_BYTES));
    rows.add(&file).unwrap();
    rows.add(&file).unwrap();
    let e = rows.add(&file).unwrap_err();
    assert!(
        e.contains("has 5 rows, 15 with the files before it") && e.contains("available memory"),
        "{e}"
    );
    // A machine that does not report its memory.
    RowBudget::new(None).add(&file).unwrap();
}
