//! Compiles a recipe to the program that runs: checked, in the planned order, with the first and
//! last operations moved into the decoder and the output format.
//!
//! ```text
//! written order -> check -> planner -> decode + first crops, resize (fold)
//!                                   -> steps on pixels
//!                                   -> output format: normalise, cast, layout, turn
//! ```
//!
//! - `joined`: recipes that join several samples.

mod joined;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::{CheckedRecipe, RecipeFault, check};
use super::crop_check::{CropFormat, check_crop, check_format, check_whole, name_of};
use super::crop_rule::CropRule;
use super::drawn_picture::DrawnPicture;
use super::file::{de as tree, toml};
use super::hull_rule::{HullCrop, HullRule};
use super::joints::SampleJoint;
use super::move_unit::{MoveUnit, OperationPart};
use super::op::Op;
use super::operation::Operation;
use super::patches::PatchOrder;
use super::pixel_state::{ValueKind, normalize_unit};
use super::placement::PixelPlacement;
use super::planner::{self, OperationMove};
use super::program_op::ProgramOp;
use super::random::{CropStreams, RandomStreams, stream_id};
use super::recipe_spec::{Recipe, ReorderMode};
use super::row_extent::RowExtent;
use super::size_bounds::{HeightWidth, SizeBounds};
use super::step::Step;
use super::steps::{InUnit, LargestCase, LargestStep, OpStep, StepSink};
use super::tensor::{DataType, MemoryLayout};
use super::values::{AlphaMode, ColorOrder, DecodeMode, OrientationMode, TruncationPolicy};
use crate::error::{Error, Result, SampleFault};
use crate::picture::AlphaPolicy;

/// How pixels become the numbers of a batch: `(v / unit - mean) / std`, then cast and layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputFormat {
    /// The divisor before mean and deviation: 255 for levels, 1 for all other values.
    pub unit: f32,
    /// One number per output channel. With `bgr`, blue is first.
    pub mean: [f32; 3],
    pub std: [f32; 3],
    pub dtype: DataType,
    pub layout: MemoryLayout,
    /// `grey`: one channel, the first of three equal ones.
    pub order: ColorOrder,
    /// The number of zero channels after the others, in layout nchw.
    pub zero_channels: usize,
    /// If a row is patches. Layout has no effect then.
    pub patches: Option<PatchOrder>,
}

impl OutputFormat {
    /// The number of output channels.
    pub(crate) fn channels(&self) -> usize {
        match self.order {
            ColorOrder::Rgb | ColorOrder::Bgr => 3 + self.zero_channels,
            ColorOrder::Grey => 1 + self.zero_channels,
        }
    }

    /// Values in a row of this height and width. Of patches: without those after the image.
    pub(crate) fn row_values(&self, height: u64, width: u64) -> u64 {
        match self.patches {
            Some(order) => order.image_values(height, width),
            None => self.channels() as u64 * height * width,
        }
    }

    /// Whether a row has exactly the bytes of the stored pixels: RGB8 without a flip or a turn.
    pub(crate) fn is_plain_rgb8(&self, placement: PixelPlacement) -> bool {
        self.dtype == DataType::U8
            && self.layout == MemoryLayout::Nhwc
            && self.order == ColorOrder::Rgb
            && self.patches.is_none()
            && placement == PixelPlacement::default()
    }
}

