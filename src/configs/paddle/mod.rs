//! A PaddleClas config as featherload's own parts: a recipe, a source, an order of
//! epochs, and notes on what was read otherwise than it was written.
//!
//! In the consumer or the CLI, before anything is started; the only I/O is the
//! reading of the config. The meaning is that of PaddleClas' CPU path. Nothing of a
//! config is ever evaluated. Never here: what an operation does, or a list's lines.
//!
//! - `training`: one tree of a config, read whole; `options`: how;
//! - `tree`: which part of the config; `list`: operations in their order; `params`: the
//!   parameters of one name, and `number`: arithmetic in text;
//! - `ops`, `batch`, `dataset`, `cifar`, `sampler`: what those parts mean; `dataset_form`: what
//!   follows from a data set of any class;
//! - `environment`: what the launcher says; `note`: what people are told.

mod batch;
mod cifar;
mod dataset;
mod dataset_config;
mod environment;
#[cfg(all(test, feature = "codecs"))]
mod golden_tests;
mod note;
mod number;
mod op_list;
mod ops;
mod options;
mod params;
mod sampler;
#[cfg(test)]
mod tests;
mod training;
mod tree;

pub use environment::LauncherEnvironment;
pub use note::{ConfigNote, SkippedOperation};
pub use options::ConfigOptions;
pub use training::TrainingConfig;
