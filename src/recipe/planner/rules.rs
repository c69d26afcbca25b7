//! Which unit may move after which, and how that changes values. Each rule is a function that
//! states its claim. `jobs/sample/moves_tests.rs` tests the claims on pixels: an exact move changes
//! no bit. For the other moves the test measures the change.

use crate::recipe::move_unit::{MoveUnit, OperationPart};
use crate::recipe::op::Op;
use crate::recipe::operation::{MoveRights, Operation};
use crate::recipe::tensor::DataType;
use crate::recipe::values::PaddingMode;

/// How a move changes values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveEffect {
    /// No bit changes.
    Exact,
    /// Values change. Only `reorder: fast` makes the move.
    ChangesValues,
    /// The result would be a different operation.
    Never,
}

/// The result of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MoveVerdict {
    pub(super) effect: MoveEffect,
    /// Completes "because".
    pub(super) why: &'static str,
    /// True if the moved operation, or another, has less work after the move.
    pub(super) gains: bool,
}

fn verdict(effect: MoveEffect, gains: bool, why: &'static str) -> Option<MoveVerdict> {
    Some(MoveVerdict { effect, why, gains })
}

/// Whether `unit` may move after `next`, which follows it. None: no rule applies.
pub(super) fn judge_move(ops: &[Op], unit: MoveUnit, next: MoveUnit) -> Option<MoveVerdict> {
    let rights = |unit: MoveUnit| ops.get(unit.op).map(Op::move_rights).unwrap_or_default();
    let own = rights(unit);
    match (unit.part, next.part) {
        (OperationPart::Color, OperationPart::Crop) => color_after_crop(&own),
        (OperationPart::Normalize | OperationPart::Cast, OperationPart::Crop) => value_after_crop(),
        (
            OperationPart::Color | OperationPart::Normalize | OperationPart::Cast,
            OperationPart::Turn,
        ) => value_after_turn(),
        (OperationPart::Color, OperationPart::Resize) => color_after_resize(&own),
        (OperationPart::Normalize, OperationPart::Resize) => normalize_after_resize(),
        (OperationPart::Cast, OperationPart::Resize) => cast_after_resize(&own),
        (
            OperationPart::Cast,
            OperationPart::Color | OperationPart::Normalize | OperationPart::Blur,
        ) => cast_after_value(&own, next),
        (OperationPart::Cast, OperationPart::Pad) => cast_after_pad(&own, &rights(next)),
        (OperationPart::Blur, OperationPart::Crop | OperationPart::Resize) => {
            blur_after_shape(next)
        }
        (OperationPart::Erase, OperationPart::Crop | OperationPart::Resize) => erase_after_shape(),
        _ => None,
    }
}

/// Exact, since each pixel changes independently. Exception: contrast uses the mean.
fn color_after_crop(own: &MoveRights) -> Option<MoveVerdict> {
    match own.change_after_crop {
        Some(why) => verdict(MoveEffect::ChangesValues, true, why),
        None => verdict(
            MoveEffect::Exact,
            true,
            "each pixel changes independently, and fewer are left after a crop",
        ),
    }
}

/// Exact, since each value changes independently.
fn value_after_crop() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::Exact,
        true,
        "each value changes independently, and fewer are left after a crop",
    )
}

/// Exact: a turn only moves pixels. (The mean does not depend on their order, since
/// `pixels/jitter.rs` sums whole numbers.)
fn value_after_turn() -> Option<MoveVerdict> {
    verdict(MoveEffect::Exact, false, "a turn changes no pixel")
}

/// Changes values: the resize mixes neighbours, and the colour operation rounds, clips, or is not
/// linear.
fn color_after_resize(own: &MoveRights) -> Option<MoveVerdict> {
    verdict(MoveEffect::ChangesValues, true, own.change_after_resize)
}

