//! The `dataset` of a config: the list, its format, and how images are opened. Reads no list and
//! does not access the file system.

use std::path::PathBuf;

use crate::configs::paddle::cifar;
use crate::configs::paddle::dataset_config::{DatasetConfig, ImageOpener, LabelKey};
use crate::configs::paddle::note::NoteList;
use crate::configs::paddle::params::{ConfigParams, ConfigResult};
use crate::data::index::{CifarClasses, ListDelimiter, ListLabels, ListOptions};
use crate::recipe::file::{TextMistake, TreeNode, advice};

const SUPPORTED: [&str; 11] = [
    "ImageNetDataset",
    "MultiLabelDataset",
    "MultiScaleDataset",
    "VeriWild",
    "CompCars",
    "ICartoonDataset",
    "Market1501",
    "CustomLabelDataset",
    "AdaFaceDataset",
    "Cifar10",
    "Cifar100",
];

/// Operations that put channels first.
const TRANSPOSE: [&str; 2] = ["ToCHWImage", "ToTensor"];

pub(crate) fn read<'a>(
    node: &'a TreeNode,
    notes: &mut NoteList,
) -> ConfigResult<DatasetConfig<'a>> {
    let mut params = ConfigParams::of("dataset", node.at, node)?;
    let name = params.text("name")?.unwrap_or("ImageNetDataset");
    if !SUPPORTED.contains(&name) {
        let advice = advice(name, &SUPPORTED);
        return Err(params.mistake_at("name", format_args!("'{name}' is not supported: {advice}")));
    }
    let classes = match name {
        "Cifar10" => Some(CifarClasses::Ten),
        "Cifar100" => Some(CifarClasses::Hundred),
        _ => None,
    };
    if let Some(classes) = classes {
        let dataset = cifar::read(&mut params, classes, notes)?;
        transposes_once(name, dataset.transform_ops)?;
        params.reject_unread()?;
        return Ok(dataset);
    }
    let names = names(name);
    let transform_ops = match params.node(names.ops) {
        Some(list) => list,
        None => {
            return Err(params.mistake_at(names.ops, format_args!("'{}' is missing", names.ops)));
        }
    };
    let batch_transform_ops = params.node("batch_transform_ops");
    let lists = names.list;
    let list = params.text(lists)?.map(PathBuf::from);
    let root = params.text(names.root)?.map(PathBuf::from);
    let delimiter = delimiter(&mut params)?;
    let backend = params.text("backend")?;
    let relabel = params.flag("relabel", false)?;
    match (relabel, name) {
        (true, "ImageNetDataset") => notes.at(
            params.position_of("relabel"),
            "relabel: labels are numbered in ascending order. PaddleClas uses the order of \
             Python's sets, which differs for some negative or distant labels",
        ),
        (true, _) => {
            return Err(params.mistake_at(
                "relabel",
                format_args!(
                    "relabel is true, and {name} does not take it: use ImageNetDataset, \
                              or remove it"
                ),
            ));
        }
        (false, _) => {}
    }
    let mut dataset = DatasetConfig {
        opener: ImageOpener::Undecoded,
        multi_scale: name == "MultiScaleDataset",
        label_key: None,
        list,
        cifar: None,
        options: ListOptions {
            delimiter,
            root,
            allow_outside: false,
            // Further columns are ignored.
            labels: ListLabels::Second,
            relabel,
            boxes: None,
        },
        transform_ops,
        batch_transform_ops,
    };
    special(name, backend, &mut dataset, &mut params, notes)?;
    if transposes(name, backend) {
        transposes_once(name, transform_ops)?;
    }
    if dataset.list.is_none() && name != "Market1501" {
        return Err(params.mistake_at(lists, format_args!("'{lists}' is missing: name the list")));
    }
    params.reject_unread()?;
    Ok(dataset)
}

/// Whether PaddleClas' data set transposes its images after all operations.
fn transposes(name: &str, backend: Option<&str>) -> bool {
    match name {
        "AdaFaceDataset" => false,
        "CompCars" | "MultiScaleDataset" => true,
        _ => backend.is_none_or(|backend| backend == "cv2"),
    }
}

/// Rejects an operation that transposes, for a data set that always transposes.
fn transposes_once(dataset: &str, transform_ops: &TreeNode) -> ConfigResult<()> {
    for item in transform_ops.items() {
        if let Some(name) = TRANSPOSE.iter().find(|name| item.get(name).is_some()) {
            return Err(item.at.mistake(format!(
                "{name} transposes, and PaddleClas' {dataset} transposes once more, to width \
                     x 3 x height: remove it"
            )));
        }
    }
    Ok(())
}

