//! Compiles a recipe with joints: operations that join pictures of several samples.
//!
//! Joints divide the operations into stages. Each stage is a program of its own. All stages but the
//! last make 8-bit RGB pictures of a bounded size. A joint puts such pictures on a canvas of a size
//! that the recipe sets. The canvas is the image of the next stage. The last stage makes the row, so
//! its program stands for the recipe everywhere else.

use crate::recipe::check::{CheckedRecipe, RecipeFault, check};
use crate::recipe::joints::{JointKind, MOST_PICTURES, SampleJoint};
use crate::recipe::op::Op;
use crate::recipe::operation::Operation;
use crate::recipe::pixel_state::PixelState;
use crate::recipe::program::{JoinedStage, JoinedStages, OutputFormat, SampleProgram, StagePlace};
use crate::recipe::random::stream_id;
use crate::recipe::ranges::MAX_SIDE;
use crate::recipe::recipe_spec::Recipe;
use crate::recipe::size_bounds::HeightWidth;
use crate::recipe::tensor::{DataType, MemoryLayout};
use crate::recipe::values::ColorOrder;

/// Most joints of a recipe.
const MOST_JOINTS: usize = 4;

impl JoinedStage {
    /// Bytes of the largest picture, and of the result.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |(height, width): HeightWidth| 3 * u64::from(height) * u64::from(width);
        bytes(self.most).saturating_add(bytes(self.canvas))
    }
}

impl SampleProgram {
    /// Compiles a recipe with joints.
    pub(super) fn compile_joined(recipe: &Recipe) -> Result<Self, RecipeFault> {
        let checked = check(recipe)?;
        let ops = &recipe.ops;
        let joints: Vec<(usize, SampleJoint)> = (ops.iter().enumerate())
            .filter_map(|(at, op)| Some((at, op.joint()?)))
            .collect();
        check_joints(ops, &joints)?;
        let mut stages = Vec::new();
        let mut start = 0;
        for (at, joint) in joints {
            let fault = |op: usize, message: String| RecipeFault {
                op: Some(op),
                message: format!("{}: {message}", ops[op].name()),
            };
            let known = checked.states_before[at];
            let part = Stage {
                recipe,
                ops: start..at,
                checked: CheckedRecipe {
                    states_before: checked.states_before[start..at].to_vec(),
                    known,
                    dtype: DataType::U8,
                    size: known.size,
                },
            };
            let mut program = part.compile()?;
            program.set_streams(&ops[..start]);
            program.output_format = LEVELS;
            let after = checked.states_before.get(at + 1).unwrap_or(&checked.known);
            let unbounded = || fault(at, "the images before it have no bounded size".into());
            let canvas = after.size.ok_or_else(unbounded)?;
            let most = joint.most().unwrap_or(canvas);
            let pictures = match stages.last() {
                Some(JoinedStage { canvas, .. }) => vec![*canvas],
                None => vec![(MAX_SIDE, MAX_SIDE), (MAX_SIDE, 1), (1, MAX_SIDE)],
            };
            // The check of the joint has compared a known size.
            if known.size.is_none() {
                let reach = program.check_reach(&pictures, most);
                reach.map_err(|text| fault(at, text))?;
            }
            let name = ops[at].name();
            let earlier = ops[..at].iter().filter(|op| op.name() == name).count();
            stages.push(JoinedStage {
                program,
                most,
                joint,
                name,
                stream: stream_id(name, earlier as u32),
                canvas,
            });
            start = at + 1;
        }
        let last = Stage {
            recipe,
            ops: start..ops.len(),
            checked: CheckedRecipe {
                states_before: checked.states_before[start..].to_vec(),
                ..checked
            },
        };
        let mut program = last.compile()?;
        program.set_streams(&ops[..start]);
        program.joined = Some(Box::new(JoinedStages {
            recipe: recipe.clone(),
            stages,
        }));
        Ok(program)
    }

    /// The stages before the last one, whose program this is. Empty unless pictures of several
    /// samples are joined.
    pub(crate) fn joined_stages(&self) -> &[JoinedStage] {
        self.joined.as_ref().map_or(&[], |joined| &joined.stages)
    }

    /// Whether pictures of several samples are joined.
    pub(crate) fn is_joined(&self) -> bool {
        self.joined.is_some()
    }

    /// Whether a joint pastes objects, which needs their masks.
    pub(crate) fn pastes_objects(&self) -> bool {
        let mut stages = self.joined_stages().iter();
        stages.any(|stage| matches!(stage.joint.kind, JointKind::Paste { .. }))
    }

    /// The program that decodes files: that of the first stage.
    pub(crate) fn decoding_stage(&self) -> &Self {
        (self.joined_stages().first()).map_or(self, |stage| &stage.program)
    }

