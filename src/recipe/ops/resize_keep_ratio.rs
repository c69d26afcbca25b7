//! A resize that keeps the aspect ratio, with random scale and stretch, as in timm.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::defaults::is_default;
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, either_filter, number, range, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::StepBounds;
use crate::recipe::values::{InterpolationMode, Size, Span};
use crate::recipe::weights::ResizeFilter;

described! {
    example: "resize_keep_ratio: {size: 224, longest: 1}";

    /// Resizes an image so that it covers `size`, or with `longest: 1` fits into it (timm's
    /// `ResizeKeepRatio`). With probability `scale_p`, the result is larger or smaller by a random
    /// factor. With probability `aspect_p`, it is also stretched. A crop must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ResizeKeepRatio {
        /// Height and width in pixels; one number for both.
        pub size: Size,
        /// 0: the image covers `size`. 1: it fits into `size`. Between: the mean of both factors.
        #[serde(default)]
        pub longest: f64,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// An interpolation that replaces `interpolation` for half of the samples.
        #[serde(default, skip_serializing_if = "is_default")]
        pub interpolation_or: Option<InterpolationMode>,
        /// The probability of another scale, 0 to 1.
        #[serde(default)]
        pub scale_p: f64,
        /// Range of the share of the area that `size` then shows: below 1 the image is larger.
        #[serde(default = "ResizeKeepRatio::default_scale")]
        pub scale: Span,
        /// The probability of a stretch, 0 to 1.
        #[serde(default)]
        pub aspect_p: f64,
        /// Range of the factor by which width divided by height changes, drawn on a log scale.
        #[serde(default = "ResizeKeepRatio::default_ratio")]
        pub ratio: Span,
    }
}

impl ResizeKeepRatio {
    fn default_scale() -> Span {
        Span(0.8, 1.0)
    }

    fn default_ratio() -> Span {
        Span(0.9, 1.0 / 0.9)
    }

    /// Bilinear, covers `size`, without random values.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            longest: 0.0,
            interpolation: InterpolationMode::Bilinear,
            interpolation_or: None,
            scale_p: 0.0,
            scale: Self::default_scale(),
            aspect_p: 0.0,
            ratio: Self::default_ratio(),
        }
    }

    /// The size of the result. Rounded as Python's `round`, in timm's order of operations.
    fn output(&self, (height, width): HeightWidth, factors: (f64, f64)) -> HeightWidth {
        let (h, w) = (f64::from(height), f64::from(width));
        let of_height = h / f64::from(self.size.height);
        let of_width = w / f64::from(self.size.width);
        let (more, less) = (of_height.max(of_width), of_height.min(of_width));
        let by = more * self.longest + less * (1.0 - self.longest);
        let side = |v: f64, factor: f64| ((v * factor / by).round_ties_even() as u32).max(1);
        (side(h, factors.0), side(w, factors.1))
    }

    /// The largest factor of a side that can be drawn.
    fn largest_factor(&self) -> f64 {
        let scaled = match self.scale_p > 0.0 {
            true => (1.0 / self.scale.0.sqrt()).max(1.0),
            false => 1.0,
        };
        let stretched = match self.aspect_p > 0.0 {
            true => self.ratio.1.max(1.0 / self.ratio.0).sqrt().max(1.0),
            false => 1.0,
        };
        scaled * stretched
    }

    /// Of both interpolations, the one that reads more pixels.
    fn widest(&self) -> InterpolationMode {
        let reach = |i: InterpolationMode| ResizeFilter::of(i, true).0.support();
        match self.interpolation_or {
            Some(other) if reach(other) > reach(self.interpolation) => other,
            _ => self.interpolation,
        }
    }

    fn is_random(&self) -> bool {
        self.scale_p > 0.0 || self.aspect_p > 0.0
    }

    /// The bounds of the result. A side grows with itself, and shrinks if the other one grows.
    fn bounds(&self, from: SizeBounds) -> SizeBounds {
        let most = self.largest_factor();
        let (height, _) = self.output((from.high.0, from.low.1.max(1)), (most, most));
        let (_, width) = self.output((from.low.0.max(1), from.high.1), (most, most));
        SizeBounds::between((1, 1), (height.min(MAX_SIDE), width.min(MAX_SIDE)))
    }
}

impl Operation for ResizeKeepRatio {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        number("longest", self.longest, 0.0, 1.0)?;
        number("scale_p", self.scale_p, 0.0, 1.0)?;
        number("aspect_p", self.aspect_p, 0.0, 1.0)?;
        range("scale", self.scale, 0.0, MOST)?;
        range("ratio", self.ratio, 0.0, MOST)?;
        either_filter(self.interpolation, self.interpolation_or)?;
        let fixed = known.size.filter(|_| !self.is_random());
        known.size = fixed.map(|size| self.output(size, (1.0, 1.0)));
        known.min_side = known.size.map(|(h, w)| h.min(w));
        known.resized = true;
        Ok(())
    }

    /// Draws in timm's order. A draw that is not needed is not made.
    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let mut factors = (1.0, 1.0);
        if self.scale_p > 0.0 && on.random.next_f64() < self.scale_p {
            let by = 1.0 / self.scale.draw(on.random).sqrt();
            factors = (by, by);
        }
        if self.aspect_p > 0.0 && on.random.next_f64() < self.aspect_p {
            let log = Span(libm::log(self.ratio.0), libm::log(self.ratio.1));
            let by = libm::exp(log.draw(on.random)).sqrt();
            factors = (factors.0 / by, factors.1 * by);
        }
        let interpolation = match self.interpolation_or {
            Some(other) if on.random.next_up_to(1) == 1 => other,
            _ => self.interpolation,
        };
        let to = self.output(on.size, factors);
        if to.0.max(to.1) > MAX_SIDE {
            return Err(FaultKind::TooLarge.fault(format!(
                "the image is {} x {}, resize_keep_ratio makes it {} x {}, and a side has at most \
                 {MAX_SIDE} pixels: put a crop before it",
                on.size.1, on.size.0, to.1, to.0
            )));
        }
        on.steps.push(resize(to, interpolation));
        Ok(to)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let by = self.largest_factor();
        let (height, width) = self.output(size, (by, by));
        let to = (height.min(MAX_SIDE), width.min(MAX_SIDE));
        let over = StepBounds {
            size_after: Some(self.bounds(most.reach())),
            ..StepBounds::default()
        };
        most.add(resize(to, self.widest()), over);
        to
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            filter: Some((self.widest(), true)),
            ..DeviceSupport::default()
        }
    }
}

fn resize((height, width): HeightWidth, interpolation: InterpolationMode) -> Step {
    Step::Resize {
        size: Size { height, width },
        interpolation,
        antialias: true,
    }
}

/// The largest change of scale or shape.
const MOST: f64 = 100.0;
