//! Caches and tar shards that lie in object stores: which shard is needed when, and how it comes
//! into a folder of this machine that never holds more than it may.
//!
//! The order of every epoch is known, so nothing is guessed. Each rank has a fetcher, a process
//! of its own that is started as the coordinator is. It computes from plan and index when its
//! rank needs which shard, and writes that into the folder (`board`). Of all fetchers of a folder
//! one leads: it reads what all ranks need, gets what is needed next, and removes what is needed
//! last. When it dies, the next one leads.
//!
//! | what it is | files | in which process |
//! |---|---|---|
//! | what a user says | `address`, `options` | all |
//! | what both sides say to each other | `messages` | consumer, fetcher, sender |
//! | tar shards that are no cache: the list of them | `tars` | consumer, fetcher |
//! | a shard that may not be removed; what files take of a disk | `lease`, `disk` | consumer, fetcher |
//! | a long wait for a shard, as it is reported | `shard_wait` | consumer |
//! | has a fetcher and waits for shards; the same of shards that are read all at a time; a helper's process; batches that are there | `client`, `bring`, `handle`, `held` | consumer |
//! | when this rank needs which shard; the same of all ranks | `uses`, `board` | fetcher |
//! | what is fetched next, and what goes for it; limits that cannot work | `schedule`, `room` | fetcher |
//! | one object out of the store; servers whose ranges cannot be used; the file of a shard that comes | `download`, `ranges`, `part` | fetcher, sender |
//! | what lies at an address; the tars under a prefix | `set`, `listing` | fetcher |
//! | the HTTP client of stores, which bounds answers; the redirects that it follows | `connector`, `redirect` | fetcher, sender |
//! | the store; what its answers mean; how long it is tried; the life on a socket | `store`, `answer`, `patience`, `line` | fetcher, sender |
//! | transfers that are reported while they are slow | `progress` | consumer, fetcher, sender |
//! | the folder: its names and locks; checksums of its shards; who leads, and what is there; whether that one goes on | `folder`, `book`, `leader`, `beat` | fetcher |
//! | one rank's use of a data set; the fetcher's life | `session`, `process` | fetcher |
//!
//! The sender, which brings a cache there (`send`), speaks with stores by the same files.
//!
//! Never in here: pixels, workers, how a shard is read. An HTTP client and its runtime run in
//! fetcher and sender and nowhere else, and are compiled with the feature `stores` alone.

mod address;
#[cfg(feature = "stores")]
mod answer;
#[cfg(feature = "stores")]
mod beat;
#[cfg(feature = "stores")]
mod board;
#[cfg(feature = "stores")]
mod book;
mod bring;
pub(crate) mod client;
#[cfg(feature = "stores")]
mod connector;
mod disk;
#[cfg(feature = "stores")]
pub(crate) mod download;
#[cfg(feature = "stores")]
mod folder;
pub(crate) mod handle;
mod held;
#[cfg(feature = "stores")]
mod leader;
mod lease;
#[cfg(feature = "stores")]
pub(crate) mod line;
#[cfg(feature = "stores")]
mod listing;
pub(crate) mod messages;
mod options;
#[cfg(feature = "stores")]
mod part;
#[cfg(feature = "stores")]
pub(crate) mod patience;
#[cfg(feature = "stores")]
mod process;
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(crate) mod progress;
#[cfg(feature = "stores")]
mod ranges;
#[cfg(feature = "stores")]
mod redirect;
#[cfg(feature = "stores")]
mod room;
#[cfg(feature = "stores")]
mod schedule;
#[cfg(feature = "stores")]
mod session;
#[cfg(feature = "stores")]
mod set;
mod shard_wait;
#[cfg(feature = "stores")]
pub(crate) mod store;
mod tars;
#[cfg(feature = "stores")]
mod uses;

pub use address::Address;
pub(crate) use bring::ShardRoom;
pub use client::FetchReport;
pub use options::FetchOptions;

#[cfg(all(feature = "codecs", feature = "stores"))]
use crate::pool::coordinator::own::Life;

/// What makes a helper a fetcher.
#[cfg(all(feature = "codecs", feature = "stores"))]
pub(crate) const FETCHER: Life = Life {
    command: crate::pool::coordinator::messages::FETCHER_COMMAND,
    live: process::live,
};