/// Settings that only one kind of data set has.
fn special<'a>(
    name: &str,
    backend: Option<&str>,
    dataset: &mut DatasetConfig<'a>,
    params: &mut ConfigParams<'a>,
    notes: &mut NoteList,
) -> ConfigResult<()> {
    // PaddleClas compares with cv2, which is also its default.
    let is_pillow = backend.is_some_and(|backend| backend != "cv2");
    match name {
        "MultiLabelDataset" => {
            dataset.options.delimiter = ListDelimiter::Byte(b'\t');
            dataset.options.labels = ListLabels::Vector;
            if params.flag("label_ratio", false)? {
                notes.general(
                    "label_ratio: PaddleClas adds the mean of all labels to each label. It is \
                     one vector for the data set, and batches do not repeat it",
                );
            }
        }
        "ICartoonDataset" => dataset.options.delimiter = ListDelimiter::Byte(b'\t'),
        "VeriWild" => {
            dataset.options.labels = ListLabels::Second;
            if is_pillow {
                dataset.opener = ImageOpener::Pillow { is_picture: true };
            }
            notes.general("VeriWild: lines are `path id [camera]`. Batches have no cameras");
        }
        "CompCars" => {
            dataset.opener = ImageOpener::Array;
            if params.flag("bbox_crop", false)? {
                let folder = params.text("label_root")?.map(PathBuf::from);
                if folder.is_none() {
                    return Err(params.mistake_at(
                        "bbox_crop",
                        "bbox_crop is true, and 'label_root' is missing: name the folder of the \
                         box files",
                    ));
                }
                dataset.options.boxes = folder;
                notes.at(
                    params.position_of("bbox_crop"),
                    "bbox_crop: only a list has boxes of the config. A cache or a saved index \
                     has its own, and tar shards have none",
                );
            }
            params.ignore(&["label_root"]);
        }
        "Market1501" => {
            dataset.opener = ImageOpener::Pillow {
                is_picture: is_pillow,
            };
            // A folder, not a list.
            dataset.list = None;
            dataset.options.labels = ListLabels::Auto;
            notes.general(
                "Market1501 has no list, since identities are in file names: give a list of its \
                 images as the source (`list`)",
            );
        }
        "CustomLabelDataset" => {
            // A line is a path, with its blanks.
            dataset.options.labels = ListLabels::None;
            if params.node("delimiter").is_some() {
                return Err(params.mistake_at(
                    "delimiter",
                    "delimiter cuts off the text after a path, which is not supported here: write \
                     a list of paths alone",
                ));
            }
            if let Some(node) = params.node("label_key") {
                let key = params.text("label_key")?;
                dataset.label_key = key.map(|name| LabelKey { name, at: node.at });
            }
        }
        "AdaFaceDataset" => dataset.opener = ImageOpener::Pillow { is_picture: true },
        _ if is_pillow => {
            dataset.opener = ImageOpener::Pillow { is_picture: true };
        }
        _ => {}
    }
    Ok(())
}

/// The names of the keys in a data set.
struct DatasetKeys {
    list: &'static str,
    root: &'static str,
    ops: &'static str,
}

fn names(dataset: &str) -> DatasetKeys {
    let usual = DatasetKeys {
        list: "cls_label_path",
        root: "image_root",
        ops: "transform_ops",
    };
    match dataset {
        "CustomLabelDataset" => DatasetKeys {
            list: "sample_list_path",
            ..usual
        },
        "AdaFaceDataset" => DatasetKeys {
            list: "label_path",
            root: "root_dir",
            ops: "transform",
        },
        _ => usual,
    }
}

fn delimiter(params: &mut ConfigParams<'_>) -> ConfigResult<ListDelimiter> {
    Ok(match params.text("delimiter")?.map(str::as_bytes) {
        None | Some(b" ") => ListDelimiter::Blanks,
        Some(&[byte]) if !matches!(byte, b'\n' | b'\r' | b'"' | 0) => ListDelimiter::Byte(byte),
        Some(_) => return Err(not_one_byte(params)),
    })
}

fn not_one_byte(params: &ConfigParams<'_>) -> TextMistake {
    params.mistake_at("delimiter", "delimiter must be one byte, such as \"\\t\"")
}
