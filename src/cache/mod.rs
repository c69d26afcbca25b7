//! Caches: a data set turned into shards that later runs map and read at the
//! speed of the link.
//!
//! A cache is a folder of uncompressed WebDataset tars, each with DALI's index
//! and a checksummed manifest beside it; no format of our own. Runs in the
//! consumer. Never in here: printing, `unsafe`.
//!
//! - `layout`: the names of its files;
//! - `options`: by what it is built.

pub(crate) mod layout;
mod options;

pub use options::{BuildOptions, CacheResize, Encoding, OnBadSample};
