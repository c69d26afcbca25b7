//! The one seam between the pool and what it works on.
//!
//! Coordinator and ring know a job only through [`Job`]; a new kind of job is a
//! variant of [`JobSpec`] and a file beside this one. The job is built once, in
//! the coordinator, and reaches workers by fork.

use std::ops::Range;
use std::os::fd::OwnedFd;

use super::encode::EncodeJob;
use super::images::ImageJob;
use super::input::InputMode;
use super::meter::Meter;
use super::spec::JobSpec;
use crate::error::{Error, Result, SampleFault};
use crate::index::Index;
use crate::packing::Sizes;
use crate::packing::rooms::Rooms;
use crate::plan::SamplerTable;
use crate::recipe::RowExtent;
use crate::ring::consumer_side::Ticket;

/// Work whose results are rows.
pub(crate) trait Job {
    /// Where row `row` of ticket `ticket` lies: bytes of the slot's data. The
    /// same in every process; rows of a ticket share no byte.
    fn place(&mut self, ticket: &Ticket, row: u32) -> Range<usize>;

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

    /// Whether [`Job::prefers`] has anything to say.
    fn is_choosy(&self) -> bool {
        false
    }

    /// Whether this worker has at hand what the row is made from. Asked for a few
    /// rows in front of each, so it must be quick. A ticket's numbers may be wrong:
    /// any answer will do then.
    fn prefers(&self, _ticket: &Ticket, _row: u32) -> bool {
        true
    }

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
                let mut fds = fds.into_iter();
                let index = fds.next().map(Index::from_fd).transpose()?;
                let index =
                    index.ok_or_else(|| Error::protocol("an image job came without its index"))?;
                let sizes = match spec.program.extent {
                    RowExtent::Fixed { .. } => None,
                    RowExtent::Own => fds.next(),
                };
                let sizes = sizes
                    .map(|fd| Sizes::from_fd(fd, index.len()))
                    .transpose()?;
                let sampler = &spec.plan.sampler;
                let table = sampler.needs_table().then(|| fds.next()).flatten();
                let table = table
                    .map(|fd| SamplerTable::from_fd(fd, sampler, index.len()))
                    .transpose()?;
                if fds.next().is_some() {
                    return Err(Error::protocol(
                        "an image job came with more descriptors than its recipe and sampler need",
                    ));
                }
                let job = ImageJob::new(&spec, index, sizes, table, InputMode::Map)?;
                Ok(Box::new(job))
            }
            Self::Encode(spec) => {
                let Ok([index, sizes, rooms]) = <[OwnedFd; 3]>::try_from(fds) else {
                    return Err(Error::protocol(
                        "a job that encodes came with other descriptors than index, sizes and rooms",
                    ));
                };
                let index = Index::from_fd(index)?;
                let sizes = Sizes::from_fd(sizes, index.len())?;
                let rooms = Rooms::from_fd(rooms, index.len())?;
                let job = EncodeJob::new(&spec, index, sizes, rooms, InputMode::Map)?;
                Ok(Box::new(job))
            }
        }
    }
}
