//! A resize that covers a size, then a crop to exactly that size.
//!
//! Coordinates are multiplied by the ratio of the sides, and shifted by the crop's left and top.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::buckets::{BucketFit, BucketRule, BucketStyle, covering_size};
use crate::recipe::crop_sizes::{check_result, largest_resize};
use crate::recipe::defaults::is_default;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{InterpolationMode, Size};
use crate::recipe::weights::ResizeFilter;

/// Where a crop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CropPlace {
    #[default]
    Center,
    /// Each place is equally likely.
    Random,
}

described! {
    example: "cover_crop: {size: [512, 768]}";

    /// Resizes an image so that it just covers `size`, then crops it to `size`. The aspect ratio
    /// stays. With the sampler of [`buckets`](crate::order::Sampler::Buckets), `size` is that of
    /// the image's bucket, and rounding and interpolation are those of the sampler's style.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CoverCrop {
        /// Height and width of the result in pixels; one number for both. Batches of buckets have
        /// their own.
        pub size: Size,
        /// `center` or `random`.
        #[serde(default, skip_serializing_if = "is_default")]
        pub place: CropPlace,
        /// How values between pixels are computed. Default: bilinear with antialias. With buckets
        /// as the style does it.
        #[serde(default, skip_serializing_if = "is_default")]
        pub interpolation: Option<InterpolationMode>,
        /// The rule of the buckets. The loader takes it from the sampler.
        #[serde(default, skip_serializing_if = "is_default")]
        pub buckets: Option<BucketRule>,
    }
}

impl CoverCrop {
    /// The centre.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            place: CropPlace::Center,
            interpolation: None,
            buckets: None,
        }
    }

    /// At a random place.
    pub fn random(size: impl Into<Size>) -> Self {
        Self {
            place: CropPlace::Random,
            ..Self::new(size)
        }
    }

    fn row(&self) -> HeightWidth {
        (self.size.height, self.size.width)
    }

    fn style(&self) -> BucketStyle {
        self.buckets
            .map_or(BucketStyle::Diffusers, |rule| rule.style)
    }

    /// Height and width of the resized image.
    ///
    /// # Errors
    /// The image belongs into another bucket than its batch.
    fn resized(&self, image: HeightWidth) -> Result<HeightWidth, SampleFault> {
        let Some(rule) = &self.buckets else {
            return Ok(covering_size(image, self.row()));
        };
        match rule.fit(image) {
            Some(BucketFit { row, resized }) if row == self.row() => Ok(resized),
            Some(BucketFit { row, .. }) => Err(FaultKind::Changed.fault(format!(
                "the image is {} x {} and belongs to the bucket {} x {}, but its batch has {} x {}: \
                 the file has changed, or its header could not be read when the loader was built",
                image.1, image.0, row.1, row.0, self.size.width, self.size.height
            ))),
            None => {
                let step = rule.step();
                let is_small = image.0.min(image.1) < step.saturating_mul(2);
                let (kind, what) = match is_small {
                    true => (FaultKind::TooSmall, "small"),
                    false => (FaultKind::TooLarge, "long"),
                };
                Err(kind.fault(format!(
                    "the image is {} x {}, too {what} for any bucket ({rule})",
                    image.1, image.0
                )))
            }
        }
    }

    fn antialias(&self) -> bool {
        self.interpolation.is_some() || self.style().antialias()
    }

    fn filter(&self, image: HeightWidth, resized: HeightWidth) -> (InterpolationMode, bool) {
        let shrinks = resized.0 <= image.0 && resized.1 <= image.1;
        let of_style = || self.style().interpolation(shrinks);
        (
            self.interpolation.unwrap_or_else(of_style).of_pillow(),
            self.antialias(),
        )
    }

    fn resize(&self, image: HeightWidth, (height, width): HeightWidth) -> Step {
        let (interpolation, antialias) = self.filter(image, (height, width));
        Step::Resize {
            size: Size { height, width },
            interpolation,
            antialias,
        }
    }

    /// The crop of a resized image with these pixels before it.
    fn crop(&self, mut before: impl FnMut(u32) -> u32, resized: HeightWidth) -> Step {
        let (height, width) = self.row();
        Step::Crop(PixelRect {
            top: before(resized.0.saturating_sub(height)),
            left: before(resized.1.saturating_sub(width)),
            width,
            height,
        })
    }
}

impl Operation for CoverCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize, OperationPart::Crop];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        // The sampler checks the buckets.
        sides(self.size)?;
        known.set_size(self.size);
        Ok(())
    }

    fn draws(&self) -> bool {
        self.place == CropPlace::Random
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let to = self.resized(on.size)?;
        check_result("cover_crop", on.size, to)?;
        on.steps.push(self.resize(on.size, to));
        let crop = match self.place {
            CropPlace::Center => self.crop(|spare| self.style().margin(spare), to),
            CropPlace::Random => self.crop(|spare| on.random.next_up_to(spare), to),
        };
        on.steps.push(crop);
        Ok(self.row())
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let row = self.row();
        // An image of another bucket fails.
        let to = self.resized(size).unwrap_or(row);
        let to = (to.0.min(MAX_SIDE), to.1.min(MAX_SIDE));
        let reach = most.reach();
        if reach.is_fixed() {
            most.push(self.resize(size, to));
        } else {
            let SizeBounds { low, high, .. } = reach;
            // A style rounds up by less than two pixels, or leaves less than a step.
            let beyond = self.buckets.map_or(2, |rule| rule.step().max(2));
            let of = |image: HeightWidth| {
                let (height, width) = covering_size(image, row);
                (height.saturating_add(beyond), width.saturating_add(beyond))
            };
            let (height, _) = of((high.0, low.1.max(1)));
            let (_, width) = of((low.0.max(1), high.1));
            let widest = Step::Resize {
                size: to.into(),
                interpolation: self.widest().of_pillow(),
                antialias: self.antialias(),
            };
            largest_resize(most, widest, (height, width));
        }
        // Random crops may also begin at the first pixel.
        most.push(match self.place {
            CropPlace::Center => self.crop(|spare| self.style().margin(spare), to),
            CropPlace::Random => self.crop(|_| 0, to),
        });
        row
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        Some(Self {
            size: size.into(),
            ..*self
        })
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        Some(match part {
            OperationPart::Crop => "its crop",
            _ => "its resize",
        })
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            filter: Some((self.widest(), self.antialias())),
            ..DeviceSupport::default()
        }
    }
}

impl CoverCrop {
    /// Of the interpolations that images may have, the one that reads most pixels.
    fn widest(&self) -> InterpolationMode {
        let both = [true, false].map(|shrinks| self.style().interpolation(shrinks));
        let reach = |mode: &InterpolationMode| ResizeFilter::of(*mode, true).0.support();
        let [shrinking, enlarging] = both;
        self.interpolation
            .unwrap_or(if reach(&shrinking) > reach(&enlarging) {
                shrinking
            } else {
                enlarging
            })
    }
}
