//! What the steps of an image do to another image that belongs to it.
//!
//! Pure. The other image gets the same steps, perhaps without those that change colours, and
//! perhaps for a size that is a multiple.

use super::check::RecipeFault;
use super::geometry::PixelRect;
use super::label_steps::LabelMoves;
use super::program::SampleProgram;
use super::step::{AugmentStep, Step};
use super::steps::{LargestStep, OpStep};
use super::values::{LabelFilter, Padding, Size};

/// How the steps of an image become those of its pair. The default keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairSteps {
    /// Whether steps that change colours are kept.
    pub(crate) colors: bool,
    /// How many times larger the pair is.
    pub(crate) scale: u32,
}

impl Default for PairSteps {
    fn default() -> Self {
        Self {
            colors: true,
            scale: 1,
        }
    }
}

impl PairSteps {
    /// Replaces the steps of an image by those of its pair.
    pub(crate) fn replace(self, steps: &mut Vec<OpStep>) {
        if !self.colors {
            steps.retain(|of| moves(&of.step) || is_format(&of.step));
        }
        if self.scale > 1 {
            for of in steps {
                of.step = self.scaled(of.step);
            }
        }
    }

    /// The size of the image for a pair of this height and width. None if it is no multiple.
    pub(crate) fn of_image(self, (height, width): (u32, u32)) -> Option<(u32, u32)> {
        let is_multiple = height.is_multiple_of(self.scale) && width.is_multiple_of(self.scale);
        is_multiple.then(|| (height / self.scale, width / self.scale))
    }

    /// The same step for a picture that is larger.
    fn scaled(self, step: Step) -> Step {
        let scale = self.scale;
        match step {
            Step::Crop(rect) => Step::Crop(PixelRect {
                left: rect.left * scale,
                top: rect.top * scale,
                width: rect.width * scale,
                height: rect.height * scale,
            }),
            Step::Resize {
                size,
                interpolation,
                antialias,
            } => Step::Resize {
                size: Size {
                    height: size.height.saturating_mul(scale),
                    width: size.width.saturating_mul(scale),
                },
                interpolation,
                antialias,
            },
            Step::Pad {
                padding,
                mode,
                fill,
            } => Step::Pad {
                padding: Padding {
                    left: padding.left.saturating_mul(scale),
                    top: padding.top.saturating_mul(scale),
                    right: padding.right.saturating_mul(scale),
                    bottom: padding.bottom.saturating_mul(scale),
                },
                mode,
                fill,
            },
            step => step,
        }
    }
}

/// Whether a step moves pixels.
fn moves(step: &Step) -> bool {
    let any = LabelMoves {
        filter: LabelFilter::Floor,
        fill: [0; 3],
    };
    any.of(step).is_some()
}

/// Whether a step sets the form of the numbers, and draws nothing.
fn is_format(step: &Step) -> bool {
    matches!(
        step,
        Step::Luma
            | Step::Convert(..)
            | Step::Normalize { .. }
            | Step::Standardize { .. }
            | Step::Cast(_)
    )
}

impl SampleProgram {
    /// Checks that another image can move with the image.
    ///
    /// # Errors
    /// Several crops; joined or mixed images; without colours, steps that mix moved copies; with a
    /// scale, steps that have no multiple.
    pub(crate) fn check_pair(&self, pair: PairSteps) -> std::result::Result<(), RecipeFault> {
        self.check_companions("rasters")?;
        let mut steps = Vec::new();
        self.largest_steps((512, 512), None, true, &mut steps);
        let mixes = |of: &&LargestStep| matches!(of.of.step, Step::Augment(AugmentStep::Keep));
        if let Some(LargestStep { of, .. }) = steps.iter().find(mixes).filter(|_| !pair.colors) {
            return Err(RecipeFault {
                op: Some(of.op),
                message: "it mixes moved copies of an image, and without its colours a pair has \
                          no such mixture: remove it, or use colors 'same'"
                    .into(),
            });
        }
        if pair.scale == 1 {
            return Ok(());
        }
        let has_multiple = |step: &Step| {
            matches!(
                step,
                Step::Crop(_)
                    | Step::Resize { .. }
                    | Step::Pad { .. }
                    | Step::Mirror
                    | Step::UpsideDown
                    | Step::Turn(_)
            ) || !(moves(step) || matches!(step, Step::Erase { .. }))
        };
        let other = steps.iter().find(|of| !has_multiple(&of.of.step));
        other.map_or(Ok(()), |LargestStep { of, .. }| {
            let op = self.recipe().ops.get(of.op);
            Err(RecipeFault {
                op: Some(of.op),
                message: format!(
                    "{} has no exact multiple for a raster with `scale`: use crops, flips, quarter \
                     turns, pads and resizes",
                    op.map_or("a step", |op| op.name())
                ),
            })
        })
    }
}
