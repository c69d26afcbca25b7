use std::fs;
use std::path::Path;

use super::binary::{crc32c, masked_crc};
use super::content::{MOST_READ, beginning};
use super::*;
use crate::data::index::{FolderOptions, Index, ListOptions};
use crate::error::Error;
use crate::loader::Source;

#[test]
fn crc_is_that_of_the_rfc() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

/// One record in TensorFlow's format.
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
            "is a Parquet file: rename it so that its name ends in .parquet, or give a folder that \
             has only such files",
        ),
        (
            "b.ipc",
            b"ARROW1\0\0",
            "is an Arrow file: rename it so that its name ends in .arrow",
        ),
        (
            "c.txt",
            b"\xff\xff\xff\xff\x10\0\0\0..",
            "is an Arrow stream: rename it so that its name ends in .arrow",
        ),
        (
            "d",
            b"\x89HDF\r\n\x1a\n\0",
            "is an HDF5 file: write its images",
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
            "is a Python pickle: write its images",
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
            "is a NumPy archive: write its images",
        ),
        (
            "i.pt",
            b"PK\x03\x04\x14\0",
            "is a torch archive: write its images",
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
        ("n", b"%PDF-1.7\n", "is a PDF file: give a folder of images"),
        (
            "o",
            &tar(),
            "is a tar archive: give it a name that ends in .tar",
        ),
        ("data.mdb", &lmdb(), "is an LMDB database: write its images"),
        ("p", &tfrecord(), "is a TFRecord file: write its images"),
        (
            "q",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            "is one image (JPEG): give the folder that \
                                                it is in",
        ),
        (
            "r",
            b"<?xml version=\"1.0\"?>\n<annotation>",
            "is an annotation of one image in Pascal VOC's format: write its label to a list with",
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
            "is a COCO annotation file: boxes and masks are not read. For one label per image, \
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
        "ID3/1.jpg 1\n",
        "ORC/1.jpg 1\n",
        "PAR1/1.jpg 1\n",
        "OggS/1.jpg 1\n",
        "GGUF.jpg 1\n",
        "<a>/1.jpg 1\n",
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
            "it holds an LMDB database (data.mdb): write its images",
        ),
        (
            "part-0.parquet",
            b"PAR1\x15\x04",
            "part-0.parquet, which is a Parquet file: give its path",
        ),
        (
            "a.tfrecord",
            &tfrecord(),
            "it holds TFRecord files (a.tfrecord): write their images",
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

/// A list that has the right name for a data set is one.
#[test]
fn files_with_the_right_name_are_data_sets() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, says) in [
        (
            "a.tar",
            &tar()[..],
            "is a tar archive: give its path, or a pattern",
        ),
        (
            "a.parquet",
            b"PAR1\x15\x04\x15",
            "is a Parquet file: give its path as the data set",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let found = of_file(&path).unwrap();
        assert!(found.starts_with(says), "{found}");
    }
}

/// Tables beside tars report their download. They have addresses, which would be asked for.
#[test]
fn tars_are_found_before_the_tables_beside_them_and_in_sub_folders() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("b")).unwrap();
    fs::create_dir(root.join("a")).unwrap();
    fs::write(root.join("b/1.tar"), tar()).unwrap();
    let said = |root: &Path| Index::folder(root, &FolderOptions::default()).unwrap_err();
    let wanted = format!("to read them give '{}/b/*.tar'", root.display());
    assert!(said(root).to_string().ends_with(&wanted), "{}", said(root));
    // Another data set in the folder itself comes first.
    fs::write(root.join("data.mdb"), lmdb()).unwrap();
    let text = said(root).to_string();
    assert!(text.contains("it holds an LMDB database"), "{text}");
    fs::remove_file(root.join("data.mdb")).unwrap();
    fs::write(root.join("0.tar"), tar()).unwrap();
    fs::write(root.join("0.parquet"), b"PAR1").unwrap();
    for name in ["a", "b"] {
        fs::remove_dir_all(root.join(name)).unwrap();
    }
    let wanted = format!(
        "to read them give '{0}/*.tar', and '{0}/*.parquet' for its Parquet files",
        root.display()
    );
    let detected = Source::detect(root).and_then(Source::open).unwrap_err();
    assert!(detected.to_string().ends_with(&wanted), "{detected}");
    // A pattern is named only if it matches a file.
    fs::remove_file(root.join("0.parquet")).unwrap();
    fs::write(root.join(".1.parquet"), b"PAR1").unwrap();
    fs::create_dir(root.join("2.parquet")).unwrap();
    let text = said(root).to_string();
    assert!(
        text.ends_with(&format!("to read them give '{}/*.tar'", root.display())),
        "{text}"
    );
    let text = values_of(root).unwrap();
    assert!(text.ends_with(&format!("give '{}/*.tar'", root.display())));
    fs::remove_file(root.join("0.tar")).unwrap();
    assert_eq!(values_of(root), None);
    fs::write(root.join("metadata.csv"), "file_name,text\n").unwrap();
    let text = values_of(root).unwrap();
    assert!(
        text.contains("metadata.csv, a table of its images"),
        "{text}"
    );
}

