//! The recipes that have a name.

use super::ops::{Background, DecodeMode, Op, Recipe};
use super::tensor::{Dtype, MemoryLayout};
use crate::error::{Error, Result};

const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

impl Recipe {
    /// Random resized crop to 224 (scale 0.08 to 1, ratio 3/4 to 4/3),
    /// horizontal flip with probability 0.5, ImageNet mean and std; f16, NCHW.
    pub fn train224() -> Self {
        Self::new(
            "train224",
            vec![
                Op::Decode {
                    mode: DecodeMode::Scaled,
                    background: Background::WHITE,
                },
                Op::RandomResizedCrop {
                    size: (224, 224),
                    scale: (0.08, 1.0),
                    ratio: (3.0 / 4.0, 4.0 / 3.0),
                },
                Op::HorizontalFlip { p: 0.5 },
                Op::Normalize {
                    mean: IMAGENET_MEAN,
                    std: IMAGENET_STD,
                },
                Op::Cast { dtype: Dtype::F16 },
                Op::Layout {
                    layout: MemoryLayout::Nchw,
                },
            ],
        )
    }

    /// Shorter side to 256, centre crop of 224, ImageNet mean and std; f32, NCHW.
    pub fn eval224() -> Self {
        Self::new(
            "eval224",
            vec![
                Op::Decode {
                    mode: DecodeMode::Scaled,
                    background: Background::WHITE,
                },
                Op::ResizeShorter { size: 256 },
                Op::CenterCrop { size: (224, 224) },
                Op::Normalize {
                    mean: IMAGENET_MEAN,
                    std: IMAGENET_STD,
                },
                Op::Cast { dtype: Dtype::F32 },
                Op::Layout {
                    layout: MemoryLayout::Nchw,
                },
            ],
        )
    }

    /// Whole pictures at full size, each row of its own height and width, no
    /// value changed; u8, NHWC.
    pub fn full() -> Self {
        Self::new(
            "full",
            vec![
                Op::Decode {
                    mode: DecodeMode::Full,
                    background: Background::WHITE,
                },
                Op::Cast { dtype: Dtype::U8 },
                Op::Layout {
                    layout: MemoryLayout::Nhwc,
                },
            ],
        )
    }

    /// The names that [`Recipe::preset`] knows.
    pub const PRESETS: [&'static str; 3] = ["train224", "eval224", "full"];

    /// The recipe of that name.
    ///
    /// # Errors
    /// When there is none; the text lists the names.
    pub fn preset(name: &str) -> Result<Self> {
        match name {
            "train224" => Ok(Self::train224()),
            "eval224" => Ok(Self::eval224()),
            "full" => Ok(Self::full()),
            _ => Err(Error::config(format!(
                "recipe '{name}' is not one of {}",
                Self::PRESETS.join(", ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_recipe_that_compiles() {
        for name in Recipe::PRESETS {
            let r = Recipe::preset(name).unwrap();
            assert_eq!(r.name, name);
            crate::recipe::SampleProgram::compile(&r).unwrap();
        }
        assert!(Recipe::preset("train225").is_err());
    }

    #[test]
    fn the_hash_sees_every_number_but_not_the_name() {
        let a = Recipe::train224();
        let mut b = a.clone();
        b.name = "other".into();
        assert_eq!(a.hash(), b.hash());
        b.ops[2] = Op::HorizontalFlip { p: 0.25 };
        assert_ne!(a.hash(), b.hash());
        assert_ne!(a.hash(), a.clone().with_dtype(Dtype::F32).hash());
    }
}
