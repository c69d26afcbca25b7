//! What the numbers of policies may be. That of the pixels in front of them is
//! `recipe/check/`'s.

use super::augmix;
use super::timm::Policy;
use crate::recipe::ops::{
    AugMix, ChainDepth, Cutout, Interpolation, Op, PerChannel, RandAugment, RandTable, TimmAugment,
};

/// Most operations of a RandAugment.
const MOST_OPS: u32 = 16;
const MOST_HOLES: u32 = 64;
/// Filters that one is drawn from.
const MOST_FILTERS: usize = 16;

/// Whether every number of a policy is in its range; what is no policy is.
///
/// # Errors
/// Names the number, and what would be accepted.
pub(in crate::recipe) fn check(op: &Op) -> Result<(), String> {
    match op {
        Op::RandAugment(o) => rand(o),
        Op::TrivialAugment(o) => {
            filter(o.interpolation)?;
            color("fill", o.fill)
        }
        Op::AugMix(o) => augmix(o),
        Op::TimmAugment(o) => timm(o),
        Op::Cutout(o) => cutout(o),
        _ => Ok(()),
    }
}

fn rand(o: &RandAugment) -> Result<(), String> {
    filter(o.interpolation)?;
    color("fill", o.fill)?;
    let m = o.magnitude;
    match o.table {
        RandTable::Torchvision if m.fract() != 0.0 || !(0.0..=30.0).contains(&m) => {
            return Err(format!(
                "magnitude is {m}, of table torchvision it must be a whole number of 0 to 30"
            ));
        }
        RandTable::Paddle | RandTable::Paddle3 if !(0.0..=10.0).contains(&m) => {
            return Err(format!(
                "magnitude is {m}, of tables paddle and paddle3 it must lie between 0 and 10"
            ));
        }
        // Which has no use for it, nor for a number of operations.
        RandTable::Paddle4 => return Ok(()),
        _ => {}
    }
    count("num_ops", o.num_ops, MOST_OPS)
}

fn augmix(o: &AugMix) -> Result<(), String> {
    number("p", o.p, 0.0, 1.0)?;
    number("alpha", o.alpha, 0.01, 100.0)?;
    number("severity", o.severity, 0.1, 10.0)?;
    count("width", o.width, augmix::MOST)?;
    match o.depth {
        ChainDepth::Fixed(depth) => count("depth", depth, augmix::MOST),
        ChainDepth::Random => Ok(()),
    }
}

fn timm(o: &TimmAugment) -> Result<(), String> {
    Policy::parse(&o.config)?;
    number("p", o.p, 0.0, 1.0)?;
    if !(1..=MOST_FILTERS).contains(&o.interpolation.len()) {
        return Err(format!(
            "interpolation has {} values, it must have 1 to {MOST_FILTERS}: [bicubic], or \
             [bilinear, bicubic] of which each operation draws one",
            o.interpolation.len()
        ));
    }
    o.interpolation.iter().try_for_each(|i| filter(*i))?;
    color("fill", o.fill)
}

fn cutout(o: &Cutout) -> Result<(), String> {
    number("p", o.p, 0.0, 1.0)?;
    count("holes", o.holes, MOST_HOLES)?;
    count("length", o.length, crate::recipe::check::MAX_SIDE)?;
    o.value.map_or(Ok(()), |value| color("value", value))
}

fn number(what: &str, v: f64, low: f64, high: f64) -> Result<(), String> {
    match (low..=high).contains(&v) {
        true => Ok(()),
        false => Err(format!(
            "{what} is {v}, it must lie between {low} and {high}"
        )),
    }
}

fn count(what: &str, n: u32, most: u32) -> Result<(), String> {
    match (1..=most).contains(&n) {
        true => Ok(()),
        false => Err(format!("{what} is {n}, it must lie between 1 and {most}")),
    }
}

fn color(what: &str, PerChannel(v): PerChannel) -> Result<(), String> {
    let bad = v
        .iter()
        .find(|v| !(0.0..=255.0).contains(*v) || v.fract() != 0.0);
    match bad {
        None => Ok(()),
        Some(bad) => Err(format!(
            "{what} holds {bad}, it must be whole levels, 0 to 255"
        )),
    }
}

/// Pillow's `transform` and `rotate` have these.
fn filter(interpolation: Interpolation) -> Result<(), String> {
    match interpolation {
        Interpolation::Nearest | Interpolation::Bilinear | Interpolation::Bicubic => Ok(()),
        Interpolation::Lanczos | Interpolation::Area => Err(format!(
            "interpolation is {}: nearest, bilinear and bicubic are served",
            interpolation.name()
        )),
    }
}
