//! The options of runs over a scene, as data: a definition for Python's keywords. Everything may be
//! left out.
//!
//! - `rays`: rays of a scene; `views`: its whole images; `scene_list`: what makes both of a list.
//!
//! In the consumer. Never in here: defaults; the builder has them.

mod rays;
mod scene_list;
mod views;

pub use rays::RaysOptions;
pub use views::ViewsOptions;
