//! Compares orientation, centring and splits with nerfstudio's own functions
//! (`scripts/scene_goldens`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::scene::data::eigen;
use crate::scene::data::options::{CenterMethod, OrientationMethod, SplitBy};
use crate::scene::data::scene::{Pose, WorldTransform};
use crate::scene::data::split;
use crate::scene::data::world_orientation;

#[derive(Deserialize)]
struct Goldens {
    /// Symmetric matrices, their eigenvalues, and their vectors as columns.
    eigen: Vec<(Rows, [f64; 3], Rows)>,
    cases: Vec<Case>,
    /// Number of frames, fraction for training, frames for evaluation.
    fractions: Vec<(usize, f64, Vec<u32>)>,
    /// Number of frames, interval, frames for evaluation.
    intervals: Vec<(usize, u64, Vec<u32>)>,
}

type Rows = [[f64; 3]; 3];

#[derive(Deserialize)]
struct Case {
    name: String,
    /// In OpenGL's axes, like nerfstudio's.
    poses: Vec<[[f64; 4]; 3]>,
    transforms: BTreeMap<String, Expected>,
}

#[derive(Deserialize)]
struct Expected {
    transform: [[f64; 4]; 3],
    largest: f64,
}

fn goldens() -> Goldens {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/scene.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn eigenvectors_have_the_signs_that_torch_gives_them() {
    let cases = goldens().eigen;
    assert!(cases.len() >= 60);
    for (matrix, values, vectors) in cases {
        let (got, columns) = eigen::symmetric(&matrix);
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(
            got.iter()
                .zip(values)
                .all(|(a, b)| (a - b).abs() < 1e-9 * b),
            "{matrix:?}"
        );
        assert!(
            near(columns.as_flattened(), vectors.as_flattened()),
            "{matrix:?}: {columns:?}"
        );
    }
}

#[test]
fn poses_are_placed_as_by_nerfstudio() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for case in goldens().cases {
        let poses: Vec<Pose> = (case.poses.iter())
            .map(|rows| Pose(rows.map(|[x, y, z, t]| [x, -y, -z, t])))
            .collect();
        for (name, expected) in case.transforms {
            let (orientation, center) = name.split_once('/').unwrap();
            let quoted = |name: &str| serde_json::Value::String(name.to_owned());
            let orientation: OrientationMethod =
                serde_json::from_value(quoted(orientation)).unwrap();
            let center: CenterMethod = serde_json::from_value(quoted(center)).unwrap();
            let transform =
                world_orientation::orient_and_center(&poses, orientation, center).unwrap();
            let pairs = transform
                .iter()
                .flatten()
                .zip(expected.transform.as_flattened());
            if pairs
                .map(|(value, wanted_value)| (value - wanted_value).abs())
                .fold(0.0, f64::max)
                > 1e-6
            {
                wrong.push(format!("{}, {name}", case.name));
            }
            let placement = WorldTransform {
                transform,
                scale: 1.0,
            };
            let placed = poses.iter().map(|pose| placement.pose(pose));
            let largest = world_orientation::largest(placed);
            assert!(
                (largest - expected.largest).abs() <= 1e-6 * expected.largest,
                "{}, {name}: {largest} {}",
                case.name,
                expected.largest
            );
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}: {wrong:?}", wrong.len());
    assert!(compared > 150, "{compared}");
}

#[test]
fn frames_are_split_as_by_nerfstudio() {
    let goldens = goldens();
    let fractions = goldens.fractions.into_iter();
    let fractions =
        fractions.map(|(count, part, wanted_value)| (count, SplitBy::Fraction(part), wanted_value));
    let intervals = goldens.intervals.into_iter();
    let intervals = intervals
        .map(|(count, every, wanted_value)| (count, SplitBy::Interval(every), wanted_value));
    let mut compared = 0;
    for (count, by, wanted_value) in fractions.chain(intervals) {
        let trains = split::trains(&vec![""; count], by).unwrap();
        let evaluates = (0u32..).zip(trains).filter(|(_, trains)| !trains);
        let evaluates: Vec<u32> = evaluates.map(|(number, _)| number).collect();
        assert_eq!(evaluates, wanted_value, "{count}, {by:?}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}
