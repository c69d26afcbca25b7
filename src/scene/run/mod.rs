//! What a trainer of scenes holds: runs over the images of a scene, generic over their kind.
//!
//! - `kind`: what the kinds do not share;
//! - `builder`: the builder; `options`: those of all runs; `source`: where a scene comes from;
//! - `prepared`: what a run will take; `memory`: its account of memory; `chosen`: the frames of a
//!   split and their files;
//! - `build`: the order of the start; `start`: its steps: scene, masks, store; `store`: held for as
//!   long as a run is;
//! - `scene_run`: batches, step by step; `report`: what happened; `state`: from where a run goes
//!   on.
//!
//! The kinds: [`rays`] and [`views`].
//!
//! All in the consumer. Never in here: how rows are made.

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
