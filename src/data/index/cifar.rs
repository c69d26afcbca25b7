//! Reads CIFAR archives for Python: the images in them, where each one lies, and its label.
//!
//! Runs in the consumer. A batch file is a pickle. It is parsed and never executed (`pickle`). An
//! image is 3,072 bytes of a batch file: a red, a green and a blue plane. Each image is a packed
//! page. It is unpacked to a NumPy array where the sample is used. Not in this file: pixels.
//!
//! - Samples are sorted by the name of their batch, then by their row in it.
//! - `per_class` keeps this number of samples of each class. `seed` chooses them, class by class.
//!   `repeats` then repeats the whole list, as PaddleClas' Cifar10 does.

mod pickle;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use self::pickle::{PickleBytes, PickleDocument, PickleValue};
use crate::data::index::binary_form::{IndexContent, IndexLabels, StoredForm};
use crate::data::index::report::ScanReport;
use crate::data::index::samples::Index;
use crate::data::packed_page::{PLANAR_BYTES, PackedPage, PageCodec};
use crate::error::{Error, Result};
use crate::sys::regular_file::{self, FileStamp};

/// Which samples of an archive are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CifarOptions {
    /// The data set.
    pub classes: CifarClasses,
    /// Read the test samples instead of the training samples.
    pub test: bool,
    /// Keep this number of samples of each class. `None` keeps all.
    pub per_class: Option<u32>,
    /// How often the kept samples are repeated in the index. Has an effect only with `per_class`.
    pub repeats: u32,
    /// Seed for the choice of the kept samples.
    pub seed: u64,
}

/// Which of the two data sets is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CifarClasses {
    /// CIFAR-10.
    Ten,
    /// CIFAR-100, by its fine labels.
    Hundred,
}

impl CifarClasses {
    fn number(self) -> i64 {
        match self {
            Self::Ten => 10,
            Self::Hundred => 100,
        }
    }

    /// The text that the name of a batch file contains.
    fn part_of_name(self, test: bool) -> &'static str {
        match (self, test) {
            (Self::Ten, false) => "data_batch",
            (Self::Ten, true) => "test_batch",
            (Self::Hundred, false) => "train",
            (Self::Hundred, true) => "test",
        }
    }

    fn archive(self) -> (&'static str, &'static str) {
        match self {
            Self::Ten => ("cifar-10-python.tar.gz", "cifar-10-batches-py"),
            Self::Hundred => ("cifar-100-python.tar.gz", "cifar-100-python"),
        }
    }
}

/// Maximum size of a batch file. A file with 50,000 images takes 150 MiB.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes of an image: 32 x 32 pixels of three colours.
const PICTURE: u64 = 3072;

/// A sample: its batch file, its bytes there, and its label.
struct CifarSample {
    batch: usize,
    page: PackedPage,
    row: usize,
    label: i64,
}

pub(crate) fn open(folder: &Path, options: &CifarOptions) -> Result<(Index, ScanReport)> {
    if options.repeats == 0 || options.per_class == Some(0) {
        return Err(Error::config(
            "per_class and repeats of CIFAR must be 1 or more",
        ));
    }
    let batches = batches(folder, options)?;
    let mut samples = Vec::new();
    let mut stamps = Vec::new();
    for (number, path) in batches.iter().enumerate() {
        // The fingerprint is taken before the file is read, so a change during the read is noticed.
        stamps.push(FileStamp::of(path).map_err(|e| Error::io_at("look at", path, e))?);
        read(path, number, options, &mut samples)?;
    }
    let kept = keep(&samples, folder, options)?;
    let mut content = IndexContent::default();
    let (mut labels, mut of_pages) = (Vec::new(), Vec::new());
    for _ in 0..options.per_class.map_or(1, |_| options.repeats) {
        for sample in kept.iter().filter_map(|at| samples.get(*at)) {
            let (Some(path), Some(stamp)) = (batches.get(sample.batch), stamps.get(sample.batch))
            else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().as_bytes();
            content.begin_form(name, Some(StoredForm::Page(sample.page)));
            content.push_part(format!("row-{}", sample.row).as_bytes(), 0, PLANAR_BYTES);
            of_pages.push(*stamp);
            labels.push(sample.label);
        }
    }
    content.labels = IndexLabels::Class(labels);
    let report = ScanReport {
        samples: content.samples() as u64,
        ..ScanReport::default()
    };
    let root =
        std::path::absolute(folder).map_err(|e| Error::io_at("find the path of", folder, e))?;
    let index = Index::seal(&root, content)?;
    Ok((index.rebased(&root, &of_pages)?, report))
}

/// Whether a path is a folder of CIFAR batches, or a CIFAR archive.
pub(crate) fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_there = |name: &str| path.join(name).is_file();
    path.is_file() && name.starts_with("cifar-1") && !name.ends_with(".yaml")
        || is_there("data_batch_1")
        || is_there("test_batch")
        || is_there("train") && is_there("meta")
        || is_there("test") && is_there("meta")
}

