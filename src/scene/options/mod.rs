//! Options of runs over a scene, as data: one definition for the command line's flags and for the
//! Python package's keywords. All are optional.
//!
//! - `runs`: options of rays, of views, and of both.
//!
//! Options for reading the scene are in [`SceneOptions`](crate::scene::SceneOptions). Runs in the
//! consumer. Not here: defaults, which the builder has.

mod runs;

pub use runs::{RaysOptions, ViewsOptions};
