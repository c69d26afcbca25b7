//! Segmentations of COCO: outlines, run lengths, and run lengths as compressed text.

use super::super::json_value;
use super::super::object_checks::outline;
use super::super::report::AnnotationFault;
use crate::data::objects::ObjectShape;

/// A shape, and how many of its outlines were left out.
#[derive(Debug, PartialEq, Default)]
pub(super) struct ReadShape {
    pub(super) shape: ObjectShape,
    pub(super) left_out: usize,
}

/// Reads a segmentation of a picture of this size. `null` and an empty list are no shape.
///
/// # Errors
/// No outline of it can be used; run lengths that do not fit.
pub(super) fn read(
    value: &[u8],
    size: Option<(u32, u32)>,
    scratch: &mut Vec<f64>,
) -> Result<ReadShape, AnnotationFault> {
    match value.first() {
        Some(b'[') => outlines(value, scratch),
        Some(b'{') => Ok(ReadShape {
            shape: runs(value, size).ok_or(AnnotationFault::WrongRuns)?,
            left_out: 0,
        }),
        _ if value == b"null" => Ok(ReadShape::default()),
        _ => Err(AnnotationFault::Damaged),
    }
}

fn outlines(value: &[u8], scratch: &mut Vec<f64>) -> Result<ReadShape, AnnotationFault> {
    let mut read = ReadShape::default();
    let (mut rings, mut fault) = (Vec::new(), None);
    scratch.clear();
    // Some tools write one outline without a list around it.
    if json_value::numbers(value, scratch) {
        if scratch.is_empty() {
            return Ok(read);
        }
        rings.push(outline(scratch)?);
    } else {
        let walked = json_value::elements(value, |ring| {
            scratch.clear();
            let found = match json_value::numbers(ring, scratch) {
                true => outline(scratch),
                false => Err(AnnotationFault::Damaged),
            };
            match found {
                Ok(ring) => rings.push(ring),
                Err(e) => {
                    read.left_out += 1;
                    fault.get_or_insert(e);
                }
            }
        });
        walked.map_err(|_| AnnotationFault::Damaged)?;
    }
    if rings.is_empty() {
        return Err(fault.unwrap_or(AnnotationFault::ShortOutline));
    }
    read.shape = ObjectShape::Polygons(rings);
    Ok(read)
}

/// Run lengths that fill a mask of the size they state, which is the picture's.
fn runs(value: &[u8], picture: Option<(u32, u32)>) -> Option<ObjectShape> {
    let (mut size, mut counts) = (Vec::new(), None);
    json_value::members(value, |key, value| match &*key {
        b"size" => {
            size.clear();
            json_value::numbers(value, &mut size);
        }
        b"counts" => counts = Some(value),
        _ => {}
    })
    .ok()?;
    let side =
        |n: f64| (n >= 1.0 && n <= f64::from(u32::MAX) && n.fract() == 0.0).then_some(n as u32);
    let size = match size[..] {
        [height, width] => (side(height)?, side(width)?),
        _ => return None,
    };
    if picture.is_some_and(|picture| picture != size) {
        return None;
    }
    let pixels = u64::from(size.0) * u64::from(size.1);
    let counts = counts?;
    if counts.starts_with(b"\"") {
        let text = json_value::text(counts)?.into_bytes();
        return run_text_fills(&text, pixels).then_some(ObjectShape::RunText { size, text });
    }
    let (mut read, mut sum, mut fits) = (Vec::new(), 0u64, true);
    json_value::elements(counts, |value| {
        let count = json_value::integer(value).and_then(|n| u32::try_from(n).ok());
        let Some(count) = count.filter(|_| fits) else {
            fits = false;
            return;
        };
        sum += u64::from(count);
        // Empty runs could go on for ever.
        fits = sum <= pixels && read.len() as u64 <= pixels;
        read.push(count);
    })
    .ok()?;
    (fits && sum == pixels).then_some(ObjectShape::Runs { size, counts: read })
}

