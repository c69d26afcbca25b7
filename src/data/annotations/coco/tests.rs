//! Real and hostile COCO files, beside a reader that holds the whole file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::options::{AnnotationOptions, CrowdPolicy};
use super::super::report::{AnnotationFault, AnnotationReport};
use super::{AnnotatedSet, read_coco, read_coco_for};
use crate::data::index::{Index, ItemLabel, ItemList};
use crate::data::objects::{ObjectShape, ObjectTable};
use crate::error::Result;

struct TestFile {
    dir: tempfile::TempDir,
    options: AnnotationOptions,
}

impl TestFile {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("1.jpg"), "").unwrap();
        Self {
            dir,
            options: AnnotationOptions::default(),
        }
    }

    fn json(&self) -> PathBuf {
        self.dir.path().join("a.json")
    }

    fn read(&self, text: &[u8]) -> Result<AnnotatedSet> {
        std::fs::write(self.json(), text).unwrap();
        read_coco(&self.json(), self.dir.path(), &self.options)
    }

    fn error(&self, text: &[u8]) -> String {
        self.read(text).unwrap_err().to_string()
    }

    /// A file with two pictures, two categories and these annotations.
    fn text(annotations: &str) -> String {
        format!(
            r#"{{"images": [{{"id": 9, "file_name": "2.jpg", "height": 40, "width": 60}},
                {{"id": 4, "file_name": "1.jpg", "height": 40, "width": 60}}],
             "categories": [{{"id": 18, "name": "dog"}}, {{"id": 3, "name": "car"}}],
             "annotations": [{annotations}]}}"#
        )
    }

    fn of(annotations: &str) -> AnnotatedSet {
        let file = Self::new();
        file.read(Self::text(annotations).as_bytes()).unwrap()
    }
}

/// An annotation with other members before the usual ones, which may replace them.
fn annotation(more: &str) -> String {
    format!(
        r#"{{"id": 1, "image_id": 4, "category_id": 3, "bbox": [1, 2, 10.5, 20], "area": 9,
            "iscrowd": 0{more}}}"#
    )
}

fn wrong(report: &AnnotationReport) -> Vec<(AnnotationFault, u64)> {
    let count = |of: &super::super::report::FaultCount| (of.fault, of.count);
    report.wrong.iter().map(count).collect()
}

/// The table of a file as pycocotools would see it, read as one value.
fn check_beside_whole(text: &[u8], table: &ObjectTable) -> usize {
    let whole: Value = serde_json::from_slice(text).unwrap();
    let mut images: Vec<&Value> = whole["images"].as_array().unwrap().iter().collect();
    images.sort_by_key(|image| image["id"].as_i64());
    let mut categories: Vec<i64> = (whole["categories"].as_array().unwrap().iter())
        .map(|of| of["id"].as_i64().unwrap())
        .collect();
    categories.sort();
    let numbers = |value: &Value| -> Vec<f64> {
        let list = value.as_array().unwrap();
        list.iter().map(|n| n.as_f64().unwrap()).collect()
    };
    let mut count = 0;
    for (id, image) in (0..).zip(&images) {
        let side = |name: &str| image[name].as_u64().unwrap() as u32;
        assert_eq!(table.stated_size(id), Some((side("height"), side("width"))));
        assert_eq!(table.image_id(id), image["id"].as_i64().unwrap());
        let of_image: Vec<&Value> = (whole["annotations"].as_array().unwrap().iter())
            .filter(|of| of["image_id"] == image["id"])
            .collect();
        let sample = table.sample(id);
        assert_eq!(sample.len(), of_image.len());
        for (at, of) in of_image.iter().enumerate() {
            assert_eq!(sample.numbers[at].to_vec(), numbers(&of["bbox"]));
            assert_eq!(sample.ids[at], of["id"].as_i64().unwrap());
            assert_eq!(sample.areas[at], of["area"].as_f64().unwrap());
            assert_eq!(
                i64::from(sample.crowds[at]),
                of["iscrowd"].as_i64().unwrap()
            );
            let label = sample.labels[at] as usize;
            assert_eq!(categories[label], of["category_id"].as_i64().unwrap());
            let per = table.form().keypoints;
            if per > 0 {
                let points: Vec<f64> = sample.keypoints[per * at..][..per]
                    .iter()
                    .flat_map(|point| point.map(f64::from))
                    .collect();
                assert_eq!(points, numbers(&of["keypoints"]));
            }
            match sample.shape(at).unwrap() {
                ObjectShape::Polygons(rings) => {
                    let want: Vec<Vec<f64>> = (of["segmentation"].as_array().unwrap().iter())
                        .map(numbers)
                        .collect();
                    let rings: Vec<Vec<f64>> = rings.into_iter().map(|r| r.concat()).collect();
                    assert_eq!(rings, want);
                }
                ObjectShape::Runs { size, counts } => {
                    let of = &of["segmentation"];
                    assert_eq!(json!([size.0, size.1]), of["size"]);
                    assert_eq!(json!(counts), of["counts"]);
                }
                shape => panic!("{shape:?}"),
            }
            count += 1;
        }
    }
    count
}

