//! tests/goldens/targets.tar, which scripts/op_goldens/targets.py writes and explains.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::elastic;
use super::golden_cases::{
    CLOSE, CaseStep, assert_none, differences, format_of, golden_file, motion_of, objects_of,
};
use crate::targets::{
    AlbumentationsRules, BoxFormat, ClampingMode, KeypointArray, RotatedBoxes, RotatedFormat,
    SampleMotion, SampleObjects, TargetRules, TorchvisionRules, clamp_boxes, clamp_keypoints,
    normalized_box, sanitize_boxes, sanitize_keypoints,
};

pub(super) fn read<T: DeserializeOwned>(name: &str) -> T {
    golden_file("targets", name)
}

/// One keypoint to an object.
fn points_of(points: &[[f64; 2]]) -> SampleObjects {
    SampleObjects {
        number: (0..points.len() as u32).collect(),
        keypoints: KeypointArray {
            per_object: 1,
            points: points.to_vec(),
            visibility: vec![2; points.len()],
        },
        ..SampleObjects::default()
    }
}

/// Whether a choice is that of the library, where single precision does not decide.
fn is_choice(got: &[bool], want: &[Option<bool>]) -> bool {
    let mut pairs = got.iter().zip(want);
    got.len() == want.len() && pairs.all(|(got, want)| want.is_none_or(|want| want == *got))
}

#[derive(Debug, Deserialize)]
struct TorchvisionFile {
    boxes: Vec<TorchvisionCase>,
    rotated: Vec<RotatedCase>,
}

#[derive(Debug, Deserialize)]
struct TorchvisionCase {
    size: (u32, u32),
    output: (u32, u32),
    steps: Vec<(usize, CaseStep)>,
    format: String,
    integers: bool,
    boxes: Vec<[f64; 4]>,
    moved: Vec<[f64; 4]>,
    keypoints: Vec<[f64; 2]>,
    keypoints_moved: Vec<[f64; 2]>,
    clamped: Vec<[f64; 4]>,
    keypoints_clamped: Vec<[f64; 2]>,
    sane: Vec<Option<bool>>,
    keypoints_sane: Vec<bool>,
}

#[test]
fn boxes_and_keypoints_are_those_of_torchvision() {
    let file: TorchvisionFile = read("torchvision.json");
    let (mut wrong, mut decided) = (Vec::new(), 0);
    for (number, case) in file.boxes.iter().enumerate() {
        let motion = motion_of(case.size, &case.steps, case.output);
        let rules = TorchvisionRules {
            integers: case.integers,
            ..TorchvisionRules::default()
        };
        let style = TargetRules::Torchvision(rules);
        let mut boxes = objects_of(&case.boxes, format_of(&case.format));
        let counts = style.move_objects(&motion, &mut boxes, None).unwrap();
        assert_eq!(counts.total(), 0);
        let mut points = points_of(&case.keypoints);
        style.move_objects(&motion, &mut points, None).unwrap();
        let mut all = differences(&boxes.boxes, &case.moved);
        all.extend(differences(&points.keypoints.points, &case.keypoints_moved));
        let to = motion.output();
        let sane = sanitize_boxes(&rules, &boxes, to, 4.0, 40.0);
        if !is_choice(&sane, &case.sane) {
            all.push(format!("chose {sane:?} instead of {:?}", case.sane));
        }
        decided += case.sane.iter().flatten().count();
        if sanitize_keypoints(&points, to) != case.keypoints_sane {
            all.push("another choice of keypoints".into());
        }
        clamp_boxes(&rules, &mut boxes, to);
        clamp_keypoints(&rules, &mut points, to);
        all.extend(differences(&boxes.boxes, &case.clamped));
        all.extend(differences(
            &points.keypoints.points,
            &case.keypoints_clamped,
        ));
        if !all.is_empty() {
            wrong.push(format!("{number}: {:?} {}", case.steps, all.join("; ")));
        }
    }
    assert!(decided > 250, "{decided}");
    assert_none(&wrong, file.boxes.len());
}

#[derive(Debug, Deserialize)]
struct RotatedCase {
    size: (u32, u32),
    output: (u32, u32),
    steps: Vec<(usize, CaseStep)>,
    format: String,
    clamping: String,
    boxes: Vec<Vec<f64>>,
    moved: Vec<Vec<f64>>,
    sane: Vec<Option<bool>>,
}

