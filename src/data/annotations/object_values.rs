//! The objects of a row: a list of structs, or a struct of lists, with usual names of fields.

use super::category_finder::CategoryFinder;
use super::coco::run_text_fills;
use super::label_files::{FileObjects, LabelFault};
use super::object_checks::{check_box, check_share_box, outline};
use super::options::{AnnotationOptions, CrowdPolicy};
use super::report::AnnotationFault;
use crate::data::columns::row_value::RowValue;
use crate::data::objects::{BoxForm, ObjectShape, StatedObject};

/// Objects of the largest picture.
const MOST_OBJECTS: usize = 1 << 20;

const BOXES: [&str; 4] = ["bbox", "boxes", "bboxes", "box"];
const CATEGORIES: [&str; 10] = [
    "category",
    "category_id",
    "label",
    "labels",
    "categories",
    "category_ids",
    "class",
    "classes",
    "class_id",
    "class_label",
];
const AREAS: [&str; 2] = ["area", "areas"];
const IDS: [&str; 4] = ["id", "ids", "bbox_id", "annotation_id"];
const CROWDS: [&str; 3] = ["iscrowd", "is_crowd", "crowd"];
const KEYPOINTS: [&str; 1] = ["keypoints"];
const SHAPES: [&str; 3] = ["segmentation", "segmentations", "polygons"];
/// Fields of run lengths, inside of a shape.
const RUNS: [&str; 2] = ["size", "counts"];

/// Keypoints of an object.
const MOST_KEYPOINTS: usize = 1000;

/// Fields that may be classes with names.
pub(crate) const CATEGORY_FIELDS: &[&str] = &CATEGORIES;
/// All fields that are read, with outlines at the end.
const FIELDS: [&str; 29] = {
    let parts: [&[&str]; 8] = [
        &BOXES,
        &CATEGORIES,
        &AREAS,
        &IDS,
        &CROWDS,
        &KEYPOINTS,
        &SHAPES,
        &RUNS,
    ];
    let mut all = [""; 29];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut n = 0;
        while n < parts[part].len() {
            all[at] = parts[part][n];
            (n, at) = (n + 1, at + 1);
        }
        part += 1;
    }
    all
};

/// The fields that are read of objects.
pub(crate) fn object_fields(shapes: bool) -> &'static [&'static str] {
    const WITH: &[&str] = &FIELDS;
    let (without, _) = WITH.split_at(FIELDS.len() - SHAPES.len() - RUNS.len());
    if shapes { WITH } else { without }
}

/// How boxes of rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoordinateForm {
    pub(crate) boxes: BoxForm,
    /// Coordinates are shares of the picture's sides.
    pub(crate) shares: bool,
}

/// The fields of one object.
#[derive(Clone, Copy, Default)]
struct ObjectFields<'a> {
    sides: Option<&'a RowValue>,
    category: Option<&'a RowValue>,
    area: Option<&'a RowValue>,
    id: Option<&'a RowValue>,
    crowd: Option<&'a RowValue>,
    keypoints: Option<&'a RowValue>,
    shape: Option<&'a RowValue>,
}

impl<'a> ObjectFields<'a> {
    /// The fields of usual names. A missing one counts as none.
    fn of(fields: &'a RowValue) -> Self {
        let first = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| fields.field(name));
            found.find(|value| **value != RowValue::Null)
        };
        Self {
            sides: first(&BOXES),
            category: first(&CATEGORIES),
            area: first(&AREAS),
            id: first(&IDS),
            crowd: first(&CROWDS),
            keypoints: first(&KEYPOINTS),
            shape: first(&SHAPES),
        }
    }

    fn all(self) -> [Option<&'a RowValue>; 7] {
        [
            self.sides,
            self.category,
            self.area,
            self.id,
            self.crowd,
            self.keypoints,
            self.shape,
        ]
    }

    /// The length of all lists. A list without entries is one that is missing. None: they differ,
    /// or one is no list.
    fn count(self) -> Option<usize> {
        let mut found = None;
        for field in self.all().into_iter().flatten() {
            let count = field.list()?.len();
            if count > 0 && *found.get_or_insert(count) != count {
                return None;
            }
        }
        let count = found.unwrap_or(0);
        let boxes = self.sides.and_then(RowValue::list);
        // Without a field of boxes each of the objects lacks one.
        boxes
            .is_none_or(|boxes| boxes.len() == count)
            .then_some(count)
    }

    /// Entry `at` of each list.
    fn entry(self, at: usize) -> Self {
        let [sides, category, area, id, crowd, keypoints, shape] = self.all().map(|field| {
            let value = field.and_then(RowValue::list).and_then(|list| list.get(at));
            value.filter(|value| **value != RowValue::Null)
        });
        Self {
            sides,
            category,
            area,
            id,
            crowd,
            keypoints,
            shape,
        }
    }
}

