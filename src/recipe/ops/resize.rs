//! A resize to a size, or by one side.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::yes;
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{check_side, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::StepBounds;
use crate::recipe::values::{InterpolationMode, LengthRounding, ResizeTo, Size};

described! {
    example: "resize: {size: 256}";

    /// Resizes an image like torchvision's `Resize`. `size` as a number: the length of the shorter side. The longer side
    /// keeps the aspect ratio (truncated to a whole number) and is at most `max_size`. `size:
    /// [height, width]`: exactly that. Without `size`: the longer side becomes `max_size`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Resize {
        /// The shorter side, or `[height, width]`, in pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<ResizeTo>,
        /// The maximum of the longer side, in pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_size: Option<u32>,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "yes")]
        pub antialias: bool,
        /// How the side that keeps the ratio is rounded: `down` as in torchvision, `nearest` as in
        /// PaddleClas, `up` as in ultralytics. `detr`: as in the image processors of Hugging Face's
        /// DETR, which round the shorter side to the nearest where `max_size` limits the longer one.
        #[serde(default = "down", skip_serializing_if = "is_down")]
        pub rounding: LengthRounding,
    }
}

impl Resize {
    fn new(size: Option<ResizeTo>, max_size: Option<u32>) -> Self {
        Self {
            size,
            max_size,
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
            rounding: LengthRounding::Down,
        }
    }

    /// The shorter side becomes `side` pixels.
    pub fn shorter(side: u32) -> Self {
        Self::new(Some(ResizeTo::Shorter(side)), None)
    }

    /// The longer side becomes `side` pixels.
    pub fn longer(side: u32) -> Self {
        Self::new(None, Some(side))
    }

    /// To `height` x `width`, whatever the aspect ratio.
    pub fn exact(height: u32, width: u32) -> Self {
        Self::new(Some(ResizeTo::Exact(Size { height, width })), None)
    }
}

impl Resize {
    /// Height and width of the result for an image of this height and width. As in torchvision, or
    /// with `rounding: nearest` as in PaddleClas, except that no side is 0.
    pub(crate) fn output(&self, (height, width): HeightWidth) -> HeightWidth {
        let (short, long) = (height.min(width), height.max(width));
        if let (LengthRounding::Detr, Some(ResizeTo::Shorter(side)), Some(max)) =
            (self.rounding, self.size, self.max_size)
            && let Some((short, long)) = limited_as_detr((short, long), side, max)
        {
            return if height <= width {
                (short, long)
            } else {
                (long, short)
            };
        }
        // `b` times the factor from `c` to `a`.
        let scaled = |a: u32, b: u32, c: u32| match self.rounding {
            // In whole numbers, as torchvision's int(): a float quotient may fall just below a
            // whole number.
            LengthRounding::Down | LengthRounding::Detr => {
                let v = u64::from(a) * u64::from(b) / u64::from(c.max(1));
                v.clamp(1, u64::from(u32::MAX)) as u32
            }
            // In floats with the factor first, as there, which determines which values are halves.
            LengthRounding::Nearest => {
                let factor = f64::from(a) / f64::from(c.max(1));
                ((f64::from(b) * factor).round_ties_even() as u32).max(1)
            }
            LengthRounding::Up => {
                let factor = f64::from(a) / f64::from(c.max(1));
                ((f64::from(b) * factor).ceil() as u32).max(1)
            }
        };
        let (new_short, new_long) = match (self.size, self.max_size) {
            (Some(ResizeTo::Exact(size)), _) => return (size.height, size.width),
            (Some(ResizeTo::Shorter(side)), max) => {
                let new_long = scaled(side, long, short);
                match max.filter(|max| new_long > *max) {
                    Some(max) => (scaled(max, side, new_long), max),
                    None => (side, new_long),
                }
            }
            (None, Some(max)) => (scaled(max, short, long).min(max), max),
            // Rejected by `check`.
            (None, None) => (short, long),
        };
        if height <= width {
            (new_short, new_long)
        } else {
            (new_long, new_short)
        }
    }
}

