//! The objects of an image that a cache resizes.
//!
//! Pure, in the consumer. Coordinates are multiplied by new / old side in float64, axis by axis, and
//! are neither rounded nor clamped. Run lengths become those of the resized mask, whose pixels are
//! taken as `nearest` of PyTorch takes them.

use crate::data::objects::{ObjectForm, ObjectShape, RotatedForm, StatedObjects};
use crate::error::{FaultKind, SampleFault};
use crate::recipe::Size;
use crate::targets::masks::RunLengths;

/// Height and width.
type Sides = (u32, u32);

/// Resizes the objects of an image of size `from` to those of the same image of size `to`.
///
/// # Errors
/// A mask of run lengths that is damaged, or of another size than the image.
pub(crate) fn resize_objects(
    sample: &mut StatedObjects,
    form: &ObjectForm,
    from: Sides,
    to: Sides,
) -> Result<(), SampleFault> {
    if sample.size.is_some() {
        sample.size = Some(to);
    }
    if from == to {
        return Ok(());
    }
    let across = f64::from(to.1) / f64::from(from.1);
    let down = f64::from(to.0) / f64::from(from.0);
    // Shares of the sides stay.
    let (x, y) = match form.shares {
        true => (1.0, 1.0),
        false => (across, down),
    };
    for object in &mut sample.objects {
        let [a, b, c, d] = object.numbers;
        // In each form of boxes x and y follow each other.
        object.numbers = [a * x, b * y, c * x, d * y];
        object.area *= x * y;
        for point in &mut object.keypoints {
            point[0] = (f64::from(point[0]) * x) as f32;
            point[1] = (f64::from(point[1]) * y) as f32;
        }
        match form.rotated {
            None => {}
            Some(RotatedForm::Corners) => {
                for corner in object.rotated.as_chunks_mut::<2>().0 {
                    *corner = [corner[0] * x, corner[1] * y];
                }
            }
            Some(RotatedForm::Centre) => {
                return Err(FaultKind::Unsupported.fault(
                    "its rotated boxes have angles, which a resize of one side changes: give four \
                     corners",
                ));
            }
        }
        match &mut object.shape {
            ObjectShape::None => {}
            ObjectShape::Polygons(rings) => {
                for point in rings.iter_mut().flatten() {
                    *point = [point[0] * x, point[1] * y];
                }
            }
            ObjectShape::Runs { size, counts } => {
                let runs = RunLengths::new(side(*size), std::mem::take(counts));
                let resized = resize_runs(&runs.map_err(damaged)?, from, to)?;
                object.shape = ObjectShape::Runs {
                    size: to,
                    counts: resized.counts().to_vec(),
                };
            }
            ObjectShape::RunText { size, text } => {
                let runs = RunLengths::from_text(side(*size), text);
                let resized = resize_runs(&runs.map_err(damaged)?, from, to)?;
                object.shape = ObjectShape::RunText {
                    size: to,
                    text: resized.to_text().into_bytes(),
                };
            }
        }
    }
    Ok(())
}

fn side((height, width): Sides) -> Size {
    Size { height, width }
}

fn damaged(fault: crate::targets::TargetFault) -> SampleFault {
    FaultKind::Corrupt.fault(format!("the run lengths of an object {fault}"))
}

/// The run lengths of the resized mask.
fn resize_runs(runs: &RunLengths, from: Sides, to: Sides) -> Result<RunLengths, SampleFault> {
    if runs.size() != side(from) {
        return Err(FaultKind::Corrupt.fault(format!(
            "the run lengths of an object are of {}, and the image has {}",
            runs.size(),
            side(from)
        )));
    }
    let mut ends = Vec::with_capacity(runs.counts().len());
    let mut end = 0u64;
    for count in runs.counts() {
        end += u64::from(*count);
        ends.push(end);
    }
    let rows = nearest(from.0, to.0);
    let (mut counts, mut length, mut is_inside) = (Vec::new(), 0u32, false);
    for column in nearest(from.1, to.1) {
        let first = u64::from(column) * u64::from(from.0);
        let mut run = ends.partition_point(|end| *end <= first);
        for row in &rows {
            let at = first + u64::from(*row);
            while ends.get(run).is_some_and(|end| *end <= at) {
                run += 1;
            }
            if (run % 2 == 1) != is_inside {
                counts.push(std::mem::take(&mut length));
                is_inside = !is_inside;
            }
            length += 1;
        }
    }
    counts.push(length);
    RunLengths::new(side(to), counts).map_err(damaged)
}

