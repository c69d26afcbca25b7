//! Rays of a scene, as a trainer holds them.
//!
//! - `builder`: what the user asks for; `start`: the order of the start;
//! - `forecast`: what they will take;
//! - `prepared`: what follows from frames and sampler before anything is allocated;
//! - `state`: from where, and with what, a run goes on;
//! - `steps`: batches, step by step, and what happened.
//!
//! All in the consumer. Never in here: how rays are made.

mod builder;
mod forecast;
mod prepared;
mod start;
mod state;
mod steps;

pub use crate::jobs::rays::batch::RayBatch;
pub use crate::jobs::rays::fields::RayField;
pub use crate::loader::scene::SceneSource;
pub use builder::RaysBuilder;
pub use state::RaysState;
pub use steps::{Rays, RaysReport};
