//! Parsing of valid and invalid list lines.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::index::list::*;
use crate::data::index::{Index, Label};

fn list(text: &[u8], options: &ListOptions) -> Result<Index> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("list.txt");
    fs::write(&file, text).unwrap();
    let (index, report) = Index::list(&file, options)?;
    assert_eq!(report.samples, index.len());
    if options.root.is_none() {
        assert_eq!(index.root(), dir.path());
    }
    Ok(index)
}

fn kind(labels: ListLabels) -> ListOptions {
    ListOptions {
        labels,
        ..ListOptions::default()
    }
}

fn by(byte: u8) -> ListOptions {
    ListOptions {
        delimiter: ListDelimiter::Byte(byte),
        ..ListOptions::default()
    }
}

/// The path and the label of a line, both as text.
fn line(text: &str, options: &ListOptions) -> (String, String) {
    let index = list(text.as_bytes(), options).unwrap_or_else(|e| panic!("{text:?}: {e}"));
    assert_eq!(index.len(), 1);
    let label = match index.label(0) {
        Label::None => "none".to_owned(),
        Label::Class(class) => class.to_string(),
        Label::Vector(v) => format!("{v:?}"),
    };
    (shown(index.relative_path(0).as_os_str().as_bytes()), label)
}

fn error(text: &[u8], options: &ListOptions) -> String {
    let e = list(text, options).unwrap_err();
    assert!(e.is_usage(), "{e}");
    e.to_string()
}

#[test]
fn good_lines() {
    use ListLabels::{Auto, None, Scalar, Second, Vector};
    for (text, labels, path, label) in [
        ("a.jpg 12 3", Second, "a.jpg", "12"),
        ("a.jpg  12", Second, "a.jpg", "12"),
        ("a.jpg\t12 \t3 x", Second, "a.jpg", "12"),
        ("\"a b.jpg\" 12 3", Second, "a b.jpg", "12"),
        ("a/b.jpg 3", Auto, "a/b.jpg", "3"),
        ("a.jpg\t\t -1 ", Auto, "a.jpg", "-1"),
        ("  ./a.jpg +7", Auto, "./a.jpg", "7"),
        ("a b c.jpg 3", Auto, "a b c.jpg", "3"),
        ("a b 2.jpg   3", Scalar, "a b 2.jpg", "3"),
        ("shot 12 3", Scalar, "shot 12", "3"),
        ("shot 12 3", Auto, "shot", "[12.0, 3.0]"),
        ("a.jpg", Auto, "a.jpg", "none"),
        ("a b.jpg", Auto, "a b.jpg", "none"),
        ("noextension", None, "noextension", "none"),
        ("a.jpg 3", None, "a.jpg 3", "none"),
        ("\"a.jpg\" 3", None, "a.jpg", "none"),
        ("a.jpg 0,1,0.5", Auto, "a.jpg", "[0.0, 1.0, 0.5]"),
        ("a b.jpg 0,1e2,-1", Auto, "a b.jpg", "[0.0, 100.0, -1.0]"),
        ("a.jpg 0  1\t1", Auto, "a.jpg", "[0.0, 1.0, 1.0]"),
        ("a 1.jpg 0 1", Vector, "a 1.jpg", "[0.0, 1.0]"),
        ("a.jpg 0.25", Vector, "a.jpg", "[0.25]"),
        ("7 8", Auto, "7", "8"),
        ("1,2.jpg 4", Auto, "1,2.jpg", "4"),
        ("\"a b.jpg\" 3", Auto, "a b.jpg", "3"),
        ("\"a b.jpg\"", Auto, "a b.jpg", "none"),
        ("\"shot 12\" 3", Auto, "shot 12", "3"),
        ("\"a\"\"b.jpg\"\t3", Auto, "a\"b.jpg", "3"),
        ("\"#1.jpg\" 3", Auto, "#1.jpg", "3"),
        ("#5.png 3", Auto, "#5.png", "3"),
        ("  # a.jpg 3", Auto, "# a.jpg", "3"),
        ("#", None, "#", "none"),
        ("\"a.jpg\" 0,1", Auto, "a.jpg", "[0.0, 1.0]"),
        ("\"a.jpg\" 0 1", Vector, "a.jpg", "[0.0, 1.0]"),
        ("\"a.jpg\" 2", Vector, "a.jpg", "[2.0]"),
        ("a.jpg 0,5", Vector, "a.jpg", "[0.0, 5.0]"),
        ("a.jpg 0,1", Auto, "a.jpg", "[0.0, 1.0]"),
        ("x/../a.jpg 1", Auto, "x/../a.jpg", "1"),
        ("..a/...jpg 1", Auto, "..a/...jpg", "1"),
    ] {
        assert_eq!(
            line(text, &kind(labels)),
            (path.into(), label.into()),
            "{text:?}"
        );
    }
    for (text, byte, path, label) in [
        ("a b 1\t3", b'\t', "a b 1", "3"),
        ("a,b.jpg,3", b',', "a,b.jpg", "3"),
        ("a.jpg , 3", b',', "a.jpg", "3"),
        ("a.jpg,0,1", b',', "a.jpg", "[0.0, 1.0]"),
        ("a.jpg,0,5", b',', "a.jpg", "[0.0, 5.0]"),
        ("a.jpg;0,1,0", b';', "a.jpg", "[0.0, 1.0, 0.0]"),
        ("a.jpg\t0,1", b'\t', "a.jpg", "[0.0, 1.0]"),
        ("\"a,b.jpg\",3", b',', "a,b.jpg", "3"),
        ("\"a b.jpg\" 3", b' ', "a b.jpg", "3"),
        ("\"a b.jpg\"\t3", b'\t', "a b.jpg", "3"),
        ("a b.jpg 3", b' ', "a b.jpg", "3"),
    ] {
        assert_eq!(
            line(text, &by(byte)),
            (path.into(), label.into()),
            "{text:?}"
        );
    }
}

