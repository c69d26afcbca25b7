//! `data.yaml` of YOLO: names, keypoints, and where the images are.

use std::path::{Path, PathBuf};

use super::super::keypoint_swap::MOST_KEYPOINTS;
use super::yaml_tree::{self, YamlValue};
use crate::data::index::{FolderLabels, FolderOptions, Index, ItemLabel, ItemList, shown};
use crate::error::{Error, Result};
use crate::sys::{regular_file, text_file};

/// What rows of label files have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct YoloForm {
    /// None: categories are numbers, as many as the label files have.
    pub(crate) names: Option<Vec<String>>,
    /// Keypoints of a row, and numbers of each: 2 or 3.
    pub(crate) keypoints: Option<(usize, usize)>,
    pub(crate) keypoint_names: Vec<String>,
    /// For each keypoint the one that takes its place in a mirrored picture.
    pub(crate) keypoint_swap: Vec<usize>,
}

/// A `data.yaml`.
#[derive(Debug)]
pub(super) struct DataYaml {
    file: PathBuf,
    tree: YamlValue,
    pub(super) form: YoloForm,
}

/// Bytes of the longest `data.yaml`.
const MOST_BYTES: u64 = 8 << 20;
/// Bytes of the longest list of images.
const MOST_LIST_BYTES: u64 = 1 << 30;

impl DataYaml {
    pub(super) fn open(file: &Path) -> Result<Self> {
        let text = read_text(file, MOST_BYTES)?;
        let tree =
            yaml_tree::read(&text).map_err(|e| Error::dataset_line(file, e.line as u64, e.what))?;
        let bad = |what: &str| Error::dataset(file, what.to_owned());
        let names = tree.get("names").ok_or_else(|| {
            bad("has no 'names': write the names of categories, in the order of their numbers")
        })?;
        let names = names_of(names).ok_or_else(|| {
            bad("'names' is no list of names, and no map from 0, 1, 2 and so on to names")
        })?;
        let mut form = YoloForm {
            names: Some(names),
            ..YoloForm::default()
        };
        if let Some(shape) = tree.get("kpt_shape") {
            let shape = whole_numbers(shape);
            form.keypoints = match shape.as_deref() {
                Some([count @ 1..=MOST_KEYPOINTS, per @ (2 | 3)]) => Some((*count, *per)),
                _ => {
                    return Err(bad(
                        "'kpt_shape' must be [N, 2] or [N, 3], for N keypoints from 1 to 1000",
                    ));
                }
            };
        }
        let count = form.keypoints.map_or(0, |(count, _)| count);
        if let Some(swap) = tree.get("flip_idx").filter(|_| count > 0) {
            let swap = whole_numbers(swap).unwrap_or_default();
            let is_mutual = swap
                .iter()
                .enumerate()
                .all(|(at, to)| swap.get(*to) == Some(&at));
            if swap.len() != count || !is_mutual {
                return Err(bad(
                    "'flip_idx' must name for each keypoint the one that takes its place in a \
                     mirror",
                ));
            }
            form.keypoint_swap = swap;
        }
        // Of each category: a map of lists. One place has one name in all of them.
        if let Some(YamlValue::Map(lists)) = tree.get("kpt_names").filter(|_| count > 0) {
            let first = lists.first().and_then(|(_, names)| names_of(names));
            let is_same = lists.windows(2).all(|pair| pair[0].1 == pair[1].1);
            let names = first.filter(|names| is_same && names.len() == count);
            form.keypoint_names = names.unwrap_or_default();
        }
        Ok(Self {
            file: file.to_owned(),
            tree,
            form,
        })
    }

