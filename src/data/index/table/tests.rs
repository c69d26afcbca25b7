//! Tables with valid and invalid records.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::index::table::*;
use crate::data::index::{ClassList, Index, Label, TableColumns};

fn at(name: &str, text: &[u8], options: &TableOptions) -> Result<(Index, ScanReport)> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    fs::write(&file, text).unwrap();
    let (index, report) = Index::table(&file, options)?;
    assert_eq!(report.samples, index.len());
    if options.root.is_none() {
        assert_eq!(index.root(), dir.path());
    }
    Ok((index, report))
}

/// Paths and labels in printed form.
fn read(name: &str, text: &str, options: &TableOptions) -> Vec<(String, String)> {
    let (index, _) =
        at(name, text.as_bytes(), options).unwrap_or_else(|e| panic!("{name}: {text:?}: {e}"));
    let sample = |id| {
        let label = match index.label(id) {
            Label::None => "none".to_owned(),
            Label::Class(class) => class.to_string(),
            Label::Vector(v) => format!("{v:?}"),
        };
        (index.relative_path(id).display().to_string(), label)
    };
    (0..index.len()).map(sample).collect()
}

fn error(name: &str, text: &[u8], options: &TableOptions) -> String {
    let e = at(name, text, options).err().unwrap();
    assert!(e.is_usage(), "{e}");
    let text = e.to_string();
    let cut = text.find(name).unwrap_or_else(|| panic!("{text}"));
    text[cut + name.len()..].to_owned()
}

fn by(names: &[&str]) -> TableOptions {
    TableOptions {
        labels: TableLabels::Columns(names.iter().map(|&name| name.to_owned()).collect()),
        ..TableOptions::default()
    }
}

