//! Squares of one colour at random places (DeVries and Taylor 2017).

use serde::{Deserialize, Serialize};

use crate::recipe::augment::policy_op::{draw_chance, levels};
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::ValueKind;
use crate::recipe::ranges::{MAX_SIDE, count, probability, whole_levels};
use crate::recipe::step::{AugmentStep, BoxFill};
use crate::recipe::steps::StepSink;
use crate::recipe::values::PerChannel;

described! {
    example: "cutout: {holes: 1, length: 112}";

    /// With probability `p`, sets `holes` squares of `length` pixels at random places to `value`
    /// (DeVries and Taylor 2017). Their centres lie in the image; their corners may lie outside.
    /// The centre of an even length is the pixel after the middle. After `normalize`, `value` is a
    /// normalised value.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cutout {
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
        /// Squares, 1 to 64.
        pub holes: u32 = 1,
        /// The side of a square in pixels.
        pub length: u32 = 112,
        /// The colour in levels. `random`: a colour of whole numbers from 0 to 255, drawn for each
        /// hole.
        #[serde(with = "drawn")]
        pub value: Option<PerChannel> = Some(PerChannel::default()),
    }
}

impl Operation for Cutout {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        count("holes", self.holes, MOST_HOLES)?;
        count("length", self.length, MAX_SIDE)?;
        let value = self.value.unwrap_or_default();
        if known.values == ValueKind::Normalized {
            return known.check_color("value", value.0);
        }
        known.check_rgb8()?;
        whole_levels("value", value)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        if !draw_chance(self.p, on.random) {
            return Ok(on.size);
        }
        for _ in 0..self.holes {
            let (top, bottom) = side(
                on.random.next_up_to(height.saturating_sub(1)),
                self.length,
                height,
            );
            let (left, right) = side(
                on.random.next_up_to(width.saturating_sub(1)),
                self.length,
                width,
            );
            let drawn = [(); 3].map(|()| on.random.next_up_to(255) as f32);
            let rect = PixelRect {
                left,
                top,
                width: right - left,
                height: bottom - top,
            };
            let color = self.value.unwrap_or(PerChannel(drawn));
            on.steps.push(hole(on.known, rect, color));
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        if self.p > 0.0 {
            let step = hole(known, PixelRect::whole(size), PerChannel::default());
            most.optionally(|most| most.push(step));
        }
        size
    }
}

/// The step for one square, in bytes or after `normalize`.
fn hole(known: &PixelState, rect: PixelRect, color: PerChannel) -> Step {
    match known.values {
        ValueKind::Normalized => Step::Erase {
            rect,
            with: BoxFill::Value(known.in_memory(color.0)),
            grey: known.is_grey(),
        },
        ValueKind::Levels | ValueKind::Color(_) => Step::Augment(AugmentStep::Fill {
            rect,
            color: levels(color),
        }),
    }
}

/// The range of `length` pixels around `middle`, clipped to the image.
fn side(middle: u32, length: u32, all: u32) -> (u32, u32) {
    let half = length / 2;
    let end = middle.saturating_add(length - half).min(all);
    (middle.saturating_sub(half), end)
}

const MOST_HOLES: u32 = 64;

/// A colour, or `random`. None means `random` here, since an absent value is black.
mod drawn {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::recipe::values::{EraseFill, PerChannel};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<PerChannel>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value
            .map_or(EraseFill::Random, EraseFill::Value)
            .serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<PerChannel>, D::Error> {
        Ok(match EraseFill::deserialize(d)? {
            EraseFill::Value(value) => Some(value),
            EraseFill::Random => None,
        })
    }
}
