//! Writes Parquet files for tests, with the writer of the `parquet` crate.

use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use featherload::Index;
use featherload::index::ParquetOptions;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// A top-level column: its schema, and the values of each leaf column.
pub struct Column {
    schema: String,
    leaves: Vec<Leaf>,
}

/// The definition level of a present value, and the values. An absent value has the level below.
struct Leaf(i16, Values);

enum Values {
    Bytes(Vec<Option<Vec<u8>>>),
    Int32(Vec<i32>),
    Int64(Vec<Option<i64>>),
    Double(Vec<f64>),
}

/// An image column as Hugging Face writes it, with a path in each row.
pub fn image(name: &str, pictures: Vec<Option<Vec<u8>>>) -> Column {
    let paths = (0..pictures.len()).map(|row| Some(format!("p/{row}.jpg").into_bytes()));
    let paths = Values::Bytes(paths.collect());
    Column {
        schema: format!(
            "optional group {name} {{ optional binary bytes; optional binary path (UTF8); }}"
        ),
        leaves: vec![Leaf(2, Values::Bytes(pictures)), Leaf(2, paths)],
    }
}

pub fn bytes(name: &str, values: Vec<Vec<u8>>) -> Column {
    Column {
        schema: format!("required binary {name};"),
        leaves: vec![Leaf(
            0,
            Values::Bytes(values.into_iter().map(Some).collect()),
        )],
    }
}

pub fn texts(name: &str, values: &[&str]) -> Column {
    let values = values.iter().map(|text| Some(text.as_bytes().to_vec()));
    Column {
        schema: format!("optional binary {name} (UTF8);"),
        leaves: vec![Leaf(1, Values::Bytes(values.collect()))],
    }
}

pub fn int32(name: &str, values: Vec<i32>) -> Column {
    Column {
        schema: format!("required int32 {name};"),
        leaves: vec![Leaf(0, Values::Int32(values))],
    }
}

pub fn int64(name: &str, values: Vec<Option<i64>>) -> Column {
    Column {
        schema: format!("optional int64 {name};"),
        leaves: vec![Leaf(1, Values::Int64(values))],
    }
}

pub fn double(name: &str, values: Vec<f64>) -> Column {
    Column {
        schema: format!("required double {name};"),
        leaves: vec![Leaf(0, Values::Double(values))],
    }
}

impl Leaf {
    fn write(&self, rows: Range<usize>, to: &mut ColumnWriter<'_>) {
        let level = |is_there: bool| self.0 - i16::from(!is_there);
        match (&self.1, to) {
            (Values::Bytes(all), ColumnWriter::ByteArrayColumnWriter(to)) => {
                let all = &all[rows];
                let levels: Vec<_> = all.iter().map(|v| level(v.is_some())).collect();
                let values = all.iter().flatten().cloned().map(ByteArray::from);
                let values: Vec<_> = values.collect();
                to.write_batch(&values, Some(&levels), None)
            }
            (Values::Int64(all), ColumnWriter::Int64ColumnWriter(to)) => {
                let all = &all[rows];
                let levels: Vec<_> = all.iter().map(|v| level(v.is_some())).collect();
                let values: Vec<_> = all.iter().flatten().copied().collect();
                to.write_batch(&values, Some(&levels), None)
            }
            (Values::Int32(all), ColumnWriter::Int32ColumnWriter(to)) => {
                to.write_batch(&all[rows], None, None)
            }
            (Values::Double(all), ColumnWriter::DoubleColumnWriter(to)) => {
                to.write_batch(&all[rows], None, None)
            }
            _ => panic!("another type of column"),
        }
        .unwrap();
    }
}

/// Writer properties without compression and dictionary.
pub fn plain() -> WriterPropertiesBuilder {
    // Writer version 2 would use another encoding for these columns.
    let plain = WriterProperties::builder().set_dictionary_enabled(false);
    ["image", "picture"].iter().fold(plain, |plain, name| {
        let path = ColumnPath::new(vec![(*name).to_owned(), "bytes".to_owned()]);
        plain.set_column_encoding(path, Encoding::PLAIN)
    })
}

