//! Worker processes that fill rows: one ring of slots, one coordinator, any number of workers.
//!
//! The pool knows numbers and bytes only. A row is a range of bytes in a slot. A batch is a key and
//! a number of rows. A job defines how rows are filled; the pool builds it from a name, bytes and
//! descriptors.
//!
//! | file | runs in | contents |
//! |---|---|---|
//! | [`job`] | all | the interface of a job: its kinds, how it is requested, what it does |
//! | [`worker_options`] | consumer | the user's options for workers; the order of a start |
//! | [`row_filler`] | consumer | fills batches with workers or in this process; makes the report |
//! | [`consumer`] | consumer | batches by workers: posts tickets, takes ready slots |
//! | [`in_process`] | consumer | batches by a loop in this process, with zero workers |
//! | [`batch_request`], [`filled_batch`] | consumer | a batch to fill; its rows once they are final |
//! | [`buffers`] | consumer | memory for rows where there is no ring |
//! | [`pool_report`] | consumer | counters of a run |
//! | `advice` | all | what to do after a pool has ended, for error texts |
//! | `tests_drill` | a test | the ring in one process, with a worker that overwrites words |
//! | [`ring`] | all | the shared memory and its protocol |
//! | [`sandbox`] | all | the user's option for the sandbox, and what the kernel supports of it |
//! | [`coordinator`] | see there | the process between consumer and workers |
//! | [`worker`] | workers | the loop of a worker |
//!
//! Never in here: any kind of work, and so no picture, recipe, index, order or device; names of
//! stages; a list of jobs (see `jobs::kinds`).

pub(crate) mod advice;
pub(crate) mod batch_request;
pub(crate) mod buffers;
pub(crate) mod consumer;
pub(crate) mod coordinator;
pub(crate) mod filled_batch;
pub(crate) mod in_process;
pub(crate) mod job;
pub(crate) mod pool_report;
pub(crate) mod ring;
pub(crate) mod row_filler;
pub(crate) mod sandbox;
#[cfg(feature = "internals")]
pub(crate) mod tests_drill;
pub(crate) mod worker;
pub(crate) mod worker_options;
