//! Binary files: archives, tables, records, videos, images.

use std::ffi::OsStr;
use std::path::Path;

use super::file_kind::{EXPORT, ForeignKind, LIST, UNPACK, is_text};
use crate::picture::FileFormat;

/// The first bytes of a file, its kind, and the fix.
const MAGIC: [(&[u8], &str, &str); 42] = [
    (b"PAR1", "a Parquet file", PARQUET),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", HDF5),
    (b"SQLite format 3\0", "an SQLite database", EXPORT),
    (b"\x0a\x23\xd7\xce", "an MXNet RecordIO file", RECORDIO),
    (b"\x80\x02", "a Python pickle", EXPORT),
    (b"\x80\x03", "a Python pickle", EXPORT),
    (b"\x80\x04", "a Python pickle", EXPORT),
    (b"\x80\x05", "a Python pickle", EXPORT),
    (b"\x93NUMPY", "a NumPy array", ARRAY),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"PK\x05\x06", "an empty zip archive", UNPACK),
    (b"PK\x07\x08", "a zip archive in parts", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"\x1f\x8b", "compressed by gzip", DECOMPRESS),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", DECOMPRESS),
    (b"\xfd7zXZ\0", "compressed by xz", DECOMPRESS),
    (b"\x04\x22\x4d\x18", "compressed by lz4", DECOMPRESS),
    (
        b"%PDF-",
        "a PDF file",
        "give a folder of images, or a list of them",
    ),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file", MATLAB),
    (b"MATLAB 7.3 MAT-file", "a MATLAB file (HDF5)", HDF5),
    (b"Obj\x01", "an Avro file", EXPORT),
    (b"ORC", "an ORC file", EXPORT),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Office file",
        SHEET,
    ),
    (b"\x1a\x45\xdf\xa3", "a Matroska or WebM video", VIDEO),
    (b"FLV\x01", "a Flash video", VIDEO),
    (b"\0\0\x01\xba", "an MPEG video", VIDEO),
    (b"\0\0\x01\xb3", "an MPEG video", VIDEO),
    (
        b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
        "a WMV or ASF video",
        VIDEO,
    ),
    (b"OggS", "an Ogg video or sound", VIDEO),
    (b"ID3", "a sound (MP3)", SOUND),
    (b"fLaC", "a sound (FLAC)", SOUND),
    (b"\xff\x0a", "a JPEG XL image", CONVERT),
    (b"\0\0\0\x0cJXL ", "a JPEG XL image", CONVERT),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image", CONVERT),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image", CONVERT),
    (b"8BPS", "a Photoshop image", CONVERT),
    (b"\x1bLua", "a Lua program", LIST),
    (b"\x7fELF", "a program", LIST),
    (b"glTF", "a 3D model (glTF)", SCENE_FILE),
    (b"TFL3", "a TensorFlow Lite model", WEIGHTS),
    (b"GGUF", "a model's weights (GGUF)", WEIGHTS),
];

/// Extensions of files whose content has no signature, their kind, and the fix.
const NAMES: [(&str, &str, &str); 8] = [
    ("beton", "an FFCV file", EXPORT),
    ("mds", "a shard of MosaicML Streaming", EXPORT),
    ("onnx", "a model (ONNX)", WEIGHTS),
    ("pb", "a TensorFlow model or message", WEIGHTS),
    ("pkl", "a Python pickle", EXPORT),
    ("pickle", "a Python pickle", EXPORT),
    ("rec", "an MXNet RecordIO file", RECORDIO),
    ("lmdb", "an LMDB database", EXPORT),
];

const PARQUET: &str =
    "rename it so that its name ends in .parquet, or give a folder that has only such files";
const NAMED_PARQUET: &str =
    "give its path as the data set. `root` is the folder of its images' paths";
const DECOMPRESS: &str = "unpack it, and give the folder or the plain tar";
const RECORDIO: &str = "write its images to a folder or to tar shards (Python's \
                        mxnet.recordio.MXIndexedRecordIO reads it), and give these";
const HDF5: &str =
    "write its images to a folder or to tar shards (Python's h5py reads it), and give these";
const MATLAB: &str = "write its labels to a list with one `path label` per line (Python's \
                      scipy.io.loadmat reads it), and give this";
const NPZ: &str = "write its images to a folder or to tar shards (Python's numpy.load reads \
                   it), and give these";
const ARRAY: &str = "give the folder or the list that it belongs to, or write each of its \
                     images to a file";
const SHEET: &str = "save its sheet as CSV (UTF-8) with a header line, and give this";
const VIDEO: &str = "write its frames as images (ffmpeg -i VIDEO FOLDER/%06d.jpg), and give \
                     their folder";
