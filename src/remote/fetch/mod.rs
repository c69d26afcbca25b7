//! Caches, tar shards and single images in object stores: downloads each shard before its use, into a folder of
//! limited size.
//!
//! The order of every epoch is known, so nothing is guessed. Each rank has a fetcher, a separate
//! process that is started like the coordinator. It computes from order and index when its rank
//! needs which shard, and writes that into the folder (`demand_file`). One fetcher per folder
//! leads. It reads the demand of all ranks, downloads what is needed next, and deletes what is
//! needed last. When it dies, another one leads.
//!
//! | contents | files | process |
//! |---|---|---|
//! | options of a user | `options` | all |
//! | messages | `messages` | consumer, fetcher |
//! | list of tar shards that are no cache; tars made of single objects | `tar_list`, `object_pack` | consumer, fetcher |
//! | leases on shards; their disk space | `lease`, `shard_space` | consumer, fetcher |
//! | reports of a long wait for a shard | `shard_wait` | consumer |
//! | handle of the fetcher; batches whose shards are here | `fetcher`, `held_shards` | consumer |
//! | reads many shards at a time | `prefetch` | consumer |
//! | next use of each shard, for this rank and for all | `next_use`, `demand_file` | fetcher |
//! | next download and deletion; limits that cannot work | `schedule`, `disk_budget` | fetcher |
//! | download of one object, of a pack; file of an incomplete shard | `download`, `pack_download`, `part_file` | fetcher |
//! | objects in packs of other lists on this machine | `former_objects` | fetcher |
//! | the data set at an address; the tars or images under a prefix | `remote_dataset`, `listing` | fetcher |
//! | size and fingerprint of the objects at a list of addresses; whose turn it is; their file | `asked_addresses`, `ask_schedule`, `answers_file` | fetcher |
//! | names and locks of the folder; checksums of its shards | `folder`, `checksums` | fetcher |
//! | the leader of a folder, and its heartbeat | `leader`, `heartbeat` | fetcher |
//! | one rank's use of a data set; main loop | `session`, `serve` | fetcher |

#[cfg(feature = "stores")]
mod answers_file;
#[cfg(feature = "stores")]
mod ask_schedule;
#[cfg(feature = "stores")]
mod asked_addresses;
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
mod former_objects;
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
mod object_pack;
mod options;
#[cfg(feature = "stores")]
mod pack_download;
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

/// Entry of the fetcher.
#[cfg(all(feature = "codecs", feature = "stores"))]
pub(crate) const FETCHER: HelperEntry = HelperEntry {
    command: crate::pool::coordinator::messages::FETCHER_COMMAND,
    run: serve::run_fetcher,
};
