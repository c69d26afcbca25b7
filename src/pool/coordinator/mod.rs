//! The process between the consumer and its workers.
//!
//! In the consumer:
//! - [`launch`] starts the coordinator and performs the handshake;
//! - [`find_helper`] finds the executable that becomes it; [`init`] lets a program be its own
//!   helper;
//! - [`handle`] sends it commands, watches it and ends it.
//!
//! In both: [`messages`] between the two.
//!
//! In the coordinator. It has one thread, no pixels and no CUDA, so it can fork a small worker at
//! any time:
//! - [`process`] starts it; [`connection`] is its socket to the consumer;
//! - [`supervisor`] is its main loop; `worker_exits` handles workers that ended; `kills` kills
//!   workers;
//! - [`lanes`] records which worker uses which lane;
//! - [`strikes`] decides what to do with a dead worker's row;
//! - [`row_timeouts`] finds rows that take too long; [`stall_detector`] finds that no row gets
//!   done.
//!
//! Never in here: contents of rows (`pool::job`), claims of rows (`pool::ring`).

mod connection;
mod find_helper;
pub(crate) mod handle;
pub(crate) mod init;
mod kills;
mod lanes;
pub(crate) mod launch;
pub(crate) mod messages;
pub(crate) mod process;
pub(crate) mod row_timeouts;
pub(crate) mod stall_detector;
mod strikes;
mod supervisor;
mod worker_exits;
