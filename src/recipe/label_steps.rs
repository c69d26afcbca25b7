//! What the steps of an image do to the label image that belongs to it.
//!
//! Pure. Every step that moves pixels moves labels, and takes each from one pixel. Steps that only
//! change colours leave labels unchanged, and so do erased boxes, as in torchvision.

use super::check::RecipeFault;
use super::program::SampleProgram;
use super::step::{AugmentStep, OpencvFilter, Step};
use super::steps::{LargestStep, OpStep};
use super::values::{AffineStyle, InterpolationMode, LabelFilter, PaddingMode};

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
            | Step::Standardize { .. }
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
                style: AffineStyle::Pillow,
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

/// What the moves of a raster must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RasterMoves {
    /// Any: each pixel is copied.
    Any,
    /// One matrix for all pixels: values are mixed, or turn with the picture.
    Affine,
}

impl SampleProgram {
    /// The program that moves the labels of an image: the same draws, and rows of three bytes for
    /// each label. If samples are joined: that of the last stage.
    ///
    /// # Errors
    /// Operations that mix pixels of several places, so no label is right; several crops; rows of
    /// own sizes.
    pub(crate) fn for_labels(&self) -> std::result::Result<Self, RecipeFault> {
        self.for_places("masks", RasterMoves::Any)
    }

    /// Like [`SampleProgram::for_labels`], for rasters that texts call `what`.
    ///
    /// # Errors
    /// As there; steps that do not move as the raster must.
    pub(crate) fn for_places(
        &self,
        what: &str,
        moves: RasterMoves,
    ) -> std::result::Result<Self, RecipeFault> {
        self.check_companions(what)?;
        for stage in self.joined_stages() {
            stage.program.for_places(what, moves)?;
        }
        let mixes = |step: &Step| matches!(step, Step::Augment(AugmentStep::Keep));
        let mut steps = Vec::new();
        self.largest_steps((512, 512), None, true, &mut steps);
        let fault = |step: &LargestStep, message: String| RecipeFault {
            op: Some(step.of.op),
            message,
        };
        if let Some(mixed) = steps.iter().find(|step| mixes(&step.of.step)) {
            let what = match what {
                "masks" => {
                    "so a pixel has no single label: remove it, or load images without masks"
                }
                _ => "so a pixel has no single value: remove it, or load images without rasters",
            };
            return Err(fault(
                mixed,
                format!("it mixes pixels of several places, {what}"),
            ));
        }
        if moves == RasterMoves::Affine
            && let Some((step, why)) =
                (steps.iter()).find_map(|step| Some((step, not_affine(&step.of.step)?)))
        {
            let op = self.recipe().ops.get(step.of.op);
            let name = op.map_or("a step", |op| op.name());
            return Err(fault(
                step,
                format!(
                    "{name} {why}, and {what} need one matrix for all pixels: remove it. A raster \
                     that is no flow can have filter floor, center or pillow instead"
                ),
            ));
        }
        Ok(self.with_label_rows())
    }

    /// Checks that a row is made of one image, so that something can move with it. Masks move with
    /// joined images, too.
    pub(super) fn check_companions(&self, what: &str) -> std::result::Result<(), RecipeFault> {
        let fault = |message: String| Err(RecipeFault { op: None, message });
        if self.is_crop_set() {
            return fault(format!(
                "{what} belong to one image, and this recipe makes several crops of it: use a \
                 recipe without crops"
            ));
        }
        if self.is_joined() && what != "masks" {
            return fault(format!(
                "images of several samples are joined, and {what} are not yet: remove mosaic, \
                 mix_samples, cut_samples and copy_paste, or load images without {what}"
            ));
        }
        if self.recipe().mixing.is_some() {
            return fault(format!(
                "batches with {what} are not mixed: remove mixup or cutmix from the recipe"
            ));
        }
        Ok(())
    }
}

/// Why a step has no matrix, or shows a pixel at several places.
fn not_affine(step: &Step) -> Option<&'static str> {
    match step {
        Step::Elastic { .. } => Some("displaces each pixel by itself"),
        Step::Augment(AugmentStep::Perspective { .. }) => Some("has a perspective"),
        Step::Pad { mode, .. } if *mode != PaddingMode::Constant => {
            Some("repeats pixels at the border")
        }
        _ => None,
    }
}
