//! Tables: any bytes, under any options.
//!
//! The first byte chooses options and kind, the rest is the file. Nothing may panic; what
//! is accepted must keep the promises of `Index::table`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use featherload::Index;
use featherload::index::{ClassList, Label, TableLabels, TableOptions};

use super::{Target, within};

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    Box::new(move |data| run(folder.path(), data))
}

fn options(choice: u8) -> TableOptions {
    let columns =
        |names: &[&str]| TableLabels::Columns(names.iter().map(|&name| name.to_owned()).collect());
    TableOptions {
        path_column: (choice & 4 != 0).then(|| "/path".to_owned()),
        path_suffix: if choice & 8 != 0 { ".jpg" } else { "" }.to_owned(),
        labels: match choice >> 4 & 3 {
            0 => TableLabels::Auto,
            1 => TableLabels::None,
            2 => columns(&["/label/0"]),
            _ => columns(&["label", "x"]),
        },
        classes: (choice & 0xf0 == 0x40).then(|| ClassList::new(["a", "1"]).expect("classes")),
        relabel: choice & 0xf0 == 0xc0,
        root: None,
        allow_outside: choice & 128 != 0,
    }
}

fn run(folder: &Path, data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let options = options(choice);
    let name = ["a.csv", "a.tsv", "a.jsonl", "a.csv"][usize::from(choice & 3)];
    let file = folder.join(name);
    fs::write(&file, text).expect("a table");
    let Ok((index, report)) = Index::table(&file, &options) else {
        return;
    };
    assert!(!index.is_empty() && report.samples == index.len());
    let ends = text.iter().filter(|b| matches!(b, b'\n' | b'\r')).count() as u64;
    assert!(index.len() <= ends + 1, "more samples than lines");
    let columns = report.columns.expect("columns");
    let width = index.label_width();
    assert_eq!(columns.labels.is_empty(), width == 0);
    for id in 0..index.len() {
        let path = index.relative_path(id);
        let bytes = path.as_os_str().as_bytes();
        assert!(!bytes.is_empty() && !bytes.contains(&0));
        assert!(std::str::from_utf8(bytes).is_ok());
        assert!(bytes.ends_with(options.path_suffix.as_bytes()));
        assert!(options.allow_outside || within(path), "{path:?} leads out");
        match index.label(id) {
            Label::None => assert_eq!(width, 0),
            Label::Class(class) => {
                let classes = index.classes();
                assert!(width == 1 && (classes.is_empty() || classes.name(class).is_some()));
            }
            Label::Vector(values) => {
                assert_eq!(values.len(), width);
                assert!(values.iter().all(f32::is_finite));
            }
        }
    }
}