/// A checked recipe, compiled to what a worker runs for each sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SampleProgram {
    recipe: Recipe,
    pub(crate) decode: DecodeMode,
    pub(crate) transparency: AlphaPolicy,
    pub(crate) orientation: OrientationMode,
    pub(crate) truncated: TruncationPolicy,
    pub(crate) extent: RowExtent,
    pub(crate) output_format: OutputFormat,
    /// Whether the first operations are merged into the decoding.
    pub(crate) fuses: bool,
    /// False if rows have no pixels: no image is read.
    pub(crate) has_pixels: bool,
    /// Set if a device makes the rows: workers hand over crops instead of rows.
    pub(crate) crops: Option<CropRule>,
    /// Set if a sample has several crops and a device makes them: workers hand over hulls.
    pub(crate) hulls: Option<HullRule>,
    ops: Vec<ProgramOp>,
    /// Units in the order in which they run, without those of the output format.
    order: Vec<MoveUnit>,
    emitted: Vec<MoveUnit>,
    written: Vec<MoveUnit>,
    moves: Vec<OperationMove>,
    refused: Vec<OperationMove>,
    /// The operation whose size a batch may set.
    sizer: Option<usize>,
    /// Operations that depend on that size and do not set it.
    followers: Vec<usize>,
    /// Of several crops: operations that have the random numbers of the first crop.
    shared: Vec<usize>,
    /// The programs of all crops of an image. This one is then that of the first. None: a sample is
    /// one image.
    set: Option<Box<CropPrograms>>,
    /// The stages before this one, if pictures of several samples are joined.
    joined: Option<Box<JoinedStages>>,
    /// The programs of the canvas and of the overview, if a row has tiles and an overview. This
    /// program is that of the canvas.
    tiles: Option<Box<[SampleProgram; 2]>>,
}

/// The programs of all crops of an image.
#[derive(Debug, Clone, PartialEq)]
struct CropPrograms {
    /// The recipe of all crops.
    recipe: Recipe,
    /// One program for each crop, in order. A crop with a count is repeated.
    programs: Vec<SampleProgram>,
}

/// The stages of a recipe before the last one.
#[derive(Debug, Clone, PartialEq)]
struct JoinedStages {
    /// The whole recipe.
    recipe: Recipe,
    stages: Vec<JoinedStage>,
}

/// The operations before a joint, and the joint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinedStage {
    /// Makes the pictures that are joined.
    pub(crate) program: SampleProgram,
    /// The largest height and width of these pictures.
    pub(crate) most: HeightWidth,
    pub(crate) joint: SampleJoint,
    /// The name of the joint in a recipe.
    pub(crate) name: &'static str,
    /// The random stream of the joint.
    pub(crate) stream: u32,
    /// Height and width of the result.
    pub(crate) canvas: HeightWidth,
}

/// Whether a stage makes the rows of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StagePlace {
    Inner,
    Last,
}

impl StagePlace {
    /// Whether files may be decoded at a smaller scale in rows of this extent.
    fn may_scale(self, extent: RowExtent) -> bool {
        self == Self::Inner || extent != RowExtent::Own
    }
}

impl SampleProgram {
    /// Compiles a recipe.
    ///
    /// # Errors
    /// Names the operation, the number, and what is accepted.
    pub(crate) fn compile(recipe: &Recipe) -> Result<Self> {
        Self::new(recipe).map_err(|fault| fault.into_error(&recipe.name))
    }

    /// The same program with `reorder: fast`. None if that changes nothing, if a device makes the
    /// rows, if a sample has several crops or tiles, or if samples are joined.
    pub(crate) fn with_fast_order(&self) -> Option<Self> {
        let has_one = self.set.is_none() && self.tiles.is_none() && !self.is_joined();
        if self.crops.is_some() || !has_one {
            return None;
        }
        let fast = Self::compile(&self.recipe.clone().with_reorder(ReorderMode::Fast)).ok()?;
        let as_written = Self {
            recipe: self.recipe.clone(),
            ..fast.clone()
        };
        (as_written != *self).then_some(fast)
    }

    /// Checks that a recipe compiles.
    pub(crate) fn check(recipe: &Recipe) -> std::result::Result<(), RecipeFault> {
        Self::new(recipe).map(|_| ())
    }

    fn new(recipe: &Recipe) -> std::result::Result<Self, RecipeFault> {
        match recipe.crops.is_empty() {
            true if recipe.joins_samples() => Self::compile_joined(recipe),
            true => Self::compile_one(recipe),
            false => Self::compile_crops(recipe),
        }
    }

