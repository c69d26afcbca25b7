//! The recipes that have a name.

use super::ops::{CenterCrop, Decode, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize};
use super::tensor::{Dtype, MemoryLayout};
use super::written::Recipe;
use crate::error::{Error, Result};

impl Recipe {
    /// Random resized crop to 224 (scale 0.08 to 1, ratio 3/4 to 4/3),
    /// horizontal flip with probability 0.5, ImageNet mean and std; f16, NCHW.
    pub fn train224() -> Self {
        Self::new("train224")
            .then(Decode::default())
            .then(RandomResizedCrop::new(224))
            .then(RandomHorizontalFlip::default())
            .then(Normalize::imagenet())
            .with_dtype(Dtype::F16)
            .with_layout(MemoryLayout::Nchw)
    }

    /// Shorter side to 256, centre crop of 224, ImageNet mean and std; f32, NCHW.
    pub fn eval224() -> Self {
        Self::new("eval224")
            .then(Decode::default())
            .then(Resize::shorter(256))
            .then(CenterCrop::new(224))
            .then(Normalize::imagenet())
            .with_dtype(Dtype::F32)
            .with_layout(MemoryLayout::Nchw)
    }

    /// Whole pictures at full size, each row of its own height and width, no
    /// value changed; u8, NHWC.
    pub fn full() -> Self {
        Self::new("full")
            .then(Decode::default())
            .with_dtype(Dtype::U8)
            .with_layout(MemoryLayout::Nhwc)
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
        b.ops[2] = RandomHorizontalFlip { p: 0.25 }.into();
        assert_ne!(a.hash(), b.hash());
        assert_ne!(a.hash(), a.clone().with_dtype(Dtype::F32).hash());
    }
}
