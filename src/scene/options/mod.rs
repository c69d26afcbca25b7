//! The options of runs over a scene, as data: one definition for the command line's flags and the
//! Python package's keywords. Everything may be left out.
//!
//! - `runs`: options of rays, of views, and of both.
//!
//! How the scene itself is read is [`SceneOptions`](crate::scene::SceneOptions). In the consumer.
//! Never in here: defaults; the builder has them.

mod runs;

pub use runs::{RaysOptions, ViewsOptions};
