//! Targets: boxes, keypoints, polygons and masks that move with their picture.
//!
//! What the steps of a sample do to coordinates is one map from source to output, in `f64`. All
//! targets go through it once. A style adds what a library does at the end, or walks step by step
//! where its result depends on the steps.
//!
//! Coordinates are continuous: x to the right and y down, in pixels. The pixel in column `c` and row
//! `r` has its centre at `(c + 0.5, r + 0.5)`. A style says where its library counts otherwise.
//!
//! Runs where rows are made. Pure: no files, rings or threads, and no random numbers of its own.
//! Adding targets changes no draw. Never in here: formats of annotation files, pixels of pictures.
//!
//! Motion:
//! - `matrix`: matrices that map points; `displacement`: the map of an elastic deformation;
//! - `step_motion`: what one step does to coordinates; `sample_motion`: what all steps do.
//!
//! Objects:
//! - `objects`: the objects of a sample; `box_format`, `rotated_box`: formats of boxes;
//! - `styles/`: the rules of libraries; `masks/`: instance masks; `fault`: what is wrong with an
//!   object.

mod box_format;
mod displacement;
mod fault;
pub mod masks;
mod matrix;
mod objects;
mod rotated_box;
mod sample_motion;
mod step_motion;
mod styles;

#[cfg(test)]
mod tests;

pub use box_format::{BoxFormat, box_in_pixels, normalized_box};
pub use displacement::DisplacementMap;
pub use fault::TargetFault;
pub use matrix::{PointMatrix, corners_of, hull_of};
pub use objects::{
    DropCounts, KeypointArray, KeypointSwap, PolygonArray, RotatedBoxes, SampleObjects,
};
pub use rotated_box::{ClampingMode, RotatedFormat};
pub use sample_motion::{MotionPath, SampleMotion};
pub use step_motion::{MotionKind, StepMotion};
pub use styles::{
    AlbumentationsRules, Detectron2Rules, TargetRules, TargetStyle, TorchvisionRules,
    UltralyticsRules, clamp_boxes, clamp_keypoints, sanitize_boxes, sanitize_keypoints,
};
