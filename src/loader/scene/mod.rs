//! Runs over the images of a scene, generic over their kind: rays or views.
//!
//! - `kind`: what the kinds do not share;
//! - `builder`: the builder; `options`: those of all runs; `source`: where a scene comes from;
//! - `prepared`: what a run will take; `memory`: its account of memory; `chosen`: the frames of a
//!   split and their files;
//! - `build`: the order of the start; `start`: its steps: scene, masks, store; `store`: held for as
//!   long as a run is;
//! - `run`: batches, step by step; `report`: what happened; `state`: from where a run goes on.
//!
//! All in the consumer. Never in here: one of the kinds.

mod build;
mod builder;
mod chosen;
mod kind;
mod memory;
mod options;
mod prepared;
mod report;
mod run;
mod source;
mod start;
mod state;
mod store;

pub use builder::SceneBuilder;
pub(in crate::loader) use chosen::{Chosen, ReadScene};
pub use kind::SceneKind;
pub(in crate::loader) use memory::Beside;
pub(in crate::loader) use options::RunOptions;
pub use report::SceneReport;
pub(in crate::loader) use report::{decode_seconds, seconds};
pub use run::SceneRun;
pub use source::SceneSource;
pub(in crate::loader) use state::SceneFacts;
pub use state::SceneState;
