//! `torchvision.transforms.autoaugment.TrivialAugmentWide` with 31 strengths, on
//! Pillow pictures: one operation, its strength and its sign.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::kind::{Kind, Look, moved, one_of};
use crate::recipe::augment::torchvision::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{pillow_filter, whole_levels};
use crate::recipe::reach::Sides;
use crate::recipe::step::{Augment, Step};
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{Interpolation, PerChannel};

described! {
    example: "trivial_augment: {}";

    /// TrivialAugment: one operation with a strength that is drawn (Mueller and Hutter
    /// 2021), as torchvision's `TrivialAugmentWide` with 31 strengths.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TrivialAugment {
        /// How pixels between pixels are found.
        pub interpolation: Interpolation,
        /// The colour where there is no picture, levels 0 to 255.
        pub fill: PerChannel,
    }
}

impl Default for TrivialAugment {
    fn default() -> Self {
        Self {
            interpolation: Interpolation::Nearest,
            fill: PerChannel::default(),
        }
    }
}

impl Operation for TrivialAugment {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_rgb8()?;
        pillow_filter(self.interpolation)?;
        whole_levels("fill", self.fill)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Augment]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        draw(self, random, &mut |step| steps.push(Step::Augment(step)));
        Ok(size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| moved(1, most));
        size
    }

    fn draws(&self) -> bool {
        true
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

fn draw(o: &TrivialAugment, random: &mut impl Uniform, push: &mut impl FnMut(Augment)) {
    let kind = one_of(&TORCHVISION, random);
    let strength = strength(kind, random.next_up_to(STRONGEST));
    let amount = torchvision_amount(kind, strength, sign(random));
    let look = Look::new(o.interpolation, o.fill);
    kind.step(amount, look).into_iter().for_each(&mut *push);
}
