//! A random number of quarter turns, which may be the label.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::is_default;
use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Operation, Part, SampleFault, Sides, Step, Uniform,
};
use crate::recipe::sizes::turn;
use crate::recipe::steps::Over;

described! {
    example: "random_rotate90: {}";

    /// No, one, two or three quarter turns counter-clockwise, each as likely.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomRotate90 {
        /// The number of turns, 0 to 3, is the sample's label, whatever the data set
        /// says. One operation of a recipe may give labels.
        #[serde(skip_serializing_if = "is_default")]
        pub label: bool,
    }
}

impl Operation for RandomRotate90 {
    const PARTS: &'static [Part] = &[Part::Turn];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.size = known.size.filter(|(h, w)| h == w);
        known.resized = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        Ok(turn(quarters(on.random), on.size, on.steps))
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        // There, and the sizes of the other steps those of the picture.
        let over = Over {
            behind: Some(most.reach().turned()),
            any_quarter: true,
            ..Over::default()
        };
        most.add(Step::Turn(2), over);
        size
    }

    fn sets_size(&self) -> bool {
        true
    }

    fn labels(&self) -> Option<u32> {
        self.label.then_some(MOST_QUARTERS + 1)
    }

    fn label(&self, random: &mut impl Uniform) -> Option<i64> {
        self.label.then(|| quarters(random).into())
    }
}

/// The most quarter turns that are drawn.
const MOST_QUARTERS: u32 = 3;

fn quarters(random: &mut impl Uniform) -> u8 {
    random.next_up_to(MOST_QUARTERS) as u8
}
