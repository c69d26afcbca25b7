//! XML files of Pascal VOC: boxes, and nothing else.
//!
//! Numbers may have decimals. Coordinates are taken as they are, as torchvision does: VOC counts
//! pixels from 1, and many tools that write its form count from 0. An object that is `difficult`
//! becomes a crowd. Parts of objects have boxes, too, and are passed over.
//!
//! Names of categories are sorted, since the first file that has one would depend on the folder.
//! Document types are refused, so there are no entities to expand.

use std::collections::{BTreeSet, HashMap};

use quick_xml::Reader;
use quick_xml::events::Event;

use super::label_files::{FileObjects, LabelFault, LabelFiles, MOST_OBJECTS, add_file, check_some};
use super::object_checks::check_box;
use super::options::{AnnotationOptions, CrowdPolicy};
use super::report::{AnnotationFault, AnnotationReport, ReportBuilder};
use crate::data::index::{Index, PathPattern};
use crate::data::objects::{
    ObjectCategory, ObjectForm, ObjectTable, ObjectTableWriter, StatedObject,
};
use crate::error::Result;

/// Reads the XML files that a pattern such as `../Annotations/{stem}.xml` names. A picture without
/// its file has no objects.
///
/// # Errors
/// None of the files exists; a file that cannot be read; no usable object; a wrong one with
/// [`AnnotationOptions::strict`].
pub(crate) fn read_voc(
    index: &Index,
    pattern: &PathPattern,
    names: Option<&[String]>,
    options: &AnnotationOptions,
) -> Result<(ObjectTable, AnnotationReport)> {
    index.check_has_paths(pattern.text(), "objects")?;
    let path_of = |id| index.path_beside(pattern, id);
    let files = LabelFiles::find(index.len(), pattern.text(), &path_of)?;
    let names = match names {
        Some(names) => names.to_vec(),
        None => {
            let mut names = BTreeSet::new();
            let names_of = |text: &[u8]| {
                let read = read_file(text);
                let objects = read.map(|file| file.objects).unwrap_or_default();
                Ok(objects.into_iter().filter_map(|of| of.name).collect())
            };
            files.for_each(names_of, |_, found: Option<Vec<_>>| {
                names.extend(found.unwrap_or_default());
                Ok(())
            })?;
            names.into_iter().collect()
        }
    };
    let labels: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let category = |(id, name): (i64, &String)| ObjectCategory {
        id,
        name: name.clone(),
    };
    let form = ObjectForm {
        categories: (0..).zip(&names).map(category).collect(),
        ..ObjectForm::default()
    };
    let mut report = ReportBuilder::new(options.strict);
    report.set_categories(&form.categories);
    let mut writer = ObjectTableWriter::new(form)?;
    files.for_each(
        |text| objects_of(text, &labels, options),
        |path, file| add_file(path, None, file, &mut writer, &mut report),
    )?;
    check_some(&report, index.root(), "give files of Pascal VOC")?;
    Ok((writer.finish()?, report.finish()))
}

/// The objects of a file. A damaged file has none.
fn objects_of(
    text: &[u8],
    labels: &HashMap<&str, u32>,
    options: &AnnotationOptions,
) -> Result<FileObjects, String> {
    let mut objects = FileObjects::default();
    objects.sample.image_id = -1;
    let Some(file) = read_file(text) else {
        objects.faults.push(LabelFault {
            fault: AnnotationFault::Damaged,
            place: None,
        });
        return Ok(objects);
    };
    if file.objects.len() > MOST_OBJECTS {
        return Err(format!("has more than {MOST_OBJECTS} objects"));
    }
    objects.sample.size = file.height.zip(file.width);
    for (number, of) in (1..).zip(file.objects) {
        if of.difficult && options.crowds == CrowdPolicy::Drop {
            objects.crowds_dropped += 1;
            continue;
        }
        let (object, is_partly) = match of.object(labels, objects.sample.size) {
            Ok((object, is_partly)) => (
                Some(object),
                is_partly.then_some(AnnotationFault::PartlyOutside),
            ),
            Err(fault) => (None, Some(fault)),
        };
        objects.sample.objects.extend(object);
        objects.faults.extend(is_partly.map(|fault| LabelFault {
            fault,
            place: Some(("object", number)),
        }));
    }
    Ok(objects)
}

/// What a file has.
#[derive(Debug, Default, PartialEq)]
struct VocFile {
    height: Option<u32>,
    width: Option<u32>,
    objects: Vec<VocObject>,
}

#[derive(Debug, Default, PartialEq)]
struct VocObject {
    name: Option<String>,
    /// Left, top, right, bottom.
    sides: [Option<f64>; 4],
    difficult: bool,
}

