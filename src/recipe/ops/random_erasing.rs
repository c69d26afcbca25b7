//! A random box becomes one colour or noise.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::{Rect, Uniform};
use crate::recipe::known::{Known, Values};
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{probability, range};
use crate::recipe::reach::Sides;
use crate::recipe::step::{Erased, Step};
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{Aspect, Erasing, Span};

described! {
    example: "random_erasing: {p: 0.25, value: random}";

    /// With probability `p` a box of random area (part of the image's) and aspect
    /// ratio (height by width), at a random place, becomes `value`. Behind
    /// `normalize` the value is one of the normalised pixels.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomErasing {
        /// The probability, 0 to 1.
        pub p: f64,
        /// Range of the box's area as a part of the picture's.
        pub scale: Span,
        /// Range of the box's height divided by its width.
        pub ratio: Span,
        /// `log`, as torchvision, or `uniform`.
        pub aspect: Aspect,
        /// Boxes that are drawn until one fits; with none that does nothing is erased.
        pub attempts: u32,
        /// What the box becomes: levels, or `random`.
        pub value: Erasing,
    }
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self {
            p: 0.5,
            scale: Span(0.02, 0.33),
            ratio: Span(0.3, 3.3),
            aspect: Aspect::Log,
            attempts: 10,
            value: Erasing::default(),
        }
    }
}

impl Operation for RandomErasing {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        probability(self.p)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        if !(1..=MAX_ATTEMPTS).contains(&self.attempts) {
            return Err(format!(
                "attempts is {}: use 1 to {MAX_ATTEMPTS}",
                self.attempts
            ));
        }
        match (self.value, known.values) {
            (Erasing::Value(v), _) => known.color("value", v.0)?,
            (Erasing::Random, Values::Color(space)) => {
                return Err(format!(
                    "value 'random' works on levels and on normalized pixels, not on {}: use a \
                     number, or move it after normalize",
                    space.name()
                ));
            }
            (Erasing::Random, _) => {}
        }
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Erase]
    }

    fn draw(
        &self,
        known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        if let Some((rect, with)) = erase(self, known.values, size, random) {
            let with = match with {
                Erased::Value(v) => Erased::Value(known.in_memory(v)),
                noise => noise,
            };
            let grey = known.is_grey();
            steps.push(Step::Erase { rect, with, grey });
        }
        Ok(size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        // The lowest numbers may leave nothing to erase.
        let step = Step::Erase {
            rect: Rect::whole(size),
            with: Erased::Value([0.0; 3]),
            grey: known.is_grey(),
        };
        most.optionally(|most| most.push(step));
        size
    }

    fn draws(&self) -> bool {
        true
    }
}

/// Most boxes that erasing may draw.
const MAX_ATTEMPTS: u32 = 1000;

/// torchvision's law, and PaddleClas' with other `attempts` and `aspect`; but that
/// a box without pixels, which both take for one that fits, is drawn again.
fn erase(
    o: &RandomErasing,
    values: Values,
    (height, width): (u32, u32),
    random: &mut impl Uniform,
) -> Option<(Rect, Erased)> {
    if random.next_f64() >= o.p && o.p < 1.0 {
        return None;
    }
    let key = (random.next_f64() * (1u64 << 53) as f64) as u64;
    let area = f64::from(height) * f64::from(width);
    let log = Span(libm::log(o.ratio.0), libm::log(o.ratio.1));
    for _ in 0..o.attempts {
        let part = area * o.scale.draw(random);
        let aspect = match o.aspect {
            Aspect::Log => libm::exp(log.draw(random)),
            Aspect::Uniform => o.ratio.draw(random),
        };
        let h = (part * aspect).sqrt().round_ties_even();
        let w = (part / aspect).sqrt().round_ties_even();
        if h >= 1.0 && w >= 1.0 && h < f64::from(height) && w < f64::from(width) {
            let (h, w) = (h as u32, w as u32);
            let rect = Rect {
                top: random.next_up_to(height - h),
                left: random.next_up_to(width - w),
                width: w,
                height: h,
            };
            let with = match (o.value, values) {
                (Erasing::Value(v), _) => Erased::Value(v.0),
                (Erasing::Random, Values::Normalized) => Erased::Normal(key),
                (Erasing::Random, _) => Erased::Levels(key),
            };
            return Some((rect, with));
        }
    }
    None
}
