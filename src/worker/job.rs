//! The one seam between the pool and what it works on.
//!
//! Coordinator and ring know a job only through [`Job`]; a new kind of job is a
//! variant of [`JobSpec`] and a file beside this one. The job is built once, in
//! the coordinator, and reaches workers by fork.

use std::os::fd::OwnedFd;

use super::images::ImageJob;
use super::input::InputMode;
use super::meter::Meter;
use super::spec::JobSpec;
use crate::error::{Error, Result, SampleFault};
use crate::index::Index;
use crate::ring::consumer_side::Ticket;

/// Work whose results are rows.
pub(crate) trait Job {
    /// Fills row `row` of ticket `ticket`: at attempt 0 with its own sample, at
    /// attempt n with the n-th that may take its place. The same bytes whenever
    /// and wherever it is called; a failed row may leave anything in `out`.
    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault>;

    /// Private memory that a worker may take at most, bytes.
    fn memory_limit(&self) -> u64;

    /// What the row is made from at that attempt, for messages: a path, as a rule.
    fn describe(&self, ticket: &Ticket, row: u32, attempt: u32) -> String;
}

impl JobSpec {
    /// Builds the job from its description and the received descriptors.
    pub(crate) fn build(self, fds: Vec<OwnedFd>) -> Result<Box<dyn Job>> {
        match self {
            Self::Images(spec) => {
                let [index] = <[OwnedFd; 1]>::try_from(fds).map_err(|fds| {
                    Error::protocol(format!(
                        "an image job needs 1 descriptor, {} came",
                        fds.len()
                    ))
                })?;
                let index = Index::from_fd(index)?;
                Ok(Box::new(ImageJob::new(&spec, index, InputMode::Map)?))
            }
        }
    }
}