#[test]
fn tables_of_several_kinds_are_read() {
    let auto = &TableOptions::default();
    let path = |name: &str| TableOptions {
        path_column: Some(name.into()),
        ..TableOptions::default()
    };
    let suffix = TableOptions {
        path_suffix: ".jpg".into(),
        ..TableOptions::default()
    };
    let none = TableOptions {
        labels: TableLabels::None,
        ..TableOptions::default()
    };
    for (name, text, options, want) in [
        // Hugging Face, with and without labels.
        (
            "metadata.csv",
            "file_name,text\na.jpg,\"x, y\"\n",
            auto,
            &[("a.jpg", "none")][..],
        ),
        (
            "metadata.jsonl",
            "{\"file_name\": \"a.jpg\", \"label\": 3}\n\n",
            auto,
            &[("a.jpg", "3")],
        ),
        // Kaggle, with ids.
        (
            "train.csv",
            "image_id,label\r\n10,4\r\n11,-1\r\n",
            &suffix,
            &[("10.jpg", "4"), ("11.jpg", "-1")],
        ),
        (
            "train.ndjson",
            "{\"image_id\": 10}",
            &suffix,
            &[("10.jpg", "none")],
        ),
        // Open Images, with its own names.
        (
            "boxes.csv",
            "ImageID,Source,LabelName\na/1,x,/m/01\nb/2,x,/m/00\n",
            &TableOptions {
                path_suffix: ".png".into(),
                ..by(&["LabelName"])
            },
            &[("a/1.png", "1"), ("b/2.png", "0")],
        ),
        // Spreadsheets and other separators.
        (
            "a.tsv",
            "label\tpath\n1\ta,b.jpg\n",
            auto,
            &[("a,b.jpg", "1")],
        ),
        (
            "a.csv",
            "label;path\n1;\"a;b.jpg\"\n",
            auto,
            &[("a;b.jpg", "1")],
        ),
        ("a.csv", "label\tpath\n1\ta.jpg\n", auto, &[("a.jpg", "1")]),
        (
            "a.CSV",
            "\u{feff}path\n a b.jpg \n\" c.jpg \"\n",
            auto,
            &[("a b.jpg", "none"), (" c.jpg ", "none")],
        ),
        // A requested name. Its case matters.
        (
            "a.csv",
            "path,Path\n1.jpg,2.jpg\n",
            &path("Path"),
            &[("2.jpg", "none")],
        ),
        (
            "a.csv",
            "path,label\n1.jpg,2\n",
            &none,
            &[("1.jpg", "none")],
        ),
        // Class names are sorted by bytes, in whichever order they appear.
        (
            "a.csv",
            "path,class\n1.jpg,dog\n2.jpg,Zebra\n3.jpg,dog\n4.jpg, cat \n",
            auto,
            &[
                ("1.jpg", "2"),
                ("2.jpg", "0"),
                ("3.jpg", "2"),
                ("4.jpg", "1"),
            ],
        ),
        // Vectors: several columns, several numbers, fractions.
        (
            "a.csv",
            "path,a,b,c\n1.jpg,0, 1 ,0.5\n",
            &by(&["c", "a", "b"]),
            &[("1.jpg", "[0.5, 0.0, 1.0]")],
        ),
        (
            "a.csv",
            "path,label\n1.jpg,\"0,1\"\n2.jpg,1 0\n",
            auto,
            &[("1.jpg", "[0.0, 1.0]"), ("2.jpg", "[1.0, 0.0]")],
        ),
        (
            "a.csv",
            "path,target\n1.jpg,2\n2.jpg,0.25\n3.jpg,3\n",
            auto,
            &[("1.jpg", "[2.0]"), ("2.jpg", "[0.25]"), ("3.jpg", "[3.0]")],
        ),
        // Places inside values.
        (
            "a.jsonl",
            "{\"image\": {\"path\": \"1.jpg\", \"n\": 1}, \"objects\": {\"category\": [1, 2]}, \"x\": [[]]}",
            &TableOptions {
                path_column: Some("/image/path".into()),
                ..by(&["/objects/category"])
            },
            &[("1.jpg", "[1.0, 2.0]")],
        ),
        (
            "a.jsonl",
            "{\"path\": \"1.jpg\", \"o\": {\"a\": 1, \"b\": 0.5}}",
            &by(&["/o/b", "/o/a"]),
            &[("1.jpg", "[0.5, 1.0]")],
        ),
        (
            "a.jsonl",
            "\u{feff}{\"label\":\"x\",\"path\":\"\\u00e4.jpg\"}\r\n",
            auto,
            &[("ä.jpg", "0")],
        ),
    ] {
        let want: Vec<_> = want
            .iter()
            .map(|(p, l)| (p.to_string(), l.to_string()))
            .collect();
        assert_eq!(read(name, text, options), want, "{name}: {text:?}");
    }
}

#[test]
fn what_was_read_is_reported() {
    let columns = |name: &str, text: &str, options: &TableOptions| {
        let (_, report) = at(name, text.as_bytes(), options).unwrap();
        let columns = report.columns.unwrap();
        (columns.path, columns.labels)
    };
    let auto = &TableOptions::default();
    let none = Vec::<String>::new();
    let found = columns("a.csv", "x, Path \n1,a.jpg\n", auto);
    assert_eq!(found, ("Path".into(), none.clone()));
    let found = columns(
        "a.jsonl",
        "{\"image\": \"a\", \"o\": {\"l\": 1}}",
        &by(&["/o/l"]),
    );
    assert_eq!(found, ("image".into(), vec!["/o/l".into()]));
    let shown = |labels: usize| {
        let columns = TableColumns {
            path: "a\u{1b}[31m".into(),
            labels: vec!["x".into(); labels],
            ..TableColumns::default()
        };
        columns.to_string()
    };
    assert_eq!(shown(0), "paths a\\u{1b}[31m, labels none");
    assert!(shown(2).ends_with("labels x, x") && shown(6).ends_with("labels of 6 columns"));
}

