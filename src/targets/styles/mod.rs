//! Styles: what other libraries do to objects at the end, or step by step.
//!
//! A style says how results are rounded, clamped and dropped, how keypoints flip, and whether boxes
//! are integers. Polygons are moved by the one map of all steps in every style.
//!
//! - `torchvision`, `albumentations`, `detectron2`, `ultralytics`, `hf`: the rules of each library;
//! - `dropping`: which objects are kept.

mod albumentations;
mod detectron2;
mod dropping;
mod hf;
mod torchvision;
mod ultralytics;

pub use albumentations::AlbumentationsRules;
pub use detectron2::Detectron2Rules;
pub use torchvision::{
    TorchvisionRules, clamp_boxes, clamp_keypoints, sanitize_boxes, sanitize_keypoints,
};
pub use ultralytics::UltralyticsRules;

use super::fault::TargetFault;
use super::objects::{DropCounts, KeypointSwap, SampleObjects};
use super::sample_motion::SampleMotion;

/// The library whose rules objects follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetStyle {
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
    /// If arrays are of different objects, or if keypoints need partners and have none.
    pub fn move_objects(
        &self,
        motion: &SampleMotion,
        objects: &mut SampleObjects,
        swap: Option<&KeypointSwap>,
    ) -> Result<DropCounts, TargetFault> {
        objects.check()?;
        let mut counts = DropCounts::default();
        if !objects.polygons.points.is_empty() {
            let path = motion.path();
            for point in &mut objects.polygons.points {
                *point = path.map(*point);
            }
        }
        if !matches!(self, Self::Torchvision(_)) {
            move_rotated(motion, objects);
        }
        match self {
            Self::Torchvision(rules) => {
                rules.walk(motion, objects);
                dropping::drop_lost(objects, &mut counts);
            }
            Self::Albumentations(rules) => rules.walk(motion, objects, &mut counts),
            Self::Detectron2(rules) => rules.walk(motion, objects, swap, &mut counts)?,
            Self::Ultralytics(rules) => rules.walk(motion, objects, swap, &mut counts)?,
            Self::Hf => hf::walk(motion, objects, &mut counts),
        }
        Ok(counts)
    }
}

/// Rotated boxes of libraries without a rule of their own: corners through the one map, and the
/// rectangle of what becomes of them.
fn move_rotated(motion: &SampleMotion, objects: &mut SampleObjects) {
    let Some(format) = objects.rotated.format else {
        return;
    };
    let path = motion.path();
    let mirrored = motion.is_mirrored();
    for values in objects.rotated.values.chunks_exact_mut(format.numbers()) {
        format.move_by(values, mirrored, |at| path.map(at));
    }
}
