//! What workers hand over to a device: finished rows, or RGB crops from which the device makes
//! rows.
//!
//! The choice, and the bytes reserved for pixels, follow from the recipe alone. They depend neither
//! on timing nor on the data, so they belong to the numeric profile. A coded crop in place of the
//! pixels may have more bytes, as the files need it. Its pixels are the same, whether a worker or
//! the device decodes it.

use serde::{Deserialize, Serialize};

use super::move_unit::{MoveUnit, OperationPart};
use super::op::Op;
use super::operation::{DeviceSupport, Operation};
use super::recipe_spec::Recipe;
use super::row_extent::RowExtent;
use super::weights::ResizeFilter;

/// How many bytes a row of a crop has. A worker resizes each crop that needs more. Which crops
/// those are depends on the sample alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CropRule {
    /// By what factor the longer side of a crop may exceed the result of a scaled decode, at least
    /// 1. It comes from the aspect ratios in the recipe.
    skew: f64,
    /// Half the filter's width at scale 1, in pixels. None: nothing is resized.
    support: Option<f64>,
    /// True if the recipe may draw a contrast step.
    contrast: bool,
    /// Bytes reserved for a coded crop, if that is more than for pixels.
    coded: usize,
}

/// Bytes of one row that holds a crop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CropRowBytes {
    /// For the resize weights of both axes.
    pub(crate) tables: usize,
    /// For pixels.
    pub(crate) pixels: usize,
    /// For a coded crop in place of the pixels. At least `pixels`.
    pub(crate) coded: usize,
}

/// The maximum number of colour steps for one row on a device.
pub(crate) const MAX_COLOR_STEPS: usize = 8;
/// Used if the recipe sets no aspect ratio: most photos are 4 x 3.
const USUAL_SKEW: f64 = 4.0 / 3.0;
/// Workers resize crops that are longer than this.
const MOST_SKEW: f64 = 2.0;
/// A JPEG that is resized is decoded to less than twice the size on one axis.
const REDUCTION: f64 = 2.0;
/// Filters read pixels outside the box: the number on both sides together.
const REACH: f64 = 16.0;

impl CropRule {
    /// The rule for a recipe whose rows a device can make.
    ///
    /// `order`: the units in the order in which they run, without those of the output format.
    ///
    /// # Errors
    /// The reason why a device cannot make the rows. Workers then hand over finished rows.
    pub(crate) fn of(
        recipe: &Recipe,
        extent: RowExtent,
        fuses: bool,
        order: &[MoveUnit],
    ) -> Result<Self, String> {
        let (height, width) = match extent {
            RowExtent::Fixed { height, width } => (height, width),
            RowExtent::Own => return Err("rows keep the sizes of their images".into()),
            RowExtent::Patches(_) => return Err("workers make patches".into()),
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
                // Workers add the border. The crop is then handed over with the size of the row.
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
                // These never move, but the device may run them if the operation supports it.
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

    /// Whether a device reads the pixels of a row twice: first for the mean that contrast needs,
    /// then for the row.
    pub(crate) fn reads_twice(&self) -> bool {
        self.contrast
    }

    /// The same rule with `coded` bytes reserved for coded crops. It does not change which crops
    /// are handed over as pixels.
    pub(crate) fn with_coded_bytes(self, coded: usize) -> Self {
        Self { coded, ..self }
    }

    /// Bytes of the fixed-point coefficients for resizing a whole image of this width and height.
    /// None: nothing is resized.
    pub(crate) fn resize_bytes(&self, (width, height): (u32, u32)) -> Option<u64> {
        let sides = f64::from(width) + f64::from(height);
        self.support.map(|support| (8.0 * support * sides) as u64)
    }

    /// The bytes of a row of this height and width.
    pub(crate) fn row_bytes(&self, (height, width): (u32, u32)) -> CropRowBytes {
        let (h, w) = (f64::from(height), f64::from(width));
        // One axis is decoded to less than twice the size. The other is longer by the aspect ratio.
        // It is unknown which axis that is, but the product is the same.
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
        // Three jitters may draw nine steps, which is too many.
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
        // SimCLR's jitter, followed by colour spaces.
        assert!(reads_twice(&[
            usual.clone(),
            grey,
            Normalize::imagenet().into()
        ]));
        let lab = ConvertColor::new(ColorSpace::Lab);
        assert!(reads_twice(&[usual.clone(), lab.into()]));
        let two = with_crops(&[usual.clone(), usual.clone()]).unwrap_err();
        assert!(two.contains("2 contrast steps"), "{two}");
        // The mean of the crop differs from the mean of the image.
        let cropped = with_crops(&[usual, CenterCrop::new(5).into()]).unwrap_err();
        assert!(cropped.contains("after color_jitter"), "{cropped}");
    }
}
