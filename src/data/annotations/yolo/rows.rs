//! The rows of a YOLO label file.

use std::collections::HashSet;

use super::super::label_files::{FileObjects, LabelFault, MOST_OBJECTS};
use super::super::object_checks::{check_share_box, outline};
use super::super::report::AnnotationFault;
use crate::data::objects::{ObjectShape, StatedObject};

/// How rows are read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowForm {
    /// The number of categories.
    pub(super) categories: usize,
    /// Keypoints of a row, and numbers of each: x, y and perhaps visibility.
    pub(super) keypoints: Option<(usize, usize)>,
    pub(super) keep_keypoints: bool,
    /// Eight coordinates are a rotated box.
    pub(super) rotated: bool,
    pub(super) keep_shapes: bool,
}

/// The objects of a label file.
///
/// # Errors
/// It has too many rows.
pub(super) fn read(text: &[u8], form: &RowForm) -> Result<FileObjects, String> {
    let mut file = FileObjects::default();
    file.sample.image_id = -1;
    let mut seen: HashSet<Vec<u64>> = HashSet::new();
    let (mut numbers, mut rows) = (Vec::new(), 0);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for (line, row) in (1..).zip(text.split(|b| *b == b'\n')) {
        let mut wrong = |fault| {
            file.faults.push(LabelFault {
                fault,
                place: Some(("line", line)),
            });
        };
        if row.trim_ascii().is_empty() {
            continue;
        }
        rows += 1;
        if rows > MOST_OBJECTS {
            return Err(format!("has more than {MOST_OBJECTS} rows"));
        }
        if !numbers_of(row, &mut numbers) {
            wrong(AnnotationFault::Damaged);
            continue;
        }
        if !seen.insert(numbers.iter().map(|n| n.to_bits()).collect()) {
            wrong(AnnotationFault::DoubledRow);
            continue;
        }
        match object(&numbers, form) {
            Ok((object, is_partly)) => {
                if is_partly {
                    wrong(AnnotationFault::PartlyOutside);
                }
                file.sample.objects.push(object);
            }
            Err(fault) => wrong(fault),
        }
    }
    Ok(file)
}

/// The largest category of a label file, plus 1. 0 without rows.
pub(super) fn categories(text: &[u8]) -> usize {
    let class = |row: &[u8]| {
        let mut words = row.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let class: f64 = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let is_number = (0.0..MOST_CATEGORIES).contains(&class) && class.fract() == 0.0;
        is_number.then_some(class as usize + 1)
    };
    let rows = text.split(|b| *b == b'\n');
    rows.filter_map(class).max().unwrap_or(0)
}

/// More than the largest category that a row may have if no names are given.
const MOST_CATEGORIES: f64 = 65_536.0;

fn numbers_of(row: &[u8], numbers: &mut Vec<f64>) -> bool {
    numbers.clear();
    let Ok(row) = std::str::from_utf8(row) else {
        return false;
    };
    row.split_ascii_whitespace().all(|word| match word.parse() {
        Ok(n) => {
            numbers.push(n);
            true
        }
        Err(_) => false,
    })
}

