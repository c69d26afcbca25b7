//! A small cache to verify, and its report.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use featherload::Source;
use featherload::cache::{
    self, BuildOptions, CacheBuilder, FindingKind, VerifyFinding, VerifyOptions, VerifyReport,
};
use serde_json::Value;

use super::scene::text;
use crate::common::{FEATHERLOAD, Picture};

pub const SAMPLES: usize = 40;

/// Images in three classes. One image is longer than one read.
pub fn source() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..SAMPLES {
        let class = dir.path().join(format!("c{}", [0, 0, 1, 2][i % 4]));
        fs::create_dir_all(&class).unwrap();
        let (w, h) = (20 + 7 * (i as u16 % 9), 30 + 5 * (i as u16 % 7));
        let picture = Picture::rgb(w, h, i as u64).encode();
        fs::write(class.join(format!("p{i:02}.jpg")), picture).unwrap();
    }
    let mut large = b"P6 900 700 255\n".to_vec();
    large.extend((0..900 * 700 * 3).map(|i: u32| (i / 7) as u8));
    fs::write(dir.path().join("c1/large.ppm"), large).unwrap();
    dir
}

pub fn built(source: &Path, options: BuildOptions) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let built = CacheBuilder::new(Source::detect(source).unwrap(), dir.path(), options)
        .num_workers(0)
        .build()
        .unwrap();
    assert!(built.complete && built.shards >= 4, "{built:?}");
    dir
}

/// Several shards of several samples, and one with only the large sample.
pub fn small() -> BuildOptions {
    BuildOptions {
        shard_size: Some(40 << 10),
        ..BuildOptions::default()
    }
}

pub fn verified(folder: &Path, workers: usize) -> VerifyReport {
    let mut options = VerifyOptions::default();
    options.num_workers = Some(workers);
    cache::verify(folder, &options, &|_| {}).unwrap()
}

/// File, kind and sample of each finding.
pub fn summaries(findings: &[VerifyFinding]) -> Vec<(String, FindingKind, Option<u64>)> {
    let summaries = |f: &VerifyFinding| {
        let id = f.sample.as_ref().and_then(|s| s.id);
        (f.file.display().to_string(), f.kind, id)
    };
    findings.iter().map(summaries).collect()
}

pub fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub fn flip(path: &Path, at: u64, bit: u32) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
}

pub fn run(args: &[&str], path: &Path) -> Output {
    let path = path.to_str().unwrap();
    Command::new(FEATHERLOAD)
        .args(["cache", args[0], path])
        .args(&args[1..])
        .output()
        .unwrap()
}

pub fn object(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(out)))
}