    /// Compiles a recipe with crops. The result is the program of the first crop, with those of all
    /// crops beside it. No batch sets its size.
    fn compile_crops(recipe: &Recipe) -> std::result::Result<Self, RecipeFault> {
        check_whole(recipe)?;
        let Some(first_crop) = recipe.crops.first() else {
            let message = "crops is an empty list: write crops, or ops".into();
            return Err(RecipeFault { op: None, message });
        };
        let mut programs: Vec<Self> = Vec::new();
        let mut ops_before = 0;
        for (number, crop) in recipe.crops.iter().enumerate() {
            let fault = |(op, message): (Option<usize>, String)| RecipeFault {
                op: Some(ops_before + op.unwrap_or(0)),
                message: format!("{}: {message}", name_of(number, crop)),
            };
            check_crop(crop, first_crop).map_err(fault)?;
            if let Some(op) = crop.recipe.ops.iter().position(|op| op.joint().is_some()) {
                let name = crop.recipe.ops[op].name();
                let message = format!("{name} joins samples, and crops are of one: use ops");
                return Err(fault((Some(op), message)));
            }
            let program = Self::compile_one(&crop.recipe);
            let mut program = program.map_err(|of| fault((of.op, of.message)))?;
            let shared = crop.counted_ops().take(crop.shared as usize);
            program.shared = shared.map(|(op, _)| op).collect();
            let first = programs.first().map(Self::crop_format);
            check_format(&program.crop_format(), first.as_ref()).map_err(fault)?;
            ops_before += crop.recipe.ops.len();
            programs.extend((0..crop.count).map(|_| program.clone()));
        }
        let Some(first) = programs.first().cloned() else {
            let message = "crops is an empty list: write crops, or ops".into();
            return Err(RecipeFault { op: None, message });
        };
        let set = CropPrograms {
            recipe: recipe.clone(),
            programs,
        };
        Ok(Self {
            sizer: None,
            set: Some(Box::new(set)),
            ..first
        })
    }

