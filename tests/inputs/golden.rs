//! Compares every format and form with the pixels of another decoder: `tests/goldens/formats.tar`,
//! made by `scripts/make_goldens`. Its manifest lists for each file the expected result, the
//! reference decoder, the tolerance and the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use featherload::index::{ListLabels, ListOptions};
use featherload::recipe::{
    CenterCrop, OrientationMode, RandomResizedCrop, Resize, Span, TruncationPolicy,
};
use featherload::tests_support::unpack_goldens;
use featherload::{
    DataType, DecodeMode, LaunchMethod, Loader, MemoryLayout, OnError, Recipe, RowStatus,
    SampleFault, Source,
};
use serde::Deserialize;
use tempfile::TempDir;

use crate::common::FEATHERLOAD;

/// Height and width.
type Size = (u32, u32);

/// One file of the manifest.
#[derive(Debug, Deserialize)]
struct Golden {
    file: String,
    kind: String,
    /// The file of its pixels.
    #[serde(default)]
    expected: Option<String>,
    /// The kind of fault, for an unsupported form.
    #[serde(default)]
    refused: Option<String>,
    /// The largest allowed difference of a value.
    #[serde(default)]
    tolerance: u8,
    #[serde(default)]
    why: Option<String>,
    /// The file ends too early, and is decoded anyway.
    #[serde(default)]
    keep: bool,
}

/// RGB8, in display orientation.
#[derive(Debug)]
struct Pixels {
    size: Size,
    rgb: Vec<u8>,
}

impl Pixels {
    /// A binary PPM of 8 bits.
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let mut lines = bytes.splitn(4, |&b| b == b'\n');
        let mut line = || lines.next().unwrap();
        assert_eq!(line(), b"P6");
        let sides = std::str::from_utf8(line()).unwrap();
        let (w, h) = sides.split_once(' ').unwrap();
        assert_eq!(line(), b"255");
        let size = (h.parse().unwrap(), w.parse().unwrap());
        let rgb = line().to_vec();
        assert_eq!(rgb.len(), 3 * (size.0 * size.1) as usize);
        Self { size, rgb }
    }

    /// The middle. Both margins must be even.
    fn middle(&self, size: Size) -> Vec<u8> {
        let (top, left) = ((self.size.0 - size.0) / 2, (self.size.1 - size.1) / 2);
        let row = |y: u32| {
            let at = 3 * (y * self.size.1 + left) as usize;
            &self.rgb[at..at + 3 * size.1 as usize]
        };
        (top..top + size.0).flat_map(row).copied().collect()
    }
}

/// The goldens in a folder.
struct Goldens {
    folder: TempDir,
    all: Vec<Golden>,
}

impl Goldens {
    fn unpack() -> Self {
        let folder = tempfile::tempdir().unwrap();
        unpack_goldens("formats", folder.path()).unwrap();
        let text = fs::read(folder.path().join("manifest.json")).unwrap();
        let all: Vec<Golden> = serde_json::from_slice(&text).unwrap();
        assert!(all.len() > 100, "{} files only", all.len());
        Self { folder, all }
    }

    fn file(&self, golden: &Golden) -> PathBuf {
        self.folder.path().join("files").join(&golden.file)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.all.iter().map(|golden| self.file(golden)).collect()
    }

    fn expected(&self, golden: &Golden) -> Option<Pixels> {
        let name = golden.expected.as_ref()?;
        Some(Pixels::read(
            &self.folder.path().join("expected").join(name),
        ))
    }

