//! Orientation, centring and splits against nerfstudio's own functions
//! (`scripts/scene_goldens`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::data::scenes::options::{Center, Orientation};
use crate::data::scenes::place;
use crate::data::scenes::scene::{Placement, Pose};

#[derive(Deserialize)]
struct Goldens {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    /// OpenGL's axes, as nerfstudio has them.
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
fn poses_are_placed_as_by_nerfstudio() {
    let mut compared = 0;
    for case in goldens().cases {
        let poses: Vec<Pose> = (case.poses.iter())
            .map(|rows| Pose(rows.map(|[x, y, z, t]| [x, -y, -z, t])))
            .collect();
        for (name, expected) in case.transforms {
            let (orientation, center) = name.split_once('/').unwrap();
            let quoted = |name: &str| serde_json::Value::String(name.to_owned());
            let orientation: Orientation = serde_json::from_value(quoted(orientation)).unwrap();
            let center: Center = serde_json::from_value(quoted(center)).unwrap();
            let transform = place::transform(&poses, orientation, center).unwrap();
            for (row, due) in transform.iter().zip(expected.transform) {
                for (value, due) in row.iter().zip(due) {
                    let apart = (value - due).abs();
                    assert!(
                        apart <= 1e-6,
                        "{}, {name}: {transform:?}\n{:?}",
                        case.name,
                        expected.transform
                    );
                }
            }
            let placement = Placement {
                transform,
                scale: 1.0,
            };
            let placed = poses.iter().map(|pose| placement.pose(pose));
            let largest = place::largest(placed);
            assert!(
                (largest - expected.largest).abs() <= 1e-6 * expected.largest,
                "{}, {name}: {largest} {}",
                case.name,
                expected.largest
            );
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}