    fn crop_format(&self) -> CropFormat<'_> {
        CropFormat {
            recipe: &self.recipe,
            extent: self.extent,
            dtype: self.output_format.dtype,
            layout: self.output_format.layout,
            channels: self.output_format.channels(),
            size_dependent_op: self.size_dependent_op(),
        }
    }

    /// Compiles a recipe without crops.
    fn compile_one(recipe: &Recipe) -> std::result::Result<Self, RecipeFault> {
        let program = Self::compile_checked(recipe, &check(recipe)?, StagePlace::Last)?;
        let mut overview = recipe.clone();
        let found = overview.ops.iter_mut().find_map(|op| match op {
            Op::Tiles(tiles) => {
                let resize = tiles.overview();
                Some((op, resize))
            }
            _ => None,
        });
        let Some((op, resize)) = found else {
            return Ok(program);
        };
        *op = Op::Resize(resize);
        // Both draw the same numbers: their other operations are equal, and a resize draws none.
        let overview = Self::compile_checked(&overview, &check(&overview)?, StagePlace::Last)?;
        let tiles = Some(Box::new([program.clone(), overview]));
        Ok(Self { tiles, ..program })
    }

    /// Compiles checked operations without joints.
    fn compile_checked(
        recipe: &Recipe,
        checked: &CheckedRecipe,
        place: StagePlace,
    ) -> std::result::Result<Self, RecipeFault> {
        let reorder = recipe.reorder.unwrap_or_default();
        let decode = recipe.decode();
        let extent = match checked.size {
            Some((height, width)) => RowExtent::Fixed { height, width },
            None => checked
                .known
                .patches
                .map_or(RowExtent::Own, RowExtent::Patches),
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
            (extent, Some(DecodeMode::Scaled)) if !place.may_scale(extent) => {
                return Err(RecipeFault {
                    op: Some(0),
                    message: "decode: mode is scaled, and the recipe has no resize to scale for: \
                              use mode: full"
                        .into(),
                });
            }
            (extent, _) if !place.may_scale(extent) => DecodeMode::Full,
            // With `reorder: off`, the decoder must not use what follows.
            (_, _) if reorder == ReorderMode::Off => DecodeMode::Full,
            (_, Some(mode)) => mode,
            (_, None) if recipe.reorder == Some(ReorderMode::Exact) => DecodeMode::Full,
            (_, None) => DecodeMode::Scaled,
        };
        let simplified_ops = simplified_ops(recipe, checked);
        let written = units(&simplified_ops, decode.color == ColorOrder::Grey);
        let planned = planner::plan(&simplified_ops, written.clone(), reorder);
        let mut order = planned.order;
        let emitted = take_emitted(&simplified_ops, &mut order, reorder != ReorderMode::Off);
        let normalized = emitted
            .iter()
            .find_map(|unit| match recipe.ops.get(unit.op) {
                Some(Op::Normalize(n)) => Some((n.mean.0, n.std.0)),
                _ => None,
            });
        let (mean, std) = normalized.unwrap_or(([0.0; 3], [1.0; 3]));
        let ops = drawn(simplified_ops, checked);
        let values = match normalized {
            // The values before `normalize`: levels, or those of a colour space.
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
                patches: checked.known.patches.map(|rule| rule.order()),
            },
            fuses: reorder != ReorderMode::Off,
            has_pixels: true,
            crops: None,
            hulls: None,
            sizer: sizer(&recipe.ops),
            followers: followers(&recipe.ops),
            shared: Vec::new(),
            set: None,
            joined: None,
            tiles: None,
            ops,
            order,
            emitted,
            written,
            moves: planned.moves,
            refused: planned.refused,
        })
    }

    /// Whether a sample has several crops of its image, or one crop in a list.
    pub(crate) fn is_crop_set(&self) -> bool {
        self.set.is_some()
    }

    /// The program of each crop of an image, or of its canvas and its overview. Only this one
    /// unless a sample has several.
    pub(crate) fn crop_programs(&self) -> &[Self] {
        match (&self.set, &self.tiles) {
            (Some(set), _) => &set.programs,
            (None, Some(tiles)) => &tiles[..],
            (None, None) => std::slice::from_ref(self),
        }
    }

    /// Whether a row has tiles and, for most images, an overview: the first program is that of the
    /// canvas, the second that of the overview.
    pub(crate) fn has_tiles(&self) -> bool {
        self.tiles.is_some()
    }

    /// Whether crops of an image have operations with the random numbers of the first crop.
    pub(crate) fn shares_operations(&self) -> bool {
        let crops = self.crop_programs().iter();
        crops.into_iter().any(|crop| !crop.shared.is_empty())
    }

    /// Height, width and bytes of each crop of a sample. Empty unless a sample has several.
    pub(crate) fn crop_rows(&self) -> Vec<((u32, u32), u64)> {
        let programs = match &self.set {
            Some(set) => &set.programs[..],
            None => &[],
        };
        let row = |program: &Self| {
            let size = program.extent.of((0, 0));
            (size, program.row_bytes(size))
        };
        programs.iter().map(row).collect()
    }

    /// The same program for a device that makes the rows from crops.
    ///
    /// # Errors
    /// The reason why a device cannot. Workers then hand over finished rows.
    pub(crate) fn with_crops(&self) -> std::result::Result<Self, String> {
        if self.is_crop_set() {
            return Err("the recipe makes several crops of each image".into());
        }
        if self.is_joined() {
            return Err("the recipe joins images of several samples".into());
        }
        let rule = CropRule::of(&self.recipe, self.extent, self.fuses, &self.order)?;
        Ok(Self {
            crops: Some(rule),
            ..self.clone()
        })
    }

    /// The same program for a device that makes all crops of an image from its hull.
    ///
    /// # Errors
    /// The reason why a device cannot. Workers then hand over finished crops.
    pub(crate) fn with_hulls(&self) -> std::result::Result<Self, String> {
        let Some(set) = &self.set else {
            return Err("the recipe makes one crop of each image".into());
        };
        let crops = set.programs.iter().map(|program| HullCrop {
            recipe: &program.recipe,
            extent: program.extent,
            fuses: program.fuses,
            zero_channels: program.output_format.zero_channels,
            order: &program.order,
        });
        Ok(Self {
            hulls: Some(HullRule::of(crops)?),
            ..self.clone()
        })
    }

    /// The same program whose workers finish all crops.
    pub(crate) fn without_hulls(&self) -> Self {
        Self {
            hulls: None,
            ..self.clone()
        }
    }

    /// The same program for a run that reads no image: rows are empty.
    pub(crate) fn without_pixels(&self) -> Self {
        Self {
            has_pixels: false,
            crops: None,
            hulls: None,
            set: None,
            joined: None,
            tiles: None,
            ..self.clone()
        }
    }

    /// The same program with rows of three bytes for each label, decoded at full size.
    pub(super) fn with_label_rows(&self) -> Self {
        Self {
            decode: DecodeMode::Full,
            transparency: AlphaPolicy::Ignore,
            orientation: OrientationMode::Stored,
            output_format: OutputFormat {
                unit: 1.0,
                mean: [0.0; 3],
                std: [1.0; 3],
                dtype: DataType::U8,
                layout: MemoryLayout::Nhwc,
                order: ColorOrder::Rgb,
                zero_channels: 0,
                patches: None,
            },
            crops: None,
            hulls: None,
            joined: None,
            tiles: None,
            ..self.clone()
        }
    }

    /// The same program with `bytes` reserved for coded crops in each row.
    pub(crate) fn with_coded_bytes(&self, bytes: usize) -> Self {
        Self {
            crops: self.crops.map(|rule| rule.with_coded_bytes(bytes)),
            ..self.clone()
        }
    }

    /// The recipe. Of several crops: that of the first. Of joined samples: that of the last stage.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The recipe that was compiled.
    fn whole_recipe(&self) -> &Recipe {
        match (&self.set, &self.joined) {
            (Some(set), _) => &set.recipe,
            (None, Some(joined)) => &joined.recipe,
            (None, None) => &self.recipe,
        }
    }

    /// The moves that were made, and those that were rejected.
    pub(crate) fn moves(&self) -> (&[OperationMove], &[OperationMove]) {
        (&self.moves, &self.refused)
    }

    /// The names of the units: as written, in running order, and those of the output format.
    pub(crate) fn units(&self) -> [Vec<(String, OperationPart)>; 3] {
        [&self.written, &self.order, &self.emitted].map(|units| {
            let named = units
                .iter()
                .map(|u| (planner::unit_name(&self.recipe.ops, *u), u.part));
            named.collect()
        })
    }

    /// The bytes of a row of this height and width. Of patches: without those after the image.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> u64 {
        if !self.has_pixels {
            return 0;
        }
        let elements = (self.output_format).row_values(height.into(), width.into());
        elements * self.output_format.dtype.size() as u64
    }

    /// The bytes of a row for an upright image of this height and width, with patches after it.
    pub(crate) fn picture_row_bytes(&self, picture: (u32, u32)) -> u64 {
        let RowExtent::Patches(rule) = self.extent else {
            return self.row_bytes(self.extent.of(picture));
        };
        rule.row_values(rule.grid(picture).ok()) * self.output_format.dtype.size() as u64
    }

    /// Whether a batch may set the size of its rows.
    pub(crate) fn allows_batch_sizes(&self) -> bool {
        self.sizer.is_some()
    }

    /// Whether a cover_crop sets the size of rows.
    pub(crate) fn sets_size_by_cover(&self) -> bool {
        let op = self.sizer.and_then(|op| self.ops.get(op));
        op.is_some_and(|drawn| matches!(drawn.op, Op::CoverCrop(_)))
    }

    /// Top and left edge of the crop by the cover_crop that sets the size of rows. None without
    /// one, and for an image that cannot be cropped.
    pub(crate) fn cover_crop(
        &self,
        picture: &DrawnPicture<'_>,
        random: &impl RandomStreams,
    ) -> Option<(u32, u32)> {
        let sizer = self.sizer.filter(|_| self.sets_size_by_cover())?;
        let mut steps = Vec::new();
        self.draw(picture, |_| random, &mut steps).ok()?;
        steps.iter().find_map(|of| match of.step {
            Step::Crop(rect) if of.op == sizer => Some((rect.top, rect.left)),
            _ => None,
        })
    }

    /// The name of an operation that depends on the size of the batch without setting it.
    pub(crate) fn size_dependent_op(&self) -> Option<&'static str> {
        let first = self.followers.first().and_then(|op| self.ops.get(*op));
        first.map(|drawn| drawn.op.name())
    }

    /// Whether an operation depends on the size that a batch sets.
    fn is_sized(&self, op: usize) -> bool {
        self.sizer == Some(op) || self.followers.contains(&op)
    }

    /// The operation that sets the labels of samples, if there is one.
    fn labeller(&self) -> Option<&ProgramOp> {
        self.ops.iter().find(|d| d.op.label_count().is_some())
    }

    /// The name of that operation.
    pub(crate) fn labelling_op(&self) -> Option<&'static str> {
        self.labeller().map(|d| d.op.name())
    }

    /// The label drawn for a sample from the numbers of its position. None: the data set has the
    /// labels.
    pub(crate) fn draw_label(&self, random: &impl RandomStreams) -> Option<i64> {
        self.labeller().and_then(|d| d.draw_label(random))
    }

    /// The steps of a sample, in the order in which they run.
    ///
    /// # Errors
    /// If the image is too small for a crop. If an operation reads boxes, and there are none.
    pub(crate) fn steps(
        &self,
        picture: &DrawnPicture<'_>,
        random: &impl RandomStreams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        self.draw(picture, |_| random, steps)?;
        put_in_order(&self.order, steps);
        Ok(())
    }

    /// The steps of this crop of a sample, from 0, in the order in which they run. `random`: the
    /// numbers of the sample.
    ///
    /// # Errors
    /// If the image is too small.
    pub(crate) fn crop_steps(
        &self,
        picture: (u32, u32),
        crop: u32,
        random: &impl CropStreams,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        let [first, own] = [0, crop].map(|crop| random.of_crop(crop));
        let picture = &DrawnPicture::of_size(picture);
        self.draw(picture, |op| self.numbers(op, &first, &own), steps)?;
        put_in_order(&self.order, steps);
        Ok(())
    }

    /// The numbers of an operation: those of the first crop, or of this one.
    fn numbers<'r, R>(&self, op: usize, first: &'r R, own: &'r R) -> &'r R {
        match self.shared.contains(&op) {
            true => first,
            false => own,
        }
    }

    /// Draws the steps in the written order. `random`: the numbers of an operation.
    fn draw<'r, R: RandomStreams + 'r>(
        &self,
        picture: &DrawnPicture<'_>,
        random: impl Fn(usize) -> &'r R,
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        steps.clear();
        steps.extend(self.luma());
        let mut at = picture.size;
        for (i, drawn) in self.ops.iter().enumerate() {
            let here = (picture, at);
            at = match picture.row.filter(|_| self.is_sized(i)) {
                Some(size) => drawn.with_size(size).draw(i, here, random(i), steps)?,
                None => drawn.draw(i, here, random(i), steps)?,
            };
        }
        Ok(())
    }

    /// Like [`SampleProgram::steps`] or [`SampleProgram::crop_steps`], followed by the steps of the
    /// output format. Colours are in the recipe's channel order. For display.
    ///
    /// # Errors
    /// If the image is too small for a crop.
    pub(crate) fn display_steps(
        &self,
        picture: &DrawnPicture<'_>,
        (crop, random): (u32, &impl CropStreams),
        steps: &mut Vec<OpStep>,
    ) -> std::result::Result<(), SampleFault> {
        let [first, own] = [0, crop].map(|crop| random.of_crop(crop));
        self.draw(picture, |op| self.numbers(op, &first, &own), steps)?;
        let order: Vec<MoveUnit> = self.order.iter().chain(&self.emitted).copied().collect();
        put_in_order(&order, steps);
        for s in steps {
            if self.ops.get(s.op).is_some_and(|d| d.known.bgr) {
                s.step = s.step.with_channels_reversed();
            }
        }
        Ok(())
    }

    /// The steps that need the most memory for an upright image of this height and width. `size`:
    /// height and width of the row, if the batch sets them. `takes_optional`: whether steps that
    /// need not be drawn are included.
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

    /// The name of an operation that reads the boxes of objects, if there is one.
    pub(crate) fn box_reader(&self) -> Option<&'static str> {
        let mut ops = self.crop_programs().iter().flat_map(|program| &program.ops);
        let reader = ops.find(|drawn| drawn.op.reads_boxes());
        reader.map(|drawn| drawn.op.name())
    }

    /// Whether the crop of an operation drops the objects whose centre lies outside of it.
    pub(crate) fn drops_by_centre(&self, op: usize) -> bool {
        (self.ops.get(op)).is_some_and(|drawn| drawn.op.drops_by_centre())
    }

    /// Whether an operation draws random numbers. Then images of the same size may need different
    /// amounts of memory.
    pub(crate) fn draws(&self) -> bool {
        let mut ops = self.crop_programs().iter().flat_map(|program| &program.ops);
        ops.any(|drawn| drawn.op.draws())
    }

    /// The conversion to grey that belongs to the decoding.
    fn luma(&self) -> Option<OpStep> {
        let is_grey = self.written.first() == Some(&MoveUnit::LUMA);
        is_grey.then(|| OpStep::new(MoveUnit::LUMA.op, Step::Luma))
    }
}

