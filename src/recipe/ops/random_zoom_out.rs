//! Places the image at random in a larger one.
//!
//! Coordinates are shifted by the border at the left and at the top.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, probability, range};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Span};

described! {
    example: "random_zoom_out: {fill: 128, side_range: [1, 4], p: 0.5}";

    /// With probability `p`, adds a border: both sides grow by a factor uniform in `side_range`,
    /// and the image lies at a uniformly random place. A resize or a crop must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomZoomOut {
        /// The colour of the border.
        pub fill: PerChannel = PerChannel::default(),
        /// Range of the factor by which sides grow, 1 to 64.
        pub side_range: Span = Span(1.0, 4.0),
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomZoomOut {
    const PARTS: &'static [OperationPart] = &[OperationPart::Pad];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        range("side_range", self.side_range, 1.0, MOST)?;
        probability(self.p)?;
        known.check_color("fill", self.fill.0)?;
        if let Some(here) = known.size {
            let (h, w) = zoomed(here, self.side_range.1 as f32);
            if h.max(w) > MAX_SIDE {
                return Err(format!(
                    "makes images of up to {w} x {h}, and a side has at most {MAX_SIDE} \
                     pixels: use a smaller side_range"
                ));
            }
            known.min_side = Some(here.0.min(here.1));
        }
        known.size = None;
        known.resized = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if on.random.next_f64() >= self.p {
            return Ok(on.size);
        }
        // In `f32`, as in torch's tensors.
        let Span(low, high) = self.side_range;
        let by = low as f32 + on.random.next_f64() as f32 * (high - low) as f32;
        let to = zoomed(on.size, by);
        if to.0.max(to.1) > MAX_SIDE {
            return Err(FaultKind::TooLarge.fault(format!(
                "the image is {} x {}, random_zoom_out makes it {} x {}, and a side has at \
                     most {MAX_SIDE} pixels: put a resize before it",
                on.size.1, on.size.0, to.1, to.0
            )));
        }
        let mut before = |all: u32| (all as f32 * on.random.next_f64() as f32) as u32;
        let (left, top) = (before(to.1 - on.size.1), before(to.0 - on.size.0));
        on.steps.push(self.step(on.known, on.size, to, (left, top)));
        Ok(to)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = zoomed(size, self.side_range.1 as f32);
        let reach = most.reach();
        let (presence, least) = match self.p < 1.0 {
            true => (StepPresence::Optional, 1.0),
            false => (StepPresence::Always, self.side_range.0 as f32),
        };
        let behind = SizeBounds::between(
            zoomed(reach.low, least),
            zoomed(reach.high, self.side_range.1 as f32),
        );
        let over = StepBounds {
            presence,
            size_after: Some(behind),
            ..StepBounds::default()
        };
        most.add(self.step(known, size, to, (0, 0)), over);
        to
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((PaddingMode::Constant, self.fill)),
            ..MoveRights::default()
        }
    }
}

/// The maximum growth of a side. It keeps all sides within the precision of `f32`.
const MOST: f64 = 64.0;

/// Truncated to whole pixels, but never smaller.
fn zoomed((height, width): HeightWidth, by: f32) -> HeightWidth {
    let side = |n: u32| ((n as f32 * by) as u32).max(n);
    (side(height), side(width))
}

impl RandomZoomOut {
    fn step(
        &self,
        known: &PixelState,
        from: HeightWidth,
        to: HeightWidth,
        (left, top): (u32, u32),
    ) -> Step {
        Step::Pad {
            padding: Padding {
                left,
                top,
                right: to.1 - from.1 - left,
                bottom: to.0 - from.0 - top,
            },
            mode: PaddingMode::Constant,
            fill: known.in_memory(self.fill.0),
        }
    }
}
