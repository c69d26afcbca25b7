use std::fs;

use super::binary::{crc32c, masked_crc};
use super::*;
use crate::data::index::{FolderOptions, Index, ListOptions};
use crate::error::Error;
use crate::loader::Source;

#[test]
fn crc_is_that_of_the_rfc() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

/// A record of TensorFlow's.
fn tfrecord() -> Vec<u8> {
    let length = 5_u64.to_le_bytes();
    let mut bytes = length.to_vec();
    bytes.extend(masked_crc(&length).to_le_bytes());
    bytes.extend(b"hello....");
    bytes
}

fn lmdb() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[16..20].copy_from_slice(&0xbeef_c0de_u32.to_le_bytes());
    bytes
}

fn tar() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    bytes[..5].copy_from_slice(b"a.jpg");
    bytes[257..262].copy_from_slice(b"ustar");
    bytes
}

#[test]
fn what_is_no_data_set_is_told_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let spaced = format!(
        "{{ \"info\": {{}},{}\"images\": [], \"annotations\": []}}",
        " ".repeat(5000)
    );
    for (name, bytes, says) in [
        (
            "a.bin",
            &b"PAR1\x15\x04\x15"[..],
            "is a Parquet file: give it by a name that ends in .parquet, or a folder of such \
             files alone",
        ),
        (
            "b.arrow",
            b"ARROW1\0\0",
            "is an Arrow file: write it as Parquet (Python: \
             pyarrow.parquet.write_table(pyarrow.feather.read_table('b.arrow'), 'b.parquet')), \
             and give this",
        ),
        (
            "c.txt",
            b"\xff\xff\xff\xff\x10\0\0\0..",
            "is an Arrow stream, as Hugging Face writes it: write it as Parquet (Python: \
             datasets.Dataset.from_file('c.txt').to_parquet('c.parquet'))",
        ),
        (
            "d",
            b"\x89HDF\r\n\x1a\n\0",
            "is an HDF5 file: write its pictures",
        ),
        ("e", b"SQLite format 3\0", "is an SQLite database: write"),
        (
            "f",
            b"\x0a\x23\xd7\xce\0\0",
            "is an MXNet RecordIO file: write",
        ),
        (
            "g",
            b"\x80\x04\x95\0",
            "is a Python pickle: write its pictures",
        ),
        (
            "h",
            b"\x93NUMPY\x01\0",
            "is a NumPy array: give the folder or the list",
        ),
        (
            "i",
            b"PK\x03\x04\x14\0",
            "is a zip archive: unpack it, and give the folder",
        ),
        (
            "i.npz",
            b"PK\x03\x04\x14\0",
            "is a NumPy archive: write its pictures",
        ),
        (
            "i.pt",
            b"PK\x03\x04\x14\0",
            "is a torch archive: write its pictures",
        ),
        ("j", b"7z\xbc\xaf\x27\x1c", "is a 7z archive: unpack it"),
        (
            "k",
            b"\x1f\x8b\x08\0",
            "is compressed by gzip: unpack it, and give the folder or \
                                  the plain tar",
        ),
        (
            "l",
            b"\x28\xb5\x2f\xfd\0",
            "is compressed by zstd: unpack it",
        ),
        ("m", b"BZh91AY&SY\0", "is compressed by bzip2: unpack it"),
        (
            "n",
            b"%PDF-1.7\n",
            "is a PDF file: give a folder of pictures",
        ),
        (
            "o",
            &tar(),
            "is a tar archive: give it a name that ends in .tar",
        ),
        (
            "data.mdb",
            &lmdb(),
            "is an LMDB database: write its pictures",
        ),
        ("p", &tfrecord(), "is a TFRecord file: write its pictures"),
        (
            "q",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            "is one picture (JPEG): give the folder that \
                                                it is in",
        ),
        (
            "r",
            b"<?xml version=\"1.0\"?>\n<annotation>",
            "is an annotation of one picture, as Pascal VOC writes it: a list with one",
        ),
        (
            "s",
            b"{\n  \"fl_x\": 1, \"frames\": []}",
            "is the transforms file of a scene: \
                                                     `featherload rays` and `featherload \
                                                     views` read it",
        ),
        (
            "t",
            b"\xef\xbb\xbf{\"camera_angle_x\": 0.7}",
            "is the transforms file of a scene",
        ),
        (
            "u",
            spaced.as_bytes(),
            "is a COCO annotation file: boxes and masks are not read. For one label a picture \
             write a CSV file with the header line `path,label`",
        ),
        (
            "v",
            b"[\n {\"image\": 3}]",
            "is a JSON file: write it as JSON lines",
        ),
        (
            "w",
            b"{\"format\": \"featherload-cache\"",
            "is the manifest of a cache: give the \
                                                      cache's folder",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let whole = |e: Error| {
            let text = e.to_string();
            assert!(e.is_usage() && e.is_dataset(), "{text}");
            let rest = text.strip_prefix(&format!("{}: ", path.display()));
            rest.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        let detected = Source::detect(&path).and_then(Source::open).unwrap_err();
        let listed = Index::list(&path, &ListOptions::default()).unwrap_err();
        for said in [whole(detected), whole(listed)] {
            assert!(said.starts_with(says), "{name}: {said}");
        }
    }
}

#[test]
fn lists_that_look_like_something_else_are_lists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    for text in [
        "BMW/1.jpg 3\n",
        "P6/1.jpg 3\n",
        "{a}/1.jpg 3\n",
        "[x].jpg 0\n",
        "PK.jpg 1\n",
        "BZh/1.jpg 1\n",
        "\u{feff}a.jpg 0\n",
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(of_file(&path), None, "{text}");
        assert_eq!(
            Index::list(&path, &ListOptions::default()).unwrap().0.len(),
            1
        );
    }
    assert_eq!(of_file(folder.path()), None);
    assert_eq!(of_file(&folder.path().join("absent")), None);
}

#[test]
fn only_the_beginning_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let mut text = "{\"other\": 1,".to_owned() + &" ".repeat(MOST_READ);
    text.push_str("\"frames\": [], \"transform_matrix\": 0}");
    fs::write(&path, &text).unwrap();
    assert!(of_file(&path).unwrap().starts_with("is a JSON file"));
    assert_eq!(beginning(&path).unwrap().len(), MOST_READ);
}

#[test]
fn folders_without_pictures_say_what_lies_in_them() {
    for (name, bytes, says) in [
        (
            "transforms.json",
            &b"{}"[..],
            "it holds a scene (transforms.json): `featherload \
                                         rays` and",
        ),
        (
            "data.mdb",
            b"",
            "it holds an LMDB database (data.mdb): write its pictures",
        ),
        (
            "part-0.parquet",
            b"PAR1",
            "part-0.parquet, which is a Parquet file: give it by a name",
        ),
        (
            "a.tfrecord",
            &tfrecord(),
            "it holds TFRecord files (a.tfrecord): write their pictures",
        ),
        (
            "photos.zip",
            b"PK\x03\x04",
            "it holds photos.zip, which is a zip archive: unpack it",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let e = Index::folder(folder.path(), &FolderOptions::default()).unwrap_err();
        let said = e.to_string();
        assert!(
            said.contains("no images found") && said.contains(says),
            "{said}"
        );
    }
}
