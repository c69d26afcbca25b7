//! Files that are cut off, changed, or not Parquet: they lead to errors or failed samples, never
//! to a panic.

use std::fs;
use std::path::Path;

use featherload::index::ParquetOptions;
use featherload::survey::HeaderSurvey;

use super::scene::{image, int64, open, plain, refused, texts, ways, write};

fn written(path: &Path, properties: parquet::file::properties::WriterPropertiesBuilder) {
    let pictures = (0..12u8).map(|n| Some(vec![n; 40 + usize::from(n)]));
    let columns = [
        image("image", pictures.collect()),
        int64("label", (0..12).map(Some).collect()),
        texts("name", &["a", "b", "c"].repeat(4)),
    ];
    write(path, &columns, (12, 5), properties);
}

/// Distance of the bytes that are changed.
const STEP: usize = 23;

/// Reads the headers of all samples of a file, if it can be indexed. Samples may fail.
fn look(path: &Path) {
    if let Ok(index) = open(path) {
        let len = fs::metadata(path).unwrap().len();
        assert!(index.len() <= len);
        HeaderSurvey::of(&index).unwrap();
    }
}

#[test]
fn every_cut_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    written(&path, plain());
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let message = refused(&path, &ParquetOptions::default());
        let fits = ["is not a Parquet file", "is damaged", "is an empty file"];
        assert!(
            fits.iter().any(|fit| message.contains(fit)),
            "{len}: {message}"
        );
    }
}

#[test]
fn no_byte_that_is_changed_ends_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    for (number, (_, properties)) in ways().into_iter().enumerate() {
        written(&path, properties);
        let whole = fs::read(&path).unwrap();
        // Different positions for each writer.
        for at in (4 + number % STEP..whole.len()).step_by(STEP) {
            let mut changed = whole.clone();
            // Different bits at each position.
            changed[at] ^= [0xff, 0x01, 0x80, 0x10][at % 4];
            fs::write(&path, &changed).unwrap();
            look(&path);
        }
    }
}

#[test]
fn pictures_in_another_encoding_are_refused_by_its_name() {
    use parquet::file::properties::{WriterProperties, WriterVersion};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let version2 = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_writer_version(WriterVersion::PARQUET_2_0);
    written(&path, version2);
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("in the encoding DELTA_BYTE_ARRAY, which is not supported"),
        "{message}"
    );
}

/// A file with these bytes as its footer.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    let len = (footer.len() as u32).to_le_bytes();
    [b"PAR1", footer, &len, b"PAR1"].concat()
}

#[test]
fn footers_that_count_what_is_not_there_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    // A group of 2^31 - 1 members; a list of as many elements; deeply nested groups.
    let members = [&[0x15, 2, 0x19, 0x1c, 0x48, 1, b's'][..], &[0x15]].concat();
    let members = [&members[..], &[0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0]].concat();
    let elements = [0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0];
    let mut deep = vec![0x15, 2, 0x19, 0xfc, 0xe0, 0xd4, 0x03];
    for _ in 0..60_000 {
        deep.extend([0x48, 1, b's', 0x15, 2, 0]);
    }
    deep.push(0);
    let no_schema = "is damaged: its footer has no schema";
    for (footer, expected) in [
        (&members[..], no_schema),
        (&elements, "has 2147483647 columns, more than 65536"),
        (&deep, no_schema),
        (&[0], no_schema),
        (&[], no_schema),
    ] {
        fs::write(&path, with_footer(footer)).unwrap();
        let message = refused(&path, &ParquetOptions::default());
        assert!(message.contains(expected), "{message}");
    }
    fs::write(&path, b"PAR1\xff\xff\xff\x00PAR1").unwrap();
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("its footer is longer than the file"),
        "{message}"
    );
    fs::write(&path, b"PAR1\xff\xff\xff\xffPAR1").unwrap();
    let message = refused(&path, &ParquetOptions::default());
    assert!(message.contains("more than 32 MiB"), "{message}");
    fs::write(&path, b"PAR1\x00\x00\x00\x00PARE").unwrap();
    let message = refused(&path, &ParquetOptions::default());
    assert!(
        message.contains("is an encrypted Parquet file"),
        "{message}"
    );
}
