//! A recipe in its written and in its planned order, stage by stage, with the bytes that each stage
//! takes for an image of a given size.
//!
//! Pure. Describes `SampleProgram`, which is what runs.

use serde::Serialize;

use crate::decode_plan::canvas_memory::CanvasMemory;
use crate::decode_plan::stored_picture::StoredPicture;
use crate::error::{Error, Result, SampleFault};
use crate::picture::read_header::DecodeCost;
use crate::recipe::Step;
use crate::recipe::defaults::is_default;
use crate::recipe::joints::PartnerDraw;
use crate::recipe::move_unit::OperationPart;
use crate::recipe::planner;
use crate::recipe::random::CropStreams;
use crate::recipe::steps::{InUnit, OpStep};
use crate::recipe::{
    DecodeMode, DrawnPicture, JointDraw, Mixing, OperationMove, Recipe, RecipeCrop, ReorderMode,
    SampleProgram,
};

/// A recipe as it will run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecipeOutline {
    pub recipe: String,
    /// `off`, `exact` or `fast`.
    pub reorder: &'static str,
    /// Height and width of the image for which bytes are counted.
    pub picture: (u32, u32),
    /// The written order: each operation by itself, on the whole image.
    pub written: RecipeStages,
    /// The order that runs.
    pub planned: RecipeStages,
    /// Operations that were moved, and why that is allowed.
    pub moves: Vec<OperationMove>,
    /// Moves that would save pixels but are not allowed, and why.
    pub refused: Vec<OperationMove>,
    /// Operations that were fused.
    pub fused: Vec<FusedOperations>,
    /// Choices that change pixel values.
    pub choices: Vec<NumericChoice>,
    /// Mixing of batches, in the consumer.
    pub mixing: Option<Mixing>,
    /// The crops of each image. The fields above are then those of the first. Empty: one image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crops: Vec<CropOutline>,
    /// The stages before joints of several samples. The fields above are then those of the last
    /// stage. Empty: a row is made of one sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<JointOutline>,
}

/// The operations before a joint of several samples, and the joint.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JointOutline {
    /// The name of the joint.
    pub name: &'static str,
    /// Pictures that it joins.
    pub pictures: u32,
    /// The probability that it does.
    pub p: f64,
    /// Height and width of the result.
    pub canvas: (u32, u32),
    /// Bytes of the result, and of one of the pictures.
    pub bytes: u64,
    /// The operations on each of the pictures.
    pub outline: Box<RecipeOutline>,
}

/// One crop of an image, or several by the same recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CropOutline {
    pub count: u32,
    /// The number of first operations that have the random numbers of the first crop.
    #[serde(skip_serializing_if = "is_default")]
    pub shared: u32,
    pub outline: RecipeOutline,
}

/// The stages of a recipe in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecipeStages {
    pub stages: Vec<StageLine>,
    /// Most bytes that one sample takes in a worker.
    pub scratch_bytes: u64,
}

/// One stage of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageLine {
    pub name: String,
    /// Height and width after the stage.
    pub height: u32,
    pub width: u32,
    /// Type of an element after the stage.
    pub element: &'static str,
    /// Bytes of the image after the stage.
    pub picture_bytes: u64,
    /// Bytes of all buffers of the sample up to here.
    pub held_bytes: u64,
}

/// Operations that share one loop over the pixels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FusedOperations {
    pub stage: &'static str,
    pub ops: Vec<String>,
}

/// A choice that changes pixel values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NumericChoice {
    pub what: String,
    pub effect: String,
}

impl RecipeOutline {
    /// The outline of a recipe for baseline JPEG images of this upright height and width.
    ///
    /// # Errors
    /// A recipe that cannot run.
    pub fn of(recipe: &Recipe, picture: (u32, u32)) -> Result<Self> {
        if !recipe.crops.is_empty() {
            return Self::of_crops(recipe, picture);
        }
        let program = SampleProgram::compile(recipe)?;
        let off = SampleProgram::compile(&recipe.clone().with_reorder(ReorderMode::Off))?;
        let mut stored = StoredPicture::baseline_jpeg(picture);
        let mut joined = Vec::new();
        for (stage, off) in program.joined_stages().iter().zip(off.joined_stages()) {
            let outline = Self::of_stage(recipe, &stage.program, &off.program, stored);
            joined.push(JointOutline {
                name: stage.name,
                pictures: stage.joint.partners() + 1,
                p: stage.joint.p,
                canvas: stage.canvas,
                bytes: stage.bytes(),
                outline: Box::new(outline),
            });
            stored = StoredPicture::canvas(stage.canvas);
        }
        Ok(Self {
            joined,
            ..Self::of_stage(recipe, &program, &off, stored)
        })
    }

