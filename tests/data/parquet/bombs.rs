//! Small files whose columns decode to very many or long labels: memory stays limited.

use std::fs;
use std::path::Path;
use std::process::Command;

use featherload::index::{Label, ParquetOptions};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::scene::{Column, bytes, double, int32, int64, open, plain, refused, texts, write};

fn label() -> ColumnPath {
    ColumnPath::from("label")
}

/// Writes the label column in this encoding.
fn encoded(encoding: Encoding) -> WriterPropertiesBuilder {
    plain().set_column_encoding(label(), encoding)
}

fn pictures(rows: usize) -> Column {
    bytes("image", (0..rows).map(|n| vec![n as u8; 9]).collect())
}

/// Texts with a long shared prefix take a few bytes each in the file.
#[test]
fn a_long_front_that_labels_share_is_refused_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bomb.parquet");
    let rows = 160;
    let long = "a".repeat(1_000_000);
    let labels = vec![long.as_str(); rows];
    let packed = encoded(Encoding::DELTA_BYTE_ARRAY)
        .set_column_compression(label(), Compression::ZSTD(Default::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_size_limit(64 << 20);
    write(
        &path,
        &[pictures(rows), texts("label", &labels)],
        (rows, rows),
        packed,
    );
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    let run = |path: &Path| {
        let limited = format!(
            "ulimit -v 150000 && exec {} index {}",
            env!("CARGO_BIN_EXE_featherload"),
            path.display()
        );
        let out = Command::new("sh").args(["-c", &limited]).output().unwrap();
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let message = run(&path);
    let expected = "row 0: a class name longer than 4096 bytes: name another column";
    assert!(message.contains(expected), "{message}");
    assert!(!message.contains("panicked"), "{message}");

    // Different names, each below the limit.
    let front = "b".repeat(4080);
    let labels: Vec<String> = (0..20_000).map(|n| format!("{front}{n}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let packed = encoded(Encoding::DELTA_BYTE_ARRAY);
    let columns = [pictures(labels.len()), texts("label", &labels)];
    write(&path, &columns, (labels.len(), labels.len()), packed);
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("more than 64 MiB of class names"),
        "{message}"
    );
}

/// A name that several files have counts once.
#[test]
fn class_names_of_all_files_together_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let write_names = |file: &str, front: &str| {
        let front = front.repeat(4080);
        let labels: Vec<String> = (0..9_000).map(|n| format!("{front}{n:05}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let packed = encoded(Encoding::DELTA_BYTE_ARRAY);
        let columns = [pictures(labels.len()), texts("label", &labels)];
        let rows = (labels.len(), labels.len());
        write(&dir.path().join(file), &columns, rows, packed);
    };
    // 37 MB of names in each file.
    for file in ["a.parquet", "b.parquet"] {
        write_names(file, "a");
    }
    let index = open(dir.path()).unwrap();
    assert_eq!((index.len(), index.classes().len()), (18_000, 9_000));
    let labels = [0, 8_999, 9_000, 17_999].map(|id| index.label(id));
    assert_eq!(labels, [0, 8_999, 0, 8_999].map(Label::Class));
    write_names("c.parquet", "b");
    let message = refused(dir.path(), &ParquetOptions::default());
    assert!(
        message.contains("more than 64 MiB of class names in all files"),
        "{message}"
    );
}

/// All encodings of a type decode to the same labels.
#[test]
fn labels_are_the_same_in_every_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let numbers: Vec<i64> = (0..700).map(|n| (n * n % 1000) - 400).collect();
    let names = ["dog", "cat", "catfish", "cattle", "ant"].repeat(140);
    let labels = |column, encoding| {
        write(
            &path,
            &[pictures(700), column],
            (700, 300),
            encoded(encoding),
        );
        let index = open(&path).unwrap();
        let of = |id| match index.label(id) {
            Label::Class(class) => class as f32,
            Label::Vector(vector) => vector.iter().next().unwrap(),
            other => panic!("{other:?}"),
        };
        (0..index.len()).map(of).collect::<Vec<f32>>()
    };
    let whole: Vec<f32> = numbers.iter().map(|n| *n as f32).collect();
    for encoding in [
        Encoding::PLAIN,
        Encoding::DELTA_BINARY_PACKED,
        Encoding::BYTE_STREAM_SPLIT,
    ] {
        let column = int64("label", numbers.iter().map(|n| Some(*n)).collect());
        assert_eq!(labels(column, encoding), whole, "{encoding}");
        let column = int32("label", numbers.iter().map(|n| *n as i32).collect());
        assert_eq!(labels(column, encoding), whole, "{encoding}");
    }
    let halves: Vec<f32> = whole.iter().map(|n| n / 2.0).collect();
    for encoding in [Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT] {
        let column = double("label", halves.iter().map(|n| f64::from(*n)).collect());
        assert_eq!(labels(column, encoding), halves, "{encoding}");
    }
    for encoding in [
        Encoding::PLAIN,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ] {
        let expected = [4.0, 1.0, 2.0, 3.0, 0.0].repeat(140);
        assert_eq!(
            labels(texts("label", &names), encoding),
            expected,
            "{encoding}"
        );
    }
}

/// The `parquet` crate allocates by the counts of a footer, so they are checked first.
#[test]
fn a_footer_of_more_columns_or_row_groups_than_a_file_has_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let column = b"\x48\x01s\0";
    let columns = [
        &[0x15, 2, 0x19, 0xfc, 0x81, 0x80, 0x04][..],
        &column.repeat(65_537),
        &[0],
    ];
    let group = [0x15, 2, 0x19, 0x1c, 0x48, 1, b's', 0, 0x16, 0, 0x19];
    let groups = [&group[..], &[0xfc, 0xa0, 0x8d, 0x06], &[0; 100_001]];
    for (footer, expected) in [
        (columns.concat(), "has 65537 columns, more than 65536"),
        (groups.concat(), "its footer is too short for"),
    ] {
        let len = (footer.len() as u32).to_le_bytes();
        fs::write(&path, [b"PAR1", &footer[..], &len, b"PAR1"].concat()).unwrap();
        let message = refused(&path, &ParquetOptions::default());
        assert!(message.contains(expected), "{message}");
    }
}
