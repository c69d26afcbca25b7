//! AutoAugment's policy for ImageNet as PaddleClas' `ImageNetPolicy` writes it
//! (`ppcls/data/preprocess/ops/autoaugment.py`, after DeepVoltaire/AutoAugment).

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::kind::{Kind, happens, moved};
use crate::recipe::augment::paddle;
use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Operation, Part, SampleFault, Sides, Uniform,
};

described! {
    example: "auto_augment: {}";

    /// AutoAugment: one of 25 pairs of operations, each with its probability and
    /// strength (Cubuk et al. 2019), as PaddleClas' `AutoAugment` draws and applies them.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct AutoAugment {
        /// The table of pairs.
        pub policy: AutoPolicy,
    }
}

/// A table of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoPolicy {
    #[default]
    Imagenet,
}

impl Operation for AutoAugment {
    const PARTS: &'static [Part] = &[Part::Augment];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_rgb8()?;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        let at = on.random.next_up_to(PAIRS.len() as u32 - 1) as usize;
        let (first, second) = PAIRS[at];
        for (p, kind, strength) in [first, second] {
            let done = happens(p, on.random);
            let sign = sign(on.random);
            if done {
                let strength = paddle::strength(kind, strength);
                on.steps
                    .augment(paddle::step(kind, strength, sign, on.size, FILL));
            }
        }
        Ok(on.size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| moved(2, most));
        size
    }
}

use Kind::{
    AutoContrast, Color, Contrast, Equalize, Invert, Posterize, Rotate, Sharpness, ShearX, Solarize,
};

/// An operation with its probability and the number of its strength.
type Chance = (f64, Kind, u32);

pub(crate) const PAIRS: [(Chance, Chance); 25] = [
    ((0.4, Posterize, 8), (0.6, Rotate, 9)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
    ((0.6, Posterize, 7), (0.6, Posterize, 6)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.4, Equalize, 4), (0.8, Rotate, 8)),
    ((0.6, Solarize, 3), (0.6, Equalize, 7)),
    ((0.8, Posterize, 5), (1.0, Equalize, 2)),
    ((0.2, Rotate, 3), (0.6, Solarize, 8)),
    ((0.6, Equalize, 8), (0.4, Posterize, 6)),
    ((0.8, Rotate, 8), (0.4, Color, 0)),
    ((0.4, Rotate, 9), (0.6, Equalize, 2)),
    ((0.0, Equalize, 7), (0.8, Equalize, 8)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Rotate, 8), (1.0, Color, 2)),
    ((0.8, Color, 8), (0.8, Solarize, 7)),
    ((0.4, Sharpness, 7), (0.6, Invert, 8)),
    ((0.6, ShearX, 5), (1.0, Equalize, 9)),
    ((0.4, Color, 0), (0.6, Equalize, 3)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
];

/// The corners of a shear.
pub(crate) const FILL: [u8; 3] = [128; 3];
