//! Reads box files: for each image of a list, the part that is used.
//!
//! Runs in the consumer, with threads that end before the call returns. Reads one small text file
//! for each sample, and opens no image. A bad file is an error that names it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

use crate::data::index::binary_form::IndexContent;
use crate::data::index::names::shown;
use crate::error::{Error, Result};
use crate::picture::PixelBox;
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};
use crate::sys::threads::each;

/// The maximum size of a box file.
const MAX_BYTES: u64 = 1 << 20;

/// Samples that a thread takes at a time.
const RUN: usize = 64;

/// Opening small files waits for storage more than it computes.
const THREADS_PER_CPU: usize = 2;
const MAX_THREADS: usize = 32;

const FORM: &str = "write `x0 y0 x1 y1` as the last line, in whole pixels of the upright image";

/// Reads the boxes of all samples of `content`. `lines` are their line numbers in the list.
///
/// # Errors
/// The first sample whose box file is missing or has no valid box.
pub(crate) fn read(
    folder: &Path,
    list: &Path,
    lines: &[u64],
    content: &IndexContent,
) -> Result<Vec<PixelBox>> {
    if !folder.is_dir() {
        return Err(Error::dataset(
            folder,
            "no such folder of box files: check `boxes`",
        ));
    }
    let runs: Vec<(usize, &[u64])> = (0..).step_by(RUN).zip(lines.chunks(RUN)).collect();
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = (cpus * THREADS_PER_CPU).min(MAX_THREADS);
    let boxes = each("featherload-boxes", threads, &runs, |(first, lines)| {
        let of_run = (*first..).zip(lines.iter());
        let boxes = of_run.map(|(sample, line)| {
            let path = folder.join(name(content.path(sample)));
            one(&path, list, *line)
        });
        boxes.collect::<Result<Vec<_>>>()
    })?;
    Ok(boxes.into_iter().flatten().collect())
}

/// The name of the box file of an image: its path up to the first dot, as in PaddleClas, and
/// `.txt`.
fn name(picture: &[u8]) -> PathBuf {
    let stem = picture.split(|&b| b == b'.').next().unwrap_or_default();
    PathBuf::from(OsStr::from_bytes(&[stem, b".txt"].concat()))
}

/// The box in the file at `path`, for the sample in this line of the list.
fn one(path: &Path, list: &Path, line: u64) -> Result<PixelBox> {
    let of_list = |what: &str| {
        let file = path.display();
        Error::dataset_line(list, line, format!("the box file {file} {what}"))
    };
    let (file, _) = regular_file::open(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => of_list("is missing: write it, or remove the line or `boxes`"),
        ErrorKind::InvalidInput => of_list("is not a regular file"),
        _ => Error::io_at("open", path, e),
    })?;
    let text = text_file::read(file, MAX_BYTES).map_err(|refused| match refused {
        TextReadError::Read(e) => Error::io_at("read", path, e),
        refused => Error::dataset(path, format!("is not a box file: {refused}. Check `boxes`")),
    })?;
    let numbered = (1..).zip(text.split(|&b| b == b'\n'));
    let last = numbered.filter(|(_, text)| !text.trim_ascii().is_empty());
    let Some((number, text)) = last.last() else {
        return Err(Error::dataset(path, format!("no box in this file: {FORM}")));
    };
    parse(text).map_err(|what| Error::dataset_line(path, number, what))
}

/// A box of four numbers, or a message about the mistake.
fn parse(line: &[u8]) -> Result<PixelBox, String> {
    let blank = |b: &u8| b.is_ascii_whitespace();
    let fields = line.split(blank).filter(|field| !field.is_empty());
    let numbers = fields
        .map(|field| {
            let text = std::str::from_utf8(field).ok();
            let whole: Option<i64> = text.and_then(|text| text.parse().ok());
            match whole.map(u32::try_from) {
                Some(Ok(number)) => Ok(number),
                Some(Err(_)) if field.starts_with(b"-") => {
                    Err(format!("{} in a box is negative: {FORM}", shown(field)))
                }
                _ => Err(format!(
                    "'{}' in a box is not a whole number: {FORM}",
                    shown(field)
                )),
            }
        })
        .collect::<Result<Vec<u32>, String>>()?;
    let &[left, top, right, bottom] = numbers.as_slice() else {
        return Err(format!(
            "{} numbers, but a box has four: {FORM}",
            numbers.len()
        ));
    };
    let found = PixelBox {
        left,
        top,
        right,
        bottom,
    };
    for (sides, low, high) in [("x0 and x1", left, right), ("y0 and y1", top, bottom)] {
        if low >= high {
            return Err(format!(
                "the box {found} is empty: {sides} are {low} and {high}, and the first must be less"
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_whole_numbers_are_a_box() {
        let read = |text: &str| parse(text.as_bytes()).map(|found| found.to_string());
        for good in ["1 2 3 4", " 1\t2  3 4\r", "1 2 +3 04"] {
            assert_eq!(read(good).as_deref(), Ok("1 2 3 4"), "{good}");
        }
        for (bad, says) in [
            ("1 2 3", "3 numbers"),
            ("1 2 3 4 5", "5 numbers"),
            ("1 2 3.0 4", "'3.0' in a box is not a whole number"),
            ("1 2 3 4294967296", "not a whole number"),
            ("-1 2 3 4", "-1 in a box is negative"),
            ("3 2 3 4", "x0 and x1 are 3 and 3"),
            ("1 5 3 4", "y0 and y1 are 5 and 4"),
        ] {
            let said = read(bad).unwrap_err();
            assert!(said.contains(says), "{bad}: {said}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_hole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.txt");
        let found = || one(&path, Path::new("list.txt"), 3);
        let blank = |bytes| std::fs::write(&path, [&vec![b'\n'; bytes], &b"1 2 3 4"[..]].concat());
        blank(MAX_BYTES as usize - 7).unwrap();
        assert_eq!(found().unwrap().right, 3);
        blank(MAX_BYTES as usize).unwrap();
        let e = found().unwrap_err().to_string();
        assert!(
            e.contains("1.txt: is not a box file: is longer than the limit of 1048576 bytes"),
            "{e}"
        );
        assert!(e.contains("Check `boxes`"), "{e}");
        std::fs::write(&path, "1 2 3 4\n").unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let e = found().unwrap_err().to_string();
        assert!(
            e.contains("1.txt") && e.contains("zero byte at offset 8"),
            "{e}"
        );
    }

    #[test]
    fn the_name_ends_at_the_first_dot() {
        for (picture, of) in [
            ("a/b/1.jpg", "a/b/1.txt"),
            ("a/1.x.jpg", "a/1.txt"),
            ("a.d/1.jpg", "a.txt"),
            ("1", "1.txt"),
        ] {
            assert_eq!(name(picture.as_bytes()), Path::new(of), "{picture}");
        }
    }
}