/// The object of a row, and whether its box is partly outside.
fn object(row: &[f64], form: &RowForm) -> Result<(StatedObject, bool), AnnotationFault> {
    let [class, values @ ..] = row else {
        return Err(AnnotationFault::Damaged);
    };
    if !row.iter().all(|n| n.is_finite()) {
        return Err(AnnotationFault::NotFinite);
    }
    let is_known = *class >= 0.0 && class.fract() == 0.0 && *class < form.categories as f64;
    if !is_known {
        return Err(AnnotationFault::UnknownCategory);
    }
    let mut object = StatedObject {
        label: *class as u32,
        id: -1,
        ..StatedObject::default()
    };
    let bounds = |numbers: [f64; 4]| {
        let [x, y, w, h] = numbers;
        check_share_box([x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0])
    };
    let is_partly = match (form.keypoints, values) {
        (Some((count, per)), values) => {
            let [x, y, w, h, points @ ..] = values else {
                return Err(AnnotationFault::Damaged);
            };
            if points.len() != count * per {
                return Err(AnnotationFault::WrongKeypoints);
            }
            object.numbers = [*x, *y, *w, *h];
            if form.keep_keypoints {
                object.keypoints = points.chunks(per).map(keypoint).collect();
            }
            bounds(object.numbers)?
        }
        (None, [x, y, w, h]) => {
            object.numbers = [*x, *y, *w, *h];
            if form.rotated {
                let (left, right) = (x - w / 2.0, x + w / 2.0);
                let (top, bottom) = (y - h / 2.0, y + h / 2.0);
                object.rotated = vec![left, top, right, top, right, bottom, left, bottom];
            }
            bounds(object.numbers)?
        }
        (None, values) if form.rotated => {
            if values.len() != 8 {
                return Err(AnnotationFault::Damaged);
            }
            object.numbers = hull(&outline(values)?);
            object.rotated = values.to_vec();
            bounds(object.numbers)?
        }
        (None, values) => {
            let is_outline = values.len() >= 6 && values.len().is_multiple_of(2);
            if !is_outline {
                return Err(AnnotationFault::Damaged);
            }
            let ring = outline(values)?;
            object.numbers = hull(&ring);
            if form.keep_shapes {
                object.shape = ObjectShape::Polygons(vec![ring]);
            }
            bounds(object.numbers)?
        }
    };
    Ok((object, is_partly))
}

/// Without a visibility, a point with a negative coordinate is absent, and others are visible.
fn keypoint(numbers: &[f64]) -> [f32; 3] {
    match *numbers {
        [x, y, visibility] => [x as f32, y as f32, visibility as f32],
        [x, y] if x >= 0.0 && y >= 0.0 => [x as f32, y as f32, 2.0],
        _ => [0.0; 3],
    }
}

