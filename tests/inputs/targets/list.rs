//! List files: any bytes, under any options.
//!
//! The first byte chooses the options, the rest is the file, or the box file of a list
//! of one sample. Nothing may panic;
//! what is accepted must keep the promises of `Index::list`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use featherload::Index;
use featherload::index::{Label, ListDelimiter, ListLabels, ListOptions};

use super::{Target, within};

fn options(choice: u8) -> ListOptions {
    ListOptions {
        delimiter: match choice & 3 {
            0 | 1 => ListDelimiter::Blanks,
            2 => ListDelimiter::Byte(b','),
            _ => ListDelimiter::Byte(b' '),
        },
        labels: match choice >> 2 & 3 {
            0 => ListLabels::Auto,
            1 => ListLabels::None,
            2 => ListLabels::Scalar,
            _ => ListLabels::Vector,
        },
        allow_outside: choice & 16 != 0,
        root: None,
        relabel: false,
        boxes: None,
    }
}

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    Box::new(move |data| run(folder.path(), data))
}

fn run(folder: &Path, data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    if choice & 64 != 0 {
        return run_box(folder, text);
    }
    let options = options(choice);
    let file = folder.join("list.txt");
    fs::write(&file, text).expect("a list");
    let Ok((index, report)) = Index::list(&file, &options) else {
        return;
    };
    assert!(!index.is_empty() && report.samples == index.len());
    let lines = text.split(|b| matches!(b, b'\n' | b'\r')).count() as u64;
    assert!(index.len() <= lines, "more samples than lines");
    let width = index.label_width();
    for id in 0..index.len() {
        let path = index.relative_path(id);
        let bytes = path.as_os_str().as_bytes();
        assert!(!bytes.is_empty() && !bytes.contains(&0));
        assert!(options.allow_outside || within(path), "{path:?} leads out");
        match index.label(id) {
            Label::None => assert_eq!(width, 0),
            Label::Class(_) => assert_eq!(width, 1),
            Label::Vector(values) => {
                assert_eq!(values.len(), width);
                assert!(values.iter().all(f32::is_finite));
            }
        }
    }
}

fn run_box(folder: &Path, text: &[u8]) {
    let file = folder.join("one.txt");
    fs::write(&file, "a.jpg 1").expect("a list");
    fs::write(folder.join("a.txt"), text).expect("a box file");
    let options = ListOptions {
        boxes: Some(folder.to_owned()),
        ..ListOptions::default()
    };
    if let Ok((index, _)) = Index::list(&file, &options) {
        let found = index.pixel_box(0).expect("a box");
        assert!(found.left < found.right && found.top < found.bottom);
    }
}