#[test]
fn bad_lines_are_named() {
    use ListLabels::{Auto, Scalar, Vector};
    for (text, labels, want) in [
        (
            "a.jpg 1\nb.jpg cat",
            Auto,
            ":2: label 'cat' is not a whole number",
        ),
        ("a.jpg 0.5", Auto, ":1: label '0.5' is not a whole number"),
        ("a.jpg 99999999999999999999", Auto, "is not a whole number"),
        ("a.jpg nan", Auto, ":1: label 'nan' is not a finite number"),
        (
            "a.jpg nan",
            Vector,
            ":1: label 'nan' is not a finite number",
        ),
        (
            "a.jpg 0,NaN",
            Auto,
            ":1: label 'NaN' is not a finite number",
        ),
        (
            "a.jpg 1 1e50",
            Auto,
            ":1: label '1e50' is not a finite number",
        ),
        (
            "a.jpg 0,x,1",
            Auto,
            ":1: 'x' in a vector label is not a number",
        ),
        (
            "a.jpg 0,,1",
            Vector,
            ":1: '' in a vector label is not a number",
        ),
        (
            "a.jpg cat",
            Vector,
            ":1: 'cat' in a vector label is not a number",
        ),
        ("a.jpg", Scalar, ":1: no label"),
        ("a.jpg,3", Auto, ":1: no label, or no delimiter before it"),
        ("a.jpg", Vector, ":1: no label"),
        ("\"a.jpg\"", Scalar, ":1: no label"),
        (
            "\n\na.jpg 1\nb.jpg\n",
            Auto,
            ":4: no label here, but one whole",
        ),
        (
            "a.jpg\nb.jpg 1\n",
            Auto,
            ":2: one whole number as label here, but no label",
        ),
        (
            "a.jpg 0,1\nb.jpg 0,1,1\n",
            Auto,
            ":2: a label of 3 numbers here, but a label of 2",
        ),
        (
            "a.jpg 1\nb 2 3\n",
            Auto,
            ":2: a label of 2 numbers here, but one whole",
        ),
        ("\"a.jpg 1", Auto, ":1: the quoted path has no"),
        ("\"a.jpg\\\" 1", Auto, ":1: the quoted path has no"),
        ("\"a.jpg\"1", Auto, ":1: no delimiter between"),
        ("\"\" 1", Auto, ":1: no path"),
        ("a\0.jpg 1", Auto, ":1: a NUL byte in the path"),
        (
            "../a.jpg 1",
            Auto,
            ":1: path '../a.jpg' leads out of the root",
        ),
        ("x/../../a.jpg 1", Auto, "`allow_outside`"),
        ("/etc/a.jpg 1", Auto, ":1: path '/etc/a.jpg' leads out"),
        ("", Auto, "no samples in this list"),
        ("\n\n \t\n", Auto, "no samples in this list"),
        (
            "a.jpg 1\n# more\n",
            Auto,
            "a list has no comments: remove the line",
        ),
        (
            "a.jpg 0,5\nb.jpg 1,0",
            Auto,
            ":1: the label has '0,5', which is one number with a decimal comma or two numbers \
             (write 0.5 or 0 5)",
        ),
        (
            "\"a.jpg\" 1,75",
            Auto,
            ":1: the label has '1,75', which is one number with a decimal",
        ),
        ("a.jpg 1,000,000", Auto, "thousands separators"),
    ] {
        let e = error(text.as_bytes(), &kind(labels));
        assert!(e.contains(want), "{text:?}: {e}");
    }
    let e = error(b"a.jpg 3", &by(b';'));
    assert!(e.contains("check `delimiter`"), "{e}");
    for text in ["a.jpg;0,5", "a.jpg;0,1", "\"a.jpg\";1,0"] {
        let e = error(text.as_bytes(), &by(b';'));
        assert!(e.contains("one number with a decimal comma"), "{e}");
    }
}

