//! Data sets in object stores: how they come to this machine, and how they go there. The work is
//! done by helpers, which are processes of their own with an HTTP client; the consumer has none.
//!
//! | what it is | files |
//! |---|---|
//! | where a data set lies | `address` |
//! | the life of a helper, of either kind, and what it says to its consumer | `helper` |
//! | a store, as both kinds speak with it | `store` |
//! | the fetcher: shards come into a folder of this machine | `fetch` |
//! | the sender: a cache goes into a store | `upload` |
//!
//! Never in here: pixels, workers, how a shard is read or made. An HTTP client and its runtime run
//! in fetcher and sender and nowhere else, and are compiled with the feature `stores` alone.

mod address;
pub mod fetch;
mod helper;
#[cfg(feature = "stores")]
mod store;
pub(crate) mod upload;
