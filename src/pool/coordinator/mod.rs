//! The process between the consumer and its workers.
//!
//! In the consumer:
//! - [`launch`] makes the coordinator and shakes hands with it;
//! - [`helper`] finds the executable that becomes it; [`own`] is the first line of
//!   `main` of a program that is its own;
//! - [`handle`] asks it, watches it and ends it.
//!
//! In both: [`messages`] is what the two say to each other.
//!
//! In the coordinator, single-threaded for life, without pixels and CUDA, so that it
//! can fork a lean worker at any time:
//! - [`process`] is its beginning; [`line`] its ends of the connection;
//! - [`supervisor`] is its work; `burial`: what becomes of a worker that ended, `kills`:
//!   whom it kills;
//! - [`lanes`], [`strikes`], [`overdue`], [`progress`] are the books that the supervisor
//!   keeps: who runs where, what becomes of a dead worker's row, which rows take too long,
//!   whether any come to an end.
//!
//! Never in here: what a row is made of (`pool::job`), who may claim it (`pool::ring`).

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
