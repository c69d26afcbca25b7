//! A JSON file for each image with outlines of its objects: those of Cityscapes and of labelme.
//!
//! A label of Cityscapes that ends in `group` stands for several objects: a crowd.

use super::category_finder::CategoryFinder;
use super::json_tree;
use super::label_files::{FileObjects, LabelFault, LabelFiles, MOST_OBJECTS, add_file, check_some};
use super::object_checks::{check_box, outline};
use super::options::{AnnotationOptions, CrowdPolicy};
use super::report::{AnnotationFault, AnnotationReport, ReportBuilder};
use crate::data::columns::row_value::RowValue;
use crate::data::index::{Index, PathPattern};
use crate::data::objects::{ObjectForm, ObjectShape, ObjectTable, ObjectTableWriter, StatedObject};
use crate::error::Result;

const FIELDS: [&str; 11] = [
    "imgHeight",
    "imgWidth",
    "objects",
    "label",
    "polygon",
    "deleted",
    "imageHeight",
    "imageWidth",
    "shapes",
    "points",
    "shape_type",
];

/// An object before its category has a number.
#[derive(Debug, PartialEq)]
struct NamedObject {
    name: String,
    object: StatedObject,
    is_partly: bool,
}

/// What a file has, with the number of each object from 1.
#[derive(Debug, Default, PartialEq)]
struct PolygonFile {
    size: Option<(u32, u32)>,
    objects: Vec<(usize, Result<NamedObject, AnnotationFault>)>,
    is_damaged: bool,
}

/// Reads the JSON files that a pattern names. A picture without its file has no objects.
///
/// # Errors
/// None of the files exists; a file that cannot be read; no usable object; a wrong one with
/// [`AnnotationOptions::strict`].
pub(super) fn read_polygons(
    index: &Index,
    pattern: &PathPattern,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    index.check_has_paths(pattern.text(), "objects")?;
    let path_of = |id| index.path_beside(pattern, id);
    let files = LabelFiles::find(index.len(), pattern.text(), &path_of)?;
    let mut categories = CategoryFinder::new(names);
    let mut report = ReportBuilder::new(options.strict);
    let mut writer = ObjectTableWriter::with_later_categories(ObjectForm {
        area: true,
        shapes: options.shapes,
        ..ObjectForm::default()
    })?;
    files.for_each(
        |text| read_file(text, options),
        |path, file| {
            let file = file.map(|file| numbered(file, &mut categories, options));
            add_file(path, None, file, &mut writer, &mut report)
        },
    )?;
    let found = categories.finish();
    report.relabel(&found.categories, &found.labels);
    let advice = "give files of Cityscapes (*_polygons.json) or of labelme";
    check_some(&report, index.root(), advice)?;
    let table = writer.finish_with(found.categories, &found.labels)?;
    Ok((table, report.finish()))
}

fn numbered(
    file: PolygonFile,
    categories: &mut CategoryFinder,
    options: &AnnotationOptions,
) -> FileObjects {
    let mut read = FileObjects::default();
    read.sample.size = file.size;
    read.sample.image_id = -1;
    if file.is_damaged {
        read.faults.push(LabelFault {
            fault: AnnotationFault::Damaged,
            place: None,
        });
    }
    for (number, found) in file.objects {
        let labelled = found.and_then(|mut found| {
            found.object.label = categories.of_name(&found.name)?;
            Ok(found)
        });
        let fault = match labelled {
            Ok(found) if found.object.crowd && options.crowds == CrowdPolicy::Drop => {
                read.crowds_dropped += 1;
                None
            }
            Ok(found) => {
                read.sample.objects.push(found.object);
                found.is_partly.then_some(AnnotationFault::PartlyOutside)
            }
            Err(fault) => Some(fault),
        };
        read.faults.extend(fault.map(|fault| LabelFault {
            fault,
            place: Some(("object", number)),
        }));
    }
    read
}

/// # Errors
/// It has too many objects.
fn read_file(text: &[u8], options: &AnnotationOptions) -> Result<PolygonFile, String> {
    let damaged = PolygonFile {
        is_damaged: true,
        ..PolygonFile::default()
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Ok(value) = json_tree::read(text, &|name| FIELDS.contains(&name)) else {
        return Ok(damaged);
    };
    let is_cityscapes = value.field("objects").is_some();
    let objects = value.field("objects").or_else(|| value.field("shapes"));
    let Some(objects) = objects.and_then(RowValue::list) else {
        return Ok(damaged);
    };
    if objects.len() > MOST_OBJECTS {
        return Err(format!("has more than {MOST_OBJECTS} objects"));
    }
    let side = |names: [&str; 2]| {
        let side = names.iter().find_map(|name| value.field(name)?.whole());
        side.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0)
    };
    let size = side(["imgHeight", "imageHeight"]).zip(side(["imgWidth", "imageWidth"]));
    let is_deleted = |object: &RowValue| {
        let deleted = object.field("deleted").and_then(RowValue::number);
        deleted.is_some_and(|n| n != 0.0)
    };
    let found = objects.iter().enumerate().filter(|(_, of)| !is_deleted(of));
    let read = |(at, of): (usize, &RowValue)| (at + 1, object(of, size, is_cityscapes, options));
    Ok(PolygonFile {
        size,
        objects: found.map(read).collect(),
        is_damaged: false,
    })
}

