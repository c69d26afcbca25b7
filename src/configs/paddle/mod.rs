//! Translates a PaddleClas config to a recipe, a source, an order of samples, and notes about
//! differences.
//!
//! Runs in the consumer or the CLI, before anything is started. The only I/O is reading the config.
//! The meaning follows PaddleClas' CPU path. Nothing in a config is evaluated as code. Never in
//! here: what an operation does, or the format of lists.
//!
//! - `training`: one tree of a config and its loader; `options`: options for reading it;
//! - `tree`: finds a tree of a config; `op_list`: lists of operations;
//! - `params`: the parameters of one name; `number`: arithmetic in text;
//! - `ops`, `batch`, `dataset`, `cifar`, `sampler`: the parts of a tree;
//! - `dataset_config`: the settings that a data set leads to;
//! - `environment`: the launcher's variables; `note`: notes for the user.

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
