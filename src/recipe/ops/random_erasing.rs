//! Fills a random box with one colour or noise.

use serde::{Deserialize, Serialize};

use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::ValueKind;
use crate::recipe::ranges::{count, probability, range};
use crate::recipe::step::BoxFill;
use crate::recipe::values::{AspectDistribution, EraseFill, Span};

described! {
    example: "random_erasing: {p: 0.25, value: random}";

    /// With probability `p`, sets a box of random area (as a share of the image's) and aspect ratio
    /// (height by width), at a random place, to `value`. After `normalize`, `value` is a normalised
    /// value.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomErasing {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
        /// Range of the box's area as a share of the image's.
        pub scale: Span = Span(0.02, 0.33),
        /// Range of the box's height divided by its width.
        pub ratio: Span = Span(0.3, 3.3),
        /// Distribution of the ratio: `log` as in torchvision, or `uniform`.
        pub aspect: AspectDistribution = AspectDistribution::Log,
        /// The maximum number of boxes drawn until one fits. If none fits, nothing is erased.
        pub attempts: u32 = 10,
        /// The content of the box: levels, or `random`.
        pub value: EraseFill = EraseFill::default(),
    }
}

impl Operation for RandomErasing {
    const PARTS: &'static [OperationPart] = &[OperationPart::Erase];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        count("attempts", self.attempts, MAX_ATTEMPTS)?;
        match (self.value, known.values) {
            (EraseFill::Value(v), _) => known.check_color("value", v.0)?,
            (EraseFill::Random, ValueKind::Color(space)) => {
                return Err(format!(
                    "value 'random' works on levels and on normalized pixels, not on {}: use a \
                     number, or move it after normalize",
                    space.name()
                ));
            }
            (EraseFill::Random, _) => {}
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if let Some((rect, with)) = erase(self, on.known.values, on.size, on.random) {
            let with = match with {
                BoxFill::Value(v) => BoxFill::Value(on.known.in_memory(v)),
                noise => noise,
            };
            let grey = on.known.is_grey();
            on.steps.push(Step::Erase { rect, with, grey });
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.push_erase(known, size)
    }
}

/// The maximum of `attempts`.
const MAX_ATTEMPTS: u32 = 1000;

/// torchvision's distribution, and PaddleClas' with other `attempts` and `aspect`. One difference:
/// a box without pixels counts as one that fits there. Here it is drawn again.
fn erase(
    o: &RandomErasing,
    values: ValueKind,
    (height, width): (u32, u32),
    random: &mut impl UniformSource,
) -> Option<(PixelRect, BoxFill)> {
    if random.next_f64() >= o.p && o.p < 1.0 {
        return None;
    }
    let key = (random.next_f64() * (1u64 << 53) as f64) as u64;
    let area = f64::from(height) * f64::from(width);
    let log = Span(libm::log(o.ratio.0), libm::log(o.ratio.1));
    for _ in 0..o.attempts {
        let part = area * o.scale.draw(random);
        let aspect = match o.aspect {
            AspectDistribution::Log => libm::exp(log.draw(random)),
            AspectDistribution::Uniform => o.ratio.draw(random),
        };
        let h = (part * aspect).sqrt().round_ties_even();
        let w = (part / aspect).sqrt().round_ties_even();
        if h >= 1.0 && w >= 1.0 && h < f64::from(height) && w < f64::from(width) {
            let (h, w) = (h as u32, w as u32);
            let rect = PixelRect {
                top: random.next_up_to(height - h),
                left: random.next_up_to(width - w),
                width: w,
                height: h,
            };
            let with = match (o.value, values) {
                (EraseFill::Value(v), _) => BoxFill::Value(v.0),
                (EraseFill::Random, ValueKind::Normalized) => BoxFill::Normal(key),
                (EraseFill::Random, _) => BoxFill::Levels(key),
            };
            return Some((rect, with));
        }
    }
    None
}