#[test]
fn rotated_boxes_are_those_of_torchvision() {
    let file: TorchvisionFile = read("torchvision.json");
    let (mut wrong, mut decided) = (Vec::new(), 0);
    for (number, case) in file.rotated.iter().enumerate() {
        let motion = motion_of(case.size, &case.steps, case.output);
        let rules = TorchvisionRules {
            integers: false,
            clamping: match case.clamping.as_str() {
                "soft" => ClampingMode::Soft,
                "hard" => ClampingMode::Hard,
                _ => ClampingMode::Off,
            },
        };
        let format = match case.format.as_str() {
            "xywhr" => RotatedFormat::Xywhr,
            "cxcywhr" => RotatedFormat::Cxcywhr,
            _ => RotatedFormat::Xyxyxyxy,
        };
        let mut objects = SampleObjects {
            number: (0..case.boxes.len() as u32).collect(),
            rotated: RotatedBoxes {
                format: Some(format),
                values: case.boxes.concat(),
            },
            ..SampleObjects::default()
        };
        let style = TargetRules::Torchvision(rules);
        style.move_objects(&motion, &mut objects, None).unwrap();
        let sane = sanitize_boxes(&rules, &objects, motion.output(), 4.0, 40.0);
        let got = objects.rotated.values.chunks(format.numbers());
        for (got, want) in got.zip(&case.moved) {
            let angle = |at: usize| format != RotatedFormat::Xyxyxyxy && at == 4;
            let off = |(at, (got, want)): (usize, (&f64, &f64))| {
                let off = (got - want).abs();
                // 180 and -180 degrees are one angle.
                if angle(at) {
                    off.min((off - 360.0).abs())
                } else {
                    off
                }
            };
            let most = got
                .iter()
                .zip(want)
                .enumerate()
                .map(off)
                .fold(0.0, f64::max);
            if most > CLOSE || most.is_nan() {
                wrong.push(format!(
                    "{number}: {} {} {:?}: {got:?} instead of {want:?}",
                    case.format, case.clamping, case.steps
                ));
            }
        }
        if !is_choice(&sane, &case.sane) {
            wrong.push(format!("{number}: chose {sane:?}"));
        }
        decided += case.sane.iter().flatten().count();
    }
    assert!(decided > 80, "{decided}");
    assert_none(&wrong, file.rotated.len());
}

#[derive(Debug, Deserialize)]
struct ElasticCase {
    size: (u32, u32),
    key: u64,
    alpha: [f64; 2],
    sigma: [f64; 2],
    format: String,
    integers: bool,
    boxes: Vec<[f64; 4]>,
    moved: Vec<[f64; 4]>,
    keypoints: Vec<[f64; 2]>,
    keypoints_moved: Vec<[f64; 2]>,
}

#[test]
fn displaced_boxes_and_keypoints_are_those_of_torchvision() {
    let cases: Vec<ElasticCase> = read("elastic.json");
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let step = elastic(case.key, case.alpha, case.sigma);
        let motion = SampleMotion::of(case.size.into(), [(0, &step)]);
        let style = TargetRules::Torchvision(TorchvisionRules {
            integers: case.integers,
            ..TorchvisionRules::default()
        });
        let mut boxes = objects_of(&case.boxes, format_of(&case.format));
        style.move_objects(&motion, &mut boxes, None).unwrap();
        let mut points = points_of(&case.keypoints);
        style.move_objects(&motion, &mut points, None).unwrap();
        let mut all = differences(&boxes.boxes, &case.moved);
        all.extend(differences(&points.keypoints.points, &case.keypoints_moved));
        if !all.is_empty() {
            wrong.push(format!("{number}: {}", all.join("; ")));
        }
    }
    assert_none(&wrong, cases.len());
}

