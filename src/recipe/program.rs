//! From a recipe to the one program that runs: checked, in its planned order,
//! with what the stages at both ends take over.
//!
//! ```text
//! written order -> check -> planner -> decode + first crops, resize (fold)
//!                                   -> steps on pixels
//!                                   -> emission: normalise, cast, layout, turn
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::{CheckedRecipe, RecipeFault, check};
use super::crop_rule::CropRule;
use super::file::{de as tree, toml};
use super::move_unit::{MoveUnit, OperationPart};
use super::op::Op;
use super::operation::Operation;
use super::pixel_state::{ValueKind, normalize_unit};
use super::placement::PixelPlacement;
use super::planner::{self, OperationMove};
use super::program_op::ProgramOp;
use super::random::{RandomStreams, stream_id};
use super::recipe_spec::{Recipe, ReorderMode};
use super::row_extent::RowExtent;
use super::size_bounds::{HeightWidth, SizeBounds};
use super::step::Step;
use super::steps::{InUnit, LargestCase, LargestStep, OpStep, StepSink};
use super::tensor::{DataType, MemoryLayout};
use super::values::{AlphaMode, ColorOrder, DecodeMode, OrientationMode, TruncationPolicy};
use crate::error::{Error, Result, SampleFault};
use crate::picture::AlphaPolicy;

/// From pixels to elements: `(v / unit - mean) / std`, cast, laid out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputFormat {
    /// What becomes 1 before mean and deviation: 255 for levels, 1 for values
    /// that are what they are.
    pub unit: f32,
    /// Of each channel of the output: with `bgr` the first is blue's.
    pub mean: [f32; 3],
    pub std: [f32; 3],
    pub dtype: DataType,
    pub layout: MemoryLayout,
    /// `grey`: one channel, which is the first of three equal ones.
    pub order: ColorOrder,
    /// Channels of zeros behind the others, in layout nchw.
    pub zero_channels: usize,
}

impl OutputFormat {
    /// Channels of the output.
    pub(crate) fn channels(&self) -> usize {
        match self.order {
            ColorOrder::Rgb | ColorOrder::Bgr => 3 + self.zero_channels,
            ColorOrder::Grey => 1 + self.zero_channels,
        }
    }

    /// Whether the bytes of a row are those of its pixels, RGB8 that lies so.
    pub(crate) fn is_plain_rgb8(&self, placement: PixelPlacement) -> bool {
        self.dtype == DataType::U8
            && self.layout == MemoryLayout::Nhwc
            && self.order == ColorOrder::Rgb
            && placement == PixelPlacement::default()
    }
}

/// A checked recipe: what a worker runs for each sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SampleProgram {
    recipe: Recipe,
    pub(crate) decode: DecodeMode,
    pub(crate) transparency: AlphaPolicy,
    pub(crate) orientation: OrientationMode,
    pub(crate) truncated: TruncationPolicy,
    pub(crate) extent: RowExtent,
    pub(crate) output_format: OutputFormat,
    /// Whether the first steps are folded into the decoding.
    pub(crate) fuses: bool,
    /// Where a device makes the rows: workers hand over crops, not rows.
    pub(crate) crops: Option<CropRule>,
    ops: Vec<ProgramOp>,
    /// In the order in which they run, without those that the emission takes over.
    order: Vec<MoveUnit>,
    emitted: Vec<MoveUnit>,
    written: Vec<MoveUnit>,
    moves: Vec<OperationMove>,
    refused: Vec<OperationMove>,
    /// The operation whose size a batch may set.
    sizer: Option<usize>,
    /// Operations that go by that size, and set none.
    followers: Vec<usize>,
}

impl SampleProgram {
    /// Compiles a recipe.
    ///
    /// # Errors
    /// Names the operation, the number, and what would be accepted.
    pub(crate) fn compile(recipe: &Recipe) -> Result<Self> {
        Self::new(recipe).map_err(|fault| fault.into_error(&recipe.name))
    }

