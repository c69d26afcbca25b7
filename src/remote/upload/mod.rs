//! Caches on their way into an object store: one shard after the other, while the next is built.
//!
//! A builder has a sender, a process of its own that is started as the coordinator is. The
//! builder tells it which shard of its folder is whole; it answers when the three files of it
//! are in the store. The shard's manifest goes last, so its presence says that all are there.
//! An object that is there is compared and never replaced, unless that was asked for. An index of
//! tar shards that is shared is replaced: its name says of which shards it is.
//!
//! | what it is | files | in which process |
//! |---|---|---|
//! | what both sides say to each other | `messages` | consumer, sender |
//! | has a sender, tells it what to do, and starts another when it dies | `sender` | consumer |
//! | one object: asked for, compared, put there; the parts of a large one | `object`, `parts` | sender |
//! | one shard, and the end of a cache | `shard` | sender |
//! | the sender's life | `serve` | sender |
//!
//! Never in here: how a shard is made, when it is, what is removed on this machine. An HTTP
//! client and its runtime run in the sender and nowhere else.

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

/// What makes a helper a sender.
#[cfg(all(feature = "codecs", feature = "stores"))]
pub(crate) const SENDER: crate::pool::coordinator::init::HelperEntry =
    crate::pool::coordinator::init::HelperEntry {
        command: crate::pool::coordinator::messages::SENDER_COMMAND,
        live: serve::live,
    };
