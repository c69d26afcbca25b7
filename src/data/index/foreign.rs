//! What a file or a folder is that was given as a data set and is none, told by its content:
//! for the message that refuses it.
//!
//! In the consumer. Reads at most [`MOST_READ`] bytes of a file, at its beginning, and
//! opens nothing that is not a regular file. Names decide nothing, but which of two names an
//! archive goes by. Never in here: reading what was told.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::picture::Format;
use crate::sys::regular;

/// Keys of a JSON document are looked for this far.
const MOST_READ: usize = 64 << 10;

/// How a file begins, what it is, and what to do with it.
const MAGIC: [(&[u8], &str, &str); 19] = [
    (b"PAR1", "a Parquet file", PARQUET),
    (b"ARROW1\0\0", "an Arrow file", EXPORT),
    (b"\xff\xff\xff\xff\x10\0\0\0", "an Arrow stream", EXPORT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", EXPORT),
    (b"SQLite format 3\0", "an SQLite database", EXPORT),
    (b"\x0a\x23\xd7\xce", "an MXNet RecordIO file", EXPORT),
    (b"\x80\x02", "a Python pickle", EXPORT),
    (b"\x80\x03", "a Python pickle", EXPORT),
    (b"\x80\x04", "a Python pickle", EXPORT),
    (b"\x80\x05", "a Python pickle", EXPORT),
    (
        b"\x93NUMPY",
        "a NumPy array",
        "give the folder or the list that it belongs to",
    ),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"\x1f\x8b", "compressed by gzip", DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", DECOMPRESS),
    (b"\xfd7zXZ\0", "compressed by xz", DECOMPRESS),
    (b"\x04\x22\x4d\x18", "compressed by lz4", DECOMPRESS),
    (
        b"%PDF-",
        "a PDF file",
        "give a folder of pictures, or a list of them",
    ),
];

const PARQUET: &str = "give it by a name that ends in .parquet, or a folder of such files alone";
const EXPORT: &str = "write its pictures to a folder or to tar shards, and give these";
const UNPACK: &str = "unpack it, and give the folder";
const DECOMPRESS: &str = "unpack it, and give the folder or the plain tar";

/// What is said of a file that is no list, no tar and no saved index: a fragment that begins
/// with `is`. None of a file that may be a list.
pub(crate) fn of_file(path: &Path) -> Option<String> {
    let (file, _) = regular::open(path).ok()?;
    let (what, fix) = told(path, &beginning(&file))?;
    Some(format!("is {what}: {fix}"))
}

/// What lies in a folder without pictures that somebody may have meant.
pub(crate) fn of_folder(root: &Path) -> Option<String> {
    const SCENES: [&str; 2] = ["transforms.json", "transforms_train.json"];
    if let Some(name) = SCENES.iter().find(|name| root.join(name).is_file()) {
        return Some(format!("it holds a scene ({name}): {SCENE}"));
    }
    // LMDB's, whose magic stands behind a page's head.
    let lmdb = root.join("data.mdb");
    lmdb.is_file()
        .then(|| format!("it holds an LMDB database (data.mdb): {EXPORT}"))
}

const SCENE: &str = "`featherload rays` and `featherload views` read it";

fn beginning(file: &File) -> Vec<u8> {
    let mut head = vec![0; MOST_READ];
    let mut filled = 0;
    while let Ok(read @ 1..) = file.read_at(&mut head[filled..], filled as u64) {
        filled += read;
    }
    head.truncate(filled);
    head
}

fn told(path: &Path, head: &[u8]) -> Option<(String, &'static str)> {
    let named = |what: &str, fix| Some((what.to_owned(), fix));
    if let Some((_, what, fix)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return match path.extension().map(OsStrExt::as_bytes) {
            Some(b"npz") if *fix == UNPACK => named("a NumPy archive", EXPORT),
            Some(b"pt" | b"pth") if *fix == UNPACK => named("a torch archive", EXPORT),
            _ => named(what, fix),
        };
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return named("compressed by bzip2", DECOMPRESS);
    }
    if head.get(257..262) == Some(b"ustar") {
        return named("a tar archive", "give it a name that ends in .tar");
    }
    if head.get(16..20) == Some(&0xbeef_c0de_u32.to_le_bytes()) {
        return named("an LMDB database", EXPORT);
    }
    if is_tfrecord(head) {
        return named("a TFRecord file", EXPORT);
    }
    let is_text = !head
        .iter()
        .any(|b| b.is_ascii_control() && !b.is_ascii_whitespace());
    match is_text {
        true => of_text(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)),
        false => {
            let format = Format::sniff(head, &[]).ok()?;
            Some((
                format!("one picture ({format})"),
                "give the folder that it is in",
            ))
        }
    }
}