#[test]
fn what_is_no_text_is_escaped_and_shortened() {
    let labels = kind(ListLabels::Auto);
    let e = error(b"a.jpg \x1b[31m\xff\xc3\xa9\x07\n", &labels);
    let want = "label '\\u{1b}[31m\\xff\u{e9}\\u{7}' is no";
    assert!(e.contains(want), "{e}");
    let long = "x".repeat(61);
    let e = error(format!("a.jpg {long}").as_bytes(), &labels);
    assert!(e.contains(&format!("'{}...'", &long[1..])), "{e}");
    let e = error(format!("a.jpg {}", &long[1..]).as_bytes(), &labels);
    assert!(e.contains(&format!("'{}'", &long[1..])), "{e}");
}

#[test]
fn every_line_but_blank_ones_is_a_sample() {
    let text = b"\xef\xbb\xbf#z.jpg 1\r\n\r\n  \n a\xff.jpg 0\n#z.jpg 2\n#.jpg 7";
    let index = list(text, &ListOptions::default()).unwrap();
    assert_eq!(index.len(), 4);
    assert_eq!(index.relative_path(0), Path::new("#z.jpg"));
    let odd = Path::new(OsStr::from_bytes(b"a\xff.jpg"));
    assert_eq!(index.relative_path(1), odd);
    assert_eq!(index.label(2), Label::Class(2));
    assert_eq!(index.label(3), Label::Class(7));
    assert_eq!(index.label_width(), 1);
    assert!(index.classes().is_empty());
    let index = list(b"a.jpg 1\r#.jpg 7\r", &ListOptions::default()).unwrap();
    assert_eq!((index.len(), index.label(1)), (2, Label::Class(7)));
}

#[test]
fn labels_are_numbered_anew_in_ascending_order() {
    let relabel = ListOptions {
        relabel: true,
        ..ListOptions::default()
    };
    let index = list(
        b"a.jpg 90\nb.jpg -7\nc.jpg 5000000000\nd.jpg 90\n",
        &relabel,
    )
    .unwrap();
    let labels: Vec<Label<'_>> = (0..4).map(|id| index.label(id)).collect();
    assert_eq!(labels, [1, 0, 2, 1].map(Label::Class));
    for text in [&b"a.jpg 1,0\n"[..], b"a.jpg\n"] {
        let e = error(text, &relabel);
        assert!(e.contains("relabel needs whole-number labels"), "{e}");
    }
}

#[test]
fn paths_outside_are_taken_when_that_is_allowed() {
    let options = ListOptions {
        allow_outside: true,
        ..ListOptions::default()
    };
    let index = list(b"/etc/a.jpg 1\n../b.jpg 2\n", &options).unwrap();
    assert_eq!(index.path(0), Path::new("/etc/a.jpg"));
    assert_eq!(index.path(1), index.root().join("../b.jpg"));
}

#[test]
fn absolute_paths_inside_the_root_are_stored_relative() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = dir.path().join("link");
    symlink(&real, &link).unwrap();
    let options = ListOptions {
        root: Some(link.clone()),
        ..ListOptions::default()
    };
    let text = format!(
        "{}/a.jpg 1\n{}//b/c.jpg 2\n",
        link.display(),
        real.display()
    );
    let index = list(text.as_bytes(), &options).unwrap();
    assert_eq!(index.root(), link);
    assert_eq!(index.relative_path(0), Path::new("a.jpg"));
    assert_eq!(index.relative_path(1), Path::new("b/c.jpg"));
    let sly = format!("{}/../x.jpg 1\n", link.display());
    assert!(error(sly.as_bytes(), &options).contains("leads out"));
    let itself = format!("{} 1\n", link.display());
    assert!(error(itself.as_bytes(), &options).contains("no path"));
}