fn object(
    value: &RowValue,
    size: Option<(u32, u32)>,
    is_cityscapes: bool,
    options: &AnnotationOptions,
) -> Result<NamedObject, AnnotationFault> {
    let RowValue::Text(name) = value.field("label").unwrap_or(&RowValue::Null) else {
        return Err(AnnotationFault::UnknownCategory);
    };
    let points = value.field("polygon").or_else(|| value.field("points"));
    let points = points
        .and_then(RowValue::list)
        .ok_or(AnnotationFault::Damaged)?;
    let mut numbers = Vec::new();
    for point in points {
        match point.list().unwrap_or_default() {
            [x, y] => {
                let point = x.number().zip(y.number());
                let (x, y) = point.ok_or(AnnotationFault::Damaged)?;
                numbers.extend([x, y]);
            }
            _ => return Err(AnnotationFault::Damaged),
        }
    }
    let kind = match value.field("shape_type") {
        Some(RowValue::Text(kind)) => kind.as_str(),
        _ => "polygon",
    };
    let ring = match (kind, &*numbers) {
        ("polygon", numbers) => outline(numbers)?,
        ("rectangle", &[x0, y0, x1, y1]) => outline(&[x0, y0, x1, y0, x1, y1, x0, y1])?,
        // Points, lines and circles are no areas here.
        _ => return Err(AnnotationFault::Damaged),
    };
    let sides = hull(&ring);
    let is_partly = check_box(sides, size)?;
    let group = name
        .strip_suffix("group")
        .filter(|name| !name.is_empty() && is_cityscapes);
    let shape = match options.shapes {
        true => ObjectShape::Polygons(vec![ring.clone()]),
        false => ObjectShape::None,
    };
    Ok(NamedObject {
        name: group.unwrap_or(name).to_owned(),
        is_partly,
        object: StatedObject {
            numbers: sides,
            id: -1,
            area: area(&ring),
            crowd: group.is_some(),
            shape,
            ..StatedObject::default()
        },
    })
}

fn hull(ring: &[[f64; 2]]) -> [f64; 4] {
    let start = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    ring.iter().fold(start, |[l, t, r, b], [x, y]| {
        [l.min(*x), t.min(*y), r.max(*x), b.max(*y)]
    })
}

