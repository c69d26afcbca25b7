//! Uploads caches to an object store, one shard at a time while the next is built.
//!
//! A builder starts an uploader, a separate process, like the coordinator. It names each complete
//! shard in its folder. The uploader answers when the shard's three files are in the store. The
//! shard's manifest is uploaded last, so its presence means that all are there. An existing object
//! is compared and not replaced, unless requested. A shared index of tar shards is replaced,
//! because its name identifies its shards.
//!
//! | contents | files | process |
//! |---|---|---|
//! | messages | `messages` | consumer, uploader |
//! | handle of the uploader; restarts it when it dies | `uploader` | consumer |
//! | one object: exists, compare, upload; large objects in parts | `object`, `parts` | uploader |
//! | one shard, and the end of a cache | `shard` | uploader |
//! | main loop | `serve` | uploader |
//!
//! Never in here: building of shards, files removed on this machine. An HTTP client and its runtime
//! run only in the uploader.

pub(crate) mod messages;
#[cfg(feature = "stores")]
mod object;
#[cfg(feature = "stores")]
mod parts;
#[cfg(feature = "stores")]
mod serve;
#[cfg(feature = "stores")]
mod shard;
pub(crate) mod uploader;

/// Entry of the uploader.
#[cfg(all(feature = "codecs", feature = "stores"))]
pub(crate) const SENDER: crate::pool::coordinator::init::HelperEntry =
    crate::pool::coordinator::init::HelperEntry {
        command: crate::pool::coordinator::messages::SENDER_COMMAND,
        run: serve::run_uploader,
    };
