//! Shards that are made on the spot, and what reads them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;

use featherload::index::{KeepIndex, Label, ShardOptions};
use featherload::{Index, LaunchMethod, Loader, LoaderBuilder, Source};
use serde_json::Value;

use crate::common::FEATHERLOAD;
use crate::common::command::{command, object};

pub fn append(tar: &mut tar::Builder<File>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes).unwrap();
}

/// The pictures of `folder` in the order of its index, `each` in a shard, with
/// their class numbers as `cls` and more of them as `json`.
pub fn shards_of(folder: &Path, into: &Path, each: u64) -> Vec<PathBuf> {
    let (index, _) = Index::folder(folder, &Default::default()).unwrap();
    let mut shards = Vec::new();
    let mut tar = None;
    for id in 0..index.len() {
        if id % each == 0 {
            let path = into.join(format!("part-{:03}.tar", id / each));
            tar = Some(tar::Builder::new(File::create(&path).unwrap()));
            shards.push(path);
        }
        let tar = tar.as_mut().unwrap();
        let name = index.relative_path(id).to_str().unwrap().to_owned();
        let key = name.strip_suffix(".jpg").unwrap();
        let featherload::index::Label::Class(class) = index.label(id) else {
            panic!("a class is due");
        };
        append(tar, &name, &fs::read(index.path(id)).unwrap());
        append(tar, &format!("{key}.cls"), class.to_string().as_bytes());
        let json = format!("{{\"of\":{{\"name\":\"class{class}\",\"v\":[{class},0.5]}}}}");
        append(tar, &format!("{key}.json"), json.as_bytes());
        if id % each == each - 1 || id == index.len() - 1 {
            tar.finish().unwrap();
        }
    }
    shards
}

/// A shard of these members, whose pictures nobody decodes.
pub fn shard(path: &Path, members: &[(&str, &str)]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (name, bytes) in members {
        append(&mut tar, name, bytes.as_bytes());
    }
    tar.finish().unwrap();
}

/// A sample for each label, in the field of this extension.
pub fn labelled(path: &Path, field: &str, labels: &[&str]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (i, label) in labels.iter().enumerate() {
        append(&mut tar, &format!("{i:02}.jpg"), b"");
        append(&mut tar, &format!("{i:02}.{field}"), label.as_bytes());
    }
    tar.finish().unwrap();
}

pub fn options() -> ShardOptions {
    ShardOptions {
        keep: KeepIndex::Nowhere,
        ..ShardOptions::default()
    }
}

pub fn loader_over(source: Source) -> LoaderBuilder {
    Loader::builder(source)
        .helper(FEATHERLOAD)
        .launch(LaunchMethod::Exec)
        .batch_size(8)
        .seed(11)
}

pub fn classes(index: &Index) -> Vec<i64> {
    let class = |id| match index.label(id) {
        Label::Class(class) => class,
        other => panic!("{other:?}"),
    };
    (0..index.len()).map(class).collect()
}

/// The command line, with a cache directory of its own.
pub fn featherload(cache: &Path, args: &[&str]) -> Output {
    command(args).env("XDG_CACHE_HOME", cache).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn json_of(cache: &Path, args: &[&str]) -> Value {
    object(&featherload(cache, args))
}