/// Whether a value has fields of objects.
pub(super) fn has_boxes(value: &RowValue) -> bool {
    ObjectFields::of(value).sides.is_some()
}

/// Reads the objects of `value`, in a picture of this height and width.
///
/// # Errors
/// It has too many objects.
pub(super) fn read(
    value: &RowValue,
    size: Option<(u32, u32)>,
    form: CoordinateForm,
    options: &AnnotationOptions,
    categories: &mut CategoryFinder,
) -> Result<FileObjects, String> {
    let mut read = FileObjects::default();
    read.sample.size = size;
    let whole = |fault| LabelFault { fault, place: None };
    let columns = ObjectFields::of(value);
    let items = value.list();
    let count = match (items, value) {
        (Some(items), _) => items.len(),
        (None, RowValue::Fields(_)) => {
            let Some(count) = columns.count() else {
                read.faults.push(whole(AnnotationFault::UnevenLists));
                return Ok(read);
            };
            count
        }
        _ => {
            read.faults.push(whole(AnnotationFault::Damaged));
            return Ok(read);
        }
    };
    if count > MOST_OBJECTS {
        return Err(format!("has more than {MOST_OBJECTS} objects"));
    }
    for at in 0..count {
        let fields = match items {
            Some(items) => ObjectFields::of(&items[at]),
            None => columns.entry(at),
        };
        let mut wrong = |fault| {
            read.faults.push(LabelFault {
                fault,
                place: Some(("object", at + 1)),
            });
        };
        let is_struct = items.is_none_or(|items| matches!(items[at], RowValue::Fields(_)));
        if !is_struct {
            wrong(AnnotationFault::Damaged);
            continue;
        }
        match object(fields, size, form, options, categories, &mut wrong) {
            Ok(Some(object)) => read.sample.objects.push(object),
            Ok(None) => read.crowds_dropped += 1,
            Err(fault) => wrong(fault),
        }
    }
    Ok(read)
}

/// An object. `Ok(None)`: it is a crowd, and crowds are dropped.
fn object(
    fields: ObjectFields<'_>,
    size: Option<(u32, u32)>,
    form: CoordinateForm,
    options: &AnnotationOptions,
    categories: &mut CategoryFinder,
    wrong: &mut impl FnMut(AnnotationFault),
) -> Result<Option<StatedObject>, AnnotationFault> {
    let crowd = fields.crowd.and_then(RowValue::number).unwrap_or(0.0) != 0.0;
    if crowd && options.crowds == CrowdPolicy::Drop {
        return Ok(None);
    }
    let numbers = fields
        .sides
        .and_then(four)
        .ok_or(AnnotationFault::MissingBox)?;
    let [left, top, right, bottom] = form.boxes.corners(numbers);
    let is_partly = match form.shares {
        true => check_share_box([left, top, right, bottom]),
        false => check_box([left, top, right, bottom], size),
    }?;
    let label = match fields.category {
        Some(RowValue::Text(name)) => categories.of_name(name)?,
        Some(value) => {
            let number = value.whole().ok_or(AnnotationFault::UnknownCategory)?;
            categories.of_number(number)?
        }
        None => return Err(AnnotationFault::UnknownCategory),
    };
    let own_area = (right - left) * (bottom - top);
    let area = match fields.area.map(RowValue::number) {
        None => own_area,
        Some(Some(area)) if area.is_finite() && area >= 0.0 => area,
        Some(_) => {
            wrong(AnnotationFault::WrongArea);
            own_area
        }
    };
    let shape = fields.shape.filter(|_| options.shapes);
    let shape = shape.map_or(Ok(ObjectShape::None), |value| match value {
        RowValue::Fields(_) => runs(value, size).ok_or(AnnotationFault::WrongRuns),
        _ => outlines(value, wrong),
    })?;
    let keypoints = fields.keypoints.filter(|_| options.keypoints);
    let keypoints = keypoints.map_or(Ok(Vec::new()), points)?;
    if is_partly {
        wrong(AnnotationFault::PartlyOutside);
    }
    Ok(Some(StatedObject {
        numbers,
        label,
        id: fields.id.and_then(RowValue::whole).unwrap_or(-1),
        area,
        crowd,
        keypoints,
        shape,
        ..StatedObject::default()
    }))
}