impl Operation for Resize {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if let Some(side) = self.max_size {
            check_side("max_size", side)?;
        }
        known.resized = true;
        match (self.size, self.max_size) {
            (None, None) => Err(
                "needs a size or a max_size: write size: 256, size: [256, 256] or max_size: 256"
                    .into(),
            ),
            (Some(ResizeTo::Exact(size)), None) => {
                sides(size)?;
                if self.rounding != LengthRounding::Down {
                    return Err(format!(
                        "size {size} sets both sides, so rounding has no effect: remove it, or \
                         use one number as size"
                    ));
                }
                known.set_size(size);
                Ok(())
            }
            (Some(ResizeTo::Exact(size)), Some(max)) => Err(format!(
                "size {size} sets both sides, so max_size {max} has no effect: remove it, or use \
                 one number as size"
            )),
            (Some(ResizeTo::Shorter(side)), max) => {
                check_side("size", side)?;
                if self.rounding == LengthRounding::Detr && max.is_none() {
                    return Err("rounding: detr needs a max_size, such as 1333".into());
                }
                // DETR's rule also fits images into a square.
                let fits_square = self.rounding == LengthRounding::Detr;
                if let Some(max) = max.filter(|max| *max <= side && !(fits_square && *max == side))
                {
                    return Err(format!(
                        "max_size is {max}, which limits the longer side: use more than size {side}"
                    ));
                }
                known.size = known.size.map(|size| self.output(size));
                known.min_side = match (known.size, max) {
                    (Some((h, w)), _) => Some(h.min(w)),
                    (None, None) => Some(side),
                    // The shorter side of a long image can have any length.
                    (None, Some(_)) => None,
                };
                Ok(())
            }
            (None, Some(max)) if self.rounding == LengthRounding::Detr => Err(format!(
                "rounding: detr needs the length of the shorter side: write size: 800, max_size: \
                 {max}"
            )),
            (None, Some(_)) => {
                known.size = known.size.map(|size| self.output(size));
                known.min_side = known.size.map(|(h, w)| h.min(w));
                Ok(())
            }
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let to = self.output(on.size);
        on.steps.push(Step::Resize {
            size: to.into(),
            interpolation: self.interpolation,
            antialias: self.antialias,
        });
        Ok(to)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = self.output(size);
        let step = Step::Resize {
            size: to.into(),
            interpolation: self.interpolation,
            antialias: self.antialias,
        };
        let reach = most.reach();
        // If both sides are fixed, the step has them: a batch may have set them.
        let by_shape = !reach.is_fixed() && !matches!(self.size, Some(ResizeTo::Exact(_)));
        let behind = by_shape.then(|| self.bounds(reach));
        let over = StepBounds {
            size_after: behind,
            ..StepBounds::default()
        };
        most.add(step, over);
        to
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        matches!(self.size, Some(ResizeTo::Exact(_))).then(|| Self {
            size: Some(ResizeTo::Exact(size.into())),
            ..*self
        })
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            filter: Some((self.interpolation, self.antialias)),
            ..DeviceSupport::default()
        }
    }
}

impl Resize {
    /// The size bounds of the result.
    fn bounds(&self, from: SizeBounds) -> SizeBounds {
        let short = from.low.0.min(from.low.1).max(1);
        let long = from.high.0.max(from.high.1);
        let scaled = |side: u32| {
            let v = (u64::from(side) * u64::from(long)).div_ceil(u64::from(short));
            u32::try_from(v).unwrap_or(u32::MAX)
        };
        let (low, high) = match (self.size, self.max_size) {
            (Some(ResizeTo::Exact(size)), _) => {
                let size = (size.height, size.width);
                (size, size)
            }
            (Some(ResizeTo::Shorter(side)), None) => ((side, side), (scaled(side), scaled(side))),
            (Some(ResizeTo::Shorter(side)), Some(max)) => {
                let most = scaled(side).min(max.max(side));
                ((1, 1), (most, most))
            }
            (None, Some(max)) => ((1, 1), (max, max)),
            (None, None) => (from.low, from.high),
        };
        SizeBounds::between(low, high)
    }
}

/// Shorter and longer side of an image whose longer side DETR limits. None: it limits nothing.
///
/// In floats, which decide there whether the longer side loses a pixel. An image whose shorter side
/// stays keeps its longer side there, also beyond the limit; here it has the limit.
fn limited_as_detr((short, long): (u32, u32), side: u32, max: u32) -> Option<(u32, u32)> {
    let (short_f, long_f) = (f64::from(short.max(1)), f64::from(long));
    if long_f / short_f * f64::from(side) <= f64::from(max) {
        return None;
    }
    let raw = f64::from(max) * short_f / long_f;
    let rounded = raw.round_ties_even() as u32;
    let longer = match rounded == short {
        true => long,
        false => (raw * long_f / short_f) as u32,
    };
    Some((rounded.max(1), longer.clamp(1, max)))
}

fn down() -> LengthRounding {
    LengthRounding::Down
}

fn is_down(rounding: &LengthRounding) -> bool {
    *rounding == LengthRounding::Down
}
