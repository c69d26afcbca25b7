//! Runs every target on all known inputs, and on a fixed number of changed ones.
//!
//! This test does not find a read or write past a buffer that stays in mapped memory. Only the
//! sanitizer of `scripts/fuzz` finds those. Only that script selects inputs by the code that they
//! reach.

use std::fs;
use std::path::{Path, PathBuf};

use featherload::tests_support::unpack_goldens;

use super::mutate::mutated;
use super::targets::decode::RECIPES;
use super::targets::{TARGETS, Target};
use crate::common::Random;

/// As in `scripts/fuzz`.
const LONGEST: usize = 8192;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The files of a folder by name; empty if the folder is absent.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.map(|e| e.unwrap().path()).collect())
        .unwrap_or_default();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn goldens() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    unpack_goldens("formats", folder.path()).unwrap();
    files(&folder.path().join("files"))
}

/// Every golden, under the recipe without changes and under one of the others.
fn goldens_to_decode() -> Vec<Vec<u8>> {
    let files = goldens().into_iter().enumerate();
    let inputs = files.flat_map(|(i, file)| {
        let other = (i % (RECIPES - 1) + 1) as u8;
        [0, other].map(|recipe| [&[recipe, recipe], &file[..]].concat())
    });
    inputs.collect()
}

/// The JPEG goldens, each whole at one scale and in a window at another.
fn jpegs_to_decode() -> Vec<Vec<u8>> {
    let files = goldens().into_iter().filter(|f| f.starts_with(b"\xff\xd8"));
    let inputs = files.enumerate().flat_map(|(i, file)| {
        let heads = [[i as u8, 0, 0, 255, 255], [i as u8 + 1, 80, 200, 90, 140]];
        heads.map(|head| [&head, &file[..]].concat())
    });
    inputs.collect()
}

/// The words of a dictionary of libFuzzer.
fn dictionary(name: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(fuzz().join(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let quoted = lines.filter_map(|line| line.split_once('"')?.1.strip_suffix('"'));
    let words: Vec<_> = quoted.map(unescaped).collect();
    assert!(!words.is_empty(), "{name}");
    words
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, rest) {
            (b'\\', [b'x', hex @ ..]) => {
                let digits = std::str::from_utf8(&hex[..2]).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &hex[2..];
            }
            (b'\\', [next, behind @ ..]) => {
                bytes.push(*next);
                rest = behind;
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

/// Feeds the known inputs and `count` changed ones to the target `name`.
fn run(name: &str, more: Vec<Vec<u8>>, words: &[Vec<u8>], count: usize) {
    let (_, make) = TARGETS.iter().find(|(n, _)| *n == name).unwrap();
    let mut target = make();
    let mut known = files(&fuzz().join("seeds").join(name));
    known.extend(files(&fuzz().join("found").join(name)));
    known.extend(more);
    assert!(!known.is_empty(), "no inputs of {name}");
    for (i, input) in known.iter().enumerate() {
        feed(&mut target, input, &format!("known input {i}"));
    }
    feed(&mut target, &[], "no byte");
    let mut random = Random(17);
    for i in 0..count {
        let input = &known[i % known.len()];
        let other = &known[random.below(known.len() as u64) as usize];
        let changed = mutated(input, other, words, LONGEST, &mut random);
        feed(&mut target, &changed, &format!("changed input {i}"));
    }
}

/// Feeds one input. Saves an input that makes the target panic, and prints its path.
fn feed(target: &mut Target, input: &[u8], what: &str) {
    let fed = std::panic::AssertUnwindSafe(|| target(input));
    if let Err(panic) = std::panic::catch_unwind(fed) {
        let (_, path) = (tempfile::Builder::new().prefix("finding-"))
            .tempfile()
            .and_then(|mut file| {
                std::io::Write::write_all(&mut file, input)?;
                Ok(file.keep()?)
            })
            .unwrap();
        eprintln!("{what} is a finding: {}", path.display());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn headers() {
    run("header", goldens(), &dictionary("pictures.dict"), 20_000);
}

#[test]
fn pixels() {
    run(
        "decode",
        goldens_to_decode(),
        &dictionary("pictures.dict"),
        4_000,
    );
}

#[test]
fn jpegs() {
    let words = dictionary("pictures.dict");
    run("jpeg", jpegs_to_decode(), &words, 4_000);
}

#[test]
fn annotations() {
    run("annotation", Vec::new(), &[], 4_000);
}

#[test]
fn rasters() {
    run("raster", Vec::new(), &dictionary("pictures.dict"), 10_000);
}

#[test]
fn arrow_files() {
    run("arrow", Vec::new(), &[], 10_000);
}

#[test]
fn lists() {
    run("list", Vec::new(), &[], 10_000);
}

#[test]
fn recipes() {
    run("recipe", Vec::new(), &[], 10_000);
}

#[test]
fn saved_indexes() {
    run("saved_index", Vec::new(), &[], 10_000);
}

#[test]
fn tables() {
    run("table", Vec::new(), &[], 10_000);
}

#[test]
fn shards() {
    run("tar", Vec::new(), &[], 10_000);
}

#[test]
fn rings() {
    run("ring", Vec::new(), &[], 3_000);
}
