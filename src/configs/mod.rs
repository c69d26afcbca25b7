//! Configs of other projects, translated to a recipe, a source, an order and notes.
//!
//! - [`paddle`] reads the configs of PaddleClas.
//!
//! Runs in the consumer. Never in here: what an operation does to pixels.

pub mod paddle;
