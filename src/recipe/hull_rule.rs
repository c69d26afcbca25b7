//! What workers hand over to a device if a sample has several crops: finished crops, or the decoded
//! pixels from which the device makes all of them.
//!
//! Those pixels are the hull: the smallest window that has the windows of all crops. The device
//! computes with bytes, as the CPU does, so the choice changes no bit of a batch.

use serde::{Deserialize, Serialize};

use super::move_unit::{MoveUnit, OperationPart};
use super::op::Op;
use super::operation::Operation;
use super::recipe_spec::Recipe;
use super::row_extent::RowExtent;
use super::weights::ResizeFilter;

/// The room of a row with a hull and its crops. A worker resizes the crops of a hull that has no
/// room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HullRule {
    pub(crate) crops: Vec<HullCropRoom>,
    /// Bytes for pixels: of the hull, or of all crops.
    pub(crate) pixels: usize,
    /// Whether a step needs floats between its passes.
    pub(crate) has_float_sums: bool,
}

/// The room of one crop in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HullCropRoom {
    /// Of the upright crop.
    pub(crate) height: u32,
    pub(crate) width: u32,
    /// Coefficients of each output pixel, on each axis.
    pub(crate) taps: u32,
}

/// The maximum number of steps after the resize of one crop.
pub(crate) const MAX_LEVEL_STEPS: usize = 16;
/// Most pixels at each side of a Gaussian blur.
pub(crate) const MAX_BLUR_RADIUS: u32 = 31;
/// Rows have room for coefficients that reduce a side by this factor.
const MOST_REDUCTION: f64 = 4.0;
/// Hulls have room for this reduction of the largest crop, on photos of 4 x 3.
const HULL_REDUCTION: (f64, f64) = (2.0, 4.0 / 3.0);
/// Filters read pixels outside of the box: the number on both sides together.
const REACH: f64 = 16.0;
/// Most bytes for the pixels of a row. Places in a row are 32-bit numbers.
const MOST_PIXEL_BYTES: usize = 1 << 30;
/// Half the width of the widest filter, for resizes whose filter is drawn.
const WIDEST: f64 = 3.0;

/// What the rule needs to know of one crop's program.
pub(super) struct HullCrop<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) extent: RowExtent,
    pub(super) fuses: bool,
    /// Channels of zeros after the others.
    pub(super) zero_channels: usize,
    /// The units in the order in which they run, without those of the output format.
    pub(super) order: &'a [MoveUnit],
}

/// Steps that an operation may draw.
#[derive(Debug, Clone, Copy, Default)]
struct DrawnLevels {
    count: usize,
    /// How many of them are Gaussian blurs.
    blurs: usize,
}

impl DrawnLevels {
    fn steps(count: usize) -> Self {
        Self { count, blurs: 0 }
    }

    fn and(self, more: Self) -> Self {
        Self {
            count: self.count + more.count,
            blurs: self.blurs + more.blurs,
        }
    }
}

impl HullRule {
    /// The rule for crops that a device can make.
    ///
    /// # Errors
    /// The reason why it cannot. Workers then finish all crops.
    pub(super) fn of<'a>(programs: impl Iterator<Item = HullCrop<'a>>) -> Result<Self, String> {
        let (mut crops, mut has_float_sums) = (Vec::new(), false);
        for program in programs {
            let (room, drawn) = room_of(&program)?;
            crops.push(room);
            has_float_sums |= drawn.blurs > 0;
        }
        let resized = crops.iter().map(HullCropRoom::rgb_bytes).sum();
        let hulls = crops.iter().map(HullCropRoom::hull_bytes).max();
        let pixels = hulls.unwrap_or(0).max(resized);
        if pixels > MOST_PIXEL_BYTES {
            return Err("crops are so large that a hull takes over 1 GiB".into());
        }
        Ok(Self {
            pixels,
            crops,
            has_float_sums,
        })
    }
}

impl HullCropRoom {
    /// Bytes of the crop in RGB.
    pub(crate) fn rgb_bytes(&self) -> usize {
        3 * self.height as usize * self.width as usize
    }

