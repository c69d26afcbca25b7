//! The options of a run, as data: one definition for the command line's flags and the Python
//! package's keywords. Everything may be left out.
//!
//! - `source`: where samples come from, and how that is read;
//! - `loader`: what is done with them, and by how many;
//! - `rank`: a process among those that train together; `units`: sizes and times;
//! - `cli`: what the command line needs beside the options;
//! - `setup`: both together with the PaddleClas config that may be named as the recipe,
//!   whose values hold where the caller says nothing.
//!
//! In the consumer. Never in here: what an option does; that is the builder's.

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
