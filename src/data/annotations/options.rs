//! What to keep of annotations.

use serde::{Deserialize, Serialize};

/// What to do with crowds: objects that stand for several, `iscrowd` of COCO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrowdPolicy {
    #[default]
    Keep,
    Drop,
}

/// What to keep of annotations, and whether wrong ones are errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnnotationOptions {
    /// The first wrong annotation is an error. Otherwise they are counted.
    pub strict: bool,
    /// Keep outlines and run lengths. They are most of the memory.
    pub shapes: bool,
    /// Keep keypoints.
    pub keypoints: bool,
    pub crowds: CrowdPolicy,
    /// The four corners of YOLO's rows are a rotated box, and not an outline.
    pub rotated: bool,
}

impl Default for AnnotationOptions {
    fn default() -> Self {
        Self {
            strict: false,
            shapes: true,
            keypoints: true,
            crowds: CrowdPolicy::Keep,
            rotated: false,
        }
    }
}