/// The box of an outline: centre, width and height.
fn hull(ring: &[[f64; 2]]) -> [f64; 4] {
    let side = |axis: usize| {
        let values = ring.iter().map(|point| point[axis]);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        ((least + most) / 2.0, most - least)
    };
    let ((x, width), (y, height)) = (side(0), side(1));
    [x, y, width, height]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: RowForm = RowForm {
        categories: 3,
        keypoints: None,
        keep_keypoints: true,
        rotated: false,
        keep_shapes: true,
    };

    fn of(text: &str, form: RowForm) -> (Vec<StatedObject>, Vec<(usize, AnnotationFault)>) {
        let file = read(text.as_bytes(), &form).unwrap();
        let place = |of: &LabelFault| (of.place.unwrap().1, of.fault);
        (file.sample.objects, file.faults.iter().map(place).collect())
    }

    #[test]
    fn boxes_and_outlines() {
        let text = "\u{feff}1 0.5 0.25 0.5 0.25\r\n\n2.0 .25 .25 .75 .25 .75 1 .25 1\n";
        let (objects, faults) = of(text, FORM);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!((objects[0].label, objects[1].label), (1, 2));
        assert_eq!(objects[0].numbers, [0.5, 0.25, 0.5, 0.25]);
        assert_eq!(objects[0].shape, ObjectShape::None);
        assert_eq!(objects[1].numbers, [0.5, 0.625, 0.5, 0.75]);
        let ring = vec![[0.25, 0.25], [0.75, 0.25], [0.75, 1.0], [0.25, 1.0]];
        assert_eq!(objects[1].shape, ObjectShape::Polygons(vec![ring]));
        for empty in ["", "\n\n", "  \r\n"] {
            assert_eq!(of(empty, FORM), (vec![], vec![]));
        }
    }

    #[test]
    fn four_corners_are_rotated_boxes_if_so_stated() {
        let form = RowForm {
            rotated: true,
            ..FORM
        };
        let text = "0 .25 .25 .75 .25 .75 1 .25 1\n1 .5 .5 .5 .5\n0 .1 .1 .2 .1 .2 .2\n";
        let (objects, faults) = of(text, form);
        let corners = [0.25, 0.25, 0.75, 0.25, 0.75, 1.0, 0.25, 1.0];
        assert_eq!(objects[0].rotated, corners);
        assert_eq!(objects[0].shape, ObjectShape::None);
        let corners = [0.25, 0.25, 0.75, 0.25, 0.75, 0.75, 0.25, 0.75];
        assert_eq!(objects[1].rotated, corners);
        assert_eq!(faults, [(3, AnnotationFault::Damaged)]);
    }

    #[test]
    fn keypoints_have_two_or_three_numbers() {
        let form = |per| RowForm {
            keypoints: Some((2, per)),
            ..FORM
        };
        let (objects, faults) = of("0 .5 .5 .5 .5 .25 .5 1 0 0 0\n0 .5 .5 .5 .5\n", form(3));
        assert_eq!(objects[0].keypoints, [[0.25, 0.5, 1.0], [0.0, 0.0, 0.0]]);
        assert_eq!(faults, [(2, AnnotationFault::WrongKeypoints)]);
        let (objects, _) = of("0 .5 .5 .5 .5 .25 .5 -1 -1\n", form(2));
        assert_eq!(objects[0].keypoints, [[0.25, 0.5, 2.0], [0.0, 0.0, 0.0]]);
    }

    #[test]
    fn wrong_rows_are_left_out_and_the_others_stay() {
        let good = "1 .5 .5 .5 .5";
        for (row, fault) in [
            ("1 .5 .5 .5", AnnotationFault::Damaged),
            ("1 .5 .5 .5 .5 .5", AnnotationFault::Damaged),
            ("1 .1 .2 .3 .4 .5 .6 .7", AnnotationFault::Damaged),
            ("1", AnnotationFault::Damaged),
            ("cat .5 .5 .5 .4", AnnotationFault::Damaged),
            ("1,.5,.5,.5,.4", AnnotationFault::Damaged),
            ("3 .5 .5 .5 .4", AnnotationFault::UnknownCategory),
            ("-1 .5 .5 .5 .4", AnnotationFault::UnknownCategory),
            ("1.5 .5 .5 .5 .4", AnnotationFault::UnknownCategory),
            ("1 nan .5 .5 .4", AnnotationFault::NotFinite),
            ("1 .5 .5 1e999 .4", AnnotationFault::NotFinite),
            ("1 .5 .5 0 .4", AnnotationFault::EmptyBox),
            ("1 .5 .5 -.5 .4", AnnotationFault::EmptyBox),
            ("1 250 250 40 40", AnnotationFault::OutsideBox),
            ("1 .5 .5 .5 .5", AnnotationFault::DoubledRow),
            ("1 0.50 .5 .5 5e-1", AnnotationFault::DoubledRow),
        ] {
            let (objects, faults) = of(&format!("{good}\n{row}"), FORM);
            assert_eq!(
                (objects.len(), &faults[..]),
                (1, &[(2, fault)][..]),
                "{row}"
            );
        }
        let (objects, faults) = of("1 .9 .5 .4 .5", FORM);
        assert_eq!(
            (objects.len(), faults),
            (1, vec![(1, AnnotationFault::PartlyOutside)])
        );
        let damaged = read(b"1 .5 \xff .5 .5", &FORM).unwrap();
        assert_eq!(damaged.faults[0].fault, AnnotationFault::Damaged);
        let many: String = (0..=MOST_OBJECTS)
            .map(|n| format!("0 .5 .5 .5 .{n:06}1\n"))
            .collect();
        for many in [many, "x\n".repeat(MOST_OBJECTS + 1)] {
            let e = read(many.as_bytes(), &FORM).unwrap_err();
            assert_eq!(e, "has more than 65536 rows");
        }
        assert!(read("x\n\n".repeat(MOST_OBJECTS).as_bytes(), &FORM).is_ok());
    }
}
