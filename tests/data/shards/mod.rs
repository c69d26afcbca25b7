//! Tar shards made by the `tar` crate, loaded: streams, labels, damage, indexes
//! that are kept, and the command line.

pub mod scene;

mod command;
mod dotted;
mod kept;
mod labels;
mod replaced;
mod stream;