#[test]
fn real_files_are_read_as_they_are() {
    let data = std::env::var("FEATHERLOAD_DATA").unwrap_or_else(|_| "../shared/data".into());
    let folder = Path::new(&data).join("targets");
    for (name, keypoints, objects) in [
        ("coco/test_coco.json", 17, 14),
        ("coco/test_coco_wholebody.json", 17, 14),
    ] {
        let path = folder.join(name);
        let Ok(text) = std::fs::read(&path) else {
            println!(
                "SKIP: no {} (FEATHERLOAD_DATA names the folder)",
                path.display()
            );
            continue;
        };
        let options = AnnotationOptions {
            strict: true,
            ..AnnotationOptions::default()
        };
        let read = read_coco(&path, path.parent().unwrap(), &options).unwrap();
        assert_eq!(check_beside_whole(&text, &read.table), objects, "{name}");
        assert_eq!(read.table.form().keypoints, keypoints);
        let form = read.table.form();
        assert_eq!(form.keypoint_swap[..7], [0, 2, 1, 4, 3, 6, 5]);
        assert_eq!(form.skeleton[0], [15, 13]);
        assert_eq!(read.report.count(AnnotationFault::PartlyOutside), 0);
        assert!((0..read.index.len()).all(|id| read.index.path(id).exists()));
    }
}

#[test]
fn crowdpose_is_read_with_its_own_keypoints() {
    let data = std::env::var("FEATHERLOAD_DATA").unwrap_or_else(|_| "../shared/data".into());
    let path = Path::new(&data).join("targets/crowdpose/test_crowdpose.json");
    if !path.exists() {
        println!(
            "SKIP: no {} (FEATHERLOAD_DATA names the folder)",
            path.display()
        );
        return;
    }
    let options = AnnotationOptions::default();
    let read = read_coco(&path, path.parent().unwrap(), &options).unwrap();
    assert_eq!(read.table.form().keypoints, 14);
    assert_eq!(read.table.form().keypoint_swap[..4], [1, 0, 3, 2]);
    assert_eq!(read.report.objects, 5, "{}", read.report);
}

#[test]
fn lists_and_keys_come_in_any_order() {
    let images = r#""images": [{"width": 60, "height": 40, "file_name": "1.jpg", "id": 4}]"#;
    let categories = r#""categories": [{"name": "b", "id": 2}, {"name": "a", "id": 1}]"#;
    let annotations = r#""annotations": [
        {"segmentation": [[1, 2, 3, 4, 5, 6.5]], "bbox": [1, 2, 3, 4], "area": 3.5,
         "category_id": 2, "iscrowd": 0, "image_id": 4, "id": 70},
        {"image_id": 4, "id": 71, "iscrowd": 1, "category_id": 1, "bbox": [0, 0, 60, 40],
         "segmentation": {"size": [40, 60], "counts": [0, 2400]}, "area": 2400}]"#;
    let info = r#""info": {"images": [NaN, {"annotations": "]"}]}, "x": "\"}", "y": 1e999"#;
    let mut tables = Vec::new();
    for order in [
        [images, categories, annotations, info],
        [info, annotations, categories, images],
        [annotations, images, info, categories],
        [categories, annotations, images, info],
    ] {
        let file = TestFile::new();
        let text = format!("\u{feff} {{{}}}\n", order.join(",\n"));
        let read = file.read(text.as_bytes()).unwrap();
        let text = text
            .trim_start_matches('\u{feff}')
            .replace(info, "\"info\": 1");
        assert_eq!(check_beside_whole(text.as_bytes(), &read.table), 2);
        assert_eq!(read.report.crowds, 1);
        tables.push(read.table.hash());
    }
    tables.dedup();
    assert_eq!(tables.len(), 1);
}