/// For each pixel of the new side the pixel of the old one, computed in `f32`.
fn nearest(from: u32, to: u32) -> Vec<u32> {
    let scale = from as f32 / to as f32;
    (0..to)
        .map(|at| ((at as f32 * scale).floor() as u32).min(from - 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::objects::{BoxForm, StatedObject};

    #[test]
    fn coordinates_follow_each_side() {
        let form = ObjectForm {
            boxes: BoxForm::Xywh,
            keypoints: 1,
            rotated: Some(RotatedForm::Corners),
            ..ObjectForm::default()
        };
        let mut sample = StatedObjects {
            size: Some((10, 30)),
            image_id: 7,
            objects: vec![StatedObject {
                numbers: [3.0, 1.0, 6.0, 2.5],
                area: 15.0,
                keypoints: vec![[1.5, 2.0, 1.0]],
                rotated: vec![3.0, 1.0, 6.0, 1.0, 6.0, 2.0, 3.0, 2.0],
                shape: ObjectShape::Polygons(vec![vec![[3.0, 1.0], [30.0, 10.0], [0.3, 0.1]]]),
                ..StatedObject::default()
            }],
        };
        let before = sample.clone();
        resize_objects(&mut sample, &form, (10, 30), (10, 30)).unwrap();
        assert_eq!(sample, before);
        resize_objects(&mut sample, &form, (10, 30), (20, 10)).unwrap();
        let (object, third) = (&sample.objects[0], 10.0 / 30.0);
        assert_eq!((sample.size, sample.image_id), (Some((20, 10)), 7));
        assert_eq!(object.numbers, [3.0 * third, 2.0, 6.0 * third, 5.0]);
        assert_eq!(object.area, 15.0 * (third * 2.0));
        assert_eq!(object.keypoints, [[0.5, 4.0, 1.0]]);
        assert_eq!(object.rotated[..4], [3.0 * third, 2.0, 6.0 * third, 2.0]);
        let ring = vec![[3.0 * third, 2.0], [30.0 * third, 20.0], [0.3 * third, 0.2]];
        assert_eq!(object.shape, ObjectShape::Polygons(vec![ring]));
        let shares = ObjectForm {
            shares: true,
            ..form
        };
        let mut sample = before.clone();
        resize_objects(&mut sample, &shares, (10, 30), (20, 10)).unwrap();
        assert_eq!(sample.objects, before.objects);
    }

    #[test]
    fn run_lengths_are_those_of_the_resized_mask() {
        let (from, to) = ((5u32, 7u32), (8u32, 3u32));
        let pixel = |n: u32| u8::from(n * 7919 % 11 < 4);
        let rows: Vec<u8> = (0..35).map(pixel).collect();
        let runs = RunLengths::encode(side(from), &rows).unwrap();
        let (down, across) = (nearest(5, 8), nearest(7, 3));
        let mut want = Vec::new();
        for row in &down {
            want.extend(
                across
                    .iter()
                    .map(|column| rows[(row * 7 + column) as usize]),
            );
        }
        let want = RunLengths::encode(side(to), &want).unwrap();
        for text in [false, true] {
            let shape = match text {
                false => ObjectShape::Runs {
                    size: from,
                    counts: runs.counts().to_vec(),
                },
                true => ObjectShape::RunText {
                    size: from,
                    text: runs.to_text().into_bytes(),
                },
            };
            let mut sample = StatedObjects {
                objects: vec![StatedObject {
                    shape,
                    ..StatedObject::default()
                }],
                ..StatedObjects::default()
            };
            let form = ObjectForm::default();
            resize_objects(&mut sample, &form, from, to).unwrap();
            let got = match &sample.objects[0].shape {
                ObjectShape::Runs { size, counts } => {
                    RunLengths::new(side(*size), counts.clone()).unwrap()
                }
                ObjectShape::RunText { size, text } => {
                    RunLengths::from_text(side(*size), text).unwrap()
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(got, want);
            let e = resize_objects(&mut sample, &form, from, to).unwrap_err();
            assert!(e.reason.contains("and the image has"), "{e}");
        }
        let bomb = ObjectShape::RunText {
            size: from,
            text: vec![b'o'; 1 << 20],
        };
        let mut sample = StatedObjects {
            objects: vec![StatedObject {
                shape: bomb,
                ..StatedObject::default()
            }],
            ..StatedObjects::default()
        };
        assert!(resize_objects(&mut sample, &ObjectForm::default(), from, to).is_err());
    }
}
