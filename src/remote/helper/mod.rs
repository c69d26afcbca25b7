//! Processes that work with a store, of any kind.
//!
//! | contents | files | process |
//! |---|---|---|
//! | a helper that is restarted when it dies; one process of it | `restarts`, `process` | consumer |
//! | messages | `messages` | consumer, helper |
//! | main loop | `helper_loop` | helper |
//! | progress of slow transfers | `progress` | consumer, helper |

#[cfg(feature = "stores")]
pub(super) mod helper_loop;
pub(super) mod messages;
pub(super) mod process;
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(super) mod progress;
pub(super) mod restarts;