    fn hull_bytes(&self) -> usize {
        let (h, w) = (f64::from(self.height), f64::from(self.width));
        let (reduction, skew) = HULL_REDUCTION;
        let pixels = (reduction * w + REACH) * (reduction * skew * h + REACH);
        3 * pixels as usize
    }
}

fn room_of(program: &HullCrop<'_>) -> Result<(HullCropRoom, DrawnLevels), String> {
    let RowExtent::Fixed { height, width } = program.extent else {
        return Err("crops keep the sizes of their images".into());
    };
    if program.zero_channels > 0 {
        return Err("workers do zero_channel".into());
    }
    if !program.fuses {
        return Err("reorder: off keeps each operation separate".into());
    }
    let (mut drawn, mut support, mut colored) = (DrawnLevels::default(), None, None);
    for unit in program.order {
        let op = program.recipe.ops.get(unit.op);
        let name = op.map_or("decode: {color: grey}", Op::name);
        match (unit.part, op) {
            (OperationPart::Turn, _) => {}
            (OperationPart::Crop | OperationPart::Resize, _) if colored.is_some() => {
                return Err(format!(
                    "{name} comes after {}",
                    colored.unwrap_or_default()
                ));
            }
            (OperationPart::Crop, _) => {}
            (OperationPart::Resize, _) if support.is_some() => {
                return Err("a crop is resized more than once".into());
            }
            (OperationPart::Resize, op) => {
                let filter = op.and_then(|op| op.device_support().filter);
                let of = |(interpolation, antialias)| {
                    ResizeFilter::of(interpolation, antialias).0.support()
                };
                support = Some(filter.map_or(WIDEST, of).max(0.5));
            }
            (OperationPart::Color, None) => {
                drawn = drawn.and(DrawnLevels::steps(1));
                colored = Some(name);
            }
            (OperationPart::Color | OperationPart::Augment | OperationPart::Blur, Some(op)) => {
                drawn = drawn.and(levels_of(op)?);
                colored = Some(name);
            }
            _ => return Err(format!("workers do {name}")),
        }
    }
    if drawn.count > MAX_LEVEL_STEPS {
        return Err(format!(
            "the operations of a crop may draw {} steps, and a device takes {MAX_LEVEL_STEPS}",
            drawn.count
        ));
    }
    if drawn.blurs > 1 {
        return Err("a device takes one gaussian_blur in a crop".into());
    }
    let taps = 2.0 * (support.unwrap_or(0.0) * MOST_REDUCTION).ceil() + 2.0;
    let room = HullCropRoom {
        height,
        width,
        taps: taps as u32,
    };
    Ok((room, drawn))
}

