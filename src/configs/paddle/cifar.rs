//! A data set of CIFAR batches: which samples of which archive.
//!
//! Reads no batch and does not access the file system.

use std::path::PathBuf;

use super::dataset_config::{DatasetConfig, ImageOpener};
use super::note::NoteList;
use super::params::{ConfigParams, ConfigResult};
use crate::data::index::{CifarClasses, CifarOptions, ListLabels, ListOptions};

/// Lists of operations that produce several images per sample.
const SEVERAL: [&str; 3] = [
    "transform_ops_weak",
    "transform_ops_strong",
    "transform_ops_strong2",
];

pub(crate) fn read<'a>(
    params: &mut ConfigParams<'a>,
    classes: CifarClasses,
    notes: &mut NoteList,
) -> ConfigResult<DatasetConfig<'a>> {
    if let Some(name) = SEVERAL.into_iter().find(|name| params.given(&[name])) {
        return Err(params.mistake_at(
            name,
            format_args!(
                "{name} gives each sample several images, and a sample gives one row: run one \
                 loader for each list, written as transform_ops"
            ),
        ));
    }
    let Some(transform_ops) = params.node("transform_ops") else {
        return Err(params.mistake_at("transform_ops", "'transform_ops' is missing"));
    };
    params.ignore(&["download"]);
    // Cifar10 yields arrays of floats by default.
    match (params.text("backend")?, classes) {
        (Some("pil"), _) | (None, CifarClasses::Hundred) => {}
        _ => {
            return Err(params.mistake_at(
                "backend",
                "backend is cv2 (the default of Cifar10), which gives floats: write backend: pil",
            ));
        }
    }
    let test = params.choice("mode", &[("train", false), ("test", true)])?;
    let test = test.unwrap_or(false);
    let folder = match params.is_python_none("data_file") {
        true => None,
        false => params.text("data_file")?.map(PathBuf::from),
    };
    let per_class = match params.is_python_none("sample_per_label") {
        true => None,
        false => params.whole_above_zero("sample_per_label")?,
    };
    let repeats = params.whole_above_zero("expand_labels")?.unwrap_or(1);
    if per_class.is_some() {
        notes.at(
            params.position_of("sample_per_label"),
            "sample_per_label: `Global.seed` chooses the samples of each class. PaddleClas chooses \
             others in each run",
        );
    }
    Ok(DatasetConfig {
        opener: ImageOpener::Pillow { is_picture: true },
        multi_scale: false,
        label_key: None,
        list: None,
        cifar: Some((
            folder,
            CifarOptions {
                classes,
                test,
                per_class,
                repeats,
                seed: 0,
            },
        )),
        // Used if another source is given instead.
        options: ListOptions {
            labels: ListLabels::Second,
            ..ListOptions::default()
        },
        transform_ops,
        batch_transform_ops: None,
    })
}
