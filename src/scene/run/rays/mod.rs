//! Rays of a scene: the public stream.
//!
//! - `builder`: builder methods of rays; `options`: their options;
//! - `kind`: memory, sampling table and makers of batches;
//! - `ray_table`: the sampling table, from frames and sampler;
//! - `state`: the position to resume from;
//! - `steps`: batches, step by step; `report`: the report.
//!
//! All run in the consumer. Not here: how rays are made; what views share (`scene::run`).

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
