//! A random box becomes one colour or noise.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::geometry::Rect;
use crate::recipe::known::Values;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Operation, Part, SampleFault, Sides, Step, Uniform,
};
use crate::recipe::ranges::{count, probability, range};
use crate::recipe::step::Erased;
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
        pub p: f64 = 0.5,
        /// Range of the box's area as a part of the picture's.
        pub scale: Span = Span(0.02, 0.33),
        /// Range of the box's height divided by its width.
        pub ratio: Span = Span(0.3, 3.3),
        /// `log`, as torchvision, or `uniform`.
        pub aspect: Aspect = Aspect::Log,
        /// Boxes that are drawn until one fits; with none that does nothing is erased.
        pub attempts: u32 = 10,
        /// What the box becomes: levels, or `random`.
        pub value: Erasing = Erasing::default(),
    }
}

impl Operation for RandomErasing {
    const PARTS: &'static [Part] = &[Part::Erase];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        probability(self.p)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        count("attempts", self.attempts, MAX_ATTEMPTS)?;
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

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        if let Some((rect, with)) = erase(self, on.known.values, on.size, on.random) {
            let with = match with {
                Erased::Value(v) => Erased::Value(on.known.in_memory(v)),
                noise => noise,
            };
            let grey = on.known.is_grey();
            on.steps.push(Step::Erase { rect, with, grey });
        }
        Ok(on.size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.erased(known, size)
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
