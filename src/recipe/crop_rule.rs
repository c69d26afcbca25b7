//! What workers hand over to a device: finished rows, or crops of RGB of which
//! the device makes rows.
//!
//! Follows from the recipe alone, so it is part of the numeric profile, and so does the room of
//! pixels: never from timing, nor from the data. A coded crop in their place may have more room, as
//! the files of a data set need it: the pixels are the same, whoever decodes.

use serde::{Deserialize, Serialize};

use super::move_unit::{MoveUnit, OperationPart};
use super::op::Op;
use super::operation::{DeviceSupport, Operation};
use super::recipe_spec::Recipe;
use super::row_extent::RowExtent;
use super::weights::ResizeFilter;

/// The room that rows of crops have. A crop that needs more is resized by its
/// worker; which ones, is a matter of the sample alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CropRule {
    /// Most that a side of the crop may be longer, by the recipe's aspects, than
    /// what a scaled decode leaves; 1 and more.
    skew: f64,
    /// Half the filter's width at scale 1, pixels; none = nothing is resized.
    support: Option<f64>,
    /// Rows may have a contrast step.
    contrast: bool,
    /// Bytes that a coded crop may take, where that is more than pixels may.
    coded: usize,
}

/// Bytes of the row of a crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CropRowBytes {
    /// For the weights of both axes.
    pub(crate) tables: usize,
    /// For the pixels.
    pub(crate) pixels: usize,
    /// For a coded crop in their place; not less than for the pixels.
    pub(crate) coded: usize,
}

/// Colour steps that a device does of a row.
pub(crate) const MAX_COLOR_STEPS: usize = 8;
/// Without a word on aspects in the recipe: photos are 4 x 3, as a rule.
const USUAL_SKEW: f64 = 4.0 / 3.0;
/// Longer crops are resized by workers.
const MOST_SKEW: f64 = 2.0;
/// In front of a resize a JPEG is decoded to less than twice the size on one axis.
const REDUCTION: f64 = 2.0;
/// Filters reach beyond the box: pixels on both sides together.
const REACH: f64 = 16.0;

impl CropRule {
    /// The rule for a recipe whose rows a device can make.
    ///
    /// # Errors
    /// Why it cannot: what the device has no step for, and so is done by workers,
    /// who then hand over finished rows.
    ///
    /// `order`: units in the order in which they run, but for the emission's.
    pub(crate) fn of(
        recipe: &Recipe,
        extent: RowExtent,
        fuses: bool,
        order: &[MoveUnit],
    ) -> Result<Self, String> {
        let RowExtent::Fixed { height, width } = extent else {
            return Err("rows keep the sizes of their pictures".into());
        };
        if recipe.mixing.as_ref().is_some_and(|m| m.mixer().is_some()) {
            return Err("mixing needs finished rows".into());
        }
        if recipe.ops.iter().any(|op| matches!(op, Op::ZeroChannel(_))) {
            return Err("workers do zero_channel".into());
        }
        if !fuses {
            return Err("reorder: off keeps each operation separate".into());
        }
        let mut rule = Self {
            skew: USUAL_SKEW,
            support: None,
            contrast: false,
            coded: 0,
        };
        let (mut colored, mut bordered, mut count, mut means) = (None, None, 0, 0);
        for unit in order {
            let op = recipe.ops.get(unit.op);
            let device = op.map(Op::device_support).unwrap_or_default();
            let name = op.map_or("decode: {color: grey}", Op::name);
            match unit.part {
                OperationPart::Turn => {}
                OperationPart::Crop | OperationPart::Resize if colored.is_some() => {
                    return Err(format!(
                        "{name} comes after {}",
                        colored.unwrap_or_default()
                    ));
                }
                OperationPart::Crop | OperationPart::Resize if bordered.is_some() => {
                    return Err(format!(
                        "{name} comes after the border of {}",
                        bordered.unwrap_or_default()
                    ));
                }
                // Workers add it: such a crop is handed over as large as the row.
                OperationPart::Pad if device.border && colored.is_none() => bordered = Some(name),
                OperationPart::Crop => {
                    if let Some(ratio) = device.ratio {
                        let target = f64::from(width) / f64::from(height);
                        let skew = (target / ratio.0).max(ratio.1 / target);
                        rule.skew = skew.clamp(1.0, MOST_SKEW);
                    }
                }
                OperationPart::Resize if rule.support.is_some() => {
                    return Err("it resizes more than once".into());
                }
                OperationPart::Resize => rule.support = Some(support(&device)),
                // What never moves may be done there, too, where it says so.
                OperationPart::Color | OperationPart::Augment => {
                    let by_workers = || format!("workers do {name}");
                    count += device.colors.ok_or_else(by_workers)?;
                    means += usize::from(device.takes_mean);
                    colored = Some(name);
                }
                _ => return Err(format!("workers do {name}")),
            }
        }
        if count > MAX_COLOR_STEPS {
            return Err(format!(
                "its colour operations may draw {count} steps, and a device takes {MAX_COLOR_STEPS}"
            ));
        }
        if means > 1 {
            return Err(format!(
                "its colour operations may draw {means} contrast steps, and a device takes one"
            ));
        }
        rule.contrast = means == 1;
        Ok(rule)
    }

