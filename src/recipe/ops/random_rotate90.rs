//! A random number of quarter turns. The number may be the label.
//!
//! A quarter turn counter-clockwise makes (y, width - x) of (x, y).

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::turn;
use crate::recipe::defaults::is_default;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::steps::StepBounds;

described! {
    example: "random_rotate90: {}";

    /// No, one, two or three quarter turns counter-clockwise, with equal probability.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomRotate90 {
        /// Uses the number of turns, 0 to 3, as the sample's label, instead of the data set's. Only
        /// one operation of a recipe may set labels.
        #[serde(skip_serializing_if = "is_default")]
        pub label: bool,
    }
}

impl Operation for RandomRotate90 {
    const PARTS: &'static [OperationPart] = &[OperationPart::Turn];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.size = known.size.filter(|(h, w)| h == w);
        known.resized = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(turn(quarters(on.random), on.size, on.steps))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        // Quarter turns may swap height and width of the following steps.
        let over = StepBounds {
            size_after: Some(most.reach().after_any_turn()),
            any_quarter: true,
            ..StepBounds::default()
        };
        most.add(Step::Turn(2), over);
        size
    }

    fn sets_size(&self) -> bool {
        true
    }

    fn label_count(&self) -> Option<u32> {
        self.label.then_some(MOST_QUARTERS + 1)
    }

    fn draw_label(&self, random: &mut impl UniformSource) -> Option<i64> {
        self.label.then(|| quarters(random).into())
    }
}

/// The maximum number of quarter turns.
const MOST_QUARTERS: u32 = 3;

fn quarters(random: &mut impl UniformSource) -> u8 {
    random.next_up_to(MOST_QUARTERS) as u8
}
