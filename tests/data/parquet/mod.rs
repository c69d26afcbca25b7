//! Parquet files as a source: their streams, caches and labels, and the files that are rejected.

mod bombs;
mod cache;
mod hostile;
mod labels;
pub mod scene;
mod stream;