const SOUND: &str = "only images are read";
const CONVERT: &str = "it is not decoded: convert it to JPEG, PNG or WebP, and give the folder";
const WEIGHTS: &str = "give the folder or the list of the images";
const SCENE_FILE: &str = "give the folder or the list of the images";

/// The kind of a binary file.
pub(super) fn kind(path: &Path, head: &[u8]) -> ForeignKind {
    marked(path, head)
        .or_else(|| picture(head))
        .unwrap_or_else(|| {
            let what = "a binary file of an unknown kind";
            ForeignKind::new(
                what,
                "give a folder of images, a list, a table or tar shards",
            )
        })
}

/// The kind of a file by its signature, or by its extension if it has a zero byte.
pub(super) fn marked(path: &Path, head: &[u8]) -> Option<ForeignKind> {
    if let Some(kind) = of_arrow(path, head) {
        return Some(kind);
    }
    // A path in a list may begin with the letters of a signature.
    let is_plain = |magic: &[u8]| magic.len() < 5 && magic.iter().all(u8::is_ascii_graphic);
    let is_list = is_text(head);
    let is = |(magic, ..): &&(&[u8], &str, &str)| {
        head.starts_with(magic) && !(is_list && is_plain(magic))
    };
    if let Some((_, what, fix)) = MAGIC.iter().find(is) {
        return Some(match *fix {
            UNPACK => of_archive(path, head, what),
            PARQUET if ends(path, "parquet") => ForeignKind::new(*what, NAMED_PARQUET),
            fix => ForeignKind::new(*what, fix),
        });
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Some(ForeignKind::new("compressed by bzip2", DECOMPRESS));
    }
    if head.get(257..262) == Some(b"ustar") {
        let fix = match ends(path, "tar") {
            true => "give its path, or a pattern such as '*.tar', as the data set",
            false => "give it a name that ends in .tar",
        };
        return Some(ForeignKind::new("a tar archive", fix));
    }
    if head.get(16..20) == Some(&0xbeef_c0de_u32.to_le_bytes()) {
        return Some(ForeignKind::new("an LMDB database", EXPORT));
    }
    if is_tfrecord(head) {
        return Some(ForeignKind::new("a TFRecord file", TFRECORD));
    }
    if is_beton(head) {
        return Some(ForeignKind::new("an FFCV file", EXPORT));
    }
    if is_safetensors(head) {
        return Some(ForeignKind::new("a model's weights (safetensors)", WEIGHTS));
    }
    if head.get(8..12) == Some(b"DUCK") {
        return Some(ForeignKind::new("a DuckDB database", EXPORT));
    }
    if let [0, 0, 8, axes @ 1..=4, ..] = head {
        let what = match axes {
            1 => "a file of labels in the IDX format of MNIST",
            _ => "a file of images in the IDX format of MNIST",
        };
        return Some(ForeignKind::new(what, EXPORT));
    }
    if let Some(kind) = of_media(head) {
        return Some(kind);
    }
    if !head.contains(&0) {
        return None;
    }
    let (_, what, fix) = NAMES.iter().find(|(end, ..)| ends(path, end))?;
    Some(ForeignKind::new(*what, *fix))
}

const TFRECORD: &str = "write its images to a folder or to tar shards (Python's \
                        tensorflow.data.TFRecordDataset reads it), and give these";

/// A single image, given instead of a data set.
pub(super) fn picture(head: &[u8]) -> Option<ForeignKind> {
    let format = FileFormat::sniff(head, &[]).ok()?;
    let what = format!("one image ({format})");
    Some(ForeignKind::new(what, "give the folder that it is in"))
}

fn ends(path: &Path, end: &str) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(end))
}

/// Arrow files, Arrow streams and Feather version 1, under other names.
fn of_arrow(path: &Path, head: &[u8]) -> Option<ForeignKind> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fix = "rename it so that its name ends in .arrow";
    let is_stream = head.starts_with(b"\xff\xff\xff\xff") && head.get(6..8) == Some(b"\0\0");
    if head.starts_with(b"ARROW1\0\0") {
        Some(ForeignKind::new("an Arrow file", fix))
    } else if head.starts_with(b"FEA1") && head.contains(&0) {
        let fix = format!(
            "write it as an Arrow file (Python: pyarrow.feather.write_feather(\
             pyarrow.feather.read_table('{name}'), 'NAME.arrow', compression='uncompressed'))"
        );
        Some(ForeignKind::new("a Feather file of version 1", fix))
    } else if is_stream {
        Some(ForeignKind::new("an Arrow stream", fix))
    } else {
        None
    }
}