/// Sorts steps by the order. Steps of other units belong to the output format and are removed.
fn put_in_order<S: InUnit>(order: &[MoveUnit], steps: &mut Vec<S>) {
    let place = |s: &S| {
        let unit = s.unit();
        order.iter().position(|u| *u == unit)
    };
    steps.retain(|s| place(s).is_some());
    // A stable sort in place. There are only a few steps.
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
            "adds a fourth channel to colour images, and these are grey: remove it",
        );
    }
    if layout == Some(MemoryLayout::Nhwc) {
        return fault(first, "needs layout nchw: remove layout: nhwc");
    }
    Ok(true)
}

/// Removes from the end of the order what the output format does: the last cast, which is the type
/// of the batch. With `fuse` also a normalize before it, and casts before either that change
/// nothing.
fn take_emitted(ops: &[Op], order: &mut Vec<MoveUnit>, fuse: bool) -> Vec<MoveUnit> {
    let mut emitted = Vec::new();
    let (mut cast, mut normalized) = (false, false);
    let mut i = order.len();
    while i > 0 {
        i -= 1;
        let unit = order[i];
        let taken = match (unit.part, ops.get(unit.op)) {
            // The output format writes turned pixels directly.
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

/// The operations, without parts that never apply at their places.
fn simplified_ops(recipe: &Recipe, checked: &CheckedRecipe) -> Vec<Op> {
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

/// The last operation that sets the size, if another size can be set.
fn sizer(ops: &[Op]) -> Option<usize> {
    let last = ops.iter().rposition(Op::sets_size)?;
    ops[last].with_size((1, 1)).map(|_| last)
}

/// The serialized form: the recipe as text, and the rules for a device. The receiver compiles it
/// again.
#[derive(Serialize, Deserialize)]
struct ProgramMessage {
    recipe: String,
    crops: Option<CropRule>,
    hulls: Option<HullRule>,
    has_pixels: bool,
}

impl Serialize for SampleProgram {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let recipe = toml::to_toml(self.whole_recipe()).map_err(serde::ser::Error::custom)?;
        ProgramMessage {
            recipe,
            crops: self.crops,
            hulls: self.hulls.clone(),
            has_pixels: self.has_pixels,
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for SampleProgram {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let sent = ProgramMessage::deserialize(d)?;
        let tree = toml::read(&sent.recipe).map_err(serde::de::Error::custom)?;
        let recipe = tree::read(&tree).map_err(serde::de::Error::custom)?;
        let program = Self::compile(&recipe).map_err(|e: Error| serde::de::Error::custom(e))?;
        if !sent.has_pixels {
            return Ok(program.without_pixels());
        }
        Ok(Self {
            crops: sent.crops,
            hulls: sent.hulls,
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
        // More operations do not shift the streams of the first ones.
        assert_eq!(streams(1), many[..4]);
    }
}
