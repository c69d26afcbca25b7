//! PaddleClas' resizes by OpenCV, from a config to the elements of a batch, against
//! what PaddleClas and OpenCV make of the same pictures: tests/goldens/opencv.tar, which
//! scripts/op_goldens/opencv.py has written and explains.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use featherload::OnError;
use featherload::paddle::{ConfigOptions, LauncherEnvironment, TrainingConfig};
use featherload::tests_support::unpack_goldens;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Levels.
const TOLERANCE: u8 = 1;
/// Rows of a case that may come out in several ways: each way about 17 times.
const ROWS: usize = 400;

#[derive(Deserialize)]
struct Manifest {
    by: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    ops: Vec<Map<String, Value>>,
    picture: String,
    /// Height, width.
    size: (usize, usize),
    /// First byte of each picture that may come out.
    at: Vec<usize>,
}

/// The config with these operations behind DecodeImage.
fn config(ops: &[Map<String, Value>]) -> String {
    // JSON is YAML.
    let ops: Vec<String> = ops
        .iter()
        .map(|op| format!("        - {}\n", serde_json::to_string(op).unwrap()))
        .collect();
    format!(
        "DataLoader:
  Train:
    dataset:
      name: ImageNetDataset
      image_root: in
      cls_label_path: list.txt
      transform_ops:
        - DecodeImage: {{backend: cv2}}
{}    sampler: {{name: DistributedBatchSampler, batch_size: 1, shuffle: False}}
    loader: {{num_workers: 0}}
",
        ops.concat()
    )
}

fn read(config: &str, scratch: &Path) -> featherload::Result<TrainingConfig> {
    let options = ConfigOptions {
        skip_unknown_ops: false,
        environment: LauncherEnvironment::default(),
        usable_cpus: 2,
    };
    TrainingConfig::from_text(config, scratch.join("c.yaml"), "train", &options)
}

/// So many rows of the picture: height, width, and elements of each, RGB. The goldens
/// lie in `scratch`.
fn rows(case: &Case, count: usize, scratch: &Path) -> Vec<Vec<u8>> {
    let training = read(&config(&case.ops), scratch).unwrap();
    let mut options = training.list_options.clone();
    options.root = Some(scratch.join("in"));
    let list = scratch.join("list.txt");
    fs::write(&list, format!("{} 0\n", case.picture).repeat(count)).unwrap();
    let source = featherload::Source::List(list, options);
    let builder = training.builder(source).unwrap().on_error(OnError::Stop);
    let mut loader = builder.batch_size(count as u32).build().unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    let (height, width) = case.size;
    assert_eq!(batch.shape().unwrap(), [count, 3, height, width]);
    let area = height * width;
    (0..count)
        .map(|row| {
            let planes = batch.row(row).unwrap().as_slice::<u8>().unwrap();
            let pixel = |i: usize| [planes[i], planes[area + i], planes[2 * area + i]];
            (0..area).flat_map(pixel).collect()
        })
        .collect()
}

/// The most levels between two elements, and where that is.
fn differences(one: &[u8], other: &[u8]) -> (u8, usize) {
    let differences = one.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
    differences.zip(0..).max().unwrap()
}

#[test]
fn every_element_is_within_a_level_of_opencvs() {
    let scratch = tempfile::tempdir().unwrap();
    unpack_goldens("opencv", scratch.path()).unwrap();
    let text = fs::read_to_string(scratch.path().join("manifest.json")).unwrap();
    let Manifest { by, cases } = serde_json::from_str(&text).unwrap();
    let expected = fs::read(scratch.path().join("expected.u8")).unwrap();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let (height, width) = case.size;
        let all: Vec<&[u8]> = (case.at.iter())
            .map(|at| &expected[*at..][..3 * height * width])
            .collect();
        let count = if all.len() == 1 { 1 } else { ROWS };
        let mut met = BTreeSet::new();
        for row in rows(case, count, scratch.path()) {
            let nearest = all
                .iter()
                .map(|want| differences(&row, want))
                .zip(0..)
                .min();
            let ((levels, at), which) = nearest.unwrap();
            met.insert(which);
            if levels > TOLERANCE {
                let want = all[which][at];
                wrong.push(format!(
                    "{:?} of {}: {} is not {by}'s {want} at row {}, column {}",
                    case.ops,
                    case.picture,
                    row[at],
                    at / 3 / width,
                    at / 3 % width
                ));
            }
        }
        // Every box that may be drawn is drawn, and is another picture.
        assert_eq!(met.len(), all.len(), "{:?}", case.ops);
        for (name, params) in case.ops.iter().flatten() {
            seen.insert((
                name.clone(),
                params["size"].is_null(),
                params["interpolation"].to_string(),
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    for (name, by_side) in [
        ("ResizeImage", false),
        ("ResizeImage", true),
        ("RandCropImage", false),
    ] {
        for interpolation in ["null", "\"bilinear\"", "\"bicubic\""] {
            let case = (name.to_owned(), by_side, interpolation.to_owned());
            assert!(seen.contains(&case), "no case for {case:?}");
        }
    }
}

/// What OpenCV can do and nobody here: no way is taken for another.
#[test]
fn other_interpolations_are_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["ResizeImage", "RandCropImage", "RandomResizedCrop"] {
        for (interpolation, backend) in [
            ("nearest", "cv2"),
            ("area", "cv2"),
            ("lanczos", "cv2"),
            ("random", "cv2"),
            ("box", "pil"),
            ("hamming", "pil"),
            ("random", "pil"),
        ] {
            // paddle.vision's has no backend to choose.
            if name == "RandomResizedCrop" && backend == "pil" {
                continue;
            }
            // Which draws one of two.
            if name == "RandCropImage" && interpolation == "random" {
                continue;
            }
            let mut params = Map::new();
            params.insert("size".into(), 8.into());
            params.insert("interpolation".into(), interpolation.into());
            if name != "RandomResizedCrop" {
                params.insert("backend".into(), backend.into());
            }
            let mut op = Map::new();
            op.insert(name.into(), Value::Object(params));
            let Err(error) = read(&config(&[op]), scratch.path()) else {
                panic!("{name} takes {interpolation} of {backend}");
            };
            let text = error.to_string();
            assert!(
                text.contains(&format!("interpolation is '{interpolation}'")),
                "{text}"
            );
            assert!(
                text.contains("c.yaml:9") && text.lines().count() == 1,
                "{text}"
            );
        }
    }
}