    /// The names of the files in a folder.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        fs::read_dir(self.folder.path().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// A whole image of this size, unchanged.
fn whole(size: Size) -> Recipe {
    let shape = f64::from(size.1) / f64::from(size.0);
    as_stored(Recipe::new("golden").then(RandomResizedCrop {
        scale: Span(1.0, 1.0),
        ratio: Span(shape, shape),
        ..RandomResizedCrop::new(size)
    }))
}

/// The middle of an image whose shorter side is `shorter`, unchanged.
fn middle(shorter: u32, size: Size) -> Recipe {
    let recipe = Recipe::new("golden").then(Resize::shorter(shorter));
    as_stored(recipe.then(CenterCrop::new(size)))
}

fn as_stored(recipe: Recipe) -> Recipe {
    recipe
        .with_decode(DecodeMode::Full)
        .with_dtype(DataType::U8)
        .with_layout(MemoryLayout::Nhwc)
}

/// The results of the files, in order.
fn load(files: &[PathBuf], recipe: Recipe, workers: usize) -> Vec<Result<Vec<u8>, SampleFault>> {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list.txt");
    let lines: Vec<String> = files.iter().map(|f| format!("{}\n", f.display())).collect();
    fs::write(&list, lines.concat()).unwrap();
    let options = ListOptions {
        allow_outside: true,
        labels: ListLabels::None,
        ..ListOptions::default()
    };
    let mut loader = Loader::builder(Source::List(list, options))
        .helper(FEATHERLOAD)
        .launch(LaunchMethod::Exec)
        .num_workers(workers)
        .recipe(recipe)
        .batch_size(16)
        .shuffle(false)
        .on_error(OnError::Skip)
        .build()
        .unwrap();
    let mut all = Vec::new();
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        for row in 0..batch.len() {
            let fault = batch.faults().iter().find(|f| f.row == row);
            all.push(match (batch.status()[row], fault) {
                (RowStatus::Ok, None) => Ok(batch.row(row).unwrap().bytes().unwrap().to_vec()),
                (RowStatus::Failed, Some(fault)) => Err(fault.fault.clone()),
                other => panic!("row {row}: {other:?}"),
            });
        }
    }
    assert_eq!(all.len(), files.len());
    all
}

/// Describes how pixels differ; empty if no value differs by more than `tolerance`.
fn differences(got: &[u8], want: &[u8], width: u32, tolerance: u8) -> String {
    if got.len() != want.len() {
        return format!("{} bytes, not {}", got.len(), want.len());
    }
    let over: Vec<usize> = (0..got.len())
        .filter(|&i| got[i].abs_diff(want[i]) > tolerance)
        .collect();
    let Some(&first) = over.first() else {
        return String::new();
    };
    let most = over.iter().map(|&i| got[i].abs_diff(want[i])).max();
    let pixel = first / 3;
    format!(
        "{} of {} values differ by more than {tolerance}, by {} at most; the first at row {}, \
         column {}, channel {}: {} instead of {}",
        over.len(),
        got.len(),
        most.unwrap_or(0),
        pixel / width as usize,
        pixel % width as usize,
        first % 3,
        got[first],
        want[first]
    )
}

/// A golden, its pixels, and its file.
type Case<'a> = (&'a Golden, Pixels, PathBuf);