#[test]
fn class_names_have_numbers_of_their_own_or_of_a_table() {
    let text = "path,label\n1.jpg,b\n2.jpg,a\n";
    let (index, _) = at("a.csv", text.as_bytes(), &TableOptions::default()).unwrap();
    assert_eq!(index.classes(), &ClassList::new(["a", "b"]).unwrap());
    let classes = |names: &[&str]| TableOptions {
        classes: Some(ClassList::new(names.iter().copied()).unwrap()),
        ..TableOptions::default()
    };
    let all = classes(&["x", "b", "a"]);
    let (index, _) = at("a.csv", text.as_bytes(), &all).unwrap();
    assert_eq!(index.classes().len(), 3);
    assert_eq!(
        (index.label(0), index.label(1)),
        (Label::Class(1), Label::Class(2))
    );
    // Class names may look like numbers.
    let found = read(
        "a.csv",
        "path,label\n1.jpg,7\n2.jpg,a\n",
        &classes(&["a", "7"]),
    );
    assert_eq!((&*found[0].1, &*found[1].1), ("1", "0"));
    let e = error("a.csv", text.as_bytes(), &classes(&["b"]));
    assert!(
        e.starts_with(":3: class 'a' is not in the class table: add"),
        "{e}"
    );
    let e = error(
        "a.jsonl",
        b"{\"path\": \"a\", \"label\": 1}",
        &classes(&["b"]),
    );
    assert!(
        e.contains("a label here is a whole number: remove it"),
        "{e}"
    );
    let e = error("a.csv", b"path\na.jpg\n", &classes(&["b"]));
    assert!(e.contains("`classes` has no effect without labels"), "{e}");
}

#[test]
fn numbers_may_be_made_to_follow_one_another() {
    let options = TableOptions {
        relabel: true,
        ..TableOptions::default()
    };
    let found = read(
        "a.csv",
        "path,label\n1.jpg,70\n2.jpg,5\n3.jpg,70\n",
        &options,
    );
    let labels: Vec<_> = found.iter().map(|(_, label)| &**label).collect();
    assert_eq!(labels, ["1", "0", "1"]);
}