fn four(value: &RowValue) -> Option<[f64; 4]> {
    let numbers: Option<Vec<f64>> = value.list()?.iter().map(RowValue::number).collect();
    numbers?.try_into().ok()
}

/// Keypoints: x, y and visibility in turns, or a list of such triples.
fn points(value: &RowValue) -> Result<Vec<[f32; 3]>, AnnotationFault> {
    let list = value.list().ok_or(AnnotationFault::WrongKeypoints)?;
    let mut numbers = Vec::with_capacity(list.len().min(3 * MOST_KEYPOINTS));
    for value in list {
        let inner = value.list().unwrap_or(std::slice::from_ref(value));
        let has_three = inner.len() == 3 || value.list().is_none();
        if !has_three || numbers.len() >= 3 * MOST_KEYPOINTS {
            return Err(AnnotationFault::WrongKeypoints);
        }
        for value in inner {
            numbers.push(value.number().ok_or(AnnotationFault::WrongKeypoints)? as f32);
        }
    }
    if !numbers.iter().all(|v| v.is_finite()) {
        return Err(AnnotationFault::NotFinite);
    }
    match numbers.as_chunks::<3>() {
        (points, []) => Ok(points.to_vec()),
        _ => Err(AnnotationFault::WrongKeypoints),
    }
}

/// Run lengths that fill a mask of the size they state, which is the picture's.
fn runs(value: &RowValue, picture: Option<(u32, u32)>) -> Option<ObjectShape> {
    let side = |value: &RowValue| u32::try_from(value.whole()?).ok().filter(|n| *n > 0);
    let size = match value.field("size")?.list()? {
        [height, width] => (side(height)?, side(width)?),
        _ => return None,
    };
    if picture.is_some_and(|picture| picture != size) {
        return None;
    }
    let pixels = u64::from(size.0) * u64::from(size.1);
    match value.field("counts")? {
        RowValue::Text(text) => {
            let text = text.clone().into_bytes();
            run_text_fills(&text, pixels).then_some(ObjectShape::RunText { size, text })
        }
        counts => {
            let counts = counts.list()?.iter();
            let counts = counts.map(|n| u32::try_from(n.whole()?).ok());
            let counts: Vec<u32> = counts.collect::<Option<_>>()?;
            let sum: u64 = counts.iter().map(|n| u64::from(*n)).sum();
            let fits = sum == pixels && counts.len() as u64 <= pixels + 1;
            fits.then_some(ObjectShape::Runs { size, counts })
        }
    }
}

