//! Cases of goldens of targets: files, steps, and comparisons.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{affine, crop, pad, perspective, resize, rotate};
use crate::recipe::{RotationStyle, Size, Step};
use crate::targets::{BoxFormat, SampleMotion, SampleObjects};
use crate::tests_support::golden;

/// The largest difference to a library, in pixels.
pub(super) const CLOSE: f64 = 1e-3;

/// The JSON file `name` of a set.
pub(super) fn golden_file<T: DeserializeOwned>(set: &str, name: &str) -> T {
    serde_json::from_slice(&golden(set, name).unwrap()).unwrap()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CaseStep {
    Crop(u32, u32, u32, u32),
    Pad(u32, u32, u32, u32),
    Resize(u32, u32),
    Mirror,
    UpsideDown,
    Turn(u8),
    Rotate(f64, u32, u32),
    Affine([f64; 6]),
    Perspective([f64; 8]),
}

impl CaseStep {
    fn step(&self) -> Step {
        match *self {
            Self::Crop(left, top, width, height) => crop(left, top, width, height),
            Self::Pad(left, top, right, bottom) => pad(left, top, right, bottom),
            Self::Resize(height, width) => resize(height, width),
            Self::Mirror => Step::Mirror,
            Self::UpsideDown => Step::UpsideDown,
            Self::Turn(quarters) => Step::Turn(quarters),
            Self::Rotate(degrees, height, width) => {
                rotate(degrees, (height, width).into(), RotationStyle::Tensor)
            }
            Self::Affine(matrix) => affine(matrix),
            Self::Perspective(coefficients) => perspective(coefficients),
        }
    }
}

pub(super) fn motion_of(
    source: (u32, u32),
    steps: &[(usize, CaseStep)],
    output: (u32, u32),
) -> SampleMotion {
    let mut motion = SampleMotion::new(source.into());
    for (op, step) in steps {
        motion.push(*op, &step.step());
    }
    assert_eq!(motion.output(), Size::from(output), "{steps:?}");
    motion
}

pub(super) fn format_of(name: &str) -> BoxFormat {
    match name {
        "xyxy" => BoxFormat::Xyxy,
        "xywh" => BoxFormat::Xywh,
        "cxcywh" => BoxFormat::Cxcywh,
        other => panic!("{other}"),
    }
}

pub(super) fn objects_of(boxes: &[[f64; 4]], format: BoxFormat) -> SampleObjects {
    SampleObjects {
        number: (0..boxes.len() as u32).collect(),
        boxes: boxes.to_vec(),
        box_format: format,
        ..SampleObjects::default()
    }
}

/// The differences of lists of equal length, by row.
pub(super) fn differences<const N: usize>(got: &[[f64; N]], want: &[[f64; N]]) -> Vec<String> {
    if got.len() != want.len() {
        return vec![format!("{} rows instead of {}", got.len(), want.len())];
    }
    let rows = got.iter().zip(want).enumerate();
    rows.filter(|(_, (got, want))| {
        let mut pairs = got.iter().zip(want.iter());
        pairs.any(|(got, want)| (got - want).abs() > CLOSE || got.is_nan())
    })
    .map(|(row, (got, want))| format!("row {row}: {got:?} instead of {want:?}"))
    .collect()
}

/// Fails with the first lines of what is wrong.
pub(super) fn assert_none(wrong: &[String], of: usize) {
    let lines = wrong.len().min(12);
    assert!(
        wrong.is_empty(),
        "{} of {of} cases:\n{}",
        wrong.len(),
        wrong[..lines].join("\n")
    );
}