/// Loads all goldens from `files`, whole and their middles. Returns a description of all unexpected
/// results.
fn compare(goldens: &Goldens, files: &[PathBuf], workers: usize) -> String {
    let mut wrong = String::new();
    let mut by_size: BTreeMap<(Size, bool), Vec<Case<'_>>> = BTreeMap::new();
    let mut refused = Vec::new();
    for (golden, file) in goldens.all.iter().zip(files) {
        match goldens.expected(golden) {
            Some(pixels) => {
                let group = by_size.entry((pixels.size, golden.keep)).or_default();
                group.push((golden, pixels, file.clone()));
            }
            None => refused.push((golden, file.clone())),
        }
    }
    for ((size, keep), group) in &by_size {
        let truncated = match keep {
            true => TruncationPolicy::Keep,
            false => TruncationPolicy::Refuse,
        };
        let files: Vec<PathBuf> = group.iter().map(|(_, _, file)| file.clone()).collect();
        let shorter = size.0.min(size.1);
        // Sides of the same parity as the image's, so that no margin is fractional.
        let part = (size.0 - 16, size.1 - 16);
        for (recipe, width, of_part) in [
            (whole(*size), size.1, false),
            (middle(shorter, part), part.1, true),
        ] {
            let rows = load(&files, recipe.with_truncated(truncated), workers);
            for ((golden, pixels, _), row) in group.iter().zip(rows) {
                let want = match of_part {
                    true => pixels.middle(part),
                    false => pixels.rgb.clone(),
                };
                let text = match row {
                    Ok(got) => differences(&got, &want, width, golden.tolerance),
                    Err(fault) => format!("refused: {fault}"),
                };
                if !text.is_empty() {
                    let what = if of_part { ", its middle" } else { "" };
                    let (name, kind) = (&golden.file, &golden.kind);
                    writeln!(wrong, "{name} ({kind}){what}: {text}").unwrap();
                }
            }
        }
    }
    let files: Vec<PathBuf> = refused.iter().map(|(_, file)| file.clone()).collect();
    let rows = load(&files, whole((29, 37)), workers);
    for ((golden, _), row) in refused.iter().zip(rows) {
        let got = row.as_ref().map_err(|fault| fault.kind.name());
        if got.err() != golden.refused.as_deref() {
            writeln!(wrong, "{}: {row:?}, not {:?}", golden.file, golden.refused).unwrap();
        }
    }
    wrong
}

