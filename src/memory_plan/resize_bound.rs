//! A resize of a region that may have many sizes: an upper bound of the pixels decoded for it, and
//! of its buffers.
//!
//! Pure. Used by `scratch_bound`. The largest crop does not always decode the most pixels, since a
//! smaller one may be decoded at a larger scale.

use crate::decode_plan::canvas_memory::CanvasBufferBytes;
use crate::recipe::size_bounds::{AspectBounds, HeightWidth, area};
use crate::recipe::weights::{AxisGeometry, ResizeFilter};

/// Whether the axes of the upright image are swapped against the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisSwap {
    No,
    Yes,
    Maybe,
}

impl AxisSwap {
    pub(super) fn swap(&mut self) {
        *self = match self {
            Self::No => Self::Yes,
            Self::Yes => Self::No,
            Self::Maybe => Self::Maybe,
        };
    }

    /// The image may have been made upright.
    pub(super) fn make_maybe(&mut self) {
        if *self == Self::Yes {
            *self = Self::Maybe;
        }
    }

    /// The sides of an upright image as they may be stored.
    pub(super) fn stored(self, sides: HeightWidth) -> impl Iterator<Item = HeightWidth> {
        let swapped = (sides.1, sides.0);
        let as_is = (self != Self::Yes).then_some(sides);
        as_is
            .into_iter()
            .chain((self != Self::No).then_some(swapped))
    }
}

/// A resize of a region that may have many sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResizeBound {
    pub(super) from: (HeightWidth, HeightWidth),
    pub(super) area: u64,
    /// Aspect ratios of the region.
    pub(super) shape: Option<AspectBounds>,
    pub(super) full: (HeightWidth, HeightWidth),
    /// The sides that are needed of the result.
    pub(super) window: HeightWidth,
    pub(super) filter: (ResizeFilter, bool),
    pub(super) averages: bool,
    /// Axes before the resize.
    pub(super) turned: AxisSwap,
}

/// One scale at which the region may be decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScaledDecode {
    d: u32,
    /// The most pixels along each side, at full scale.
    sides: HeightWidth,
    area: u64,
}

impl ResizeBound {
    /// The scales at which the region may be decoded: for each scale the largest region that is not
    /// decoded at a smaller one.
    pub(super) fn decode_scales(&self, scaled: bool) -> Vec<ScaledDecode> {
        let (low, high) = self.from;
        let whole = |d| ScaledDecode {
            d,
            sides: high,
            area: self.area,
        };
        if !scaled {
            return vec![whole(1)];
        }
        let (full_low, full_high) = self.full;
        let reaches = |from: HeightWidth, full: HeightWidth, d: u32| {
            let side = |from: u32, full: u32| u64::from(from) >= u64::from(full) * u64::from(d);
            side(from.0, full.0) && side(from.1, full.1)
        };
        let mut ways = Vec::new();
        for d in [1, 2, 4, 8] {
            if d > 1 && !reaches(high, full_low, d) {
                continue;
            }
            if d == 8 {
                ways.push(whole(d));
                continue;
            }
            // Every such region is decoded at a smaller scale.
            if reaches(low, full_high, 2 * d) {
                continue;
            }
            // One side is too short for the next smaller scale.
            let below = |side: u32, full: u32| {
                let end = u64::from(full) * 2 * u64::from(d);
                u64::from(side).min(end.saturating_sub(1)).max(1) as u32
            };
            let (h, w) = (below(high.0, full_high.0), below(high.1, full_high.1));
            let mut flat = (h, high.1);
            let mut narrow = (high.0, w);
            if let Some(AspectBounds { ratio, fraction }) = self.shape {
                let most = |v: f64| (v.ceil() as u32).saturating_add(1);
                flat.1 = flat.1.min(most((f64::from(h) + fraction) * ratio.1));
                narrow.0 = narrow.0.min(most((f64::from(w) + fraction) / ratio.0));
            }
            for sides in [flat, narrow] {
                ways.push(ScaledDecode {
                    d,
                    sides,
                    area: self.area.min(area(sides)),
                });
            }
        }
        ways
    }

    /// Upper bound of the pixels read along one side, at the decoded scale.
    fn reads(&self, side: u32, d: u32, full: u32, window: u32) -> u32 {
        let all = match d {
            1 => side,
            d => side.div_ceil(d).saturating_add(1),
        };
        let axis = self.axis(all, full, window);
        let reach = match self.filter.0 {
            filter if filter.copies() => 1.0,
            ResizeFilter::Area => 1.0,
            _ => axis.window() as f64 / 2.0 + 1.0,
        };
        let seen = f64::from(window) * axis.scale() + 2.0 * reach;
        all.min((seen.ceil() as u32).saturating_add(2))
    }

    pub(super) fn pixels(&self, way: &ScaledDecode) -> u64 {
        let d = u64::from(way.d);
        let h = self.reads(way.sides.0, way.d, self.full.0.0, self.window.0);
        let w = self.reads(way.sides.1, way.d, self.full.0.1, self.window.1);
        let ends = 2 * (u64::from(way.sides.0) + u64::from(way.sides.1)) / d + 8;
        let by_area = match d {
            1 => way.area,
            _ => way.area / (d * d) + ends,
        };
        area((h, w)).min(by_area)
    }

    pub(super) fn record_buffers(
        &self,
        way: &ScaledDecode,
        floats: bool,
        buffers: &mut CanvasBufferBytes,
    ) {
        let axis = |side: u32, full: u32, window: u32| {
            let read = match way.d {
                1 => side,
                d => side.div_ceil(d).saturating_add(1),
            };
            self.axis(read, full, window)
        };
        let down = axis(way.sides.0, self.full.0.0, self.window.0);
        let across = axis(way.sides.1, self.full.0.1, self.window.1);
        if self.turned != AxisSwap::Yes {
            buffers.resize(across, down, floats);
        }
        if self.turned != AxisSwap::No {
            buffers.resize(down, across, floats);
        }
    }

    /// The resize of one axis. Never a copy, since other random values resize.
    fn axis(&self, from: u32, full: u32, window: u32) -> AxisGeometry {
        AxisGeometry {
            in_size: from,
            in0: 0.5,
            in1: f64::from(from) + 0.5,
            origin: 0,
            full_size: full.max(1),
            first: 0,
            out_size: window,
            filter: self.filter.0,
            is_down: false,
            antialias: self.filter.1,
        }
    }
}