    /// Whether a device reads the pixels of a row twice: once for the mean that
    /// contrast takes, once for the row.
    pub(crate) fn reads_twice(&self) -> bool {
        self.contrast
    }

    /// The same, with room for coded crops of so many bytes. Crops that are handed over as pixels
    /// are the same ones.
    pub(crate) fn with_coded_bytes(self, coded: usize) -> Self {
        Self { coded, ..self }
    }

    /// Bytes of the coefficients by which a whole picture of this width and height is resized in
    /// whole numbers; none = nothing is resized.
    pub(crate) fn resize_bytes(&self, (width, height): (u32, u32)) -> Option<u64> {
        let sides = f64::from(width) + f64::from(height);
        self.support.map(|support| (4.0 * support * sides) as u64)
    }

    /// The room for rows of this height and width.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> CropRowBytes {
        let (h, w) = (f64::from(height), f64::from(width));
        // One axis is decoded to less than twice the size; the other is longer by
        // the aspect. Which of both, is not known, and their product is the same.
        let (pixels, taps) = match self.support {
            None => (h * w, 1.0),
            Some(support) => (
                (REDUCTION * w + REACH) * (REDUCTION * self.skew * h + REACH),
                2.0 * (support * REDUCTION * self.skew).ceil() + 1.0,
            ),
        };
        let pixels = 3 * pixels as usize;
        CropRowBytes {
            tables: (4.0 * (h + w) * (1.0 + taps)) as usize,
            pixels,
            coded: pixels.max(self.coded),
        }
    }
}

fn support(device: &DeviceSupport) -> f64 {
    device.filter.map_or(0.0, |(interpolation, antialias)| {
        ResizeFilter::of(interpolation, antialias).0.support()
    })
}

#[cfg(test)]
mod tests {
    use crate::recipe::{
        CenterCrop, ColorJitter, ColorSpace, ConvertColor, Decode, GaussianBlur, JitterStyle,
        Normalize, Op, PcaLighting, RandomGrayscale, RandomResizedCrop, RandomRotate90, Recipe,
        Resize, SampleProgram, Span,
    };

    fn with_crops(ops: &[Op]) -> Result<SampleProgram, String> {
        let mut recipe = Recipe::new("r").then(Decode::default());
        recipe.ops.push(RandomResizedCrop::new(9).into());
        recipe.ops.extend(ops.iter().cloned());
        SampleProgram::compile(&recipe).unwrap().with_crops()
    }

    #[test]
    fn what_a_device_has_no_step_for_is_named() {
        let refused = |op: Op| with_crops(&[op]).unwrap_err();
        let blur = GaussianBlur::new(3);
        assert!(refused(blur.into()).contains("gaussian_blur"));
        let lighting = PcaLighting::default();
        assert!(refused(lighting.into()).contains("pca_lighting"));
        let pillow = ColorJitter {
            brightness: Span(0.5, 1.5),
            style: JitterStyle::Pillow,
            ..ColorJitter::default()
        };
        assert!(refused(pillow.into()).contains("workers do color_jitter"));
        assert!(refused(Resize::exact(5, 5).into()).contains("more than once"));
        assert!(with_crops(&[RandomRotate90::default().into()]).is_ok());
        // Three of nine steps that a jitter may draw are too many.
        let jitter = Op::from(ColorJitter {
            brightness: Span(0.5, 1.5),
            ..ColorJitter::default()
        });
        assert!(with_crops(&vec![jitter.clone(); 2]).is_ok());
        let many = with_crops(&vec![jitter; 3]).unwrap_err();
        assert!(many.contains("9 steps"), "{many}");
    }

    #[test]
    fn one_contrast_is_handed_over_and_two_are_not() {
        let reads_twice = |ops: &[Op]| with_crops(ops).unwrap().crops.unwrap().reads_twice();
        let plain = ColorJitter {
            brightness: Span(0.6, 1.4),
            saturation: Span(0.6, 1.4),
            hue: Span(-0.1, 0.1),
            ..ColorJitter::default()
        };
        let usual = Op::from(ColorJitter {
            contrast: Span(0.6, 1.4),
            ..plain
        });
        let grey = Op::from(RandomGrayscale { p: 0.1 });
        assert!(!reads_twice(&[]));
        assert!(!reads_twice(&[plain.into()]));
        assert!(reads_twice(std::slice::from_ref(&usual)));
        // SimCLR's, and what colour spaces follow.
        assert!(reads_twice(&[
            usual.clone(),
            grey,
            Normalize::imagenet().into()
        ]));
        let lab = ConvertColor::new(ColorSpace::Lab);
        assert!(reads_twice(&[usual.clone(), lab.into()]));
        let two = with_crops(&[usual.clone(), usual.clone()]).unwrap_err();
        assert!(two.contains("2 contrast steps"), "{two}");
        // The mean of the crop is not that of the picture.
        let cropped = with_crops(&[usual, CenterCrop::new(5).into()]).unwrap_err();
        assert!(cropped.contains("after color_jitter"), "{cropped}");
    }
}
