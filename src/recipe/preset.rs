//! The recipes with a name. Each exists in Rust, and as an example file in `presets/`. A test
//! checks that both are equal.

use super::op::{CenterCrop, Decode, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize};
use super::recipe_spec::Recipe;
use super::tensor::{DataType, MemoryLayout};
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
            .with_dtype(DataType::F16)
            .with_layout(MemoryLayout::Nchw)
    }

    /// Shorter side to 256, centre crop of 224, ImageNet mean and std; f32, NCHW.
    pub fn eval224() -> Self {
        Self::new("eval224")
            .then(Decode::default())
            .then(Resize::shorter(256))
            .then(CenterCrop::new(224))
            .then(Normalize::imagenet())
            .with_dtype(DataType::F32)
            .with_layout(MemoryLayout::Nchw)
    }

    /// Whole images at full size and unchanged. Each row has its own height and width. u8, NHWC.
    pub fn full() -> Self {
        Self::new("full")
            .then(Decode::default())
            .with_dtype(DataType::U8)
            .with_layout(MemoryLayout::Nhwc)
    }

    /// The names that [`Recipe::preset`] accepts.
    pub const PRESETS: [&'static str; 3] = [LIST[0].name, LIST[1].name, LIST[2].name];

    /// The recipe of this name.
    ///
    /// # Errors
    /// For an unknown name. The text lists the names.
    pub fn preset(name: &str) -> Result<Self> {
        find(name).map(|preset| (preset.build)())
    }
}

struct Preset {
    name: &'static str,
    build: fn() -> Recipe,
}

const LIST: [Preset; 3] = [
    Preset {
        name: "train224",
        build: Recipe::train224,
    },
    Preset {
        name: "eval224",
        build: Recipe::eval224,
    },
    Preset {
        name: "full",
        build: Recipe::full,
    },
];

fn find(name: &str) -> Result<&'static Preset> {
    const PRESETS: &[Preset] = &LIST;
    PRESETS.iter().find(|p| p.name == name).ok_or_else(|| {
        Error::config(format!(
            "recipe '{name}' is unknown: use one of {}",
            Recipe::PRESETS.join(", ")
        ))
    })
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
    fn every_name_is_a_file_and_says_the_same() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/recipe/presets");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut names = Recipe::PRESETS.map(|name| format!("{name}.yaml"));
        names.sort();
        assert_eq!(files, names);
        for name in Recipe::PRESETS {
            let path = format!("{folder}/{name}.yaml");
            assert_eq!(
                Recipe::from_file(&path).unwrap(),
                Recipe::preset(name).unwrap()
            );
        }
    }

    #[test]
    fn the_hash_sees_every_number_but_not_the_name() {
        let a = Recipe::train224();
        let mut b = a.clone();
        b.name = "other".into();
        assert_eq!(a.hash(), b.hash());
        b.ops[2] = RandomHorizontalFlip { p: 0.25 }.into();
        assert_ne!(a.hash(), b.hash());
        assert_ne!(a.hash(), a.clone().with_dtype(DataType::F32).hash());
    }
}
