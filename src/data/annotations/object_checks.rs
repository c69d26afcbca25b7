//! Checks of boxes and outlines that all formats share.

use super::report::AnnotationFault;

/// How far a box may leave its picture unnoticed: tools round to whole pixels, or count them from 1.
const TOLERANCE: f64 = 1.0;

/// A box as left, top, right and bottom, in pixels.
pub(super) type PixelSides = [f64; 4];

/// Checks a box in a picture of this height and width. `Ok(true)`: it is partly outside.
pub(super) fn check_box(
    sides: PixelSides,
    size: Option<(u32, u32)>,
) -> Result<bool, AnnotationFault> {
    if !sides.iter().all(|v| v.is_finite()) {
        return Err(AnnotationFault::NotFinite);
    }
    let [left, top, right, bottom] = sides;
    if right <= left || bottom <= top {
        return Err(AnnotationFault::EmptyBox);
    }
    let Some((height, width)) = size else {
        return Ok(false);
    };
    let (height, width) = (f64::from(height), f64::from(width));
    check_within(sides, height, width, TOLERANCE)
}

/// The same for a box in shares of the picture.
pub(super) fn check_share_box(sides: PixelSides) -> Result<bool, AnnotationFault> {
    /// Of the picture: ultralytics allows as much.
    const SHARE: f64 = 0.01;
    check_box(sides, None)?;
    check_within(sides, 1.0, 1.0, SHARE)
}

fn check_within(
    sides: PixelSides,
    height: f64,
    width: f64,
    tolerance: f64,
) -> Result<bool, AnnotationFault> {
    let [left, top, right, bottom] = sides;
    if left >= width || top >= height || right <= 0.0 || bottom <= 0.0 {
        return Err(AnnotationFault::OutsideBox);
    }
    let is_partly = left < -tolerance
        || top < -tolerance
        || right > width + tolerance
        || bottom > height + tolerance;
    Ok(is_partly)
}

/// The points of an outline: x and y in turns.
pub(super) fn outline(numbers: &[f64]) -> Result<Vec<[f64; 2]>, AnnotationFault> {
    let (points, odd) = numbers.as_chunks::<2>();
    if points.len() < 3 || !odd.is_empty() {
        return Err(AnnotationFault::ShortOutline);
    }
    match numbers.iter().all(|v| v.is_finite()) {
        true => Ok(points.to_vec()),
        false => Err(AnnotationFault::NotFinite),
    }
}

/// x, y and visibility of keypoints.
pub(super) fn keypoints(numbers: &[f64]) -> Result<Vec<[f32; 3]>, AnnotationFault> {
    let (points, odd) = numbers.as_chunks::<3>();
    if !odd.is_empty() {
        return Err(AnnotationFault::WrongKeypoints);
    }
    let narrow = |point: &[f64; 3]| point.map(|v| v as f32);
    let points: Vec<[f32; 3]> = points.iter().map(narrow).collect();
    match points.iter().flatten().all(|v| v.is_finite()) {
        true => Ok(points),
        false => Err(AnnotationFault::NotFinite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_and_their_picture() {
        let size = Some((40, 60));
        for (sides, want) in [
            ([0.0, 0.0, 60.0, 40.0], Ok(false)),
            ([-0.9, 0.0, 60.9, 40.9], Ok(false)),
            ([-2.0, 0.0, 9.0, 9.0], Ok(true)),
            ([0.0, 30.0, 9.0, 42.0], Ok(true)),
            ([60.0, 0.0, 61.0, 9.0], Err(AnnotationFault::OutsideBox)),
            ([-9.0, 0.0, 0.0, 9.0], Err(AnnotationFault::OutsideBox)),
            ([5.0, 5.0, 5.0, 9.0], Err(AnnotationFault::EmptyBox)),
            ([5.0, 5.0, 9.0, 4.0], Err(AnnotationFault::EmptyBox)),
            ([f64::NAN, 5.0, 9.0, 4.0], Err(AnnotationFault::NotFinite)),
            (
                [0.0, 0.0, f64::INFINITY, 4.0],
                Err(AnnotationFault::NotFinite),
            ),
        ] {
            assert_eq!(check_box(sides, size), want, "{sides:?}");
        }
        assert_eq!(check_box([-9.0, 0.0, 0.0, 9.0], None), Ok(false));
        assert_eq!(check_share_box([0.0, 0.0, 1.005, 1.0]), Ok(false));
        assert_eq!(check_share_box([0.0, 0.0, 1.05, 1.0]), Ok(true));
        let outside = check_share_box([1.0, 0.0, 1.05, 1.0]);
        assert_eq!(outside, Err(AnnotationFault::OutsideBox));
    }
}
