//! Runs over the images of a scene, generic over their kind. A trainer holds one.
//!
//! - `kind`: the trait of a kind; [`rays`] and [`views`]: the two kinds;
//! - `builder`: the builder; `options`: options of all kinds; `source`: where a scene comes from;
//! - `run_plan`: what a run needs; `memory`: its memory; `split_frames`: frames of a split, with
//!   files;
//! - `build`: the order of the start; `start`: its steps: scene, masks, image store;
//! - `run_store`: the image store for the run's lifetime;
//! - `scene_run`: batches, step by step; `report`: the report; `state`: the position to resume
//!   from.
//!
//! All run in the consumer. Not here: how rows are made.

mod build;
mod builder;
mod kind;
mod memory;
mod options;
pub mod rays;
mod report;
mod run_plan;
mod run_store;
mod scene_run;
mod source;
mod split_frames;
mod start;
mod state;
pub mod views;

pub use builder::SceneBuilder;
pub use kind::SceneKind;
pub(crate) use memory::RunSizes;
pub(crate) use options::RunOptions;
pub use report::SceneReport;
pub(crate) use report::{decode_seconds, seconds};
pub use scene_run::SceneRun;
pub use source::SceneSource;
pub(crate) use split_frames::{SceneInputs, SplitFrames};
pub(crate) use state::SceneFacts;
pub use state::SceneState;