fn of_text(text: &[u8]) -> Option<(String, &'static str)> {
    let named = |what: &str, fix| Some((what.to_owned(), fix));
    let text = text.trim_ascii_start();
    if text.starts_with(b"<?xml") || text.starts_with(b"<!DOCTYPE") || text.starts_with(b"<html") {
        return named("an XML or HTML file", LIST);
    }
    let inside = match text {
        [b'{', inside @ ..] => matches!(inside.trim_ascii_start().first(), Some(b'"' | b'}')),
        [b'[', inside @ ..] => {
            matches!(
                inside.trim_ascii_start().first(),
                Some(b'{' | b'[' | b'"' | b']')
            )
        }
        _ => false,
    };
    if !inside {
        return None;
    }
    let has = |key: &str| {
        let key = format!("\"{key}\"");
        text.windows(key.len())
            .any(|window| window == key.as_bytes())
    };
    let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
    if has("featherload-cache") {
        return named("the manifest of a cache", "give the cache's folder");
    }
    if has_any(&["transform_matrix", "camera_angle_x", "camera_model"])
        || (has("frames") && has_any(&["fl_x", "w", "applied_transform"]))
    {
        return named("the transforms file of a scene", SCENE);
    }
    if has("images") && has_any(&["annotations", "categories", "licenses", "file_name"]) {
        return named("a COCO annotation file", LIST);
    }
    named("a JSON file", LIST)
}

const LIST: &str = "write a list with one `path label` a line, or give the folder of the pictures";

/// A record begins with its length and the length's masked CRC32C.
fn is_tfrecord(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<8>() else {
        return false;
    };
    let Some((sum, _)) = rest.split_first_chunk::<4>() else {
        return false;
    };
    let masked = crc32c(length).rotate_right(15).wrapping_add(0xa282_ead8);
    u32::from_le_bytes(*sum) == masked
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let low = sum & 1;
            sum >>= 1;
            if low == 1 {
                sum ^= 0x82f6_3b78;
            }
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let masked = crc32c(&length).rotate_right(15).wrapping_add(0xa282_ead8);
        bytes.extend(masked.to_le_bytes());
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
            ("b", b"ARROW1\0\0", "is an Arrow file: write its pictures"),
            (
                "c.txt",
                b"\xff\xff\xff\xff\x10\0\0\0..",
                "is an Arrow stream: write",
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
                "is an XML or HTML file: write a \
                                                             list with one `path label` a line",
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
                "is a COCO annotation file: write a list with one `path \
                                      label` a line, or give the folder of the pictures",
            ),
            ("v", b"[\n {\"image\": 3}]", "is a JSON file: write a list"),
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
        let file = File::open(&path).unwrap();
        assert_eq!(beginning(&file).len(), MOST_READ);
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
                "part-0.parquet is a Parquet file: give it by a name",
            ),
            (
                "a.tfrecord",
                &tfrecord(),
                "a.tfrecord is a TFRecord file: write its pictures",
            ),
            (
                "photos.zip",
                b"PK\x03\x04",
                "photos.zip is a zip archive: unpack it",
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
}