#[test]
fn a_bad_record_is_named_by_the_line_that_it_begins_in() {
    let auto = &TableOptions::default();
    let wide = vec![b'x'; 1 << 20];
    let long = [b"path,label\na.jpg,", &wide[..], b"\n"].concat();
    let long_json = [b"{\"path\": \"", &wide[..], b"\"}\n"].concat();
    let long_name = [b"path,label\na.jpg,", &wide[..5000], b"\n"].concat();
    for (name, text, options, says) in [
        (
            "a.csv",
            &b"path,x\n\"a\nb.jpg\",1\n\nc.jpg\n"[..],
            auto,
            ":5: 1 columns, but the header line has 2: put",
        ),
        (
            "a.csv",
            b"path,x\na,b.jpg,1\n",
            auto,
            ":2: 3 columns, but the header line has 2: put",
        ),
        ("a.csv", b"path,x\r\na.jpg,1\r\n,1\r\n", auto, ":3: no path"),
        (
            "a.csv",
            b"path,x\n../a.jpg,1\n",
            auto,
            ":2: path '../a.jpg' leads out of the root: set `root`, or use",
        ),
        (
            "a.csv",
            b"path,x\n/a.jpg,1\n",
            auto,
            ":2: path '/a.jpg' leads out of the root",
        ),
        (
            "a.csv",
            b"path,x\na\0.jpg,1\n",
            auto,
            ":2: a NUL byte in the path",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,1\n\xe4.jpg,1\n",
            auto,
            ":3: column 'path' is not UTF-8: save",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,\xe4\n",
            auto,
            ":2: column 'label' is not UTF-8: save the file as UTF-8",
        ),
        (
            "a.csv",
            b"\xff\xfep\0a\0t\0h\0\n\0",
            auto,
            ": is UTF-16LE text: save it as UTF-8",
        ),
        (
            "a.csv",
            b"p\xe4th,label\na.jpg,1\n",
            auto,
            ":1: the header line is not UTF-8: save",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,1\nb.jpg,x\n",
            auto,
            ":3: the label is a class name, and that of line 2 is a whole number: use one kind, or give `classes`",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,x\nb.jpg,0.5\n",
            auto,
            ":3: the label is a fraction, and that of line 2 is a class name: use one kind",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,1 2\nb.jpg,1 2 3\n",
            auto,
            ":3: the label is a vector of 3 numbers, and that of line 2 is a vector of 2 numbers",
        ),
        (
            "a.csv",
            b"path,label\na.jpg, \n",
            auto,
            ":2: no label in column 'label': add it, or use `labels: none`",
        ),
        (
            "a.csv",
            b"path,label\na.jpg,99999999999999999999\n",
            auto,
            ":2: column 'label' is a whole number of more than 64 bits",
        ),
        (
            "a.csv",
            b"path,a,b\na.jpg,1,nan\n",
            &by(&["a", "b"]),
            ":2: 'nan' in column 'b' is not a number: labels of several columns are numbers",
        ),
        (
            "a.csv",
            b"path,a,b\na.jpg,1,1e99\n",
            &by(&["a", "b"]),
            ":2: '1e99' in column 'b' is not a number",
        ),
        (
            "a.csv",
            b"\n\npath,x,x\na.jpg,1,1\n",
            &by(&["x"]),
            ":3: two columns are called 'x': rename one in the header line",
        ),
        (
            "a.csv",
            b"path,image_path\na,b\n",
            auto,
            ":1: several columns may be the path: 'path', 'image_path': name one with `path_column`",
        ),
        (
            "a.csv",
            b"a.jpg,3\nb.jpg,4\n",
            auto,
            ":1: no column is known to hold paths: name it with `path_column`; the columns are 'a.jpg', '3'; a file without a header line is a list: give its `delimiter`",
        ),
        (
            "a.csv",
            b"path,x\na.jpg,1\n",
            &by(&["y"]),
            ":1: no column 'y': the columns are 'path', 'x'",
        ),
        (
            "a.csv",
            b"",
            auto,
            ": is empty: write a header line, such as file_name,label",
        ),
        ("a.csv", b"\xef\xbb\xbf\n\n", auto, ": is empty"),
        (
            "a.csv",
            b"path,label\n",
            auto,
            ": no samples in this table: write a record for each, in a CSV after",
        ),
        ("a.jsonl", b"\n", auto, ": no samples in this table"),
        (
            "a.csv",
            b"PK\x03\x04\x14\0",
            auto,
            ": is a zip archive: unpack it",
        ),
        (
            "a.csv",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            auto,
            ": is one image (JPEG)",
        ),
        (
            "a.csv",
            &long,
            auto,
            ":2: a record is longer than 1 MiB: is a double quote not closed?",
        ),
        (
            "a.jsonl",
            &long_json,
            auto,
            ":1: a line is longer than 1 MiB",
        ),
        (
            "a.csv",
            &long_name,
            auto,
            ":2: a class name longer than 4096 bytes: name another column",
        ),
        (
            "a.csv",
            b"path,x\n\"a.jpg,1\nb.jpg,1\n",
            auto,
            ":2: a double quote is not closed",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"}\n{\"x\": 1}\n",
            auto,
            ":2: no path: this record has nothing at 'path'",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"}\n{\"path\": null}\n",
            auto,
            ":2: no path: this record has nothing at 'path'",
        ),
        ("a.jsonl", b"{\"path\": \"\"}\n", auto, ":1: no path"),
        (
            "a.jsonl",
            b"{\"path\": \"\\u0000\"}\n",
            auto,
            ":1: a NUL byte in the path",
        ),
        (
            "a.jsonl",
            b"{\"image\": {\"path\": \"a\"}}\n",
            auto,
            ":1: 'image' is an object: name a place in it, one of '/image/path'",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"}\n[1]\n",
            auto,
            ":2: not a JSON object: it is an array, at byte 0 of the line",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"}\n{\"path\": \"a\", \"\n",
            auto,
            ":2: not a JSON object: it ends inside a text, at byte 15 of the line",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"} {}\n",
            auto,
            ":1: not a JSON object: more text follows, at byte 14",
        ),
        (
            "a.jsonl",
            b"{\n  \"path\": \"a\"\n}\n",
            auto,
            ":1: not a JSON object: it ends inside an object",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"\xe4\"}\n",
            auto,
            ":1: has text at 'path' that is not UTF-8",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"path\": \"b\"}\n",
            &TableOptions {
                path_column: Some("path".into()),
                ..TableOptions::default()
            },
            ":1: not a JSON object: 'path' appears in it twice",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"label\": 1, \"label\": 2}\n",
            auto,
            ":1: not a JSON object: 'label' appears in it twice",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\"}\n{\"path\": \"a\", \"label\": 1}\n",
            auto,
            ":2: a label 'label' here, but none in the first record: add it there, or use",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"label\": 1}\n{\"path\": \"a\"}\n",
            auto,
            ":2: no label in column 'label'",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"label\": 1}\n{\"path\": \"a\", \"label\": \"1\"}\n",
            auto,
            ":2: the label is a class name, and that of line 1 is a whole number",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"label\": true}\n",
            auto,
            ":1: has no number, string or array of numbers at 'label'",
        ),
        (
            "a.jsonl",
            b"{\"path\": \"a\", \"a\": 1, \"b\": \"1\"}\n",
            &by(&["a", "b"]),
            ":1: '\"1\"' in column 'b' is not a number",
        ),
        (
            "a.jsonl",
            b"{\"x\": \"a\"}\n",
            auto,
            ":1: no column is known to hold paths: name it with `path_column`; the columns are 'x'",
        ),
        (
            "a.txt",
            b"path\na\n",
            auto,
            ": is not a table by its extension: use one of .csv, .tsv, .jsonl, .ndjson",
        ),
    ] {
        let said = error(name, text, options);
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
        assert!(said.starts_with(says), "{shown:?}: {said}");
    }
    let e = Index::table(Path::new("/no/such.csv"), auto).unwrap_err();
    assert!(e.to_string().contains("no such file"), "{e}");
}