    /// The outline of a program, or of one stage of a program that joins samples. `off`: the same
    /// without moves.
    fn of_stage(
        recipe: &Recipe,
        program: &SampleProgram,
        off: &SampleProgram,
        stored: StoredPicture,
    ) -> Self {
        let picture = stored.upright_size();
        let steps = largest(program, picture);
        let plan = stored.plan_decode(program, &steps);
        let (moves, refused) = program.moves();
        let [_, order, emitted] = program.units();
        Self {
            recipe: recipe.name.clone(),
            reorder: recipe.reorder.unwrap_or_default().name(),
            picture,
            written: order_of(off, stored),
            planned: order_of(program, stored),
            moves: moves.to_vec(),
            refused: refused.to_vec(),
            fused: fusions(program, &steps[..plan.fold.steps], &order, &emitted),
            choices: choices(program, stored, plan.scale.denominator()),
            mixing: program.recipe().mixing.clone(),
            crops: Vec::new(),
            joined: Vec::new(),
        }
    }

    fn of_crops(recipe: &Recipe, picture: (u32, u32)) -> Result<Self> {
        // Also checks what the crops share.
        SampleProgram::compile(recipe)?;
        let outline = |(number, crop): (usize, &RecipeCrop)| {
            let mut outline = Self::of(&crop.recipe, picture)?;
            if outline.recipe.is_empty() {
                outline.recipe = format!("crop {number}");
            }
            Ok(CropOutline {
                count: crop.count,
                shared: crop.shared,
                outline,
            })
        };
        let crops: Vec<_> = (recipe.crops.iter().enumerate())
            .map(outline)
            .collect::<Result<_>>()?;
        let first = crops.first().map(|crop| crop.outline.clone());
        let first = first.ok_or_else(|| Error::config("a recipe has an empty list of crops"))?;
        Ok(Self {
            recipe: recipe.name.clone(),
            crops,
            ..first
        })
    }
}

/// The steps with their largest random values.
fn largest(program: &SampleProgram, picture: (u32, u32)) -> Vec<OpStep> {
    let mut steps = Vec::new();
    program.largest_steps(picture, None, true, &mut steps);
    steps.into_iter().map(|s| s.of).collect()
}

fn order_of(program: &SampleProgram, stored: StoredPicture) -> RecipeStages {
    let steps = largest(program, stored.upright_size());
    let plan = stored.plan_decode(program, &steps);
    let scratch = stored.sample_memory(&plan, program, &steps);
    let ops = &program.recipe().ops;
    let name = |s: &OpStep| planner::unit_name(ops, s.unit());
    let (beside, mut needs) = stored.decode_memory(&plan);
    let mut stages = Vec::new();
    let mut line = |name: String, needs: &CanvasMemory| {
        let (width, height) = needs.upright_size();
        stages.push(StageLine {
            name,
            height,
            width,
            element: if needs.is_floats() { "f32" } else { "u8" },
            picture_bytes: needs.picture_bytes(),
            held_bytes: beside.bytes().saturating_add(needs.bytes()),
        });
    };
    // A later stage of joined samples begins with pixels.
    let first = match stored.cost {
        DecodeCost::Raw => "canvas",
        DecodeCost::Jpeg { .. } | DecodeCost::Rows { .. } => "decode",
    };
    let mut names = vec![first.to_owned()];
    names.extend(steps[..plan.fold.steps].iter().map(name));
    line(names.join(" + "), &needs);
    let mut done = plan.fold.steps;
    let most = if program.fuses { usize::MAX } else { 1 };
    while done < steps.len() {
        let rest = &steps[done..];
        let followed = needs.add_next_steps(rest.iter().take(most).map(|s| &s.step));
        let mut names: Vec<String> = rest[..followed].iter().map(name).collect();
        names.dedup();
        line(names.join(" + "), &needs);
        done += followed;
    }
    let (width, height) = needs.upright_size();
    let [_, _, emitted] = program.units();
    let mut names: Vec<String> = emitted.into_iter().map(|(name, _)| name).collect();
    names.push("row of the batch".into());
    stages.push(StageLine {
        name: names.join(" + "),
        height,
        width,
        element: program.output_format.dtype.name(),
        picture_bytes: program.row_bytes((height, width)),
        held_bytes: scratch.bytes(),
    });
    let scratch_bytes = stored.scratch_bound(program, None, &mut Vec::new()).bytes();
    // Here each step has its largest random value. No sample has all of them at once.
    for stage in &mut stages {
        stage.held_bytes = stage.held_bytes.min(scratch_bytes);
    }
    RecipeStages {
        stages,
        scratch_bytes,
    }
}