/// A zip archive, or a format that uses zip, by the names of the archive and its first member.
fn of_archive(path: &Path, head: &[u8], what: &str) -> ForeignKind {
    if !head.starts_with(b"PK\x03\x04") {
        return ForeignKind::new(what, UNPACK);
    }
    let length = head
        .get(26..28)
        .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let member = head.get(30..30 + usize::from(length)).unwrap_or_default();
    let is_sheet = [&b"[Content_Types].xml"[..], b"xl/", b"mimetype"];
    if is_sheet.iter().any(|begin| member.starts_with(begin))
        || ["xlsx", "xlsm", "ods", "numbers"]
            .iter()
            .any(|end| ends(path, end))
    {
        return ForeignKind::new("a spreadsheet", SHEET);
    }
    if ends(path, "npz") || member.ends_with(b".npy") {
        return ForeignKind::new("a NumPy archive", NPZ);
    }
    let is_torch = ["pt", "pth", "ckpt"].iter().any(|end| ends(path, end));
    match is_torch || member.ends_with(b"/data.pkl") {
        true => ForeignKind::new("a torch archive", EXPORT),
        false => ForeignKind::new(what, UNPACK),
    }
}

/// Videos, sounds and images whose signature is not at the first byte, or has variable bits.
fn of_media(head: &[u8]) -> Option<ForeignKind> {
    let boxes = [&b"moov"[..], b"mdat", b"wide", b"free", b"skip"];
    match head.get(4..8) {
        Some(b"ftyp") => {
            return Some(match head.get(8..12).unwrap_or_default() {
                b"avif" | b"avis" => ForeignKind::new("an AVIF image", CONVERT),
                b"heic" | b"heix" | b"hevc" | b"heim" | b"heis" | b"mif1" | b"msf1" => {
                    ForeignKind::new("a HEIF image", CONVERT)
                }
                b"crx " => ForeignKind::new("a camera's raw image (CR3)", CONVERT),
                b"M4A " => ForeignKind::new("a sound (MPEG-4)", SOUND),
                b"qt  " => ForeignKind::new("a QuickTime video", VIDEO),
                _ => ForeignKind::new("an MP4 video", VIDEO),
            });
        }
        Some(mark) if head.starts_with(b"\0") && boxes.contains(&mark) => {
            return Some(ForeignKind::new("a QuickTime video", VIDEO));
        }
        _ => {}
    }
    if head.starts_with(b"RIFF") {
        return match head.get(8..12) {
            Some(b"AVI ") => Some(ForeignKind::new("an AVI video", VIDEO)),
            Some(b"WAVE") => Some(ForeignKind::new("a sound (WAVE)", SOUND)),
            _ => None,
        };
    }
    let is_packet = |at: usize| head.get(at) == Some(&0x47);
    if [0, 188, 376, 564].into_iter().all(is_packet) && head.contains(&0) {
        return Some(ForeignKind::new("an MPEG transport stream", VIDEO));
    }
    let is_mp3 = matches!(head, [0xff, second, ..] if second & 0xe6 == 0xe2);
    (is_mp3 && head.contains(&0)).then(|| ForeignKind::new("a sound (MP3)", SOUND))
}

/// FFCV's header: version 2, number of fields, page size, number of samples, offset of the table.
fn is_beton(head: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let bytes = head.get(at..at + bytes)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    };
    let (Some(fields), Some(page), Some(samples), Some(table)) =
        (number(2, 2), number(4, 4), number(8, 8), number(16, 8))
    else {
        return false;
    };
    head.starts_with(b"\x02\0")
        && (1..=256).contains(&fields)
        && page.is_power_of_two()
        && page >= 4096
        && (1..1 << 40).contains(&samples)
        && (24..1 << 50).contains(&table)
}

/// Safetensors begin with the length of a JSON header, then the header.
fn is_safetensors(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<8>() else {
        return false;
    };
    u64::from_le_bytes(*length) < 100 << 20 && rest.starts_with(b"{\"")
}

/// A record begins with its length and the length's masked CRC32C.
fn is_tfrecord(head: &[u8]) -> bool {
    let Some((length, rest)) = head.split_first_chunk::<8>() else {
        return false;
    };
    let Some((sum, _)) = rest.split_first_chunk::<4>() else {
        return false;
    };
    u32::from_le_bytes(*sum) == masked_crc(length)
}

pub(super) fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

pub(super) fn crc32c(bytes: &[u8]) -> u32 {
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