/// Square pixels inside of an outline that does not cross itself.
fn area(ring: &[[f64; 2]]) -> f64 {
    let next = ring.iter().cycle().skip(1);
    let twice: f64 = ring
        .iter()
        .zip(next)
        .map(|([x0, y0], [x1, y1])| x0 * y1 - x1 * y0)
        .sum();
    (twice / 2.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{FolderLabels, FolderOptions};

    const CITY: &str = r#"{"imgHeight": 40, "imgWidth": 60, "objects": [
        {"label": "road", "polygon": [[0, 39], [59, 39], [59, 20.5], [0, 20.5]]},
        {"label": "cargroup", "polygon": [[1, 1], [5, 1], [1, 7]]},
        {"label": "sky", "deleted": 1, "polygon": []},
        {"label": "car", "polygon": [[-9, 1], [5, 1], [1, 7]]}]}"#;

    fn faults(text: &str) -> Vec<AnnotationFault> {
        let options = AnnotationOptions::default();
        let read = read_file(text.as_bytes(), &options).unwrap();
        let read = numbered(read, &mut CategoryFinder::new(None), &options);
        read.faults.iter().map(|of| of.fault).collect()
    }

    #[test]
    fn outlines_of_cityscapes_and_labelme() {
        let options = AnnotationOptions::default();
        let read = read_file(CITY.as_bytes(), &options).unwrap();
        assert_eq!(read.size, Some((40, 60)));
        let objects: Vec<&NamedObject> = read
            .objects
            .iter()
            .map(|(_, of)| of.as_ref().unwrap())
            .collect();
        let names: Vec<&str> = objects.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["road", "car", "car"]);
        assert_eq!(objects[0].object.numbers, [0.0, 20.5, 59.0, 39.0]);
        assert_eq!(objects[0].object.area, 59.0 * 18.5);
        assert_eq!(objects[1].object.area, 12.0);
        assert_eq!(
            objects.iter().map(|of| of.object.crowd).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert!(objects[2].is_partly);
        let ring = vec![[1.0, 1.0], [5.0, 1.0], [1.0, 7.0]];
        assert_eq!(objects[1].object.shape, ObjectShape::Polygons(vec![ring]));
        let labelme = r#"{"imageData": "AAAA", "imageHeight": 9, "imageWidth": 9, "shapes": [
            {"label": "group", "points": [[1, 2], [5, 2], [5, 4]], "shape_type": "polygon"},
            {"label": "box", "points": [[5, 6], [1, 2]], "shape_type": "rectangle"}]}"#;
        let read = read_file(labelme.as_bytes(), &options).unwrap();
        let of = |n: usize| read.objects[n].1.as_ref().unwrap();
        assert_eq!((of(0).name.as_str(), of(0).object.crowd), ("group", false));
        assert_eq!(of(1).object.numbers, [1.0, 2.0, 5.0, 6.0]);
        assert_eq!(of(1).object.area, 16.0);
        assert_eq!(read.size, Some((9, 9)));
    }

    #[test]
    fn wrong_objects_and_damaged_files() {
        let with =
            |object: &str| format!(r#"{{"imgHeight": 9, "imgWidth": 9, "objects": [{object}]}}"#);
        for (object, fault) in [
            (
                r#"{"polygon": [[1, 1], [2, 1], [2, 2]]}"#,
                AnnotationFault::UnknownCategory,
            ),
            (
                r#"{"label": 7, "polygon": [[1, 1], [2, 1], [2, 2]]}"#,
                AnnotationFault::UnknownCategory,
            ),
            (
                r#"{"label": "", "polygon": [[1, 1], [2, 1], [2, 2]]}"#,
                AnnotationFault::UnknownCategory,
            ),
            (r#"{"label": "a"}"#, AnnotationFault::Damaged),
            (
                r#"{"label": "a", "polygon": [[1, 1], [2, 1]]}"#,
                AnnotationFault::ShortOutline,
            ),
            (
                r#"{"label": "a", "polygon": [[1, 1], [2], [2, 2]]}"#,
                AnnotationFault::Damaged,
            ),
            (
                r#"{"label": "a", "polygon": [[1, 1], [2, "x"], [2, 2]]}"#,
                AnnotationFault::Damaged,
            ),
            (
                r#"{"label": "a", "polygon": [[1, 1], [NaN, 1], [2, 2]]}"#,
                AnnotationFault::NotFinite,
            ),
            (
                r#"{"label": "a", "polygon": [[1, 1], [2, 1], [3, 1]]}"#,
                AnnotationFault::EmptyBox,
            ),
            (
                r#"{"label": "a", "polygon": [[9, 1], [12, 1], [12, 3]]}"#,
                AnnotationFault::OutsideBox,
            ),
            (
                r#"{"label": "a", "points": [[1, 1]], "shape_type": "point"}"#,
                AnnotationFault::Damaged,
            ),
            ("7", AnnotationFault::UnknownCategory),
        ] {
            assert_eq!(faults(&with(object)), [fault], "{object}");
        }
        for text in ["", "{", "[]", "{}", r#"{"objects": 7}"#, "null"] {
            assert_eq!(faults(text), [AnnotationFault::Damaged], "{text}");
        }
        for end in 0..CITY.len() {
            assert_eq!(faults(&CITY[..end]), [AnnotationFault::Damaged]);
        }
        let many = with(&vec!["7"; MOST_OBJECTS + 1].join(","));
        let e = read_file(many.as_bytes(), &AnnotationOptions::default());
        assert_eq!(e, Err("has more than 65536 objects".to_owned()));
    }

    #[test]
    fn files_beside_images_of_cityscapes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for name in ["a_0", "a_1"] {
            write(&format!("leftImg8bit/train/a/{name}_leftImg8bit.png"), "");
        }
        write("gtFine/train/a/a_1_gtFine_polygons.json", CITY);
        let options = FolderOptions {
            labels: FolderLabels::None,
            ..FolderOptions::default()
        };
        let images = dir.path().join("leftImg8bit/train");
        let index = Index::folder(&images, &options).unwrap().0;
        let text = "../../gtFine/train/{dir}/{stem-_leftImg8bit}_gtFine_polygons.json";
        let pattern = PathPattern::parse(text).unwrap();
        let options = AnnotationOptions::default();
        let (table, report) = read_polygons(&index, &pattern, None, &options).unwrap();
        assert_eq!((table.count(0), table.count(1)), (0, 3));
        assert_eq!(report.images_without_entry, 1);
        let names: Vec<&str> = report.categories.iter().map(|of| &*of.name).collect();
        assert_eq!(
            (names, table.sample(1).labels),
            (vec!["car", "road"], &[1, 0, 0][..])
        );
        let cars = ["car".to_owned()];
        let options = AnnotationOptions {
            crowds: CrowdPolicy::Drop,
            ..options
        };
        let (table, report) = read_polygons(&index, &pattern, Some(&cars), &options).unwrap();
        assert_eq!((table.count(1), report.crowds_dropped), (1, 1));
        assert_eq!(report.count(AnnotationFault::UnknownCategory), 1);
    }
}
