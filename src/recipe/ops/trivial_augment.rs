//! `torchvision.transforms.autoaugment.TrivialAugmentWide` with 31 strengths, on
//! Pillow pictures: one operation, its strength and its sign.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::kind::{Kind, Look, moved, one_of};
use crate::recipe::augment::torchvision::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Operation, Part, SampleFault, Sides, Uniform,
};
use crate::recipe::ranges::{pillow_filter, whole_levels};
use crate::recipe::values::{Interpolation, PerChannel};

described! {
    example: "trivial_augment: {}";

    /// TrivialAugment: one operation with a strength that is drawn (Mueller and Hutter
    /// 2021), as torchvision's `TrivialAugmentWide` with 31 strengths.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TrivialAugment {
        /// How pixels between pixels are found.
        pub interpolation: Interpolation = Interpolation::Nearest,
        /// The colour where there is no picture, levels 0 to 255.
        pub fill: PerChannel = PerChannel::default(),
    }
}

impl Operation for TrivialAugment {
    const PARTS: &'static [Part] = &[Part::Augment];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_rgb8()?;
        pillow_filter(self.interpolation)?;
        whole_levels("fill", self.fill)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        let kind = one_of(&TORCHVISION, on.random);
        let strength = strength(kind, on.random.next_up_to(STRONGEST));
        let amount = torchvision_amount(kind, strength, sign(on.random));
        let look = Look::new(self.interpolation, self.fill);
        on.steps.augment(kind.step(amount, look));
        Ok(on.size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| moved(1, most));
        size
    }
}

/// `TrivialAugmentWide._augmentation_space`.
pub(crate) fn strength(kind: Kind, at: u32) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY => linspace(0.0, 0.99, at),
        Kind::TranslateX | Kind::TranslateY => linspace(0.0, 32.0, at),
        Kind::Rotate => linspace(0.0, 135.0, at),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => {
            linspace(0.0, 0.99, at)
        }
        Kind::Posterize => 8.0 - (f64::from(at) / (f64::from(STRONGEST) / 6.0)).round_ties_even(),
        Kind::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}
