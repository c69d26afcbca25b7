//! Runs builds, lists their files, and reads tars with the `tar` crate.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use featherload::Source;
use featherload::cache::{BuildOptions, BuildReport, CacheBuilder, CacheEncoding};

use crate::common::{FEATHERLOAD, Picture};

/// Every file of a folder, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

pub fn files(folder: &Path) -> Files {
    files_that(folder, |_| true)
}

/// The files whose names `keep` accepts. Others may vanish meanwhile.
pub fn files_that(folder: &Path, keep: impl Fn(&str) -> bool) -> Files {
    let mut all = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if keep(&name) {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

/// Like `assert_eq`, without megabytes of output.
pub fn assert_same(a: &Files, b: &Files, what: &str) {
    let names = |f: &Files| f.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b), "{what}");
    for (name, bytes) in a {
        assert!(*bytes == b[name], "{what}: {name} differs");
    }
}

pub fn built(src: &Path, dst: &Path, options: BuildOptions) -> CacheBuilder {
    CacheBuilder::new(Source::detect(src).unwrap(), dst, options)
        .helper(FEATHERLOAD)
        .num_workers(2)
}

pub fn build(src: &Path, dst: &Path, options: BuildOptions) -> BuildReport {
    let report = built(src, dst, options).build().unwrap();
    assert!(report.complete);
    report
}

pub fn jpeg(quality: u8) -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Jpeg { quality },
        shard_size: Some(100_000),
        ..BuildOptions::default()
    }
}

pub fn raw() -> BuildOptions {
    BuildOptions {
        encode: CacheEncoding::Raw,
        shard_size: Some(600_000),
        ..BuildOptions::default()
    }
}

pub fn copy() -> BuildOptions {
    BuildOptions {
        shard_size: Some(100_000),
        ..BuildOptions::default()
    }
}

/// A member as the `tar` crate reads it, and the offset of its data.
pub struct Member {
    pub name: String,
    pub at: u64,
    pub data: Vec<u8>,
}

pub fn members(tar: &Path) -> Vec<Member> {
    let mut archive = tar::Archive::new(fs::File::open(tar).unwrap());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut data = Vec::new();
            entry.read_to_end(&mut data).unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            Member {
                name: entry.path().unwrap().to_str().unwrap().to_owned(),
                at: entry.raw_file_position(),
                data,
            }
        })
        .collect()
}

/// The members of all shards, with the path of the shard. Checks each `.idx`.
pub fn all_members(cache: &Path) -> Vec<(PathBuf, Member)> {
    let mut all = Vec::new();
    for number in 0.. {
        let tar = cache.join(format!("shard-{number:06}.tar"));
        if !tar.exists() {
            break;
        }
        let members = members(&tar);
        check_idx(&tar, &members);
        all.extend(members.into_iter().map(|m| (tar.clone(), m)));
    }
    assert!(!all.is_empty());
    all
}

/// Checks that the `.idx` lists every member at its offset, one line per sample.
pub fn check_idx(tar: &Path, members: &[Member]) {
    let text = fs::read_to_string(tar.with_extension("idx")).unwrap();
    let mut lines = text.lines();
    let samples: usize = lines.next().unwrap()["v1.2 ".len()..].parse().unwrap();
    assert_eq!(lines.clone().count(), samples);
    let mut printed = Vec::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        let key = words[3].split('.').next().unwrap();
        for word in words.chunks(4) {
            let [extension, at, size, name] = word else {
                panic!("{line}");
            };
            assert_eq!(*name, format!("{key}.{extension}"));
            printed.push((name.to_string(), at.parse().unwrap(), size.parse().unwrap()));
        }
    }
    let there = members.iter().map(|m| (m.name.clone(), m.at, m.data.len()));
    assert_eq!(printed, there.collect::<Vec<_>>());
}

/// A tar as other tools write it: two samples with classes, and fields that are neither image nor
/// label.
pub fn foreign_shard(path: &Path) {
    let mut tar = tar::Builder::new(fs::File::create(path).unwrap());
    for n in 0..6u64 {
        let picture = Picture::rgb(60, 40, n).encode();
        let fields: [(&str, &[u8]); 4] = [
            ("jpg", &picture),
            ("cls", b"1"),
            ("txt", b"a caption"),
            ("seg.png", b"a mask"),
        ];
        for (extension, bytes) in fields {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let name = format!("{n:04}.{extension}");
            tar.append_data(&mut header, name, bytes).unwrap();
        }
    }
    tar.finish().unwrap();
}

pub fn command(src: &Path, dst: &Path) -> Command {
    let mut command = Command::new(FEATHERLOAD);
    command.args(["cache", "build"]).args([src, dst]);
    command.args([
        "--encode",
        "raw",
        "--shard-size",
        "400K",
        "--num-workers",
        "2",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(both).unwrap()
}

/// All sizes in a text, in bytes.
pub fn sizes(text: &str) -> Vec<u64> {
    let words: Vec<&str> = text.split([' ', ',']).collect();
    let sizes = words.windows(2).filter_map(|pair| {
        let unit = ["KiB", "MiB", "GiB"]
            .iter()
            .position(|unit| *unit == pair[1])?;
        let number: f64 = pair[0].parse().ok()?;
        Some((number * 1024f64.powi(unit as i32 + 1)) as u64)
    });
    sizes.collect()
}

/// Waits until a shard is complete, or the command has ended.
pub fn wait_for_shard(child: &mut Child, dst: &Path, number: u64) {
    let path = dst.join(format!("shard-{number:06}.json"));
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "no shard {number}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that each shard with a manifest is complete, as the `tar` crate reads it.
pub fn check_whole_shards(dst: &Path) -> u64 {
    let mut complete = 0;
    for number in 0.. {
        let tar = dst.join(format!("shard-{number:06}.tar"));
        if !tar.with_extension("json").exists() {
            break;
        }
        check_idx(&tar, &members(&tar));
        complete += 1;
    }
    complete
}
