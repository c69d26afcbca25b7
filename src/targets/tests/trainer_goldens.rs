//! tests/goldens/trainer_targets.tar, which scripts/op_goldens/trainer_targets.py writes and
//! explains.

use serde::Deserialize;

use super::golden_cases::{
    CaseStep, assert_none, differences, format_of, golden_file, motion_of, objects_of,
};
use crate::targets::{
    Detectron2Rules, DropCounts, KeypointArray, KeypointSwap, SampleObjects, TargetRules,
    UltralyticsRules,
};

/// x, y and visibility. The visibility is none where single precision decides.
type MovedKeypoint = (f64, f64, Option<u8>);

#[derive(Debug, Deserialize)]
struct TrainerCase {
    size: (u32, u32),
    output: (u32, u32),
    steps: Vec<(usize, CaseStep)>,
    format: String,
    boxes: Vec<[f64; 4]>,
    /// Empty if the library has no crowds.
    #[serde(default)]
    crowd: Vec<bool>,
    /// Whether objects have polygons, too.
    #[serde(default)]
    polygons: bool,
    /// None where single precision decides.
    kept: Vec<Option<bool>>,
    /// The boxes that the library kept, left, top, right, bottom.
    moved: Vec<Option<[f64; 4]>>,
    #[serde(default)]
    swap: Vec<usize>,
    /// x, y and visibility of the keypoints of each object. Empty if objects have none.
    #[serde(default)]
    keypoints: Vec<Vec<(f64, f64, u8)>>,
    #[serde(default)]
    keypoints_moved: Vec<Option<Vec<MovedKeypoint>>>,
}

/// How often the libraries chose.
#[derive(Debug, Default)]
struct ChoiceCounts {
    kept: usize,
    dropped: usize,
    /// Keypoints that lost their visibility.
    hidden: usize,
}

impl TrainerCase {
    fn objects(&self) -> SampleObjects {
        let mut objects = objects_of(&self.boxes, format_of(&self.format));
        objects.crowd.clone_from(&self.crowd);
        let keypoints = self.keypoints.iter().flatten();
        objects.keypoints = KeypointArray {
            per_object: self.swap.len(),
            points: keypoints.clone().map(|(x, y, _)| [*x, *y]).collect(),
            visibility: keypoints.map(|(_, _, seen)| *seen).collect(),
        };
        objects
    }

    fn move_objects(&self, rules: &TargetRules) -> (SampleObjects, DropCounts) {
        let motion = motion_of(self.size, &self.steps, self.output);
        let mut objects = self.objects();
        let swap = KeypointSwap::new(self.swap.clone()).unwrap();
        let swap = Some(&swap).filter(|swap| !swap.is_empty());
        let counts = rules.move_objects(&motion, &mut objects, swap).unwrap();
        (objects, counts)
    }

    /// Compares objects that the rules kept with the library's.
    fn differences(&self, got: &SampleObjects, counts: &mut ChoiceCounts) -> Vec<String> {
        let mut wrong = Vec::new();
        for (number, kept) in self.kept.iter().enumerate() {
            let Some(kept) = *kept else {
                continue;
            };
            let at = got.number.iter().position(|at| *at as usize == number);
            if at.is_some() != kept {
                wrong.push(format!("object {number}: kept is not {kept}"));
            }
            counts.kept += usize::from(kept);
            counts.dropped += usize::from(!kept);
            let (Some(at), true) = (at, kept) else {
                continue;
            };
            let values = got.box_format.to_xyxy(got.boxes[at]);
            wrong.extend(differences(&[values], &[self.moved[number].unwrap()]));
            let per_object = got.keypoints.per_object;
            if per_object == 0 {
                continue;
            }
            let range = at * per_object..(at + 1) * per_object;
            let points = &got.keypoints.points[range.clone()];
            let visibility = &got.keypoints.visibility[range];
            let want = self.keypoints_moved[number].as_ref().unwrap();
            assert_eq!(want.len(), per_object);
            for ((point, seen), (x, y, want)) in points.iter().zip(visibility).zip(want) {
                let Some(want) = *want else {
                    continue;
                };
                counts.hidden += usize::from(want == 0);
                if *seen != want {
                    wrong.push(format!("visibility {seen} instead of {want}: {point:?}"));
                }
                wrong.extend(differences(&[*point], &[[*x, *y]]));
            }
        }
        wrong
    }
}

fn compare(name: &str, rules: impl Fn(&TrainerCase) -> TargetRules) -> ChoiceCounts {
    let cases: Vec<TrainerCase> = golden_file("trainer_targets", name);
    let (mut wrong, mut counts) = (Vec::new(), ChoiceCounts::default());
    for (number, case) in cases.iter().enumerate() {
        let (objects, drops) = case.move_objects(&rules(case));
        assert_eq!(drops.total() as usize, case.boxes.len() - objects.len());
        let all = case.differences(&objects, &mut counts);
        if !all.is_empty() {
            wrong.push(format!("{number}: {:?} {}", case.steps, all.join("; ")));
        }
    }
    assert_none(&wrong, cases.len());
    counts
}

#[test]
fn boxes_and_keypoints_are_those_of_detectron2() {
    let counts = compare("detectron2.json", |_| {
        TargetRules::Detectron2(Detectron2Rules::default())
    });
    assert!(counts.kept > 150 && counts.dropped > 40, "{counts:?}");
    assert!(counts.hidden > 80, "{counts:?}");
}

#[test]
fn boxes_and_keypoints_are_those_of_ultralytics() {
    let counts = compare("ultralytics.json", |case| {
        TargetRules::Ultralytics(match case.polygons {
            true => UltralyticsRules::with_polygons(),
            false => UltralyticsRules::default(),
        })
    });
    assert!(counts.kept > 150 && counts.dropped > 40, "{counts:?}");
    assert!(counts.hidden > 80, "{counts:?}");
}
