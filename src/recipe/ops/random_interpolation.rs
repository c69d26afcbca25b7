//! A picture made smaller and larger again, by PaddleClas' law.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::augment::kind::happens;
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::probability;
use crate::recipe::reach::{Reach, Sides};
use crate::recipe::step::{Augment, OpencvFilter, Step};
use crate::recipe::steps::{Largest, Over, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::Size;

described! {
    example: "random_interpolation: {p: 0.2}";

    /// With probability `p` a picture becomes a square of 0.2 to 1 times its height, and then
    /// what it was. Each time one of OpenCV's filters is drawn: nearest, linear, area, cubic or
    /// Lanczos (PaddleClas' `RandomInterpolationAugment`).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomInterpolation {
        /// The probability, 0 to 1.
        pub p: f64,
    }
}

impl Default for RandomInterpolation {
    fn default() -> Self {
        Self { p: 0.2 }
    }
}

const FILTERS: [OpencvFilter; 5] = [
    OpencvFilter::Nearest,
    OpencvFilter::Linear,
    OpencvFilter::Area,
    OpencvFilter::Cubic,
    OpencvFilter::Lanczos4,
];

impl Operation for RandomInterpolation {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels8()?;
        probability(self.p)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Augment]
    }

    fn draw(
        &self,
        _known: &Known,
        (height, width): Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        if !happens(self.p, random) {
            return Ok((height, width));
        }
        let part = 0.2 + 0.8 * random.next_f64();
        // The cast cuts. OpenCV makes nothing of no pixel.
        let side = ((part * f64::from(height)) as u32).max(1);
        for size in [(side, side), (height, width)] {
            let at = random.next_up_to(FILTERS.len() as u32 - 1) as usize;
            let filter = FILTERS.get(at).copied().unwrap_or(OpencvFilter::Linear);
            steps.push(resample(size, filter));
        }
        Ok((height, width))
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        let before = most.reach();
        let square = (size.0, size.0);
        let most_square = (before.high.0, before.high.0);
        most.optionally(|most| {
            for (size, behind) in [
                (square, Reach::between((1, 1), most_square)),
                (size, before),
            ] {
                let over = Over {
                    behind: Some(behind),
                    ..Over::default()
                };
                most.add(resample(size, OpencvFilter::Linear), over);
            }
        });
        size
    }

    fn draws(&self) -> bool {
        true
    }
}

fn resample((height, width): Sides, filter: OpencvFilter) -> Step {
    Step::Augment(Augment::Resample {
        size: Size { height, width },
        filter,
    })
}
