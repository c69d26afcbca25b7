//! The options of a run, as data: one definition for the command line's flags and the Python
//! package's keywords. All of them are optional.
//!
//! - `source`: the data set, and how it is read;
//! - `loader`: recipe, order, processes and device;
//! - `rank`: the rank of a process; `units`: sizes and times;
//! - `cli`: what the command line needs in addition;
//! - `setup`: both together with a PaddleClas config, which may be named as the recipe. Its values
//!   hold for options that are not set.
//!
//! In the consumer. Never in here: what an option does; the builder does that.

#[cfg(feature = "cli")]
pub mod cli;
mod loader;
pub(crate) mod rank;
mod setup;
mod source;
pub mod units;

pub use loader::{LoaderOptions, UploadOption};
pub use setup::LoaderSetup;
pub use source::{LabelSource, SourceOptions};
