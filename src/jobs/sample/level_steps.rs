//! Steps of a crop as a device runs them on bytes.
//!
//! Runs in workers. Numbers that the CPU computes once for a step are computed here, so that both
//! have the same.

use crate::decode_plan::hull_row::{
    HULL_BLUR_WEIGHTS, HULL_WEIGHT_BYTES, HullCropHeader, LevelKind, LevelStep,
};
use crate::error::{FaultKind, SampleFault};
use crate::pixels::augment::box_blur::BoxLine;
use crate::pixels::blur::half_kernel;
use crate::pixels::jitter::ColorBlend;
use crate::recipe::steps::OpStep;
use crate::recipe::{AugmentStep, PixelPlacement, Step};

/// The steps after the resize, and the weights of a blur.
pub(super) struct CropLevels<'a> {
    pub(super) header: &'a mut HullCropHeader,
    /// The first bytes of the crop's tables.
    pub(super) weights: &'a mut [u8],
}

impl CropLevels<'_> {
    /// Writes all steps, and the orientation after the last.
    ///
    /// # Errors
    /// A step that a device does not have.
    pub(super) fn write(
        self,
        steps: &[OpStep],
        mut placement: PixelPlacement,
    ) -> Result<(), SampleFault> {
        let Self { header, weights } = self;
        let (mut count, mut blurs) = (0, 0);
        for OpStep { step, .. } in steps {
            match step {
                Step::Mirror => placement = placement.mirrored(),
                Step::UpsideDown => placement = placement.upside_down(),
                Step::Turn(quarters) => placement = placement.turned(*quarters),
                step => {
                    let to = header.step.get_mut(count);
                    let level = level_step(step, placement.transpose);
                    let (Some(to), Some(level)) = (to, level) else {
                        return Err(unsupported());
                    };
                    if let Step::Blur { sigma, .. } = step {
                        blurs += 1;
                        // The tables have room for the weights of one blur.
                        if blurs > 1 {
                            return Err(unsupported());
                        }
                        write_weights(level, *sigma, weights);
                    }
                    *to = level;
                    count += 1;
                }
            }
        }
        header.steps = count as u32;
        header.flags = HullCropHeader::flags_of(placement);
        Ok(())
    }
}

fn unsupported() -> SampleFault {
    SampleFault::new(
        FaultKind::Unsupported,
        "a device cannot run a step of the recipe",
    )
}

/// The step for stored pixels, whose rows are the columns of the upright image if `transposed`.
fn level_step(step: &Step, transposed: bool) -> Option<LevelStep> {
    Some(match *step {
        Step::Brightness(factor) => LevelKind::Brightness.step_of([factor, 0.0]),
        Step::Contrast(factor) => LevelKind::Contrast.step_of(ColorBlend::new(factor).numbers()),
        Step::Saturation(factor) => {
            LevelKind::Saturation.step_of(ColorBlend::new(factor).numbers())
        }
        Step::Hue(by) => LevelKind::Hue.step_of([by, 0.0]),
        Step::Grayscale => LevelKind::Grayscale.step([0; 3]),
        Step::Luma => LevelKind::Luma.step([0; 3]),
        Step::Permute(order) => LevelKind::Permute.step(order.map(u32::from)),
        Step::Blur { kernel, .. } => {
            let (across, down) = match transposed {
                true => (kernel.height, kernel.width),
                false => (kernel.width, kernel.height),
            };
            LevelKind::GaussianBlur.step([across / 2, down / 2, 0])
        }
        Step::Augment(step) => match step {
            AugmentStep::Brightness(factor) => LevelKind::PillowBrightness.step_of([factor, 0.0]),
            AugmentStep::Contrast(factor) => LevelKind::PillowContrast.step_of([factor, 0.0]),
            AugmentStep::Color(factor) => LevelKind::PillowColor.step_of([factor, 0.0]),
            AugmentStep::Hue(by) => LevelKind::PillowHue.step([u32::from(by), 0, 0]),
            // A level is below the threshold if it is below the next whole number.
            AugmentStep::Solarize { threshold } => {
                LevelKind::Solarize.step([threshold.ceil() as u32, 0, 0])
            }
            AugmentStep::Invert => LevelKind::Solarize.step([0; 3]),
            AugmentStep::Posterize { bits } => {
                let mask = 255u8.checked_shr(u32::from(bits)).map_or(255, |low| !low);
                LevelKind::Posterize.step([u32::from(mask), 0, 0])
            }
            AugmentStep::BoxBlurs { radius } => {
                let kind = match transposed {
                    true => LevelKind::BoxBlurDown,
                    false => LevelKind::BoxBlur,
                };
                kind.step(BoxLine::of_gaussian(radius).numbers())
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Writes the weights of both axes, from the centre outwards.
fn write_weights(blur: LevelStep, sigma: f64, weights: &mut [u8]) {
    let mut numbers = [0.0f32; 2 * HULL_BLUR_WEIGHTS];
    let (across, down) = numbers.split_at_mut(HULL_BLUR_WEIGHTS);
    let [x, y, _] = blur.numbers.map(|radius| radius as usize);
    for (axis, radius) in [(across, x), (down, y)] {
        if let Some(used) = axis.get_mut(..=radius) {
            half_kernel(sigma, used);
        }
    }
    weights[..HULL_WEIGHT_BYTES].copy_from_slice(bytemuck::cast_slice(&numbers));
}
