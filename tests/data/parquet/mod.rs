//! Parquet files as a source: what streams and caches come of them, which labels they have,
//! and what is refused.

mod bombs;
mod cache;
mod hostile;
mod labels;
mod scene;
mod stream;
