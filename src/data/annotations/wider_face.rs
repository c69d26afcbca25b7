//! The text file of WIDER FACE: for each image its path, its number of faces, and a line for each.
//!
//! A line has left, top, width and height, and six attributes, of which the fourth marks a face that
//! is no valid one. It counts as a crowd. An image without faces has a line of zeros, or none.

use std::path::Path;

use super::box_rows::{BoxRow, BoxRows};
use super::coco::AnnotatedSet;
use super::object_checks::check_box;
use super::options::AnnotationOptions;
use super::pictures::PictureNames;
use super::report::{AnnotationFault, AnnotationReport};
use crate::data::index::{Index, TextLines, shown};
use crate::data::objects::{BoxForm, ObjectTable};
use crate::error::{Error, Result};

/// The name of the only category.
const FACE: &str = "face";
/// The attribute of a face that is no valid one.
const INVALID: usize = 7;

/// Whether a file is named as one of WIDER FACE.
pub(super) fn is_named(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.contains("bbx_gt") && name.ends_with(".txt")
}

/// Reads the data set that a file describes: its images below a folder, in the order of the file.
///
/// # Errors
/// A file that cannot be read, or of another layout; no usable face; a wrong one with
/// [`AnnotationOptions::strict`].
pub(super) fn read_wider_face(
    file: &Path,
    images: &Path,
    options: &AnnotationOptions,
) -> Result<AnnotatedSet> {
    read(file, options)?.finish_with_images(images)
}

/// Reads the faces in the images of `index`.
///
/// # Errors
/// As [`read_wider_face`]; none of the images is named.
pub(super) fn read_wider_face_for(
    file: &Path,
    index: &Index,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    read(file, options)?.finish_for(index, PictureNames::Paths)
}

/// Whole numbers of a line. None if it has other words.
fn numbers(line: &[u8]) -> Option<Vec<f64>> {
    let words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

fn read<'a>(file: &'a Path, options: &AnnotationOptions) -> Result<BoxRows<'a>> {
    let mut rows = BoxRows::new(file, (BoxForm::Xywh, false), None, options);
    let mut lines = TextLines::open(file.to_owned())?;
    // A file without faces has the category, too.
    let face = rows.categories.of_name(FACE);
    let face = face.map_err(|_| Error::protocol("a new file has categories"))?;
    let at = |line, what: String| Error::dataset_line(file, line, what);
    let mut next = next_line(&mut lines)?;
    while let Some((line, text)) = next {
        let name = str::from_utf8(&text).ok().map(str::trim);
        let name = name.filter(|name| !name.is_empty() && !name.contains('\0'));
        let name = name.filter(|_| numbers(&text).is_none_or(|found| found.len() == 1));
        let Some(name) = name else {
            let what = format!(
                "'{}' is no path of an image: is its number of faces above too small?",
                shown(&text)
            );
            return Err(at(line, what));
        };
        let picture = rows.picture(name, None)?;
        let count = next_line(&mut lines)?;
        let Some((line, count)) = count else {
            return Err(at(
                line,
                format!("'{name}' has no number of faces: it was cut"),
            ));
        };
        let whole = str::from_utf8(&count).ok();
        let whole: Option<u64> = whole.and_then(|text| text.trim().parse().ok());
        let Some(count) = whole else {
            let what = format!(
                "'{}' is no number of faces: give a file of WIDER FACE",
                shown(&count)
            );
            return Err(at(line, what));
        };
        next = next_line(&mut lines)?;
        if count == 0 {
            let is_zeros = |(_, text): &(u64, Vec<u8>)| {
                numbers(text).is_some_and(|all| all.len() > 1 && all.iter().all(|n| *n == 0.0))
            };
            if next.as_ref().is_some_and(is_zeros) {
                next = next_line(&mut lines)?;
            }
            continue;
        }
        for face_number in 0..count {
            let Some((line, text)) = next else {
                let what = format!("'{name}' has {face_number} of its {count} faces: it was cut");
                return Err(at(line, what));
            };
            let Some(numbers) = numbers(&text).filter(|numbers| numbers.len() > 1) else {
                let what = format!(
                    "'{name}' states {count} faces, and '{}' is none: correct the number",
                    shown(&text)
                );
                return Err(at(line, what));
            };
            match face_of(&numbers) {
                Ok((sides, crowd)) => rows.push(BoxRow {
                    numbers: sides,
                    picture,
                    label: face,
                    crowd,
                })?,
                Err(fault) => rows.wrong(fault, line)?,
            }
            next = next_line(&mut lines)?;
        }
    }
    Ok(rows)
}

