//! From a recipe to the one program that runs: checked, in its planned order,
//! with what the stages at both ends take over.
//!
//! ```text
//! written order -> check -> planner -> decode + first crops, resize (fold)
//!                                   -> steps on pixels
//!                                   -> emission: normalise, cast, layout, turn
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::{Checked, Values, check, unit};
use super::draw::{Drawn, OpStep, Streams};
use super::fault::RecipeFault;
#[cfg(test)]
use super::geometry::Uniform;
use super::hand_over::CropRule;
use super::ops::{Alpha, Background, ColorOrder, DecodeMode, Op, ResizeTo, Upright};
use super::placement::Placement;
use super::planner::{self, Move, Part, Unit};
use super::step::Step;
use super::tensor::{Dtype, MemoryLayout};
use super::written::{Recipe, Reorder};
use crate::error::{Error, Result, SampleFault};

/// How large the rows of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowExtent {
    /// All of this size, pixels: it follows from the recipe alone.
    Fixed { height: u32, width: u32 },
    /// Each has its picture's own upright size: it follows from the data.
    Own,
}

impl RowExtent {
    /// Height and width of the row of an upright picture of this height and width.
    pub(crate) fn of(self, picture: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Fixed { height, width } => (height, width),
            Self::Own => picture,
        }
    }
}

/// From pixels to elements: `(v / unit - mean) / std`, cast, laid out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Emission {
    /// What becomes 1 before mean and deviation: 255 for levels, 1 for values
    /// that are what they are.
    pub unit: f32,
    /// Of each channel of the output: with `bgr` the first is blue's.
    pub mean: [f32; 3],
    pub std: [f32; 3],
    pub dtype: Dtype,
    pub layout: MemoryLayout,
    /// `grey`: one channel, which is the first of three equal ones.
    pub order: ColorOrder,
}

impl Emission {
    /// Channels of the output.
    pub(crate) fn channels(&self) -> usize {
        match self.order {
            ColorOrder::Rgb | ColorOrder::Bgr => 3,
            ColorOrder::Grey => 1,
        }
    }

    /// Whether the bytes of a row are those of its pixels, RGB8 that lies so.
    pub(crate) fn keeps(&self, placement: Placement) -> bool {
        self.dtype == Dtype::U8
            && self.layout == MemoryLayout::Nhwc
            && self.order == ColorOrder::Rgb
            && placement == Placement::default()
    }
}

/// A checked recipe: what a worker runs for each sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SampleProgram {
    recipe: Recipe,
    pub(crate) decode: DecodeMode,
    /// What shows through where a picture is transparent; none = alpha is left out.
    pub(crate) background: Option<Background>,
    pub(crate) orientation: Upright,
    pub(crate) extent: RowExtent,
    pub(crate) emission: Emission,
    /// Whether the first steps are folded into the decoding.
    pub(crate) fuses: bool,
    /// Where a device makes the rows: workers hand over crops, not rows.
    pub(crate) crops: Option<CropRule>,
    ops: Vec<Drawn>,
    /// In the order in which they run, without those that the emission takes over.
    order: Vec<Unit>,
    emitted: Vec<Unit>,
    written: Vec<Unit>,
    moves: Vec<Move>,
    refused: Vec<Move>,
    /// The operation whose size a batch may set.
    sizer: Option<usize>,
}