#[test]
fn every_pixel_is_as_expected_without_workers() {
    let goldens = Goldens::unpack();
    let wrong = compare(&goldens, &goldens.files(), 0);
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_pixel_is_as_expected_with_a_worker() {
    let goldens = Goldens::unpack();
    let wrong = compare(&goldens, &goldens.files(), 1);
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// As Pillow opens them, and so ImageFolder.
#[test]
fn as_stored_a_tiff_is_turned_and_no_other_picture() {
    let goldens = Goldens::unpack();
    let golden = |name: &str| {
        let found = goldens.all.iter().find(|golden| golden.file == name);
        found.unwrap_or_else(|| panic!("no golden {name}"))
    };
    // All of them store the same image.
    for (turned, seen) in [
        ("tiff-orientation-6.tif", "tiff-orientation-6.tif"),
        ("tiff-xmp-6.tif", "tiff-xmp-6.tif"),
        ("png-exif-6.png", "png-rgb.png"),
        ("png-xmp-8.png", "png-rgb.png"),
        ("webp-exif-6.webp", "webp-lossless.webp"),
        ("jpeg-exif-6.jpg", "jpeg-exif-1.jpg"),
        ("jpeg-xmp-6.jpg", "jpeg-exif-1.jpg"),
    ] {
        let pixels = goldens.expected(golden(seen)).unwrap();
        let recipe = whole(pixels.size).with_orientation(OrientationMode::Stored);
        let rows = load(&[goldens.file(golden(turned))], recipe, 0);
        assert!(rows[0].as_ref() == Ok(&pixels.rgb), "{turned}");
    }
}

#[test]
fn files_that_end_too_early_are_refused_or_kept_and_counted() {
    let goldens = Goldens::unpack();
    let all = goldens.all.iter().filter(|golden| golden.keep);
    let files: Vec<PathBuf> = all.map(|golden| goldens.file(golden)).collect();
    let folder = tempfile::tempdir().unwrap();
    for (i, file) in files.iter().enumerate() {
        let extension = file.extension().unwrap().to_string_lossy();
        fs::copy(file, folder.path().join(format!("{i}.{extension}"))).unwrap();
    }
    for workers in [0, 2] {
        for truncated in [TruncationPolicy::Refuse, TruncationPolicy::Keep] {
            let mut loader = Loader::builder(Source::detect(folder.path()).unwrap())
                .helper(FEATHERLOAD)
                .launch(LaunchMethod::Exec)
                .num_workers(workers)
                .recipe(Recipe::eval224().with_truncated(truncated))
                .batch_size(4)
                .on_error(OnError::Skip)
                .build()
                .unwrap();
            let mut ok = 0;
            for batch in loader.epoch() {
                let batch = batch.unwrap();
                ok += (batch.status().iter())
                    .filter(|s| **s == RowStatus::Ok)
                    .count();
            }
            let kept = match truncated {
                TruncationPolicy::Refuse => 0,
                TruncationPolicy::Keep => files.len(),
            };
            assert_eq!(ok, kept, "{workers} workers");
            assert_eq!(loader.report().unwrap().truncated_rows, kept as u64);
        }
    }
}

#[test]
fn the_name_of_a_file_does_not_matter() {
    let goldens = Goldens::unpack();
    let dir = tempfile::tempdir().unwrap();
    let renamed: Vec<PathBuf> = (goldens.all.iter())
        .map(|golden| {
            let wrong = if golden.file.ends_with(".jpg") {
                "png"
            } else {
                "jpg"
            };
            let to = dir.path().join(format!("{}.{wrong}", golden.file));
            fs::copy(goldens.file(golden), &to).unwrap();
            to
        })
        .collect();
    let wrong = compare(&goldens, &renamed, 0);
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_manifest_and_the_folder_hold_the_same_files() {
    let goldens = Goldens::unpack();
    let named: BTreeSet<String> = goldens.all.iter().map(|g| g.file.clone()).collect();
    assert_eq!(named.len(), goldens.all.len(), "a file is named twice");
    assert_eq!(named, goldens.names("files"));
    let used: BTreeSet<String> = (goldens.all.iter())
        .filter_map(|g| g.expected.clone())
        .collect();
    assert_eq!(used, goldens.names("expected"));
    for golden in &goldens.all {
        assert!(golden.expected.is_some() != golden.refused.is_some());
        let exact = golden.tolerance == 0 && golden.refused.is_none();
        assert!(exact || golden.why.is_some(), "{} says no why", golden.file);
    }
}

/// Files whose decoder accepts a truncated file, and why the damage cannot be detected.
const CANNOT_TELL: &[(&str, &str)] = &[
    ("gif-animated.gif", "its first picture is whole"),
    ("gif-small-frame.gif", "its first picture is whole"),
    ("webp-animated.webp", "its first picture is whole"),
    ("webp-xmp-8.webp", "XMP stands behind its picture"),
];

#[test]
fn files_that_are_cut_off_are_refused() {
    let goldens = Goldens::unpack();
    let dir = tempfile::tempdir().unwrap();
    let mut by_size: BTreeMap<Size, Vec<(String, PathBuf)>> = BTreeMap::new();
    for golden in goldens.all.iter().filter(|golden| !golden.keep) {
        let Some(pixels) = goldens.expected(golden) else {
            continue;
        };
        let bytes = fs::read(goldens.file(golden)).unwrap();
        for tenth in 1..10 {
            let cut = dir.path().join(format!("{tenth}-{}", golden.file));
            fs::write(&cut, &bytes[..bytes.len() * tenth / 10]).unwrap();
            let of_size = by_size.entry(pixels.size).or_default();
            of_size.push((golden.file.clone(), cut));
        }
    }
    let mut taken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (size, cuts) in by_size {
        let files: Vec<PathBuf> = cuts.iter().map(|(_, cut)| cut.clone()).collect();
        for ((name, cut), row) in cuts.iter().zip(load(&files, whole(size), 0)) {
            if row.is_ok() {
                let tenth = cut.file_name().unwrap().to_string_lossy()[..1].to_owned();
                taken.entry(name.clone()).or_default().push(tenth);
            }
        }
    }
    let known: BTreeSet<&str> = CANNOT_TELL.iter().map(|(name, _)| *name).collect();
    let unknown: Vec<_> = taken
        .iter()
        .filter(|(name, _)| !known.contains(name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "decoded, though cut off: {unknown:#?}");
    let refused: Vec<_> = known
        .iter()
        .filter(|name| !taken.contains_key(**name))
        .collect();
    assert!(refused.is_empty(), "refused after all: {refused:?}");
}
