//! A resize to a random share of a size, then a crop and a border to exactly that size.
//!
//! Coordinates are multiplied by the ratio of the sides, and shifted by the crop's left and top.

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::{check_result, largest_resize};
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{range, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{InterpolationMode, Padding, PaddingMode, PerChannel, Size, Span};

described! {
    example: "large_scale_jitter: {size: [1024, 1024], scale: [0.1, 2.0]}";

    /// Resizes an image so that it just fits into `size`, times a factor that is uniform in
    /// `scale`. Then takes a part of at most `size` at a random place, and adds a border at the
    /// right and at the bottom (detectron2's `ResizeScale` and `FixedSizeCrop`). The aspect ratio
    /// stays.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LargeScaleJitter {
        /// Height and width of the result.
        pub size: Size,
        /// The range of the factor, above 0, at most 100.
        #[serde(default = "usual_scale")]
        pub scale: Span,
        /// The colour of the border.
        #[serde(default = "grey")]
        pub fill: PerChannel,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

fn usual_scale() -> Span {
    Span(0.1, 2.0)
}

fn grey() -> PerChannel {
    PerChannel([128.0; 3])
}

impl LargeScaleJitter {
    /// Bilinear, with factors of 0.1 to 2 and a grey border.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale: usual_scale(),
            fill: grey(),
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    /// Height and width of the resized image.
    fn resized(&self, (height, width): HeightWidth, factor: f64) -> HeightWidth {
        let of = |to: u32, from: u32| f64::from(to) * factor / f64::from(from.max(1));
        let by = of(self.size.height, height).min(of(self.size.width, width));
        let side = |n: u32| ((f64::from(n) * by).round_ties_even() as u32).max(1);
        (side(height), side(width))
    }

    fn resize(&self, (height, width): HeightWidth) -> Step {
        Step::Resize {
            size: Size { height, width },
            interpolation: self.interpolation,
            antialias: self.antialias,
        }
    }

    fn pad(&self, known: &PixelState, (height, width): HeightWidth) -> Option<Step> {
        let bottom = self.size.height.saturating_sub(height);
        let right = self.size.width.saturating_sub(width);
        ((bottom, right) != (0, 0)).then(|| Step::Pad {
            padding: Padding {
                bottom,
                right,
                ..Padding::default()
            },
            mode: PaddingMode::Constant,
            fill: known.in_memory(self.fill.0),
        })
    }
}

impl Operation for LargeScaleJitter {
    const PARTS: &'static [OperationPart] = &[
        OperationPart::Resize,
        OperationPart::Crop,
        OperationPart::Pad,
    ];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        range("scale", self.scale, 0.0, 100.0)?;
        known.check_color("fill", self.fill.0)?;
        known.set_size(self.size);
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let factor = self.scale.draw(on.random);
        let to = self.resized(on.size, factor);
        check_result("large_scale_jitter", on.size, to)?;
        on.steps.push(self.resize(to));
        // One number for both axes.
        let place = on.random.next_f64();
        let before = |side: u32, most: u32| {
            let more = f64::from(side.saturating_sub(most));
            (more * place).round_ties_even() as u32
        };
        let rect = PixelRect {
            left: before(to.1, self.size.width),
            top: before(to.0, self.size.height),
            width: to.1.min(self.size.width),
            height: to.0.min(self.size.height),
        };
        if (rect.height, rect.width) != to {
            on.steps.push(Step::Crop(rect));
        }
        if let Some(pad) = self.pad(on.known, (rect.height, rect.width)) {
            on.steps.push(pad);
        }
        Ok((self.size.height, self.size.width))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let whole = (self.size.height, self.size.width);
        let factor = self.scale.1;
        let SizeBounds { low, high, .. } = most.reach();
        let (height, _) = self.resized((high.0, low.1.max(1)), factor);
        let (_, width) = self.resized((low.0.max(1), high.1), factor);
        let to = self.resized(size, factor);
        largest_resize(most, self.resize(to), (height, width));
        let kept = (to.0.min(whole.0), to.1.min(whole.1));
        let over = |presence, low, high| StepBounds {
            presence,
            size_after: Some(SizeBounds::between(low, high)),
            ..StepBounds::default()
        };
        let crop = Step::Crop(PixelRect::whole(kept));
        most.add(crop, over(StepPresence::Maybe, (1, 1), whole));
        // The border of the smallest image: the largest may have none.
        let least = self.resized(size, self.scale.0);
        let least = (least.0.min(whole.0), least.1.min(whole.1));
        if let Some(pad) = self.pad(known, least) {
            most.add(pad, over(StepPresence::Maybe, whole, whole));
        }
        whole
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        Some(Self {
            size: size.into(),
            ..*self
        })
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        Some(match part {
            OperationPart::Resize => "its resize",
            OperationPart::Crop => "its crop",
            _ => "its border",
        })
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((PaddingMode::Constant, self.fill)),
            ..MoveRights::default()
        }
    }
}
