//! Commands over a scene: `featherload rays`, `featherload views`, and `featherload index` of one.
//!
//! - `rays`, `views`: the sub-commands; `rays_args`: arguments of the first, which `rss` has too;
//! - `index`: a scene in numbers;
//! - `args`: arguments that several have; `plan`: the memory of a run, before it;
//! - `run`: its steps, measured and printed; `ray_drawing`: rays as a picture.

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