impl VocObject {
    fn object(
        self,
        labels: &HashMap<&str, u32>,
        size: Option<(u32, u32)>,
    ) -> Result<(StatedObject, bool), AnnotationFault> {
        let name = self.name.ok_or(AnnotationFault::Damaged)?;
        let label = labels.get(&*name).ok_or(AnnotationFault::UnknownCategory)?;
        let [Some(left), Some(top), Some(right), Some(bottom)] = self.sides else {
            return Err(AnnotationFault::MissingBox);
        };
        let numbers = [left, top, right, bottom];
        let is_partly = check_box(numbers, size)?;
        let object = StatedObject {
            numbers,
            label: *label,
            id: -1,
            crowd: self.difficult,
            ..StatedObject::default()
        };
        Ok((object, is_partly))
    }
}

/// Elements that may be open at once.
const MOST_OPEN: usize = 64;
const SIDES: [&[u8]; 4] = [b"xmin", b"ymin", b"xmax", b"ymax"];

/// Reads a file. None if it is damaged.
fn read_file(text: &[u8]) -> Option<VocFile> {
    let mut reader = Reader::from_reader(text);
    // Tools write names such as `A & B` as they are.
    reader.config_mut().allow_dangling_amp = true;
    let mut file = VocFile::default();
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut inside = Vec::new();
    let mut has_root = false;
    // The object that is open, and how many elements are open in which it stands.
    let mut object: Option<(VocObject, usize)> = None;
    loop {
        match reader.read_event().ok()? {
            // The caller refuses a file with more.
            Event::Start(_) if file.objects.len() > MOST_OBJECTS => return Some(file),
            Event::Start(element) => {
                if open.len() == MOST_OPEN {
                    return None;
                }
                let name = element.local_name().as_ref().to_vec();
                if name == b"object" && object.is_none() {
                    object = Some((VocObject::default(), open.len()));
                }
                open.push(name);
                has_root = true;
                inside.clear();
            }
            Event::Text(text) => inside.extend_from_slice(&text),
            Event::CData(text) => inside.extend_from_slice(&text),
            Event::GeneralRef(reference) => {
                let c = match &*reference {
                    b"lt" => '<',
                    b"gt" => '>',
                    b"amp" => '&',
                    b"apos" => '\'',
                    b"quot" => '"',
                    _ => reference.resolve_char_ref().ok()??,
                };
                inside.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Event::End(_) => {
                let name = open.pop()?;
                let text = String::from_utf8_lossy(inside.trim_ascii());
                let parent = open.last().map_or(&b""[..], |name| name);
                match &mut object {
                    Some((_, depth)) if open.len() == *depth => {
                        file.objects.extend(object.take().map(|(object, _)| object));
                    }
                    Some((object, depth)) => {
                        object.set(&name, parent, open.len() - *depth, &text);
                    }
                    None if parent == b"size" => {
                        let side = text.parse::<f64>().ok().filter(|n| n.fract() == 0.0);
                        let side = side.filter(|n| (1.0..=f64::from(u32::MAX)).contains(n));
                        match &*name {
                            b"height" => file.height = side.map(|n| n as u32),
                            b"width" => file.width = side.map(|n| n as u32),
                            _ => {}
                        }
                    }
                    None => {}
                }
                inside.clear();
            }
            Event::DocType(_) => return None,
            Event::Eof => return (open.is_empty() && has_root).then_some(file),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

impl VocObject {
    /// Sets what the element `name` states, `depth` elements below the object's.
    fn set(&mut self, name: &[u8], parent: &[u8], depth: usize, text: &str) {
        match (depth, name) {
            (1, b"name") if !text.is_empty() => self.name = Some(text.to_owned()),
            (1, b"difficult") => self.difficult = !matches!(text, "" | "0"),
            (2, name) if parent == b"bndbox" => {
                let side = SIDES.iter().position(|side| *side == name);
                if let Some(side) = side {
                    self.sides[side] = text.parse().ok();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::FolderOptions;

    fn object(inside: &str) -> String {
        format!(
            "<object><name>dog</name>{inside}<bndbox><xmin>1</xmin><ymin>2.5</ymin>\
             <xmax>30</xmax><ymax>4e1</ymax></bndbox></object>"
        )
    }

    fn file(objects: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<annotation><filename>a</filename><size><width>60</width>\
             <height>40</height></size>{objects}</annotation>\n"
        )
    }

    fn faults(text: &str) -> (usize, Vec<AnnotationFault>) {
        let labels = HashMap::from([("dog", 0), ("A & B", 1)]);
        let options = AnnotationOptions::default();
        let read = objects_of(text.as_bytes(), &labels, &options).unwrap();
        let faults = read.faults.iter().map(|of| of.fault).collect();
        (read.sample.objects.len(), faults)
    }

    #[test]
    fn boxes_names_and_difficult_objects() {
        let part = "<part><name>head</name><bndbox><xmin>7</xmin><ymin>7</ymin><xmax>8</xmax>\
                    <ymax>8</ymax></bndbox></part><difficult>1</difficult><truncated>0</truncated>";
        let text = file(&[object(part), object("").replace("dog", " A &amp; B\n")].concat());
        let read = read_file(text.as_bytes()).unwrap();
        assert_eq!((read.height, read.width), (Some(40), Some(60)));
        let names: Vec<Option<&str>> = read.objects.iter().map(|of| of.name.as_deref()).collect();
        assert_eq!(names, [Some("dog"), Some("A & B")]);
        assert!(read.objects[0].difficult && !read.objects[1].difficult);
        for of in &read.objects {
            assert_eq!(of.sides, [Some(1.0), Some(2.5), Some(30.0), Some(40.0)]);
        }
        // Several roots, and a name whose & is no reference.
        let two = [text.replace("&amp;", "&"), file(&object("")).split_off(22)].concat();
        assert_eq!(faults(&two), (3, vec![]));
    }

    #[test]
    fn wrong_objects_and_damaged_files() {
        let good = object("");
        for (wrong, fault) in [
            (
                good.replace("<name>dog</name>", ""),
                AnnotationFault::Damaged,
            ),
            (good.replace("dog", "cat"), AnnotationFault::UnknownCategory),
            (
                good.replace("<xmin>1</xmin>", ""),
                AnnotationFault::MissingBox,
            ),
            (
                good.replace("<xmin>1</xmin>", "<xmin>a</xmin>"),
                AnnotationFault::MissingBox,
            ),
            (
                good.replace("<xmin>1</xmin>", "<xmin>nan</xmin>"),
                AnnotationFault::NotFinite,
            ),
            (
                good.replace("<xmin>1</xmin>", "<xmin>30</xmin>"),
                AnnotationFault::EmptyBox,
            ),
            (
                good.replace("<xmin>1</xmin>", "<xmin>-5</xmin>"),
                AnnotationFault::PartlyOutside,
            ),
        ] {
            let kept = 1 + usize::from(fault.is_kept());
            let text = file(&format!("{good}{wrong}"));
            assert_eq!(faults(&text), (kept, vec![fault]), "{wrong}");
        }
        let whole = file(&good);
        let bomb = whole.replace(
            "<annotation>",
            "<!DOCTYPE a [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><annotation>",
        );
        let deep = "<a>".repeat(100_000);
        let reference = whole.replace("dog", "&unknown;");
        for text in [
            &*bomb,
            &deep,
            &reference,
            "<annotation>",
            "<a></b>",
            "</a>",
            "",
            "dog 1 2 3 4",
        ] {
            assert_eq!(
                faults(text),
                (0, vec![AnnotationFault::Damaged]),
                "{text:.40}"
            );
        }
        for end in 0..whole.len() {
            faults(&whole[..end]);
        }
        assert_eq!(faults("<annotation></annotation>"), (0, vec![]));
        let many = file(&object("").repeat(MOST_OBJECTS + 1));
        let e = objects_of(
            many.as_bytes(),
            &HashMap::new(),
            &AnnotationOptions::default(),
        );
        assert_eq!(e, Err("has more than 65536 objects".to_owned()));
    }

    #[test]
    fn names_are_sorted_over_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        for name in ["images", "xml"] {
            std::fs::create_dir(path.join(name)).unwrap();
        }
        for (n, name) in ["zebra", "dog", "ant"].iter().enumerate() {
            std::fs::write(path.join(format!("images/{n}.jpg")), "").unwrap();
            let text = file(&object("").replace("dog", name));
            std::fs::write(path.join(format!("xml/{n}.xml")), text).unwrap();
        }
        std::fs::write(path.join("images/9.jpg"), "").unwrap();
        let index = Index::folder(&path.join("images"), &FolderOptions::default())
            .unwrap()
            .0;
        let pattern = PathPattern::parse("../xml/{stem}.xml").unwrap();
        let options = AnnotationOptions::default();
        let (table, report) = read_voc(&index, &pattern, None, &options).unwrap();
        let labels: Vec<u32> = (0..3).map(|id| table.sample(id).labels[0]).collect();
        assert_eq!(labels, [2, 1, 0]);
        assert_eq!((table.count(3), report.images_without_entry), (0, 1));
        assert_eq!(table.stated_size(0), Some((40, 60)));
        let names = ["dog".to_owned(), "ant".to_owned()];
        let (table, report) = read_voc(&index, &pattern, Some(&names), &options).unwrap();
        assert_eq!((table.objects(), table.sample(1).labels), (2, &[0][..]));
        assert_eq!(report.count(AnnotationFault::UnknownCategory), 1);
    }
}