impl SampleProgram {
    /// Compiles a recipe.
    ///
    /// # Errors
    /// Names the operation, the number, and what would be accepted.
    pub(crate) fn compile(recipe: &Recipe) -> Result<Self> {
        Self::new(recipe).map_err(|fault| fault.of_recipe(&recipe.name))
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
                let classes = op.gives_labels()?;
                Some((op.name(), classes))
            });
            mixing.check(extent, checked.dtype, given).map_err(fault)?;
        }
        let mode = match (extent, decode.mode) {
            (RowExtent::Own, Some(DecodeMode::Scaled)) => {
                return Err(RecipeFault {
                    op: Some(0),
                    message: "decode: mode is scaled, and there is no resize, so pictures come at \
                              full size and there is nothing to scale to: use mode: full"
                        .into(),
                });
            }
            (RowExtent::Own, _) => DecodeMode::Full,
            // By itself an operation does not know what follows.
            (_, _) if reorder == Reorder::Off => DecodeMode::Full,
            (_, Some(mode)) => mode,
            (_, None) if recipe.reorder == Some(Reorder::Exact) => DecodeMode::Full,
            (_, None) => DecodeMode::Scaled,
        };
        let written = units(recipe, decode.color == ColorOrder::Grey);
        let planned = planner::plan(&recipe.ops, written.clone(), reorder);
        let mut order = planned.order;
        let emitted = take_emitted(&recipe.ops, &mut order, reorder != Reorder::Off);
        let normalized = emitted
            .iter()
            .find_map(|unit| match recipe.ops.get(unit.op) {
                Some(Op::Normalize(n)) => Some((n.mean.0, n.std.0)),
                _ => None,
            });
        let (mean, std) = normalized.unwrap_or(([0.0; 3], [1.0; 3]));
        let ops = drawn(recipe, &checked);
        let values = match normalized {
            // What stands in front of it: levels, or a colour space's.
            Some(_) => ops
                .iter()
                .find(|d| matches!(d.op, Op::Normalize(_)))
                .map_or(Values::Levels, |d| d.values),
            None => checked.known.values,
        };
        let layout = recipe.ops.iter().find_map(|op| match op {
            Op::Layout(l) => Some(l.layout),
            _ => None,
        });
        Ok(Self {
            recipe: recipe.clone(),
            decode: mode,
            background: (decode.alpha == Alpha::Composite).then_some(decode.background),
            orientation: decode.orientation,
            extent,
            emission: Emission {
                unit: unit(values),
                mean,
                std,
                dtype: checked.dtype,
                layout: layout.unwrap_or(MemoryLayout::Nchw),
                order: match (checked.known.channels, checked.known.bgr) {
                    (1, _) => ColorOrder::Grey,
                    (_, true) => ColorOrder::Bgr,
                    (_, false) => ColorOrder::Rgb,
                },
            },
            fuses: reorder != Reorder::Off,
            crops: None,
            sizer: sizer(&recipe.ops),
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
        let rule = CropRule::of(self)?;
        Ok(Self {
            crops: Some(rule),
            ..self.clone()
        })
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Units in the order in which they run, but for those that the emission takes over.
    pub(super) fn order(&self) -> &[Unit] {
        &self.order
    }

    /// Moves that were made, and that were refused.
    pub(crate) fn moves(&self) -> (&[Move], &[Move]) {
        (&self.moves, &self.refused)
    }

    /// Names of the units as written, as they run as steps, and those that the
    /// emission takes over.
    pub(crate) fn units(&self) -> [Vec<(String, Part)>; 3] {
        [&self.written, &self.order, &self.emitted].map(|units| {
            let named = units
                .iter()
                .map(|u| (planner::name(&self.recipe.ops, *u), u.part));
            named.collect()
        })
    }

    /// Elements' bytes of a row of this height and width.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> u64 {
        let elements = self.emission.channels() as u64 * u64::from(height) * u64::from(width);
        elements * self.emission.dtype.size() as u64
    }

    /// Whether batches may have sizes of their own.
    pub(crate) fn takes_sizes(&self) -> bool {
        self.sizer.is_some()
    }

    /// The operation that gives samples their labels, if one does.
    fn labeller(&self) -> Option<&Drawn> {
        self.ops.iter().find(|d| d.op.gives_labels().is_some())
    }

    /// The name of that operation.
    pub(crate) fn labelled_by(&self) -> Option<&'static str> {
        self.labeller().map(|d| d.op.name())
    }

    /// The label that is drawn for a sample, by the numbers of its position; none
    /// where the data set says it.
    pub(crate) fn label(&self, random: &impl Streams) -> Option<i64> {
        self.labeller().and_then(|d| d.label(random))
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
        random: &impl Streams,
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
        random: &impl Streams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        self.begin(steps);
        let mut at = picture;
        for (i, drawn) in self.ops.iter().enumerate() {
            let mut stream = random.stream(drawn.stream);
            at = match size.filter(|_| self.sizer == Some(i)) {
                Some(size) => resized(drawn, size).draw(i, at, &mut stream, steps)?,
                None => drawn.draw(i, at, &mut stream, steps)?,
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
    pub(crate) fn drawn_steps(
        &self,
        picture: (u32, u32),
        size: Option<(u32, u32)>,
        random: &impl Streams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        self.draw(picture, size, random, steps)?;
        let order: Vec<Unit> = self.order.iter().chain(&self.emitted).copied().collect();
        put_in_order(&order, steps);
        for s in steps {
            if self.ops.get(s.op).is_some_and(|d| d.bgr) {
                s.step = s.step.with_channels_reversed();
            }
        }
        Ok(())
    }

    /// The steps that take the most memory on a picture of this upright height
    /// and width, where the batch sets the size of the row too.
    pub(crate) fn largest_steps(
        &self,
        picture: (u32, u32),
        size: Option<(u32, u32)>,
        steps: &mut Vec<OpStep>,
    ) {
        self.begin(steps);
        let mut at = picture;
        for (i, drawn) in self.ops.iter().enumerate() {
            at = match size.filter(|_| self.sizer == Some(i)) {
                Some(size) => resized(drawn, size).largest(i, at, steps),
                None => drawn.largest(i, at, steps),
            };
        }
        put_in_order(&self.order, steps);
    }

    fn begin(&self, steps: &mut Vec<OpStep>) {
        steps.clear();
        if self.written.first() == Some(&Unit::LUMA) {
            steps.push(OpStep {
                op: Unit::LUMA.op,
                step: Step::Luma,
            });
        }
    }
}

/// Steps of units that are not in the order are left out: they are the emission's.
fn put_in_order(order: &[Unit], steps: &mut Vec<OpStep>) {
    let place = |s: &OpStep| {
        let unit = Unit {
            op: s.op,
            part: s.step.part(),
        };
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

impl Step {
    /// The kind of unit that it is of.
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::Crop(_) => Part::Crop,
            Self::Resize { .. } => Part::Resize,
            Self::Pad { .. } => Part::Pad,
            Self::Mirror | Self::UpsideDown | Self::Turn(_) => Part::Turn,
            Self::Rotate { .. } => Part::Rotate,
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Shift(_)
            | Self::Luma
            | Self::Grayscale
            | Self::Convert(..) => Part::Color,
            Self::Blur { .. } => Part::Blur,
            Self::Erase { .. } => Part::Erase,
            Self::Normalize { .. } => Part::Normalize,
            Self::Cast(_) => Part::Cast,
            Self::Augment(_) => Part::Augment,
        }
    }
}

fn units(recipe: &Recipe, luma: bool) -> Vec<Unit> {
    let first = luma.then_some(Unit::LUMA);
    let of_ops = recipe.ops.iter().enumerate().flat_map(|(op, o)| {
        let parts = planner::parts(o).iter();
        parts.map(move |&part| Unit { op, part })
    });
    first.into_iter().chain(of_ops).collect()
}

/// Takes off the end of the order what the emission does: the last cast, which is
/// the batch's type; and where operations `fuse`, a normalize in front of it, and
/// casts in front of either which change nothing.
fn take_emitted(ops: &[Op], order: &mut Vec<Unit>, fuse: bool) -> Vec<Unit> {
    let mut emitted = Vec::new();
    let (mut cast, mut normalized) = (false, false);
    let mut i = order.len();
    while i > 0 {
        i -= 1;
        let unit = order[i];
        let taken = match (unit.part, ops.get(unit.op)) {
            // Turned pixels are emitted as such.
            (Part::Turn, _) => continue,
            (Part::Cast, Some(Op::Cast(c))) if normalized || fuse && cast => c.dtype == Dtype::F32,
            (Part::Cast, _) => !std::mem::replace(&mut cast, true),
            (Part::Normalize, _) if fuse => {
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

fn drawn(recipe: &Recipe, checked: &Checked) -> Vec<Drawn> {
    let mut seen: Vec<&str> = Vec::new();
    let ops = recipe.ops.iter().zip(&checked.before).map(|(op, known)| {
        let name = op.name();
        let earlier = seen.iter().filter(|n| **n == name).count();
        seen.push(name);
        Drawn {
            op: op.clone(),
            stream: stream(name, earlier as u32),
            values: known.values,
            bgr: known.bgr,
            grey: known.channels == 1,
        }
    });
    ops.collect()
}

/// The stream of the operation of that name that has so many of its kind in front
/// of it: whatever else a recipe does, it stays. Never above 2^30.
fn stream(name: &str, earlier: u32) -> u32 {
    let of_name = twox_hash::XxHash3_128::oneshot(name.as_bytes()) as u32 & 0x3f_ffff;
    of_name << 8 | earlier & 0xff
}

/// The last operation that sets the size, when it can set another one as well.
fn sizer(ops: &[Op]) -> Option<usize> {
    let last = ops.iter().rposition(|op| {
        let parts = planner::parts(op);
        let sets = |p: &Part| matches!(p, Part::Crop | Part::Resize | Part::Pad);
        parts.iter().any(sets)
            || matches!(op, Op::Rotate90(_) | Op::RandomRotate90(_))
            || matches!(op, Op::RandomRotation(o) if o.expand)
    })?;
    match &ops[last] {
        Op::RandomResizedCrop(_) | Op::BoundedResizedCrop(_) => Some(last),
        Op::Resize(o) if matches!(o.size, Some(ResizeTo::Exact(_))) => Some(last),
        _ => None,
    }
}

fn resized(drawn: &Drawn, size: (u32, u32)) -> Drawn {
    let mut drawn = drawn.clone();
    match &mut drawn.op {
        Op::RandomResizedCrop(o) => o.size = size.into(),
        Op::BoundedResizedCrop(o) => o.size = size.into(),
        Op::Resize(o) => o.size = Some(ResizeTo::Exact(size.into())),
        _ => {}
    }
    drawn
}

/// As the recipe's text, and what is handed over: whoever gets it compiles it again.
#[derive(Serialize, Deserialize)]
struct Sent {
    recipe: String,
    crops: Option<CropRule>,
}

impl Serialize for SampleProgram {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let recipe = serde_json::to_string(&self.recipe).map_err(serde::ser::Error::custom)?;
        let crops = self.crops;
        Sent { recipe, crops }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for SampleProgram {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let sent = Sent::deserialize(d)?;
        let recipe = serde_json::from_str(&sent.recipe).map_err(serde::de::Error::custom)?;
        let program = Self::compile(&recipe).map_err(|e: Error| serde::de::Error::custom(e))?;
        Ok(Self {
            crops: sent.crops,
            ..program
        })
    }
}

/// Numbers from one stream, whatever the operation: for tests.
#[cfg(test)]
pub(crate) struct OneStream<F>(pub(crate) F);

#[cfg(test)]
impl<U: Uniform, F: Fn() -> U> Streams for OneStream<F> {
    type Stream = U;

    fn stream(&self, _: u32) -> U {
        (self.0)()
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
