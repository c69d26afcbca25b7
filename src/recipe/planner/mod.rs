//! From the written order of operations to the one that runs.
//!
//! Operations that change values one pixel at a time sink behind the crops and
//! resizes that follow, where fewer pixels are left to change; everything else
//! keeps its place. Which may pass which is in `rules`, one small function each.

mod rules;

use serde::Serialize;

use super::ops::{JitterStyle, Op};
use super::written::Reorder;
use rules::Effect;

/// What the planner moves as one: an operation, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Unit {
    /// Place in `Recipe::ops`; the decoding's own conversion to grey has that of
    /// no operation.
    pub(crate) op: usize,
    pub(crate) part: Part,
}

impl Unit {
    /// `decode: {color: grey}`, behind the decoding.
    pub(crate) const LUMA: Self = Self {
        op: usize::MAX,
        part: Part::Color,
    };
}

/// Kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    Crop,
    Resize,
    Turn,
    Pad,
    Rotate,
    /// Changes each pixel by itself.
    Color,
    Normalize,
    Cast,
    Blur,
    Erase,
    /// Whatever a policy draws: sees the whole picture, and never moves.
    Augment,
}

/// A move that was made, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The operation that moves.
    pub op: String,
    /// The one that it moves behind.
    pub behind: String,
    /// True: not a bit of any batch changes by it.
    pub exact: bool,
    /// Why that is so.
    pub why: String,
}

/// An order, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) order: Vec<Unit>,
    pub(crate) moves: Vec<Move>,
    pub(crate) refused: Vec<Move>,
}

/// The units of an operation, in the order in which it does them.
pub(crate) fn parts(op: &Op) -> &'static [Part] {
    match op {
        Op::Decode(_) | Op::Layout(_) => &[],
        Op::Resize(_) => &[Part::Resize],
        Op::RandomResizedCrop(_) | Op::BoundedResizedCrop(_) => &[Part::Crop, Part::Resize],
        Op::RandomCrop(o) => {
            if o.pad_if_needed || o.padding != super::ops::Padding::default() {
                &[Part::Pad, Part::Crop]
            } else {
                &[Part::Crop]
            }
        }
        Op::CenterCrop(_) => &[Part::Crop],
        Op::RandomHorizontalFlip(_)
        | Op::RandomVerticalFlip(_)
        | Op::Rotate90(_)
        | Op::RandomRotate90(_) => &[Part::Turn],
        Op::RandomRotation(_) => &[Part::Rotate],
        Op::Pad(_) | Op::PadTo(_) => &[Part::Pad],
        // As a policy's: several steps in a drawn order, of which one sees the whole
        // picture.
        Op::ColorJitter(o) if o.style == JitterStyle::Pillow => &[Part::Augment],
        Op::ColorJitter(_)
        | Op::Grayscale(_)
        | Op::RandomGrayscale(_)
        | Op::ConvertColor(_)
        | Op::PcaLighting(_) => &[Part::Color],
        Op::AutoAugment(_)
        | Op::RandAugment(_)
        | Op::TrivialAugment(_)
        | Op::AugMix(_)
        | Op::TimmAugment(_)
        | Op::Cutout(_) => &[Part::Augment],
        Op::GaussianBlur(_) => &[Part::Blur],
        Op::RandomErasing(_) | Op::CropWithPadding(_) => &[Part::Erase],
        Op::Normalize(_) => &[Part::Normalize],
        Op::Cast(_) => &[Part::Cast],
    }
}

/// Plans the order of `written` units of `ops`.
pub(crate) fn plan(ops: &[Op], written: Vec<Unit>, reorder: Reorder) -> Planned {
    let mut planned = Planned {
        order: written,
        moves: Vec::new(),
        refused: Vec::new(),
    };
    if reorder == Reorder::Off {
        return planned;
    }
    // The last first: whoever stands in the way has left by then.
    for i in (0..planned.order.len()).rev() {
        sink(ops, &mut planned, i, reorder);
    }
    planned.moves.reverse();
    planned.refused.reverse();
    planned
}

/// Moves the unit at `i` as far back as its rules allow and anything is gained.
fn sink(ops: &[Op], planned: &mut Planned, i: usize, reorder: Reorder) {
    let unit = planned.order[i];
    let mut to = i;
    let (mut gained, mut passed) = (Vec::new(), Vec::new());
    for (j, next) in planned.order.iter().enumerate().skip(i + 1) {
        let Some(verdict) = rules::pass(ops, unit, *next) else {
            break;
        };
        let a_move = Move {
            op: name(ops, unit),
            behind: name(ops, *next),
            exact: verdict.effect == Effect::Exact,
            why: verdict.why.to_owned(),
        };
        let allowed = match verdict.effect {
            Effect::Exact => true,
            Effect::ChangesValues => reorder == Reorder::Fast,
            Effect::Never => false,
        };
        if !allowed {
            planned.refused.push(a_move);
            break;
        }
        passed.push(a_move);
        if verdict.gains {
            to = j;
            gained.append(&mut passed);
        }
    }
    planned.order.remove(i);
    planned.order.insert(to, unit);
    gained.reverse();
    planned.moves.extend(gained);
}

/// As a user reads it.
pub(crate) fn name(ops: &[Op], unit: Unit) -> String {
    let Some(op) = ops.get(unit.op) else {
        return "decode (grey)".into();
    };
    match (op, unit.part) {
        (Op::RandomResizedCrop(_), Part::Crop) => "random_resized_crop (its crop)".into(),
        (Op::RandomResizedCrop(_), _) => "random_resized_crop (its resize)".into(),
        (Op::BoundedResizedCrop(_), Part::Crop) => "bounded_resized_crop (its crop)".into(),
        (Op::BoundedResizedCrop(_), _) => "bounded_resized_crop (its resize)".into(),
        (Op::RandomCrop(_), Part::Pad) => "random_crop (its padding)".into(),
        _ => op.name().into(),
    }
}
