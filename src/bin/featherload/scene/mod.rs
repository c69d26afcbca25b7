//! Commands over a scene: `featherload rays`, `featherload views`, and `featherload index` of a
//! scene.
//!
//! - `rays`, `views`: the sub-commands;
//! - `rays_args`: arguments of `rays`, which `rss` also reads;
//! - `index`: the figures of a scene;
//! - `args`: arguments of several commands;
//! - `plan`: the memory of a run, before it starts;
//! - `run`: measures and prints its steps;
//! - `ray_drawing`: rays as a drawing.

mod args;
mod index;
mod plan;
mod ray_drawing;
mod rays;
mod rays_args;
mod run;
mod views;

pub use index::{SceneArgs, run as index_scene};
pub use rays::run as rays;
pub use rays_args::RaysArgs;
pub use views::{ViewsArgs, run as views};
