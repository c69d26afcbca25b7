//! What a caller says of a run, as data: what the command line's flags and the Python
//! package's keywords become. Everything may be left out.
//!
//! - `source`: where samples come from, and how that is read;
//! - `loader`: what is done with them, and by how many;
//! - `rays`: rays of a scene; `views`: its whole images; `units`: sizes and times;
//! - `values`: values with a few names;
//! - `setup`: both together with the PaddleClas config that may be named as the recipe,
//!   whose values hold where the caller says nothing.
//!
//! In the consumer. Never in here: what an option does; that is the builder's.

mod loader;
mod rays;
mod setup;
mod source;
pub mod units;
#[cfg(feature = "cli")]
pub mod values;
mod views;

pub use loader::LoaderOptions;
pub use rays::RaysOptions;
pub use setup::Setup;
pub use source::{LabelSource, SourceOptions};
pub use views::ViewsOptions;
