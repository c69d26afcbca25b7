//! Translates PaddleClas' `transform_ops` to operations of a recipe. The meaning follows
//! PaddleClas' CPU path.
//!
//! Runs in the consumer or the CLI.
//!
//! - `names`: the table of all names, and the translation of a list;
//! - `decode`, `shape`, `paddle_vision`, `pad`, `normalise`, `erase`, `jitter`, `blur`, `augment`,
//!   `apply`: one function per name, from its parameters to operations;
//! - `backend`: parameters that all resizes share;
//! - `op_pipeline`: the operations so far, and the state of the image after them;
//! - `image_form`: the form of an image between operations; `form_checks`: checks of that form;
//! - `multi_scale`, `stages`: sizes set by batches and by stages of the training;
//! - `labels`: drawn values that are labels.
//!
//! Never in here: what operations do to pixels, or whether they fit together. The recipe checks
//! that.

mod apply;
mod augment;
mod backend;
mod blur;
mod decode;
mod erase;
mod form_checks;
mod image_form;
mod jitter;
mod labels;
mod multi_scale;
mod names;
mod normalise;
mod op_pipeline;
mod pad;
mod paddle_vision;
mod shape;
mod stages;
#[cfg(test)]
mod tests;

pub(crate) use names::{OpListRules, TranslatedOps, translate};
pub(crate) use stages::first_epochs;
