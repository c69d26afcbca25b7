//! The first steps of a sample, folded into its decoding: which part of the
//! stored picture is decoded, at which scale, and the one resize that follows.
//!
//! Crops, flips and quarter turns move no pixels: they change the part that is
//! taken, and how it is turned. A resize with crops behind it is made for what
//! they leave. What comes out is the same to the bit as step by step, but for
//! scaled decoding.

use crate::recipe::PixelPlacement;
use crate::recipe::Step;
use crate::recipe::geometry::PixelRect;
use crate::recipe::weights::{AxisGeometry, ResizeFilter};
use crate::recipe::{DecodeMode, InterpolationMode, Size};

/// Steps as one resize of a part of some pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoldedSteps {
    /// The part of the pixels, as they are stored.
    pub(crate) rect: PixelRect,
    pub(crate) resize: Option<FoldedResize>,
    /// How the result is turned.
    pub(crate) placement: PixelPlacement,
    /// How many steps are in it.
    pub(crate) steps: usize,
}

/// A resize of the part, all in stored orientation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoldedResize {
    /// Width and height that the part becomes.
    pub(crate) full: (u32, u32),
    /// The part of that which is wanted.
    pub(crate) window: PixelRect,
    pub(crate) interpolation: InterpolationMode,
    pub(crate) antialias: bool,
}

impl FoldedSteps {
    /// Nothing but how the pixels are turned. `stored` is width and height.
    pub(crate) fn unchanged(stored: (u32, u32), placement: PixelPlacement) -> Self {
        Self {
            rect: PixelRect {
                left: 0,
                top: 0,
                width: stored.0,
                height: stored.1,
            },
            resize: None,
            placement,
            steps: 0,
        }
    }

    /// As many of the first steps as fit.
    pub(crate) fn of<'a>(
        steps: impl Iterator<Item = &'a Step>,
        stored: (u32, u32),
        placement: PixelPlacement,
    ) -> Self {
        Self::unchanged(stored, placement).fold_in(steps)
    }

    /// The same of a part alone, given in the picture as it is turned here. It is no
    /// step.
    pub(crate) fn crop_to(mut self, part: PixelRect) -> Self {
        self.fold_step(&Step::Crop(part));
        self
    }

    /// The same, and behind it as many of `steps` as fit.
    pub(crate) fn fold_in<'a>(mut self, steps: impl Iterator<Item = &'a Step>) -> Self {
        for step in steps {
            if !self.fold_step(step) {
                break;
            }
            self.steps += 1;
        }
        self
    }

    fn fold_step(&mut self, step: &Step) -> bool {
        match *step {
            Step::Crop(rect) => {
                let of = match &mut self.resize {
                    Some(resize) => &mut resize.window,
                    None => &mut self.rect,
                };
                let part = self.placement.to_stored(rect, (of.width, of.height));
                of.left += part.left;
                of.top += part.top;
                (of.width, of.height) = (part.width, part.height);
            }
            Step::Mirror => self.placement = self.placement.mirrored(),
            Step::UpsideDown => self.placement = self.placement.upside_down(),
            Step::Turn(quarters) => self.placement = self.placement.turned(quarters),
            Step::Resize {
                size,
                interpolation,
                antialias,
            } if self.resize.is_none() => {
                let Size { height, width } = size;
                let (width, height) = match self.placement.transpose {
                    true => (height, width),
                    false => (width, height),
                };
                self.resize = Some(FoldedResize {
                    full: (width, height),
                    window: PixelRect {
                        left: 0,
                        top: 0,
                        width,
                        height,
                    },
                    interpolation,
                    antialias,
                });
            }
            _ => return false,
        }
        true
    }

    /// Width and height of the result, as stored.
    pub(crate) fn size(&self) -> (u32, u32) {
        let of = self.resize.map_or(self.rect, |resize| resize.window);
        (of.width, of.height)
    }

    /// The decoding scale's denominator: the largest of 1, 2, 4, 8 that leaves the
    /// part at least as large as what it becomes, on both axes. Only in front of
    /// an antialiased resize. (3/4 and the like are slower than full, so they are
    /// not tried.)
    pub(crate) fn denominator(&self, mode: DecodeMode) -> u32 {
        let Some(resize) = self
            .resize
            .filter(|r| mode == DecodeMode::Scaled && r.averages())
        else {
            return 1;
        };
        let (w, h) = resize.full;
        let shrink = (f64::from(self.rect.width) / f64::from(w))
            .min(f64::from(self.rect.height) / f64::from(h));
        [8, 4, 2]
            .into_iter()
            .find(|d| shrink >= f64::from(*d))
            .unwrap_or(1)
    }

    /// The resize of the part, all of it at hand.
    pub(crate) fn resize_axes(&self) -> Option<(AxisGeometry, AxisGeometry)> {
        let here = Self {
            rect: PixelRect {
                left: 0,
                top: 0,
                ..self.rect
            },
            ..*self
        };
        let (x, y) = here
            .decode_window(1, (self.rect.width, self.rect.height))
            .axes?;
        Some((
            AxisGeometry { origin: 0, ..x },
            AxisGeometry { origin: 0, ..y },
        ))
    }

    /// What is read of a picture that is decoded at 1/d; `scaled` is its width and
    /// height at that scale.
    pub(crate) fn decode_window(&self, d: u32, scaled: (u32, u32)) -> DecodeWindow {
        let Some(resize) = self.resize else {
            return DecodeWindow {
                window: self.rect,
                axes: None,
            };
        };
        let x = resize.axis(
            (self.rect.left, self.rect.width, scaled.0),
            (resize.full.0, resize.window.left, resize.window.width),
            d,
        );
        let y = resize.axis(
            (self.rect.top, self.rect.height, scaled.1),
            (resize.full.1, resize.window.top, resize.window.height),
            d,
        );
        DecodeWindow {
            window: PixelRect {
                left: x.first,
                top: y.first,
                width: x.count,
                height: y.count,
            },
            axes: Some((x.axis, y.axis)),
        }
    }
}

/// What is decoded of a picture, and how it is resized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DecodeWindow {
    /// In pixels of the scaled picture, as stored.
    pub(crate) window: PixelRect,
    /// Across and down, over the wanted pixels.
    pub(crate) axes: Option<(AxisGeometry, AxisGeometry)>,
}

struct AxisWindow {
    first: u32,
    count: u32,
    axis: AxisGeometry,
}

impl FoldedResize {
    /// Every pixel of the source counts, so that a smaller one may stand for it.
    fn averages(&self) -> bool {
        match self.interpolation {
            InterpolationMode::Nearest => false,
            InterpolationMode::Area => true,
            _ => self.antialias,
        }
    }

    fn axis(
        &self,
        (from, length, scaled): (u32, u32, u32),
        (full_size, first, out_size): (u32, u32, u32),
        d: u32,
    ) -> AxisWindow {
        let d = f64::from(d);
        let (low, high) = (f64::from(from) / d, f64::from(from + length) / d);
        let base = (low.floor() as u32).min(scaled - 1);
        let end = (high.ceil() as u32).clamp(base + 1, scaled);
        let (filter, antialias) = ResizeFilter::of(self.interpolation, self.antialias);
        let axis = AxisGeometry {
            in_size: end - base,
            in0: low - f64::from(base),
            in1: (high - f64::from(base)).min(f64::from(end - base)),
            origin: 0,
            full_size,
            first,
            out_size,
            filter,
            antialias,
        };
        let reads = axis.reads();
        AxisWindow {
            first: base + reads.start,
            count: reads.end - reads.start,
            axis: AxisGeometry {
                origin: reads.start,
                ..axis
            },
        }
    }
}
