//! Rows by workers: one ring of slots, one coordinator, any number of workers.
//!
//! The pool knows numbers and bytes. A row is some bytes of a slot, a batch is a
//! key and a count of rows. What rows are made of is a job, which the
//! pool builds from a name, bytes and descriptors.
//!
//! | file | runs in | what it is |
//! |---|---|---|
//! | [`job`] | all | the one seam: a kind of job, how it is ordered, what it does |
//! | [`crew`] | consumer | who makes the rows, as a user asks; the order of the start |
//! | [`engine`] | consumer | workers or this process: the next batch, and the report |
//! | [`consumer`] | consumer | by workers: tickets out, ready slots in |
//! | [`in_process`] | consumer | by a loop in this process, with zero workers |
//! | [`place`], [`filled`] | consumer | a batch that is to be filled; its rows once they are final |
//! | [`buffers`] | consumer | memory for rows where no ring is |
//! | [`report`] | consumer | what happened, in numbers |
//! | `advice` | all | what to do when a pool has ended |
//! | `tests_drill` | a test | the ring under a worker that writes anything, in one process |
//! | [`ring`] | all | the shared memory and its protocol |
//! | [`sandbox`] | all | what keeps workers from anything but their work |
//! | [`coordinator`] | see there | the process between consumer and workers |
//! | [`worker`] | workers | the life of a worker |
//!
//! Never in here: any kind of work, and so no picture, recipe, index, plan or device;
//! names of stages; a list of jobs (`jobs::kinds` has it).

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