/// pandas and Python's json read them.
#[test]
fn what_nobody_reads_refuses_no_table() {
    let auto = &TableOptions::default();
    for odd in [
        &b"NaN"[..],
        b"[1, -Infinity, {\"label\": NaN}]",
        b"1e999",
        b"99999999999999999999999999",
        b"\"\\ud800\"",
        b"\"\xe4\"",
        b"1, \"x\": 2",
    ] {
        let line = |path: &str, label: &str| {
            let front = format!("\u{feff}{{\"file_name\": \"{path}\", \"x\": ");
            let end = format!(", \"label\": {label}}}\n");
            [front.as_bytes(), odd, end.as_bytes()].concat()
        };
        let text = [line("1.png", "0"), line("2.png", "3")].concat();
        let (index, _) = at("a.jsonl", &text, auto).unwrap();
        assert_eq!(index.len(), 2);
        assert_eq!(index.label(1), Label::Class(3));
        let e = error("a.jsonl", &line("1.png", "NaN"), auto);
        assert_eq!(e, ":1: has NaN at 'label', which is not a number");
    }
    let inside = b"{\"m\": {\"p\": \"1.png\", \"s\": NaN, \"l\": 4}, \"n\": Infinity}\n";
    let nested = TableOptions {
        path_column: Some("/m/p".into()),
        ..by(&["/m/l"])
    };
    let (index, _) = at("a.jsonl", inside, &nested).unwrap();
    assert_eq!(index.label(0), Label::Class(4));
    // Names and values of CSV columns that are not read.
    let text = b"file_name,x,x,b\xe4r,label\n1.png,\xe4,,NaN,0\n2.png,a,b,c,3,,\n";
    let (index, _) = at("a.csv", text, auto).unwrap();
    assert_eq!(index.label(1), Label::Class(3));
}