    /// The same with `reorder: fast`, where that is another order; none of a program whose
    /// rows a device makes.
    pub(crate) fn with_fast_order(&self) -> Option<Self> {
        if self.crops.is_some() {
            return None;
        }
        let fast = Self::compile(&self.recipe.clone().with_reorder(ReorderMode::Fast)).ok()?;
        let as_written = Self {
            recipe: self.recipe.clone(),
            ..fast.clone()
        };
        (as_written != *self).then_some(fast)
    }

    /// Whether a recipe compiles.
    pub(crate) fn check(recipe: &Recipe) -> std::result::Result<(), RecipeFault> {
        Self::new(recipe).map(|_| ())
    }

    fn new(recipe: &Recipe) -> std::result::Result<Self, RecipeFault> {
        let checked = check(recipe)?;
        let reorder = recipe.reorder.unwrap_or_default();
        let decode = recipe.decode();
        let extent = match checked.size {
            Some((height, width)) => RowExtent::Fixed { height, width },
            None => RowExtent::Own,
        };
        if let Some(mixing) = &recipe.mixing {
            let fault = |(op, message): (Option<usize>, _)| RecipeFault {
                op: Some(recipe.ops.len() + op.map_or(0, |op| op + 1)),
                message,
            };
            let given = recipe.ops.iter().find_map(|op| {
                let classes = op.label_count()?;
                Some((op.name(), classes))
            });
            mixing.check(extent, checked.dtype, given).map_err(fault)?;
        }
        let mode = match (extent, decode.mode) {
            (RowExtent::Own, Some(DecodeMode::Scaled)) => {
                return Err(RecipeFault {
                    op: Some(0),
                    message: "decode: mode is scaled, and the recipe has no resize to scale for: \
                              use mode: full"
                        .into(),
                });
            }
            (RowExtent::Own, _) => DecodeMode::Full,
            // By itself an operation does not know what follows.
            (_, _) if reorder == ReorderMode::Off => DecodeMode::Full,
            (_, Some(mode)) => mode,
            (_, None) if recipe.reorder == Some(ReorderMode::Exact) => DecodeMode::Full,
            (_, None) => DecodeMode::Scaled,
        };
        let settled = settled(recipe, &checked);
        let written = units(&settled, decode.color == ColorOrder::Grey);
        let planned = planner::plan(&settled, written.clone(), reorder);
        let mut order = planned.order;
        let emitted = take_emitted(&settled, &mut order, reorder != ReorderMode::Off);
        let normalized = emitted
            .iter()
            .find_map(|unit| match recipe.ops.get(unit.op) {
                Some(Op::Normalize(n)) => Some((n.mean.0, n.std.0)),
                _ => None,
            });
        let (mean, std) = normalized.unwrap_or(([0.0; 3], [1.0; 3]));
        let ops = drawn(settled, &checked);
        let values = match normalized {
            // What stands in front of it: levels, or a colour space's.
            Some(_) => ops
                .iter()
                .find(|d| matches!(d.op, Op::Normalize(_)))
                .map_or(ValueKind::Levels, |d| d.known.values),
            None => checked.known.values,
        };
        let layout = recipe.ops.iter().find_map(|op| match op {
            Op::Layout(l) => Some(l.layout),
            _ => None,
        });
        let zero = zero_channel(recipe, layout, checked.known.is_grey())?;
        Ok(Self {
            recipe: recipe.clone(),
            decode: mode,
            transparency: match decode.alpha {
                AlphaMode::Composite => AlphaPolicy::Composite(decode.background),
                AlphaMode::Drop => AlphaPolicy::Ignore,
            },
            orientation: decode.orientation,
            truncated: decode.truncated,
            extent,
            output_format: OutputFormat {
                unit: normalize_unit(values),
                mean,
                std,
                dtype: checked.dtype,
                layout: layout.unwrap_or(MemoryLayout::Nchw),
                order: match (checked.known.channels, checked.known.bgr) {
                    (1, _) => ColorOrder::Grey,
                    (_, true) => ColorOrder::Bgr,
                    (_, false) => ColorOrder::Rgb,
                },
                zero_channels: usize::from(zero),
            },
            fuses: reorder != ReorderMode::Off,
            crops: None,
            sizer: sizer(&recipe.ops),
            followers: followers(&recipe.ops),
            ops,
            order,
            emitted,
            written,
            moves: planned.moves,
            refused: planned.refused,
        })
    }