/// Outlines: lists of x and y in turns, or one such list.
fn outlines(
    value: &RowValue,
    wrong: &mut impl FnMut(AnnotationFault),
) -> Result<ObjectShape, AnnotationFault> {
    let rings = value.list().ok_or(AnnotationFault::Damaged)?;
    if rings.is_empty() {
        return Ok(ObjectShape::None);
    }
    let numbers =
        |list: &[RowValue]| -> Option<Vec<f64>> { list.iter().map(RowValue::number).collect() };
    if let Some(numbers) = numbers(rings) {
        return Ok(ObjectShape::Polygons(vec![outline(&numbers)?]));
    }
    let (mut found, mut fault) = (Vec::new(), None);
    for ring in rings {
        let numbers = ring
            .list()
            .and_then(numbers)
            .ok_or(AnnotationFault::Damaged);
        match numbers.and_then(|numbers| outline(&numbers)) {
            Ok(ring) => found.push(ring),
            Err(e) => fault = Some(e),
        }
    }
    match (found.is_empty(), fault) {
        (true, fault) => Err(fault.unwrap_or(AnnotationFault::ShortOutline)),
        (false, fault) => {
            if fault.is_some() {
                wrong(AnnotationFault::ShortOutline);
            }
            Ok(ObjectShape::Polygons(found))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::json_tree;
    use super::*;

    const XYWH: CoordinateForm = CoordinateForm {
        boxes: BoxForm::Xywh,
        shares: false,
    };

    fn objects(text: &str) -> (Vec<StatedObject>, Vec<(AnnotationFault, Option<usize>)>) {
        let value = json_tree::read(text.as_bytes(), &|_| true).unwrap();
        let options = AnnotationOptions::default();
        let mut categories = CategoryFinder::new(None);
        let read = super::read(&value, Some((40, 60)), XYWH, &options, &mut categories).unwrap();
        let faults = read.faults.iter();
        let faults = faults.map(|of| (of.fault, of.place.map(|(_, n)| n)));
        (read.sample.objects, faults.collect())
    }

    #[test]
    fn lists_of_structs_and_structs_of_lists_are_equal() {
        let items = r#"[{"bbox": [1, 2.5, 3, 4], "category": 7, "area": 9, "id": 5},
            {"bbox": [0, 0, 60, 40], "category": "cat", "iscrowd": true, "area": null}]"#;
        let lists = r#"{"bbox": [[1, 2.5, 3, 4], [0, 0, 60, 40]], "category": [7, "cat"],
            "area": [9, null], "id": [5, null], "is_crowd": [false, 1], "iscrowd": null}"#;
        let want = vec![
            StatedObject {
                numbers: [1.0, 2.5, 3.0, 4.0],
                id: 5,
                area: 9.0,
                ..StatedObject::default()
            },
            StatedObject {
                numbers: [0.0, 0.0, 60.0, 40.0],
                label: 1,
                id: -1,
                area: 2400.0,
                crowd: true,
                ..StatedObject::default()
            },
        ];
        assert_eq!(objects(items), (want.clone(), vec![]));
        assert_eq!(objects(lists), (want, vec![]));
        for none in [
            "[]",
            "{}",
            r#"{"bbox": [], "category": []}"#,
            r#"{"bbox": null}"#,
        ] {
            assert_eq!(objects(none), (vec![], vec![]), "{none}");
        }
    }

    #[test]
    fn keypoints_and_run_lengths_are_read() {
        let (found, faults) = objects(
            r#"[{"bbox": [1, 2, 3, 4], "label": 1, "keypoints": [1, 2.5, 2, 0, 0, 0],
                 "segmentation": {"size": [40, 60], "counts": [100, 300, 2000]}},
                {"bbox": [1, 2, 3, 4], "label": 1, "keypoints": [[1, 2.5, 2], [0, 0, 0]]},
                {"bbox": [1, 2, 3, 4], "label": 1,
                 "segmentation": {"counts": "T3\\9`n1", "size": [40, 60]}}]"#,
        );
        let points = vec![[1.0, 2.5, 2.0], [0.0; 3]];
        let runs = ObjectShape::Runs {
            size: (40, 60),
            counts: vec![100, 300, 2000],
        };
        assert_eq!((&found[0].keypoints, &found[0].shape), (&points, &runs));
        assert_eq!(found[1].keypoints, points);
        let text = ObjectShape::RunText {
            size: (40, 60),
            text: br"T3\9`n1".to_vec(),
        };
        assert_eq!((&found[2].shape, faults), (&text, vec![]));
        let of = |field: &str| {
            let text = format!(r#"[{{"bbox": [1, 2, 3, 4], "label": 1, {field}}}]"#);
            objects(&text).1
        };
        let wrong = |fault| vec![(fault, Some(1))];
        let many = format!(r#""keypoints": [{}1]"#, "1,".repeat(5999));
        for field in [
            r#""keypoints": [1, 2]"#,
            r#""keypoints": 7"#,
            r#""keypoints": [[1, 2]]"#,
            &many,
        ] {
            assert_eq!(of(field), wrong(AnnotationFault::WrongKeypoints), "{field}");
        }
        let long = "o".repeat(100_000);
        for counts in [
            "[2401]",
            "[2399]",
            "[-1, 2401]",
            r#""zz""#,
            "null",
            "7",
            &format!("\"{long}\""),
        ] {
            let field = format!(r#""segmentation": {{"size": [40, 60], "counts": {counts}}}"#);
            assert_eq!(of(&field), wrong(AnnotationFault::WrongRuns), "{counts}");
        }
        for size in ["[60, 40]", "[40]", "[0, 60]", "[4294967295, 4294967295]"] {
            let field = format!(r#""segmentation": {{"size": {size}, "counts": [2400]}}"#);
            assert_eq!(of(&field), wrong(AnnotationFault::WrongRuns), "{size}");
        }
    }

    #[test]
    fn wrong_objects_are_named() {
        let good = r#""bbox": [1, 2, 3, 4], "category": 1"#;
        for (wrong, fault) in [
            (r#"{"category": 1}"#, AnnotationFault::MissingBox),
            (
                r#"{"bbox": [1, 2, 3], "category": 1}"#,
                AnnotationFault::MissingBox,
            ),
            (
                r#"{"bbox": [1, 2, 3, null], "category": 1}"#,
                AnnotationFault::MissingBox,
            ),
            (
                r#"{"bbox": "1 2 3 4", "category": 1}"#,
                AnnotationFault::MissingBox,
            ),
            (
                r#"{"bbox": [1, 2, NaN, 4], "category": 1}"#,
                AnnotationFault::NotFinite,
            ),
            (
                r#"{"bbox": [1, 2, 0, 4], "category": 1}"#,
                AnnotationFault::EmptyBox,
            ),
            (
                r#"{"bbox": [60, 2, 5, 4], "category": 1}"#,
                AnnotationFault::OutsideBox,
            ),
            (
                r#"{"bbox": [50, 2, 50, 4], "category": 1}"#,
                AnnotationFault::PartlyOutside,
            ),
            (
                r#"{"bbox": [1, 2, 3, 4]}"#,
                AnnotationFault::UnknownCategory,
            ),
            (
                r#"{"bbox": [1, 2, 3, 4], "label": 1.5}"#,
                AnnotationFault::UnknownCategory,
            ),
            (
                r#"{"bbox": [1, 2, 3, 4], "label": ""}"#,
                AnnotationFault::UnknownCategory,
            ),
            (
                &format!(r#"{{{good}, "area": -1}}"#),
                AnnotationFault::WrongArea,
            ),
            (
                &format!(r#"{{{good}, "area": "x"}}"#),
                AnnotationFault::WrongArea,
            ),
            (
                &format!(r#"{{{good}, "segmentation": 7}}"#),
                AnnotationFault::Damaged,
            ),
            (
                &format!(r#"{{{good}, "segmentation": [[1, 2]]}}"#),
                AnnotationFault::ShortOutline,
            ),
            ("7", AnnotationFault::Damaged),
        ] {
            let text = format!("[{{{good}}}, {wrong}]");
            let (found, faults) = objects(&text);
            assert_eq!(faults, [(fault, Some(2))], "{wrong}");
            assert_eq!(found.len(), 1 + usize::from(fault.is_kept()), "{wrong}");
        }
        let few = r#"{"bbox": [[1, 2, 3, 4]], "category": [1], "area": [], "id": null}"#;
        assert_eq!((objects(few).0.len(), objects(few).1), (1, vec![]));
        let none = r#"{"category": [1]}"#;
        let missing = vec![(AnnotationFault::MissingBox, Some(1))];
        assert_eq!(objects(none), (vec![], missing));
        let none = r#"{"bbox": [], "category": [1]}"#;
        let uneven = vec![(AnnotationFault::UnevenLists, None)];
        assert_eq!(objects(none), (vec![], uneven));
        let uneven = r#"{"bbox": [[1, 2, 3, 4]], "category": [1, 2]}"#;
        assert_eq!(
            objects(uneven),
            (vec![], vec![(AnnotationFault::UnevenLists, None)])
        );
        let scalar = r#"{"bbox": [[1, 2, 3, 4]], "category": 1}"#;
        assert_eq!(
            objects(scalar),
            (vec![], vec![(AnnotationFault::UnevenLists, None)])
        );
        assert_eq!(
            objects("7"),
            (vec![], vec![(AnnotationFault::Damaged, None)])
        );
    }

    #[test]
    fn outlines_and_their_forms() {
        let of = |shape: &str| {
            let text =
                format!(r#"[{{"bbox": [1, 2, 3, 4], "category": 1, "segmentation": {shape}}}]"#);
            let (found, faults) = objects(&text);
            (found[0].shape.clone(), faults.len())
        };
        let ring = vec![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let one = ObjectShape::Polygons(vec![ring]);
        assert_eq!(of("[[1, 2, 3, 4, 5, 6]]"), (one.clone(), 0));
        assert_eq!(of("[1, 2, 3, 4, 5, 6]"), (one.clone(), 0));
        assert_eq!(of("[[1, 2, 3, 4, 5, 6], [1, 2]]"), (one, 1));
        assert_eq!(of("[]"), (ObjectShape::None, 0));
    }
}
