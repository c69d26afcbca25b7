//! Aspect-ratio buckets: the size of the rows of an image, and the size that it is resized to before
//! it is cropped to them.
//!
//! Pure. Which images are in one batch is decided in `order`, and how they are cropped by the recipe.
//! Each style has the rule of one trainer, number by number:
//! - `sd_scripts`: kohya's sd-scripts, `BucketManager`;
//! - `diffusers`: `training_utils` and the DreamBooth scripts of diffusers;
//! - `ai_toolkit`: ostris' ai-toolkit, `toolkit/buckets.py`;
//! - `simple_tuner`: SimpleTuner, `MultiaspectImage` and `TrainingSample`.
//!
//! `bucket_fit` is the result.

mod ai_toolkit;
mod bucket_fit;
mod diffusers;
mod sd_scripts;
mod simple_tuner;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::values::InterpolationMode;
use crate::error::{Error, Result};
pub(crate) use bucket_fit::BucketFit;
use bucket_fit::rounded;
use sd_scripts::SdScriptsBuckets;

/// Largest side of a bucket.
const MOST_SIDE: u32 = 16_384;
/// The least and the largest side of the ladder of sd-scripts.
const USUAL_SIDES: (u32, u32) = (256, 1024);

/// The trainer whose rule buckets follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketStyle {
    /// A ladder of sizes. An image takes the one with the nearest ratio of width to height.
    #[default]
    SdScripts,
    /// Eleven ratios. An image takes the nearest one, and is never enlarged but for the rounding.
    Diffusers,
    /// The size of the image, reduced to the area. An image is never enlarged but for the rounding.
    AiToolkit,
    /// The ratio of the image, rounded to hundredths, and the sides of this ratio that have the area.
    /// Images are enlarged to their bucket.
    #[serde(rename = "simpletuner")]
    SimpleTuner,
}

/// How images are put into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketRule {
    /// Most pixels of a row, but for the rounding of a style.
    pub area: u64,
    /// Sides are multiples of this. Default: 64 for sd-scripts and simpletuner, 16 for
    /// diffusers, 8 for ai-toolkit.
    pub step: Option<u32>,
    pub style: BucketStyle,
    /// sd-scripts with `upscale`: the least and the largest side of the ladder. Default: 256 and 1024.
    pub sides: Option<(u32, u32)>,
    /// sd-scripts: whether images are enlarged to their bucket. Without it an image keeps its size if
    /// its area is small enough, and its sides are cut to multiples of `step`.
    pub upscale: bool,
}

impl Default for BucketRule {
    fn default() -> Self {
        Self {
            area: 1 << 20,
            step: None,
            style: BucketStyle::default(),
            sides: None,
            upscale: true,
        }
    }
}

/// A rule that is ready for many images.
#[derive(Debug)]
pub(crate) struct BucketFitter {
    rule: BucketRule,
    ladder: SdScriptsBuckets,
}

impl BucketStyle {
    fn usual_step(self) -> u32 {
        match self {
            Self::SdScripts | Self::SimpleTuner => 64,
            Self::Diffusers => 16,
            Self::AiToolkit => 8,
        }
    }
}

impl BucketStyle {
    /// The interpolation of a resize. `shrinks`: no side grows.
    pub(crate) fn interpolation(self, shrinks: bool) -> InterpolationMode {
        match self {
            Self::SdScripts if shrinks => InterpolationMode::Area,
            Self::SdScripts => InterpolationMode::Lanczos,
            Self::Diffusers | Self::SimpleTuner => InterpolationMode::Bilinear,
            Self::AiToolkit => InterpolationMode::Bicubic,
        }
    }

    /// Whether a resize that shrinks uses all pixels.
    pub(crate) fn antialias(self) -> bool {
        self != Self::SimpleTuner
    }

    /// The pixels before a centre crop, of those that are cut away on an axis.
    pub(crate) fn margin(self, spare: u32) -> u32 {
        match self {
            Self::SdScripts | Self::AiToolkit | Self::SimpleTuner => spare / 2,
            Self::Diffusers => rounded(f64::from(spare) / 2.0) as u32,
        }
    }

    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::SdScripts => "sd-scripts",
            Self::Diffusers => "diffusers",
            Self::AiToolkit => "ai-toolkit",
            Self::SimpleTuner => "simpletuner",
        }
    }
}

impl fmt::Display for BucketRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, step) = (self.style.name(), self.step());
        write!(f, "{style}, area {}, step {step}", self.area)?;
        match (self.style, self.upscale) {
            (BucketStyle::SdScripts, true) => {
                let (least, most) = self.sides.unwrap_or(USUAL_SIDES);
                write!(f, ", sides {least} to {most}")
            }
            (BucketStyle::SdScripts, false) => f.write_str(", no upscale"),
            _ => Ok(()),
        }
    }
}