    /// The same, with rows made by a device out of crops.
    ///
    /// # Errors
    /// Why a device cannot: workers then hand over finished rows.
    pub(crate) fn with_crops(&self) -> std::result::Result<Self, String> {
        let rule = CropRule::of(&self.recipe, self.extent, self.fuses, &self.order)?;
        Ok(Self {
            crops: Some(rule),
            ..self.clone()
        })
    }

    /// The same, with room for coded crops of so many bytes in the rows that a device makes.
    pub(crate) fn with_coded_bytes(&self, bytes: usize) -> Self {
        Self {
            crops: self.crops.map(|rule| rule.with_coded_bytes(bytes)),
            ..self.clone()
        }
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Moves that were made, and that were refused.
    pub(crate) fn moves(&self) -> (&[OperationMove], &[OperationMove]) {
        (&self.moves, &self.refused)
    }

    /// Names of the units as written, as they run as steps, and those that the
    /// emission takes over.
    pub(crate) fn units(&self) -> [Vec<(String, OperationPart)>; 3] {
        [&self.written, &self.order, &self.emitted].map(|units| {
            let named = units
                .iter()
                .map(|u| (planner::unit_name(&self.recipe.ops, *u), u.part));
            named.collect()
        })
    }

    /// Elements' bytes of a row of this height and width.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> u64 {
        let elements = self.output_format.channels() as u64 * u64::from(height) * u64::from(width);
        elements * self.output_format.dtype.size() as u64
    }

    /// Whether batches may have sizes of their own.
    pub(crate) fn allows_batch_sizes(&self) -> bool {
        self.sizer.is_some()
    }

    /// The name of an operation that goes by the size of the batch, though it sets none.
    pub(crate) fn size_dependent_op(&self) -> Option<&'static str> {
        let first = self.followers.first().and_then(|op| self.ops.get(*op));
        first.map(|drawn| drawn.op.name())
    }

    /// Whether an operation asks for the size that a batch sets.
    fn is_sized(&self, op: usize) -> bool {
        self.sizer == Some(op) || self.followers.contains(&op)
    }

    /// The operation that gives samples their labels, if one does.
    fn labeller(&self) -> Option<&ProgramOp> {
        self.ops.iter().find(|d| d.op.label_count().is_some())
    }

    /// The name of that operation.
    pub(crate) fn labelling_op(&self) -> Option<&'static str> {
        self.labeller().map(|d| d.op.name())
    }

    /// The label that is drawn for a sample, by the numbers of its position; none
    /// where the data set says it.
    pub(crate) fn draw_label(&self, random: &impl RandomStreams) -> Option<i64> {
        self.labeller().and_then(|d| d.draw_label(random))
    }

    /// The steps of a sample, in the order in which they run. `picture` is the
    /// upright height and width; `size` that of the row, when the batch sets it.
    ///
    /// # Errors
    /// When the picture is too small for a crop.
    pub(crate) fn steps(
        &self,
        picture: (u32, u32),
        size: Option<(u32, u32)>,
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        self.draw(picture, size, random, steps)?;
        put_in_order(&self.order, steps);
        Ok(())
    }

    /// The steps in the written order.
    fn draw(
        &self,
        picture: (u32, u32),
        size: Option<(u32, u32)>,
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        steps.clear();
        steps.extend(self.luma());
        let mut at = picture;
        for (i, drawn) in self.ops.iter().enumerate() {
            at = match size.filter(|_| self.is_sized(i)) {
                Some(size) => drawn.with_size(size).draw(i, at, random, steps)?,
                None => drawn.draw(i, at, random, steps)?,
            };
        }
        Ok(())
    }

    /// As [`SampleProgram::steps`], with those that the emission takes over,
    /// behind the others, and colours in the order of the recipe's channels: for
    /// the eye.
    ///
    /// # Errors
    /// When the picture is too small for a crop.
    pub(crate) fn display_steps(
        &self,
        picture: (u32, u32),
        size: Option<(u32, u32)>,
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        self.draw(picture, size, random, steps)?;
        let order: Vec<MoveUnit> = self.order.iter().chain(&self.emitted).copied().collect();
        put_in_order(&order, steps);
        for s in steps {
            if self.ops.get(s.op).is_some_and(|d| d.known.bgr) {
                s.step = s.step.with_channels_reversed();
            }
        }
        Ok(())
    }

    /// The steps that take the most memory on a picture of this upright height
    /// and width, where the batch sets the size of the row too; with or without those
    /// that need not be drawn.
    pub(crate) fn largest_steps(
        &self,
        picture: HeightWidth,
        size: Option<HeightWidth>,
        takes_optional: bool,
        steps: &mut Vec<LargestStep>,
    ) {
        let mut most = LargestCase::new(SizeBounds::exactly(picture), takes_optional, steps);
        if let Some(luma) = self.luma() {
            most.begin(luma.op, &[luma.part]);
            most.push(luma.step);
        }
        let mut at = picture;
        for (i, drawn) in self.ops.iter().enumerate() {
            at = match size.filter(|_| self.is_sized(i)) {
                Some(size) => drawn.with_size(size).largest(i, at, &mut most),
                None => drawn.largest(i, at, &mut most),
            };
        }
        put_in_order(&self.order, steps);
    }

    /// Whether samples of the same size may take different amounts of memory.
    pub(crate) fn draws(&self) -> bool {
        self.ops.iter().any(|drawn| drawn.op.draws())
    }

    /// The decoding's own conversion to grey.
    fn luma(&self) -> Option<OpStep> {
        let is_grey = self.written.first() == Some(&MoveUnit::LUMA);
        is_grey.then(|| OpStep::new(MoveUnit::LUMA.op, Step::Luma))
    }
}

