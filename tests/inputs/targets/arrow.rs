//! Arrow files: any bytes, under any options.
//!
//! The first byte chooses the options, the rest is the file. Nothing may panic; what is accepted
//! must keep the promises of `Index::arrow`.

use std::fs;
use std::path::Path;

use featherload::Index;
use featherload::index::{ArrowFiles, Label, ParquetLabels, ParquetOptions};

use super::Target;

pub fn target() -> Target {
    let folder = tempfile::tempdir().expect("a folder");
    Box::new(move |data| run(folder.path(), data))
}

fn run(folder: &Path, data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let options = ParquetOptions {
        image_column: (choice & 4 != 0).then(|| "note".to_owned()),
        labels: match choice & 3 {
            0 | 1 => ParquetLabels::Auto,
            2 => ParquetLabels::None,
            _ => ParquetLabels::Column("score".into()),
        },
        ..ParquetOptions::default()
    };
    let file = folder.join("a.arrow");
    fs::write(&file, bytes).expect("an Arrow file");
    let files = ArrowFiles {
        data: vec![file.clone()],
        indices: Vec::new(),
    };
    let Ok((index, report)) = Index::arrow(&files, &options) else {
        return;
    };
    assert!(!index.is_empty() && report.samples == index.len());
    assert!(index.len() <= bytes.len() as u64, "more samples than bytes");
    let width = index.label_width();
    for id in 0..index.len() {
        // Without shards the column has paths.
        assert!(index.shards() == 0 || index.file(id) == file);
        match index.label(id) {
            Label::None => assert_eq!(width, 0),
            Label::Class(_) => assert_eq!(width, 1),
            Label::Vector(values) => assert!(values.iter().all(f32::is_finite)),
        }
    }
}
