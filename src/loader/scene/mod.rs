//! What runs over the images of a scene share, rays and views.
//!
//! - `source`: where a scene comes from; `options`: what every run is told;
//! - `chosen`: the frames of a split and their files;
//! - `memory`: what a run will take;
//! - `start`: scene, masks, store, in this order; `store`: held for as long as a run is;
//! - `state`: what states share.
//!
//! All in the consumer. Never in here: what the images are for.

mod chosen;
mod memory;
mod options;
mod source;
mod start;
mod state;
mod store;

pub(in crate::loader) use chosen::Chosen;
pub(in crate::loader) use memory::{Beside, Judged, accepted, with_room};
pub(in crate::loader) use options::{SceneRun, scene_run_options};
pub use source::SceneSource;
pub(in crate::loader) use start::{ReadScene, check_device};
pub(in crate::loader) use state::{check_first_step, check_same, fingerprint};
pub(in crate::loader) use store::HeldStore;