/// Whether compressed run lengths add up to this many pixels.
///
/// Each letter has five bits of a number, lowest first, and a mark whether more follow. From the
/// fourth number on, the text has the difference to the number two before it.
pub(in crate::data::annotations) fn run_text_fills(text: &[u8], pixels: u64) -> bool {
    const MOST_LETTERS: u32 = 7;
    let (mut value, mut letters) = (0i64, 0u32);
    let (mut number, mut sum) = (0u64, 0u64);
    // The last number, and the one before it.
    let mut before = [0i64; 2];
    for letter in text {
        let bits = letter.wrapping_sub(48);
        if bits > 63 || letters == MOST_LETTERS {
            return false;
        }
        value |= i64::from(bits & 0x1f) << (5 * letters);
        letters += 1;
        if bits & 0x20 != 0 {
            continue;
        }
        if bits & 0x10 != 0 {
            value |= -1 << (5 * letters);
        }
        if number > 2 {
            value += before[1];
        }
        let Ok(count) = u32::try_from(value) else {
            return false;
        };
        sum += u64::from(count);
        if sum > pixels || number > pixels {
            return false;
        }
        number += 1;
        before = [i64::from(count), before[0]];
        (value, letters) = (0, 0);
    }
    letters == 0 && sum == pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<ReadShape, AnnotationFault> {
        read(value.as_bytes(), Some((4, 5)), &mut Vec::new())
    }

    #[test]
    fn outlines_are_lists_of_numbers() {
        let ring = vec![[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]];
        let shape = |rings: Vec<Vec<[f64; 2]>>, left_out| {
            Ok(ReadShape {
                shape: ObjectShape::Polygons(rings),
                left_out,
            })
        };
        assert_eq!(of("[[1, 2, 3, 4, 5, 6.5]]"), shape(vec![ring.clone()], 0));
        assert_eq!(of("[1, 2, 3, 4, 5, 6.5]"), shape(vec![ring.clone()], 0));
        let text = "[[1, 2], [1, 2, 3, 4, 5, 6.5], [1, 2, 3, 4, 5, 6, 7]]";
        assert_eq!(of(text), shape(vec![ring], 2));
        for none in ["[]", "null"] {
            assert_eq!(of(none), Ok(ReadShape::default()));
        }
        for (bad, fault) in [
            ("[[]]", AnnotationFault::ShortOutline),
            ("[[1, 2, 3, 4]]", AnnotationFault::ShortOutline),
            ("[[1, 2, 3, 4, 5, NaN]]", AnnotationFault::NotFinite),
            ("[[1, 2, 3, 4, 5, 1e999]]", AnnotationFault::NotFinite),
            ("[[[1, 2], [3, 4], [5, 6]]]", AnnotationFault::Damaged),
            ("\"x\"", AnnotationFault::Damaged),
            ("7", AnnotationFault::Damaged),
        ] {
            assert_eq!(of(bad), Err(fault), "{bad}");
        }
    }

    #[test]
    fn run_lengths_fill_their_picture() {
        let size = (4, 5);
        for (value, shape) in [
            (
                r#"{"size": [4, 5], "counts": [6, 10, 4]}"#,
                ObjectShape::Runs {
                    size,
                    counts: vec![6, 10, 4],
                },
            ),
            // pycocotools' encode of random pixels.
            (
                r#"{"counts": "2111010O0O4", "size": [4, 5]}"#,
                ObjectShape::RunText {
                    size,
                    text: b"2111010O0O4".to_vec(),
                },
            ),
            (
                r#"{"counts": "5260KO2", "size": [4, 5]}"#,
                ObjectShape::RunText {
                    size,
                    text: b"5260KO2".to_vec(),
                },
            ),
        ] {
            let got = of(value).map(|read| read.shape);
            assert_eq!(got, Ok(shape), "{value}");
        }
    }

    #[test]
    fn run_lengths_that_do_not_fit_are_refused() {
        let many = format!(
            r#"{{"size": [4, 5], "counts": [{}20]}}"#,
            "0, ".repeat(1000)
        );
        let long = format!(r#"{{"size": [4, 5], "counts": "{}"}}"#, "0".repeat(1000));
        for value in [
            r#"{"size": [5, 4], "counts": [20]}"#,
            r#"{"size": [4, 5], "counts": [21]}"#,
            r#"{"size": [4, 5], "counts": [19]}"#,
            r#"{"size": [4, 5], "counts": [-1, 21]}"#,
            r#"{"size": [4, 5], "counts": [20.5]}"#,
            r#"{"size": [4, 5], "counts": [99999999999999999999]}"#,
            r#"{"size": [4, 5], "counts": "zz"}"#,
            r#"{"size": [4, 5], "counts": "ooooooooooooo"}"#,
            r#"{"size": [4, 5], "counts": ""}"#,
            r#"{"size": [4, 5], "counts": null}"#,
            r#"{"size": [4, 5]}"#,
            r#"{"counts": [20]}"#,
            r#"{"size": [1e99, 5], "counts": [20]}"#,
            r#"{"size": [4], "counts": [20]}"#,
            &many,
            &long,
        ] {
            assert_eq!(of(value), Err(AnnotationFault::WrongRuns), "{value}");
        }
        let bomb = r#"{"size": [4294967295, 4294967295], "counts": [4294967295]}"#;
        let got = read(bomb.as_bytes(), None, &mut Vec::new());
        assert_eq!(got, Err(AnnotationFault::WrongRuns));
    }
}