/// Sides and validity of a face.
fn face_of(numbers: &[f64]) -> Result<([f64; 4], bool), AnnotationFault> {
    let [left, top, width, height, ..] = *numbers else {
        return Err(AnnotationFault::MissingBox);
    };
    check_box([left, top, left + width, top + height], None)?;
    let is_invalid = numbers.get(INVALID).is_some_and(|n| *n != 0.0);
    Ok(([left, top, width, height], is_invalid))
}

/// The next line that is not blank, and its number.
fn next_line(lines: &mut TextLines<'_>) -> Result<Option<(u64, Vec<u8>)>> {
    while let Some((number, text)) = lines.next_line()? {
        if !text.trim_ascii().is_empty() {
            return Ok(Some((number, text.trim_ascii().to_vec())));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "a/1.jpg\n2\n449 330 122 149 0 0 0 0 0 0 \n1 2 3 4 2 0 0 1 2 0 \n\
                         b/2.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \nb/3.jpg\n0\nb/4.jpg\n2\n\
                         5 6 0 8 0 0 0 0 0 0\n5 6 7 8\n";

    fn read_text(text: &str) -> Result<AnnotatedSet> {
        let dir = tempfile::tempdir().unwrap();
        for image in ["a/1.jpg", "b/2.jpg", "b/3.jpg", "b/4.jpg"] {
            let image = dir.path().join("images").join(image);
            std::fs::create_dir_all(image.parent().unwrap()).unwrap();
            std::fs::write(image, "").unwrap();
        }
        let file = dir.path().join("wider_face_train_bbx_gt.txt");
        std::fs::write(&file, text).unwrap();
        let options = AnnotationOptions::default();
        read_wider_face(&file, &dir.path().join("images"), &options)
    }

    #[test]
    fn faces_of_images_in_the_order_of_the_file() {
        let read = read_text(WHOLE).unwrap();
        let counts: Vec<usize> = (0..4).map(|id| read.table.count(id)).collect();
        assert_eq!(counts, [2, 0, 0, 1]);
        assert_eq!(read.index.relative_path(1), Path::new("b/2.jpg"));
        let sample = read.table.sample(0);
        assert_eq!(sample.numbers[0], [449.0, 330.0, 122.0, 149.0]);
        assert_eq!((sample.crowds, sample.labels), (&[0, 1][..], &[0, 0][..]));
        assert_eq!(sample.areas[0], 122.0 * 149.0);
        assert_eq!(read.table.form().boxes, BoxForm::Xywh);
        assert_eq!(read.report.count(AnnotationFault::EmptyBox), 1);
        assert!(read.report.wrong[0].first[0].ends_with("line 12"));
        assert_eq!(read.report.categories[0].name, "face");
    }

    #[test]
    fn other_files_are_errors_with_their_line() {
        for (text, what) in [
            ("", "has no rows"),
            ("a/1.jpg\n", "txt:1: 'a/1.jpg' has no number of faces"),
            ("a/1.jpg\nx\n", "txt:2: 'x' is no number of faces"),
            ("a/1.jpg\n-1\n", "txt:2: '-1' is no number of faces"),
            (
                "a/1.jpg\n1000000000\n1 2 3 4\n",
                "has 1 of its 1000000000 faces",
            ),
            (
                "a/1.jpg\n9\n1 2 3 4\nb/2.jpg\n0\n",
                "txt:4: 'a/1.jpg' states 9 faces, and 'b/2.jpg' is none",
            ),
            (
                "a/1.jpg\n1\n1 2 3 4\n5 6 7 8\n",
                "txt:4: '5 6 7 8' is no path of an image",
            ),
            (
                "a/1.jpg\n1\n1 2 0 4\n",
                "none of the annotations can be used",
            ),
            ("../1.jpg\n1\n1 2 3 4\n", "leads out of the folder"),
            ("c.jpg\n1\n1 2 3 4\n", "names images that do not exist"),
        ] {
            let e = read_text(text).unwrap_err().to_string();
            assert!(e.contains(what) && e.contains("bbx_gt.txt"), "{text}: {e}");
        }
        for end in 0..WHOLE.len() {
            if let Err(e) = read_text(&WHOLE[..end]) {
                assert!(e.to_string().contains("bbx_gt.txt"), "{e}");
            }
        }
        let nan = read_text("a/1.jpg\n2\n1 2 nan 4\n1 2 3 4\n").unwrap();
        assert_eq!(nan.report.count(AnnotationFault::NotFinite), 1);
    }
}