/// Steps of units that are not in the order are left out: they are the emission's.
fn put_in_order<S: InUnit>(order: &[MoveUnit], steps: &mut Vec<S>) {
    let place = |s: &S| {
        let unit = s.unit();
        order.iter().position(|u| *u == unit)
    };
    steps.retain(|s| place(s).is_some());
    // Stable, and in place: there are few.
    for i in 1..steps.len() {
        let mut j = i;
        while j > 0 && place(&steps[j - 1]) > place(&steps[j]) {
            steps.swap(j - 1, j);
            j -= 1;
        }
    }
}

fn units(ops: &[Op], luma: bool) -> Vec<MoveUnit> {
    let first = luma.then_some(MoveUnit::LUMA);
    let of_ops = ops.iter().enumerate().flat_map(|(op, o)| {
        let parts = o.parts().iter();
        parts.map(move |&part| MoveUnit { op, part })
    });
    first.into_iter().chain(of_ops).collect()
}

/// Whether batches get a channel of zeros.
fn zero_channel(
    recipe: &Recipe,
    layout: Option<MemoryLayout>,
    grey: bool,
) -> Result<bool, RecipeFault> {
    let is_one = |(_, op): &(usize, &Op)| matches!(op, Op::ZeroChannel(_));
    let mut all = recipe.ops.iter().enumerate().filter(is_one);
    let Some((first, _)) = all.next() else {
        return Ok(false);
    };
    let fault = |op: usize, what: &str| {
        Err(RecipeFault {
            op: Some(op),
            message: format!("zero_channel {what}"),
        })
    };
    if let Some((second, _)) = all.next() {
        return fault(second, "is written twice: remove one");
    }
    if grey {
        return fault(
            first,
            "adds a fourth channel to colour pictures, and these are grey: remove it",
        );
    }
    if layout == Some(MemoryLayout::Nhwc) {
        return fault(first, "needs layout nchw: remove layout: nhwc");
    }
    Ok(true)
}

