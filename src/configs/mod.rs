//! Other people's configs, as recipe, source, order and notes.
//!
//! - [`paddle`] reads the configs of PaddleClas.
//!
//! In the consumer. Never in here: what an operation does to pixels.

pub mod paddle;