/// The most steps that an operation on bytes draws.
///
/// # Errors
/// A device has no such step.
fn levels_of(op: &Op) -> Result<DrawnLevels, String> {
    let all = |ops: &[Op]| {
        ops.iter().try_fold(DrawnLevels::default(), |sum, op| {
            levels_of(op).map(|more| sum.and(more))
        })
    };
    match op {
        Op::ColorJitter(_) => Ok(DrawnLevels::steps(4)),
        Op::RandomPhotometricDistort(_) => Ok(DrawnLevels::steps(5)),
        Op::Grayscale(_)
        | Op::RandomGrayscale(_)
        | Op::RandomSolarize(_)
        | Op::RandomInvert(_)
        | Op::RandomPosterize(_)
        | Op::RandomChannelPermutation(_)
        | Op::PillowGaussianBlur(_) => Ok(DrawnLevels::steps(1)),
        Op::GaussianBlur(blur) => {
            let kernel = blur.kernel_size;
            let most = 2 * MAX_BLUR_RADIUS + 1;
            if kernel.height.max(kernel.width) > most {
                return Err(format!(
                    "a device takes kernels of gaussian_blur up to {most}, and this one is {kernel}"
                ));
            }
            Ok(DrawnLevels { count: 1, blurs: 1 })
        }
        Op::RandomHorizontalFlip(_) | Op::RandomVerticalFlip(_) => Ok(DrawnLevels::default()),
        Op::RandomApply(apply) => all(&apply.transforms),
        Op::RandomOrder(order) => all(&order.transforms),
        // One of them: not more than all.
        Op::RandomChoice(choice) => all(&choice.transforms),
        op => Err(format!("workers do {}", op.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{
        Cast, ColorJitter, ColorSpace, ConvertColor, DataType, GaussianBlur, JitterStyle, Pad,
        PillowGaussianBlur, RandomApply, RandomErasing, RandomGrayscale, RandomHorizontalFlip,
        RandomResizedCrop, RandomSolarize, Recipe, ReorderMode, Resize, SampleProgram, Span,
    };

    fn recipe(ops: &[Op]) -> Recipe {
        let mut crop = Recipe::new("crop").then(RandomResizedCrop::new(32));
        crop.ops.extend(ops.iter().cloned());
        let small = Recipe::new("small").then(RandomResizedCrop::new(8));
        Recipe::new("r").with_crop(crop, 2).with_crop(small, 3)
    }

    fn rule(ops: &[Op]) -> Result<HullRule, String> {
        let program = SampleProgram::compile(&recipe(ops)).unwrap();
        program.with_hulls().map(|program| program.hulls.unwrap())
    }

    fn pillow_jitter() -> Op {
        ColorJitter {
            brightness: Span(0.6, 1.4),
            contrast: Span(0.6, 1.4),
            saturation: Span(0.8, 1.2),
            hue: Span(-0.1, 0.1),
            p: 0.8,
            style: JitterStyle::Pillow,
            ..ColorJitter::default()
        }
        .into()
    }

    #[test]
    fn what_dino_and_simclr_draw_is_made_by_a_device() {
        let dino = [
            RandomHorizontalFlip::default().into(),
            pillow_jitter(),
            RandomGrayscale { p: 0.2 }.into(),
            PillowGaussianBlur::default().into(),
            RandomSolarize::new(128.0).into(),
        ];
        let made = rule(&dino).unwrap();
        let sizes: Vec<_> = made.crops.iter().map(|c| (c.height, c.width)).collect();
        assert_eq!(sizes, [(32, 32), (32, 32), (8, 8), (8, 8), (8, 8)]);
        assert!(!made.has_float_sums);
        // A hull of twice the size of the largest crop, which is more than all crops.
        assert!(made.pixels >= 3 * 64 * 85);
        let blur = RandomApply::new([Op::from(GaussianBlur::new(9))]);
        assert!(rule(&[blur.into()]).unwrap().has_float_sums);
    }

    #[test]
    fn what_a_device_has_no_step_for_is_named() {
        let refused = |ops: &[Op]| rule(ops).unwrap_err();
        assert_eq!(
            refused(&[RandomErasing::default().into()]),
            "workers do random_erasing"
        );
        assert!(refused(&[Pad::new(1).into()]).contains("workers do pad"));
        assert!(refused(&[Resize::exact(9, 9).into()]).contains("more than once"));
        assert!(refused(&[pillow_jitter(), Resize::exact(9, 9).into()]).contains("after"));
        assert!(refused(&[ConvertColor::new(ColorSpace::Hsv).into()]).contains("convert_color"));
        assert!(refused(&[GaussianBlur::new(65).into()]).contains("up to 63"));
        let blur = Op::from(GaussianBlur::new(9));
        assert!(refused(&[blur.clone(), blur]).contains("one gaussian_blur"));
        assert!(refused(&vec![pillow_jitter(); 5]).contains("20 steps"));
        let floats = [
            Cast {
                dtype: DataType::F32,
            }
            .into(),
            ColorJitter::default().into(),
        ];
        assert!(refused(&floats).contains("workers do cast"));
        let nested = RandomApply::new([Op::from(RandomErasing::default())]);
        assert!(refused(&[nested.into()]).contains("random_erasing"));
        let separate = recipe(&[]).with_reorder(ReorderMode::Off);
        if let Ok(program) = SampleProgram::compile(&separate) {
            assert!(program.with_hulls().is_err());
        }
        let large = Recipe::new("large").then(RandomResizedCrop::new(9000));
        let large = SampleProgram::compile(&Recipe::new("r").with_crop(large, 1)).unwrap();
        assert!(large.with_hulls().unwrap_err().contains("1 GiB"));
        let one = SampleProgram::compile(&Recipe::train224()).unwrap();
        assert!(one.with_hulls().unwrap_err().contains("one crop"));
    }
}
