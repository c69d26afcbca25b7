//! The picture at a random place of a larger one, or not.

use serde::{Deserialize, Serialize};

use crate::error::{FaultKind, SampleFault};
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::known::Known;
use crate::recipe::operation::{Operation, Rights};
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{MAX_SIDE, probability, range};
use crate::recipe::reach::{Reach, Sides};
use crate::recipe::step::Step;
use crate::recipe::steps::{Largest, Over, Presence, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Span};

described! {
    example: "random_zoom_out: {fill: 128, side_range: [1, 4], p: 0.5}";

    /// With probability `p` pixels around the picture: both sides times a number uniform
    /// in `side_range`, the picture at a uniform place. A resize or a crop must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomZoomOut {
        /// The colour around the picture.
        pub fill: PerChannel,
        /// Range of the new sides by the old ones, 1 to 64.
        pub side_range: Span,
        /// The probability, 0 to 1.
        pub p: f64,
    }
}

impl Default for RandomZoomOut {
    fn default() -> Self {
        Self {
            fill: PerChannel::default(),
            side_range: Span(1.0, 4.0),
            p: 0.5,
        }
    }
}

impl Operation for RandomZoomOut {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        range("side_range", self.side_range, 1.0, MOST)?;
        probability(self.p)?;
        known.color("fill", self.fill.0)?;
        if let Some(here) = known.size {
            let (h, w) = zoomed(here, self.side_range.1 as f32);
            if h.max(w) > MAX_SIDE {
                return Err(format!(
                    "makes pictures of up to {w} x {h}, and a side has at most {MAX_SIDE} \
                     pixels: use a smaller side_range"
                ));
            }
            known.at_least = Some(here.0.min(here.1));
        }
        known.size = None;
        known.resized = true;
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Pad]
    }

    fn draw(
        &self,
        known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        if random.next_f64() >= self.p {
            return Ok(size);
        }
        // In `f32`, as torch's tensors.
        let Span(low, high) = self.side_range;
        let by = low as f32 + random.next_f64() as f32 * (high - low) as f32;
        let to = zoomed(size, by);
        if to.0.max(to.1) > MAX_SIDE {
            return Err(SampleFault::new(
                FaultKind::TooLarge,
                format!(
                    "the picture is {} x {}, random_zoom_out makes it {} x {}, and a side has at \
                     most {MAX_SIDE} pixels: put a resize before it",
                    size.1, size.0, to.1, to.0
                ),
            ));
        }
        let mut before = |all: u32| (all as f32 * random.next_f64() as f32) as u32;
        let (left, top) = (before(to.1 - size.1), before(to.0 - size.0));
        steps.push(self.step(known, size, to, (left, top)));
        Ok(to)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        let to = zoomed(size, self.side_range.1 as f32);
        let reach = most.reach();
        let (presence, least) = match self.p < 1.0 {
            true => (Presence::Optional, 1.0),
            false => (Presence::Always, self.side_range.0 as f32),
        };
        let behind = Reach::between(
            zoomed(reach.low, least),
            zoomed(reach.high, self.side_range.1 as f32),
        );
        let over = Over {
            presence,
            behind: Some(behind),
            ..Over::default()
        };
        most.add(self.step(known, size, to, (0, 0)), over);
        to
    }

    fn draws(&self) -> bool {
        true
    }

    fn rights(&self) -> Rights {
        Rights {
            border: Some((PaddingMode::Constant, self.fill)),
            ..Rights::default()
        }
    }
}

/// Most that a side may grow by: pictures of all sizes have sides that `f32` holds then.
const MOST: f64 = 64.0;

/// Cut to whole pixels; never smaller.
fn zoomed((height, width): Sides, by: f32) -> Sides {
    let side = |n: u32| ((n as f32 * by) as u32).max(n);
    (side(height), side(width))
}

impl RandomZoomOut {
    fn step(&self, known: &Known, from: Sides, to: Sides, (left, top): (u32, u32)) -> Step {
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
