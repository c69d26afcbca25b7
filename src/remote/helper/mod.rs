//! The life of a helper that works with a store, whichever kind it is.
//!
//! | what it is | files | in which process |
//! |---|---|---|
//! | a helper that is started again when it dies; one process of it | `restarts`, `process` | consumer |
//! | what stands in a packet | `messages` | consumer, helper |
//! | its loop on the socket to the consumer | `helper_loop` | helper |
//! | transfers that are reported while they are slow | `progress` | consumer, helper |

#[cfg(feature = "stores")]
pub(super) mod helper_loop;
pub(super) mod messages;
pub(super) mod process;
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) mod progress;
pub(super) mod restarts;
