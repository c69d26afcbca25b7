//! Caches and tar shards that lie in object stores: which shard is needed when, and how it comes
//! into a folder of this machine that never holds more than it may.
//!
//! The order of every epoch is known, so nothing is guessed. Each rank has a fetcher, a process
//! of its own that is started as the coordinator is. It computes from plan and index when its
//! rank needs which shard, and writes that into the folder (`demand_file`). Of all fetchers of a
//! folder one leads: it reads what all ranks need, gets what is needed next, and removes what is
//! needed last. When it dies, the next one leads.
//!
//! | what it is | files | in which process |
//! |---|---|---|
//! | the options of a user | `options` | all |
//! | the messages of both sides | `messages` | consumer, fetcher |
//! | tar shards that are no cache: the list of them | `tar_list` | consumer, fetcher |
//! | a shard that may not be removed; the disk space that shards take | `lease`, `shard_room` | consumer, fetcher |
//! | a long wait for a shard, as it is reported | `shard_wait` | consumer |
//! | has a fetcher and waits for shards; batches whose shards are here | `fetcher`, `held_shards` | consumer |
//! | shards that are read all at a time | `prefetch` | consumer |
//! | when this rank needs which shard; the same of all ranks | `next_use`, `demand_file` | fetcher |
//! | what is fetched next, and what goes for it; limits that cannot work | `schedule`, `disk_budget` | fetcher |
//! | one object out of the store; the file of a shard that comes | `download`, `part` | fetcher |
//! | the data set at an address; the tars under a prefix | `remote_dataset`, `listing` | fetcher |
//! | the folder: its names and locks; checksums of its shards | `folder`, `checksums` | fetcher |
//! | the fetcher that leads a folder, and the sign that it goes on | `leader`, `heartbeat` | fetcher |
//! | one rank's use of a data set; the fetcher's life | `session`, `serve` | fetcher |

#[cfg(feature = "stores")]
mod checksums;
#[cfg(feature = "stores")]
mod demand_file;
#[cfg(feature = "stores")]
mod disk_budget;
#[cfg(feature = "stores")]
pub(super) mod download;
pub(crate) mod fetcher;
#[cfg(feature = "stores")]
mod folder;
#[cfg(feature = "stores")]
mod heartbeat;
mod held_shards;
#[cfg(feature = "stores")]
mod leader;
mod lease;
#[cfg(feature = "stores")]
mod listing;
mod messages;
#[cfg(feature = "stores")]
mod next_use;
mod options;
#[cfg(feature = "stores")]
mod part_file;
mod prefetch;
#[cfg(feature = "stores")]
mod remote_dataset;
#[cfg(feature = "stores")]
mod schedule;
#[cfg(feature = "stores")]
mod serve;
#[cfg(feature = "stores")]
mod session;
mod shard_space;
mod shard_wait;
mod tar_list;

pub use crate::remote::address::StoreAddress;
pub use fetcher::FetchReport;
pub use options::FetchOptions;
pub(crate) use shard_space::ShardSpace;

#[cfg(all(feature = "codecs", feature = "stores"))]
use crate::pool::coordinator::init::HelperEntry;

/// What makes a helper a fetcher.
#[cfg(all(feature = "codecs", feature = "stores"))]
pub(crate) const FETCHER: HelperEntry = HelperEntry {
    command: crate::pool::coordinator::messages::FETCHER_COMMAND,
    live: serve::live,
};
