//! Pictures and categories of a COCO file.

use std::borrow::Cow;

use super::super::json_value::{self, ValueFault};
use super::super::keypoint_swap::{MOST_KEYPOINTS, keypoint_swap};
use crate::data::objects::{ObjectCategory, ObjectForm};

/// The entry of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PictureEntry {
    pub(super) id: i64,
    /// Height and width.
    pub(super) size: Option<(u32, u32)>,
    /// The path of its file below the folder of the images.
    pub(super) name: String,
}

/// Why an entry of a picture cannot be used.
#[derive(Debug, PartialEq)]
pub(super) enum PictureFault {
    Structure(ValueFault),
    /// Its id is this text.
    TextId(String),
    /// No number as id, or no name of a file.
    Incomplete,
}

impl PictureEntry {
    pub(super) fn read(entry: &[u8]) -> Result<Self, PictureFault> {
        let (mut id, mut text_id, mut name, mut url) = (None, None, None, None);
        let (mut height, mut width) = (None, None);
        let side = |value| {
            u32::try_from(json_value::integer(value)?)
                .ok()
                .filter(|n| *n > 0)
        };
        let read = json_value::members(entry, |key, value| match &*key {
            b"id" => (id, text_id) = (json_value::integer(value), json_value::text(value)),
            b"file_name" => name = json_value::text(value),
            b"coco_url" => url = json_value::text(value),
            b"height" => height = side(value),
            b"width" => width = side(value),
            _ => {}
        });
        read.map_err(PictureFault::Structure)?;
        if let Some(text) = text_id {
            return Err(PictureFault::TextId(text));
        }
        // LVIS has the address only: folder and file of COCO.
        let name = name.or_else(|| {
            let url = url?;
            let (before, file) = url.rsplit_once('/')?;
            let folder = before.rsplit('/').next()?;
            Some(format!("{folder}/{file}"))
        });
        let is_path =
            |name: &String| !name.is_empty() && !name.ends_with('/') && !name.contains('\0');
        match (id, name.filter(is_path)) {
            (Some(id), Some(name)) => Ok(Self {
                id,
                size: height.zip(width),
                name,
            }),
            _ => Err(PictureFault::Incomplete),
        }
    }
}

/// A category, with its keypoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CategoryEntry {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) keypoints: Vec<String>,
    /// Pairs of keypoints, from 0.
    pub(super) skeleton: Vec<[usize; 2]>,
}

impl CategoryEntry {
    /// None if it has no number as id.
    pub(super) fn read(entry: &[u8]) -> Result<Option<Self>, ValueFault> {
        let (mut id, mut name) = (None, None);
        let (mut keypoints, mut skeleton) = (Vec::new(), Vec::new());
        json_value::members(entry, |key, value| match &*key {
            b"id" => id = json_value::integer(value),
            b"name" => name = json_value::text(value),
            b"keypoints" => keypoints = texts(value).unwrap_or_default(),
            b"skeleton" => skeleton = pairs(value).unwrap_or_default(),
            _ => {}
        })?;
        let Some(id) = id else {
            return Ok(None);
        };
        // COCO counts from 1, and some tools from 0.
        let first = usize::from(!skeleton.iter().flatten().any(|n| *n == 0));
        let mut skeleton: Vec<[usize; 2]> = (skeleton.iter())
            .map(|pair| pair.map(|n: usize| n.saturating_sub(first)))
            .collect();
        if skeleton.iter().flatten().any(|n| *n >= keypoints.len()) {
            skeleton.clear();
        }
        Ok(Some(Self {
            id,
            name: name.unwrap_or_else(|| id.to_string()),
            keypoints,
            skeleton,
        }))
    }
}

fn texts(list: &[u8]) -> Option<Vec<String>> {
    let mut found = Some(Vec::new());
    let read = json_value::elements(list, |value| match json_value::text(value) {
        Some(text) => found.iter_mut().for_each(|texts| texts.push(text.clone())),
        None => found = None,
    });
    read.ok().and(found)
}

fn pairs(list: &[u8]) -> Option<Vec<[usize; 2]>> {
    let mut found = Some(Vec::new());
    let read = json_value::elements(list, |value| {
        let mut pair = Vec::new();
        json_value::numbers(value, &mut pair);
        match pair[..] {
            [a, b] if a >= 0.0 && b >= 0.0 => {
                let pair = [a as usize, b as usize];
                found.iter_mut().for_each(|pairs| pairs.push(pair));
            }
            _ => found = None,
        }
    });
    read.ok().and(found)
}