#[derive(Debug, Deserialize)]
struct AlbumentationsCase {
    size: (u32, u32),
    output: (u32, u32),
    steps: Vec<(usize, CaseStep)>,
    format: String,
    params: AlbumentationsParams,
    boxes: Vec<[f64; 4]>,
    kept: Vec<u32>,
    moved: Vec<[f64; 4]>,
    keypoints: Vec<[f64; 2]>,
    keypoints_kept: Vec<u32>,
    keypoints_moved: Vec<[f64; 2]>,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct AlbumentationsParams {
    clip: bool,
    min_area: f64,
    min_visibility: f64,
    min_width: f64,
    min_height: f64,
    max_accept_ratio: Option<f64>,
}

impl Default for AlbumentationsParams {
    fn default() -> Self {
        Self {
            clip: false,
            min_area: 0.0,
            min_visibility: 0.0,
            min_width: 0.0,
            min_height: 0.0,
            max_accept_ratio: None,
        }
    }
}

#[test]
fn boxes_and_keypoints_are_those_of_albumentations() {
    let cases: Vec<AlbumentationsCase> = read("albumentations.json");
    let (mut wrong, mut dropped) = (Vec::new(), 0);
    for (number, case) in cases.iter().enumerate() {
        let motion = motion_of(case.size, &case.steps, case.output);
        let params = &case.params;
        let style = TargetRules::Albumentations(AlbumentationsRules {
            clip: params.clip,
            min_area: params.min_area,
            min_visibility: params.min_visibility,
            min_width: params.min_width,
            min_height: params.min_height,
            max_accept_ratio: params.max_accept_ratio,
            ..AlbumentationsRules::default()
        });
        let mut boxes = objects_of(&case.boxes, format_of(&case.format));
        let counts = style.move_objects(&motion, &mut boxes, None).unwrap();
        assert_eq!(counts.total() as usize, case.boxes.len() - boxes.len());
        dropped += counts.total();
        let mut all = Vec::new();
        if boxes.number != case.kept {
            all.push(format!(
                "kept {:?} instead of {:?}",
                boxes.number, case.kept
            ));
        }
        all.extend(differences(&boxes.boxes, &case.moved));
        let mut points = points_of(&case.keypoints);
        style.move_objects(&motion, &mut points, None).unwrap();
        let seen = points.keypoints.visibility.iter().zip(0..);
        let seen: Vec<u32> = seen
            .filter(|(seen, _)| **seen > 0)
            .map(|(_, at)| at)
            .collect();
        if seen == case.keypoints_kept {
            let seen: Vec<_> = seen
                .iter()
                .map(|at| points.keypoints.points[*at as usize])
                .collect();
            all.extend(differences(&seen, &case.keypoints_moved));
        } else {
            all.push(format!("saw {seen:?} instead of {:?}", case.keypoints_kept));
        }
        if !all.is_empty() {
            wrong.push(format!("{number}: {:?} {}", case.steps, all.join("; ")));
        }
    }
    assert!(dropped > 20, "{dropped}");
    assert_none(&wrong, cases.len());
}

#[derive(Debug, Deserialize)]
struct HfCase {
    size: (u32, u32),
    output: (u32, u32),
    steps: Vec<(usize, CaseStep)>,
    boxes: Vec<[f64; 4]>,
    area: Vec<f64>,
    crowd: Vec<bool>,
    kept: Vec<u32>,
    moved: Vec<[f64; 4]>,
    area_moved: Vec<f64>,
    shares: Vec<[f64; 4]>,
}

#[test]
fn annotations_are_those_of_transformers() {
    let cases: Vec<HfCase> = read("hf.json");
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let motion = motion_of(case.size, &case.steps, case.output);
        let mut objects = objects_of(&case.boxes, BoxFormat::Xywh);
        objects.area.clone_from(&case.area);
        objects.crowd.clone_from(&case.crowd);
        let counts = (TargetRules::Hf)
            .move_objects(&motion, &mut objects, None)
            .unwrap();
        assert_eq!(counts.total() as usize, case.boxes.len() - objects.len());
        let upright: Vec<_> = (objects.boxes.iter())
            .map(|values| BoxFormat::Xywh.to_xyxy(*values))
            .collect();
        let mut all = differences(&upright, &case.moved);
        if objects.number != case.kept {
            all.push(format!("kept {:?}", objects.number));
        }
        for (got, want) in objects.area.iter().zip(&case.area_moved) {
            if (got - want).abs() > 1e-5 * want.abs() + CLOSE {
                all.push(format!("area {got} instead of {want}"));
            }
        }
        for (upright, want) in upright.iter().zip(&case.shares) {
            let got = normalized_box(BoxFormat::Cxcywh.from_xyxy(*upright), motion.output());
            if got
                .iter()
                .zip(want)
                .any(|(got, want)| (got - want).abs() > 1e-6)
            {
                all.push(format!("shares {got:?} instead of {want:?}"));
            }
        }
        if !all.is_empty() {
            wrong.push(format!("{number}: {}", all.join("; ")));
        }
    }
    assert_none(&wrong, cases.len());
}