impl BucketRule {
    /// Sides of buckets are multiples of this.
    pub(crate) fn step(&self) -> u32 {
        self.step.unwrap_or(self.style.usual_step())
    }

    /// As [`BucketFitter::fit`], for one image. None also if the rule is wrong.
    pub(crate) fn fit(&self, size: (u32, u32)) -> Option<BucketFit> {
        self.fitter().ok()?.fit(size)
    }

    /// Checks all numbers, and makes the ladder of sizes.
    ///
    /// # Errors
    /// A number is out of range; the ladder has no size.
    pub(crate) fn fitter(&self) -> Result<BucketFitter> {
        let refused = |what: String| Err(Error::option("sampler", format!("buckets: {what}")));
        if self.style != BucketStyle::SdScripts && !self.upscale {
            return refused("upscale is of style sd-scripts only: remove it".into());
        }
        if self.sides.is_some() && (self.style != BucketStyle::SdScripts || !self.upscale) {
            return refused("sides are of style sd-scripts with upscale only: remove them".into());
        }
        let sides = self.sides.unwrap_or(USUAL_SIDES);
        let (least, most) = sides;
        let step = self.step();
        let largest = u64::from(MOST_SIDE);
        if !(1..=MOST_SIDE).contains(&step) {
            return refused(format!("step {step} must be 1 to {MOST_SIDE}"));
        }
        if !(u64::from(step).pow(2)..=largest * largest).contains(&self.area) {
            return refused(format!(
                "area {} must be {} (step x step) to {}",
                self.area,
                u64::from(step).pow(2),
                largest * largest
            ));
        }
        if least == 0 || least > most || most > MOST_SIDE {
            return refused(format!(
                "sides {least} to {most} must be 1 to {MOST_SIDE}, the least first"
            ));
        }
        let is_ladder = self.style == BucketStyle::SdScripts && self.upscale;
        let squares = u64::from(least).pow(2)..=u64::from(most).pow(2);
        if is_ladder && !squares.contains(&self.area) {
            return refused(format!(
                "area {} must be {} to {}, the squares of the sides {least} and {most}: give other \
                 sides",
                self.area,
                squares.start(),
                squares.end()
            ));
        }
        let ladder = match (self.style, self.upscale) {
            (BucketStyle::SdScripts, true) => SdScriptsBuckets::new(self.area, sides, step),
            _ => SdScriptsBuckets::default(),
        };
        Ok(BucketFitter {
            rule: *self,
            ladder,
        })
    }
}

impl BucketFitter {
    /// The bucket of an upright image of this height and width. None if a side of the row would be 0,
    /// or larger than any row may be.
    pub(crate) fn fit(&self, size: (u32, u32)) -> Option<BucketFit> {
        if size.0 == 0 || size.1 == 0 {
            return None;
        }
        let (area, step) = (self.rule.area, self.rule.step());
        let fit = match (self.rule.style, self.rule.upscale) {
            (BucketStyle::SdScripts, true) => self.ladder.fit(size),
            (BucketStyle::SdScripts, false) => sd_scripts::fit_without_upscale(size, area, step),
            (BucketStyle::Diffusers, _) => diffusers::fit(size, area, step),
            (BucketStyle::AiToolkit, _) => ai_toolkit::fit(size, area, step),
            (BucketStyle::SimpleTuner, _) => simple_tuner::fit(size, area, step),
        };
        let is_side = |side: u32| (1..=MOST_SIDE).contains(&side);
        let covers = fit.resized.0 >= fit.row.0 && fit.resized.1 >= fit.row.1;
        let fit = match covers {
            true => fit,
            // A trainer would crop beyond the image.
            false => BucketFit {
                resized: covering_size(size, fit.row),
                ..fit
            },
        };
        Some(fit).filter(|fit| is_side(fit.row.0) && is_side(fit.row.1))
    }
}

/// The size of an image that just covers a row, as diffusers rounds it.
pub(crate) fn covering_size(image: (u32, u32), row: (u32, u32)) -> (u32, u32) {
    let (height, width) = (f64::from(image.0.max(1)), f64::from(image.1.max(1)));
    let scale = (f64::from(row.0) / height).max(f64::from(row.1) / width);
    // A side that fits the row may be rounded below it.
    let side = |side: f64, least: u32| (rounded(side * scale) as u32).max(least);
    (side(height, row.0), side(width, row.1))
}
