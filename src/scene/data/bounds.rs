//! Bounds of a scene's numbers. Rays are float32, and trainers square their lengths: beyond these
//! bounds numbers become infinite or zero.
//!
//! Runs in the consumer. Pure. Cameras have their own bounds (`Camera::check`).

use crate::data::index::shown;

/// The largest length in a world: its square fits float32.
const MOST: f64 = 1e18;
/// The smallest scale, and the shortest axis.
const LEAST: f64 = 1e-18;

/// # Errors
/// A number of a pose's rows is not finite or too large, or an axis is too short. As text.
pub(super) fn check_pose(rows: &[[f64; 4]; 3]) -> Result<(), String> {
    if let Some(value) = (rows.iter().flatten()).find(|value| !value.is_finite()) {
        return Err(format!("{value} in a pose is not a finite number"));
    }
    if let Some(value) = (rows.iter().flatten()).find(|value| value.abs() > MOST) {
        return Err(format!(
            "{value:e} is too large for a pose: use numbers up to {MOST:e}"
        ));
    }
    let is_short = |axis: [f64; 3]| axis.iter().all(|value| value.abs() < LEAST);
    match (0..3).any(|column| is_short(rows.map(|row| row[column]))) {
        true => Err(format!(
            "an axis is shorter than {LEAST:e}: use axes of length 1"
        )),
        false => Ok(()),
    }
}

/// # Errors
/// A scale that is not above 0, or out of bounds. As text.
pub(super) fn check_scale(scale: f64) -> Result<(), String> {
    match (LEAST..=MOST).contains(&scale) {
        true => Ok(()),
        false => Err(format!(
            "{scale:?} is out of range: use more than 0, from {LEAST:e} to {MOST:e}"
        )),
    }
}

/// # Errors
/// A time that does not fit float32. As text.
pub(super) fn check_time(time: f64) -> Result<(), String> {
    match (time as f32).is_finite() {
        true => Ok(()),
        false => Err(format!(
            "{time:e} is not a time: use a number that float32 holds, such as 0 to 1"
        )),
    }
}

/// Formats a number with few digits, even if it has 300.
pub(super) fn shown_number(value: f64) -> String {
    let text = value.to_string();
    match text.len() {
        0..=20 => text,
        _ => format!("{value:e}"),
    }
}

/// Quotes a text of a scene's file, shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text.as_bytes()))
}

/// Whether a point's coordinates fit float32.
pub(super) fn is_place(place: [f64; 3]) -> bool {
    place.iter().all(|value| (*value as f32).is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pose(change: impl Fn(&mut [[f64; 4]; 3])) -> Result<(), String> {
        let mut rows = [
            [1.0, 0.0, 0.0, 5.0],
            [0.0, 1.0, 0.0, -5.0],
            [0.0, 0.0, 1.0, 0.0],
        ];
        change(&mut rows);
        check_pose(&rows)
    }

    #[test]
    fn a_number_of_300_digits_is_printed_short() {
        let printed = [0.0, -8.0, 7.5, 1e20, -1e300, 5e-324, f64::INFINITY].map(shown_number);
        let expected = ["0", "-8", "7.5", "1e20", "-1e300", "5e-324", "inf"];
        assert_eq!(printed, expected);
        assert!(quoted(&"1".repeat(300)).len() < 80);
    }

    #[test]
    fn numbers_that_float32_cannot_square_are_refused_by_their_value() {
        assert_eq!(pose(|_| ()), Ok(()));
        assert_eq!(pose(|rows| rows[1][3] = -1e18), Ok(()));
        assert_eq!(
            pose(|rows| rows[1][3] = -1e19).unwrap_err(),
            "-1e19 is too large for a pose: use numbers up to 1e18"
        );
        assert_eq!(
            pose(|rows| rows[0][0] = f64::NAN).unwrap_err(),
            "NaN in a pose is not a finite number"
        );
        assert_eq!(
            pose(|rows| rows[2][2] = 5e-324).unwrap_err(),
            "an axis is shorter than 1e-18: use axes of length 1"
        );
        for good in [1e-18, 1.0, 1e18] {
            assert_eq!(check_scale(good), Ok(()));
        }
        for bad in [
            0.0,
            -1.0,
            5e-324,
            1e-19,
            1e19,
            1e308,
            f64::NAN,
            f64::INFINITY,
        ] {
            assert!(
                check_scale(bad).unwrap_err().contains("out of range"),
                "{bad}"
            );
        }
        assert_eq!(check_time(-3e38), Ok(()));
        assert!(
            check_time(1e308)
                .unwrap_err()
                .starts_with("1e308 is not a time")
        );
        assert!(check_time(f64::NAN).is_err());
        assert!(is_place([1e38, 0.0, -1e38]) && !is_place([0.0, 1e39, 0.0]));
    }
}