/// Data sets of other tools: the error names the kind and a fix.
#[test]
fn files_of_other_tools_are_named_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    let mut beton = b"\x02\0\x02\0\0\0\x80\0\x64\0\0\0\0\0\0\0\0\0\x80\0\0\0\0\0".to_vec();
    beton.resize(4096, 0);
    let zip = |member: &[u8]| {
        let mut bytes = b"PK\x03\x04".to_vec();
        bytes.resize(26, 0);
        bytes.extend((member.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(member);
        bytes
    };
    let mut stream = b"\x47".to_vec();
    stream.resize(188 * 4, 0);
    for at in [188, 376, 564] {
        stream[at] = 0x47;
    }
    let frames = "ffmpeg -i VIDEO FOLDER/%06d.jpg";
    for (name, bytes, what, fix) in [
        (
            "a.beton",
            &beton[..],
            "an FFCV file",
            "to a folder or to tar shards",
        ),
        (
            "a.mp4",
            b"\0\0\0\x20ftypisom\0\0\x02\0",
            "an MP4 video",
            frames,
        ),
        (
            "a.mov",
            b"\0\0\0\x14ftypqt  \0\0\x02\0",
            "a QuickTime video",
            frames,
        ),
        (
            "a.mkv",
            b"\x1a\x45\xdf\xa3\x9f\0",
            "a Matroska or WebM video",
            frames,
        ),
        ("a.avi", b"RIFF\0\x10\0\0AVI LIST\0", "an AVI video", frames),
        ("a.mpg", b"\0\0\x01\xba\x21\0", "an MPEG video", frames),
        ("a.flv", b"FLV\x01\x05\0\0\0\x09\0", "a Flash video", frames),
        ("a.ts", &stream, "an MPEG transport stream", frames),
        (
            "a.wav",
            b"RIFF\0\x10\0\0WAVEfmt \0",
            "a sound",
            "only images are read",
        ),
        (
            "a.heic",
            b"\0\0\0\x18ftypheic\0\0\0\0",
            "a HEIF image",
            "convert it to JPEG",
        ),
        (
            "a.avif",
            b"\0\0\0\x18ftypavif\0\0\0\0",
            "an AVIF image",
            "convert it to JPEG",
        ),
        (
            "a.mat",
            b"MATLAB 5.0 MAT-file, Platform\0",
            "a MATLAB file",
            "scipy.io.loadmat",
        ),
        (
            "b.mat",
            b"MATLAB 7.3 MAT-file, Platform\0",
            "a MATLAB file (HDF5)",
            "h5py",
        ),
        ("a.h5", b"\x89HDF\r\n\x1a\n\0", "an HDF5 file", "h5py"),
        (
            "a.rec",
            b"\x0a\x23\xd7\xce\0\0",
            "an MXNet RecordIO file",
            "MXIndexedRecordIO",
        ),
        ("a.npz", &zip(b"x.npy"), "a NumPy archive", "numpy.load"),
        (
            "a.xlsx",
            &zip(b"[Content_Types].xml"),
            "a spreadsheet",
            "save its sheet as CSV",
        ),
        (
            "old.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0",
            "an old Office file",
            "CSV",
        ),
        (
            "weights.bin",
            &zip(b"archive/data.pkl"),
            "a torch archive",
            "tar shards",
        ),
        ("a.zip", &zip(b"cat/1.jpg"), "a zip archive", "unpack it"),
        (
            "b.zip",
            b"PK\x05\x06\0\0",
            "an empty zip archive",
            "unpack it",
        ),
        ("a.rar", b"Rar!\x1a\x07\x01\0", "a RAR archive", "unpack it"),
        (
            "p0.pkl",
            b"(dp0\nVdata\np1\n(lp2\ns.",
            "a Python pickle",
            "tar shards",
        ),
        (
            "a.safetensors",
            b"\x14\0\0\0\0\0\0\0{\"x\":{}}",
            "a model's weights",
            "the list",
        ),
        (
            "t10k-labels",
            b"\0\0\x08\x01\0\0",
            "labels in the IDX format",
            "tar shards",
        ),
        (
            "a.fea",
            b"FEA1\0\0\0\0",
            "a Feather file of version 1",
            "pyarrow.feather.read_table('a.fea')",
        ),
        (
            "voc.xml",
            b"<annotation><folder>VOC</folder>",
            "Pascal VOC",
            "`path label`",
        ),
        (
            "a.svg",
            b"<svg xmlns=\"x\">",
            "an SVG drawing",
            "convert it to PNG",
        ),
        (
            "state.txt",
            b"{\"_data_files\": []}",
            "a file of Hugging Face's save_to_disk",
            "give its folder",
        ),
        (
            "lines.json",
            b"{\"a\": 1}\n{\"a\": 2}\n",
            "a file of JSON lines",
            "ends in .jsonl",
        ),
        (
            "r.yaml",
            b"featherload: 1\nops: []\n",
            "a recipe",
            "`recipe`",
        ),
        (
            "y.yaml",
            b"train: a\nval: b\nnames:\n  0: x\n",
            "a YOLO data set",
            "the folder",
        ),
        (
            "unknown",
            b"\x01\x02\0\x03",
            "a binary file of an unknown kind",
            "give a folder of images",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let said = of_file(&path).unwrap_or_else(|| panic!("{name}"));
        let (is, to_do) = said.split_once(": ").unwrap();
        assert!(is.contains(what) && to_do.contains(fix), "{name}: {said}");
        let e = Index::list(&path, &ListOptions::default()).unwrap_err();
        assert_eq!(e.to_string(), format!("{}: {said}", path.display()));
    }
}

#[test]
fn folders_of_other_tools_are_named_with_a_fix() {
    let mds = br#"{"shards": [{"raw_data": {}}], "version": 2}"#;
    let litdata = br#"{"chunks": [{"chunk_bytes": 1}], "config": {}}"#;
    for (files, what, fix) in [
        (
            &[("index.json", &mds[..]), ("shard.00000.mds", b"\0")][..],
            "a MosaicML Streaming (MDS) data set (index.json)",
            "streaming.LocalDataset",
        ),
        (
            &[("index.json", litdata), ("chunk-0-0.bin", b"\0")],
            "a LitData data set (index.json)",
            "litdata.StreamingDataset",
        ),
        (
            &[("train/index.json", mds)],
            "a MosaicML Streaming (MDS) data set (train/index.json)",
            "write its images",
        ),
        (
            &[
                ("dataset_info.json", b"{}"),
                ("a.tfrecord-00000-of-00002", b"\x01"),
            ],
            "TFRecord files (a.tfrecord-00000-of-00002)",
            "write their images",
        ),
        (
            &[
                ("batches.meta", b"\x80\x02}."),
                ("data_batch_1", b"\x80\x02}."),
            ],
            "it holds CIFAR's batches",
            "give a PaddleClas config of Cifar10 or Cifar100",
        ),
        (
            &[("run/1.mp4", b"\0\0\0\x20ftypisom\0")],
            "run/1.mp4, which is an MP4 video",
            "ffmpeg",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let e = Index::folder(folder.path(), &FolderOptions::default()).unwrap_err();
        let root = folder.path().display().to_string();
        let said = e.to_string().replace(&root, "ROOT");
        assert!(said.contains(what) && said.contains(fix), "{said}");
        assert!(
            !said.contains("farbfeld") && !said.contains("jpeg,"),
            "{said}"
        );
    }
}

/// A folder with these files, all empty.
fn folder_of(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

#[test]
fn folders_of_splits_and_of_detection_are_no_classes() {
    for (files, give) in [
        (&["train/cat/1.jpg", "val/cat/1.jpg"][..], "ROOT/train;"),
        (&["Testing/a/1.jpg", "Training/a/1.jpg"], "ROOT/Training;"),
        (&["train/cat/1.jpg"], "its only folder is train"),
        (
            &["test/a/1.jpg", "train/a/1.jpg", "valid/a/1.jpg"],
            "ROOT/train;",
        ),
        (
            &["Annotations/1.xml", "JPEGImages/1.jpg"],
            "give ROOT/JPEGImages for",
        ),
        (
            &["annotations/i.json", "train2017/1.jpg", "val2017/1.jpg"],
            "give ROOT/train2017",
        ),
        (
            &["images/train/1.jpg", "labels/train/1.txt"],
            "give ROOT/images for",
        ),
        (
            &[
                "Annotations/1.xml",
                "JPEGImages/1.jpg",
                "SegmentationClass/1.png",
            ],
            "give ROOT/JPEGImages for",
        ),
        (
            &["test_set/a/1.jpg", "training_set/a/1.jpg"],
            "ROOT/training_set;",
        ),
        (
            &["seg_test/a/1.jpg", "seg_train/a/1.jpg"],
            "ROOT/seg_train;",
        ),
        (&["train2017/a/1.jpg", "val2017/a/1.jpg"], "ROOT/train2017;"),
        (
            &["Train-Images/a/1.jpg", "valset/a/1.jpg"],
            "ROOT/Train-Images;",
        ),
    ] {
        let folder = folder_of(files);
        let e = Index::folder(folder.path(), &FolderOptions::default()).unwrap_err();
        let said = e
            .to_string()
            .replace(&folder.path().display().to_string(), "ROOT");
        assert!(
            said.contains(give) && said.contains("`labels: none`"),
            "{said}"
        );
        let options = FolderOptions {
            labels: crate::data::index::FolderLabels::None,
            ..FolderOptions::default()
        };
        assert!(!Index::folder(folder.path(), &options).unwrap().0.is_empty());
    }
    // With a class list, or beside other folders, the same names are classes.
    let folder = folder_of(&["train/cat/1.jpg", "val/cat/1.jpg"]);
    let names = folder.path().join("names.txt");
    fs::write(&names, "train\nval\n").unwrap();
    let options = FolderOptions {
        classes: Some(crate::data::index::ClassList::read(&names).unwrap()),
        ..FolderOptions::default()
    };
    assert_eq!(Index::folder(folder.path(), &options).unwrap().0.len(), 2);
    for files in [
        &["bus/1.jpg", "car/1.jpg", "train/1.jpg"][..],
        &["test/1.jpg", "train/1.jpg"],
        &["images/1.jpg", "other/1.jpg"],
        &["cats/1.jpg", "dogs/1.jpg", "images/1.jpg", "labels/1.jpg"],
        &["bus/a/1.jpg", "images/1.jpg", "labels/1.jpg"],
        &["train2017/1.jpg", "val2017/1.jpg"],
    ] {
        let folder = folder_of(files);
        assert!(
            Index::folder(folder.path(), &FolderOptions::default()).is_ok(),
            "{files:?}"
        );
    }
}

#[test]
fn detection_says_how_its_folders_become_classes() {
    let folder = folder_of(&["images/1.jpg", "labels/1.txt"]);
    let e = Index::folder(folder.path(), &FolderOptions::default()).unwrap_err();
    let said = e.to_string();
    assert!(
        said.contains("the layout of YOLO and are not classes"),
        "{said}"
    );
    assert!(
        said.ends_with("`classes` uses the folders as classes"),
        "{said}"
    );
}

#[test]
fn splits_beside_another_folder_get_a_warning() {
    let warning = |files: &[&str]| {
        let folder = folder_of(files);
        let names = fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_encoded_bytes());
        let mut names: Vec<_> = names.collect();
        names.sort();
        check_class_folders(folder.path(), &names).unwrap()
    };
    let said = warning(&["meta/1.jpg", "train/a/1.jpg", "val/a/1.jpg"]).unwrap();
    assert!(
        said.contains("its folders train, val look like splits"),
        "{said}"
    );
    assert_eq!(warning(&["bus/1.jpg", "test/1.jpg", "train/a/1.jpg"]), None);
}

#[test]
fn labels_beside_the_pictures_of_a_flat_folder_are_not_lost() {
    let read = |name: &str, text: &str| {
        let folder = folder_of(&["1.jpg", "2.jpg"]);
        fs::write(folder.path().join(name), text).unwrap();
        let read = Index::folder(folder.path(), &FolderOptions::default());
        read.map(|(index, _)| index.len()).map_err(|e| {
            e.to_string()
                .replace(&folder.path().display().to_string(), "ROOT")
        })
    };
    for (name, text) in [
        (
            "metadata.jsonl",
            "{\"file_name\": \"1.jpg\", \"label\": 1}\n",
        ),
        (
            "metadata.jsonl",
            "{\"file_name\":\"1.jpg\",\"label\":3,\"w\":NaN}\n",
        ),
        (
            "metadata.jsonl",
            "\u{feff}\n{\"file_name\":\"1.jpg\",\"class_id\":3}\n",
        ),
        ("metadata.csv", "file_name,label\n1.jpg,1\n"),
        ("metadata.csv", "\u{feff}label,file_name\n1,1.jpg\n"),
        ("metadata.csv", "file_name;label\n1.jpg;1\n"),
        ("metadata.csv", "file_name\t\"label\"\r\n1.jpg\t1\r\n"),
    ] {
        let said = read(name, text).unwrap_err();
        let gives = said.contains(&format!("ROOT/{name} has labels"));
        assert!(gives && said.contains("`labels: none`"), "{said}");
    }
    // Captions are not labels.
    let text = "{\"file_name\": \"1.jpg\", \"text\": \"a cat\"}\n";
    assert_eq!(read("metadata.jsonl", text), Ok(2));
    assert_eq!(read("metadata.csv", ""), Ok(2));
    // A metadata file in a split's folder.
    let folder = folder_of(&["train/1.jpg", "test/1.jpg"]);
    fs::write(
        folder.path().join("train/metadata.csv"),
        "file_name,label\n1.jpg,1\n",
    )
    .unwrap();
    let e = Index::folder(folder.path(), &FolderOptions::default()).unwrap_err();
    assert!(
        e.to_string()
            .contains("train/metadata.csv, which has labels"),
        "{e}"
    );
}