/// In pandas `0,5` is a text.
#[test]
fn a_decimal_comma_is_no_vector() {
    let auto = &TableOptions::default();
    let says = "column 'label' has '0,5', which is one number with a decimal comma or two numbers";
    for (name, text, line) in [
        ("a.csv", "path;label\n1.png;0,5\n2.png;1,0\n", 2),
        ("a.csv", "path,label\n1.png,\"0,5\"\n", 2),
        ("a.tsv", "path\tlabel\n1.png\t1\n2.png\t0,5\n", 3),
        ("a.csv", "path,label\n1.png,\"1,0\"\n2.png,\"0,5\"\n", 3),
    ] {
        let e = error(name, text.as_bytes(), auto);
        assert!(e.starts_with(&format!(":{line}: {says}")), "{text}: {e}");
    }
    // Spreadsheets with semicolons have decimal commas. Tables with commas have flags.
    let e = error("a.csv", b"path;label\n1.png;1,0\n", auto);
    assert!(e.contains("'1,0', which is one number"), "{e}");
    let found = read("a.csv", "path,label\n1.png,\"1,0\"\n", auto);
    assert_eq!(found[0].1, "[1.0, 0.0]");
    let found = read("a.csv", "path;label\n1.png;1,0,1\n", auto);
    assert_eq!(found[0].1, "[1.0, 0.0, 1.0]");
    let e = error("a.csv", b"path;a;b\n1.png;0,5;1\n", &by(&["a", "b"]));
    assert!(
        e.starts_with(":2: '0,5' in column 'a' is not a number"),
        "{e}"
    );
    // As class names they are texts.
    let classes = TableOptions {
        classes: Some(ClassList::new(["1,0", "0,5"]).unwrap()),
        ..TableOptions::default()
    };
    assert_eq!(read("a.csv", "path;label\n1.png;0,5\n", &classes)[0].1, "1");
}

/// Like pandas with `skipinitialspace`.
#[test]
fn blanks_around_quotes_and_names_do_not_count() {
    let text = "file_name, label\n\"1.png\", \"cat\"\n2.png, cat\n \"3.png\" ,\"ant\" \n";
    for end in ["\n", "\r\n", "\r"] {
        let text = text.replace('\n', end);
        let (index, report) = at("a.csv", text.as_bytes(), &TableOptions::default()).unwrap();
        let classes: Vec<_> = index.classes().iter().collect();
        assert_eq!(classes, ["ant", "cat"]);
        assert_eq!(
            (index.label(0), index.label(2)),
            (Label::Class(1), Label::Class(0))
        );
        assert_eq!(index.relative_path(2), Path::new("3.png"));
        assert_eq!(report.columns.unwrap().labels, ["label"]);
    }
}

#[test]
fn a_column_of_labels_is_found_by_its_name_or_several_are_named() {
    let auto = &TableOptions::default();
    for name in [
        "labels",
        "Labels",
        "cls",
        "fine_label",
        "LabelName",
        "class id",
    ] {
        let text = format!("file_name,{name}\n1.png,3\n");
        assert_eq!(read("a.csv", &text, auto)[0].1, "3", "{name}");
        let text = format!("{{\"file_name\": \"1.png\", \"{name}\": 3}}");
        assert_eq!(read("a.jsonl", &text, auto)[0].1, "3", "{name}");
    }
    let e = error(
        "a.csv",
        b"file_name,fine_label,coarse_label\n1.png,3,1\n",
        auto,
    );
    let want = ":1: several columns may be the label: 'fine_label', 'coarse_label': name one with \
                `label_column`, or use `labels: none`";
    assert_eq!(e, want);
}

#[test]
fn options_that_say_nothing_are_refused() {
    let classes = Some(ClassList::new(["a"]).unwrap());
    let text = b"path,a,b\nx,1,1\n";
    for (options, says) in [
        (
            TableOptions {
                labels: TableLabels::None,
                ..TableOptions::default()
            },
            "without labels",
        ),
        (by(&["a", "b"]), "several columns of labels are numbers"),
        (by(&["a", ""]), "`label_column` has an empty name"),
        (by(&[]), "`label_column` has an empty name"),
    ] {
        let options = TableOptions {
            classes: classes.clone(),
            ..options
        };
        let e = at("a.csv", text, &options).unwrap_err();
        assert!(e.is_usage() && e.to_string().contains(says), "{e}");
    }
}

