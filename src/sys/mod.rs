//! The operating system, one family of calls a file; the only place beside the
//! ring, the coordinator and the worker where `unsafe` may stand.
//!
//! Runs in every process. Knows nothing of images, rings or recipes.

pub(crate) mod cpu;
pub(crate) mod sealed;