/// The form of all objects. Categories are sorted by id.
///
/// # Errors
/// Two categories have one id; their keypoints differ.
pub(super) fn form(
    categories: &mut Vec<CategoryEntry>,
    shapes: bool,
    keypoints: bool,
) -> Result<ObjectForm, Cow<'static, str>> {
    categories.sort_by_key(|of| of.id);
    categories.dedup();
    if let Some(pair) = categories.windows(2).find(|pair| pair[0].id == pair[1].id) {
        let [first, second] = [&pair[0], &pair[1]].map(|of| shown(&of.name));
        let id = pair[0].id;
        return Err(format!(
            "categories '{first}' and '{second}' have the id {id}: give each its own"
        )
        .into());
    }
    let mut form = ObjectForm {
        boxes: crate::data::objects::BoxForm::Xywh,
        area: true,
        shapes,
        categories: (categories.iter())
            .map(|of| ObjectCategory {
                id: of.id,
                name: of.name.clone(),
            })
            .collect(),
        ..ObjectForm::default()
    };
    let longest = categories.iter().rev().max_by_key(|of| of.keypoints.len());
    let Some(longest) = longest.filter(|of| keypoints && !of.keypoints.is_empty()) else {
        return Ok(form);
    };
    if longest.keypoints.len() > MOST_KEYPOINTS {
        return Err(format!(
            "category '{}' has {} keypoints, but the limit is {MOST_KEYPOINTS}: read it without \
             keypoints",
            shown(&longest.name),
            longest.keypoints.len()
        )
        .into());
    }
    // A mirror swaps keypoints by one table, so a place must mean the same in all categories.
    let differs = |of: &&CategoryEntry| !longest.keypoints.starts_with(&of.keypoints);
    if let Some(other) = categories.iter().find(differs) {
        return Err(format!(
            "categories '{}' and '{}' have different keypoints: keep one of them in a file, or \
             read it without keypoints",
            shown(&longest.name),
            shown(&other.name)
        )
        .into());
    }
    form.keypoints = longest.keypoints.len();
    form.keypoint_names.clone_from(&longest.keypoints);
    form.keypoint_swap = keypoint_swap(&longest.keypoints);
    form.skeleton.clone_from(&longest.skeleton);
    Ok(form)
}

fn shown(name: &str) -> String {
    crate::data::index::shown(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_pictures() {
        let of = |text: &str| PictureEntry::read(text.as_bytes());
        let entry = |id, size, name: &str| {
            Ok(PictureEntry {
                id,
                size,
                name: name.into(),
            })
        };
        assert_eq!(
            of(r#"{"width": 640, "id": 7, "height": 480, "file_name": "a/b.jpg"}"#),
            entry(7, Some((480, 640)), "a/b.jpg")
        );
        let lvis = r#"{"id": 7, "coco_url": "http://images.cocodataset.org/val2017/1.jpg",
            "neg_category_ids": [3], "width": -1, "height": 2}"#;
        assert_eq!(of(lvis), entry(7, None, "val2017/1.jpg"));
        let text_id = of(r#"{"id": "x7", "file_name": "b.jpg"}"#);
        assert_eq!(text_id, Err(PictureFault::TextId("x7".into())));
        for text in [
            r#"{"file_name": "b.jpg"}"#,
            r#"{"id": 1}"#,
            r#"{"id": 1, "file_name": ""}"#,
            r#"{"id": 1, "file_name": "a/"}"#,
            r#"{"id": 1, "file_name": "a\u0000"}"#,
            r#"{"id": 1.5, "file_name": "a"}"#,
        ] {
            assert_eq!(of(text), Err(PictureFault::Incomplete), "{text}");
        }
    }

    #[test]
    fn keypoints_of_several_categories() {
        let category = |id: i64, names: &[&str]| CategoryEntry {
            id,
            name: format!("c{id}"),
            keypoints: names.iter().map(|name| (*name).to_owned()).collect(),
            skeleton: Vec::new(),
        };
        let names = ["nose", "left_eye", "right_eye"];
        let mut all = vec![
            category(9, &names),
            category(2, &names[..1]),
            category(5, &[]),
        ];
        let made = form(&mut all, false, true).unwrap();
        assert_eq!(
            made.categories.iter().map(|of| of.id).collect::<Vec<_>>(),
            [2, 5, 9]
        );
        assert_eq!(
            (made.keypoints, &made.keypoint_swap[..]),
            (3, &[0, 2, 1][..])
        );
        assert_eq!(form(&mut all, false, false).unwrap().keypoints, 0);
        all.push(category(3, &["left_eye"]));
        let e = form(&mut all, false, true).unwrap_err();
        assert!(
            e.starts_with("categories 'c9' and 'c3' have different keypoints"),
            "{e}"
        );
        let mut many = vec![category(1, &["a"; 1001])];
        let e = form(&mut many, false, true).unwrap_err();
        assert!(
            e.contains("has 1001 keypoints, but the limit is 1000"),
            "{e}"
        );
        assert!(form(&mut many, false, false).is_ok());
        let mut same = vec![
            category(1, &[]),
            CategoryEntry {
                name: "x".into(),
                ..category(1, &[])
            },
        ];
        let e = form(&mut same, false, false).unwrap_err();
        assert!(
            e.starts_with("categories 'c1' and 'x' have the id 1"),
            "{e}"
        );
    }

    #[test]
    fn skeletons_count_from_one_or_from_zero() {
        let of = |skeleton: &str| {
            let text = format!(
                r#"{{"id": 1, "name": "a", "keypoints": ["a", "b"], "skeleton": {skeleton}}}"#
            );
            CategoryEntry::read(text.as_bytes())
                .unwrap()
                .unwrap()
                .skeleton
        };
        assert_eq!(of("[[1, 2]]"), [[0, 1]]);
        assert_eq!(of("[[0, 1]]"), [[0, 1]]);
        assert!(of("[[1, 3]]").is_empty());
        assert!(of("[[1, 2, 3]]").is_empty());
        assert!(of("7").is_empty());
    }
}
