//! Quarter turns.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::sizes::turn;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;

described! {
    example: "rotate90: {times: 1}";

    /// `times` quarter turns, counter-clockwise.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Rotate90 {
        /// Quarter turns.
        pub times: i32,
    }
}

impl Operation for Rotate90 {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        if self.times % 2 != 0 {
            known.size = known.size.map(|(h, w)| (w, h));
            known.resized = true;
        }
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Turn]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        Ok(turn(self.times.rem_euclid(4) as u8, size, steps))
    }

    fn sets_size(&self) -> bool {
        true
    }
}