fn fusions(
    program: &SampleProgram,
    folded: &[OpStep],
    order: &[(String, OperationPart)],
    emitted: &[(String, OperationPart)],
) -> Vec<FusedOperations> {
    let mut fused = Vec::new();
    if !program.fuses {
        return fused;
    }
    let ops = &program.recipe().ops;
    if !folded.is_empty() {
        let mut names = vec!["decode".to_owned()];
        names.extend(folded.iter().map(|s| planner::unit_name(ops, s.unit())));
        fused.push(FusedOperations {
            stage: "decodes and resizes only the pixels of the crops",
            ops: names,
        });
    }
    let turns = order
        .iter()
        .filter(|(_, part)| *part == OperationPart::Turn);
    let mut names: Vec<String> = turns.map(|(name, _)| name.clone()).collect();
    names.extend(emitted.iter().map(|(name, _)| name.clone()));
    names.push("layout".into());
    if names.len() > 1 {
        fused.push(FusedOperations {
            stage: "one pass writes the row",
            ops: names,
        });
    }
    fused
}

fn choices(program: &SampleProgram, stored: StoredPicture, denominator: u32) -> Vec<NumericChoice> {
    let mut choices = Vec::new();
    let is_decoded = !matches!(stored.cost, DecodeCost::Raw);
    if program.decode == DecodeMode::Scaled && is_decoded {
        let here = match denominator {
            1 => "not for this image".to_owned(),
            d => format!("for this image at 1/{d}"),
        };
        choices.push(NumericChoice {
            what: format!(
                "decode mode scaled: JPEG data at 1/2, 1/4 or 1/8 before an antialiased \
                 resize by at least that much on both axes ({here})"
            ),
            effect: "for images that are decoded smaller: mean 1.3 levels, 99.9% within 21, the \
                     largest 76 (4:1:1: 112); other images do not change; mode: full \
                     decodes them whole"
                .into(),
        });
    }
    let (moves, _) = program.moves();
    if moves.iter().any(|m| !m.exact) {
        choices.push(NumericChoice {
            what: "reorder fast".into(),
            effect: "moves that change values are allowed".into(),
        });
    }
    choices
}

/// The random values of one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DrawnSteps {
    /// Names of operations, and their steps in the order in which they run. Several crops follow
    /// each other, each with its number.
    pub steps: Vec<(String, Step)>,
    /// Joints of several samples, with what they draw for the sample itself. The steps are those of
    /// the sample through all stages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<(String, JointDraw)>,
}

impl DrawnSteps {
    /// `partner`: the sample of a draw.
    pub(crate) fn of(
        program: &SampleProgram,
        (picture, partner): (&DrawnPicture<'_>, &dyn Fn(PartnerDraw) -> u64),
        random: &impl CropStreams,
    ) -> Result<Self, SampleFault> {
        let mut named = Vec::new();
        let mut joints = Vec::new();
        let mut of_joined = DrawnPicture {
            row: None,
            ..*picture
        };
        for stage in program.joined_stages() {
            named.append(&mut of_stage(&stage.program, &of_joined, random)?);
            let draw = stage
                .joint
                .draw((random, stage.stream), partner, stage.canvas);
            joints.push((stage.name.to_owned(), draw));
            of_joined = DrawnPicture::of_size(stage.canvas);
        }
        if program.is_joined() {
            of_joined.row = picture.row;
            named.append(&mut of_stage(program, &of_joined, random)?);
            return Ok(Self {
                steps: named,
                joints,
            });
        }
        // Of tiles the canvas. The overview has the same random numbers.
        let programs = match program.has_tiles() {
            true => std::slice::from_ref(program),
            false => program.crop_programs(),
        };
        for (crop, of_crop) in (0..).zip(programs) {
            let mut steps = Vec::new();
            of_crop.display_steps(picture, (crop, random), &mut steps)?;
            let ops = &of_crop.recipe().ops;
            named.extend(steps.into_iter().map(|s| {
                let name = planner::unit_name(ops, s.unit());
                let name = match program.is_crop_set() {
                    true => format!("crop {crop}: {name}"),
                    false => name,
                };
                (name, s.step)
            }));
        }
        Ok(Self {
            steps: named,
            joints,
        })
    }
}

/// The steps of a stage for its picture.
fn of_stage(
    program: &SampleProgram,
    picture: &DrawnPicture<'_>,
    random: &impl CropStreams,
) -> Result<Vec<(String, Step)>, SampleFault> {
    let mut steps = Vec::new();
    program.display_steps(picture, (0, random), &mut steps)?;
    let ops = &program.recipe().ops;
    let named = steps.into_iter();
    Ok(named
        .map(|s| (planner::unit_name(ops, s.unit()), s.step))
        .collect())
}