    /// The most pictures of which a row is made.
    pub(crate) fn most_pictures(&self) -> u64 {
        let each = self.joined_stages().iter();
        each.map(|stage| u64::from(stage.joint.partners()) + 1)
            .product()
    }

    /// Gives operations the streams that they have in the whole recipe, after these operations.
    fn set_streams(&mut self, before: &[Op]) {
        let mut seen: Vec<&str> = before.iter().map(Op::name).collect();
        for drawn in &mut self.ops {
            let name = drawn.op.name();
            let earlier = seen.iter().filter(|other| **other == name).count();
            drawn.stream = stream_id(name, earlier as u32);
            seen.push(name);
        }
    }

    /// Checks that pictures of these extreme sizes leave the stage with at most `most`. Workers check
    /// each picture.
    fn check_reach(&self, pictures: &[HeightWidth], most: HeightWidth) -> Result<(), String> {
        let mut steps = Vec::new();
        for &picture in pictures {
            self.largest_steps(picture, None, true, &mut steps);
            let sizes = steps.iter().rev().find_map(|step| step.size_after);
            let (height, width) = sizes.map_or(picture, |sizes| sizes.high);
            if height > most.0 || width > most.1 {
                return Err(format!(
                    "takes images of at most {} x {}, and larger ones may come here: put a resize \
                     before it, such as resize: {{max_size: {}}}",
                    most.1,
                    most.0,
                    most.0.min(most.1)
                ));
            }
        }
        Ok(())
    }
}

/// The format of pictures between stages.
const LEVELS: OutputFormat = OutputFormat {
    unit: 1.0,
    mean: [0.0; 3],
    std: [1.0; 3],
    dtype: DataType::U8,
    layout: MemoryLayout::Nhwc,
    order: ColorOrder::Rgb,
    zero_channels: 0,
    patches: None,
};

/// Some operations of a recipe.
struct Stage<'a> {
    recipe: &'a Recipe,
    ops: std::ops::Range<usize>,
    checked: CheckedRecipe,
}

impl Stage<'_> {
    /// Compiles the operations. Every stage has the options of the decoding.
    fn compile(mut self) -> Result<SampleProgram, RecipeFault> {
        let Recipe { name, reorder, .. } = self.recipe;
        let is_last = self.ops.end == self.recipe.ops.len();
        let mut recipe = Recipe {
            reorder: *reorder,
            ops: self.recipe.ops[self.ops.clone()].to_vec(),
            mixing: self.recipe.mixing.clone().filter(|_| is_last),
            ..Recipe::new(name.clone())
        };
        let mut shift = self.ops.start;
        let decode = self.recipe.decode();
        if self.ops.start > 0 {
            recipe.ops.insert(0, decode.into());
            let known = PixelState::after_decode(decode.color);
            self.checked.states_before.insert(0, known);
            shift -= 1;
        }
        let place = match is_last {
            true => StagePlace::Last,
            false => StagePlace::Inner,
        };
        let compiled = SampleProgram::compile_checked(&recipe, &self.checked, place);
        compiled.map_err(|of| RecipeFault {
            op: of.op.map(|op| op + shift),
            ..of
        })
    }
}

/// Checks the number of joints, and operations that only the last stage may have.
fn check_joints(ops: &[Op], joints: &[(usize, SampleJoint)]) -> Result<(), RecipeFault> {
    if let Some(op) = ops.iter().position(Operation::reads_boxes) {
        return Err(RecipeFault {
            op: Some(op),
            message: format!(
                "{} reads the boxes of one sample, and the recipe joins several: remove one of both",
                ops[op].name()
            ),
        });
    }
    let fault = |at: usize, message: String| {
        Err(RecipeFault {
            op: Some(at),
            message: format!("{}: {message}", ops[at].name()),
        })
    };
    if let Some((at, _)) = joints.get(MOST_JOINTS) {
        let message = "a recipe joins samples at most";
        return fault(*at, format!("{message} {MOST_JOINTS} times: remove it"));
    }
    let mut pictures = 1;
    for (at, joint) in joints {
        pictures *= u64::from(joint.partners()) + 1;
        if pictures > MOST_PICTURES {
            return fault(
                *at,
                format!(
                    "a row would be made of {pictures} pictures, and the limit is {MOST_PICTURES}: \
                     remove it, or use grid: 2"
                ),
            );
        }
    }
    let last = joints.last().map_or(0, |(at, _)| *at);
    let is_final = |op: &Op| {
        let is_sized = !op.sets_size() && op.with_size((1, 1)).is_some();
        is_sized
            || op.label_count().is_some()
            || matches!(
                op,
                Op::Cast(_) | Op::Normalize(_) | Op::Layout(_) | Op::ZeroChannel(_)
            )
    };
    match ops[..last].iter().position(is_final) {
        Some(at) => {
            let joint = ops[last].name();
            fault(at, format!("concerns the whole row: move it after {joint}"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