/// Writes `rows` rows, with `each` rows per row group.
pub fn write(
    path: &Path,
    columns: &[Column],
    (rows, each): (usize, usize),
    properties: WriterPropertiesBuilder,
) {
    let schema: String = columns.iter().map(|c| c.schema.as_str()).collect();
    let schema = parse_message_type(&format!("message schema {{ {schema} }}")).unwrap();
    let file = File::create(path).unwrap();
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties).unwrap();
    for first in (0..rows).step_by(each) {
        let mut group = writer.next_row_group().unwrap();
        for leaf in columns.iter().flat_map(|c| &c.leaves) {
            let mut column = group.next_column().unwrap().unwrap();
            leaf.write(first..rows.min(first + each), column.untyped());
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Hugging Face's metadata, in which `label` has these classes.
pub fn note(names: &[&str]) -> Vec<KeyValue> {
    let features = serde_json::json!({
        "image": {"_type": "Image"},
        "label": {"names": names, "_type": "ClassLabel"},
    });
    let note = serde_json::json!({"info": {"features": features}});
    vec![KeyValue::new("huggingface".to_owned(), note.to_string())]
}

/// Writer properties that change the location of images in a file, with a name for each.
pub fn ways() -> Vec<(&'static str, WriterPropertiesBuilder)> {
    use parquet::file::properties::WriterVersion::PARQUET_2_0;
    let mut ways = vec![
        ("plain", plain()),
        ("plain, version 2", plain().set_writer_version(PARQUET_2_0)),
        ("dictionary", WriterProperties::builder()),
        // The pages after the dictionary is full are plain.
        (
            "short dictionary",
            WriterProperties::builder()
                .set_dictionary_page_size_limit(20_000)
                .set_write_batch_size(2)
                .set_data_page_row_count_limit(3),
        ),
        (
            "short pages",
            plain()
                .set_write_batch_size(1)
                .set_data_page_row_count_limit(2),
        ),
    ];
    for (name, compression) in [
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(Default::default())),
        ("lz4", Compression::LZ4_RAW),
        ("zstd", Compression::ZSTD(Default::default())),
    ] {
        ways.push((name, plain().set_compression(compression)));
    }
    let snappy = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let short = snappy.clone().set_dictionary_page_size_limit(20_000);
    let short = short
        .set_write_batch_size(2)
        .set_data_page_row_count_limit(3);
    ways.push(("snappy, dictionary", snappy.clone()));
    ways.push(("snappy, short dictionary", short));
    let version2 = snappy.set_writer_version(PARQUET_2_0);
    ways.push(("snappy, dictionary, version 2", version2));
    let version2 = plain()
        .set_writer_version(PARQUET_2_0)
        .set_compression(Compression::SNAPPY);
    ways.push(("snappy, version 2", version2));
    ways
}

/// The images of a folder in the order of its index, and their class numbers.
pub fn photos(folder: &Path) -> (Vec<Option<Vec<u8>>>, Vec<Option<i64>>) {
    let (index, _) = Index::folder(folder, &Default::default()).unwrap();
    let class = |id| match index.label(id) {
        featherload::index::Label::Class(class) => Some(class),
        other => panic!("{other:?}"),
    };
    (0..index.len())
        .map(|id| (Some(fs::read(index.path(id)).unwrap()), class(id)))
        .unzip()
}

pub fn open(path: &Path) -> featherload::Result<Index> {
    open_with(path, &ParquetOptions::default())
}

pub fn open_with(path: &Path, options: &ParquetOptions) -> featherload::Result<Index> {
    let files = Index::expand_parquet(path)?;
    Index::parquet(&files, options).map(|(index, _)| index)
}

pub fn refused(path: &Path, options: &ParquetOptions) -> String {
    let e = open_with(path, options).unwrap_err();
    assert!(e.is_dataset(), "{e}");
    e.to_string()
}
