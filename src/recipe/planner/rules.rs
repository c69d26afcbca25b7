//! Which unit may move behind which, and what that does to the values. Each rule
//! is a function with its obligation, which `jobs/sample/moves_tests.rs` tests on
//! pixels: an exact move changes no bit; of the others it measures by how much.

use crate::recipe::op::Op;
use crate::recipe::operation::{Operation, Rights};
use crate::recipe::tensor::Dtype;
use crate::recipe::unit::{Part, Unit};
use crate::recipe::values::PaddingMode;

/// What a move does to the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Not a bit changes.
    Exact,
    /// Values change; made by `reorder: fast`.
    ChangesValues,
    /// It would be another operation.
    Never,
}

/// The answer of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) effect: Effect,
    /// Completes "because".
    pub(super) why: &'static str,
    /// The mover has less to do behind it, or others have.
    pub(super) gains: bool,
}

fn verdict(effect: Effect, gains: bool, why: &'static str) -> Option<Verdict> {
    Some(Verdict { effect, why, gains })
}

/// May `unit` stand behind `next`, which follows it? None: nothing speaks for it.
pub(super) fn pass(ops: &[Op], unit: Unit, next: Unit) -> Option<Verdict> {
    let rights = |unit: Unit| ops.get(unit.op).map(Op::rights).unwrap_or_default();
    let own = rights(unit);
    match (unit.part, next.part) {
        (Part::Color, Part::Crop) => color_behind_crop(&own),
        (Part::Normalize | Part::Cast, Part::Crop) => value_behind_crop(),
        (Part::Color | Part::Normalize | Part::Cast, Part::Turn) => value_behind_turn(),
        (Part::Color, Part::Resize) => color_behind_resize(&own),
        (Part::Normalize, Part::Resize) => normalize_behind_resize(),
        (Part::Cast, Part::Resize) => cast_behind_resize(&own),
        (Part::Cast, Part::Color | Part::Normalize | Part::Blur) => cast_behind_value(&own, next),
        (Part::Cast, Part::Pad) => cast_behind_pad(&own, &rights(next)),
        (Part::Blur, Part::Crop | Part::Resize) => blur_behind_shape(next),
        (Part::Erase, Part::Crop | Part::Resize) => erase_behind_shape(),
        _ => None,
    }
}

/// Exact: each pixel is changed by itself, wherever it stands. But for the mean
/// that contrast is measured from.
fn color_behind_crop(own: &Rights) -> Option<Verdict> {
    match own.behind_crop {
        Some(why) => verdict(Effect::ChangesValues, true, why),
        None => verdict(
            Effect::Exact,
            true,
            "each pixel is changed by itself, and fewer are left behind a crop",
        ),
    }
}

/// Exact: each value is changed by itself.
fn value_behind_crop() -> Option<Verdict> {
    verdict(
        Effect::Exact,
        true,
        "each value is changed by itself, and fewer are left behind a crop",
    )
}

/// Exact: a turn moves pixels, and changes none. (A mean is the same for every
/// order of its pixels: `pixels/jitter.rs` sums in whole numbers.)
fn value_behind_turn() -> Option<Verdict> {
    verdict(Effect::Exact, false, "a turn changes no pixel")
}

/// Changes values: the resize mixes neighbours, and the colour operation is not
/// linear, or rounds, or clips.
fn color_behind_resize(own: &Rights) -> Option<Verdict> {
    verdict(Effect::ChangesValues, true, own.behind_resize)
}

/// Changes values: in front of it the resize works on floats, behind it on whole
/// levels. At most a level and a half, before the division by 255 and std.
fn normalize_behind_resize() -> Option<Verdict> {
    verdict(
        Effect::ChangesValues,
        true,
        "the resize works on floats behind normalize, and rounds to whole levels in front of it",
    )
}

/// Changes values, as `normalize` does.
fn cast_behind_resize(own: &Rights) -> Option<Verdict> {
    to_floats(own)?;
    verdict(
        Effect::ChangesValues,
        true,
        "the resize keeps fractions of a level in floats, and rounds to whole levels before the cast",
    )
}

/// Changes values where the other one rounds levels; exact where it works in
/// floats anyway.
fn cast_behind_value(own: &Rights, next: Unit) -> Option<Verdict> {
    let dtype = to_floats(own)?;
    match (next.part, dtype) {
        (Part::Normalize, Dtype::F32) => verdict(
            Effect::Exact,
            true,
            "normalize works in f32 on levels, which f32 holds exactly",
        ),
        _ => verdict(
            Effect::ChangesValues,
            true,
            "levels are rounded to whole ones where they would keep fractions in floats",
        ),
    }
}

/// Exact where the border is made of what bytes hold too: pixels of the picture, or
/// whole levels, which every type of floats holds exactly. Nothing is said otherwise:
/// a border of fractions is what the cast is for. A cast to levels moves behind a border
/// that few pictures get, so that the others are emitted with it.
fn cast_behind_pad(own: &Rights, pad: &Rights) -> Option<Verdict> {
    if own.casts_to? == Dtype::U8 && !pad.border_is_rare {
        return None;
    }
    let (mode, fill) = pad.border?;
    let is_level = |v: f32| (0.0..=255.0).contains(&v) && v.fract() == 0.0;
    if mode == PaddingMode::Constant && !fill.0.into_iter().all(is_level) {
        return None;
    }
    verdict(
        Effect::Exact,
        true,
        "the border is whole levels or pixels of the picture, and bytes are a quarter of floats",
    )
}

/// The type, when the cast is one to floats: a cast to levels keeps its place.
fn to_floats(own: &Rights) -> Option<Dtype> {
    own.casts_to.filter(|dtype| *dtype != Dtype::U8)
}

fn blur_behind_shape(next: Unit) -> Option<Verdict> {
    let why = match next.part {
        Part::Crop => "the blur sees pixels beyond the crop's edges",
        _ => "the kernel is measured in pixels of the picture before the resize",
    };
    verdict(Effect::Never, true, why)
}

fn erase_behind_shape() -> Option<Verdict> {
    verdict(
        Effect::Never,
        true,
        "the erased box is a part of the picture before the crop or resize",
    )
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Cast, Dtype, Normalize, PadTo, PaddingMode, Recipe, Resize};
    use crate::recipe::{PerChannel, Reorder, SampleProgram};

    /// Bytes are padded where floats need not be.
    #[test]
    fn casts_sink_behind_borders_that_bytes_hold() {
        let sinks = |fill: f32, padding_mode| {
            let recipe = Recipe::new("border")
                .then(Resize::exact(20, 30))
                .then(Cast { dtype: Dtype::F32 })
                .then(PadTo {
                    fill: PerChannel([0.0, 255.0, fill]),
                    padding_mode,
                    ..PadTo::size((32, 40))
                })
                .then(Normalize::imagenet())
                .with_reorder(Reorder::Exact);
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
