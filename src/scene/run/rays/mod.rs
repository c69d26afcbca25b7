//! Rays of a scene, as a trainer holds them.
//!
//! - `builder`: the methods of their builder; `options`: what those set;
//! - `kind`: what they take, and who makes them;
//! - `prepared`: what follows from frames and sampler before anything is allocated;
//! - `state`: from where, and with what, a run goes on;
//! - `steps`: batches, step by step; `report`: what happened.
//!
//! All in the consumer. Never in here: how rays are made; the order of the start, and what
//! views have too (`scene`).

mod builder;
mod kind;
mod options;
mod ray_table;
mod report;
mod state;
mod steps;

pub use crate::scene::draw::{RaySampler, ScenePixel};
pub use crate::scene::jobs::rays::batch::{RayBatch, StepRays};
pub use crate::scene::jobs::rays::fields::RayField;
pub use builder::RaysBuilder;
pub use kind::RayKind;
pub use report::{RayWork, RaysReport};
pub use state::RaysState;
pub use steps::Rays;
