//! Styles: what other libraries do to objects at the end, or step by step.
//!
//! A style says how results are rounded, clamped and dropped, how keypoints flip, and whether boxes
//! are integers. Polygons are moved by the one map of all steps in every style.
//!
//! - `torchvision`, `albumentations`, `detectron2`, `ultralytics`, `hf`: the rules of each library;
//! - `moved_sample`: what all rules get of a sample; `dropping`: which objects are kept.

mod albumentations;
mod detectron2;
mod dropping;
mod hf;
mod moved_sample;
mod torchvision;
mod ultralytics;

pub use albumentations::AlbumentationsRules;
pub use detectron2::Detectron2Rules;
pub use torchvision::{
    TorchvisionRules, clamp_boxes, clamp_keypoints, sanitize_boxes, sanitize_keypoints,
};
pub use ultralytics::UltralyticsRules;

use serde::{Deserialize, Serialize};

use super::fault::TargetFault;
use super::objects::{DropCounts, KeypointSwap, SampleObjects};
use super::sample_motion::SampleMotion;
use moved_sample::MovedSample;

/// The library whose rules objects follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetStyle {
    #[default]
    Torchvision,
    Albumentations,
    Detectron2,
    Ultralytics,
    /// Hugging Face's processors of the DETR family.
    Hf,
}

impl TargetStyle {
    pub const ALL: [Self; 5] = [
        Self::Torchvision,
        Self::Albumentations,
        Self::Detectron2,
        Self::Ultralytics,
        Self::Hf,
    ];

    /// The word for it in options: `torchvision`, `albumentations`...
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Torchvision => "torchvision",
            Self::Albumentations => "albumentations",
            Self::Detectron2 => "detectron2",
            Self::Ultralytics => "ultralytics",
            Self::Hf => "hf",
        }
    }

    /// The style with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }

    /// The library's defaults.
    #[must_use]
    pub fn rules(self) -> TargetRules {
        match self {
            Self::Torchvision => TargetRules::Torchvision(TorchvisionRules::default()),
            Self::Albumentations => TargetRules::Albumentations(AlbumentationsRules::default()),
            Self::Detectron2 => TargetRules::Detectron2(Detectron2Rules::default()),
            Self::Ultralytics => TargetRules::Ultralytics(UltralyticsRules::default()),
            Self::Hf => TargetRules::Hf,
        }
    }
}

/// A style with its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetRules {
    Torchvision(TorchvisionRules),
    Albumentations(AlbumentationsRules),
    Detectron2(Detectron2Rules),
    Ultralytics(UltralyticsRules),
    Hf,
}

impl TargetRules {
    /// Moves the objects of a sample with its picture, and drops those that the style drops. Boxes
    /// keep their format. `swap`: the partners of keypoints, for styles that exchange them.
    ///
    /// # Errors
    /// If arrays are of different objects. If keypoints need partners and have none: some arrays have
    /// then been moved, and the objects are of no use.
    pub fn move_objects(
        &self,
        motion: &SampleMotion,
        objects: &mut SampleObjects,
        swap: Option<&KeypointSwap>,
    ) -> Result<DropCounts, TargetFault> {
        objects.check()?;
        let mut counts = DropCounts::default();
        if objects.is_empty() {
            return Ok(counts);
        }
        let moved = MovedSample {
            motion,
            path: &motion.path(),
            swap,
        };
        for point in &mut objects.polygons.points {
            *point = moved.path.map(*point);
        }
        if !matches!(self, Self::Torchvision(_)) {
            moved.move_rotated(objects);
        }
        match self {
            Self::Torchvision(rules) => rules.walk(&moved, objects),
            Self::Albumentations(rules) => rules.walk(&moved, objects, &mut counts),
            Self::Detectron2(rules) => rules.walk(&moved, objects, &mut counts)?,
            Self::Ultralytics(rules) => rules.walk(&moved, objects, &mut counts)?,
            Self::Hf => hf::walk(&moved, objects, &mut counts),
        }
        dropping::drop_lost(objects, &mut counts);
        dropping::hide_lost_keypoints(objects);
        Ok(counts)
    }
}