    /// The images of a split: `train`, `val` or `test`.
    ///
    /// # Errors
    /// The split is not named, or its images do not exist.
    pub(super) fn images(&self, split: &str) -> Result<Index> {
        let bad = |what: String| Error::dataset(&self.file, what);
        let entries = match self.tree.get(split) {
            Some(YamlValue::Text(entry)) if !entry.is_empty() => vec![entry.as_str()],
            Some(YamlValue::List(entries)) => {
                let texts: Option<Vec<&str>> = entries.iter().map(YamlValue::text).collect();
                texts.ok_or_else(|| bad(format!("'{split}' has an entry that is no path")))?
            }
            _ => {
                return Err(bad(format!(
                    "has no '{split}': name a folder or a list of images"
                )));
            }
        };
        let mut list = ItemList::new();
        for entry in entries {
            let path = self.find(entry)?;
            if path.is_dir() {
                let options = FolderOptions {
                    labels: FolderLabels::None,
                    ..FolderOptions::default()
                };
                let (found, _) = Index::folder(&path, &options)?;
                for id in 0..found.len() {
                    list.push(found.path(id), ItemLabel::None)?;
                }
                continue;
            }
            let folder = path.parent().unwrap_or(Path::new("/"));
            let text = read_text(&path, MOST_LIST_BYTES)?;
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                let line = line.strip_prefix("./").unwrap_or(line);
                list.push(folder.join(line), ItemLabel::None)?;
            }
        }
        if list.is_empty() {
            return Err(bad(format!("'{split}' names no image")));
        }
        Index::items(list)
    }

    /// The folder or list that an entry names.
    fn find(&self, entry: &str) -> Result<PathBuf> {
        let file = std::path::absolute(&self.file);
        let file = file.map_err(|e| Error::io_at("find", &self.file, e))?;
        let beside = file.parent().unwrap_or(Path::new("/")).to_owned();
        let mut folders = Vec::new();
        if let Some(YamlValue::Text(root)) = self.tree.get("path") {
            folders.push(beside.join(root));
        }
        folders.push(beside);
        // Roboflow's files lie one folder higher than their entries say.
        let entries = [Some(entry), entry.strip_prefix("../")];
        let places = folders
            .iter()
            .flat_map(|folder| entries.iter().flatten().map(|entry| folder.join(entry)));
        let places: Vec<PathBuf> = places.collect();
        let found = places.iter().find(|path| path.exists());
        found.cloned().ok_or_else(|| {
            let looked = shown(places[0].as_os_str().as_encoded_bytes());
            let what = format!("names '{entry}', but {looked} does not exist: correct 'path'");
            Error::dataset(&self.file, what)
        })
    }
}

fn read_text(file: &Path, most: u64) -> Result<String> {
    let opened = regular_file::open(file).map_err(|e| Error::io_at("open", file, e))?;
    let text = text_file::read(opened.0, most).map_err(|e| Error::dataset(file, e.to_string()))?;
    String::from_utf8(text).map_err(|_| Error::dataset(file, "is not UTF-8: save it as UTF-8"))
}

/// A list of names, or a map from all numbers from 0 on to names.
fn names_of(value: &YamlValue) -> Option<Vec<String>> {
    let text = |value: &YamlValue| match value {
        YamlValue::Text(text) => Some(text.clone()),
        _ => None,
    };
    match value {
        YamlValue::List(names) => names.iter().map(text).collect(),
        YamlValue::Map(entries) => {
            let number = |(key, name): &(String, YamlValue)| Some((key.parse().ok()?, text(name)?));
            let mut names: Vec<(usize, String)> =
                entries.iter().map(number).collect::<Option<_>>()?;
            names.sort();
            let is_whole = names.iter().enumerate().all(|(at, (key, _))| at == *key);
            is_whole.then(|| names.into_iter().map(|(_, name)| name).collect())
        }
        YamlValue::Text(_) => None,
    }
}

fn whole_numbers(value: &YamlValue) -> Option<Vec<usize>> {
    let YamlValue::List(list) = value else {
        return None;
    };
    let number = |value: &YamlValue| match value {
        YamlValue::Text(text) => text.parse().ok(),
        _ => None,
    };
    list.iter().map(number).collect()
}
