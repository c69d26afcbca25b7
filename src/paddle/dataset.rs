//! A `dataset` of a config: which list of which form, and how its pictures are
//! opened. Reads no list and asks the file system nothing.

use std::path::PathBuf;

use super::note::Notes;
use super::ops::Opened;
use super::params::{Params, Read};
use crate::index::{Delimiter, ListLabels, ListOptions};
use crate::recipe::file::{Mistake, Node, advice};

/// What follows from a `dataset`.
pub(super) struct Dataset<'a> {
    pub(super) opened: Opened,
    pub(super) multi_scale: bool,
    /// None: the form has no list.
    pub(super) list: Option<PathBuf>,
    pub(super) options: ListOptions,
    pub(super) transform_ops: &'a Node,
    pub(super) batch_transform_ops: Option<&'a Node>,
}

const SERVED: [&str; 7] = [
    "ImageNetDataset",
    "MultiLabelDataset",
    "MultiScaleDataset",
    "VeriWild",
    "CompCars",
    "ICartoonDataset",
    "Market1501",
];

pub(super) fn read<'a>(node: &'a Node, notes: &mut Notes) -> Read<Dataset<'a>> {
    let mut params = Params::of("dataset", node.at, node)?;
    let name = params.text("name")?.unwrap_or("ImageNetDataset");
    if name.starts_with("Cifar") {
        return Err(params.wrong(
            "name",
            format_args!(
                "{name} reads pickles out of an archive, which is not served: write its pictures \
                 to files, and a list of them for ImageNetDataset"
            ),
        ));
    }
    if name == "CustomLabelDataset" {
        return Err(params.wrong(
            "name",
            "CustomLabelDataset has what an operation drew as labels, which is not served",
        ));
    }
    if !SERVED.contains(&name) {
        let advice = advice(name, &SERVED);
        return Err(params.wrong("name", format_args!("'{name}' is not served: {advice}")));
    }
    let transform_ops = match params.node("transform_ops") {
        Some(list) => list,
        None => return Err(params.wrong("transform_ops", "'transform_ops' is missing")),
    };
    let batch_transform_ops = params.node("batch_transform_ops");
    let list = params.text("cls_label_path")?.map(PathBuf::from);
    let root = params.text("image_root")?.map(PathBuf::from);
    let delimiter = delimiter(&mut params)?;
    let backend = params.text("backend")?;
    let relabel = params.flag("relabel", false)?;
    match (relabel, name) {
        (true, "ImageNetDataset") => notes.at(
            params.at_of("relabel"),
            "relabel: labels are numbered in ascending order, where PaddleClas goes by the order \
             of Python's sets, which is another for some that are negative or far apart",
        ),
        (true, _) => {
            return Err(params.wrong(
                "relabel",
                format_args!("relabel is true, which is for ImageNetDataset, not for {name}"),
            ));
        }
        (false, _) => {}
    }
    let mut dataset = Dataset {
        opened: Opened::No,
        multi_scale: name == "MultiScaleDataset",
        list,
        options: ListOptions {
            delimiter,
            root,
            allow_outside: false,
            // What stands behind it is ignored.
            labels: ListLabels::Second,
            relabel,
        },
        transform_ops,
        batch_transform_ops,
    };
    special(name, backend, &mut dataset, &mut params, notes)?;
    if dataset.list.is_none() && name != "Market1501" {
        return Err(params.wrong("cls_label_path", "'cls_label_path' is missing: the list"));
    }
    params.done()?;
    Ok(dataset)
}

/// What one kind of data set has for itself.
fn special(
    name: &str,
    backend: Option<&str>,
    dataset: &mut Dataset<'_>,
    params: &mut Params<'_>,
    notes: &mut Notes,
) -> Read<()> {
    let is_pillow = backend.is_some_and(|b| b.eq_ignore_ascii_case("pil"));
    match name {
        "MultiLabelDataset" => {
            dataset.options.delimiter = Delimiter::Byte(b'\t');
            dataset.options.labels = ListLabels::Vector;
            if params.flag("label_ratio", false)? {
                notes.general(
                    "label_ratio: PaddleClas hands the mean of all labels out beside each label; \
                     it is one vector for the data set, which batches do not repeat",
                );
            }
        }
        "ICartoonDataset" => dataset.options.delimiter = Delimiter::Byte(b'\t'),
        "VeriWild" => {
            dataset.options.labels = ListLabels::Second;
            notes
                .general("VeriWild: lines are `path id [camera]`; cameras are left out of batches");
        }
        "CompCars" => {
            dataset.opened = Opened::Array;
            params.ignore(&["label_root"]);
            if params.flag("bbox_crop", false)? {
                return Err(params.wrong(
                    "bbox_crop",
                    "bbox_crop is true, and boxes out of files beside the pictures are not \
                     served: cut the pictures before",
                ));
            }
        }
        "Market1501" => {
            dataset.opened = Opened::Pillow {
                is_picture: is_pillow,
            };
            // A folder, not a list.
            dataset.list = None;
            dataset.options.labels = ListLabels::Auto;
            notes.general(
                "Market1501 has no list: identities stand in file names; give a list of its \
                 pictures as SRC or --list",
            );
        }
        _ if is_pillow => {
            dataset.opened = Opened::Pillow { is_picture: true };
        }
        _ => {}
    }
    Ok(())
}

fn delimiter(params: &mut Params<'_>) -> Read<Delimiter> {
    Ok(match params.text("delimiter")?.map(str::as_bytes) {
        None | Some(b" ") => Delimiter::Blanks,
        Some(&[byte]) if !matches!(byte, b'\n' | b'\r' | b'"' | 0) => Delimiter::Byte(byte),
        Some(_) => return Err(not_one_byte(params)),
    })
}

fn not_one_byte(params: &Params<'_>) -> Mistake {
    params.wrong("delimiter", "delimiter must be one byte, such as \"\\t\"")
}