/// The batch files of a folder, sorted by name.
fn batches(folder: &Path, options: &CifarOptions) -> Result<Vec<PathBuf>> {
    let (archive, inside) = options.classes.archive();
    if folder.is_file() {
        return Err(Error::dataset(
            folder,
            format!(
                "is a file, but CIFAR batches are read from a folder: unpack {archive} \
                 (tar -xzf {archive}), and use the folder {inside}"
            ),
        ));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io_at("list", folder, e))?;
    let wanted = options.classes.part_of_name(options.test);
    let mut names: Vec<OsString> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io_at("list", folder, e))?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        // macOS writes files such as `._data_batch_1` beside the others.
        if !text.starts_with('.') && text.contains(wanted) {
            names.push(name);
        }
    }
    names.sort();
    if names.is_empty() {
        return Err(Error::dataset(
            folder,
            format!(
                "has no CIFAR batch ('{wanted}' in its name): unpack {archive}, and use the \
                 folder {inside}"
            ),
        ));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn read(
    path: &Path,
    batch: usize,
    options: &CifarOptions,
    to: &mut Vec<CifarSample>,
) -> Result<()> {
    let wrong = |what: String| Error::dataset(path, what);
    let (file, length) = regular_file::open(path).map_err(|e| Error::io_at("open", path, e))?;
    if length > MOST_BYTES {
        return Err(wrong(format!(
            "has {length} bytes, but a CIFAR batch has at most {MOST_BYTES}: use the unpacked \
             folder"
        )));
    }
    let bytes = whole(file, length).map_err(|e| Error::io_at("read", path, e))?;
    let pickle = PickleDocument::read(&bytes)
        .map_err(|what| wrong(format!("{what}. Use the unpacked CIFAR archive for Python")))?;
    let (data, labels) = sections(&pickle, &bytes).map_err(wrong)?;
    let pages = pages(data, &bytes, labels.len()).map_err(wrong)?;
    for (row, (label, page)) in labels.into_iter().zip(pages).enumerate() {
        if !(0..options.classes.number()).contains(&label) {
            return Err(wrong(format!(
                "row {row} has label {label}, but there are {} classes: use the archive that the \
                 config names",
                options.classes.number()
            )));
        }
        to.push(CifarSample {
            batch,
            page,
            row,
            label,
        });
    }
    Ok(())
}

fn whole(file: File, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize)?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The array of all images, and the label of each.
fn sections<'a>(
    pickle: &'a PickleDocument,
    bytes: &[u8],
) -> std::result::Result<(&'a pickle::PickleArray, Vec<i64>), String> {
    let PickleValue::Dictionary(entries) = pickle.top() else {
        return Err("has no dictionary: use the unpacked CIFAR archive for Python".into());
    };
    let entry = |name: &str| {
        let is_named = |key| match pickle.get(key) {
            PickleValue::Bytes(text) => bytes.get(text.at.clone()) == Some(name.as_bytes()),
            _ => false,
        };
        let found = entries.iter().rev().find(|(key, _)| is_named(*key));
        found.map(|(_, value)| pickle.get(*value))
    };
    let Some(PickleValue::Array(Some(data))) = entry("data") else {
        return Err("has no array 'data': use the unpacked CIFAR archive for Python".into());
    };
    let Some(PickleValue::List(labels)) = entry("labels").or_else(|| entry("fine_labels")) else {
        return Err(
            "has no list 'labels' or 'fine_labels': use the CIFAR archive for Python".into(),
        );
    };
    let number = |id: &pickle::ValueId| match pickle.get(*id) {
        PickleValue::Number(label) => Ok(*label),
        _ => Err("has a label that is not a whole number".to_owned()),
    };
    let labels: std::result::Result<Vec<i64>, String> = labels.iter().map(number).collect();
    Ok((data, labels?))
}

/// Where each image lies.
fn pages(
    data: &pickle::PickleArray,
    bytes: &[u8],
    rows: usize,
) -> std::result::Result<Vec<PackedPage>, String> {
    if data.shape != [rows as u64, PICTURE] {
        return Err(format!(
            "has {rows} labels and an array of shape {:?}: each row of a batch has {PICTURE} bytes",
            data.shape
        ));
    }
    let PickleBytes { at, is_text } = &data.data;
    let text = bytes.get(at.clone()).unwrap_or_default();
    let mut from = 0;
    let mut pages = Vec::with_capacity(rows);
    for _ in 0..rows {
        let (codec, length) = match is_text {
            false => (PageCodec::Planar, PICTURE as usize),
            true => (PageCodec::PlanarText, text_bytes(&text[from..])),
        };
        let end = from + length;
        if length == 0 || end > text.len() {
            return Err(format!("ends within the pixels of row {}", pages.len()));
        }
        let place = (at.start + from) as u64;
        pages.push(PackedPage::new(place, length as u64, PLANAR_BYTES, codec));
        from = end;
    }
    match from == text.len() {
        true => Ok(pages),
        false => Err("has an array 'data' of more bytes than its shape says".into()),
    }
}

/// The bytes of the first image in a text of UTF-8 characters.
fn text_bytes(text: &[u8]) -> usize {
    let begins = |b: &u8| *b & 0xc0 != 0x80;
    let starts = text.iter().enumerate().filter(|(_, b)| begins(b));
    let next = starts.map(|(at, _)| at).nth(PICTURE as usize);
    next.unwrap_or(text.len())
}

/// Positions of the kept samples, class by class.
fn keep(samples: &[CifarSample], folder: &Path, options: &CifarOptions) -> Result<Vec<usize>> {
    let Some(count) = options.per_class else {
        return Ok((0..samples.len()).collect());
    };
    let mut kept = Vec::new();
    for class in 0..options.classes.number() {
        let of_class = samples.iter().enumerate().filter(|(_, s)| s.label == class);
        let mut drawn: Vec<(u64, usize)> = of_class
            .map(|(at, _)| {
                (
                    XxHash3_64::oneshot_with_seed(options.seed, &at.to_le_bytes()),
                    at,
                )
            })
            .collect();
        if drawn.len() < count as usize {
            return Err(Error::dataset(
                folder,
                format!(
                    "class {class} has {} samples, but {count} of each class are requested: lower \
                     sample_per_label",
                    drawn.len()
                ),
            ));
        }
        drawn.sort_unstable();
        kept.extend(drawn.iter().take(count as usize).map(|(_, at)| *at));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests;
