//! PaddleClas' `transform_ops` as operations of a recipe: which name is read by
//! what. The meaning is that of PaddleClas' CPU path.
//!
//! In the consumer or the CLI.
//!
//! - `names`: the table of all names, and the walk over a list of them;
//! - `decode`, `shape`, `paddle_vision`, `pad`, `normalise`, `erase`, `jitter`, `blur`,
//!   `augment`, `apply`: one function a name, from its parameters to operations;
//!   `backend`: what resizes have alike;
//! - `pipe`: the operations so far; `held`: what PaddleClas has in hand behind them;
//!   `fits`: who works on that; `multi_scale`, `stages`: whose sizes count;
//!   `labels`: draws that are labels.
//!
//! Never here: what operations do to pixels, or whether they fit together; that is
//! the recipe's.

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
