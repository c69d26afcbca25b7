//! The operations that policies draw from, whatever their table calls them, and
//! the step of each for an amount.
//!
//! Pure; knows no policy.

use crate::recipe::geometry::Uniform;
use crate::recipe::step::Augment;
use crate::recipe::steps::Sink;
use crate::recipe::values::{Interpolation, PerChannel};

/// What one amount means is said at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Nothing is done.
    Identity,
    AutoContrast,
    Equalize,
    Invert,
    /// Bits that are kept.
    Posterize,
    /// The lowest level that is inverted.
    Solarize,
    /// What is added to levels below 128.
    SolarizeAdd,
    /// Factors.
    Brightness,
    Contrast,
    Color,
    Sharpness,
    /// Degrees counter-clockwise.
    Rotate,
    /// Pixels along one side by pixel of the other.
    ShearX,
    ShearY,
    /// Pixels.
    TranslateX,
    TranslateY,
    /// No amount: it is a box.
    Cutout,
}

/// How moved pixels are found, and the colour where there are none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    pub(crate) interpolation: Interpolation,
    pub(crate) fill: [u8; 3],
}

impl Look {
    pub(crate) fn new(interpolation: Interpolation, fill: PerChannel) -> Self {
        Self {
            interpolation,
            fill: levels(fill),
        }
    }
}

/// Whole levels, which `range` has checked.
pub(crate) fn levels(color: PerChannel) -> [u8; 3] {
    color.0.map(|v| v as u8)
}

impl Kind {
    /// None for what does nothing, and for a box.
    pub(crate) fn step(self, amount: f64, look: Look) -> Option<Augment> {
        let Look {
            interpolation,
            fill,
        } = look;
        let affine = |matrix| Augment::Affine {
            matrix,
            interpolation,
            fill,
        };
        Some(match self {
            Self::Identity | Self::Cutout => return None,
            Self::AutoContrast => Augment::AutoContrast,
            Self::Equalize => Augment::Equalize,
            Self::Invert => Augment::Invert,
            Self::Posterize => Augment::Posterize { bits: amount as u8 },
            Self::Solarize => Augment::Solarize {
                threshold: amount as f32,
            },
            Self::SolarizeAdd => Augment::SolarizeAdd {
                add: amount as u8,
                threshold: 128,
            },
            Self::Brightness => Augment::Brightness(amount as f32),
            Self::Contrast => Augment::Contrast(amount as f32),
            Self::Color => Augment::Color(amount as f32),
            Self::Sharpness => Augment::Sharpness(amount as f32),
            Self::Rotate => Augment::Rotate {
                degrees: amount,
                interpolation,
                fill,
            },
            Self::ShearX => affine([1.0, amount, 0.0, 0.0, 1.0, 0.0]),
            Self::ShearY => affine([1.0, 0.0, 0.0, amount, 1.0, 0.0]),
            Self::TranslateX => affine([1.0, 0.0, amount, 0.0, 1.0, 0.0]),
            Self::TranslateY => affine([1.0, 0.0, 0.0, 0.0, 1.0, amount]),
        })
    }

    /// The side that a translation is along, pixels.
    pub(crate) fn side(self, (height, width): (u32, u32)) -> f64 {
        f64::from(if self == Self::TranslateX {
            width
        } else {
            height
        })
    }
}

/// One of them, all equally likely.
pub(crate) fn one_of(kinds: &[Kind], random: &mut impl Uniform) -> Kind {
    let last = kinds.len().saturating_sub(1) as u32;
    let at = random.next_up_to(last) as usize;
    kinds.get(at).copied().unwrap_or(Kind::Identity)
}

/// Whether something of probability `p` is done.
pub(crate) fn happens(p: f64, random: &mut impl Uniform) -> bool {
    random.next_f64() < p || p >= 1.0
}

/// Pushes the steps that take the most memory of so many operations: nothing takes more
/// than two that read one picture and write another.
pub(crate) fn moved(times: u32, steps: &mut dyn Sink) {
    let look = Look {
        interpolation: Interpolation::Bicubic,
        fill: [0; 3],
    };
    for _ in 0..times.min(2) {
        steps.augment(Kind::ShearX.step(0.0, look));
    }
}
