//! The bounds of an image's size between two operations, over all possible draws. The largest case
//! is computed from them. Pure.

use super::step::Step;
use super::values::Span;

/// Height and width.
pub(crate) type HeightWidth = (u32, u32);

/// The range of each side, and the maximum number of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeBounds {
    pub(crate) low: HeightWidth,
    pub(crate) high: HeightWidth,
    pub(crate) area: u64,
}

/// The shapes of a crop of random area.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AspectBounds {
    /// Width divided by height, before rounding.
    pub(crate) ratio: Span,
    /// By how many pixels at most the unrounded side exceeds the rounded one.
    pub(crate) fraction: f64,
}

impl AspectBounds {
    /// For sides that are rounded to the nearest whole number.
    pub(crate) fn rounded(ratio: Span) -> Self {
        let fraction = 0.5;
        Self { ratio, fraction }
    }

    /// For sides that are truncated.
    pub(crate) fn cut(ratio: Span) -> Self {
        let fraction = 1.0;
        Self { ratio, fraction }
    }
}

impl SizeBounds {
    /// Exactly one size.
    pub(crate) fn exactly(sides: HeightWidth) -> Self {
        Self::between(sides, sides)
    }

    pub(crate) fn between(low: HeightWidth, high: HeightWidth) -> Self {
        Self {
            low,
            high,
            area: area(high),
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        self.low == self.high
    }

    /// The bounds after a size change that grows with both sides.
    pub(crate) fn map(&self, of: impl Fn(HeightWidth) -> HeightWidth) -> Self {
        Self::between(of(self.low), of(self.high))
    }

    /// The bounds after a step that changes the size. None: the step alone does not determine them.
    pub(crate) fn after_step(&self, step: &Step) -> Option<Self> {
        Some(match *step {
            Step::Crop(rect) => Self::exactly((rect.height, rect.width)),
            Step::Resize { size, .. } => Self::exactly((size.height, size.width)),
            Step::Turn(quarters) if quarters % 2 == 1 => Self {
                low: (self.low.1, self.low.0),
                high: (self.high.1, self.high.0),
                area: self.area,
            },
            Step::Pad { padding: p, .. } => {
                let more = |(h, w): HeightWidth| {
                    (
                        h.saturating_add(p.top).saturating_add(p.bottom),
                        w.saturating_add(p.left).saturating_add(p.right),
                    )
                };
                // The pixels so far plus the frame.
                let (high, before) = (more(self.high), area(self.high));
                let frame = area(high) - before.min(area(high));
                Self {
                    low: more(self.low),
                    high,
                    area: self.area.saturating_add(frame).min(area(high)),
                }
            }
            _ => return None,
        })
    }

    /// The bounds after any number of quarter turns.
    pub(crate) fn after_any_turn(&self) -> Self {
        let (least, most) = (self.low.0.min(self.low.1), self.high.0.max(self.high.1));
        Self {
            low: (least, least),
            high: (most, most),
            area: self.area,
        }
    }

    /// The bounds after a crop of random area and shape, with rounded or truncated sides.
    pub(crate) fn after_random_crop(&self, scale: Span, ratio: Span) -> Self {
        let all = self.area as f64 * scale.1;
        let h = (all / ratio.0).sqrt().round_ties_even();
        let w = (all * ratio.1).sqrt().round_ties_even();
        let least = self.area as f64 * scale.0;
        let (least_h, least_w) = ((least / ratio.1).sqrt(), (least * ratio.0).sqrt());
        let (height, width) = self.high;
        let fits = self.is_fixed()
            && h <= f64::from(height)
            && w <= f64::from(width)
            && least_h > 0.5
            && least_w > 0.5;
        if fits {
            let most = (h as u32, w as u32);
            let rounded = all as u64 + u64::from(most.0) + u64::from(most.1) + 1;
            Self {
                low: (1, 1),
                high: most,
                area: area(most).min(rounded),
            }
        } else {
            // If no draw fits, the crop is a central part. The whole image is a bound.
            Self {
                low: (1, 1),
                ..*self
            }
        }
    }
}

/// Number of pixels.
pub(crate) fn area((h, w): HeightWidth) -> u64 {
    u64::from(h) * u64::from(w)
}
