//! Data sets in object stores: downloads to this machine, and uploads. Helper processes with an
//! HTTP client do the work; the consumer has none.
//!
//! | contents | files |
//! |---|---|
//! | the address of a data set | `address` |
//! | both kinds of helpers: their processes, and messages with the consumer | `helper` |
//! | access to a store, for both kinds of helpers | `store` |
//! | the fetcher: downloads shards into a folder | `fetch` |
//! | the uploader: uploads a cache | `upload` |
//!
//! Never in here: pixels, workers, reading or writing of shards. An HTTP client and its runtime run
//! only in fetcher and uploader. They are compiled with the feature `stores` only.

mod address;
pub mod fetch;
mod helper;
#[cfg(feature = "stores")]
mod store;
pub(crate) mod upload;