/// Changes values: before the move the resize works on floats, after it on whole levels. At most
/// 1.5 levels, before the division by 255 and std.
fn normalize_after_resize() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::ChangesValues,
        true,
        "the resize works on floats after normalize, and rounds to whole levels before it",
    )
}

/// Changes values, as `normalize` does.
fn cast_after_resize(own: &MoveRights) -> Option<MoveVerdict> {
    to_floats(own)?;
    verdict(
        MoveEffect::ChangesValues,
        true,
        "the resize keeps fractions of a level in floats, and rounds to whole levels before the cast",
    )
}

/// Changes values if the other operation rounds levels. Exact if it works in floats.
fn cast_after_value(own: &MoveRights, next: MoveUnit) -> Option<MoveVerdict> {
    let dtype = to_floats(own)?;
    match (next.part, dtype) {
        (OperationPart::Normalize, DataType::F32) => verdict(
            MoveEffect::Exact,
            true,
            "normalize works in f32 on levels, which f32 holds exactly",
        ),
        _ => verdict(
            MoveEffect::ChangesValues,
            true,
            "levels are rounded to whole ones where they would keep fractions in floats",
        ),
    }
}

/// Exact if the border consists of values that bytes can hold: pixels of the image or whole levels.
/// Every float type holds those exactly. No rule for a border of fractions, since the cast is made
/// for it. A cast to levels moves only after a border that few images get, so that the output
/// format can include it for the others.
fn cast_after_pad(own: &MoveRights, pad: &MoveRights) -> Option<MoveVerdict> {
    if own.casts_to? == DataType::U8 && !pad.border_is_rare {
        return None;
    }
    let (mode, fill) = pad.border?;
    let is_level = |v: f32| (0.0..=255.0).contains(&v) && v.fract() == 0.0;
    if mode == PaddingMode::Constant && !fill.0.into_iter().all(is_level) {
        return None;
    }
    verdict(
        MoveEffect::Exact,
        true,
        "the border is whole levels or pixels of the image, and bytes are a quarter of floats",
    )
}

/// The element type of a cast to floats. None: a cast to levels keeps its place.
fn to_floats(own: &MoveRights) -> Option<DataType> {
    own.casts_to.filter(|dtype| *dtype != DataType::U8)
}

fn blur_after_shape(next: MoveUnit) -> Option<MoveVerdict> {
    let why = match next.part {
        OperationPart::Crop => "the blur sees pixels beyond the crop's edges",
        _ => "the kernel is measured in pixels of the image before the resize",
    };
    verdict(MoveEffect::Never, true, why)
}

fn erase_after_shape() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::Never,
        true,
        "the erased box is a part of the image before the crop or resize",
    )
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Cast, DataType, Normalize, PadTo, PaddingMode, Recipe, Resize};
    use crate::recipe::{PerChannel, ReorderMode, SampleProgram};

    /// Bytes are padded, where floats are not needed.
    #[test]
    fn casts_move_after_borders_that_bytes_hold() {
        let sinks = |fill: f32, padding_mode| {
            let recipe = Recipe::new("border")
                .then(Resize::exact(20, 30))
                .then(Cast {
                    dtype: DataType::F32,
                })
                .then(PadTo {
                    fill: PerChannel([0.0, 255.0, fill]),
                    padding_mode,
                    ..PadTo::size((32, 40))
                })
                .then(Normalize::imagenet())
                .with_reorder(ReorderMode::Exact);
            let program = SampleProgram::compile(&recipe).unwrap();
            let (moves, _) = program.moves();
            (moves.iter()).any(|m| m.op == "cast" && m.behind == "pad_to" && m.exact)
        };
        assert!(sinks(128.0, PaddingMode::Constant));
        for fill in [127.5, -1.0, 256.0] {
            assert!(!sinks(fill, PaddingMode::Constant), "{fill}");
            // The fill has no meaning there.
            assert!(sinks(fill, PaddingMode::Edge), "{fill}");
        }
    }
}
