//! Which unit may move behind which, and what that does to the values. Each rule
//! is a function with its obligation, which `jobs/sample/moves_tests.rs` tests on
//! pixels: an exact move changes no bit; of the others it measures by how much.

use crate::recipe::move_unit::{MoveUnit, OperationPart};
use crate::recipe::op::Op;
use crate::recipe::operation::{MoveRights, Operation};
use crate::recipe::tensor::DataType;
use crate::recipe::values::PaddingMode;

/// What a move does to the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveEffect {
    /// Not a bit changes.
    Exact,
    /// Values change; made by `reorder: fast`.
    ChangesValues,
    /// It would be another operation.
    Never,
}

/// The answer of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MoveVerdict {
    pub(super) effect: MoveEffect,
    /// Completes "because".
    pub(super) why: &'static str,
    /// The mover has less to do behind it, or others have.
    pub(super) gains: bool,
}

fn verdict(effect: MoveEffect, gains: bool, why: &'static str) -> Option<MoveVerdict> {
    Some(MoveVerdict { effect, why, gains })
}

/// May `unit` stand behind `next`, which follows it? None: nothing speaks for it.
pub(super) fn judge_move(ops: &[Op], unit: MoveUnit, next: MoveUnit) -> Option<MoveVerdict> {
    let rights = |unit: MoveUnit| ops.get(unit.op).map(Op::move_rights).unwrap_or_default();
    let own = rights(unit);
    match (unit.part, next.part) {
        (OperationPart::Color, OperationPart::Crop) => color_behind_crop(&own),
        (OperationPart::Normalize | OperationPart::Cast, OperationPart::Crop) => {
            value_behind_crop()
        }
        (
            OperationPart::Color | OperationPart::Normalize | OperationPart::Cast,
            OperationPart::Turn,
        ) => value_behind_turn(),
        (OperationPart::Color, OperationPart::Resize) => color_behind_resize(&own),
        (OperationPart::Normalize, OperationPart::Resize) => normalize_behind_resize(),
        (OperationPart::Cast, OperationPart::Resize) => cast_behind_resize(&own),
        (
            OperationPart::Cast,
            OperationPart::Color | OperationPart::Normalize | OperationPart::Blur,
        ) => cast_behind_value(&own, next),
        (OperationPart::Cast, OperationPart::Pad) => cast_behind_pad(&own, &rights(next)),
        (OperationPart::Blur, OperationPart::Crop | OperationPart::Resize) => {
            blur_behind_shape(next)
        }
        (OperationPart::Erase, OperationPart::Crop | OperationPart::Resize) => erase_behind_shape(),
        _ => None,
    }
}

/// Exact: each pixel is changed by itself, wherever it stands. But for the mean
/// that contrast is measured from.
fn color_behind_crop(own: &MoveRights) -> Option<MoveVerdict> {
    match own.change_after_crop {
        Some(why) => verdict(MoveEffect::ChangesValues, true, why),
        None => verdict(
            MoveEffect::Exact,
            true,
            "each pixel is changed by itself, and fewer are left behind a crop",
        ),
    }
}

/// Exact: each value is changed by itself.
fn value_behind_crop() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::Exact,
        true,
        "each value is changed by itself, and fewer are left behind a crop",
    )
}

/// Exact: a turn moves pixels, and changes none. (A mean is the same for every
/// order of its pixels: `pixels/jitter.rs` sums in whole numbers.)
fn value_behind_turn() -> Option<MoveVerdict> {
    verdict(MoveEffect::Exact, false, "a turn changes no pixel")
}

/// Changes values: the resize mixes neighbours, and the colour operation is not
/// linear, or rounds, or clips.
fn color_behind_resize(own: &MoveRights) -> Option<MoveVerdict> {
    verdict(MoveEffect::ChangesValues, true, own.change_after_resize)
}

/// Changes values: in front of it the resize works on floats, behind it on whole
/// levels. At most a level and a half, before the division by 255 and std.
fn normalize_behind_resize() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::ChangesValues,
        true,
        "the resize works on floats behind normalize, and rounds to whole levels in front of it",
    )
}

/// Changes values, as `normalize` does.
fn cast_behind_resize(own: &MoveRights) -> Option<MoveVerdict> {
    to_floats(own)?;
    verdict(
        MoveEffect::ChangesValues,
        true,
        "the resize keeps fractions of a level in floats, and rounds to whole levels before the cast",
    )
}

/// Changes values where the other one rounds levels; exact where it works in
/// floats anyway.
fn cast_behind_value(own: &MoveRights, next: MoveUnit) -> Option<MoveVerdict> {
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

/// Exact where the border is made of what bytes hold too: pixels of the picture, or
/// whole levels, which every type of floats holds exactly. Nothing is said otherwise:
/// a border of fractions is what the cast is for. A cast to levels moves behind a border
/// that few pictures get, so that the others are emitted with it.
fn cast_behind_pad(own: &MoveRights, pad: &MoveRights) -> Option<MoveVerdict> {
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
        "the border is whole levels or pixels of the picture, and bytes are a quarter of floats",
    )
}

/// The type, when the cast is one to floats: a cast to levels keeps its place.
fn to_floats(own: &MoveRights) -> Option<DataType> {
    own.casts_to.filter(|dtype| *dtype != DataType::U8)
}

fn blur_behind_shape(next: MoveUnit) -> Option<MoveVerdict> {
    let why = match next.part {
        OperationPart::Crop => "the blur sees pixels beyond the crop's edges",
        _ => "the kernel is measured in pixels of the picture before the resize",
    };
    verdict(MoveEffect::Never, true, why)
}

fn erase_behind_shape() -> Option<MoveVerdict> {
    verdict(
        MoveEffect::Never,
        true,
        "the erased box is a part of the picture before the crop or resize",
    )
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Cast, DataType, Normalize, PadTo, PaddingMode, Recipe, Resize};
    use crate::recipe::{PerChannel, ReorderMode, SampleProgram};

    /// Bytes are padded where floats need not be.
    #[test]
    fn casts_sink_behind_borders_that_bytes_hold() {
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
            // Of no meaning there.
            assert!(sinks(fill, PaddingMode::Edge), "{fill}");
        }
    }
}
