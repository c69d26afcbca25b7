//! What the steps of an image do to the label image that belongs to it.
//!
//! Pure. Every step that moves pixels moves labels, and takes each from one pixel. Steps that only
//! change colours leave labels unchanged, and so do erased boxes, as in torchvision.

use super::check::RecipeFault;
use super::program::SampleProgram;
use super::step::{AugmentStep, OpencvFilter, Step};
use super::steps::OpStep;
use super::values::{InterpolationMode, LabelFilter};

/// How labels move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LabelMoves {
    pub(crate) filter: LabelFilter,
    /// The bytes of the label where an image shows padding or its outside.
    pub(crate) fill: [u8; 3],
}

impl LabelMoves {
    /// The step for labels. None if it moves no pixel.
    pub(crate) fn of(self, step: &Step) -> Option<Step> {
        let nearest = InterpolationMode::Nearest;
        let fill = self.fill.map(f32::from);
        Some(match *step {
            Step::Crop(_) | Step::Mirror | Step::UpsideDown | Step::Turn(_) => *step,
            Step::Resize { size, .. } => Step::Resize {
                size,
                interpolation: InterpolationMode::Labels(self.filter),
                antialias: false,
            },
            Step::Pad { padding, mode, .. } => Step::Pad {
                padding,
                mode,
                fill,
            },
            Step::Rotate {
                degrees,
                size,
                style,
                ..
            } => Step::Rotate {
                degrees,
                interpolation: nearest,
                size,
                fill,
                style,
            },
            Step::Elastic {
                key, alpha, sigma, ..
            } => Step::Elastic {
                key,
                alpha,
                sigma,
                interpolation: nearest,
                fill,
            },
            Step::Augment(augment) => Step::Augment(self.of_augment(augment)?),
            Step::Brightness(_)
            | Step::Contrast(_)
            | Step::Saturation(_)
            | Step::Hue(_)
            | Step::Shift(_)
            | Step::Permute(_)
            | Step::Noise { .. }
            | Step::Luma
            | Step::Grayscale
            | Step::Convert(..)
            | Step::Blur { .. }
            | Step::Erase { .. }
            | Step::Normalize { .. }
            | Step::Cast(_) => return None,
        })
    }

    fn of_augment(self, step: AugmentStep) -> Option<AugmentStep> {
        let (interpolation, fill) = (InterpolationMode::Nearest, self.fill);
        Some(match step {
            AugmentStep::Affine { matrix, .. } => AugmentStep::Affine {
                matrix,
                interpolation,
                fill,
            },
            AugmentStep::Perspective { coefficients, .. } => AugmentStep::Perspective {
                coefficients,
                interpolation,
                fill,
            },
            AugmentStep::Rotate { degrees, .. } => AugmentStep::Rotate {
                degrees,
                interpolation,
                fill,
            },
            AugmentStep::TensorAffine { matrix, .. } => AugmentStep::TensorAffine {
                matrix,
                interpolation,
                fill: Some(fill),
            },
            AugmentStep::Resample { size, .. } => AugmentStep::Resample {
                size,
                filter: OpencvFilter::Nearest,
            },
            AugmentStep::AutoContrast
            | AugmentStep::Equalize
            | AugmentStep::Invert
            | AugmentStep::Posterize { .. }
            | AugmentStep::Solarize { .. }
            | AugmentStep::SolarizeAdd { .. }
            | AugmentStep::Brightness(_)
            | AugmentStep::Contrast(_)
            | AugmentStep::Color(_)
            | AugmentStep::Sharpness(_)
            | AugmentStep::Hue(_)
            | AugmentStep::Hsv { .. }
            | AugmentStep::Fill { .. }
            | AugmentStep::BoxBlurs { .. }
            | AugmentStep::Jpeg { .. }
            | AugmentStep::TensorAutoContrast
            | AugmentStep::TensorSharpness(_)
            | AugmentStep::GaussianBlur { .. }
            | AugmentStep::MotionBlur { .. }
            | AugmentStep::Keep
            | AugmentStep::Add { .. }
            | AugmentStep::AddSingle { .. }
            | AugmentStep::MixIn { .. }
            | AugmentStep::Total
            | AugmentStep::BlendTotal { .. }
            | AugmentStep::Blend { .. } => return None,
        })
    }

    /// Replaces the steps of an image by those of its labels.
    pub(crate) fn replace(self, steps: &mut Vec<OpStep>) {
        let of_labels = |step: &mut OpStep| match self.of(&step.step) {
            Some(moved) => {
                step.step = moved;
                true
            }
            None => false,
        };
        steps.retain_mut(of_labels);
    }
}

impl SampleProgram {
    /// The program that moves the labels of an image: the same draws, and rows of three bytes for
    /// each label. If samples are joined: that of the last stage.
    ///
    /// # Errors
    /// Operations that mix pixels of several places, so no label is right; several crops; rows of
    /// own sizes.
    pub(crate) fn for_labels(&self) -> std::result::Result<Self, RecipeFault> {
        let fault = |op: Option<usize>, message: &str| {
            Err(RecipeFault {
                op,
                message: message.into(),
            })
        };
        if self.is_crop_set() {
            return fault(
                None,
                "masks belong to one image, and this recipe makes several crops of it: use a \
                 recipe without crops",
            );
        }
        for stage in self.joined_stages() {
            stage.program.for_labels()?;
        }
        if self.recipe().mixing.is_some() {
            return fault(
                None,
                "batches with masks are not mixed: remove mixup or cutmix from the recipe",
            );
        }
        let mixes = |step: &Step| matches!(step, Step::Augment(AugmentStep::Keep));
        let mut steps = Vec::new();
        self.largest_steps((512, 512), None, true, &mut steps);
        if let Some(mixed) = steps.iter().find(|step| mixes(&step.of.step)) {
            return fault(
                Some(mixed.of.op),
                "it mixes pixels of several places, so a pixel has no single label: remove it, or \
                 load images without masks",
            );
        }
        Ok(self.with_label_rows())
    }
}
