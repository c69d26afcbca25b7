//! Everything around a random box becomes one colour.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::{Rect, Uniform, around, random_box};
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{probability, range};
use crate::recipe::reach::Sides;
use crate::recipe::step::{Erased, Step};
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{PerChannel, Span};

described! {
    example: "crop_with_padding: {p: 0.5, value: 128}";

    /// With probability `p` the pixels of a random box stay, and everything around it
    /// becomes `value`; the size stays (PaddleClas' `CropWithPadding`). The box is
    /// `random_resized_crop`'s.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct CropWithPadding {
        /// The probability, 0 to 1.
        pub p: f64,
        /// Range of the box's area as a part of the image's.
        pub scale: Span,
        /// Range of the box's width divided by its height.
        pub ratio: Span,
        /// The colour around the box, levels.
        pub value: PerChannel,
    }
}

/// Always, black; scale 0.08 to 1, ratio 3/4 to 4/3.
impl Default for CropWithPadding {
    fn default() -> Self {
        Self {
            p: 1.0,
            scale: Span(0.08, 1.0),
            ratio: Span(3.0 / 4.0, 4.0 / 3.0),
            value: PerChannel::default(),
        }
    }
}

impl Operation for CropWithPadding {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        probability(self.p)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        known.color("value", self.value.0)
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
        if random.next_f64() < self.p {
            let (scale, ratio) = ((self.scale.0, self.scale.1), (self.ratio.0, self.ratio.1));
            let kept = random_box(size.1, size.0, scale, ratio, random);
            for rect in around(kept, size) {
                steps.push(Step::Erase {
                    rect,
                    with: Erased::Value(known.in_memory(self.value.0)),
                    grey: known.is_grey(),
                });
            }
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
