//! Compares operations of configs with the pixels that PaddleClas' own code makes of the same
//! files: from the config's text to the rows of a batch. `scripts/op_goldens/paddleclas.py` has
//! written and explains `tests/goldens/paddleclas.tar`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::configs::paddle::{ConfigOptions, LauncherEnvironment, TrainingConfig};
use crate::data::index::ListOptions;
use crate::loader::Source;
use crate::tests_support::unpack_goldens;

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    ops: String,
    input: String,
    expected: String,
    height: usize,
    width: usize,
    tolerance: f32,
}

/// The levels of the row, rows of RGB; the goldens lie in `scratch`.
fn made(case: &Case, scratch: &Path) -> Vec<f32> {
    let ops: String = (case.ops.lines())
        .map(|line| format!("        {line}\n"))
        .collect();
    // Plain levels: neither scaled nor shifted.
    let config = format!(
        "DataLoader:
  Train:
    dataset:
      name: ImageNetDataset
      image_root: .
      cls_label_path: list.txt
      transform_ops:
        - DecodeImage: {{to_rgb: True}}
{ops}        - NormalizeImage: {{scale: 1, mean: 0, std: 1, order: ''}}
    sampler: {{name: DistributedBatchSampler, batch_size: 1, drop_last: False, shuffle: False}}
    loader: {{num_workers: 0}}
"
    );
    let (file, list) = (scratch.join("c.yaml"), scratch.join("list.txt"));
    fs::write(&file, config).unwrap();
    fs::write(&list, format!("{} 0\n", case.input)).unwrap();
    let options = ConfigOptions {
        skip_unknown_ops: false,
        environment: LauncherEnvironment::default(),
        usable_cpus: 1,
    };
    let training = TrainingConfig::read(&file, "train", &options).unwrap();
    let source = Source::List(
        list,
        ListOptions {
            root: Some(scratch.to_owned()),
            ..training.list_options.clone()
        },
    );
    let mut loader = (training.builder(source).unwrap())
        .num_workers(0)
        .build()
        .unwrap();
    let mut epoch = loader.epoch();
    let batch = epoch.next().unwrap().unwrap();
    assert_eq!(batch.faults().len(), 0, "{}", case.ops);
    assert_eq!(batch.shape().unwrap(), [1, 3, case.height, case.width]);
    let planes = batch.pixels().unwrap().as_slice::<f32>().unwrap();
    let plane = case.height * case.width;
    (0..3 * plane)
        .map(|i| planes[i % 3 * plane + i / 3])
        .collect()
}

#[test]
fn operations_have_the_pixels_of_paddleclas() {
    let scratch = tempfile::tempdir().unwrap();
    unpack_goldens("paddleclas", scratch.path()).unwrap();
    let text = fs::read_to_string(scratch.path().join("manifest.json")).unwrap();
    let manifest: Manifest = serde_json::from_str(&text).unwrap();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for case in &manifest.cases {
        seen.extend(case.ops.lines().filter_map(|l| l.split([' ', ':']).nth(1)));
        let expected = fs::read(scratch.path().join(&case.expected)).unwrap();
        let expected: Vec<f32> = (expected.as_chunks::<4>().0.iter())
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        let made = made(case, scratch.path());
        assert_eq!(made.len(), expected.len(), "{}", case.ops);
        let apart = (made.iter().zip(&expected))
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        // The precision that levels lose when they are divided by 255.
        if apart > case.tolerance + 1e-4 {
            wrong.push(format!("{} of {}: {apart} apart", case.ops, case.input));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in ["CropImageAtRatio", "Padv2", "CropWithPadding"] {
        assert!(seen.contains(name), "no case of {name}");
    }
}
