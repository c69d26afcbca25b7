//! Whole images of a scene, as a trainer holds them.
//!
//! - `builder`: what the user asks for; `start`: the order of the start;
//! - `state`: from where, and with what, a run goes on;
//! - `steps`: views, step by step, and what happened;
//! - `forecast`: what they will take;
//! - `discs`: crop radii of fisheye images, as masks.
//!
//! All in the consumer. Never in here: how views are made.

mod builder;
mod discs;
mod forecast;
mod start;
mod state;
mod steps;

pub use crate::jobs::views::fields::ViewField;
pub use crate::jobs::views::view::View;
pub use crate::loader::scene::SceneSource;
pub use builder::ViewsBuilder;
pub use state::ViewsState;
pub use steps::{Views, ViewsReport};
