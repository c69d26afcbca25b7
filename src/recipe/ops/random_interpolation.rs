//! A picture made smaller and larger again, by PaddleClas' law.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::kind::happens;
use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Operation, Part, SampleFault, Sides, Step, Uniform,
};
use crate::recipe::ranges::probability;
use crate::recipe::reach::Reach;
use crate::recipe::step::{Augment, OpencvFilter};
use crate::recipe::steps::Over;
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
        pub p: f64 = 0.2,
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
    const PARTS: &'static [Part] = &[Part::Augment];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels8()?;
        probability(self.p)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        let (height, width) = on.size;
        if !happens(self.p, on.random) {
            return Ok((height, width));
        }
        let part = 0.2 + 0.8 * on.random.next_f64();
        // The cast cuts. OpenCV makes nothing of no pixel.
        let side = ((part * f64::from(height)) as u32).max(1);
        for size in [(side, side), (height, width)] {
            let at = on.random.next_up_to(FILTERS.len() as u32 - 1) as usize;
            let filter = FILTERS.get(at).copied().unwrap_or(OpencvFilter::Linear);
            on.steps.push(resample(size, filter));
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
}

fn resample((height, width): Sides, filter: OpencvFilter) -> Step {
    Step::Augment(Augment::Resample {
        size: Size { height, width },
        filter,
    })
}