#[test]
fn options_that_cannot_work_are_refused() {
    for byte in [b'\n', b'"', 0] {
        let e = error(b"a.jpg 1\n", &by(byte));
        assert!(e.contains("cannot separate path and label"), "{e}");
    }
    for root in ["/no/such/folder", "/proc/self/stat", ""] {
        let options = ListOptions {
            root: Some(root.into()),
            ..ListOptions::default()
        };
        let e = error(b"a.jpg 1\n", &options);
        assert!(e.contains("root"), "{e}");
    }
}

proptest! {
    /// A quoted path may have any bytes.
    #[test]
    fn quoted_paths_come_back(
        path in vec((1u8..=255).prop_filter("a line's end", |b| *b != b'\n'), 1..30),
        label: i64,
    ) {
        let mut line = vec![b'"'];
        for &byte in &path {
            if byte == b'"' || byte == b'\\' {
                line.push(b'\\');
            }
            line.push(byte);
        }
        line.extend(format!("\" {label}").bytes());
        let (mut found, mut values) = (Vec::new(), Vec::new());
        let parsed = parse(&line, &ListOptions::default(), &mut found, &mut values);
        prop_assert_eq!(parsed, Ok(ListLabel::Scalar(label)));
        prop_assert_eq!(found, path);
    }

    /// No line makes the parser panic. An accepted line has a path and finite numbers.
    #[test]
    fn any_line_is_read_or_refused(
        line in vec(proptest::sample::select(b"a1.,\"\\ \t#-en\0\xff".to_vec()), 0..16),
        labels in proptest::sample::select(vec![
            ListLabels::Auto, ListLabels::None, ListLabels::Scalar, ListLabels::Vector, ListLabels::Second,
        ]),
        delimiter in proptest::sample::select(vec![
            ListDelimiter::Blanks, ListDelimiter::Byte(b','), ListDelimiter::Byte(b' '), ListDelimiter::Byte(b'1'),
        ]),
    ) {
        let options = ListOptions { labels, delimiter, ..ListOptions::default() };
        let (mut path, mut values) = (Vec::new(), Vec::new());
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        if let Ok(label) = parse(line, &options, &mut path, &mut values) {
            prop_assert!(!path.is_empty());
            prop_assert!(label != ListLabel::Vector || !values.is_empty());
            prop_assert!(values.iter().all(|v| v.is_finite()));
        }
    }
}

#[test]
fn lines_without_a_usable_label_say_what_to_change() {
    for (text, delimiter, want) in [
        (
            "a.jpg cat",
            None,
            "For class names write a CSV file that begins with the line `path,label`",
        ),
        (
            "a.jpg golden retriever",
            None,
            "or put a path with blanks in double quotes",
        ),
        ("a.jpg,3", None, "',' separates here: use `delimiter` ','"),
        ("a.jpg;3", None, "';' separates here: use `delimiter` ';'"),
        ("a.jpg,cat", None, "',' separates here: write a CSV file"),
        ("a.jpg\tcat", None, "a tab separates here: write a CSV file"),
        (
            "path label\na.jpg 1",
            None,
            "this looks like a header line: remove it",
        ),
        (
            "0 cat/one",
            None,
            "it looks like a path: write the label after the path",
        ),
        ("a.jpg 0.5", None, "write a whole number, or a CSV file"),
        ("train-{000..003}.tar", None, "names tar shards"),
        ("a.jpg cat", Some(b' '), "a list has class numbers"),
    ] {
        let options = ListOptions {
            delimiter: delimiter.map_or(ListDelimiter::Blanks, ListDelimiter::Byte),
            ..ListOptions::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list.txt");
        std::fs::write(&list, text).unwrap();
        let said = read(&list, &options).map(|_| ()).unwrap_err().to_string();
        assert!(
            said.contains(":1: ") && said.contains(want),
            "{text}: {said}"
        );
    }
}

/// A path with a backslash is a Windows path, unless a file has that name.
#[test]
fn an_escaped_backslash_names_a_file_that_has_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(r#"a"b\c\d.jpg"#), "").unwrap();
    let file = folder.path().join("list.txt");
    fs::write(&file, r#""a\"b\\c\d.jpg" 3"#).unwrap();
    let (index, _) = Index::list(&file, &ListOptions::default()).unwrap();
    assert_eq!(index.relative_path(0), Path::new(r#"a"b\c\d.jpg"#));
}