#[test]
fn paths_start_at_the_root_and_may_leave_it() {
    let options = TableOptions {
        root: Some("/".into()),
        ..TableOptions::default()
    };
    assert_eq!(
        read("a.csv", "path\n/a/b.jpg\nc.jpg\n", &options)[0].0,
        "a/b.jpg"
    );
    let options = TableOptions {
        allow_outside: true,
        ..TableOptions::default()
    };
    assert_eq!(
        read("a.csv", "path\n/a/b.jpg\n../c.jpg\n", &options)[0].0,
        "/a/b.jpg"
    );
}

#[test]
fn a_hole_of_a_sparse_file_costs_one_record() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, says) in [
        (
            "a.csv",
            "path,label\na.jpg,1\n",
            "a.csv:3: a record is longer than 1 MiB",
        ),
        (
            "a.jsonl",
            "{\"path\": \"a\"}\n",
            "a.jsonl:2: a line is longer than 1 MiB",
        ),
    ] {
        let path = dir.path().join(name);
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_len(10 << 30).unwrap();
        let e = Index::table(&path, &TableOptions::default()).unwrap_err();
        assert!(e.to_string().contains(says), "{e}");
    }
}

/// A field in double quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Names with characters that readers of tables treat specially, and any other names. A path with a
/// backslash is rejected if there is no such file.
fn name() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "\"", "\"\"", ",", ";", "\t", "\n", "\r\n", "\r", " ", "'", "\u{feff}", "#", "ä", "日本",
        "{", "a.jpg", "b/c",
    ]);
    let text = vec(
        prop_oneof![odd.prop_map(str::to_owned), "[^\u{0}/.\\\\]{1,8}"],
        1..6,
    );
    text.prop_map(|parts| format!("x{}", parts.concat()))
}

proptest! {
    #[test]
    fn what_is_written_comes_back(
        names in vec((name(), any::<i64>()), 1..20), end in prop_oneof![Just("\n"), Just("\r\n")]
    ) {
        let mut csv = format!("label,file_name,\"more\"{end}");
        let mut tsv = csv.replace(',', "\t");
        let mut json = String::new();
        for (name, label) in &names {
            csv += &format!("{label},{},{}{end}", quoted(name), quoted(name));
            tsv += &format!("{label}\t{}\t{end}", quoted(name));
            json += &serde_json::json!({"more": name, "file_name": name, "label": label}).to_string();
            json += end;
        }
        for (file, text) in [("a.csv", csv), ("a.tsv", tsv), ("a.jsonl", json)] {
            let (index, _) = at(file, text.as_bytes(), &TableOptions::default()).unwrap();
            prop_assert_eq!(index.len(), names.len() as u64);
            for (id, (name, label)) in names.iter().enumerate() {
                let path = index.relative_path(id as u64).as_os_str().as_bytes();
                prop_assert_eq!(path, name.as_bytes());
                prop_assert_eq!(index.label(id as u64), Label::Class(*label));
            }
        }
    }

    #[test]
    fn class_names_come_back(names in vec("[a-z\"', ä]{1,6}x", 1..30)) {
        let lines = names.iter().map(|name| format!("a.jpg,{}\n", quoted(name)));
        let text = format!("path,class\n{}", lines.collect::<String>());
        let (index, _) = at("a.csv", text.as_bytes(), &TableOptions::default()).unwrap();
        for (id, name) in names.iter().enumerate() {
            let Label::Class(class) = index.label(id as u64) else { panic!() };
            let found = index.classes().name(class).unwrap();
            prop_assert_eq!(found.as_bytes(), name.trim_ascii().as_bytes());
        }
        let sorted: Vec<_> = index.classes().iter().collect();
        prop_assert!(sorted.is_sorted());
    }
}

#[test]
fn a_key_that_stands_twice_with_one_value_is_one_column() {
    let text = "{\"path\":\"a\",\"label\":1,\"label\":1}\n";
    let got = read("a.jsonl", text, &TableOptions::default());
    assert_eq!(got, [("a".to_owned(), "1".to_owned())]);
}
