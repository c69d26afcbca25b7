//! Folds the first steps of a sample into its decoding: the part of the stored image to decode, the
//! decoding scale, and the one resize after it.
//!
//! Crops, flips and quarter turns move no pixels: they change the part or its orientation. A resize
//! with crops after it computes only the pixels that they keep. Except for scaled decoding, the
//! result equals the separate steps bit for bit.

use crate::recipe::PixelPlacement;
use crate::recipe::Step;
use crate::recipe::geometry::PixelRect;
use crate::recipe::weights::{AxisGeometry, ResizeFilter};
use crate::recipe::{DecodeMode, InterpolationMode, Size};

/// Steps combined into at most one resize of a part of the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoldedSteps {
    /// The part of the source pixels, in stored orientation.
    pub(crate) rect: PixelRect,
    pub(crate) resize: Option<FoldedResize>,
    /// Orientation of the result.
    pub(crate) placement: PixelPlacement,
    /// Number of combined steps.
    pub(crate) steps: usize,
}

/// A resize of the part, in stored orientation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FoldedResize {
    /// Width and height of the whole resized part.
    pub(crate) full: (u32, u32),
    /// The wanted rectangle of the resized part.
    pub(crate) window: PixelRect,
    pub(crate) interpolation: InterpolationMode,
    pub(crate) antialias: bool,
    /// How the part lies in memory before the resize.
    pub(crate) placement: PixelPlacement,
}

impl FoldedSteps {
    /// No steps: only an orientation. `stored` is width and height.
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

    /// Folds as many of the first steps as possible.
    pub(crate) fn of<'a>(
        steps: impl Iterator<Item = &'a Step>,
        stored: (u32, u32),
        placement: PixelPlacement,
    ) -> Self {
        Self::unchanged(stored, placement).fold_in(steps)
    }

    /// Restricts it to `part`, given in the oriented image. This counts as no step.
    pub(crate) fn crop_to(mut self, part: PixelRect) -> Self {
        self.fold_step(&Step::Crop(part));
        self
    }

    /// Folds as many of `steps` as possible after those folded already.
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
                    placement: self.placement,
                });
            }
            _ => return false,
        }
        true
    }

    /// Width and height of the result, in stored orientation.
    pub(crate) fn size(&self) -> (u32, u32) {
        let of = self.resize.map_or(self.rect, |resize| resize.window);
        (of.width, of.height)
    }

    /// Denominator of the decoding scale: the largest of 1, 2, 4 and 8 at which the part is at
    /// least as large as its target, on both axes. Only resizes that average pixels allow more than
    /// 1. Scales such as 3/4 are slower than full decoding, so they are not used.
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

    /// Axes of the resize when the whole part has been decoded.
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

    /// The window to decode at scale 1/d. `scaled` is the image's width and height at that scale.
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
            (resize.placement.transpose, resize.placement.flip_x),
            d,
        );
        let y = resize.axis(
            (self.rect.top, self.rect.height, scaled.1),
            (resize.full.1, resize.window.top, resize.window.height),
            (!resize.placement.transpose, resize.placement.flip_y),
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

/// The window of an image to decode, and the resize after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DecodeWindow {
    /// In pixels of the scaled image, in stored orientation.
    pub(crate) window: PixelRect,
    /// The resize across and down, restricted to the wanted pixels.
    pub(crate) axes: Option<(AxisGeometry, AxisGeometry)>,
}

struct AxisWindow {
    first: u32,
    count: u32,
    axis: AxisGeometry,
}

impl FoldedResize {
    /// True if every source pixel contributes, so that an image decoded at a smaller scale can
    /// replace the source.
    fn averages(&self) -> bool {
        match self.interpolation {
            InterpolationMode::Nearest | InterpolationMode::Labels(_) => false,
            InterpolationMode::Area => true,
            _ => self.antialias,
        }
    }

    fn axis(
        &self,
        (from, length, scaled): (u32, u32, u32),
        (full_size, first, out_size): (u32, u32, u32),
        (is_down, is_mirrored): (bool, bool),
        d: u32,
    ) -> AxisWindow {
        let d = f64::from(d);
        let (low, high) = (f64::from(from) / d, f64::from(from + length) / d);
        let base = (low.floor() as u32).min(scaled - 1);
        let end = (high.ceil() as u32).clamp(base + 1, scaled);
        let (filter, antialias) = ResizeFilter::of(self.interpolation, self.antialias);
        let filter = match is_mirrored {
            true => filter.mirrored(),
            false => filter,
        };
        let axis = AxisGeometry {
            in_size: end - base,
            in0: low - f64::from(base),
            in1: (high - f64::from(base)).min(f64::from(end - base)),
            origin: 0,
            full_size,
            first,
            out_size,
            filter,
            is_down,
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