/// Takes off the end of the order what the emission does: the last cast, which is
/// the batch's type; and where operations `fuse`, a normalize in front of it, and
/// casts in front of either which change nothing.
fn take_emitted(ops: &[Op], order: &mut Vec<MoveUnit>, fuse: bool) -> Vec<MoveUnit> {
    let mut emitted = Vec::new();
    let (mut cast, mut normalized) = (false, false);
    let mut i = order.len();
    while i > 0 {
        i -= 1;
        let unit = order[i];
        let taken = match (unit.part, ops.get(unit.op)) {
            // Turned pixels are emitted as such.
            (OperationPart::Turn, _) => continue,
            (OperationPart::Cast, Some(Op::Cast(c))) if normalized || fuse && cast => {
                c.dtype == DataType::F32
            }
            (OperationPart::Cast, _) => !std::mem::replace(&mut cast, true),
            (OperationPart::Normalize, _) if fuse => {
                cast = true;
                !std::mem::replace(&mut normalized, true)
            }
            _ => false,
        };
        if !taken {
            break;
        }
        emitted.insert(0, order.remove(i));
    }
    emitted
}

/// The operations, without parts that their places rule out.
fn settled(recipe: &Recipe, checked: &CheckedRecipe) -> Vec<Op> {
    let at = recipe.ops.iter().zip(&checked.states_before);
    at.map(|(op, known)| op.simplified(known).unwrap_or_else(|| op.clone()))
        .collect()
}

fn drawn(ops: Vec<Op>, checked: &CheckedRecipe) -> Vec<ProgramOp> {
    let mut seen: Vec<&str> = Vec::new();
    let ops = ops
        .into_iter()
        .zip(&checked.states_before)
        .map(|(op, known)| {
            let name = op.name();
            let earlier = seen.iter().filter(|n| **n == name).count();
            seen.push(name);
            ProgramOp {
                op,
                stream: stream_id(name, earlier as u32),
                known: *known,
            }
        });
    ops.collect()
}

fn followers(ops: &[Op]) -> Vec<usize> {
    let follows = |op: &Op| !op.sets_size() && op.with_size((1, 1)).is_some();
    let all = ops.iter().enumerate();
    all.filter(|(_, op)| follows(op)).map(|(i, _)| i).collect()
}

/// The last operation that sets the size, when it can set another one as well.
fn sizer(ops: &[Op]) -> Option<usize> {
    let last = ops.iter().rposition(Op::sets_size)?;
    ops[last].with_size((1, 1)).map(|_| last)
}

/// As the recipe's text, and what is handed over: whoever gets it compiles it again.
#[derive(Serialize, Deserialize)]
struct ProgramMessage {
    recipe: String,
    crops: Option<CropRule>,
}

impl Serialize for SampleProgram {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let recipe = toml::to_toml(&self.recipe).map_err(serde::ser::Error::custom)?;
        let crops = self.crops;
        ProgramMessage { recipe, crops }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for SampleProgram {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let sent = ProgramMessage::deserialize(d)?;
        let tree = toml::read(&sent.recipe).map_err(serde::de::Error::custom)?;
        let recipe = tree::read(&tree).map_err(serde::de::Error::custom)?;
        let program = Self::compile(&recipe).map_err(|e: Error| serde::de::Error::custom(e))?;
        Ok(Self {
            crops: sent.crops,
            ..program
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{ColorJitter, GaussianBlur, RandomErasing, RandomHorizontalFlip};

    #[test]
    fn every_operation_has_a_stream_of_its_own() {
        let recipe = |n: usize| {
            let ops = (0..n).flat_map(|_| {
                [
                    RandomHorizontalFlip::default().into(),
                    ColorJitter::default().into(),
                    GaussianBlur::new(3).into(),
                    RandomErasing::default().into(),
                ]
            });
            Recipe {
                ops: ops.collect(),
                ..Recipe::new("many")
            }
        };
        let streams = |n| -> Vec<u32> {
            let program = SampleProgram::compile(&recipe(n)).unwrap();
            program.ops.iter().map(|o| o.stream).collect()
        };
        let many = streams(200);
        let different: std::collections::HashSet<_> = many.iter().collect();
        assert_eq!(different.len(), many.len());
        assert!(many.iter().all(|s| *s < 1 << 30));
        // More of them shift nobody.
        assert_eq!(streams(1), many[..4]);
    }
}
