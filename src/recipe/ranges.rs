//! Range checks for the numbers of operations.

use super::values::{InterpolationMode, Padding, PerChannel, Size, Span};

/// The largest side of an image, in pixels: the limit of JPEG.
pub(crate) const MAX_SIDE: u32 = 65_535;

/// The largest factor of a colour.
pub(crate) const MAX_FACTOR: f64 = 1000.0;

pub(crate) fn check_side(what: &str, side: u32) -> Result<(), String> {
    count(what, side, MAX_SIDE)
}

pub(crate) fn sides(size: Size) -> Result<(), String> {
    check_side("size", size.height).and_then(|()| check_side("size", size.width))
}

pub(crate) fn probability(p: f64) -> Result<(), String> {
    number("p", p, 0.0, 1.0)
}

pub(crate) fn finite(what: &str, values: &[f32]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(bad) => Err(format!("{what} holds {bad}: use finite numbers")),
        None => Ok(()),
    }
}

/// `low` is excluded if it is 0 and the value must be positive.
pub(crate) fn range(what: &str, span: Span, low: f64, high: f64) -> Result<(), String> {
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
        "{what} is {a} to {b}: use finite numbers, the lower first, {bounds}"
    ))
}

pub(crate) fn number(what: &str, v: f64, low: f64, high: f64) -> Result<(), String> {
    match (low..=high).contains(&v) {
        true => Ok(()),
        false => Err(format!("{what} is {v}: use {low} to {high}")),
    }
}

pub(crate) fn count(what: &str, n: u32, most: u32) -> Result<(), String> {
    match (1..=most).contains(&n) {
        true => Ok(()),
        false => Err(format!("{what} is {n}: use 1 to {most}")),
    }
}

pub(crate) fn whole_levels(what: &str, PerChannel(v): PerChannel) -> Result<(), String> {
    let bad = v
        .iter()
        .find(|v| !(0.0..=255.0).contains(*v) || v.fract() != 0.0);
    match bad {
        None => Ok(()),
        Some(bad) => Err(format!(
            "{what} holds {bad}: use whole levels from 0 to 255"
        )),
    }
}

/// Of two filters, one is drawn. Both must allow the same decoding, since the forecast of memory
/// knows one of them.
pub(crate) fn either_filter(
    one: InterpolationMode,
    other: Option<InterpolationMode>,
) -> Result<(), String> {
    let blends = |i: InterpolationMode| {
        matches!(
            i,
            InterpolationMode::Bilinear | InterpolationMode::Bicubic | InterpolationMode::Lanczos
        )
    };
    match other {
        Some(other) if !blends(one) || !blends(other) => Err(format!(
            "interpolation is {} and interpolation_or is {}: use bilinear, bicubic or lanczos for \
             both, or remove interpolation_or",
            one.name(),
            other.name()
        )),
        _ => Ok(()),
    }
}

/// The filters that Pillow's `transform` and `rotate` support.
pub(crate) fn pillow_filter(interpolation: InterpolationMode) -> Result<(), String> {
    match interpolation {
        InterpolationMode::Nearest
        | InterpolationMode::Labels(_)
        | InterpolationMode::Bilinear
        | InterpolationMode::Bicubic => Ok(()),
        InterpolationMode::Lanczos
        | InterpolationMode::Area
        | InterpolationMode::Pillow(_)
        | InterpolationMode::Torchvision(_) => Err(format!(
            "interpolation is {}: use nearest, bilinear or bicubic",
            interpolation.name()
        )),
    }
}

pub(crate) fn padding(p: Padding) -> Result<(), String> {
    let most = p.left.max(p.top).max(p.right).max(p.bottom);
    if most > MAX_SIDE {
        return Err(format!("padding is {most}: use at most {MAX_SIDE}"));
    }
    Ok(())
}