#[test]
fn pictures_are_in_the_order_of_their_ids() {
    let read = TestFile::of(&annotation(""));
    let names: Vec<&Path> = (0..2).map(|id| read.index.relative_path(id)).collect();
    assert_eq!(names, [Path::new("1.jpg"), Path::new("2.jpg")]);
    assert_eq!((read.table.count(0), read.table.count(1)), (1, 0));
    assert_eq!((read.table.image_id(0), read.table.image_id(1)), (4, 9));
    assert_eq!(read.table.sample(0).labels, [0]);
    assert_eq!(read.report.images_without_objects, 1);
    let counts: Vec<(i64, usize, u64)> = (read.report.categories.iter())
        .map(|of| (of.id, of.label, of.objects))
        .collect();
    assert_eq!(counts, [(3, 0, 1), (18, 1, 0)]);
    let shown = read.report.to_string();
    assert!(
        shown.starts_with("1 objects of 2 categories in 2 images, 1 of them without objects\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with("\n    1           18        0  dog"),
        "{shown}"
    );
}

#[test]
fn wrong_annotations_are_counted_by_kind() {
    for (more, fault, kept) in [
        (r#", "image_id": 5"#, AnnotationFault::MissingPicture, 1),
        (r#", "image_id": null"#, AnnotationFault::MissingPicture, 1),
        (r#", "image_id": "4""#, AnnotationFault::MissingPicture, 1),
        (r#", "category_id": 4"#, AnnotationFault::UnknownCategory, 1),
        (
            r#", "category_id": 3.5"#,
            AnnotationFault::UnknownCategory,
            1,
        ),
        (r#", "bbox": [1, 2, 3]"#, AnnotationFault::MissingBox, 1),
        (r#", "bbox": {}"#, AnnotationFault::MissingBox, 1),
        (r#", "bbox": [1, 2, NaN, 4]"#, AnnotationFault::NotFinite, 1),
        (
            r#", "bbox": [1, 2, 1e999, 4]"#,
            AnnotationFault::NotFinite,
            1,
        ),
        (r#", "bbox": [1, 2, 0, 4]"#, AnnotationFault::EmptyBox, 1),
        (r#", "bbox": [1, 2, 3, -4]"#, AnnotationFault::EmptyBox, 1),
        (r#", "bbox": [61, 2, 3, 4]"#, AnnotationFault::OutsideBox, 1),
        (
            r#", "bbox": [1, 2, 3, 49]"#,
            AnnotationFault::PartlyOutside,
            2,
        ),
        (
            r#", "segmentation": [[1, 2, 3, 4]]"#,
            AnnotationFault::ShortOutline,
            1,
        ),
        (
            r#", "segmentation": [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6]]"#,
            AnnotationFault::ShortOutline,
            2,
        ),
        (
            r#", "segmentation": {"size": [40, 61], "counts": [2440]}"#,
            AnnotationFault::WrongRuns,
            1,
        ),
        (r#", "segmentation": 7"#, AnnotationFault::Damaged, 1),
        (r#", "area": -1"#, AnnotationFault::WrongArea, 2),
        (r#", "area": NaN"#, AnnotationFault::WrongArea, 2),
        (
            r#", "keypoints": [1, 2, 2]"#,
            AnnotationFault::UnnamedKeypoints,
            2,
        ),
        ("", AnnotationFault::DoubledId, 2),
    ] {
        let id = if more.is_empty() { 1 } else { 2 };
        let good = annotation(&format!(r#", "id": {id}, "image_id": 9"#));
        let text = format!("{good}, {}", annotation(more));
        let read = TestFile::of(&text);
        assert_eq!(wrong(&read.report), [(fault, 1)], "{more}");
        assert_eq!(read.report.objects, kept, "{more}");
        assert_eq!(read.table.objects() as u64, kept, "{more}");
        assert_eq!(
            fault.is_kept(),
            kept == 2 && fault != AnnotationFault::ShortOutline
        );
        let first = &read.report.wrong[0].first[0];
        assert!(first.contains("a.json: annotation"), "{first}");
        let mut file = TestFile::new();
        file.options.strict = true;
        let e = file.error(TestFile::text(&text).as_bytes());
        assert!(e.contains("a.json") && e.contains("annotation"), "{e}");
    }
}

#[test]
fn wrong_areas_and_missing_ones_are_those_of_the_box() {
    let more = r#", "area": -1}, {"image_id": 4, "category_id": 3, "bbox": [1, 2, 3, 4]"#;
    let read = TestFile::of(&annotation(more));
    assert_eq!(read.table.sample(0).areas, [210.0, 12.0]);
    assert_eq!(read.table.sample(0).ids, [1, -1]);
}

#[test]
fn what_is_not_asked_for_is_not_checked() {
    let mut file = TestFile::new();
    file.options.shapes = false;
    file.options.keypoints = false;
    file.options.crowds = CrowdPolicy::Drop;
    let more = r#", "segmentation": 7, "keypoints": [1]"#;
    let crowd = annotation(r#", "iscrowd": true, "bbox": []"#);
    let text = TestFile::text(&format!("{}, {crowd}", annotation(more)));
    let read = file.read(text.as_bytes()).unwrap();
    assert_eq!((read.report.objects, read.report.crowds_dropped), (1, 1));
    assert!(read.report.wrong.is_empty(), "{}", read.report);
    let form = read.table.form();
    assert_eq!((form.shapes, form.keypoints), (false, 0));
}

#[test]
fn keypoints_are_filled_up_to_the_longest_category() {
    let file = TestFile::new();
    let text = r#"{"images": [{"id": 1, "file_name": "1.jpg"}], "categories": [
        {"id": 1, "name": "a", "keypoints": ["nose", "left_eye", "right_eye"],
         "skeleton": [[1, 2], [2, 3]]},
        {"id": 2, "name": "b", "keypoints": ["nose"]}, {"id": 3, "name": "c"}],
     "annotations": [
        {"image_id": 1, "bbox": [0, 0, 5, 5], "category_id": 1,
         "keypoints": [1, 2, 2, 3, 4, 1, 0, 0, 0]},
        {"image_id": 1, "bbox": [0, 0, 5, 5], "category_id": 2, "keypoints": [7.5, 8, 2]},
        {"image_id": 1, "bbox": [0, 0, 5, 5], "category_id": 3},
        {"image_id": 1, "bbox": [0, 0, 5, 5], "category_id": 1, "keypoints": [1, 2, 2]},
        {"image_id": 1, "bbox": [0, 0, 5, 5], "category_id": 2, "keypoints": [NaN, 8, 2]}]}"#;
    let read = file.read(text.as_bytes()).unwrap();
    let mut want = [[0.0; 3]; 9];
    want[0] = [1.0, 2.0, 2.0];
    want[1] = [3.0, 4.0, 1.0];
    want[3] = [7.5, 8.0, 2.0];
    assert_eq!(read.table.sample(0).keypoints, want);
    assert_eq!(read.table.form().skeleton, [[0, 1], [1, 2]]);
    assert_eq!(
        wrong(&read.report),
        [
            (AnnotationFault::NotFinite, 1),
            (AnnotationFault::WrongKeypoints, 1)
        ]
    );
}

#[test]
fn segments_of_panoptic_files_are_objects() {
    let segments = r#"{"image_id": 4, "file_name": "1.png", "segments_info": [
        {"id": 3937500, "category_id": 18, "iscrowd": 0, "bbox": [1, 2, 3, 4], "area": 12},
        {"id": 8922372, "category_id": 3, "iscrowd": 1, "bbox": [0, 0, 60, 40], "area": 99},
        {"id": 5, "category_id": 7, "iscrowd": 0, "bbox": [0, 0, 6, 4], "area": 9}]},
        {"image_id": 9, "segments_info": []}"#;
    let read = TestFile::of(segments);
    let sample = read.table.sample(0);
    assert_eq!(sample.ids, [3_937_500, 8_922_372]);
    assert_eq!((sample.labels, sample.crowds), (&[1, 0][..], &[0, 1][..]));
    assert_eq!(wrong(&read.report), [(AnnotationFault::UnknownCategory, 1)]);
    assert_eq!(read.report.images_without_objects, 1);
}

#[test]
fn entries_of_pictures_that_cannot_be_used() {
    let file = TestFile::new();
    let with = |images: &str| {
        let text = TestFile::text(&annotation(""));
        let (_, rest) = text.split_once("\"categories\"").unwrap();
        format!("{{\"images\": [{images}], \"categories\"{rest}")
    };
    let images = r#"{"id": 4, "file_name": "1.jpg"}, {"id": 4, "file_name": "2.jpg"},
        {"id": 5}, {"file_name": "3.jpg"}"#;
    let read = file.read(with(images).as_bytes()).unwrap();
    assert_eq!(read.index.len(), 1);
    assert_eq!(read.index.path(0), file.dir.path().join("1.jpg"));
    assert_eq!(
        wrong(&read.report),
        [
            (AnnotationFault::DamagedPicture, 2),
            (AnnotationFault::DoubledPicture, 1)
        ]
    );
    for (images, what) in [
        (
            r#"{"id": "a", "file_name": "1.jpg"}"#,
            "the id 'a' is a text: number images",
        ),
        ("", "'images' has no usable entry"),
        ("7", "not JSON: no object, at byte 12"),
        (
            r#"{"id": 4, "file_name": "7.jpg"}"#,
            "names images that do not exist, such as ",
        ),
    ] {
        let e = file.error(with(images).as_bytes());
        assert!(e.contains(what) && e.contains("a.json"), "{e}");
    }
}

#[test]
fn names_stay_in_the_folder_of_the_images() {
    let file = TestFile::new();
    let of = |name: &str| {
        let text = TestFile::text(&annotation("")).replace("1.jpg", name);
        file.read(text.as_bytes())
    };
    let inside = file.dir.path().join("1.jpg");
    for name in ["1.jpg", "./1.jpg", inside.to_str().unwrap()] {
        let found = of(name).unwrap().index.path(0);
        assert!(found.exists() && found.ends_with("1.jpg"), "{name}");
    }
    for name in ["../1.jpg", "a/../../1.jpg", "/etc/1.jpg"] {
        let e = of(name).unwrap_err().to_string();
        assert!(
            e.contains("image 4: ") && e.contains("leads out of the folder"),
            "{e}"
        );
    }
}

/// An image without objects, in a file whose other annotations are wrong, is no error.
#[test]
fn images_without_objects_are_no_error() {
    let file = TestFile::new();
    let wrong = annotation(r#", "image_id": 5"#);
    let text = TestFile::text(&format!("{wrong}, {}", annotation("")));
    std::fs::write(file.json(), text).unwrap();
    let mut list = ItemList::in_folder(file.dir.path()).unwrap();
    list.push("2.jpg", ItemLabel::None).unwrap();
    let index = Index::items(list).unwrap();
    let (table, report) = read_coco_for(&file.json(), &index, &file.options).unwrap();
    assert_eq!((table.objects(), report.images_without_objects), (0, 1));
    assert_eq!(report.count(AnnotationFault::MissingPicture), 1);
}

#[test]
fn files_of_another_form_are_refused_by_name() {
    let file = TestFile::new();
    let long = format!("{{\"{}\": 1}}", "a".repeat(5000));
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    let twice = TestFile::text("").replace("\"categories\"", "\"images\": [], \"categories\"");
    let captions = TestFile::text(r#"{"image_id": 4, "id": 1, "caption": "a"}"#);
    let text_ids = TestFile::text(r#"{"image_id": "4", "category_id": 3, "bbox": [1, 2, 3, 4]}"#);
    for (text, what) in [
        ("", "it is empty, at byte 0"),
        ("[]", "it is a list, not an object"),
        ("7", "it does not begin with {"),
        ("{}", "has no list 'images'"),
        (
            r#"{"images": [], "categories": [], "annotations": []}"#,
            "no usable entry",
        ),
        (r#"{"images": {}}"#, "'images' is no list"),
        (r#"{"images": [1 2]}"#, "not JSON: no object"),
        (r#"{"images": ]}"#, "'images' is no list"),
        (r#"{"a": ]}"#, "no value, at byte 6"),
        (r#"{"a": [}"#, "a closing bracket that fits no opening one"),
        (r#"{"a" 1}"#, "no colon after a key"),
        (r#"{"a": 1 "b": 2}"#, "no comma after a value"),
        (r#"{a: 1}"#, "no key in double quotes"),
        (r#"{"a": 1} x"#, "more text follows"),
        (&long, "has a value of more than 4096 bytes"),
        (&deep, "more than 128 brackets are open"),
        (&twice, "has 'images' twice"),
        (
            &captions,
            "none of its annotations can be used: 1 of an unknown category",
        ),
        (
            &text_ids,
            "none of its 1 annotations can be used: 1 of a picture without an entry",
        ),
    ] {
        let e = file.error(text.as_bytes());
        assert!(e.contains(what) && e.contains("a.json"), "{text:.60}: {e}");
    }
    assert!(read_coco(file.dir.path(), file.dir.path(), &file.options).is_err());
    let absent = file.dir.path().join("b.json");
    assert!(read_coco(&absent, file.dir.path(), &file.options).is_err());
}

#[test]
fn an_annotation_that_is_too_long_is_an_error() {
    let file = TestFile::new();
    let more = format!(r#", "x": "{}""#, "x".repeat(64 << 20));
    let e = file.error(TestFile::text(&annotation(&more)).as_bytes());
    assert!(
        e.contains("has a value of more than 67108864 bytes, at byte"),
        "{e}"
    );
}

/// A file that was cut, or has another byte somewhere, is an error or a table: nothing panics.
#[test]
fn cut_and_changed_files() {
    let file = TestFile::new();
    let more = r#", "segmentation": [[1, 2, 3, 4, 5, 6]]"#;
    let text = TestFile::text(&format!("{}, {}", annotation(more), annotation("")));
    for end in 0..text.len() {
        let e = file.error(&text.as_bytes()[..end]);
        assert!(e.contains("a.json"), "{end}: {e}");
    }
    for at in 0..text.len() {
        for byte in [b'"', b'}', b'9', 0] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            let _ = file.read(&bytes);
        }
    }
}

#[test]
fn long_outlines_and_many_objects() {
    let points: Vec<String> = (0..1_000_000).map(|n| format!("{}.25,7", n % 60)).collect();
    let more = format!(r#", "segmentation": [[{}]]"#, points.join(","));
    let read = TestFile::of(&annotation(&more));
    match read.table.sample(0).shape(0) {
        Some(ObjectShape::Polygons(rings)) => assert_eq!(rings[0].len(), 1_000_000),
        shape => panic!("{:?}", shape.is_some()),
    }
    // The last bytes of a piece and the first of the next one are read together.
    let many: Vec<String> = (0..20_000)
        .map(|id| annotation(&format!(r#", "id": {id}, "image_id": {}"#, [4, 9][id % 2])))
        .collect();
    let read = TestFile::of(&many.join(","));
    let want: Vec<i64> = (0..20_000).step_by(2).collect();
    assert_eq!(read.table.sample(0).ids, want);
    let want: Vec<i64> = (1..20_000).step_by(2).collect();
    assert_eq!(read.table.sample(1).ids, want);
    let file = TestFile::new();
    let text = TestFile::text(&format!("{}, {{\"x\": \"", annotation("")));
    let json = std::fs::File::create(file.json()).unwrap();
    std::io::Write::write_all(&mut &json, text.as_bytes()).unwrap();
    // A hole of 1 TiB within a text.
    json.set_len(1 << 40).unwrap();
    let e = read_coco(&file.json(), file.dir.path(), &file.options);
    let e = e.unwrap_err().to_string();
    assert!(e.contains("it has a zero byte"), "{e}");
}

#[test]
fn the_annotations_of_a_data_set_that_is_there() {
    let file = TestFile::new();
    let text = TestFile::text(&annotation(""));
    std::fs::write(file.json(), text).unwrap();
    let index = |names: &[&str]| {
        let mut list = ItemList::in_folder(file.dir.path()).unwrap();
        for name in names {
            list.push(name, ItemLabel::None).unwrap();
        }
        Index::items(list).unwrap()
    };
    let read = |names: &[&str]| read_coco_for(&file.json(), &index(names), &file.options);
    let (table, report) = read(&["x/0.jpg", "y/1.jpg"]).unwrap();
    assert_eq!((table.count(0), table.count(1)), (0, 1));
    assert_eq!((table.image_id(0), table.stated_size(0)), (-1, None));
    assert_eq!(
        (table.image_id(1), table.stated_size(1)),
        (4, Some((40, 60)))
    );
    assert_eq!((report.images, report.images_without_entry), (2, 1));
    assert_eq!(report.entries_without_image, 1);
    let e = read(&["7.jpg", "8.jpg"]).unwrap_err().to_string();
    assert!(
        e.contains("names none of the 2 images of the data set"),
        "{e}"
    );
}
