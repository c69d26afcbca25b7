//! Numbers in their ranges.

use super::MAX_SIDE;
use crate::recipe::ops::{Size, Span};

pub(super) fn check_side(what: &str, side: u32) -> Result<(), String> {
    if (1..=MAX_SIDE).contains(&side) {
        Ok(())
    } else {
        Err(format!(
            "{what} is {side}, it must lie between 1 and {MAX_SIDE}"
        ))
    }
}

pub(super) fn sides(size: Size) -> Result<(), String> {
    check_side("size", size.height).and_then(|()| check_side("size", size.width))
}

pub(super) fn probability(p: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&p) {
        Ok(())
    } else {
        Err(format!("p is {p}, it must lie between 0 and 1"))
    }
}

pub(super) fn finite(what: &str, values: &[f32]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(bad) => Err(format!("{what} holds {bad}, it must be finite")),
        None => Ok(()),
    }
}

/// `low` is left out where it is 0 for things that must be above it.
pub(super) fn range(what: &str, span: Span, low: f64, high: f64) -> Result<(), String> {
    let Span(a, b) = span;
    let positive = matches!(what, "scale" | "ratio" | "sigma");
    let inside = a.is_finite() && b.is_finite() && low <= a && a <= b && b <= high;
    if inside && !(positive && a <= 0.0) {
        return Ok(());
    }
    let bounds = match (positive, high == f64::MAX) {
        (true, true) => "above 0".to_owned(),
        (true, false) => format!("above 0, at most {high}"),
        (false, true) => format!("at least {low}"),
        (false, false) => format!("{low} to {high}"),
    };
    Err(format!(
        "{what} is {a} to {b}, it must be a range of finite numbers, the lower first, {bounds}"
    ))
}
